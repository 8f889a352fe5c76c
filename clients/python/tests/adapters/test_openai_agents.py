"""The Agents SDK's own runner over a session of contextd."""

from __future__ import annotations

import json
import uuid
from collections.abc import AsyncIterator
from typing import Any

import httpx
import page
import pytest
from conftest import Daemon
from conversation import BUDGET as TIGHT
from conversation import POLICY

import contextd_client.aio
from contextd_client import Budget, errors
from contextd_client.v1.tokens_pb2 import ExplainCallRequest

agents = pytest.importorskip("agents")
from agents.items import ModelResponse  # noqa: E402
from agents.memory import Session  # noqa: E402
from agents.models.interface import Model  # noqa: E402
from agents.usage import Usage  # noqa: E402
from openai import AsyncOpenAI  # noqa: E402
from openai.types.responses import (  # noqa: E402
    Response,
    ResponseCompletedEvent,
    ResponseFunctionToolCall,
    ResponseIncompleteEvent,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
    ResponseUsage,
)
from openai.types.responses.response_usage import InputTokensDetails  # noqa: E402

from contextd_client.openai_agents import ContextdModel, ContextdSession  # noqa: E402

BUDGET = Budget(max_tokens=20_000, tokenizer="o200k_base")
USAGE = Usage(
    requests=1,
    input_tokens=100,
    input_tokens_details=InputTokensDetails(cached_tokens=60, cache_write_tokens=0),
    output_tokens=5,
    total_tokens=105,
)


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
        return ModelResponse(output=output, usage=USAGE, response_id=None)

    cut = False
    """Whether answers that stream end at the limit of tokens."""

    async def stream_response(self, *args: Any, **kwargs: Any) -> AsyncIterator[Any]:
        made = await self.get_response(*args, **kwargs)
        end = "incomplete" if self.cut else "completed"
        yield (ResponseIncompleteEvent if self.cut else ResponseCompletedEvent)(
            type=f"response.{end}",
            sequence_number=0,
            response=Response(
                id="resp_1", created_at=0, model="gpt-5", object="response", output=made.output,
                parallel_tool_calls=True, tool_choice="auto", tools=[], status=end,
                usage=ResponseUsage(
                    input_tokens=100, output_tokens=5, total_tokens=105,
                    input_tokens_details={"cached_tokens": 60, "cache_write_tokens": 0},
                    output_tokens_details={"reasoning_tokens": 0},
                ),
            ),
        )  # fmt: skip


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
    await session.record(second)
    await counted(aclient, session_id, calls=1)


async def counted(client: contextd_client.aio.Client, session_id: str, calls: int) -> None:
    """Check the number of the newest recorded call."""
    explained = await client.stub.ExplainCall(ExplainCallRequest(session_id=session_id))
    call = explained.call
    assert (call.number, call.input_tokens, call.cache_read_tokens, call.output_tokens) == (
        calls, 100, 60, 5
    )  # fmt: skip


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


CONFIG = agents.RunConfig(tracing_disabled=True)


class Reading(Scripted):
    """A model that reads one file after another, two in every third turn, then answers."""

    def __init__(self, rounds: int) -> None:
        super().__init__()
        self._rounds = rounds

    async def get_response(self, *args: Any, **kwargs: Any) -> ModelResponse:
        made = await super().get_response(*args, **kwargs)
        number = len(self.given)
        if number < self._rounds:
            calls: list[Any] = [
                ResponseFunctionToolCall(
                    type="function_call", call_id=uuid.uuid4().hex, name="read",
                    arguments=json.dumps({"path": f"file{number}.{i}"}),
                )
                for i in range(2 if number % 3 == 0 else 1)
            ]  # fmt: skip
            made.output = calls
        else:
            text = ResponseOutputText(type="output_text", text="Done.", annotations=[])
            made.output = [
                ResponseOutputMessage(
                    id=f"msg_{number}", type="message", role="assistant", status="completed",
                    content=[text],
                )
            ]  # fmt: skip
        return made


@agents.function_tool
def read(path: str) -> str:
    """Read a file."""
    return "\n".join(f"{path}:{i}: func f{i}()" for i in range(40))


def reader(model: Model) -> Any:
    return agents.Agent(name="reader", instructions="Be brief.", model=model, tools=[read])


def paired(items: list[Any]) -> None:
    """Check that each call has a result after its turn, and each result a call."""
    waiting: set[str] = set()
    for item in items:
        if item.get("type") == "function_call":
            waiting.add(item["call_id"])
        elif item.get("type") == "function_call_output":
            waiting.remove(item["call_id"])
        else:
            assert not waiting
    assert not waiting


