"""contextd under LangChain's and LangGraph's agents.

Install `contextd[langgraph]`. The graph's state keeps every message; the log does too; the
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

from contextd import _rawjson
from contextd._read import langchain
from contextd.client import Client
from contextd.v1.budget_pb2 import Budget
from contextd.v1.policy_pb2 import Policy

_THREADS = 1024


class ContextdMessages:
    """Puts a graph's messages into the log and gives back what the model is to see.

    A message's id is its event's id: a message is appended once, however often it is seen,
    and one whose content was changed under its id is refused (AlreadyExistsError). What
    leaves the graph's state stays in the log.
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
        self._newest: OrderedDict[str, str] = OrderedDict()
        self._lock = threading.Lock()

    def for_model(
        self, session_id: str, messages: Sequence[BaseMessage], *, overhead_tokens: int = 0
    ) -> list[BaseMessage]:
        """Append what is new of all messages so far, and assemble.

        overhead_tokens: what the request holds beside the messages, such as tools.
        """
        new = self._new(session_id, messages)
        if new:
            self._client.append(session_id, *(langchain.event(m) for m in new))
            self._remember(session_id, str(new[-1].id))
        budget = Budget()
        budget.CopyFrom(self._budget)
        budget.overhead_tokens += overhead_tokens
        context = self._client.assemble(
            session_id, self._format, budget=budget, policy=self._policy
        )
        return langchain.messages(context)

    def overhead(self, system: str, tools: Sequence[Any]) -> int:
        """Tokens of a system prompt and of tools that the request takes by themselves."""
        schemas = [t if isinstance(t, dict) else convert_to_openai_tool(t) for t in tools]
        data = _rawjson.dumps(schemas).encode() if schemas else b""
        return self._client.count_tokens(
            system, model=self._budget.model, tools_json=data, format=self._format
        )

    def _new(self, session_id: str, messages: Sequence[BaseMessage]) -> Sequence[BaseMessage]:
        with self._lock:
            newest = self._newest.get(session_id)
        for place in range(len(messages) - 1, -1, -1):
            if newest is not None and messages[place].id == newest:
                return messages[place + 1 :]
        return messages

    def _remember(self, session_id: str, message_id: str) -> None:
        with self._lock:
            self._newest[session_id] = message_id
            self._newest.move_to_end(session_id)
            while len(self._newest) > _THREADS:
                self._newest.popitem(last=False)


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
