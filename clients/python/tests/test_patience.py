"""What a client does where waiting helps: it waits as long as the daemon says, and not forever."""

from __future__ import annotations

import asyncio
import inspect
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path
from typing import Any
from unittest.mock import patch

import grpc
import pytest
from conftest import Daemon, read_address
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2

import contextd_client
import contextd_client.aio
from contextd_client import Usage, errors, events
from contextd_client._patience import patience_or_default
from contextd_client.errors import from_rpc
from contextd_client.v1.assembly_pb2 import (
    AssembleContextResponse,
    ContextHeader,
    ContextTrailer,
    MessageChunk,
    RenderedMessage,
)
from contextd_client.v1.context_service_pb2_grpc import (
    ContextServiceServicer,
    add_ContextServiceServicer_to_server,
)
from contextd_client.v1.event_pb2 import Event
from contextd_client.v1.log_pb2 import AppendEventsResponse, ReadEventsRequest, ReadEventsResponse
from contextd_client.v1.session_pb2 import LogMark
from contextd_client.v1.tokens_pb2 import RecordModelCallResponse

LINE = b'{"a":1.0}'


def refuse(context: Any, wait: float | None, reason: str = "DRAINING") -> None:
    """Refuse a call as the daemon does."""
    status = status_pb2.Status(code=grpc.StatusCode.UNAVAILABLE.value[0], message="not now")
    status.details.add().Pack(error_details_pb2.ErrorInfo(reason=reason, domain="contextd"))
    if wait is not None:
        delay = Duration()
        delay.FromMicroseconds(round(wait * 1e6))
        status.details.add().Pack(error_details_pb2.RetryInfo(retry_delay=delay))
    context.set_trailing_metadata([("grpc-status-details-bin", status.SerializeToString())])
    context.abort(grpc.StatusCode.UNAVAILABLE, "not now")


class Busy(ContextServiceServicer):
    """Refuses its first calls, each with the next of `waits`, and counts what comes."""

    def __init__(self) -> None:
        self.waits: list[float | None] = []
        self.reason = "DRAINING"
        self.requests: list[Any] = []

    def _enter(self, request: Any, context: Any) -> None:
        self.requests.append(request)
        if self.waits:
            refuse(context, self.waits.pop(0), self.reason)

    def AppendEvents(self, request: Any, context: Any) -> AppendEventsResponse:
        self._enter(request, context)
        return AppendEventsResponse(last_seq=7)

    def RecordModelCall(self, request: Any, context: Any) -> RecordModelCallResponse:
        self._enter(request, context)
        return RecordModelCallResponse(calibration=2)

    def AssembleContext(self, request: Any, context: Any) -> Iterator[AssembleContextResponse]:
        own = contextd_client.hash_lines([LINE])
        yield AssembleContextResponse(
            header=ContextHeader(
                context_hash=own, prefix_hash=own, message_count=1, prefix_messages=1
            )
        )
        yield AssembleContextResponse(chunk=MessageChunk(messages=[RenderedMessage(json=LINE)]))
        self._enter(request, context)
        yield AssembleContextResponse(trailer=ContextTrailer(message_count=1, context_hash=own))

    def ReadEvents(self, request: Any, context: Any) -> Iterator[ReadEventsResponse]:
        first = max(request.from_seq, 1)
        yield ReadEventsResponse(
            events=[Event(seq=first), Event(seq=first + 1)],
            incarnation="i",
            chain_head=chain(first + 1),
        )
        self._enter(request, context)


def chain(seq: int) -> str:
    """The chain of the busy server's log after an event."""
    return f"sha256:{seq:064x}"


@pytest.fixture
def busy() -> Iterator[tuple[Busy, str]]:
    """A server that refuses, and its address."""
    servicer = Busy()
    server = grpc.server(futures.ThreadPoolExecutor(2))
    add_ContextServiceServicer_to_server(servicer, server)
    port = server.add_insecure_port("127.0.0.1:0")
    server.start()
    yield servicer, f"127.0.0.1:{port}"
    server.stop(None).wait()


Use = Callable[[contextd_client.Client], object]


class Clock:
    """Time that passes only where a client waits."""

    def __init__(self) -> None:
        self.waited: list[float] = []

    def now(self) -> float:
        return sum(self.waited)


def run_sync(address: str, use: Use, **settings: Any) -> tuple[object, list[float]]:
    """What a call gives, and how long the client waited."""
    clock = Clock()
    with (
        patch("contextd_client._patience.monotonic", clock.now),
        contextd_client.Client(address, sleep=clock.waited.append, **settings) as client,
    ):
        try:
            given = use(client)
            return list(given) if inspect.isgenerator(given) else given, clock.waited
        except errors.ApiError as error:
            return error, clock.waited


