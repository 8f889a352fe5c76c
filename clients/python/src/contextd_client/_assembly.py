"""Assemblies without I/O: what to request, and how to read the answer."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from contextd_client import _formats
from contextd_client._formats import FormatName
from contextd_client._requests import checked
from contextd_client.context import Context, hash_lines
from contextd_client.errors import IntegrityError, StreamError
from contextd_client.v1.assembly_pb2 import (
    AssembleContextRequest,
    AssembleContextResponse,
    ContextHeader,
    ContextTrailer,
    Have,
    Injection,
    ProjectTranscriptRequest,
    ProjectTranscriptResponse,
)
from contextd_client.v1.budget_pb2 import Budget
from contextd_client.v1.event_pb2 import Event
from contextd_client.v1.policy_pb2 import Policy
from contextd_client.v1.session_pb2 import LogMark


class Held:
    """A cache of the newest context of each session and format, so that only new messages are sent.

    Safe for use by several threads. Beyond `limit` contexts, the least recently used one is
    evicted; its next assembly requests all messages.
    """

    def __init__(self, limit: int) -> None:
        if isinstance(limit, bool) or not isinstance(limit, int):
            raise TypeError(f"held_contexts: must be a number, not {limit!r:.60}")
        if limit < 0:
            raise ValueError(f"held_contexts: must not be negative, is {limit}")
        self._limit = limit
        self._contexts: OrderedDict[tuple[str, FormatName], Context] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, session_id: str, format: FormatName) -> Context | None:
        """The newest context, or None."""
        with self._lock:
            context = self._contexts.get((session_id, format))
            if context is not None:
                self._contexts.move_to_end((session_id, format))
            return context

    def put(self, context: Context) -> None:
        """Replace the held context of the same session and format."""
        with self._lock:
            key = (context.session_id, context.format)
            self._contexts[key] = context
            self._contexts.move_to_end(key)
            while len(self._contexts) > self._limit:
                self._contexts.popitem(last=False)

    def forget(self, session_id: str, format: FormatName | None = None) -> None:
        """Forget one format of a session, or all."""
        with self._lock:
            for key in list(self._contexts):
                if key[0] == session_id and format in (None, key[1]):
                    del self._contexts[key]


@dataclass(frozen=True)
class Assembly:
    """An assembly in progress: the request, and the held context that its answer continues."""

    store: Held
    held: Context | None
    request: AssembleContextRequest
    format: FormatName

    @classmethod
    def begin(
        cls,
        store: Held,
        session_id: str,
        format: FormatName,
        budget: Budget | None,
        policy: Policy | None,
        injections: Iterable[Injection],
        as_of_seq: int | None,
        preview: bool,
        idempotency_key: str,
        projection: bool,
        known: LogMark | None,
    ) -> Assembly:
        """An assembly that requests only the messages that are not in `store`."""
        if not isinstance(projection, bool):
            raise TypeError(f"projection: must be bool, not {projection!r:.60}")
        request = checked(
            AssembleContextRequest,
            session_id=session_id,
            budget=budget,
            policy=policy,
            format=_formats.number(format),
            injections=injections,
            as_of_seq=as_of_seq,
            preview=preview,
            idempotency_key=idempotency_key,
            brief=not projection,
            known=known,
        )
        held = store.get(session_id, format)
        if held is not None:
            count = held.header.prefix_messages
            prefix_hash = hash_lines(held.lines[:count])
            request.have.CopyFrom(Have(message_count=count, prefix_hash=prefix_hash))
        return cls(store, held, request, format)

    def finish(self, parts: Sequence[AssembleContextResponse]) -> Context:
        """The context of an answer, which replaces the held one.

        Raises IntegrityError if its hash is wrong, and StreamError if its parts are; then the
        next assembly requests all messages.
        """
        try:
            context = read(parts, self.request.session_id, self.format, self.held)
        except (IntegrityError, StreamError):
            self.store.forget(self.request.session_id, self.format)
            raise
        if not self.request.HasField("as_of_seq"):
            self.store.put(context)
        return context


def project_request(
    events: Iterable[Event],
    format: FormatName,
    budget: Budget | None,
    policy: Policy | None,
    injections: Iterable[Injection],
) -> ProjectTranscriptRequest:
    """The request for the context of events that are not in a log."""
    return checked(
        ProjectTranscriptRequest,
        events=events,
        budget=budget,
        policy=policy,
        format=_formats.number(format),
        injections=injections,
    )


def read(
    parts: Sequence[AssembleContextResponse] | Sequence[ProjectTranscriptResponse],
    session_id: str,
    format: FormatName,
    held: Context | None = None,
) -> Context:
    """The context of an answer, completed by the messages that are held."""
    kinds = [part.WhichOneof("part") for part in parts]
    if len(kinds) < 2 or kinds != ["header", *["chunk"] * (len(kinds) - 2), "trailer"]:
        raise StreamError(f"the stream of a context has the parts {kinds}")
    header, trailer = parts[0].header, parts[-1].trailer
    messages = [message for part in parts for message in part.chunk.messages]
    kept = _kept(header, held)
    for place, message in enumerate(messages, len(kept)):
        if message.index != place:
            raise StreamError(f"message {message.index} came at place {place}")
    lines = (*kept, *(m.json for m in messages))
    _verify(header, trailer, lines)
    if kept and held is not None:
        system_first = held.system_first
    else:
        system_first = bool(messages) and messages[0].system
    return Context(
        session_id=session_id,
        format=format,
        header=header,
        lines=lines,
        sent=len(messages),
        system_first=system_first and format in _formats.SYSTEM_BESIDE,
    )


def _kept(header: ContextHeader, held: Context | None) -> Sequence[bytes]:
    said = 0 if held is None else held.header.prefix_messages
    skipped = header.skipped_messages
    if skipped > said:
        raise StreamError(f"{skipped} messages were skipped; {said} are held")
    if skipped < said and not header.HasField("have_broken"):
        raise StreamError(f"{skipped} of {said} messages were skipped, and nothing says why")
    return () if held is None else held.lines[:skipped]


def _verify(header: ContextHeader, trailer: ContextTrailer, lines: Sequence[bytes]) -> None:
    if not header.message_count == trailer.message_count == len(lines):
        raise IntegrityError(
            f"{len(lines)} messages; the header says {header.message_count}, "
            f"the trailer {trailer.message_count}"
        )
    own = hash_lines(lines)
    if not header.context_hash == trailer.context_hash == own:
        raise IntegrityError(
            f"the messages hash to {own}; the header says {header.context_hash}, "
            f"the trailer {trailer.context_hash}"
        )
    if header.prefix_messages == header.message_count and header.prefix_hash != own:
        raise IntegrityError(f"prefix_hash is {header.prefix_hash}; the messages hash to {own}")
