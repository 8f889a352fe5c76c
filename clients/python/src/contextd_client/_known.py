"""The positions of the logs that a client appended to."""

from __future__ import annotations

import threading
from collections import OrderedDict

from contextd_client.v1.log_pb2 import AppendEventsResponse
from contextd_client.v1.session_pb2 import LogMark, Session

_SESSIONS = 1 << 16


def check_id(session_id: str) -> None:
    """Raises TypeError if it is not a string, since other values may not be hashable."""
    if not isinstance(session_id, str):
        raise TypeError(f"session_id: must be str, not {session_id!r:.60}")


class Known:
    """The newest mark of each session, to detect a log that was lost.

    Safe for use by several threads. Beyond 65,536 sessions, the least recently used one is
    evicted.
    """

    def __init__(self) -> None:
        self._marks: OrderedDict[str, LogMark] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, session_id: str) -> LogMark | None:
        """The newest mark of a log; None if it is not known."""
        check_id(session_id)
        with self._lock:
            return self._marks.get(session_id)

    def appended(self, session_id: str, response: AppendEventsResponse) -> None:
        """Update from the answer to an append."""
        if response.HasField("mark"):
            self._learn(session_id, response.mark)

    def made(self, session: Session) -> None:
        """Update from a session that was created."""
        if session.incarnation:
            mark = LogMark(
                incarnation=session.incarnation,
                head_seq=session.head_seq,
                chain_head=session.chain_head,
            )
            self._learn(session.session_id, mark)

    def forget(self, session_id: str) -> None:
        """Forget the mark: accept the log as it is now."""
        check_id(session_id)
        with self._lock:
            self._marks.pop(session_id, None)

    def _learn(self, session_id: str, mark: LogMark) -> None:
        with self._lock:
            before = self._marks.get(session_id)
            newer = before is None or before.incarnation != mark.incarnation
            if newer or (before is not None and before.head_seq < mark.head_seq):
                self._marks[session_id] = mark
            self._marks.move_to_end(session_id)
            while len(self._marks) > _SESSIONS:
                self._marks.popitem(last=False)
