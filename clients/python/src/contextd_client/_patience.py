"""When a failed call is retried, and after how long."""

from __future__ import annotations

import os
import re
from time import monotonic

import grpc

from contextd_client.errors import from_rpc

DEFAULT = 30.0
"""For how many seconds a client retries by default."""

_VARIABLE = "CONTEXTD_PATIENCE"
_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:h|ms|m|s))+")
_PART = re.compile(r"([\d.]+)([a-z]+)")
_SECONDS = {"h": 3600.0, "m": 60.0, "s": 1.0, "ms": 0.001}

_LONGEST_TIMEOUT = 1e9
"""With a longer timeout gRPC's deadline overflows, and is in the past."""

_FIRST, _LONGEST = 0.1, 2.0
"""Seconds to wait if the daemon names none: the first, doubled up to the second."""


def patience_or_default(given: float | None) -> float:
    """The argument, or CONTEXTD_PATIENCE: seconds, or a duration such as 1m30s."""
    if given is not None:
        if isinstance(given, bool) or not isinstance(given, int | float):
            raise TypeError(f"patience: must be seconds, not {given!r}")
        if not given >= 0:
            raise ValueError(f"patience: must not be negative, is {given!r}")
        return float(given)
    text = os.environ.get(_VARIABLE, "")
    if not text:
        return DEFAULT
    duration = text + "s" if text[-1].isdecimal() else text
    if not _DURATION.fullmatch(duration):
        raise ValueError(f"{_VARIABLE}: {text!r} is neither seconds nor a duration such as 1m30s")
    return sum(float(number) * _SECONDS[unit] for number, unit in _PART.findall(duration))


def timeout_or_none(given: float | None) -> float | None:
    """Seconds for each try; None: no limit."""
    if given is None:
        return None
    if isinstance(given, bool) or not isinstance(given, int | float):
        raise TypeError(f"timeout: must be seconds, not {given!r:.60}")
    if not given > 0:
        raise ValueError(f"timeout: must be more than 0, is {given!r}")
    if given > _LONGEST_TIMEOUT:
        raise ValueError(f"timeout: must be None for no limit, is {given!r}")
    return float(given)


class Patience:
    """The time that one call may still spend on retries.

    Retries are safe: events have ids, and reports of model calls have keys. Other calls only
    read, or are refused the second time. The exception is a call that reverts the newest
    compaction: if only its answer was lost, a retry would revert the compaction before as well.
    """

    def __init__(self, seconds: float, address: str, *, unanswered: bool = True) -> None:
        """Allow retries that begin within `seconds` from now.

        Without `unanswered`, a call that got no answer is not retried.
        """
        self._seconds = seconds
        self._address = address
        self._unanswered = unanswered
        self.begin()

    def begin(self) -> None:
        """Reset the time, as after a part of an answer was received."""
        self._begun = monotonic()
        self._pause = _FIRST

    def wait(self, error: grpc.RpcError) -> float:
        """Seconds until the next try after an error. Raises the error if there is none."""
        refused = from_rpc(error, self._address)
        seconds = refused.retry_after
        if seconds is None and refused.unanswered and self._unanswered:
            seconds, self._pause = self._pause, min(2 * self._pause, _LONGEST)
        if seconds is None or monotonic() - self._begun + seconds > self._seconds:
            raise refused from error
        return seconds
