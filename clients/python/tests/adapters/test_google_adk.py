"""ADK's own runner over logs of contextd."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import page
import pytest
from conftest import Daemon
from conversation import BUDGET, POLICY

import contextd_client.aio
from contextd_client import Budget, errors, message_events
from contextd_client._conversation import Conversation
from contextd_client.v1.tokens_pb2 import ExplainCallRequest, ListModelCallsRequest

pytest.importorskip("google.adk")
from google.adk.agents import Agent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.adk.runners import Runner
from google.adk.sessions import InMemorySessionService
from google.adk.tools.long_running_tool import LongRunningFunctionTool
from google.genai import types

from contextd_client.google_adk import ContextdPlugin, _content, _identify

ROUNDS = 12
ROOMY = Budget(max_tokens=20_000, tokenizer="o200k_base")
USAGE = types.GenerateContentResponseUsageMetadata(
    prompt_token_count=100, cached_content_token_count=60, candidates_token_count=5
)


class Scripted(BaseLlm):
    """Reads one file after another, two in every third turn, then answers."""

    model: str = "scripted"
    rounds: int = ROUNDS
    tool: str = "read"
    given: list[list[types.Content]] = []  # noqa: RUF012

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncIterator[LlmResponse]:
        self.given.append(llm_request.contents)
        number = len(self.given)
        text = types.Part(text=f"Step {number}.")
        calls = [
            types.Part(function_call=types.FunctionCall(name=self.tool, args={"path": f"f{i}"}))
            for i in range(2 if number % 3 == 0 else 1)
        ]
        parts = [text, *calls] if number < self.rounds else [text]
        if stream:
            yield LlmResponse(content=types.Content(role="model", parts=[text]), partial=True)
        yield LlmResponse(
            content=types.Content(role="model", parts=parts),
            usage_metadata=USAGE,
            model_version="scripted-1",
            finish_reason=types.FinishReason.STOP,
        )


def read(path: str) -> str:
    """Read a file."""
    return "\n".join(f"{path}:{i}: func f{i}()" for i in range(40))


def paired(contents: list[types.Content]) -> None:
    """Check that each call of a turn has one result directly after the turn."""
    waiting: list[str] = []
    for content in contents:
        parts = content.parts or []
        results = [p.function_response.name for p in parts if p.function_response]
        assert results == waiting
        waiting = [p.function_call.name for p in parts if p.function_call]  # type: ignore[misc]
    assert not waiting


class Talk:
    """One session of ADK; a Talk of the same service is another process."""

    def __init__(self, model: BaseLlm, plugin: ContextdPlugin, service: Any = None) -> None:
        tool: Any = LongRunningFunctionTool(read) if model.tool == "slow" else read  # type: ignore[attr-defined]
        agent = Agent(name="reader", model=model, instruction="Be brief.", tools=[tool])
        self.service = service or InMemorySessionService()
        self.runner = Runner(
            app_name="app", agent=agent, plugins=[plugin], session_service=self.service
        )

    async def say(self, name: str, *parts: types.Part | str, stream: bool = False) -> list[Any]:
        given = {"app_name": "app", "user_id": "u", "session_id": name}
        if await self.service.get_session(**given) is None:
            await self.service.create_session(**given)
        said = [types.Part(text=p) if isinstance(p, str) else p for p in parts]
        mode = StreamingMode.SSE if stream else StreamingMode.NONE
        return [
            event
            async for event in self.runner.run_async(
                user_id="u",
                session_id=name,
                new_message=types.Content(role="user", parts=said),
                run_config=RunConfig(streaming_mode=mode),
            )
        ]


@pytest.mark.parametrize("stream", [False, True])
async def test_agent(aclient: contextd_client.aio.Client, session_id: str, stream: bool) -> None:
    model = Scripted(given=[])
    talk = Talk(model, ContextdPlugin(aclient, budget=BUDGET, policy=POLICY))
    events = await talk.say(session_id, "What does it do?", stream=stream)
    assert events[-1].content.parts[0].text == f"Step {ROUNDS}."
    whole = sum(len(str(e.content)) for e in events if not e.partial)
    shown = len(str(model.given[-1]))
    assert shown < whole * 2 / 3, f"{shown} of {whole} characters: nothing was reduced"
    for given in model.given:
        paired(given)
    call = (
        await aclient.stub.ExplainCall(ExplainCallRequest(session_id=f"{session_id}/reader"))
    ).call
    assert (call.number, call.model, call.input_tokens, call.cache_read_tokens) == (
        ROUNDS, "scripted-1", 100, 60
    )  # fmt: skip


async def test_goes_on_in_another_process(
    aclient: contextd_client.aio.Client, session_id: str
) -> None:
    service = InMemorySessionService()
    for number in range(3):
        model = Scripted(given=[], rounds=2)
        plugin = ContextdPlugin(aclient, budget=ROOMY, diverged="raise")
        await Talk(model, plugin, service).say(session_id, f"Question {number}")
        texts = [
            p.text for c in model.given[-1] for p in c.parts or [] if p.text and c.role == "user"
        ]
        assert texts == [f"Question {n}" for n in range(number + 1)]
    # Of each run: question, call, result and, except for the last run, the answer.
    assert (await aclient.get_session(f"{session_id}/reader")).head_seq == 3 * 4 - 1


@pytest.mark.parametrize("how", ["restarted", "replaced"])
async def test_lost_log(daemon: Daemon, session_id: str, how: str) -> None:
    async with contextd_client.aio.Client(daemon.address) as client:
        model = Scripted(given=[], rounds=2)
        talk = Talk(model, ContextdPlugin(client, budget=ROOMY))
        await talk.say(session_id, "What does it do?")
        daemon.restart()
        if how == "replaced":
            async with contextd_client.aio.Client(daemon.address) as other:
                await other.append(f"{session_id}/reader", contextd_client.events.user("Mine."))
            with pytest.raises(RuntimeError) as refused:  # as ADK says of all errors of plugins
                await talk.say(session_id, "And now?")
            assert isinstance(refused.value.__cause__, errors.LogLostError)
            return
        await talk.say(session_id, "And now?")
        texts = [
            p.text for c in model.given[-1] for p in c.parts or [] if p.text and c.role == "user"
        ]
        assert texts == ["What does it do?", "And now?"]
        paired(model.given[-1])


@pytest.mark.parametrize("diverged", ["fork", "raise"])
async def test_late_result(
    aclient: contextd_client.aio.Client, session_id: str, diverged: Any
) -> None:
    """A long-running tool's final result replaces its first one."""
    model = Scripted(given=[], rounds=2)
    talk = Talk(model, ContextdPlugin(aclient, budget=ROOMY, diverged=diverged))
    agent: Any = talk.runner.agent

    def slow(path: str) -> dict[str, str]:
        """Ask somebody."""
        return {"status": "pending"}

    agent.tools = [LongRunningFunctionTool(slow)]
    model.tool = "slow"
    events = await talk.say(session_id, "Go.")
    (call,) = (c for e in events for c in e.get_function_calls())
    await talk.say(session_id, "Are you there?")
    late = types.FunctionResponse(id=call.id, name="slow", response={"status": "done"})
    if diverged == "raise":
        with pytest.raises(RuntimeError) as refused:  # as ADK says of all errors of plugins
            await talk.say(session_id, types.Part(function_response=late))
        assert isinstance(refused.value.__cause__, errors.HistoryDivergedError)
        return
    await talk.say(session_id, types.Part(function_response=late))
    paired(model.given[-1])
    assert "done" in str(model.given[-1])
    assert "pending" not in str(model.given[-1])
    assert (await aclient.get_session(f"{session_id}/reader/v2")).head_seq >= 3


