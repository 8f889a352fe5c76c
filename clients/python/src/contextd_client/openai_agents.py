"""A model and a session of the OpenAI Agents SDK whose history is a log of contextd.

Install `contextd-client[openai-agents]`.
"""

from __future__ import annotations

import uuid
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from agents.models.fake_id import FAKE_RESPONSES_ID
from agents.models.interface import Model
from agents.usage import Usage as SdkUsage

from contextd_client import _read, events
from contextd_client._conversation import Conversation, Versions
from contextd_client._names import Diverged
from contextd_client._read import openai_agents, openai_responses
from contextd_client._usage import Usage, usage_of
from contextd_client.aio import Client
from contextd_client.context import Context
from contextd_client.errors import AlreadyExistsError, NotFoundError
from contextd_client.v1.budget_pb2 import Budget
from contextd_client.v1.event_pb2 import Event
from contextd_client.v1.policy_pb2 import Policy

if TYPE_CHECKING:
    from agents.items import ModelResponse, TResponseInputItem, TResponseStreamEvent
    from agents.memory.session_settings import SessionSettings
    from agents.result import RunResultBase

ItemsFormat = Literal["openai_responses", "openai_chat"]
"""The API of the model that gets the items. Of Chat Completions they have what a host sealed."""


class ContextdModel(Model):
    """Gives a model the context of a session instead of all items of a run.

    One object is for one conversation. Each call must have the whole conversation; it appends
    the new items, assembles, and records the provider's token counts. A history that does not
    continue the log raises HistoryDivergedError, or continues in a fork.
    """

    def __init__(
        self,
        wrapped: Model,
        client: Client,
        session_id: str,
        *,
        budget: Budget | None = None,
        policy: Policy | None = None,
        diverged: Diverged = "raise",
        model: str = "",
        format: ItemsFormat = "openai_responses",
    ) -> None:
        """model: the one that wrote the reasoning in the items; empty for OpenAI's.

        format: the API of the wrapped model. Contexts of openai_chat only describe files.
        """
        self._wrapped = wrapped
        self._model = model
        self._ids: dict[str, str] = {}
        self._format: ItemsFormat = format
        self._conversation = Conversation(
            client, session_id, self._format, budget=budget, policy=policy, diverged=diverged
        )

    async def get_response(
        self, system_instructions: str | None, input: Any, *args: Any, **kwargs: Any
    ) -> ModelResponse:
        """Called by the runner."""
        context = await self._context(system_instructions, input, args, kwargs)
        response = await self._wrapped.get_response(
            system_instructions, self._items(context), *args, **kwargs
        )
        await self._conversation.record(context, self._usage(response.usage))
        return response

    async def stream_response(
        self, system_instructions: str | None, input: Any, *args: Any, **kwargs: Any
    ) -> AsyncIterator[TResponseStreamEvent]:
        """Called by the runner."""
        context = await self._context(system_instructions, input, args, kwargs)
        async for event in self._wrapped.stream_response(
            system_instructions, cast("Any", self._items(context)), *args, **kwargs
        ):
            if event.type in ("response.completed", "response.incomplete"):
                await self._conversation.record(context, usage_of(event.response))
            yield event

    def get_retry_advice(self, request: Any) -> Any:
        """Called by the runner."""
        return self._wrapped.get_retry_advice(request)

    async def close(self) -> None:
        """Called by the runner."""
        await self._wrapped.close()

    async def _context(
        self, system: str | None, input: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Context:
        if kwargs.get("previous_response_id") or kwargs.get("conversation_id"):
            raise ValueError(
                "the provider keeps this conversation: the model is given a part of it"
            )
        # These arguments may be given by name, or in this order.
        names = ("model_settings", "tools", "output_schema", "handoffs")
        given = dict(zip(names, args, strict=False), **kwargs)
        items = [{"role": "user", "content": input}] if isinstance(input, str) else input
        _require_carried(items)
        called = [_read.to_raw(item).string("call_id") for item in items]
        self._ids = {events.split_call_id(call_id)[0]: call_id for call_id in called if call_id}
        return await self._conversation.context(
            _events(items, self._model, lambda place: f"items-{place}", self._format),
            system=system or "",
            tools=_schemas([*given["tools"], *given["handoffs"]], self._format),
        )

    def _items(self, context: Context) -> list[Any]:
        """The context's items, whose ids of calls have the signatures of proxies again."""
        items = _items(context, str(getattr(self._wrapped, "model", "")))
        for item in items:
            if call_id := self._ids.get(item.get("call_id")):
                item["call_id"] = call_id
        return items

    def _usage(self, used: SdkUsage) -> Usage:
        return Usage(
            input_tokens=used.input_tokens,
            cache_read_tokens=used.input_tokens_details.cached_tokens or 0,
            cache_write_tokens=getattr(used.input_tokens_details, "cache_write_tokens", 0) or 0,
            output_tokens=used.output_tokens,
            model=str(getattr(self._wrapped, "model", "")),
        )


class ContextdSession:
    """An implementation of `agents.memory.Session`.

    get_items gives the assembled context, which fits the budget, instead of all items; the log
    keeps all of them.

    The log is immutable, so the two methods that remove items continue in a new session, which
    shares the log up to there. The names are `<session_id>`, `<session_id>/v2`,
    `<session_id>/v3` and so on; the one with the highest number is current, for every process.
    Like the SDK, it assumes that one process at a time writes to a session.
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
        format: ItemsFormat = "openai_responses",
    ) -> None:
        """The session is created with the first item.

        budget, policy: of the contexts. None: the daemon's defaults.
        model: the one that wrote the reasoning in the items; empty for OpenAI's.
        format: the API of the agent's model.
        """
        self.session_id = session_id
        self._client = client
        self._budget = budget
        self._policy = policy
        self._model = model
        self._format: ItemsFormat = format
        self._versions = Versions(client, session_id)
        self._shown: Context | None = None

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """The context as items; with a limit, only that many of the newest."""
        if limit is None and self.session_settings is not None:
            limit = self.session_settings.limit
        if limit is not None and limit <= 0:
            return []
        try:
            context = await self._client.assemble(
                await self.current(),
                self._format,
                budget=self._budget,
                policy=self._policy,
            )
        except NotFoundError:
            return []
        self._shown = context
        items = _items(context, self._model)
        return items if limit is None else items[-limit:]

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Append all items or none. Consecutive items of the model are one turn."""
        if not items:
            return
        batch = _events(items, self._model, lambda _: str(uuid.uuid4()), self._format)
        if batch:
            await self._client.append(await self.current(), *batch)

    async def record(self, result: RunResultBase) -> None:
        """Report the provider's token counts for the first model call of a run.

        Later calls of the run had items that are in no context; see ContextdModel.
        """
        if self._shown is not None and result.raw_responses:
            used = result.raw_responses[0].usage
            usage = Usage(
                input_tokens=used.input_tokens,
                cache_read_tokens=used.input_tokens_details.cached_tokens or 0,
                output_tokens=used.output_tokens,
            )
            await self._client.record_model_call(self._shown, usage=usage)

    async def pop_item(self) -> TResponseInputItem | None:
        """Remove and return the newest item.

        It stays in the log of the version before; see the class.
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
        await self._go_on_from(current, newest.seq - 1)
        return cast("TResponseInputItem", openai_agents.item(newest.message))

    async def clear_session(self) -> None:
        """Continue with an empty session. The items stay in the log of the version before."""
        current = await self.current()
        try:
            await self._client.get_session(current)
        except NotFoundError:
            return
        await self._go_on_from(current, 0)

    async def _go_on_from(self, current: str, seq: int) -> None:
        try:
            await self._versions.go_on_from(current, seq)
        except AlreadyExistsError as error:
            raise RuntimeError(f"somebody else writes to the session {self.session_id}") from error

    async def delete(self) -> None:
        """Delete the session and all versions that pop_item and clear_session made."""
        await self.current()
        for version in range(self._versions.newest, 0, -1):
            try:
                await self._client.delete_session(self._versions.name(version))
            except NotFoundError:
                continue
        self._versions.newest = 1

    async def current(self) -> str:
        """Name of the current contextd session."""
        return await self._versions.current()


_CARRIED = (
    "message", "reasoning", "function_call", "function_call_output", "custom_tool_call",
    "custom_tool_call_output", "web_search_call", "file_search_call", "code_interpreter_call",
    "image_generation_call", "mcp_call", "mcp_list_tools", "compaction",
)  # fmt: skip
"""The kinds of items that a context shows a model as what they are."""


def _require_carried(items: Sequence[Any]) -> None:
    """Raises ValueError for an item that a context could only describe, as a shell's output."""
    for place, item in enumerate(items):
        kind = _read.to_raw(item).string("type") or "message"
        if kind not in _CARRIED:
            raise ValueError(
                f"item {place}: a context cannot hold a {kind}; "
                "give the agent a function tool that does it"
            )


def _items(context: Context, model: str) -> list[Any]:
    """A context's items. Where reasoning is returned as text, it has a summary and texts an id.

    The SDK's models of Chat Completions take it only from there, and for such messages.
    """
    items = context.messages()
    if context.format == "openai_chat":
        return openai_agents.items(items, model)
    returned = False
    for item in items:
        if item["type"] == "reasoning" and "encrypted_content" not in item:
            returned = True
            texts = [part["text"] for part in item["content"]]
            item["summary"] = [{"type": "summary_text", "text": text} for text in texts]
        elif returned and item.get("role") == "assistant" and isinstance(item["content"], str):
            part = {"type": "output_text", "text": item["content"], "annotations": []}
            item.update(id=FAKE_RESPONSES_ID, status="completed", content=[part])
    return items


def _events(
    items: Sequence[Any], model: str, group_of: Callable[[int], str], format: ItemsFormat
) -> list[Event]:
    """An event for each item. Consecutive items of the model are one turn."""
    out: list[Event] = []
    group = ""
    for place, item in enumerate(items):
        raw = _read.to_raw(item)
        group = (group or group_of(place)) if openai_responses.from_model(raw) else ""
        sealed, by = [], model
        if group and format == "openai_chat":
            sealed = openai_agents.sealed(raw)
            by = raw.get("provider_data").string("model") or model
        said = [events.assistant(*sealed)] if sealed else []
        for event in said or _read.message_events(item, "openai_responses"):
            event.message.group_id = group
            event.message.model = by if group else ""
            out.append(event)
    return out


def _schemas(tools: Sequence[Any], format: ItemsFormat) -> list[Any]:
    """Tools and handoffs as in the request; for the provider's own tools, only the names."""
    out: list[Any] = []
    for tool in tools:
        name = getattr(tool, "tool_name", "") or tool.name
        description = getattr(tool, "tool_description", "") or getattr(tool, "description", "")
        schema = getattr(tool, "input_json_schema", None) or getattr(
            tool, "params_json_schema", None
        )
        function = {"name": name, "description": description, "parameters": schema}
        if format == "openai_chat":
            out.append({"type": "function", "function": function})
        else:
            out.append({"type": "function", **function})
    return out
