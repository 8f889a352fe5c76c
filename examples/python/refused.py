"""What a refused call says, from its google.rpc details; see docs/api-errors.md."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeVar

import grpc
from contextd.v1 import assembly_pb2
from google.rpc import error_details_pb2, status_pb2

T = TypeVar("T")


@dataclass
class Refused:
    """A failed call."""

    code: str
    message: str
    reason: str = ""
    metadata: dict[str, str] = field(default_factory=dict)
    field: str = ""
    retry_after: float | None = None
    exceeded: assembly_pb2.BudgetExceeded | None = None


def read(error: grpc.RpcError) -> Refused:
    """The details of an error."""
    out = Refused(error.code().name, error.details())
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in status_pb2.Status.FromString(value).details:
                _take(out, detail)
    return out


def patiently(call: Callable[[], T]) -> T:
    """Call again where the daemon says how long to wait, three times at most. A call that
    appends can be repeated because its events have ids."""
    left = 3
    while True:
        try:
            return call()
        except grpc.RpcError as error:
            wait = read(error).retry_after
            if wait is None or left == 0:
                raise
        left -= 1
        time.sleep(wait)


def _take(out: Refused, detail) -> None:
    info = error_details_pb2.ErrorInfo()
    request = error_details_pb2.BadRequest()
    retry = error_details_pb2.RetryInfo()
    exceeded = assembly_pb2.BudgetExceeded()
    if detail.Unpack(info):
        out.reason, out.metadata = info.reason, dict(info.metadata)
    elif detail.Unpack(request) and request.field_violations:
        out.field = request.field_violations[0].field
    elif detail.Unpack(retry):
        out.retry_after = retry.retry_delay.ToTimedelta().total_seconds()
    elif detail.Unpack(exceeded):
        out.exceeded = exceeded