async def test_two_runs_at_once(aclient: contextd_client.aio.Client, session_id: str) -> None:
    """The call of each is recorded with its own context."""
    both = asyncio.Event()

    class Waits(Scripted):
        async def generate_content_async(
            self, llm_request: Any, stream: bool = False
        ) -> AsyncIterator[LlmResponse]:
            self.given.append(llm_request.contents)
            size = len(str(llm_request.contents))
            if len(self.given) == 2:
                both.set()
            await both.wait()
            yield LlmResponse(
                content=types.Content(role="model", parts=[types.Part(text="Yes.")]),
                usage_metadata=types.GenerateContentResponseUsageMetadata(prompt_token_count=size),
            )

    model = Waits(given=[])
    talk = Talk(model, ContextdPlugin(aclient, budget=ROOMY))
    given = {"app_name": "app", "user_id": "u", "session_id": session_id}
    await talk.service.create_session(**given)
    await asyncio.gather(talk.say(session_id, "Short?"), talk.say(session_id, "And longer?"))
    calls = [
        (session.session_id, call.projection_id, call.input_tokens)
        async for session in aclient.list_sessions()
        if session.session_id.startswith(session_id)
        for call in (
            await aclient.stub.ListModelCalls(ListModelCallsRequest(session_id=session.session_id))
        ).calls
    ]
    assert len({call[:2] for call in calls}) == 2, "a context each"
    assert sorted(call[2] for call in calls) == sorted(len(str(c)) for c in model.given)


