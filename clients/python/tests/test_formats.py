"""Contexts are valid requests by the types of each provider's SDK."""

from __future__ import annotations

import json
from typing import Any

import pytest
from conversation import BUDGET, MODEL, POLICY, opening, turn
from pydantic import TypeAdapter

import contextd_client
from contextd_client import Injection, events
from contextd_client._read import to_raw

ARGUMENTS = b'{"n":1.0,"big":1e400,"id":9223372036854775808,"n":2,"s":"\\ud800\\/"}'
PNG = bytes.fromhex("89504e470d0a1a0a")


def fill(client: contextd_client.Client, session_id: str) -> None:
    """A session with something of everything, beyond its budget."""
    client.append(session_id, *opening())
    client.append(
        session_id,
        events.user("See", events.media(data=PNG, mime_type="image/png")),
        events.assistant("I look.", events.tool_call("odd id/ä", "f", ARGUMENTS), model=MODEL),
        events.tool_result("odd id/ä", ["one", events.media(data=PNG, mime_type="image/png")]),
    )
    for number in range(1, 9):
        client.append(session_id, *turn(number))
    client.append(session_id, events.reminder("Mind the tests."))


@pytest.fixture
def context(
    client: contextd_client.Client, session_id: str, request: pytest.FixtureRequest
) -> contextd_client.Context:
    fill(client, session_id)
    clock = Injection(name="clock", blocks=[events.text("It is noon.")], reserve_tokens=40)
    return client.assemble(
        session_id, request.param, budget=BUDGET, policy=POLICY, injections=[clock],
        projection=True,
    )  # fmt: skip


@pytest.mark.parametrize("context", ["anthropic"], indirect=True)
def test_anthropic(context: contextd_client.Context) -> None:
    anthropic = pytest.importorskip("anthropic")
    kwargs = context.request_kwargs()
    types = anthropic.types
    TypeAdapter(list[types.MessageParam]).validate_python(kwargs["messages"])
    TypeAdapter(list[types.TextBlockParam]).validate_python(kwargs["system"])
    assert kwargs["messages"][-1]["content"][-1]["text"] == "It is noon."
    marks = [p.message_index for p in context.header.cache_breakpoints]
    assert 0 < len(marks) <= 4
    blocks = [*kwargs["system"], *(b for m in kwargs["messages"] for b in m["content"])]
    assert sum("cache_control" in b for b in blocks) == len(marks)
    assert b"cache_control" not in b"".join(context.lines), "the kept bytes were changed"
    unmarked = context.request_kwargs(cache=False)
    assert "cache_control" not in json.dumps(unmarked)
    assert unmarked["messages"] == context.messages()


@pytest.mark.parametrize("context", ["openai_chat"], indirect=True)
def test_openai_chat(context: contextd_client.Context) -> None:
    openai = pytest.importorskip("openai")
    kwargs = context.request_kwargs()
    param = openai.types.chat.ChatCompletionMessageParam
    TypeAdapter(list[param]).validate_python(kwargs["messages"])
    assert kwargs["prompt_cache_key"] == context.header.prompt_cache_key != ""
    assert context.system is None
    assert kwargs["messages"][0]["role"] == "system"
    arguments = [c["function"]["arguments"] for m in kwargs["messages"]
                 for c in m.get("tool_calls", ())]  # fmt: skip
    assert ARGUMENTS.decode() in arguments or context.header.projection.dropped_count


@pytest.mark.parametrize("context", ["openai_responses"], indirect=True)
def test_openai_responses(context: contextd_client.Context) -> None:
    openai = pytest.importorskip("openai")
    kwargs = context.request_kwargs()
    param = openai.types.responses.ResponseInputItemParam
    TypeAdapter(list[param]).validate_python(kwargs["input"])
    assert kwargs["prompt_cache_key"]


