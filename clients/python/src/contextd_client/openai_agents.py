"""A session of the OpenAI Agents SDK whose history is a log of contextd.

Install `contextd-client[openai-agents]`.
"""

from __future__ import annotations

import uuid
from typing import TYPE_CHECKING, Any, cast

from contextd_client import _read
from contextd_client._conversation import Versions
from contextd_client._read import openai_item, openai_responses
from contextd_client.aio import Client
from contextd_client.errors import NotFoundError
from contextd_client.v1.budget_pb2 import Budget
from contextd_client.v1.event_pb2 import Event
from contextd_client.v1.policy_pb2 import Policy

if TYPE_CHECKING:
    from agents.items import TResponseInputItem
    from agents.memory.session_settings import SessionSettings


class ContextdSession:
    """An implementation of `agents.memory.Session`.

    get_items gives the assembled context, which fits the budget, rather than all that was
    ever added; the log keeps all of it.

    An immutable log forgets nothing, so the two methods that remove do this: they make a
    new session that shares the log up to there, and continue in it. The names are
    `<session_id>`, `<session_id>/v2`, `<session_id>/v3` and so on; the one with the highest
    number counts, for every process. As the SDK does, it takes it that one process at a
    time writes to a session.
    """

    session_settings: SessionSettings | None = None

    def __init__(
        self,
        session_id: str,
        client: Client,
        *,
        budget: Budget | None = None,
        policy: Policy | None = None,
        model: str = "",
    ) -> None:
        """Nothing is made before the first item.

        budget, policy: of the contexts. None: the daemon's defaults.
        model: whose reasoning the items hold; empty for OpenAI's.
        """
        self.session_id = session_id
        self._client = client
        self._budget = budget
        self._policy = policy
        self._model = model
        self._versions = Versions(client, session_id)

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The context as items; with a limit the newest so many of them."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit is not None and limit <= 0:
            return []
        try:
            context = await self._client.assemble(
                await self.current(),
                "openai_responses",
                budget=self._budget,
                policy=self._policy,
            )
        except NotFoundError:
            return []
        items: list[Any] = context.messages()
        return items if limit is None else items[-limit:]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append items, all or none. Items of the model in a row are one of its turns."""
        if not items:
            return
        batch: list[Event] = []
        group = ""
        for item in items:
            raw = _read.to_raw(item)
            group = (group or str(uuid.uuid4())) if openai_responses.from_model(raw) else ""
            for event in _read.message_events(item, "openai_responses"):
                event.message.group_id = group
                event.message.model = self._model if group else ""
                batch.append(event)
        if batch:
            await self._client.append(await self.current(), *batch)

    async def pop_item(self) -> TResponseInputItem | None:
        """The newest item, which is no longer part of the session.

        It stays in the log of the session before; see the class.
        """
        current = await self.current()
        newest: Event | None = None
        try:
            async for event in self._client.read_events(current):
                if event.HasField("message"):
                    newest = event
        except NotFoundError:
            return None
        if newest is None:
            return None
        await self._versions.go_on_from(current, newest.seq - 1)
        return cast("TResponseInputItem", openai_item.item(newest.message))

    async def clear_session(self) -> None:
        """Go on with an empty session. What was added stays in the log before."""
        current = await self.current()
        try:
            await self._client.get_session(current)
        except NotFoundError:
            return
        await self._versions.go_on_from(current, 0)

    async def delete(self) -> None:
        """Delete the log and all sessions of pop_item and clear_session."""
        await self.current()
        for version in range(self._versions.newest, 0, -1):
            try:
                await self._client.delete_session(self._versions.name(version))
            except NotFoundError:
                continue
        self._versions.newest = 1

    async def current(self) -> str:
        """Name of the contextd session that counts now."""
        return await self._versions.current()