def run_async(address: str, use: Use, **settings: Any) -> tuple[object, list[float]]:
    """The same with asyncio."""
    clock = Clock()

    async def sleep(seconds: float) -> None:
        clock.waited.append(seconds)

    async def call() -> object:
        async with contextd_client.aio.Client(address, sleep=sleep, **settings) as client:
            try:
                given: Any = use(client)  # type: ignore[arg-type]
                if inspect.isasyncgen(given):
                    return [event async for event in given]
                return await given
            except errors.ApiError as error:
                return error

    with patch("contextd_client._patience.monotonic", clock.now):
        return asyncio.run(call()), clock.waited


both = pytest.mark.parametrize("run", [run_sync, run_async])


def append(client: contextd_client.Client) -> object:
    return client.append("s", events.user("hi"))


@both
def test_waits_as_long_as_it_is_told(busy: tuple[Busy, str], run: Any) -> None:
    servicer, address = busy
    servicer.waits = [1.5, 0.25, 28]
    answer, waited = run(address, append)
    assert answer == AppendEventsResponse(last_seq=7)
    assert waited == [1.5, 0.25, 28]
    ids = {request.events[0].event_id for request in servicer.requests}
    assert len(servicer.requests) == 4
    assert len(ids) == 1, "a repetition would append twice"
    assert ids != {""}


@both
@pytest.mark.parametrize("seq", [0, 7])
def test_the_newest_compaction_is_undone_once(run: Any, seq: int) -> None:
    answer, waited = run("127.0.0.1:1", lambda c: c.undo_compaction("s", compaction_seq=seq))
    assert isinstance(answer, errors.ApiError)
    assert bool(waited) == (seq > 0), "a repetition might revert another compaction"


@both
@pytest.mark.parametrize("settings", [{}, {"idempotency_key": "own"}])
def test_a_repeated_report_has_one_key(
    busy: tuple[Busy, str], run: Any, settings: dict[str, str]
) -> None:
    servicer, address = busy
    context, _ = run(address, lambda c: c.assemble("s", "contextd"))
    servicer.requests.clear()
    servicer.waits = [1, 2]
    answers = [
        run(address, lambda c: c.record_model_call(context, usage=Usage(), **settings))
        for _ in range(2)
    ]
    assert answers == [(2, [1, 2]), (2, [])]
    keys = [request.idempotency_key for request in servicer.requests]
    assert len(set(keys[:3])) == 1, "a repetition would count twice"
    if settings:
        assert set(keys) == {"own"}
    else:
        assert "" not in keys
        assert keys[3] != keys[0]


@both
@pytest.mark.parametrize(
    ("waits", "waited", "calls", "settings"),
    [
        ([10, 10, 10, 10], [10, 10, 10], 4, {}),
        ([1, 1, 1], [1], 2, {"patience": 1.5}),
        ([1], [], 1, {"patience": 0}),
        ([31], [], 1, {}),
        ([61], [61], 2, {"patience": 100}),
        ([None], [], 1, {}),
    ],
)
def test_gives_up(
    busy: tuple[Busy, str], run: Any, waits: Any, waited: Any, calls: int, settings: Any
) -> None:
    servicer, address = busy
    servicer.waits = list(waits)
    answer, did_wait = run(address, append, **settings)
    assert did_wait == waited
    assert len(servicer.requests) == calls
    if len(waits) >= calls:
        assert isinstance(answer, errors.UnavailableError)
        assert (answer.reason, answer.retry_after) == ("DRAINING", waits[calls - 1])
    else:
        assert answer == AppendEventsResponse(last_seq=7)


@both
def test_streams_begin_again(busy: tuple[Busy, str], run: Any) -> None:
    servicer, address = busy
    servicer.waits = [2, 3]
    context, waited = run(address, lambda c: c.assemble("s", "contextd"))
    assert isinstance(context, contextd_client.Context)
    assert (context.lines, waited) == ((LINE,), [2, 3])


@both
def test_a_log_goes_on_where_it_broke(busy: tuple[Busy, str], run: Any) -> None:
    servicer, address = busy
    servicer.waits = [20, 25]  # the patience begins anew with what came
    read, waited = run(address, lambda c: c.read_events("s", from_seq=3))
    assert [event.seq for event in read] == [3, 4, 5, 6, 7, 8]
    assert waited == [20, 25]
    assert [request.known for request in servicer.requests] == [
        LogMark(),
        LogMark(incarnation="i", head_seq=4, chain_head=chain(4)),
        LogMark(incarnation="i", head_seq=6, chain_head=chain(6)),
    ]
    servicer.waits = [6]
    read, waited = run(address, lambda c: c.read_events("s", to_seq=2))
    assert [event.seq for event in read] == [1, 2]
    assert waited == [], "nothing was left to ask for"


@both
def test_waits_ever_longer_for_a_daemon_that_is_not_there(run: Any) -> None:
    answer, waited = run("127.0.0.1:1", append, patience=8, timeout=5)
    assert isinstance(answer, errors.UnavailableError)
    assert answer.reason == ""
    assert waited == [0.1, 0.2, 0.4, 0.8, 1.6, 2, 2]
    said = str(answer)
    assert said.startswith("UNAVAILABLE: no daemon answers at 127.0.0.1:1 (")
    assert said.endswith('): start one with "contextd serve", or set CONTEXTD_ADDR')
    assert "\n" not in said


