"""The parts of LangChain's messages, as its integrations and its own standard write them."""

from __future__ import annotations

import base64
from typing import Any, Literal

import pytest

import contextd_client
from contextd_client import Budget

pytest.importorskip("langchain")
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from contextd_client.langgraph import ContextdMessages

ROOMY = Budget(max_tokens=20_000, tokenizer="o200k_base")
FOUND = [{"type": "web_search_result", "url": "https://example.org", "title": "t",
          "encrypted_content": "e", "page_age": None}]  # fmt: skip
NATIVE = [
    {"type": "thinking", "thinking": "hm", "signature": "sig"},
    {"type": "redacted_thinking", "data": "zz"},
    {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "q"}},
    {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_1", "content": FOUND},
    {"type": "text", "text": "I read it."},
    {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {}},
]
STREAMED = [{**part, "index": place} for place, part in enumerate(NATIVE)]
STREAMED[2] = {**STREAMED[2], "input": {}, "partial_json": '{"query":"q"}'}
STANDARD: list[Any] = [
    {"type": "reasoning", "reasoning": "hm", "extras": {"signature": "sig"}},
    {"type": "non_standard", "value": {"type": "redacted_thinking", "data": "zz"}},
    {"type": "server_tool_call", "id": "srvtoolu_1", "name": "web_search", "args": {"query": "q"}},
    {"type": "server_tool_result", "tool_call_id": "srvtoolu_1", "status": "success",
     "output": FOUND, "extras": {"block_type": "web_search_tool_result"}},
    {"type": "text", "text": "I read it."},
    {"type": "tool_call", "id": "toolu_1", "name": "read", "args": {}},
]  # fmt: skip


@pytest.mark.parametrize("content", [NATIVE, STREAMED, STANDARD], ids=["its", "streamed", "v1"])
def test_anthropic(client: contextd_client.Client, session_id: str, content: list[Any]) -> None:
    """In each of LangChain's forms, Claude gets its own content back, with the seals."""
    said = AIMessage(
        content,
        tool_calls=[{"id": "toolu_1", "name": "read", "args": {}}],
        response_metadata={"model_provider": "anthropic", "model_name": "claude-sonnet-4-5"},
    )
    messages = [HumanMessage("Go."), said, ToolMessage("read", tool_call_id="toolu_1")]
    given = ContextdMessages(client, ROOMY, format="anthropic").for_model(session_id, messages)
    assert given[1].content == NATIVE


def test_signature_of_a_call(client: contextd_client.Client, session_id: str) -> None:
    """A proxy gets the signature of a call back in its id, and its result names the call.

    Other members with signatures are in the log; LangChain sends none.
    """
    google = {"google": {"thought_signature": "c2ln"}}
    said = AIMessage(
        "",
        additional_kwargs={"tool_calls": [{"id": "b", "extra_content": google}]},
        tool_calls=[
            {"id": "a__thought__c2ln", "name": "read", "args": {}},
            {"id": "b", "name": "read", "args": {}},
        ],
        response_metadata={"model_name": "gemini-3-pro"},
    )
    results = [
        ToolMessage("1", tool_call_id="a__thought__c2ln"),
        ToolMessage("2", tool_call_id="b"),
    ]
    messages = [HumanMessage("Go."), said, *results]
    given = ContextdMessages(client, ROOMY, format="openai_chat").for_model(session_id, messages)
    assert isinstance(given[1], AIMessage)
    assert [c["id"] for c in given[1].tool_calls] == ["a__thought__c2ln", "b"]
    assert [m.tool_call_id for m in given[2:] if isinstance(m, ToolMessage)] == [
        "a__thought__c2ln",
        "b",
    ]
    logged = [e for e in client.read_events(session_id) if e.HasField("message")][1].message
    assert [b.tool_call.call_id or b.provider.json for b in logged.blocks] == [
        b'{"provider_specific_fields":{"thought_signature":"c2ln"}}',
        "a",
        b'{"extra_content":{"google":{"thought_signature":"c2ln"}}}',
        "b",
    ]


