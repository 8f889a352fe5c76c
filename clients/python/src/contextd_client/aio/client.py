"""The client for asyncio."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from types import TracebackType
from typing import Any

import grpc.aio

from contextd_client import _calls, _formats, _read, _tools
from contextd_client._assembly import Assembly, Held, project_request, read
from contextd_client._formats import FormatName
from contextd_client._known import Known
from contextd_client._reading import Reading
from contextd_client._requests import checked
from contextd_client._tools import ToolSizes
from contextd_client.aio._compactions import Compactions
from contextd_client.aio._records import Records
from contextd_client.aio._transcripts import Transcripts
from contextd_client.context import Context
from contextd_client.credentials import Credentials
from contextd_client.events import Content, tool_result
from contextd_client.v1.assembly_pb2 import Injection
from contextd_client.v1.budget_pb2 import Budget
from contextd_client.v1.event_pb2 import Event
from contextd_client.v1.log_pb2 import AppendEventsResponse
from contextd_client.v1.policy_pb2 import Policy
from contextd_client.v1.session_pb2 import (
    CreateSessionRequest,
    DeleteSessionRequest,
    ForkSessionRequest,
    GetSessionRequest,
    ListSessionsRequest,
    Session,
)
from contextd_client.v1.tokens_pb2 import CountTokensRequest


class Client(Compactions, Records, Transcripts):
    """A client of a daemon. For use in one event loop, which need not run when it is made.

    It keeps the newest context of each session and format, requests only new messages, and
    checks every context against the daemon's hash. Failed calls raise ApiError.
    """

    def __init__(
        self,
        address: str | None = None,
        *,
        credentials: Credentials | None = None,
        channel: grpc.aio.Channel | None = None,
        timeout: float | None = 60.0,
        held_contexts: int = 256,
        patience: float | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Connect on first use.

        address: host:port or unix:///path; by default CONTEXTD_ADDR, or 127.0.0.1:7171.
        credentials: for TLS and authentication; by default Credentials.from_environment().
        channel: used instead of both, except to send transcripts; the caller closes it.
        timeout: seconds for each try of a call. None: no limit.
        held_contexts: the most contexts to keep.
        patience: for how many seconds a call is retried if the daemon asks for that or does not
            answer. 0: never. None: CONTEXTD_PATIENCE, or 30.
        sleep: called to wait between two tries, with a number of seconds.
        """
        super().__init__(address, credentials, channel, timeout, patience, sleep)
        self._held = Held(held_contexts)
        self._known = Known()
        self._tools = ToolSizes()

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
        """Close the connection, unless a channel was given."""
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
        """Create a session with settings of its own. An append creates one with the defaults."""
        request = checked(
            CreateSessionRequest, session_id=session_id, budget=budget, policy=policy, labels=labels
        )
        made = (await self._call(self.stub.CreateSession, request)).session
        self._known.made(made)
        return made

    async def get_session(self, session_id: str) -> Session:
        """A session's settings and state."""
        request = checked(GetSessionRequest, session_id=session_id)
        return (await self._call(self.stub.GetSession, request)).session

    async def list_sessions(
        self, *, labels: Mapping[str, str] | None = None
    ) -> AsyncIterator[Session]:
        """All sessions, by id; with labels, only those that have all of them."""
        request = checked(ListSessionsRequest, labels=labels or {})
        while True:
            page = await self._call(self.stub.ListSessions, request)
            for session in page.sessions:
                yield session
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def fork_session(
        self, session_id: str, new_session_id: str, *, at_seq: int = 0
    ) -> Session:
        """Create a session that shares the events up to at_seq; 0: all."""
        request = checked(
            ForkSessionRequest, session_id=session_id, new_session_id=new_session_id, at_seq=at_seq
        )
        made = (await self._call(self.stub.ForkSession, request)).session
        self._known.made(made)
        return made

    async def delete_session(self, session_id: str) -> None:
        """Delete a session and what was derived from it. Forks keep what they share."""
        await self._call(
            self.stub.DeleteSession, checked(DeleteSessionRequest, session_id=session_id)
        )
        self.forget_session(session_id)

    def forget_session(self, session_id: str) -> None:
        """Accept a session's log as it is now, even if it lacks events that this client appended.

        Without this, other calls raise LogLostError then.
        """
        self._known.forget(session_id)
        self._held.forget(session_id)

    # The log.

    async def append(
        self, session_id: str, *events: Event, expected_head: int | None = None
    ) -> AppendEventsResponse:
        """Append all events or none. On return they are durable, unless the store is in memory.

        Events without an id get one, so that a retry appends nothing twice. Raises LogLostError
        if the log lacks events that this client appended before.
        """
        known = self._known.of(session_id)
        request = _calls.append_request(session_id, events, expected_head, known)
        response = await self._call(self.stub.AppendEvents, request)
        self._known.appended(session_id, response)
        return response

    async def append_response(
        self, session_id: str, response: Any, *, expected_head: int | None = None
    ) -> AppendEventsResponse:
        """Append a model's response: an SDK's object, a dict, or the raw body.

        Tool arguments keep their bytes only with a raw body (str or bytes).
        """
        events = _read.response_events(response)
        return await self.append(session_id, *events, expected_head=expected_head)

    async def append_messages(
        self, session_id: str, messages: Any, format: FormatName, *, model: str = ""
    ) -> AppendEventsResponse:
        """Append messages that are in the form of a provider's API.

        Signed reasoning goes back only to the provider of the model that wrote it, so
        name the model if the messages do not.
        """
        return await self.append(session_id, *_read.messages_to_append(messages, format, model))

    async def append_tool_result(
        self,
        session_id: str,
        call_id: str,
        content: str | Iterable[Content] = (),
        *,
        is_error: bool = False,
        event_id: str = "",
    ) -> AppendEventsResponse:
        """Append the result of a tool."""
        result = tool_result(call_id, content, is_error=is_error, event_id=event_id)
        return await self.append(session_id, result)

    async def read_events(
        self, session_id: str, *, from_seq: int = 0, to_seq: int = 0
    ) -> AsyncIterator[Event]:
        """The events of a log, as they were appended. 0: from the first, or to the newest."""
        reading = Reading(session_id, from_seq, to_seq)
        async for part in self._parts(lambda: self.stub.ReadEvents(reading.request)):
            for event in reading.take(part):
                yield event
            if reading.done:
                return

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
        tools: Iterable[Any] = (),
    ) -> Context:
        """The context of the next model call.

        tools: the tool schemas of the request; the budget leaves room for them.

        projection: also return what was kept, dropped and redacted, in header.projection and
        pointers. Its size grows with the session.

        Raises BudgetExceededError if the context cannot fit, and IntegrityError if the received
        bytes do not match the daemon's hash.
        """
        if tools:
            budget = _tools.with_overhead(budget, await self._size_of(tools, budget, format))
        assembly = Assembly.begin(
            self._held, session_id, format, budget, policy, injections,
            as_of_seq, preview, idempotency_key, projection, self._known.of(session_id),
        )  # fmt: skip
        return assembly.finish(
            await self._all(
                lambda: self.stub.AssembleContext(assembly.request, timeout=self._timeout)
            )
        )

    async def project_transcript(
        self,
        events: Iterable[Event],
        format: FormatName,
        *,
        budget: Budget | None = None,
        policy: Policy | None = None,
        injections: Iterable[Injection] = (),
        tools: Iterable[Any] = (),
    ) -> Context:
        """The context of events that are not in a log, as assemble gives it for a log.

        Nothing is stored; use it to try budgets and policies.
        """
        if tools:
            budget = _tools.with_overhead(budget, await self._size_of(tools, budget, format))
        request = project_request(events, format, budget, policy, injections)
        parts = await self._all(lambda: self.stub.ProjectTranscript(request, timeout=self._timeout))
        return read(parts, "", format)

    async def count_tokens(
        self,
        text: str = "",
        *,
        model: str = "",
        tokenizer: str = "",
        tools_json: bytes = b"",
        format: FormatName = "contextd",
    ) -> int:
        """The size of a text and of tool schemas; see CountTokensRequest."""
        request = checked(
            CountTokensRequest, text=text, model=model, tokenizer=tokenizer,
            tools_json=tools_json, format=_formats.number(format),
        )  # fmt: skip
        return (await self._call(self.stub.CountTokens, request)).tokens

    async def _size_of(
        self, tools: Iterable[Any], budget: Budget | None, format: FormatName
    ) -> int:
        request = _tools.count_request(tools, budget, format)
        known = self._tools.get(request)
        if known is not None:
            return known
        counted = await self._call(self.stub.CountTokens, request)
        return self._tools.put(request, counted.tokens)
