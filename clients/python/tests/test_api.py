"""The whole API, by both clients."""

from __future__ import annotations

import asyncio
import functools
import inspect
import io
import json
import re
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import conversation
import pytest
from conftest import Daemon

import contextd_client
import contextd_client.aio
from contextd_client import Budget, Credentials, errors, events
from contextd_client.v1.assembly_pb2 import ContextHeader
from contextd_client.v1.compaction_pb2 import SummaryTask
from contextd_client.v1.hooks_pb2 import HookCall, HookReply

BUDGET = Budget(max_tokens=20_000, tokenizer="o200k_base")
KINDS: dict[str, type[Any]] = {
    "sync": contextd_client.Client,
    "asyncio": contextd_client.aio.Client,
}


class Either:
    """Calls the methods of either client."""

    def __init__(self, kind: str, address: str, **options: Any) -> None:
        self._client = KINDS[kind](address, **options)

    def __getattr__(self, name: str) -> Callable[..., Any]:
        method = getattr(self._client, name)

        @functools.wraps(method)
        async def call(*given: Any, **named: Any) -> Any:
            if isinstance(self._client, contextd_client.aio.Client):
                result = method(*given, **named)
                if inspect.isasyncgen(result):
                    return [item async for item in result]
                return await result
            result = await asyncio.to_thread(method, *given, **named)
            return await asyncio.to_thread(list, result) if isinstance(result, Iterator) else result

        return call

    async def follow(self, *given: Any, **named: Any) -> AsyncIterator[Any]:
        """Watch, item by item."""
        watched = self._client.watch(*given, **named)
        if inspect.isasyncgen(watched):
            async for item in watched:
                yield item
            return
        while True:
            yield await asyncio.to_thread(next, watched)

    def serve(self, name: str, *callbacks: Callable[..., Any], **named: Any) -> asyncio.Future[Any]:
        """Run a method that calls back until the client is closed."""
        method = getattr(self._client, name)
        if isinstance(self._client, contextd_client.Client):
            return asyncio.ensure_future(asyncio.to_thread(method, *callbacks, **named))

        def awaited(callback: Any) -> Any:
            async def call(argument: Any) -> Any:
                return await asyncio.to_thread(callback, argument)

            return call if callable(callback) else callback

        wrapped = {name: awaited(value) for name, value in named.items()}
        return asyncio.ensure_future(method(*map(awaited, callbacks), **wrapped))


@pytest.fixture(params=list(KINDS))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def either(kind: str, address: str) -> AsyncIterator[Either]:
    made = Either(kind, address)
    yield made
    await made.close()


async def fill(client: Either, session_id: str, turns: int) -> None:
    """Append turns with large results."""
    for turn in range(turns):
        call = events.tool_call(f"call-{session_id}-{turn}", "read", {"path": f"file{turn}.go"})
        result = events.tool_result(f"call-{session_id}-{turn}", "a line of result\n" * 200)
        first = [events.system("You repair builds.")] if turn == 0 else []
        asked = events.user(f"Why does make fail, {turn}?")
        await client.append(session_id, *first, asked, events.assistant(call), result)


async def test_sessions(either: Either, session_id: str) -> None:
    for i in range(3):
        await either.create_session(f"{session_id}/{i}", labels={"test": session_id})
    await either.create_session(f"{session_id}/other")
    ids = [s.session_id for s in await either.list_sessions(labels={"test": session_id})]
    assert ids == [f"{session_id}/{i}" for i in range(3)]
    assert f"{session_id}/other" in [s.session_id for s in await either.list_sessions()]


async def test_lists_longer_than_a_page(either: Either, session_id: str) -> None:
    labels = {"long": session_id}
    made = [f"{session_id}/{i:03}" for i in range(101)]
    await asyncio.gather(*(either.create_session(name, labels=labels) for name in made))
    assert [s.session_id for s in await either.list_sessions(labels=labels)] == made
    await either.append(made[0], events.user("go"))
    context = await either.assemble(made[0], "anthropic")
    usage = contextd_client.Usage(input_tokens=9)
    await asyncio.gather(*(either.record_model_call(context, usage=usage) for _ in made))
    assert [c.number for c in await either.list_calls(made[0])] == list(range(1, 102))