@pytest.mark.parametrize("format", ["openai_chat", "anthropic"])
def test_returned_reasoning(
    client: contextd_client.Client, session_id: str, format: Literal["openai_chat", "anthropic"]
) -> None:
    """Reasoning that is returned as text is in the message. docs/adapters names who sends it."""
    budget = Budget(max_tokens=20_000, model="deepseek-v4-pro")
    said = AIMessage(
        "",
        additional_kwargs={"reasoning_content": "hm"},
        tool_calls=[{"id": "a", "name": "read", "args": {}}],
        response_metadata={"model_name": "deepseek-v4-pro"},
    )
    messages = [HumanMessage("Go."), said, ToolMessage("read", tool_call_id="a")]
    given = ContextdMessages(client, budget, format=format).for_model(session_id, messages)
    if format == "openai_chat":
        assert given[1].additional_kwargs["reasoning_content"] == "hm"
        openai = pytest.importorskip("langchain_openai")
        model = openai.ChatOpenAI(model="deepseek-v4-pro", api_key="none")
        sent = model._get_request_payload(given)["messages"][1]
        assert sent["tool_calls"]
        assert "reasoning_content" not in sent  # if it is there, the page can say so
    else:
        anthropic = pytest.importorskip("langchain_anthropic")
        model = anthropic.ChatAnthropic(model_name="deepseek-v4-pro", api_key="none")
        sent = model._get_request_payload(given)["messages"][1]
        assert sent["content"][0] == {"type": "thinking", "thinking": "hm", "signature": ""}


def test_sealed_by_a_host(client: contextd_client.Client, session_id: str) -> None:
    """Reasoning that OpenRouter seals comes back as it was, also of a streamed answer."""
    details: list[dict[str, Any]] = [
        {"type": "reasoning.text", "text": "hm", "format": "google-gemini-v1", "index": 0},
        {"type": "reasoning.encrypted", "data": "ZA==", "id": "a", "index": 1},
    ]
    said = AIMessage(
        "",
        additional_kwargs={"reasoning_content": "hm", "reasoning_details": details},
        tool_calls=[{"id": "a", "name": "read", "args": {}}],
        response_metadata={"model_name": "google/gemini-3-pro"},
    )
    messages = [HumanMessage("Go."), said, ToolMessage("read", tool_call_id="a")]
    given = ContextdMessages(client, ROOMY, format="openai_chat").for_model(session_id, messages)
    assert given[1].additional_kwargs["reasoning_details"] == details
    assert "reasoning_content" not in given[1].additional_kwargs


def test_beside_the_content(client: contextd_client.Client, session_id: str) -> None:
    """What OpenAI's models say beside the content is kept."""
    refused = AIMessage("", additional_kwargs={"refusal": "No."})
    sound = AIMessage("", additional_kwargs={"audio": {"id": "a", "transcript": "It."}})
    messages = [HumanMessage("Go."), refused, HumanMessage("Say it."), sound]
    given = ContextdMessages(client, ROOMY, format="openai_chat").for_model(session_id, messages)
    assert given[1].additional_kwargs["refusal"] == "No."
    assert given[3].content == "It."


PNG = base64.b64encode(b"\x89PNG\r\n\x1a\n").decode()
SHOWN = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PNG}"}}
CARRIED: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({"type": "image", "base64": PNG, "mime_type": "image/png"}, SHOWN),
    ({"type": "image", "source_type": "base64", "data": PNG, "mime_type": "image/png"}, SHOWN),
    (SHOWN, SHOWN),
    ({"type": "text-plain", "text": "plain", "mime_type": "text/plain"},
     {"type": "text", "text": "plain"}),
    ({"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}},
     {"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}}),
]  # fmt: skip


@pytest.mark.parametrize(("part", "shown"), CARRIED)
def test_user(
    client: contextd_client.Client, session_id: str, part: dict[str, Any], shown: dict[str, Any]
) -> None:
    messages = [HumanMessage([{"type": "text", "text": "See."}, part])]
    (given,) = ContextdMessages(client, ROOMY).for_model(session_id, messages)
    second = given.content[1]
    assert isinstance(second, dict)
    assert {name: second[name] for name in shown} == shown


@pytest.mark.parametrize(
    ("part", "why"),
    [
        ({"type": "image", "file_id": "file_1"}, "'image' that only the provider has is not"),
        ({"type": "media", "mime_type": "video/mp4"}, "'media' is not carried"),
    ],
)
def test_refused(
    client: contextd_client.Client, session_id: str, part: dict[str, Any], why: str
) -> None:
    """Refused, since the model would only get a description of it."""
    for message in (HumanMessage([part]), ToolMessage([part], tool_call_id="c1")):
        called = AIMessage("", tool_calls=[{"id": "c1", "name": "see", "args": {}}])
        with pytest.raises(ValueError, match=why):
            ContextdMessages(client, ROOMY).for_model(session_id, [called, message])
