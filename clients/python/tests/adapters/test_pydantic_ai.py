"""Pydantic AI's own agent over a log of contextd."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import page
import pytest
from conftest import Daemon
from conversation import BUDGET, POLICY

import contextd_client.aio
from contextd_client import Budget, errors
from contextd_client.v1.tokens_pb2 import ExplainCallRequest

pytest.importorskip("pydantic_ai")
from pydantic_ai import Agent, CallDeferred, DeferredToolRequests, DeferredToolResults
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RetryPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from contextd_client._read.pydantic_ai import History
from contextd_client.pydantic_ai import ContextdModel

ROUNDS = 12
ROOMY = Budget(max_tokens=20_000, tokenizer="o200k_base")


class Scripted:
    """Reads one file after another, two in every third turn, then answers."""

    def __init__(self, rounds: int = ROUNDS) -> None:
        self.given: list[list[ModelMessage]] = []
        self._rounds = rounds

    def calls(self, messages: list[ModelMessage]) -> list[ToolCallPart]:
        self.given.append(messages)
        number = len(self.given)
        paths = [f"file{number}.{i}" for i in range(2 if number % 3 == 0 else 1)]
        calls = [ToolCallPart("read", {"path": p}) for p in paths]  # with ids of the framework's
        return calls if number < self._rounds else []

    def model(self) -> FunctionModel:
        def function(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
            calls = self.calls(messages)
            return ModelResponse(parts=[TextPart(f"Step {len(self.given)}."), *calls])

        async def stream(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
            calls = self.calls(messages)
            yield f"Step {len(self.given)}."
            for place, call in enumerate(calls, 1):
                args = json.dumps(call.args)
                named = DeltaToolCall(call.tool_name, args[:5], tool_call_id=call.tool_call_id)
                yield {place: named}
                yield {place: DeltaToolCall(json_args=args[5:])}

        return FunctionModel(function, stream_function=stream, model_name="scripted")


def reader() -> Agent[None, str]:
    agent = Agent(instructions="Be brief.", system_prompt="You repair builds.")

    @agent.tool_plain
    def read(path: str) -> str:
        """Read a file."""
        return "\n".join(f"{path}:{i}: func f{i}()" for i in range(40))

    return agent


def paired(messages: list[ModelMessage]) -> None:
    """Check that each call has a result in the next request, and each result a call."""
    waiting: set[str] = set()
    for message in messages:
        if isinstance(message, ModelResponse):
            assert not waiting
            waiting = {p.tool_call_id for p in message.parts if isinstance(p, ToolCallPart)}
            continue
        for part in message.parts:
            if isinstance(part, ToolReturnPart | RetryPromptPart) and part.tool_name:
                waiting.remove(part.tool_call_id)
    assert not waiting


async def log_of(client: contextd_client.aio.Client, session: str) -> list[Any]:
    return [event async for event in client.read_events(session)]


@pytest.mark.parametrize("streamed", [False, True])
async def test_agent(aclient: contextd_client.aio.Client, session_id: str, streamed: bool) -> None:
    script = Scripted()
    model = ContextdModel(script.model(), aclient, session_id, budget=BUDGET, policy=POLICY)
    seen: list[Any] = []

    async def watch(_: Any, stream: Any) -> None:
        seen.extend([event async for event in stream])

    handler: Any = watch if streamed else None
    result = await reader().run("What does it do?", model=model, event_stream_handler=handler)
    answer, messages = result.output, result.all_messages()
    assert bool(seen) == streamed
    assert answer == f"Step {ROUNDS}."
    last = script.given[-1]
    shown, whole = len(str(last)), len(str(messages))
    assert shown < whole * 2 / 3, f"{shown} of {whole} characters: nothing was reduced"
    assert isinstance(last[-1], ModelRequest)
    assert last[-1].instructions == "Be brief."
    assert [p.content for p in last[0].parts][:2] == ["You repair builds.", "What does it do?"]
    for given in script.given:
        paired(given)
    explained = await aclient.stub.ExplainCall(ExplainCallRequest(session_id=session_id))
    assert explained.call.number == ROUNDS
    assert explained.call.model == "scripted"
    assert explained.call.input_tokens > 0


async def test_ids_with_signatures(aclient: contextd_client.aio.Client, session_id: str) -> None:
    """Ids with Google's signature come back, in results that were cut, too."""

    def function(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        given.append(messages)
        number = len(given)
        if number == ROUNDS:
            return ModelResponse(parts=[TextPart("Done.")])
        call_id = f"call_{number}__thought__c2ln{number}+/="
        return ModelResponse(parts=[ToolCallPart("read", {"path": str(number)}, call_id)])

    given: list[list[ModelMessage]] = []
    wrapped = FunctionModel(function, model_name="scripted")
    model = ContextdModel(wrapped, aclient, session_id, budget=BUDGET, policy=POLICY)
    await reader().run("What does it do?", model=model)
    for messages in given:
        paired(messages)
    calls = [p for m in given[-1] for p in m.parts if isinstance(p, ToolCallPart)]
    assert calls
    assert all("__thought__c2ln" in call.tool_call_id for call in calls)
    for event in await log_of(aclient, session_id):
        blocks = list(event.message.blocks)
        if blocks[-1].HasField("tool_call"):
            number = blocks[-1].tool_call.call_id.removeprefix("call_")
            fields = {"provider_specific_fields": {"thought_signature": f"c2ln{number}+/="}}
            before = blocks[-2].provider
            assert (before.provider, json.loads(before.json)) == ("openai", fields)
    asked: list[ModelMessage] = [ModelRequest([UserPromptPart("Go.")])]
    messages = History(asked).messages(  # of a session whose calls another client appended
        [
            {"role": "assistant", "blocks": [
                {"provider": {"provider": "openai", "json": {
                    "provider_specific_fields": {"thought_signature": "c2ln"}}}},
                {"tool_call": {"call_id": "call_1", "name": "read", "arguments_json": {}}},
            ]},
            {"role": "tool", "blocks": [{"tool_result": {"call_id": "call_1", "content": []}}]},
        ]
    )  # fmt: skip
    assert [p.tool_call_id for m in messages for p in m.parts] == ["call_1__thought__c2ln"] * 2


async def test_goes_on_in_another_process(
    aclient: contextd_client.aio.Client, session_id: str
) -> None:
    """The same history from a database: nothing is appended twice."""
    stored = b"[]"
    for number in range(3):
        script = Scripted(rounds=2)
        model = ContextdModel(script.model(), aclient, session_id, budget=ROOMY)
        history = ModelMessagesTypeAdapter.validate_json(stored)
        result = await reader().run(f"Question {number}", model=model, message_history=history)
        stored = result.all_messages_json()
        # Nothing had to be reduced, so the model gets the same message objects.
        expected = result.all_messages()[:-1]
        assert [m.parts for m in script.given[-1]] == [m.parts for m in expected]
    # The system prompt; of each run question, call, result and, but of the last, the answer.
    assert len(await log_of(aclient, session_id)) == 1 + 3 * 4 - 1


async def test_history_that_was_edited(
    aclient: contextd_client.aio.Client, session_id: str
) -> None:
    first = ContextdModel(Scripted(rounds=2).model(), aclient, session_id, budget=ROOMY)
    history = (await reader().run("What does it do?", model=first)).all_messages()
    model = ContextdModel(Scripted(rounds=1).model(), aclient, session_id, budget=ROOMY)
    await reader().run("And now?", model=model, message_history=history)
    back = history[:1]  # rewound to the question
    with pytest.raises(errors.HistoryDivergedError) as diverged:
        await reader().run("No, this.", model=model, message_history=back)
    assert (diverged.value.session_id, diverged.value.index, diverged.value.seq) == (
        session_id, 2, 2
    )  # fmt: skip
    for _ in range(2):  # the second process finds the fork
        script = Scripted(rounds=1)
        forking = ContextdModel(script.model(), aclient, session_id, budget=ROOMY, diverged="fork")
        await reader().run("No, this.", model=forking, message_history=back)
        said = [p.content for m in script.given[0] for p in m.parts]
        assert said == ["You repair builds.", "What does it do?", "No, this."]
    assert len(await log_of(aclient, f"{session_id}/v2")) == 3
    with pytest.raises(errors.NotFoundError):
        await aclient.get_session(f"{session_id}/v3")


@pytest.mark.parametrize("how", ["restarted", "replaced"])
async def test_lost_log(daemon: Daemon, session_id: str, how: str) -> None:
    async with contextd_client.aio.Client(daemon.address) as client:
        script = Scripted(rounds=3)
        model = ContextdModel(script.model(), client, session_id, budget=ROOMY)
        history = (await reader().run("What does it do?", model=model)).all_messages()
        daemon.restart()
        if how == "replaced":
            async with contextd_client.aio.Client(daemon.address) as other:
                await other.append(session_id, contextd_client.events.user("Mine."))
            with pytest.raises(errors.LogLostError):
                await reader().run("And now?", model=model, message_history=history)
            return
        await reader().run("And now?", model=model, message_history=history)
        assert len(script.given[-1]) == len(history) + 1
        assert len(await log_of(client, session_id)) == 8


MALFORMED = ['{"path": "a', "plain words", "[1, 2]", '"x"', "null", '{"path": 1e999}', "\ufeff{}"]


async def test_malformed_arguments(aclient: contextd_client.aio.Client, session_id: str) -> None:
    """Invalid arguments are kept; the agent asks for another try, and the run continues."""
    given: list[list[ModelMessage]] = []

    def function(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        given.append(messages)
        if len(given) <= len(MALFORMED):
            args = MALFORMED[len(given) - 1]
            call = ToolCallPart("read", args, tool_call_id=f"call_{len(given)}")
            return ModelResponse(parts=[call])
        return ModelResponse(parts=[TextPart("Done.")])

    agent = Agent(retries=20)

    @agent.tool_plain
    def read(path: str) -> str:
        """Read a file."""
        return path

    model = ContextdModel(FunctionModel(function), aclient, session_id, budget=ROOMY)
    result = await agent.run("Read.", model=model)
    assert result.output == "Done."
    calls = [p.args for m in given[-1] for p in m.parts if isinstance(p, ToolCallPart)]
    assert calls == MALFORMED
    paired(given[-1])
    logged = [
        b.tool_call.arguments_json.decode()
        for e in await log_of(aclient, session_id) for b in e.message.blocks
        if b.HasField("tool_call")
    ]  # fmt: skip
    assert logged == MALFORMED
    results = [e.message.blocks[0].tool_result for e in await log_of(aclient, session_id)]
    assert all(r.is_error for r in results if r.call_id)


async def test_late_result(aclient: contextd_client.aio.Client, session_id: str) -> None:
    """Of two parallel calls one is answered in a later run."""
    given: list[list[ModelMessage]] = []

    def function(messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        given.append(messages)
        if len(given) > 1:
            return ModelResponse(parts=[TextPart("Done.")])
        calls = [ToolCallPart(n, {}, tool_call_id=n) for n in ("slow", "quick")]
        return ModelResponse(parts=calls)

    agent = Agent(output_type=[str, DeferredToolRequests])

    @agent.tool_plain
    def slow() -> str:
        """Answered by somebody else."""
        raise CallDeferred

    @agent.tool_plain
    def quick() -> str:
        """Answered at once."""
        return "quick answer"

    model = ContextdModel(FunctionModel(function), aclient, session_id, budget=ROOMY)
    waiting = await agent.run("Go.", model=model)
    assert isinstance(waiting.output, DeferredToolRequests)
    results = DeferredToolResults(calls={"slow": "slow answer"})
    await agent.run(
        model=model, message_history=waiting.all_messages(), deferred_tool_results=results
    )
    paired(given[1])
    answers = {p.tool_call_id: p.content for m in given[1] for p in m.parts
               if isinstance(p, ToolReturnPart)}  # fmt: skip
    assert answers == {"slow": "slow answer", "quick": "quick answer"}


async def test_missing_result(aclient: contextd_client.aio.Client, session_id: str) -> None:
    """A process died while a tool ran, and the user continues: contextd fills in a result."""
    call = ToolCallPart("read", {"path": "a"}, tool_call_id="c1")
    history = [
        ModelRequest(parts=[UserPromptPart("Go.")]),
        ModelResponse(parts=[call]),
        ModelRequest(parts=[UserPromptPart("Are you there?")]),
    ]
    script = Scripted(rounds=1)
    model = ContextdModel(script.model(), aclient, session_id, budget=ROOMY)
    await model.request(history, None, ModelRequestParameters())
    paired(script.given[0])
    result, question = script.given[0][2].parts
    assert isinstance(result, ToolReturnPart)
    assert "no result" in result.content
    assert question.content == "Are you there?"


def test_what_is_shown_unchanged_is_the_same_part() -> None:
    """Reasoning with its seal, details of the provider, files, and parts unknown to the log."""
    said = ModelResponse(
        parts=[
            ThinkingPart("hm", id="rs_1", signature="gAAA", provider_name="openai"),
            TextPart("I look.", id="msg_1"),
            ToolCallPart("f", '{"a": 1.0}', tool_call_id="c1"),
        ],
        model_name="gpt-5",
        provider_response_id="resp_1",
    )
    asked = ModelRequest(
        parts=[
            UserPromptPart(["See.", BinaryContent(b"hi", media_type="image/png")]),
        ]
    )
    newest = ModelRequest(parts=[ToolReturnPart("f", {"found": [1]}, tool_call_id="c1")])
    history = History([asked, said, newest])
    thinking, _, call = history.events[1].message.blocks
    assert thinking.thinking.encrypted_content == "gAAA"
    assert call.tool_call.arguments_json == b'{"a": 1.0}'
    shown: list[Any] = [
        {"role": "user", "blocks": [
            {"text": {"text": "See."}}, {"media": {"mime_type": "image/png", "data": "aGk="}},
        ]},
        {"role": "assistant", "blocks": [
            {"thinking": {"text": "hm", "signature": "rs_1", "encrypted_content": "gAAA"}},
            {"text": {"text": "I look."}},
            {"tool_call": {"call_id": "c1", "name": "f", "arguments_json": {"a": 1.0}}},
        ]},
        {"role": "tool", "blocks": [{"tool_result": {
            "call_id": "c1", "tool_name": "f", "content": [{"text": {"text": '{"found":[1]}'}}],
        }}]},
    ]  # fmt: skip
    assert history.messages(shown) == [asked, said, newest]
    # Without the reasoning, nothing names the items that the provider has stored with it.
    del shown[1]["blocks"][0]
    changed = history.messages(shown)[1]
    assert isinstance(changed, ModelResponse)
    assert [getattr(p, "id", None) for p in changed.parts] == [None, None]
    assert changed.provider_response_id == "resp_1"


def test_blank_text_is_not_shown() -> None:
    """Claude writes it before calls, and refuses to read it."""
    call = ToolCallPart("f", "{}", tool_call_id="c1")
    blocks = [
        {"text": {"text": "\n\n"}},
        {"tool_call": {"call_id": "c1", "name": "f", "arguments_json": {}}},
    ]
    for item, shown in (None, [call]), ("msg_1", [TextPart("\n\n", id="msg_1"), call]):
        said = ModelResponse(parts=[TextPart("\n\n", id=item), call])
        newest = ModelRequest(parts=[ToolReturnPart("f", "", tool_call_id="c1")])
        history = History([ModelRequest(parts=[UserPromptPart("Go.")]), said, newest])
        (response,) = history.messages([{"role": "assistant", "blocks": blocks}])[:1]
        assert list(response.parts) == shown


async def test_page(address: str, session_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTD_ADDR", address)
    script = Scripted(rounds=1)
    given = {'"openai:gpt-5"': "MODEL", "my-session": session_id}
    defined = page.run("pydantic-ai", given, MODEL=script.model())
    history = await defined["ask"]("Why does make fail?", [])
    await defined["ask"]("And now?", history)
    assert len(await log_of(defined["client"], session_id)) == 3
    await defined["client"].close()
