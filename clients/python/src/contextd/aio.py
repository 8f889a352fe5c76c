"""The client for asyncio: the same methods, to be awaited."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from types import TracebackType
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio

from contextd import _calls, _formats, _read
from contextd._assembly import Assembly, Held
from contextd._formats import FormatName
from contextd._usage import Usage
from contextd.context import Context
from contextd.errors import IntegrityError, from_rpc
from contextd.events import Content, tool_result
from contextd.v1.assembly_pb2 import Injection
from contextd.v1.budget_pb2 import Budget
from contextd.v1.context_service_pb2_grpc import ContextServiceStub
from contextd.v1.event_pb2 import Event
from contextd.v1.log_pb2 import AppendEventsResponse, ReadEventsRequest
from contextd.v1.policy_pb2 import Policy
from contextd.v1.projection_pb2 import ResolvePointerRequest, ResolvePointerResponse
from contextd.v1.session_pb2 import (
    CreateSessionRequest,
    DeleteSessionRequest,
    ForkSessionRequest,
    GetSessionRequest,
    Session,
)
from contextd.v1.tokens_pb2 import CountTokensRequest

if TYPE_CHECKING:
    from contextd.v1.context_service_pb2_grpc import ContextServiceAsyncStub


class Client:
    """A client of a daemon. For use in one event loop.

    It holds the newest context of each session and format, is sent only what is new, and
    checks every context against the daemon's hash. Failed calls raise ApiError.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        channel: grpc.aio.Channel | None = None,
        timeout: float | None = 60.0,
        held_contexts: int = 256,
    ) -> None:
        """Connect on first use.

        address: host:port or unix:///path; by default CONTEXTD_ADDRESS, or 127.0.0.1:7171.
        channel: used instead, such as one with TLS; closing it stays with the caller.
        timeout: seconds for each call. None: no limit.
        held_contexts: how many contexts to hold at most.
        """
        self._own = None
        if channel is None:
            target = _calls.address_or_default(address)
            channel = self._own = grpc.aio.insecure_channel(target, options=_calls.CHANNEL_OPTIONS)
        self.stub: ContextServiceAsyncStub = ContextServiceStub(channel)
        """The service itself, for what has no method here. Its errors are gRPC's."""
        self._timeout = timeout
        self._held = Held(held_contexts)

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connection, unless it was given."""
        if self._own is not None:
            await self._own.close()

    # Sessions.

    async def create_session(
        self,
        session_id: str,
        *,
        budget: Budget | None = None,
        policy: Policy | None = None,
        labels: Mapping[str, str] | None = None,
    ) -> Session:
        """Make a session with settings of its own. Appending makes one with the defaults."""
        request = CreateSessionRequest(
            session_id=session_id, budget=budget, policy=policy, labels=labels
        )
        with _api_errors():
            return (await self.stub.CreateSession(request, timeout=self._timeout)).session

    async def get_session(self, session_id: str) -> Session:
        """What a session is."""
        with _api_errors():
            request = GetSessionRequest(session_id=session_id)
            return (await self.stub.GetSession(request, timeout=self._timeout)).session

    async def fork_session(
        self, session_id: str, new_session_id: str, *, at_seq: int = 0
    ) -> Session:
        """Make a session that shares the events up to at_seq; 0: all."""
        request = ForkSessionRequest(
            session_id=session_id, new_session_id=new_session_id, at_seq=at_seq
        )
        with _api_errors():
            return (await self.stub.ForkSession(request, timeout=self._timeout)).session

    async def delete_session(self, session_id: str) -> None:
        """Delete a session and what was derived from it. Forks keep what they share."""
        with _api_errors():
            await self.stub.DeleteSession(
                DeleteSessionRequest(session_id=session_id), timeout=self._timeout
            )
        self._held.forget(session_id)

    # The log.

    async def append(
        self, session_id: str, *events: Event, expected_head: int | None = None
    ) -> AppendEventsResponse:
        """Append events, whole or not at all; on return they are durable where the store is.

        Events without an id are given one, so that a repetition appends nothing twice.
        """
        request = _calls.append_request(session_id, events, expected_head)
        with _api_errors():
            return await self.stub.AppendEvents(request, timeout=self._timeout)

    async def append_response(
        self, session_id: str, response: Any, *, expected_head: int | None = None
    ) -> AppendEventsResponse:
        """Append what a model said: an SDK's response, a dict, or the body as it came.

        Only of a body (str or bytes) do tool arguments keep their bytes.
        """
        events = _read.response_events(response)
        return await self.append(session_id, *events, expected_head=expected_head)

    async def append_messages(
        self, session_id: str, messages: Any, format: FormatName
    ) -> AppendEventsResponse:
        """Append messages that are in the form of a provider's API."""
        return await self.append(session_id, *_read.message_events(messages, format))

    async def append_tool_result(
        self,
        session_id: str,
        call_id: str,
        content: str | Iterable[Content] = (),
        *,
        is_error: bool = False,
    ) -> AppendEventsResponse:
        """Append what a tool gave back."""
        return await self.append(session_id, tool_result(call_id, content, is_error=is_error))

    async def read_events(
        self, session_id: str, *, from_seq: int = 0, to_seq: int = 0
    ) -> AsyncIterator[Event]:
        """The events of a log, as they were appended; 0: from the first, to the newest."""
        request = ReadEventsRequest(session_id=session_id, from_seq=from_seq, to_seq=to_seq)
        with _api_errors():
            async for part in self.stub.ReadEvents(request):
                for event in part.events:
                    yield event

    # Contexts.

    async def assemble(
        self,
        session_id: str,
        format: FormatName,
        *,
        budget: Budget | None = None,
        policy: Policy | None = None,
        injections: Iterable[Injection] = (),
        as_of_seq: int | None = None,
        preview: bool = False,
        idempotency_key: str = "",
        projection: bool = False,
    ) -> Context:
        """The context of the next model call.

        projection: be told what was kept, dropped and redacted, too, in header.projection and
        pointers. It grows with the session.

        Raises BudgetExceededError where it cannot be made to fit, and IntegrityError where
        what came is not what was sent.
        """
        held = self._held.get(session_id, format)
        assembly = Assembly.begin(
            held, session_id, format, budget, policy, injections,
            as_of_seq, preview, idempotency_key, projection,
        )  # fmt: skip
        with _api_errors():
            async for part in self.stub.AssembleContext(assembly.request, timeout=self._timeout):
                assembly.take(part)
        try:
            context = assembly.finish()
        except IntegrityError:
            self._held.forget(session_id, format)
            raise
        if as_of_seq is None:
            self._held.put(context)
        return context

    async def resolve_pointer(self, session_id: str, pointer: str) -> ResolvePointerResponse:
        """The raw body behind a pointer that stands in a context."""
        request = ResolvePointerRequest(session_id=session_id, pointer=pointer)
        with _api_errors():
            return await self.stub.ResolvePointer(request, timeout=self._timeout)

    async def record_model_call(
        self,
        context: Context,
        response: Any = None,
        *,
        usage: Usage | None = None,
        rejected_over_budget: bool = False,
    ) -> float:
        """Tell what the provider counted, by its response or a usage. Real tokens / estimated
        tokens from now on."""
        request = _calls.record_request(context, response, usage, rejected_over_budget)
        with _api_errors():
            return (await self.stub.RecordModelCall(request, timeout=self._timeout)).calibration

    async def count_tokens(
        self,
        text: str = "",
        *,
        model: str = "",
        tools_json: bytes = b"",
        format: FormatName = "contextd",
    ) -> int:
        """The size of a text and of tool schemas; see CountTokensRequest."""
        request = CountTokensRequest(
            text=text, model=model, tools_json=tools_json, format=_formats.NUMBERS[format]
        )
        with _api_errors():
            return (await self.stub.CountTokens(request, timeout=self._timeout)).tokens


@contextlib.contextmanager
def _api_errors() -> Iterator[None]:
    try:
        yield
    except grpc.RpcError as error:
        raise from_rpc(error) from error