def test_a_socket_without_permission_is_no_daemon_that_is_not_there() -> None:
    said = errors.unanswered_message("unix:///c.sock", "connect: Permission denied (13)")
    assert said.startswith("no permission to connect to unix:///c.sock (connect: Permission denied")
    said = errors.unanswered_message("unix:///c.sock", "connect: No such file or directory (2)")
    assert said.startswith("no daemon answers at unix:///c.sock (")


@pytest.mark.parametrize(
    "cause",
    [
        "failed to connect to all addresses; last error: UNAVAILABLE: Socket closed",
        "last error: UNKNOWN: ipv4:127.0.0.1:7: Tls handshake failed (TSI_PROTOCOL_FAILURE)",
    ],
)
def test_tls_on_one_side_is_no_daemon_that_is_not_there(cause: str) -> None:
    said = errors.unanswered_message("127.0.0.1:7", cause)
    assert said == (
        f"no connection with 127.0.0.1:7 ({cause}): if the daemon there speaks TLS, "
        "CONTEXTD_CA must name the authority of its certificate; if it does not, it must be empty"
    )
    assert errors.unanswered_message("unix:///c.sock", "Socket closed").startswith("no daemon")


def test_a_refused_certificate_is_no_daemon_that_is_not_there() -> None:
    cause = "last error: UNAVAILABLE: ipv4:127.0.0.1:7: Unwrap failed (TSI_DATA_CORRUPTED)"
    said = errors.unanswered_message("127.0.0.1:7", cause)
    assert said.startswith(f"no connection with 127.0.0.1:7 ({cause}): CONTEXTD_CERT and")


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("", 30), ("2", 2), ("0.5", 0.5), ("1m30s", 90), ("1.5h250ms", 5400.25), ("0", 0)],
)
def test_patience_of_the_environment(
    monkeypatch: pytest.MonkeyPatch, text: str, seconds: float
) -> None:
    monkeypatch.setenv("CONTEXTD_PATIENCE", text)
    assert patience_or_default(None) == seconds
    assert patience_or_default(7) == 7


@pytest.mark.parametrize("text", ["soon", "-1s", "1d", "inf", " "])
def test_patience_of_the_environment_that_is_none(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv("CONTEXTD_PATIENCE", text)
    with pytest.raises(ValueError, match="CONTEXTD_PATIENCE"):
        contextd_client.Client("127.0.0.1:1")


@pytest.mark.parametrize(
    ("given", "error"), [("2", TypeError), (True, TypeError), (-1, ValueError)]
)
@pytest.mark.parametrize("kind", [contextd_client.Client, contextd_client.aio.Client])
def test_patience_that_is_none(kind: Any, given: Any, error: type[Exception]) -> None:
    with pytest.raises(error, match="patience"):
        kind("127.0.0.1:1", patience=given)


def test_a_daemon_that_comes_back_is_found(daemon: Daemon) -> None:
    """Soon, though the connection failed several times meanwhile."""
    waited: list[float] = []

    def wait(seconds: float) -> None:
        time.sleep(seconds)
        waited.append(seconds)
        if len(waited) == 5:
            daemon.start_again()

    with contextd_client.Client(daemon.address, sleep=wait) as client:
        client.append("s", events.user("hi"))
        daemon.stop()
        client.forget_session("s")  # the memory store forgot it, too
        client.append("s", events.user("Are you there?"))
    assert 5 <= len(waited) <= 7, waited


def test_a_daemon_that_shuts_down_says_when_to_come_back(binary: Path) -> None:
    daemon = subprocess.Popen(
        [binary, "serve", "--store=memory", "--listen=127.0.0.1:0", "--log-format=json"],
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        with contextd_client.Client(read_address(daemon)) as client:
            client.append("s", events.user("hi"))
            follow = client.stub.ReadEvents(ReadEventsRequest(session_id="s", follow=True))
            assert next(follow).events[0].seq == 1
            daemon.send_signal(signal.SIGTERM)
            with pytest.raises(grpc.RpcError) as ended:
                next(follow)
    finally:
        daemon.terminate()
        daemon.wait(timeout=30)
    refused = from_rpc(ended.value, "there")
    assert isinstance(refused, errors.UnavailableError)
    assert (refused.reason, refused.retry_after) == ("DRAINING", 1)


def test_both_clients_say_the_same() -> None:
    def said(kind: type) -> dict[str, tuple[object, str | None]]:
        return {
            name: (inspect.signature(f).replace(return_annotation=None), inspect.getdoc(f))
            for name, f in vars(kind).items()
            if not name.startswith("_") and callable(f)
        }

    assert said(contextd_client.Client) == said(contextd_client.aio.Client)
    assert said(contextd_client.Client), "there are no methods"
