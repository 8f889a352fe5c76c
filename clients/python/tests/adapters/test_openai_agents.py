"""The Agents SDK's own runner over a session of contextd."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

import contextd_client.aio
from contextd_client import Budget

agents = pytest.importorskip("agents")
from agents.items import ModelResponse  # noqa: E402
from agents.memory import Session  # noqa: E402
from agents.models.interface import Model  # noqa: E402
from agents.usage import Usage  # noqa: E402
from openai.types.responses import (  # noqa: E402
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)

from contextd_client.openai_agents import ContextdSession  # noqa: E402

BUDGET = Budget(max_tokens=20_000, tokenizer="o200k_base")


class Scripted(Model):
    """A model that calls a tool, then answers; it keeps what it was given."""

    def __init__(self) -> None:
        self.given: list[list[Any]] = []

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        items = kwargs["input"] if "input" in kwargs else args[1]
        self.given.append(items if isinstance(items, list) else [items])
        number = len(self.given)
        reasoning = ResponseReasoningItem(
            id=f"rs_{number}", type="reasoning", summary=[], encrypted_content="gAAA"
        )
        if number % 2:
            call = ResponseFunctionToolCall(
                id=f"fc_{number}", type="function_call", call_id=f"call_{number}",
                name="weather", arguments='{"city": "Köln", "days": 1.0}',
            )  # fmt: skip
            output: list[Any] = [reasoning, call]
        else:
            text = ResponseOutputText(type="output_text", text=f"Rain {number}.", annotations=[])
            output = [
                reasoning,
                ResponseOutputMessage(
                    id=f"msg_{number}", type="message", role="assistant", status="completed",
                    content=[text],
                ),
            ]  # fmt: skip
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        raise AssertionError("nothing streams here")


@agents.function_tool
def weather(city: str, days: float) -> str:
    """The weather of a city."""
    return f"rain in {city} for {days}"


async def test_runner(aclient: contextd_client.aio.Client, session_id: str) -> None:
    session = ContextdSession(session_id, aclient, budget=BUDGET)
    assert isinstance(session, Session)
    model = Scripted()
    agent = agents.Agent(name="weather", instructions="Be brief.", model=model, tools=[weather])
    config = agents.RunConfig(tracing_disabled=True)
    first = await agents.Runner.run(agent, "How is it?", session=session, run_config=config)
    assert first.final_output == "Rain 2."
    second = await agents.Runner.run(agent, "And now?", session=session, run_config=config)
    assert second.final_output == "Rain 4."
    kinds = [i.get("type") or i["role"] for i in model.given[2]]
    assert kinds[:1] == ["message"]
    assert kinds.count("function_call") == 1
    assert kinds.index("reasoning") < kinds.index("function_call")
    (call,) = (i for i in model.given[2] if i.get("type") == "function_call")
    assert call["arguments"] == '{"city": "Köln", "days": 1.0}'
    (result,) = (i for i in model.given[2] if i.get("type") == "function_call_output")
    assert result["output"] == "rain in Köln for 1.0"
    # What the runner gives the model is what the session holds, and the new input.
    log = [e async for e in aclient.read_events(session_id)]
    groups = {e.message.group_id for e in log if e.message.group_id}
    assert len(groups) == 4, "each answer of the model is one group"


ITEMS: list[Any] = [
    {"role": "user", "content": "hi"},
    {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAA"},
    {"type": "function_call", "call_id": "c1", "name": "f", "arguments": '{"a": 1.0}'},
    {"type": "function_call_output", "call_id": "c1", "output": "done"},
    {"role": "assistant", "content": "all done"},
    {
        "role": "user",
        "content": [
            {"type": "input_text", "text": "see"},
            {"type": "input_image", "detail": "auto", "image_url": "data:image/png;base64,aGk="},
        ],
    },
]


async def test_pop_gives_back_and_goes_on(
    aclient: contextd_client.aio.Client, session_id: str
) -> None:
    session = ContextdSession(session_id, aclient, budget=BUDGET)
    assert await session.get_items() == []
    assert await session.pop_item() is None
    await session.clear_session()
    await session.add_items(ITEMS)
    popped = [await session.pop_item() for _ in ITEMS]
    assert popped == ITEMS[::-1]
    assert await session.pop_item() is None
    assert await session.get_items() == []
    await session.add_items(ITEMS[:1])
    other = ContextdSession(session_id, aclient, budget=BUDGET)
    (item,) = await other.get_items()
    assert item["content"][0]["text"] == "hi"  # type: ignore[index,typeddict-item]
    assert (await aclient.get_session(session_id)).head_seq == len(ITEMS), "the log forgot"
    await other.delete()
    assert await other.get_items() == []
    with pytest.raises(contextd_client.errors.NotFoundError):
        await aclient.get_session(session_id)


async def test_limit_and_clear(aclient: contextd_client.aio.Client, session_id: str) -> None:
    session = ContextdSession(session_id, aclient, budget=BUDGET)
    await session.add_items(ITEMS)
    whole = await session.get_items()
    assert await session.get_items(limit=2) == whole[-2:]
    assert await session.get_items(limit=0) == []
    await session.clear_session()
    assert await session.get_items() == []
    assert (await aclient.get_session(session_id)).head_seq == len(ITEMS)