async def test_compactions(either: Either, session_id: str) -> None:
    await fill(either, session_id, 6)
    done = await either.compact(session_id, keep_last_turns=1, summary="Six files were read.")
    assert done.outcome == "compacted"
    assert done.tokens_after < done.tokens_before
    (summary,) = await either.list_summaries(session_id)
    assert "Six files were read." in summary.text
    context = await either.assemble(session_id, "anthropic", budget=BUDGET)
    assert b"Six files were read." in b"".join(context.lines)
    undone = await either.undo_compaction(session_id)
    assert list(undone.undone_seqs) == [done.compaction_seq]
    context = await either.assemble(session_id, "anthropic", budget=BUDGET)
    assert b"Six files were read." not in b"".join(context.lines)


async def test_half_a_surrogate_pair(either: Either, session_id: str) -> None:
    """Lone surrogates, which Python makes of invalid UTF-8, may be in texts of models and tools."""
    await fill(either, session_id, 6)
    await either.append(session_id, events.user("It says \udcff."))
    assert await either.count_tokens("It says \udcff.") == await either.count_tokens("It says �.")
    assert (await either.explain(session_id, "says \udcff")).seen
    done = await either.compact(session_id, keep_last_turns=1, summary="Six files \udcff.")
    assert done.summary.text == "Six files �."


async def test_records(either: Either, session_id: str) -> None:
    await fill(either, session_id, 6)
    context = await either.assemble(
        session_id, "anthropic", budget=Budget(max_tokens=2500), projection=True
    )
    usage = contextd_client.Usage(model="m", input_tokens=2000)
    assert await either.record_model_call(context, usage=usage) > 0
    explained = await either.explain(session_id, "file0.go")
    assert explained.call.number == 1
    assert explained.call.projection_id == context.projection_id
    assert explained.sightings
    (call,) = await either.list_calls(session_id)
    assert call.input_tokens == 2000
    (projection,) = await either.list_projections(session_id)
    assert projection.projection_id == context.projection_id
    assert (await either.replay_projection(session_id, context.projection_id)).same
    rendering = await either.render_projection(session_id)
    assert rendering.replay.same
    assert len(rendering.messages()) >= len(context.lines) - 1
    assert b"You repair builds." in rendering.lines[0]
    texts = [await either.recall(session_id, pointer) for pointer in context.pointers]
    assert "a line of result\n" * 200 in texts


TRANSCRIPT = json.dumps(
    [
        {"role": "system", "content": "You repair builds."},
        {"role": "user", "content": "Why does make fail?"},
        {"role": "assistant", "content": "A semicolon is missing."},
    ]
).encode()


