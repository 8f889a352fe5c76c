"""When a call is tried again, and after how long."""

from __future__ import annotations

import grpc

from contextd_client.errors import ApiError, from_rpc

_FIRST, _LONGEST = 0.1, 2.0
"""Seconds to wait where nobody says how long."""


class Patience:
    """What one call still waits for.

    A call can be repeated because events have ids; what does not append only reads, or is
    refused the second time.
    """

    def __init__(self, retries: int, timeout: float | None) -> None:
        """Wait `retries` times at most, and no time longer than `timeout` seconds."""
        self._left = retries
        self._timeout = timeout
        self._backoff = _FIRST

    def wait(self, error: grpc.RpcError) -> float:
        """Seconds until the next try after an error. Raises it where there is to be none."""
        refused = from_rpc(error)
        seconds = refused.retry_after
        if seconds is None and _never_arrived(refused):
            seconds, self._backoff = self._backoff, min(2 * self._backoff, _LONGEST)
        if seconds is None or self._left <= 0 or self._too_long(seconds):
            raise refused from error
        self._left -= 1
        return seconds

    def _too_long(self, seconds: float) -> bool:
        return self._timeout is not None and seconds > self._timeout


def _never_arrived(refused: ApiError) -> bool:
    """No daemon answered, which would have given a reason."""
    return refused.code is grpc.StatusCode.UNAVAILABLE and not refused.reason
