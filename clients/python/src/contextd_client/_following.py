"""Watching sessions, without I/O."""

from __future__ import annotations

from collections.abc import Iterable

from contextd_client._requests import checked
from contextd_client.v1.lifecycle_pb2 import (
    LifecycleCursor,
    LifecycleEvent,
    WatchLifecycleRequest,
)


class Following:
    """A watch. If its stream breaks, it continues after the newest event of each named session."""

    def __init__(self, session_ids: Iterable[str], after: Iterable[LifecycleCursor]) -> None:
        self.request = checked(WatchLifecycleRequest, session_ids=session_ids, after=after)
        self._cursors = {cursor.session_id: cursor for cursor in self.request.after}
        self._named = {*self.request.session_ids, *self._cursors}

    def take(self, event: LifecycleEvent) -> LifecycleEvent:
        """Remember an event."""
        if event.number and event.session_id in self._named:
            if event.session_id not in self._cursors:
                self._cursors[event.session_id] = self.request.after.add()
            newest = LifecycleCursor(
                session_id=event.session_id,
                number=event.number,
                incarnation=event.incarnation,
                time=event.time if event.HasField("time") else None,
            )
            self._cursors[event.session_id].CopyFrom(newest)
        return event