async def test_transcripts(either: Either, session_id: str, tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    path.write_bytes(TRANSCRIPT)
    for source in (TRANSCRIPT, path, str(path), io.BytesIO(TRANSCRIPT)):
        imported = await either.import_transcript(session_id, source)
        assert imported.session.head_seq == 3
        assert imported.events == (3 if source is TRANSCRIPT else 0)
    exported = await either.export_transcript(session_id, "pi", harness_session_id="x")
    assert b"A semicolon is missing." in exported.data
    assert exported.report.entries
    converted = await either.convert_transcript(path, "pi", harness_session_id="x")
    assert b"A semicolon is missing." in converted.data
    with pytest.raises(errors.InvalidArgumentError):  # refused while more than a piece is sent
        await either.import_transcript(session_id, TRANSCRIPT * 5000, harness="none")
    with pytest.raises(FileNotFoundError):
        await either.import_transcript(session_id, "no-such-file")
    with pytest.raises(TypeError, match="source"):
        await either.import_transcript(session_id, io.StringIO("text"))


async def test_project_transcript(either: Either, session_id: str) -> None:
    """Events that are not in a log give the same context as events of a log."""
    log = [*conversation.opening(), *(e for n in range(40) for e in conversation.turn(n))]
    await either.append(session_id, *log)
    tools = [{"name": "read_file", "input_schema": {"type": "object"}}]
    given: dict[str, Any] = {
        "budget": conversation.BUDGET,
        "policy": conversation.POLICY,
        "tools": tools,
    }
    context = await either.project_transcript(log, "anthropic", **given)
    same = await either.assemble(session_id, "anthropic", preview=True, **given)
    assert context.lines == same.lines
    assert context.request_kwargs() == same.request_kwargs()
    assert context.header.budget.projected_tokens < context.header.budget.raw_tokens / 2
    with pytest.raises(errors.InvalidArgumentError):
        await either.project_transcript([], "anthropic")
    with pytest.raises(TypeError, match="events"):
        await either.project_transcript(["text"], "anthropic")


async def test_hooks(kind: str, address: str, either: Either, session_id: str) -> None:
    await fill(either, session_id, 6)
    asked: list[HookCall] = []
    told = threading.Event()

    def decide(call: HookCall) -> HookReply | None:
        asked.append(call)
        return HookReply(decision="block", reason="not now") if len(asked) == 1 else None

    runtime = Either(kind, address)
    serving = runtime.serve(
        "run_hooks", pre_compact=decide, post_compact=lambda _: told.set(), session_ids=[session_id]
    )
    vetoed = await either.compact(session_id, strategy="mask", keep_last_turns=1)
    while not asked:  # until the subscription has arrived
        await fill(either, session_id + "x", 1)
        await either.undo_compaction(session_id)
        vetoed = await either.compact(session_id, strategy="mask", keep_last_turns=1)
    assert (vetoed.outcome, "not now" in vetoed.detail) == ("vetoed", True)
    allowed = await either.compact(session_id, strategy="mask", keep_last_turns=1)
    assert allowed.outcome == "compacted"
    assert await asyncio.to_thread(told.wait, 30)
    await runtime.close()
    with pytest.raises((errors.ApiError, asyncio.CancelledError)):
        await serving


async def test_failing_hook(kind: str, address: str, either: Either, session_id: str) -> None:
    await fill(either, session_id, 6)

    def fail(call: HookCall) -> HookReply | None:
        raise LookupError(call.session_id)

    runtime = Either(kind, address)
    serving = runtime.serve("run_hooks", pre_compact=fail, session_ids=[session_id])
    while not serving.done():
        await either.compact(session_id, strategy="mask", keep_last_turns=1)
        await either.undo_compaction(session_id)
    with pytest.raises(LookupError, match=session_id):
        await serving
    await runtime.close()


async def test_written_summaries(kind: str, binary: Path, tmp_path: Path, session_id: str) -> None:
    settings = tmp_path / "contextd.yaml"
    settings.write_text("summarizers: {own: {type: pull}}\ndefault_summarizer: own\n")
    daemon = Daemon(binary, "--config", str(settings))
    client, worker = Either(kind, daemon.address), Either(kind, daemon.address)
    tried: list[str] = []

    def write(task: SummaryTask) -> str:
        tried.append(task.prompt)
        if len(tried) == 1:
            raise LookupError("no model yet")
        return "Six files were read."

    try:
        await fill(client, session_id, 6)
        working = worker.serve("run_summaries", write, worker_id="w")
        outcomes = []
        while len(tried) < 2:
            answer = await client.compact(session_id, strategy="summarize", keep_last_turns=1)
            outcomes.append(answer)
        assert "Six files were read." in outcomes[-1].summary.text
        assert "a line of result" in tried[0]
        await worker.close()
        with pytest.raises((errors.ApiError, asyncio.CancelledError)):
            await working
        await client.close()
    finally:
        daemon.stop()


async def test_watch_goes_on(kind: str, binary: Path, tmp_path: Path, session_id: str) -> None:
    daemon = Daemon(binary, "--store", "disk", "--data-dir", str(tmp_path / "data"))
    client, watcher = Either(kind, daemon.address), Either(kind, daemon.address)
    try:
        await fill(client, session_id, 2)
        await client.assemble(session_id, "anthropic", budget=BUDGET)
        first = contextd_client.LifecycleCursor(session_id=session_id)
        watched = watcher.follow([session_id], after=[first])
        numbers = [(await anext(watched)).number]
        daemon.restart()
        await fill(client, session_id, 1)
        await client.assemble(session_id, "anthropic", budget=BUDGET)
        while len(numbers) < 2:
            numbers.append((await anext(watched)).number)
        assert numbers == [1, 2]
        await client.delete_session(session_id)
        await fill(client, session_id, 1)  # another with its id
        daemon.restart()
        with pytest.raises(errors.LogLostError):
            await anext(watched)
        await watcher.close()
        await client.close()
    finally:
        daemon.stop()


async def test_tools_take_room(either: Either, session_id: str) -> None:
    await fill(either, session_id, 1)
    schema = {"name": "read", "description": "Reads a file.", "input_schema": {"type": "object"}}
    counted = await either.count_tokens(
        tokenizer="o200k_base", tools_json=json.dumps([schema]).encode(), format="anthropic"
    )
    assert counted > 10
    budget = Budget(max_tokens=20_000, tokenizer="o200k_base", overhead_tokens=7)
    for _ in range(2):
        context = await either.assemble(session_id, "anthropic", budget=budget, tools=[schema])
        plain = await either.assemble(session_id, "anthropic", budget=budget)
        room = [c.header.budget.target_tokens for c in (plain, context)]
        assert 0 < room[0] - room[1] <= counted
        assert budget.overhead_tokens == 7
    with pytest.raises(TypeError, match="budget"):
        await either.assemble(session_id, "anthropic", tools=[schema])


def conversation_context() -> contextd_client.Context:
    return contextd_client.Context("s", "anthropic", ContextHeader(), (), 0, True)


WRONG: dict[str, tuple[str, Callable[[Either], Any]]] = {
    "no session": ("session_id: must be str, not None", lambda c: c.append(None)),
    "a session as a number": ("session_id: must be str, not 5", lambda c: c.get_session(5)),
    "an event as a string": (
        r"events\[0\]: must be Event, not 'hi'",
        lambda c: c.append("s", "hi"),
    ),
    "a list of events": (
        r"events\[0\]: must be Event, not \[",
        lambda c: c.append("s", [events.user("hi")]),
    ),
    "a budget as a dict": (
        r"budget: must be Budget, not \{'max_tokens': 5\}",
        lambda c: c.assemble("s", "anthropic", budget={"max_tokens": 5}),
    ),
    "a number as a string": (
        "target_tokens: must be int, not '4k'",
        lambda c: c.compact("s", target_tokens="4k"),
    ),
    "a negative number": (
        "at_seq: Value out of range: -1",
        lambda c: c.fork_session("s", "t", at_seq=-1),
    ),
    "a truth value as a number": (
        "as_of_seq: must be int, not True",
        lambda c: c.assemble("s", "gemini", as_of_seq=True),
    ),
    "labels as a list": (
        "labels: must be a dict, not",
        lambda c: c.create_session("s", labels=["a"]),
    ),
    "a label as a number": (
        r"labels\['a'\]: must be str, not 1",
        lambda c: c.create_session("s", labels={"a": 1}),
    ),
    "one session where many are": (
        "session_ids: must be a list, not 's'",
        lambda c: c.run_hooks(session_ids="s"),
    ),
    "half a surrogate pair": ("session_id: ", lambda c: c.get_session("s\udc80")),
    "a format": (
        "format: 'word' is none of contextd, anthropic",
        lambda c: c.assemble("s", "word"),
    ),
    "a context": ("context: must be a Context", lambda c: c.record_model_call("p1")),
    "seconds": (
        "lease: must be seconds",
        lambda c: c.run_summaries(print, worker_id="w", lease="1m"),
    ),
    "a hook": ("pre_compact: must be a function", lambda c: c.run_hooks(pre_compact=True)),
    "a usage": (
        "usage: must be Usage, not",
        lambda c: c.record_model_call(conversation_context(), usage={"input_tokens": 5}),
    ),
    "a model": (
        "model: must be str, not 5",
        lambda c: c.append_messages("s", [{"role": "user", "content": "x"}], "anthropic", model=5),
    ),
    "a list as a session": ("session_id: must be str", lambda c: c.append([], events.user("x"))),
    "a dict as a session": ("session_id: must be str", lambda c: c.assemble({}, "gemini")),
    "a text as messages": (
        "messages: is no JSON: ",
        lambda c: c.append_messages("s", "x", "anthropic"),
    ),
    "no messages": ("messages: must not", lambda c: c.append_messages("s", [], "anthropic")),
    "a number as a message": (
        r"messages\[0\]: must be an object",
        lambda c: c.append_messages("s", [5], "anthropic"),
    ),
    "an object as messages": ("messages: ", lambda c: c.append_messages("s", object(), "gemini")),
    "a text as a response": ("response: is no JSON", lambda c: c.append_response("s", "x")),
    "a text as a counted response": (
        "response: is no JSON",
        lambda c: c.record_model_call(conversation_context(), "x"),
    ),
    "what has no usage": (
        "response: is none of Anthropic's",
        lambda c: c.record_model_call(conversation_context(), {"a": 1}),
    ),
    "a harness": ("harness: must be str", lambda c: c.convert_transcript(b"x", "pi", harness=5)),
    "what writes": (
        "write: must be a function, not 'x'",
        lambda c: c.run_summaries("x", worker_id="w"),
    ),
    "endless seconds": (
        "deadline: must be seconds, not inf",
        lambda c: c.run_hooks(deadline=float("inf")),
    ),
    "a projection": (
        "projection: must be bool, not 'p1'",
        lambda c: c.assemble("s", "gemini", projection="p1"),
    ),
    "tools": (
        "tools: must be a list",
        lambda c: c.assemble("s", "gemini", budget=BUDGET, tools={"a": 1}),
    ),
}


OPTIONS: dict[str, dict[str, Any]] = {
    "timeout: must be seconds, not '60'": {"timeout": "60"},
    "timeout: must be seconds, not True": {"timeout": True},
    "timeout: must be more than 0, is -1": {"timeout": -1},
    "timeout: must be more than 0, is 0": {"timeout": 0},
    "timeout: must be more than 0, is nan": {"timeout": float("nan")},
    "held_contexts: must be a number, not 'a'": {"held_contexts": "a"},
    "held_contexts: must not be negative, is -1": {"held_contexts": -1},
    "address: must be str, not 7171": {"address": 7171},
    "credentials: must be Credentials, not {}": {"credentials": {}},
    "timeout: must be None for no limit, is inf": {"timeout": float("inf")},
    "sleep: must be a function, not 5": {"sleep": 5},
    "channel: must be a channel of gRPC, not '127.0.0.1:1'": {"channel": "127.0.0.1:1"},
    "token_file: must be the name of a file, not 5": {"credentials": Credentials(token_file=5)},  # type: ignore[arg-type]
    "ca: [Errno 2] No such file": {"credentials": Credentials(ca="no.pem")},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("message", OPTIONS)
def test_wrong_options(kind: str, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=f"^{re.escape(message)}"):
        KINDS[kind](**OPTIONS[message])


@pytest.mark.parametrize("case", WRONG)
async def test_wrong_arguments(either: Either, case: str) -> None:
    message, call = WRONG[case]
    with pytest.raises((TypeError, ValueError), match="^" + message):
        await call(either)


async def test_result_with_an_id(either: Either, session_id: str) -> None:
    call = events.assistant(events.tool_call("c", "read", {}), model="m")
    await either.append(session_id, events.user("Go."), call)
    first, again = [
        await either.append_tool_result(session_id, "c", "done", event_id="result-c")
        for _ in range(2)
    ]
    assert (first.receipts[0].event_id, again.receipts[0].duplicate) == ("result-c", True)