@pytest.mark.parametrize("streamed", [False, True])
async def test_model_in_a_long_run(
    aclient: contextd_client.aio.Client, session_id: str, streamed: bool
) -> None:
    rounds = 12
    script = Reading(rounds)
    model = ContextdModel(script, aclient, session_id, budget=TIGHT, policy=POLICY)
    if streamed:
        result = agents.Runner.run_streamed(
            reader(model), "What does it do?", run_config=CONFIG, max_turns=30
        )
        async for _ in result.stream_events():
            pass
    else:
        result = await agents.Runner.run(
            reader(model), "What does it do?", run_config=CONFIG, max_turns=30
        )
    assert result.final_output == "Done."
    shown, whole = len(str(script.given[-1])), len(str(result.to_input_list()))
    assert shown < whole * 2 / 3, f"{shown} of {whole} characters: nothing was reduced"
    for given in script.given:
        paired(given)
    await counted(aclient, session_id, calls=rounds)


async def test_answer_that_was_cut_off_is_counted(
    aclient: contextd_client.aio.Client, session_id: str
) -> None:
    script = Scripted()
    script.cut = True
    model = ContextdModel(script, aclient, session_id, budget=BUDGET)
    settings: list[Any] = [agents.ModelSettings(), [], None, [], agents.ModelTracing.DISABLED]
    async for _ in model.stream_response("Be brief.", "How is it?", *settings):
        pass
    await counted(aclient, session_id, calls=1)


async def test_model_goes_on_in_another_process(
    aclient: contextd_client.aio.Client, session_id: str, tmp_path: Any
) -> None:
    """With the SDK's session in a file nothing is appended twice, and a rewind is detected."""
    for number in range(3):
        session = agents.SQLiteSession("s", tmp_path / "sessions.db")
        model = ContextdModel(Reading(2), aclient, session_id, budget=BUDGET)
        await agents.Runner.run(
            reader(model), f"Question {number}", session=session, run_config=CONFIG
        )
    # Of each run: question, call, result and, except for the last run, the answer.
    assert (await aclient.get_session(session_id)).head_seq == 3 * 4 - 1
    await session.pop_item()
    await session.pop_item()
    question: list[Any] = [*await session.get_items(), {"role": "user", "content": "No, this."}]
    with pytest.raises(errors.HistoryDivergedError):
        await agents.Runner.run(reader(model), question, run_config=CONFIG)
    script = Reading(1)
    forking = ContextdModel(script, aclient, session_id, budget=BUDGET, diverged="fork")
    await agents.Runner.run(reader(forking), question, run_config=CONFIG)
    assert [i["content"][0]["text"] for i in script.given[0] if i.get("role") == "user"] == [
        "Question 0", "Question 1", "Question 2", "No, this."
    ]  # fmt: skip
    paired(script.given[0])
    with pytest.raises(ValueError, match="provider keeps"):
        await agents.Runner.run(
            reader(model), "And now?", run_config=CONFIG, previous_response_id="resp_1"
        )


class DeepSeek:
    """A server that refuses a message of the assistant without its reasoning."""

    def __init__(self) -> None:
        self.asked: list[list[str]] = []

    def answer(self, request: httpx.Request) -> httpx.Response:
        said = [m for m in json.loads(request.content)["messages"] if m["role"] == "assistant"]
        if not all(m.get("reasoning_content") for m in said):
            error = {"message": "The `reasoning_content` must be passed back to the API."}
            return httpx.Response(400, json={"error": error})
        self.asked.append([m["reasoning_content"] for m in said])
        number = len(self.asked)
        message: dict[str, Any] = {
            "role": "assistant",
            "content": "It reads." if number % 2 == 0 else None,
            "reasoning_content": f"Thought {number}.",
        }
        if number % 2:
            function = {"name": "read", "arguments": f'{{"path": "{number}.py"}}'}
            message["tool_calls"] = [
                {"id": f"call_{number}", "type": "function", "function": function}
            ]
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        body = {"id": f"r{number}", "object": "chat.completion", "created": 1, "model": "deepseek"}
        return httpx.Response(200, json={**body, "choices": [choice]})


@pytest.mark.parametrize("with_session", [False, True])
async def test_reasoning_is_returned(
    aclient: contextd_client.aio.Client, session_id: str, with_session: bool
) -> None:
    pytest.importorskip("agents.models.reasoning_content_replay")
    server = DeepSeek()
    http = httpx.AsyncClient(transport=httpx.MockTransport(server.answer))
    openai = AsyncOpenAI(api_key="none", base_url="http://deepseek.test", http_client=http)
    model: Model = agents.OpenAIChatCompletionsModel("deepseek-v4-pro", openai)
    budget = Budget(max_tokens=20_000, model="deepseek-v4-pro")
    session = agents.SQLiteSession(session_id)
    if with_session:
        session = ContextdSession(session_id, aclient, budget=budget)
    else:
        model = ContextdModel(model, aclient, session_id, budget=budget)
    for question in ("What does it do?", "And now?"):
        await agents.Runner.run(reader(model), question, session=session, run_config=CONFIG)
    thoughts = [f"Thought {n}." for n in range(1, 4)]
    assert server.asked == [thoughts[:n] for n in range(4)]


