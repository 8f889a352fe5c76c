"""contextd under LangChain's and LangGraph's agents.

Install `contextd-client[langgraph]`. The graph's state keeps every message; the log does too; the
model is given the context that is assembled from the log.
"""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Literal

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.messages import BaseMessage, get_buffer_string
from langchain_core.runnables import RunnableConfig
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config

from contextd_client import _rawjson
from contextd_client._read import langchain
from contextd_client._read.langchain import Placed
from contextd_client.client import Client
from contextd_client.context import Context
from contextd_client.errors import LogLostError, NotFoundError
from contextd_client.v1.budget_pb2 import Budget
from contextd_client.v1.policy_pb2 import Policy

_THREADS = 1024


class ContextdMessages:
    """Puts a graph's messages into the log and gives back what the model is to see.

    A message's id is its event's id: a message is appended once, however often it is seen,
    and one whose content was changed under its id is refused (AlreadyExistsError). What
    leaves the graph's state stays in the log. Where the log was lost, all messages are
    appended again, if the graph has all that was appended; else LogLostError is raised.
    """

    def __init__(
        self,
        client: Client,
        budget: Budget,
        *,
        policy: Policy | None = None,
        format: Literal["openai_chat", "anthropic"] = "openai_chat",
    ) -> None:
        """format: anthropic keeps its signed reasoning; openai_chat suits all other models."""
        self._client = client
        self._budget = budget
        self._policy = policy
        self._format: Literal["openai_chat", "anthropic"] = format
        self._sent: OrderedDict[str, dict[str, None]] = OrderedDict()
        self._lock = threading.Lock()

    def for_model(
        self, session_id: str, messages: Sequence[BaseMessage], *, overhead_tokens: int = 0
    ) -> list[BaseMessage]:
        """Append what is new of all messages so far, and assemble.

        overhead_tokens: what the request holds besides the messages, such as tools.
        """
        all_of_them = langchain.placed(messages)
        budget = Budget()
        budget.CopyFrom(self._budget)
        budget.overhead_tokens += overhead_tokens
        try:
            self._append(session_id, self._new(session_id, all_of_them))
            context = self._assemble(session_id, budget)
        except LogLostError as lost:
            self._append_again(session_id, all_of_them, lost)
            context = self._assemble(session_id, budget)
        return langchain.messages(context)

    def _assemble(self, session_id: str, budget: Budget) -> Context:
        return self._client.assemble(session_id, self._format, budget=budget, policy=self._policy)

    def _append(
        self, session_id: str, new: Sequence[Placed], expected_head: int | None = None
    ) -> None:
        if new:
            made = [at.event() for at in new]
            self._client.append(session_id, *made, expected_head=expected_head)
            self._remember(session_id, new)

    def _append_again(
        self, session_id: str, messages: Sequence[Placed], lost: LogLostError
    ) -> None:
        """Append what a log lacks that was lost, and that others may have begun again."""
        ids = [at.event_id for at in messages]
        with self._lock:
            sent = self._sent.get(session_id, {})
        try:
            stored = [e.event_id for e in self._client.read_events(session_id)]
        except NotFoundError:
            stored = []
        if not sent.keys() <= set(ids) or stored != ids[: len(stored)]:
            raise lost
        self._client.forget_session(session_id)
        self._append(session_id, messages[len(stored) :], expected_head=len(stored))
        self._remember(session_id, messages)

    def overhead(self, system: str, tools: Sequence[Any]) -> int:
        """Tokens of a system prompt and of tools that the request takes by themselves."""
        schemas = [t if isinstance(t, dict) else convert_to_openai_tool(t) for t in tools]
        data = _rawjson.dumps(schemas).encode() if schemas else b""
        return self._client.count_tokens(
            system, model=self._budget.model, tools_json=data, format=self._format
        )

    def _new(self, session_id: str, messages: Sequence[Placed]) -> Sequence[Placed]:
        with self._lock:
            sent = self._sent.get(session_id, {})
            newest = next(reversed(sent)) if sent else None
        for place in range(len(messages) - 1, -1, -1):
            if messages[place].event_id == newest:
                return messages[place + 1 :]
        return messages

    def _remember(self, session_id: str, new: Sequence[Placed]) -> None:
        with self._lock:
            sent = self._sent.setdefault(session_id, {})
            for at in new:
                sent.pop(at.event_id, None)
                sent[at.event_id] = None
            self._sent.move_to_end(session_id)
            while len(self._sent) > _THREADS:
                self._sent.popitem(last=False)


class ContextdMiddleware(AgentMiddleware[Any, Any, Any]):
    """Middleware for `langchain.agents.create_agent`: each model call gets the context.

    The session is the graph's thread, unless session_id says another. The agent's system
    prompt and tools stay with the agent; the budget leaves room for them.
    """

    def __init__(self, messages: ContextdMessages, *, session_id: str | None = None) -> None:
        super().__init__()
        self._messages = messages
        self._session_id = session_id

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        """Called by the agent."""
        return handler(self._with_context(request, self._session()))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Called by the agent."""
        given = await asyncio.to_thread(self._with_context, request, self._session())
        return await handler(given)

    def _session(self) -> str:
        return self._session_id or _thread(get_config())

    def _with_context(self, request: ModelRequest[Any], session_id: str) -> ModelRequest[Any]:
        system = request.system_message
        overhead = self._messages.overhead(
            get_buffer_string([system]) if system is not None else "", request.tools
        )
        context: list[Any] = self._messages.for_model(
            session_id, request.messages, overhead_tokens=overhead
        )
        return request.override(messages=context)


def pre_model_hook(
    messages: ContextdMessages, *, session_id: str | None = None
) -> Callable[[Any, RunnableConfig], dict[str, list[BaseMessage]]]:
    """A node for a graph of one's own, or create_react_agent's pre_model_hook.

    It gives `llm_input_messages` and leaves the state's `messages` alone.
    """

    def hook(state: Any, config: RunnableConfig) -> dict[str, list[BaseMessage]]:
        given = state["messages"] if isinstance(state, dict) else state.messages
        session = session_id or _thread(config)
        return {"llm_input_messages": messages.for_model(session, given)}

    return hook


def _thread(config: RunnableConfig) -> str:
    thread = config.get("configurable", {}).get("thread_id")
    if not thread:
        raise ValueError("configurable.thread_id: the graph has none, and no session_id was given")
    return str(thread)


__all__ = ["ContextdMessages", "ContextdMiddleware", "pre_model_hook"]