@pytest.mark.parametrize("context", ["gemini"], indirect=True)
def test_gemini(context: contextd_client.Context) -> None:
    genai = pytest.importorskip("google.genai")
    kwargs = context.request_kwargs()
    contents = [genai.types.Content.model_validate(c) for c in kwargs["contents"]]
    genai.types.GenerateContentConfig.model_validate(kwargs["config"])
    # Through the SDK's types and back, a content is what it was.
    for content, line in zip(contents, context.lines[1:], strict=True):
        again = content.model_dump(mode="json", exclude_none=True, by_alias=True)
        assert again == json.loads(line)
    assert contents[-1].parts[-1].text == "It is noon."


@pytest.mark.parametrize("context", ["anthropic", "openai_chat", "openai_responses", "gemini"],
                         indirect=True)  # fmt: skip
def test_request_json_keeps_the_bytes(context: contextd_client.Context) -> None:
    body = context.request_json()
    first = 1 if context.system_first else 0
    for line in context.lines[first:]:
        assert line in body
    plain = json.loads(body)
    name = {"openai_responses": "input", "gemini": "contents"}.get(context.format, "messages")
    assert len(plain[name]) == len(context.lines) - first
    assert (context.system is None) == (context.format.startswith("openai"))


def test_arguments_that_no_encoder_takes(client: contextd_client.Client, session_id: str) -> None:
    client.append(session_id, events.user("go"))
    client.append(session_id, events.assistant(events.tool_call("c", "f", ARGUMENTS)))
    client.append(session_id, events.tool_result("c", "done"))
    context = client.assemble(session_id, "anthropic")
    (call,) = (b for m in context.messages() for b in m["content"] if b["type"] == "tool_use")
    assert call["input"] == {"raw_arguments": ARGUMENTS.decode()}
    own = client.assemble(session_id, "contextd")
    assert ARGUMENTS in b"".join(own.lines)
    (arguments,) = (b["tool_call"]["arguments_json"] for m in own.messages() for b in m["blocks"]
                    if "tool_call" in b)  # fmt: skip
    assert arguments["big"] == 10**400
    encoded = json.dumps(arguments, ensure_ascii=False, allow_nan=False).encode()
    assert json.loads(encoded)["s"] == "�/"


BODIES: dict[str, Any] = {
    "anthropic": b"""{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5",
        "content":[{"type":"thinking","thinking":"hm","signature":"c2ln"},
        {"type":"redacted_thinking","data":"ZGF0YQ=="},{"type":"text","text":"I look."},
        {"type":"tool_use","id":"toolu_1","name":"f","input":{"n":1.0,"none":null}}],
        "stop_reason":"tool_use","stop_sequence":null,"usage":{"input_tokens":5,"output_tokens":7,
        "cache_read_input_tokens":100,"cache_creation_input_tokens":20}}""",
    "openai_chat": b"""{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"gpt-5",
        "choices":[{"index":0,"finish_reason":"tool_calls","logprobs":null,"message":{
        "role":"assistant","content":"I look.","refusal":null,"tool_calls":[{"id":"call_1",
        "type":"function","function":{"name":"f","arguments":"{\\"n\\": 1.0}"}}]}}],
        "usage":{"prompt_tokens":125,"completion_tokens":7,"total_tokens":132,
        "prompt_tokens_details":{"cached_tokens":100,"cache_write_tokens":20}}}""",
    "openai_responses": b"""{"id":"resp_1","object":"response","created_at":1,"model":"gpt-5",
        "status":"completed","parallel_tool_calls":true,"tool_choice":"auto","tools":[],"output":[
        {"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"},
        {"type":"message","id":"msg_1","role":"assistant","status":"completed","phase":"commentary",
        "content":[{"type":"output_text","text":"I look.","annotations":[]}]},
        {"type":"function_call","id":"fc_1","call_id":"call_1","name":"f",
        "namespace":"files","arguments":"{\\"n\\": 1.0}","status":"completed"}],
        "usage":{"input_tokens":125,"input_tokens_details":{"cached_tokens":100,"cache_write_tokens":20},
        "output_tokens":7,"output_tokens_details":{"reasoning_tokens":0},"total_tokens":132}}""",
    "gemini": b"""{"responseId":"r1","modelVersion":"gemini-3-pro","candidates":[{
        "finishReason":"STOP","content":{"role":"model","parts":[{"text":"hm","thought":true},
        {"text":"I look."},{"functionCall":{"name":"f","args":{"n":1.0}},
        "thoughtSignature":"c2lnbg=="}]}}],
        "usageMetadata":{"promptTokenCount":125,"cachedContentTokenCount":100,
        "candidatesTokenCount":7}}""",
}


