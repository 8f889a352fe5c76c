"""A conversation that a framework holds whole, kept in the log of a session."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from typing import Any, Literal

from google.protobuf.json_format import MessageToDict

from contextd_client import _rawjson, events
from contextd_client._formats import FormatName
from contextd_client._usage import Usage
from contextd_client.aio import Client
from contextd_client.context import Context
from contextd_client.errors import (
    AlreadyExistsError,
    ContextdError,
    HeadMismatchError,
    HistoryDivergedError,
    LogLostError,
    NotFoundError,
)
from contextd_client.v1.budget_pb2 import Budget
from contextd_client.v1.event_pb2 import Event
from contextd_client.v1.policy_pb2 import Policy

logger = logging.getLogger("contextd_client")

Diverged = Literal["raise", "fork"]
"""What to do where a history does not continue the log: raise HistoryDivergedError, or go on
in a fork of the session, which shares the log up to there."""

_PREFIX = "history:"
_WRITERS = 8


class Versions:
    """A session and its successors: `name`, `name/v2`, `name/v3` and so on.

    The one with the highest number is current, for every process.
    """

    def __init__(self, client: Client, name: str) -> None:
        if not isinstance(client, Client):
            raise TypeError(f"client: must be contextd_client.aio.Client, not {client!r:.60}")
        self._client = client
        self._name = name
        self.newest = 1

    async def current(self) -> str:
        """Name of the current version."""
        while await self._exists(self.newest + 1):
            self.newest += 1
        return self.name(self.newest)

    def name(self, version: int) -> str:
        """Name of a version."""
        return self._name if version == 1 else f"{self._name}/v{version}"

    async def go_on_from(self, current: str, seq: int) -> str:
        """Make the next version: a fork of the current one at seq; 0: an empty session."""
        following = self.name(self.newest + 1)
        try:
            if seq > 0:
                await self._client.fork_session(current, following, at_seq=seq)
            else:
                before = await self._client.get_session(current)
                await self._client.create_session(
                    following,
                    budget=before.budget if before.HasField("budget") else None,
                    policy=before.policy if before.HasField("policy") else None,
                    labels=dict(before.labels),
                )
        except AlreadyExistsError as error:
            raise RuntimeError(f"somebody else writes to the session {self._name}") from error
        self.newest += 1
        return following

    async def _exists(self, version: int) -> bool:
        try:
            await self._client.get_session(self.name(version))
        except NotFoundError:
            return False
        return True


class Conversation:
    """Appends the new part of a history at each model call, and assembles.

    The id of each event is a hash of it and all before it. So a new process with the same
    history appends nothing twice, and a history that was edited, pruned or rewound is
    detected. If the log was lost, the whole history is appended again. Events that others
    append to the session are ignored.
    """

    def __init__(
        self,
        client: Client,
        session_id: str,
        format: FormatName,
        *,
        budget: Budget | None = None,
        policy: Policy | None = None,
        diverged: Diverged = "raise",
    ) -> None:
        """budget, policy: of the contexts. None: the daemon's defaults."""
        self._client = client
        self._format = format
        self._budget = budget
        self._policy = policy
        self._diverged = diverged
        self._versions = Versions(client, session_id)
        self._session = ""
        self._known: list[tuple[str, int]] = []  # id and seq of each event of the history
        self._head = 0
        self._overhead = ("", 0)
        self._lock = asyncio.Lock()

    async def context(
        self, history: Sequence[Event], *, system: str = "", tools: Sequence[Any] = ()
    ) -> Context:
        """The context of the next model call.

        history: all events so far; they are given ids.
        system, tools: what the request has besides the messages; the budget leaves room for it.
        """
        async with self._lock:
            budget = await self._room_for(system, tools)
            new = _answering(history)
            _chain(new)
            try:
                await self._follow(new)
                return await self._assemble(budget)
            except LogLostError as lost:
                await self._begin_again(new, lost)
                return await self._assemble(budget)

    async def record(self, context: Context, usage: Usage) -> None:
        """Report the provider's token counts. A failure is logged, and fails no model call."""
        try:
            await self._client.record_model_call(context, usage=usage)
        except ContextdError as error:
            logger.warning("the model call of %s was not recorded: %s", context.session_id, error)

    async def _assemble(self, budget: Budget | None) -> Context:
        return await self._client.assemble(
            self._session, self._format, budget=budget, policy=self._policy
        )

    async def _room_for(self, system: str, tools: Sequence[Any]) -> Budget | None:
        if not system and not tools:
            return self._budget
        budget = Budget()
        if self._budget is not None:
            budget.CopyFrom(self._budget)
        schemas = _rawjson.dumps(tools) if tools else ""
        key = f"{system}\0{schemas}"
        if self._overhead[0] != key:
            tokens = await self._client.count_tokens(
                system, model=budget.model, tools_json=schemas.encode(), format=self._format
            )
            self._overhead = (key, tokens)
        budget.overhead_tokens += self._overhead[1]
        return budget

    async def _follow(self, history: Sequence[Event]) -> None:
        if not self._session:
            await self._learn()
        for _ in range(_WRITERS):
            same = 0
            for (known, _seq), event in zip(self._known, history, strict=False):
                if known != event.event_id:
                    break
                same += 1
            if same < len(self._known):
                await self._diverge(same)
            try:
                await self._append(history[same:])
            except HeadMismatchError:
                await self._learn()  # another writer was faster
            else:
                return
        raise RuntimeError(f"{self._session}: other writers append faster than this one")

    async def _learn(self) -> list[str]:
        """Read the log: find the events that belong to the history. Returns their ids."""
        self._session = await self._versions.current()
        self._known = []
        self._head = 0
        ids: list[str] = []
        try:
            async for event in self._client.read_events(self._session):
                ids.append(event.event_id)
                self._head = event.seq
                if event.event_id.startswith(_PREFIX):
                    self._known.append((event.event_id, event.seq))
        except NotFoundError:
            pass
        return ids

    async def _diverge(self, same: int) -> None:
        seq = self._known[same - 1][1] if same else 0
        if self._diverged == "raise":
            raise HistoryDivergedError(self._session, same, seq)
        self._session = await self._versions.go_on_from(self._session, seq)
        self._known = self._known[:same]
        self._head = seq

    async def _append(self, new: Sequence[Event]) -> None:
        if not new:
            return
        done = await self._client.append(self._session, *new, expected_head=self._head)
        self._known += [(r.event_id, r.seq) for r in done.receipts]
        self._head = self._known[-1][1]

    async def _begin_again(self, history: Sequence[Event], lost: LogLostError) -> None:
        """Append all of a history whose log was lost, unless the log has another conversation."""
        lost_session = self._session
        stored = await self._learn()
        if stored != [event.event_id for event in history][: len(stored)]:
            raise lost
        self._client.forget_session(lost_session)
        await self._follow(history)


def _answering(given: Sequence[Event]) -> list[Event]:
    """The events, with results that answer no open call made into custom events.

    Providers and the log refuse such results; no model sees a custom event.
    """
    out: list[Event] = []
    waiting: set[str] = set()
    for event in given:
        orphans = []
        for block in list(event.message.blocks):
            waiting.add(block.tool_call.call_id)
            if block.HasField("tool_result") and block.tool_result.call_id not in waiting:
                orphans.append(events.custom("orphan_result", MessageToDict(block)))
                event.message.blocks.remove(block)
            waiting.discard(block.tool_result.call_id)
        out += orphans if orphans and not event.message.blocks else [event, *orphans]
    return out


def _chain(history: Sequence[Event]) -> None:
    before = b""
    for event in history:
        event.ClearField("event_id")
        said = event.SerializeToString(deterministic=True)
        before = hashlib.sha256(before + said).digest()
        event.event_id = _PREFIX + before.hex()
