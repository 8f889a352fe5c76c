"""A connection whose failed calls are retried where that may help."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

import grpc

from contextd_client._calls import address_or_default, not_a
from contextd_client._channel import connect
from contextd_client._patience import Patience, patience_or_default, timeout_or_none
from contextd_client.credentials import Credentials
from contextd_client.v1.compaction_service_pb2_grpc import CompactionServiceStub
from contextd_client.v1.context_service_pb2_grpc import ContextServiceStub
from contextd_client.v1.transcript_service_pb2_grpc import TranscriptServiceStub

Request = TypeVar("Request")
Answer = TypeVar("Answer")


class Caller:
    """The part of the client that calls the daemon."""

    def __init__(
        self,
        address: str | None,
        credentials: Credentials | None,
        channel: grpc.Channel | None,
        timeout: float | None,
        patience: float | None,
        sleep: Callable[[float], None],
    ) -> None:
        if not callable(sleep):
            raise not_a("function", "sleep", sleep)
        if channel is not None and not hasattr(channel, "unary_unary"):
            raise not_a("channel of gRPC", "channel", channel)
        self._patience_seconds = patience_or_default(patience)
        self._address = address_or_default(address)
        self._own = None
        if channel is None:
            channel = self._own = connect(address, credentials)
        self.stub: ContextServiceStub = ContextServiceStub(channel)
        """The service itself, for what has no method here. Its errors are gRPC's."""
        self.compaction_stub: CompactionServiceStub = CompactionServiceStub(channel)
        """The service of compactions itself."""
        self.transcript_stub: TranscriptServiceStub = TranscriptServiceStub(channel)
        """The service of transcripts itself."""
        self._timeout = timeout_or_none(timeout)
        self._sleep = sleep

    # All calls go through one of these methods.

    def _call(
        self,
        method: grpc.UnaryUnaryMultiCallable[Request, Answer],
        request: Request,
        *,
        unanswered: bool = True,
    ) -> Answer:
        patience = self._patience(unanswered=unanswered)
        return self._repeat(lambda: method(request, timeout=self._timeout), patience)

    def _repeat(self, call: Callable[[], Answer], patience: Patience | None = None) -> Answer:
        patience = patience or self._patience()
        while True:
            try:
                return call()
            except grpc.RpcError as error:
                self._sleep(patience.wait(error))

    def _all(self, open: Callable[[], Iterable[Answer]]) -> list[Answer]:
        """All messages of a stream. If it breaks, it is opened again from its beginning."""
        return self._repeat(lambda: list(open()))

    def _parts(self, open: Callable[[], Iterable[Answer]]) -> Iterator[Answer]:
        """The messages of a stream. If it breaks, `open` is called again to continue it."""
        patience = self._patience()
        while True:
            call = open()
            try:
                for part in call:
                    patience.begin()
                    yield part
                return
            except grpc.RpcError as error:
                self._sleep(patience.wait(error))
            finally:
                if isinstance(call, grpc.RpcContext):
                    call.cancel()  # if the caller did not read to the end

    def _patience(self, *, unanswered: bool = True) -> Patience:
        return Patience(self._patience_seconds, self._address, unanswered=unanswered)
