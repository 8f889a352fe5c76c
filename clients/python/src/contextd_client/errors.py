"""The errors of the API, with the fields of their google.rpc details."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import grpc
from google.rpc import error_details_pb2, status_pb2

from contextd_client.v1.assembly_pb2 import BudgetExceeded


@dataclass(frozen=True)
class FieldViolation:
    """A field of the request that breaks a rule."""

    field: str
    """Its path, such as events[2].message.blocks[0].tool_call.arguments_json."""
    description: str


@dataclass(frozen=True)
class IrreduciblePart:
    """A part of a context that no reducer may shorten."""

    what: str
    """What it is, in words."""
    seq: int
    """The event it is in; 0: in none."""
    tokens: int


class ContextdError(Exception):
    """The base of all errors of contextd and its client. Catch its subclasses."""


class IntegrityError(ContextdError):
    """The received context does not match the daemon's hash.

    The client drops its held context, so the next assembly requests all of it.
    """


class StreamError(ContextdError):
    """A stream ended before everything was sent, or its parts do not fit together.

    The client drops its held context, so the next assembly requests all of it.
    """


class HistoryDivergedError(ContextdError):
    """A framework's history does not continue the session's log.

    A part that the log already has was edited, dropped or rewound in the history. A log is never
    edited: fork the session at `seq` (0: begin another session), or let the adapter do so.
    """

    def __init__(self, session_id: str, index: int, seq: int) -> None:
        at = f"fork the session at seq {seq}" if seq else "take another session"
        super().__init__(
            f"entry {index} of the history is not what the log of {session_id} has in its place. "
            f'A log is never edited: {at}, or give the adapter diverged="fork". '
            "Conversations of their own, as that of an agent in a tool, need a session each"
        )
        self.session_id = session_id
        self.index = index
        """The first entry of the history that differs; a message may be several entries."""
        self.seq = seq
        """The newest event that they have in common; 0: none."""


@dataclass(eq=False)
class ApiError(ContextdError):
    """A call that the daemon, or gRPC on the way to it, refused."""

    code: grpc.StatusCode
    message: str
    reason: str = ""
    """ErrorInfo's word, such as INVALID_FIELD; empty if the error is gRPC's own."""
    metadata: dict[str, str] = field(default_factory=dict)
    violations: tuple[FieldViolation, ...] = ()
    resource_type: str = ""
    resource_name: str = ""
    retry_after: float | None = None
    """Seconds after which trying again may help; None if it does not, or the time is unknown."""

    def __str__(self) -> str:
        return f"{self.code.name}: {self.message}"

    @property
    def unanswered(self) -> bool:
        """Whether no daemon answered: a daemon's error would have a reason."""
        return self.code is grpc.StatusCode.UNAVAILABLE and not self.reason

    @property
    def field(self) -> str:
        """The first invalid field; empty if none is named."""
        return self.violations[0].field if self.violations else ""

    def _number(self, name: str) -> int:
        text = self.metadata.get(name, "")
        return int(text) if text.isdecimal() else 0


class InvalidArgumentError(ApiError):
    """A field breaks a rule of the API; `field` names it."""


class NotFoundError(ApiError):
    """There is no such session, event, projection or pointer; `resource_name` says which."""


class AlreadyExistsError(ApiError):
    """The session's id is taken, or an event's id belongs to an event with other content."""

    @property
    def seq(self) -> int:
        """The seq of the event with that id; 0: in the same batch, or it is not an event."""
        return self._number("seq")


class HeadMismatchError(ApiError):
    """`expected_head` is not the newest seq."""

    @property
    def head_seq(self) -> int:
        """The newest seq: read the log up to it, and repeat the call."""
        return self._number("head_seq")


class FailedPreconditionError(ApiError):
    """A precondition of the request is not met."""


class LogLostError(FailedPreconditionError):
    """The log is no longer the one that this client appended to or read.

    It is gone, shorter, of another session with the same id, or has other events in their place:
    the daemon's store was lost or restored, or somebody deleted the session. Nothing was appended.
    If you have the whole conversation, call the client's `forget_session` and append all of it
    again.
    """

    @property
    def known_seq(self) -> int:
        """The newest event that the client knows of."""
        return self._number("known_seq")

    @property
    def head_seq(self) -> int:
        """The newest event of the present log; 0: there is none."""
        return self._number("head_seq")


@dataclass(eq=False)
class BudgetExceededError(FailedPreconditionError):
    """The context cannot be made to fit its budget."""

    target_tokens: int = 0
    needed_tokens: int = 0
    parts: tuple[IrreduciblePart, ...] = ()
    """What cannot be reduced, largest first."""


class InjectionOverReserveError(FailedPreconditionError):
    """An injection is larger than its reserve."""

    @property
    def injection(self) -> str:
        """The injection's name."""
        return self.metadata.get("injection", "")

    @property
    def tokens(self) -> int:
        """Its size."""
        return self._number("tokens")

    @property
    def reserve_tokens(self) -> int:
        """The size of its reserve."""
        return self._number("reserve_tokens")


