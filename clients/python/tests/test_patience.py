"""What a client does where waiting helps: it waits as long as the daemon says, and not forever."""

from __future__ import annotations

import asyncio
import inspect
import signal
import subprocess
from collections.abc import Callable, Iterator
from concurrent import futures
from pathlib import Path
from typing import Any

import grpc
import pytest
from conftest import read_address
from google.protobuf.duration_pb2 import Duration
from google.rpc import error_details_pb2, status_pb2

import contextd_client
import contextd_client.aio
from contextd_client import errors, events
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
        yield ReadEventsResponse(events=[Event(seq=first), Event(seq=first + 1)])
        self._enter(request, context)


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


def run_sync(address: str, use: Use, **settings: Any) -> tuple[object, list[float]]:
    """What a call gives, and how long the client waited."""
    waited: list[float] = []
    with contextd_client.Client(address, sleep=waited.append, **settings) as client:
        try:
            given = use(client)
            return list(given) if inspect.isgenerator(given) else given, waited
        except errors.ApiError as error:
            return error, waited


def run_async(address: str, use: Use, **settings: Any) -> tuple[object, list[float]]:
    """The same with asyncio."""
    waited: list[float] = []

    async def sleep(seconds: float) -> None:
        waited.append(seconds)

    async def call() -> object:
        async with contextd_client.aio.Client(address, sleep=sleep, **settings) as client:
            try:
                given: Any = use(client)  # type: ignore[arg-type]
                if inspect.isasyncgen(given):
                    return [event async for event in given]
                return await given
            except errors.ApiError as error:
                return error

    return asyncio.run(call()), waited


both = pytest.mark.parametrize("run", [run_sync, run_async])


def append(client: contextd_client.Client) -> object:
    return client.append("s", events.user("hi"))


@both
def test_waits_as_long_as_it_is_told(busy: tuple[Busy, str], run: Any) -> None:
    servicer, address = busy
    servicer.waits = [1.5, 0.25, 30]
    answer, waited = run(address, append)
    assert answer == AppendEventsResponse(last_seq=7)
    assert waited == [1.5, 0.25, 30]
    ids = {request.events[0].event_id for request in servicer.requests}
    assert len(servicer.requests) == 4
    assert len(ids) == 1, "a repetition would append twice"
    assert ids != {""}


@both
@pytest.mark.parametrize(
    ("waits", "waited", "calls", "settings"),
    [
        ([1, 1, 1, 1, 1], [1, 1, 1], 4, {}),
        ([1, 1, 1], [1], 2, {"retries": 1}),
        ([1], [], 1, {"retries": 0}),
        ([61], [], 1, {}),
        ([61], [61], 2, {"timeout": None}),
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
    servicer.waits = [4, 5]
    read, waited = run(address, lambda c: c.read_events("s", from_seq=3))
    assert [event.seq for event in read] == [3, 4, 5, 6, 7, 8]
    assert waited == [4, 5]
    servicer.waits = [6]
    read, waited = run(address, lambda c: c.read_events("s", to_seq=2))
    assert [event.seq for event in read] == [1, 2]
    assert waited == [], "nothing was left to ask for"


@both
def test_waits_ever_longer_for_a_daemon_that_is_not_there(run: Any) -> None:
    answer, waited = run("127.0.0.1:1", append, retries=7, timeout=5)
    assert isinstance(answer, errors.UnavailableError)
    assert answer.reason == ""
    assert waited == [0.1, 0.2, 0.4, 0.8, 1.6, 2, 2]


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
    refused = from_rpc(ended.value)
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
