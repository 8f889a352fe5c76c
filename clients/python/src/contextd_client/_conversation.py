"""A conversation of which the framework has the whole history, kept in a session's log."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections.abc import Sequence
from typing import Any

from google.protobuf.json_format import MessageToDict

from contextd_client import _rawjson, events
from contextd_client._formats import FormatName
from contextd_client._names import (
    SEARCHED,
    WRITERS,
    Diverged,
    OvertakenError,
    session_name,
    settings_of,
    version_name,
)
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

_PREFIX = "history:"


class Versions:
    """A session and its successors: `name`, `name/v2`, `name/v3` and so on."""

    def __init__(self, client: Client, name: str) -> None:
        """name: its id, or one of a framework; see session_name."""
        if not isinstance(client, Client):
            raise TypeError(f"client: must be contextd_client.aio.Client, not {client!r:.60}")
        self._client = client
        self._name = session_name(name)
        self.newest = 1

    async def current(self) -> str:
        """Name of the version with the highest number, which is the same for every process."""
        while await self._exists(self.newest + 1):
            self.newest += 1
        return self.name(self.newest)

    def name(self, version: int) -> str:
        """Name of a version."""
        return version_name(self._name, version)

    async def go_on_from(self, version: str, seq: int) -> str:
        """Make the next version: a fork of another at seq; 0: an empty session.

        Raises AlreadyExistsError if another process did.
        """
        following = self.name(self.newest + 1)
        if seq > 0:
            await self._client.fork_session(version, following, at_seq=seq)
        else:
            before = await self._client.get_session(version)
            await self._client.create_session(following, **settings_of(before))
        self.newest += 1
        return following

    async def _exists(self, version: int) -> bool:
        try:
            await self._client.get_session(self.name(version))
        except NotFoundError:
            return False
        return True


class _Log:
    """The part of a history that the log of one version has."""

    def __init__(self) -> None:
        self.known: list[tuple[str, int]] = []  # id and seq of each event of the history
        self.head = 0

    def shared(self, history: Sequence[Event]) -> int:
        """How many leading events of a history the log has."""
        same = 0
        for (known, _seq), event in zip(self.known, history, strict=False):
            if known != event.event_id:
                break
            same += 1
        return same

    def cut(self, same: int) -> _Log:
        """The log of a fork after that many events of the history."""
        out = _Log()
        out.known = self.known[:same]
        out.head = out.known[-1][1] if same else 0
        return out


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
        self._version = 0  # the one in use
        self._logs: dict[int, _Log] = {}
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

    @property
    def _session(self) -> str:
        return self._versions.name(self._version)

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
        for _ in range(WRITERS):
            same = await self._find(history)
            log = self._logs[self._version]
            try:
                if same < len(log.known):
                    await self._fork(same)
                await self._append(history[same:])
            except OvertakenError:
                continue
            return
        raise RuntimeError(f"{self._session}: other writers append faster than this one")

    async def _find(self, history: Sequence[Event]) -> int:
        """Choose the version that a history continues; else that with the most of it.

        Returns how many events they share. Two runs at once, or a return to what was said before
        a fork, so continue versions that are there.
        """
        log = self._logs.get(self._version)
        if log is not None and log.shared(history) == len(log.known):
            return len(log.known)
        await self._versions.current()
        newest, best = self._versions.newest, -1
        for version in range(newest, max(newest - SEARCHED, 0), -1):
            if version not in self._logs:
                await self._learn(version)
            log = self._logs[version]
            same = log.shared(history)
            if same > best:
                self._version, best = version, same
            if 0 < same == len(log.known):
                self._version, best = version, same
                break
        return best

    async def _learn(self, version: int) -> list[str]:
        """Read a log: find the events that belong to the history. Returns the ids of all."""
        log = _Log()
        ids: list[str] = []
        try:
            async for event in self._client.read_events(self._versions.name(version)):
                ids.append(event.event_id)
                log.head = event.seq
                if event.event_id.startswith(_PREFIX):
                    log.known.append((event.event_id, event.seq))
        except NotFoundError:
            pass
        self._logs[version] = log
        return ids

    async def _fork(self, same: int) -> None:
        log = self._logs[self._version].cut(same)
        if self._diverged == "raise":
            raise HistoryDivergedError(self._session, same, log.head)
        try:
            await self._versions.go_on_from(self._session, log.head)
        except AlreadyExistsError as error:
            raise OvertakenError from error
        except NotFoundError as error:  # of a log that was lost
            self._logs.clear()
            self._versions.newest = 1
            raise OvertakenError from error
        self._version = self._versions.newest
        self._logs[self._version] = log
        self._logs.pop(self._version - SEARCHED, None)

    async def _append(self, new: Sequence[Event]) -> None:
        if not new:
            return
        log = self._logs[self._version]
        try:
            done = await self._client.append(self._session, *new, expected_head=log.head)
        except (HeadMismatchError, AlreadyExistsError) as error:  # which names another model
            del self._logs[self._version]
            raise OvertakenError from error
        log.known += [(r.event_id, r.seq) for r in done.receipts]
        log.head = log.known[-1][1]

    async def _begin_again(self, history: Sequence[Event], lost: LogLostError) -> None:
        """Append all of a history whose log was lost, unless the log has another conversation."""
        stored = await self._learn(self._version)
        if stored != [event.event_id for event in history][: len(stored)]:
            raise lost
        self._client.forget_session(self._session)
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
    """Give the events their ids.

    These do not depend on the model that is named as the author: in a conversation with two models,
    the adapter of each names its own.
    """
    before = b""
    for event in history:
        event.ClearField("event_id")
        said = event
        if event.message.model:
            said = Event()
            said.CopyFrom(event)
            said.message.ClearField("model")
        before = hashlib.sha256(before + said.SerializeToString(deterministic=True)).digest()
        event.event_id = _PREFIX + before.hex()
