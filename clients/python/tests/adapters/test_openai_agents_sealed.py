"""What hosts of Chat Completions seal, through the Agents SDK's own models and converter."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest

import contextd_client.aio
from contextd_client import Budget
from contextd_client.v1.event_pb2 import Event

agents = pytest.importorskip("agents")
pytest.importorskip("agents.models.reasoning_content_replay")  # older versions lack some of it
from agents.items import ModelResponse  # noqa: E402
from agents.models.chatcmpl_converter import Converter  # noqa: E402
from agents.models.interface import Model  # noqa: E402
from agents.usage import Usage  # noqa: E402
from openai import AsyncOpenAI  # noqa: E402
from openai.types.chat import ChatCompletionMessage  # noqa: E402

from contextd_client.openai_agents import ContextdModel, ContextdSession  # noqa: E402

CONFIG = agents.RunConfig(tracing_disabled=True)
GEMINI = "google/gemini-3-pro"
CLAUDE = "anthropic/claude-opus-4-5"


@agents.function_tool
def read(path: str) -> str:
    """Read a file."""
    return f"{path}: nothing"


def reader(model: Model) -> Any:
    return agents.Agent(name="reader", instructions="Be brief.", model=model, tools=[read])


def calling(number: int) -> dict[str, Any]:
    function = {"name": "read", "arguments": f'{{"path": "{number}.py"}}'}
    return {"id": f"call_{number}", "type": "function", "function": function}


class Google:
    """A server that refuses a call of the assistant without its signature."""

    def __init__(self) -> None:
        self.signatures: list[list[str]] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        messages = json.loads(request.content)["messages"]
        calls = [c for m in messages for c in m.get("tool_calls", ())]
        seen = [
            c.get("extra_content", {}).get("google", {}).get("thought_signature") for c in calls
        ]
        if not all(seen):
            error = {"message": "Function call is missing a thought_signature"}
            return httpx.Response(400, json={"error": error})
        self.signatures.append(seen)
        number = len(self.signatures)
        message: dict[str, Any] = {"role": "assistant", "content": None if number % 2 else "Done."}
        if number % 2:
            signed = {"extra_content": {"google": {"thought_signature": f"c2ln{number}+/="}}}
            message["tool_calls"] = [{**calling(number), **signed}]
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        body = {"id": f"r{number}", "object": "chat.completion", "created": 1, "model": GEMINI}
        return httpx.Response(200, json={**body, "choices": [choice]})


@pytest.mark.parametrize("with_session", [False, True])
async def test_signatures_of_calls(
    aclient: contextd_client.aio.Client, session_id: str, with_session: bool
) -> None:
    server = Google()
    http = httpx.AsyncClient(transport=httpx.MockTransport(server.answer))
    openai = AsyncOpenAI(api_key="none", base_url="http://google.test", http_client=http)
    await ask(aclient, session_id, agents.OpenAIChatCompletionsModel(GEMINI, openai), with_session)
    assert server.signatures == [[], ["c2ln1+/="], ["c2ln1+/="], ["c2ln1+/=", "c2ln3+/="]]
    said = [e.message for e in await log(aclient, session_id) if e.message.group_id]
    assert {m.model for m in said} == {GEMINI}
    (before,) = (b.provider for m in said[:1] for b in m.blocks if b.HasField("provider"))
    signature = {"provider_specific_fields": {"thought_signature": "c2ln1+/="}}
    assert (before.provider, json.loads(before.json)) == ("openai", signature)


THINKING = [
    {"type": "thinking", "thinking": "First.", "signature": "c2lnMQ=="},
    {"type": "redacted_thinking", "data": "cmVkYWN0ZWQ="},
    {"type": "thinking", "thinking": "", "signature": "c2lnMg=="},
]


class LitellmModel(Model):
    """Asks as the SDK's model of this name does, without LiteLLM: it makes the SDK's items of a
    message of LiteLLM's, and messages of the items.
    """

    def __init__(self, blocks: list[Any]) -> None:
        self.model = CLAUDE
        self.given: list[list[Any]] = []
        self._blocks = blocks

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        items = kwargs["input"] if "input" in kwargs else args[1]
        self.given.append(
            Converter.items_to_messages(items, model=CLAUDE, preserve_thinking_blocks=True)
        )
        number = len(self.given)
        message = ChatCompletionMessage.model_validate(
            {
                "role": "assistant",
                "content": "It reads." if number % 2 else "Done.",
                "tool_calls": [calling(number)] if number % 2 else None,
                "reasoning_content": "First.",
                "thinking_blocks": self._blocks,
            }
        )
        made = Converter.message_to_output_items(
            message, provider_data={"model": CLAUDE, "response_id": f"r{number}"}
        )
        return ModelResponse(output=made, usage=Usage(), response_id=None)

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise NotImplementedError
        yield


@pytest.mark.parametrize("with_session", [False, True])
@pytest.mark.parametrize("blocks", [THINKING, THINKING[1:2]], ids=["several", "redacted"])
async def test_thinking_blocks(
    aclient: contextd_client.aio.Client, session_id: str, with_session: bool, blocks: list[Any]
) -> None:
    model = LitellmModel(blocks)
    await ask(aclient, session_id, model, with_session)
    for number, given in enumerate(model.given):
        said = [m for m in given if m["role"] == "assistant"]
        assert [m.get("thinking_blocks") for m in said] == [blocks] * number
        texts = ["It reads.", "Done."] * 2
        assert [m["content"] for m in said] == texts[:number]
        assert [len(m.get("tool_calls", ())) for m in said] == [1, 0, 1, 0][:number]
    newest = next(e for e in await log(aclient, session_id) if e.message.group_id)
    assert json.loads(newest.message.blocks[0].thinking.signature) == {"thinking_blocks": blocks}


async def test_items_that_are_popped(aclient: contextd_client.aio.Client, session_id: str) -> None:
    session = ContextdSession(session_id, aclient, format="openai_chat")
    made: list[Any] = [
        {"type": "message", "role": "user", "content": "Go."},
        {
            "type": "reasoning",
            "id": "__fake_id__",
            "summary": [],
            "content": [{"type": "reasoning_text", "text": "First."}],
            "encrypted_content": "c2lnMQ==\nc2lnMg==",
            "provider_data": {"model": CLAUDE, "thinking_blocks": THINKING},
        },
        {
            "type": "function_call",
            "call_id": "call_1",
            "name": "read",
            "arguments": "{}",
            "provider_data": {"model": GEMINI, "thought_signature": "c2ln"},
        },
    ]
    await session.add_items(made)
    assert [await session.pop_item() for _ in made[1:]] == made[:0:-1]


async def test_thinking_of_older_versions(
    aclient: contextd_client.aio.Client, session_id: str
) -> None:
    """They have the texts and the signatures apart."""
    session = ContextdSession(session_id, aclient, format="openai_chat")
    reasoning: Any = {
        "type": "reasoning",
        "id": "__fake_id__",
        "summary": [],
        "content": [{"type": "reasoning_text", "text": text} for text in ("One.", "Two.")],
        "encrypted_content": "c2lnMQ==\nc2lnMg==",
        "provider_data": {"model": CLAUDE},
    }
    said: Any = {"role": "assistant", "content": "Done."}
    await session.add_items([{"role": "user", "content": "Go."}, reasoning, said])
    items: Any = await session.get_items()
    assert [block["signature"] for block in items[1]["provider_data"]["thinking_blocks"]] == [
        "c2lnMQ==", "c2lnMg=="
    ]  # fmt: skip


async def ask(
    client: contextd_client.aio.Client, session_id: str, model: Any, with_session: bool
) -> None:
    """Two questions, with the items in contextd's session or through its model."""
    budget = Budget(max_tokens=20_000, model=model.model)
    session: Any = agents.SQLiteSession(session_id)
    if with_session:
        session = ContextdSession(session_id, client, budget=budget, format="openai_chat")
    else:
        model = ContextdModel(model, client, session_id, budget=budget, format="openai_chat")
    for question in ("What does it do?", "And now?"):
        await agents.Runner.run(reader(model), question, session=session, run_config=CONFIG)


async def log(client: contextd_client.aio.Client, session_id: str) -> list[Event]:
    return [event async for event in client.read_events(session_id)]
