"""The threads of graphs, kept in the logs of sessions."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TypeVar

from contextd_client._names import (
    SEARCHED,
    WRITERS,
    Diverged,
    OvertakenError,
    session_name,
    settings_of,
    version_name,
)
from contextd_client.client import Client
from contextd_client.errors import (
    AlreadyExistsError,
    HeadMismatchError,
    HistoryDivergedError,
    LogLostError,
    NotFoundError,
)
from contextd_client.v1.event_pb2 import Event

_THREADS = 1024

T = TypeVar("T")


class _Log:
    """The messages of a graph that are in a log."""

    def __init__(self, stored: Sequence[Event]) -> None:
        self.head = 0
        self.ids = [event.event_id for event in stored]
        self.seqs: dict[str, int] = {}
        self._digests: dict[str, bytes] = {}
        for event in stored:
            self.add(event, event.seq)

    def add(self, event: Event, seq: int) -> None:
        """Remember an event of the log. Events other than messages may be from others."""
        self.head = max(self.head, seq)
        if event.HasField("message"):
            self.seqs[event.event_id] = seq
            self._digests[event.event_id] = _digest(event)

    def find(self, events: Sequence[Event]) -> tuple[bool, int, int]:
        """Whether a state continues the log, up to which event it does, and the seq of that event.

        The state may lack old messages, but not the newest.
        """
        seen = end = 0
        for place, event in enumerate(events):
            seq = self.seqs.get(event.event_id)
            if seq is None:
                continue
            if _digest(event) != self._digests[event.event_id]:
                return False, place, seen
            seen, end = seq, place + 1
        return all(seq <= seen for seq in self.seqs.values()), end, seen

    def cut(self, seq: int) -> _Log:
        """The log of a fork."""
        out = _Log([])
        out.head = seq
        out.seqs = {name: at for name, at in self.seqs.items() if at <= seq}
        out._digests = {name: self._digests[name] for name in out.seqs}
        return out


def _digest(event: Event) -> bytes:
    return hashlib.sha256(event.message.SerializeToString(deterministic=True)).digest()


class _Thread:
    """A session, its successors `name/v2`, `name/v3` and so on, and which is in use."""

    def __init__(self, name: str) -> None:
        self.lock = threading.Lock()
        self.version = 0
        self.newest = 1
        self.logs: dict[int, _Log] = {}
        self._name = session_name(name)

    @property
    def session(self) -> str:
        """The name of the session in use."""
        return self.name(self.version)

    @property
    def log(self) -> _Log:
        """The log in use."""
        return self.logs[self.version]

    def name(self, version: int) -> str:
        """Name of a version."""
        return version_name(self._name, version)


class Threads:
    """Appends what is new in the states of graphs. Safe for use by several threads.

    Calls for one session wait for one another. Beyond 1,024 sessions, the least recently used one
    is read again from its log.
    """

    def __init__(self, client: Client, diverged: Diverged) -> None:
        self._client = client
        self._diverged = diverged
        self._threads: OrderedDict[str, _Thread] = OrderedDict()
        self._lock = threading.Lock()

    def follow(self, name: str, events: Sequence[Event], then: Callable[[str], T]) -> T:
        """Append what the log lacks, and return the result of `then` for the session."""
        thread = self._thread(name)
        with thread.lock:
            try:
                self._follow(thread, events)
                return then(thread.session)
            except LogLostError as lost:
                self._append_again(thread, events, lost)
                return then(thread.session)

    def _thread(self, name: str) -> _Thread:
        with self._lock:
            if name not in self._threads:
                self._threads[name] = _Thread(name)
            self._threads.move_to_end(name)
            while len(self._threads) > _THREADS:
                self._threads.popitem(last=False)
            return self._threads[name]

    def _follow(self, thread: _Thread, events: Sequence[Event]) -> None:
        for _ in range(WRITERS):
            fits, end, seq = self._find(thread, events)
            try:
                if not fits:
                    self._fork(thread, end, seq)
                self._append(thread, events[end:])
            except OvertakenError:
                continue
            return
        raise RuntimeError(f"{thread.session}: other writers append faster than this one")

    def _find(self, thread: _Thread, events: Sequence[Event]) -> tuple[bool, int, int]:
        """Choose the version that a state continues, or else the one with the most of the state."""
        if thread.version in thread.logs:
            found = thread.log.find(events)
            if found[0]:
                return found
        while self._exists(thread.name(thread.newest + 1)):
            thread.newest += 1
        best = (False, 0, -1)
        for version in range(thread.newest, max(thread.newest - SEARCHED, 0), -1):
            if version not in thread.logs:
                thread.logs[version] = _Log(self._stored(thread.name(version)))
            found = thread.logs[version].find(events)
            if found[2] > best[2] or found[0] > best[0]:
                thread.version, best = version, found
            if found[0] and found[2]:
                break
        return best

    def _exists(self, session: str) -> bool:
        try:
            self._client.get_session(session)
        except NotFoundError:
            return False
        return True

    def _fork(self, thread: _Thread, place: int, seq: int) -> None:
        if self._diverged == "raise":
            raise HistoryDivergedError(thread.session, place, seq)
        log, following = thread.log.cut(seq), thread.name(thread.newest + 1)
        try:
            if seq:
                self._client.fork_session(thread.session, following, at_seq=seq)
            else:
                before = self._client.get_session(thread.session)
                self._client.create_session(following, **settings_of(before))
        except AlreadyExistsError as error:
            raise OvertakenError from error
        except NotFoundError as error:  # of a log that was lost
            thread.logs.clear()
            thread.newest = 1
            raise OvertakenError from error
        thread.newest += 1
        thread.version = thread.newest
        thread.logs[thread.version] = log
        thread.logs.pop(thread.version - SEARCHED, None)

    def _append(self, thread: _Thread, new: Sequence[Event]) -> None:
        if not new:
            return
        try:
            done = self._client.append(thread.session, *new, expected_head=thread.log.head)
        except (HeadMismatchError, AlreadyExistsError) as error:
            del thread.logs[thread.version]
            raise OvertakenError from error
        for event, receipt in zip(new, done.receipts, strict=True):
            thread.log.add(event, receipt.seq)

    def _append_again(self, thread: _Thread, events: Sequence[Event], lost: LogLostError) -> None:
        """Append what a lost log lacks; others may have begun to append it again."""
        ids = [event.event_id for event in events]
        known = thread.log.seqs.keys()
        stored = self._stored(thread.session)
        if not known <= set(ids) or [e.event_id for e in stored] != ids[: len(stored)]:
            raise lost
        self._client.forget_session(thread.session)
        thread.logs = {thread.version: _Log(stored)}
        self._follow(thread, events)

    def _stored(self, session: str) -> list[Event]:
        try:
            return list(self._client.read_events(session))
        except NotFoundError:
            return []