async def test_without_history(aclient: contextd_client.aio.Client, session_id: str) -> None:
    model = Scripted(given=[], rounds=1)
    talk = Talk(model, ContextdPlugin(aclient, budget=ROOMY))
    agent: Any = talk.runner.agent
    agent.include_contents = "none"
    await talk.say(session_id, "Go.")
    with pytest.raises(errors.NotFoundError):
        await aclient.get_session(f"{session_id}/reader")


async def test_parallel_calls_without_ids(
    aclient: contextd_client.aio.Client, session_id: str
) -> None:
    """Results are matched to calls by name and order; one is missing, and one has no call."""

    def part(kind: str, name: str, **members: Any) -> dict[str, Any]:
        return {kind: {"name": name, **members}}

    contents: list[Any] = [
        {"role": "user", "parts": [{"text": "Go."}]},
        {"role": "model", "parts": [
            part("functionCall", "f", args={"n": 1}),
            part("functionCall", "g", args={}),
            part("functionCall", "f", args={"n": 2}),
        ]},
        {"role": "user", "parts": [
            part("functionResponse", "f", response={"output": "one"}),
            part("functionResponse", "f", response={"output": "two"}),
            part("functionResponse", "h", response={"output": "of nothing"}),
        ]},
    ]  # fmt: skip
    _identify(contents)
    conversation = Conversation(aclient, session_id, "gemini", budget=ROOMY)
    context = await conversation.context(message_events(contents, "gemini"))
    custom = [e.custom.type async for e in aclient.read_events(session_id) if e.HasField("custom")]
    assert custom == ["orphan_result"]
    shown = [_content(value) for value in context.messages()]
    paired(shown)
    results = [p.function_response for c in shown for p in c.parts or [] if p.function_response]
    assert [r.id for r in results] == [None] * 3
    assert [str(r.response) for r in results][::2] == ["{'output': 'one'}", "{'output': 'two'}"]
    assert "no result" in str(results[1].response)


async def test_page(address: str, session_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTD_ADDR", address)
    given = {'"gemini-2.5-pro", inst': "MODEL, inst", "my-session": session_id}
    defined = page.run("google-adk", given, MODEL=Scripted(given=[]), tools=[read])
    assert (await defined["ask"]("What does it do?")) == f"Step {ROUNDS}."
    head = (await defined["client"].get_session(f"{session_id}/builds")).head_seq
    assert head == 2 * ROUNDS - 1
    await defined["client"].close()
