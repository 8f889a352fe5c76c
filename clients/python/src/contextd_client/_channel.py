"""The gRPC channels of both clients, with address and credentials."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import grpc
import grpc.aio

from contextd_client._calls import address_or_default
from contextd_client.credentials import Credentials, read_file

_OPTIONS: list[tuple[str, Any]] = [
    # An event, and so a message, may be larger than gRPC's default of 4 MiB.
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    # By default gRPC would wait up to two minutes before it connects again.
    ("grpc.initial_reconnect_backoff_ms", 100),
    ("grpc.max_reconnect_backoff_ms", 1000),
]


def connect(address: str | None, credentials: Credentials | None) -> grpc.Channel:
    """A channel that connects on first use."""
    target, proof, secured = _resolve(address, credentials)
    if secured is None:
        channel = grpc.insecure_channel(target, options=_OPTIONS)
    else:
        channel = grpc.secure_channel(target, secured, options=_OPTIONS)
    if proof.token_file:
        channel = grpc.intercept_channel(channel, _Bearer(proof.token_file))
    return channel


def connect_aio(
    address: str | None, credentials: Credentials | None
) -> Callable[[], grpc.aio.Channel]:
    """The same for asyncio, as a function that makes the channel.

    Call it in the event loop that uses the channel, since gRPC binds a channel to that loop.
    """
    target, proof, secured = _resolve(address, credentials)

    def channel() -> grpc.aio.Channel:
        bearers: Sequence[grpc.aio.ClientInterceptor] = ()
        if proof.token_file:
            bearers = [kind(proof.token_file) for kind in _BEARERS]
        if secured is None:
            return grpc.aio.insecure_channel(target, options=_OPTIONS, interceptors=bearers)
        return grpc.aio.secure_channel(target, secured, options=_OPTIONS, interceptors=bearers)

    return channel


def _resolve(
    address: str | None, credentials: Credentials | None
) -> tuple[str, Credentials, grpc.ChannelCredentials | None]:
    target = address_or_default(address)
    if ":" not in target or target.startswith(("http://", "https://")):
        raise ValueError(f"address: {target!r} must be host:port or unix:///path")
    if credentials is not None and not isinstance(credentials, Credentials):
        raise TypeError(f"credentials: must be Credentials, not {credentials!r:.60}")
    proof = Credentials.from_environment() if credentials is None else credentials
    return target, proof, proof.for_channel(target)


class _Details(NamedTuple):
    """The details of a call that gRPC reads."""

    method: str
    timeout: float | None
    metadata: Any
    credentials: grpc.CallCredentials | None
    wait_for_ready: bool | None
    compression: Any


class _Token:
    """Adds the token to the metadata of each call. The file is read at each call."""

    def __init__(self, token_file: str) -> None:
        self._file = token_file

    def _with_token(self, call: Any) -> Any:
        token = read_file("token_file", self._file).decode(errors="replace").strip()
        if not (token.isascii() and token.isprintable()):
            raise ValueError(f"token_file: {self._file} must hold one line of ASCII, the token")
        return _Details(
            call.method,
            call.timeout,
            grpc.aio.Metadata(*(call.metadata or ()), ("authorization", f"Bearer {token}")),
            call.credentials,
            call.wait_for_ready,
            getattr(call, "compression", None),
        )


class _Bearer(
    _Token,
    grpc.UnaryUnaryClientInterceptor,
    grpc.UnaryStreamClientInterceptor,
    grpc.StreamUnaryClientInterceptor,
    grpc.StreamStreamClientInterceptor,
):
    def _intercept(self, continuation: Callable[[Any, Any], Any], call: Any, request: Any) -> Any:
        return continuation(self._with_token(call), request)

    intercept_unary_unary: Any = _intercept
    intercept_unary_stream: Any = _intercept
    intercept_stream_unary: Any = _intercept
    intercept_stream_stream: Any = _intercept


class _AsyncBearer(_Token):
    async def _intercept(
        self, continuation: Callable[[Any, Any], Any], call: Any, request: Any
    ) -> Any:
        return await continuation(self._with_token(call), request)


class _UnaryUnary(_AsyncBearer, grpc.aio.UnaryUnaryClientInterceptor):
    intercept_unary_unary: Any = _AsyncBearer._intercept


class _UnaryStream(_AsyncBearer, grpc.aio.UnaryStreamClientInterceptor):
    intercept_unary_stream: Any = _AsyncBearer._intercept


class _StreamUnary(_AsyncBearer, grpc.aio.StreamUnaryClientInterceptor):
    intercept_stream_unary: Any = _AsyncBearer._intercept


class _StreamStream(_AsyncBearer, grpc.aio.StreamStreamClientInterceptor):
    intercept_stream_stream: Any = _AsyncBearer._intercept


_BEARERS = (_UnaryUnary, _UnaryStream, _StreamUnary, _StreamStream)