async def test_two_models(
    aclient: contextd_client.aio.Client, session_id: str, tmp_path: Any
) -> None:
    """One conversation with two models: nothing is appended twice, and it does not diverge."""
    scripts = {name: Reading(1) for name in ("gpt-5", "o3")}
    models = {
        name: ContextdModel(script, aclient, session_id, budget=BUDGET, model=name)
        for name, script in scripts.items()
    }
    session = agents.SQLiteSession("s", tmp_path / "sessions.db")
    for number, name in enumerate(("gpt-5", "o3", "gpt-5", "gpt-5", "o3")):
        await agents.Runner.run(
            reader(models[name]), f"Question {number}", session=session, run_config=CONFIG
        )
    said = [i["content"][0]["text"] for i in scripts["o3"].given[-1] if i["role"] == "user"]
    assert said == [f"Question {n}" for n in range(5)]
    assert (await aclient.get_session(session_id)).head_seq == 9


@pytest.mark.parametrize("how", ["restarted", "replaced"])
async def test_model_with_a_lost_log(daemon: Daemon, session_id: str, how: str) -> None:
    async with contextd_client.aio.Client(daemon.address) as client:
        script = Reading(2)
        model = ContextdModel(script, client, session_id, budget=BUDGET)
        first = await agents.Runner.run(reader(model), "What does it do?", run_config=CONFIG)
        items: list[Any] = [*first.to_input_list(), {"role": "user", "content": "And now?"}]
        daemon.restart()
        if how == "replaced":
            async with contextd_client.aio.Client(daemon.address) as other:
                await other.append(session_id, contextd_client.events.user("Mine."))
            with pytest.raises(errors.LogLostError):
                await agents.Runner.run(reader(model), items, run_config=CONFIG)
            return
        await agents.Runner.run(reader(model), items, run_config=CONFIG)
        assert [i["content"][0]["text"] for i in script.given[-1] if i.get("role") == "user"] == [
            "What does it do?", "And now?"
        ]  # fmt: skip
        paired(script.given[-1])


async def test_model_with_bad_calls(aclient: contextd_client.aio.Client, session_id: str) -> None:
    """Malformed arguments are kept, a late result is matched, and a missing one is filled in."""
    items: list[Any] = [
        {"role": "user", "content": "Go."},
        {"type": "function_call", "call_id": "c1", "name": "read", "arguments": '{"path": "a'},
        {"type": "function_call", "call_id": "c2", "name": "read", "arguments": "{}"},
        {"type": "function_call", "call_id": "c3", "name": "read", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "no JSON"},
        {"role": "user", "content": "Are you there?"},
    ]
    script = Reading(1)
    model = ContextdModel(script, aclient, session_id, budget=BUDGET)
    late = {"type": "function_call_output", "call_id": "c3", "output": "late"}
    for more in (items, [*items, late]):
        await agents.Runner.run(reader(model), more, run_config=CONFIG)
    for given in script.given:
        paired(given)
        calls = [i["arguments"] for i in given if i.get("type") == "function_call"]
        assert calls == ['{"path": "a', "{}", "{}"]
    outputs = [i["output"] for i in script.given[1] if i.get("type") == "function_call_output"]
    assert outputs[0] == "no JSON"
    assert "no result" in str(outputs[1])
    assert outputs[2] == "late"


@pytest.mark.parametrize("kind", ["shell_call", "computer_call_output", "mcp_approval_request"])
async def test_model_with_an_item_that_is_not_carried(
    aclient: contextd_client.aio.Client, session_id: str, kind: str
) -> None:
    """Refused: a context could only describe it, and the model would think its tool broken."""
    script = Reading(1)
    model = ContextdModel(script, aclient, session_id, budget=BUDGET)
    items: list[Any] = [{"role": "user", "content": "Go."}, {"type": kind, "call_id": "c1"}]
    with pytest.raises(ValueError, match=f"item 1: a context cannot hold a {kind}"):
        await agents.Runner.run(reader(model), items, run_config=CONFIG)
    assert not script.given


async def test_page(address: str, session_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTD_ADDR", address)
    script = Reading(2)
    given = {'OpenAIResponsesModel("gpt-5", AsyncOpenAI())': "MODEL", "my-session": session_id}
    defined = page.run("openai-agents", given, MODEL=script, tools=[read])
    assert (await defined["ask"]("Why does make fail?")).final_output == "Done."
    assert (await defined["ask"]("And now?")).final_output == "Done."
    assert (await defined["client"].get_session(session_id)).head_seq == 5
    await defined["client"].close()