class LimitExceededError(ApiError):
    """The request exceeds a limit of the daemon; `metadata` has setting, limit and actual."""


class UnavailableError(ApiError):
    """The daemon cannot be reached, is shutting down, or its store failed."""


class DataLossError(ApiError):
    """Stored data is damaged."""


class NotImplementedByDaemonError(ApiError):
    """This release of the daemon does not implement the call."""


_BY_CODE: dict[grpc.StatusCode, type[ApiError]] = {
    grpc.StatusCode.INVALID_ARGUMENT: InvalidArgumentError,
    grpc.StatusCode.NOT_FOUND: NotFoundError,
    grpc.StatusCode.ALREADY_EXISTS: AlreadyExistsError,
    grpc.StatusCode.ABORTED: HeadMismatchError,
    grpc.StatusCode.FAILED_PRECONDITION: FailedPreconditionError,
    grpc.StatusCode.RESOURCE_EXHAUSTED: LimitExceededError,
    grpc.StatusCode.UNAVAILABLE: UnavailableError,
    grpc.StatusCode.DATA_LOSS: DataLossError,
    grpc.StatusCode.UNIMPLEMENTED: NotImplementedByDaemonError,
}


def from_rpc(error: grpc.RpcError, address: str) -> ApiError:
    """The error of a failed call to an address, of the sync or the asyncio API of gRPC."""
    call: Any = error
    code = call.code() or grpc.StatusCode.UNKNOWN
    fields: dict[str, Any] = {"code": code, "message": call.details() or ""}
    kind = _BY_CODE.get(code, ApiError)
    for detail in _details(call.trailing_metadata()):
        kind = _read(detail, fields, kind)
    made = kind(**fields)
    if made.unanswered:
        made.message = unanswered_message(address, made.message)
    return made


def unanswered_message(address: str, cause: str) -> str:
    """Why no daemon answered at an address, and what to do."""
    if address.startswith("unix:") and "permission denied" in cause.lower():
        return (
            f"no permission to connect to {address} ({cause}): "
            "call as the socket's owner, or have the daemon admit others by unix_socket_mode"
        )
    connecting = "handshake failed" in cause or (
        "failed to connect" in cause and "Socket closed" in cause
    )
    if connecting and not address.startswith("unix:"):
        return (
            f"no connection with {address} ({cause}): if the daemon there speaks TLS, "
            "CONTEXTD_CA must name the authority of its certificate; "
            "if it does not, it must be empty"
        )
    # The daemon refuses a certificate after the client's handshake has ended. gRPC writes the
    # reason to stderr only.
    if "Unwrap failed" in cause:
        return (
            f"no connection with {address} ({cause}): CONTEXTD_CERT and CONTEXTD_KEY must be a "
            "certificate for clients that is valid now, of an authority in the daemon's "
            "tls_client_ca; the daemon's log says what is wrong"
        )
    return (
        f"no daemon answers at {address} ({cause}): "
        'start one with "contextd serve", or set CONTEXTD_ADDR'
    )


def _details(trailer: Sequence[tuple[str, str | bytes]] | None) -> Sequence[Any]:
    for key, value in trailer or ():
        if key == "grpc-status-details-bin" and isinstance(value, bytes):
            details: Sequence[Any] = status_pb2.Status.FromString(value).details
            return details
    return ()


def _read(detail: Any, fields: dict[str, Any], kind: type[ApiError]) -> type[ApiError]:
    info = error_details_pb2.ErrorInfo()
    request = error_details_pb2.BadRequest()
    resource = error_details_pb2.ResourceInfo()
    retry = error_details_pb2.RetryInfo()
    exceeded = BudgetExceeded()
    if detail.Unpack(info):
        fields.update(reason=info.reason, metadata=dict(info.metadata))
        if info.reason == "INJECTION_OVER_RESERVE":
            return InjectionOverReserveError
        if info.reason == "LOG_LOST":
            return LogLostError
        if info.reason == "BUDGET_EXCEEDED":
            return BudgetExceededError
    elif detail.Unpack(request):
        fields["violations"] = tuple(
            FieldViolation(v.field, v.description) for v in request.field_violations
        )
    elif detail.Unpack(resource):
        fields.update(resource_type=resource.resource_type, resource_name=resource.resource_name)
    elif detail.Unpack(retry):
        fields["retry_after"] = retry.retry_delay.ToTimedelta().total_seconds()
    elif detail.Unpack(exceeded):
        fields.update(
            target_tokens=exceeded.target_tokens,
            needed_tokens=exceeded.needed_tokens,
            parts=tuple(IrreduciblePart(p.what, p.seq, p.tokens) for p in exceeded.parts),
        )
        return BudgetExceededError
    return kind