def sdk_object(format: str) -> Any:
    """The body as the SDK's object."""
    if format == "anthropic":
        types = pytest.importorskip("anthropic.types")
        return types.Message.model_validate_json(BODIES[format])
    if format == "gemini":
        genai = pytest.importorskip("google.genai")
        return genai.types.GenerateContentResponse.model_validate_json(BODIES[format])
    types = pytest.importorskip("openai.types")
    kind = types.chat.ChatCompletion if format == "openai_chat" else types.responses.Response
    return kind.model_validate_json(BODIES[format])


@pytest.mark.parametrize("format", BODIES)
def test_a_response_comes_back(
    client: contextd_client.Client, session_id: str, format: Any
) -> None:
    """What the model said goes into the log and out again to its own provider, unchanged."""
    client.append(session_id, events.user("go"))
    assert client.append_response(session_id, BODIES[format]).last_seq == 2
    again = client.append_response(session_id, json.loads(BODIES[format]))
    assert again.receipts[0].duplicate, "a dict is read otherwise than the body"
    assert client.append_response(session_id, sdk_object(format)).receipts[0].duplicate
    message = next(e for e in client.read_events(session_id, from_seq=2)).message
    (call,) = (b.tool_call for b in message.blocks if b.HasField("tool_call"))
    client.append_tool_result(session_id, call.call_id, "done")
    shown = client.assemble(session_id, format).lines
    said = to_raw(BODIES[format])
    if format == "anthropic":
        assert json.loads(shown[1])["content"] == said.value["content"]
    elif format == "openai_chat":
        assert (
            json.loads(shown[1])["tool_calls"] == said.value["choices"][0]["message"]["tool_calls"]
        )
    elif format == "openai_responses":
        items = [json.loads(line) for line in shown[1:4]]
        assert items[0] == said.value["output"][0]
        assert items[1]["phase"] == "commentary"
        assert items[2]["arguments"] == '{"n": 1.0}'
        assert items[2]["namespace"] == "files"
    else:
        parts = json.loads(shown[1])["parts"]
        assert parts[-1]["thoughtSignature"] == "c2lnbg=="
        assert parts[0]["thought"] is True
    usage = contextd_client.usage_of(BODIES[format])
    assert (usage.input_tokens, usage.cache_read_tokens, usage.output_tokens) == (125, 100, 7)
    assert usage.cache_write_tokens == (0 if format == "gemini" else 20)
    context = client.assemble(session_id, format)
    assert client.record_model_call(context, BODIES[format]) > 0


def test_model_of_messages() -> None:
    messages = [
        {"role": "user", "content": "a"},
        {
            "role": "assistant",
            "content": [{"type": "thinking", "thinking": "b", "signature": "Yw=="}],
        },
    ]
    made = contextd_client.message_events(messages, "anthropic", "claude-opus-4-5")
    assert [e.message.model for e in made] == ["", "claude-opus-4-5"]


@pytest.mark.parametrize(
    ("format", "prompt"),
    [("anthropic", {"system": "a"}), ("gemini", {"systemInstruction": {"parts": [{"text": "a"}]}})],
)
def test_text_of_messages(format: Any, prompt: dict[str, Any]) -> None:
    user = {"role": "user", "content": "b", "parts": [{"text": "b"}]}
    both = json.dumps([prompt, user])
    for messages in (both, both.encode(), [prompt, user]):
        made = contextd_client.message_events(messages, format)
        assert [e.message.blocks[0].text.text for e in made] == ["a", "b"]
        assert made[0].message.role == events.system("a").message.role
