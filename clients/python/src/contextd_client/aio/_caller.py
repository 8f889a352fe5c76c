"""A connection whose failed calls are retried where that may help."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

import grpc.aio

from contextd_client._calls import address_or_default, not_a
from contextd_client._channel import connect, connect_aio
from contextd_client._patience import Patience, patience_or_default, timeout_or_none
from contextd_client.credentials import Credentials
from contextd_client.v1.compaction_service_pb2_grpc import CompactionServiceStub
from contextd_client.v1.context_service_pb2_grpc import ContextServiceStub
from contextd_client.v1.transcript_service_pb2_grpc import TranscriptServiceStub

if TYPE_CHECKING:
    from contextd_client.v1.compaction_service_pb2_grpc import CompactionServiceAsyncStub
    from contextd_client.v1.context_service_pb2_grpc import ContextServiceAsyncStub
    from contextd_client.v1.transcript_service_pb2_grpc import TranscriptServiceAsyncStub

Request = TypeVar("Request")
Answer = TypeVar("Answer")


class Caller:
    """The part of the client that calls the daemon."""

    def __init__(
        self,
        address: str | None,
        credentials: Credentials | None,
        channel: grpc.aio.Channel | None,
        timeout: float | None,
        patience: float | None,
        sleep: Callable[[float], Awaitable[None]],
    ) -> None:
        if not callable(sleep):
            raise not_a("function", "sleep", sleep)
        if channel is not None and not hasattr(channel, "unary_unary"):
            raise not_a("channel of gRPC", "channel", channel)
        self._patience_seconds = patience_or_default(patience)
        self._address = address_or_default(address)
        self._credentials = credentials
        self._own: grpc.aio.Channel | None = None
        if channel is None:
            self._open = connect_aio(address, credentials)
        else:
            self._channel = channel
        self._timeout = timeout_or_none(timeout)
        self._sleep = sleep

    @cached_property
    def _channel(self) -> grpc.aio.Channel:
        """Made with the first call, so that a client may be made before its loop runs."""
        self._own = self._open()
        return self._own

    @cached_property
    def stub(self) -> ContextServiceAsyncStub:
        """The service itself, for what has no method here. Its errors are gRPC's."""
        return ContextServiceStub(self._channel)

    @cached_property
    def compaction_stub(self) -> CompactionServiceAsyncStub:
        """The service of compactions itself."""
        return CompactionServiceStub(self._channel)

    @cached_property
    def transcript_stub(self) -> TranscriptServiceAsyncStub:
        """The service of transcripts itself."""
        return TranscriptServiceStub(self._channel)

    # All calls go through one of these methods.

    async def _call(
        self,
        method: grpc.aio.UnaryUnaryMultiCallable[Request, Answer],
        request: Request,
        *,
        unanswered: bool = True,
    ) -> Answer:
        patience = self._patience(unanswered=unanswered)
        return await self._repeat(lambda: method(request, timeout=self._timeout), patience)

    async def _repeat(
        self, call: Callable[[], Awaitable[Answer]], patience: Patience | None = None
    ) -> Answer:
        patience = patience or self._patience()
        while True:
            try:
                return await call()
            except grpc.RpcError as error:
                await self._sleep(patience.wait(error))

    async def _all(self, open: Callable[[], AsyncIterable[Answer]]) -> list[Answer]:
        """All messages of a stream. If it breaks, it is opened again from its beginning."""

        async def read() -> list[Answer]:
            return [part async for part in open()]

        return await self._repeat(read)

    async def _upload(self, call: Callable[[TranscriptServiceStub], Answer]) -> Answer:
        """The answer of a call that sends a stream.

        It runs in a thread and over a connection of its own: if the daemon refuses before it has
        read everything, asyncio's gRPC may report INTERNAL instead of the reason.
        """

        def upload() -> Answer:
            with connect(self._address, self._credentials) as channel:
                return call(TranscriptServiceStub(channel))

        return await self._repeat(lambda: asyncio.to_thread(upload))

    async def _parts(self, open: Callable[[], AsyncIterable[Answer]]) -> AsyncIterator[Answer]:
        """The messages of a stream. If it breaks, `open` is called again to continue it."""
        patience = self._patience()
        while True:
            call = open()
            try:
                async for part in call:
                    patience.begin()
                    yield part
                return
            except grpc.RpcError as error:
                await self._sleep(patience.wait(error))
            finally:
                if isinstance(call, grpc.aio.Call):
                    call.cancel()  # if the caller did not read to the end

    def _patience(self, *, unanswered: bool = True) -> Patience:
        return Patience(self._patience_seconds, self._address, unanswered=unanswered)
