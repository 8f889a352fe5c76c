"""Reading a log, without I/O."""

from __future__ import annotations

from collections.abc import Iterable

from contextd_client._requests import checked
from contextd_client.v1.event_pb2 import Event
from contextd_client.v1.log_pb2 import ReadEventsRequest, ReadEventsResponse


class Reading:
    """A read of a range of a log. If its stream breaks, it continues after the last event.

    The daemon refuses that if the log no longer has the events that were read.
    """

    def __init__(self, session_id: str, from_seq: int, to_seq: int) -> None:
        self.request = checked(
            ReadEventsRequest, session_id=session_id, from_seq=from_seq, to_seq=to_seq
        )
        self._last = 0

    def take(self, part: ReadEventsResponse) -> Iterable[Event]:
        """The events of the next part of the stream."""
        for event in part.events:
            self._last = event.seq
            self.request.from_seq = event.seq + 1
            yield event
        if part.incarnation and part.events:
            self.request.known.incarnation = part.incarnation
            self.request.known.head_seq = part.events[-1].seq
            self.request.known.chain_head = part.chain_head

    @property
    def done(self) -> bool:
        """Whether the last event of the range was received."""
        return self._last == self.request.to_seq > 0
