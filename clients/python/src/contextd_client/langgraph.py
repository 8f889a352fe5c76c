"""contextd under LangChain's and LangGraph's agents.

Install `contextd-client[langgraph]`. The graph's state keeps every message, and so does the log.
The model gets the context that is assembled from the log.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal

from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.config import get_config

from contextd_client import _rawjson
from contextd_client._names import Diverged
from contextd_client._read import langchain
from contextd_client._threads import Threads
from contextd_client._usage import Usage
from contextd_client.client import Client
from contextd_client.context import Context
from contextd_client.errors import ContextdError
from contextd_client.v1.budget_pb2 import Budget
from contextd_client.v1.policy_pb2 import Policy

if TYPE_CHECKING:
    from langchain.agents.middleware import ModelRequest, ModelResponse

    Middleware = AgentMiddleware[Any, Any, Any]
else:
    Middleware = AgentMiddleware  # which has fewer parameters in older versions

logger = logging.getLogger("contextd_client")

_SHOWN = 1024


class ContextdMessages:
    """Appends a graph's messages to the log, and returns the context for the model.

    A message's id is its event's id, so that a message is appended once. Messages that are
    removed from the graph's state stay in the log. HistoryDivergedError is raised if the state
    lacks the newest message of the log, as after a return to an earlier checkpoint, or if a
    message was changed under its id. If the log was lost, all messages are appended again,
    provided that the state has them all; else LogLostError is raised.
    """

    def __init__(
        self,
        client: Client,
        budget: Budget,
        *,
        policy: Policy | None = None,
        format: Literal["openai_chat", "anthropic"] = "openai_chat",
        diverged: Diverged = "raise",
    ) -> None:
        """format: anthropic for its models, which keeps signed reasoning; else openai_chat.

        diverged: what to do at such a state. With fork, the thread continues in a session of its
        own, such as `my-thread/v2`.
        """
        if not isinstance(client, Client):
            raise TypeError(f"client: must be contextd_client.Client, not {client!r:.60}")
        self._client = client
        self._budget = budget
        self._policy = policy
        self._format: Literal["openai_chat", "anthropic"] = format
        self._threads = Threads(client, diverged)
        self._shown: OrderedDict[str, Context] = OrderedDict()
        self._lock = threading.Lock()

    def for_model(
        self, session_id: str, messages: Sequence[BaseMessage], *, overhead_tokens: int = 0
    ) -> list[BaseMessage]:
        """Append the new ones of all messages so far, and assemble.

        overhead_tokens: the size of the rest of the request, such as tools.
        """
        context = self._context(session_id, messages, overhead_tokens)
        with self._lock:
            self._shown[session_id] = context
            self._shown.move_to_end(session_id)
            while len(self._shown) > _SHOWN:
                self._shown.popitem(last=False)
        return langchain.messages(context)

    def record(self, session_id: str, answer: BaseMessage) -> None:
        """Report the provider's token counts for the newest context, which this message answers.

        The middleware does so itself. A failure is logged, and fails no model call.
        """
        with self._lock:
            context = self._shown.get(session_id)
        if context is not None:
            self._record(context, answer)

    def _context(
        self, session_id: str, messages: Sequence[BaseMessage], overhead_tokens: int
    ) -> Context:
        budget = Budget()
        budget.CopyFrom(self._budget)
        budget.overhead_tokens += overhead_tokens
        return self._threads.follow(
            session_id,
            [at.event() for at in langchain.placed(messages)],
            lambda session: self._client.assemble(
                session, self._format, budget=budget, policy=self._policy
            ),
        )

    def _record(self, context: Context, answer: BaseMessage) -> None:
        if not isinstance(answer, AIMessage):
            return
        try:
            self._client.record_model_call(context, usage=_usage(answer))
        except ContextdError as error:
            logger.warning("the model call of %s was not recorded: %s", context.session_id, error)

    def overhead(self, system: str, tools: Sequence[Any]) -> int:
        """The tokens of a request's system prompt and tools."""
        schemas = [t if isinstance(t, dict) else convert_to_openai_tool(t) for t in tools]
        data = _rawjson.dumps(schemas).encode() if schemas else b""
        return self._client.count_tokens(
            system, model=self._budget.model, tools_json=data, format=self._format
        )


class ContextdMiddleware(Middleware):
    """Middleware for `langchain.agents.create_agent`: each model call gets the context.

    The session is named after the graph's thread, unless session_id is given. The agent's system
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
        context = self._context(request, self._session())
        response = handler(request.override(messages=_shown(context)))
        self._messages._record(context, response.result[0])
        return response

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Called by the agent."""
        session = self._session()
        context = await asyncio.to_thread(self._context, request, session)
        response = await handler(request.override(messages=_shown(context)))
        await asyncio.to_thread(self._messages._record, context, response.result[0])
        return response

    def _session(self) -> str:
        return self._session_id or _thread(get_config())

    def _context(self, request: ModelRequest[Any], session_id: str) -> Context:
        overhead = self._messages.overhead(request.system_prompt or "", request.tools)
        return self._messages._context(session_id, request.messages, overhead)


def _shown(context: Context) -> list[Any]:
    return list(langchain.messages(context))


def pre_model_hook(
    messages: ContextdMessages, *, session_id: str | None = None
) -> Callable[[Any, RunnableConfig], dict[str, list[BaseMessage]]]:
    """A node for your own graph, or the pre_model_hook of create_react_agent.

    It sets `llm_input_messages`, and does not change the state's `messages`. Call
    `messages.record` with the model's answer, so that the call can be explained.
    """

    def hook(state: Any, config: RunnableConfig) -> dict[str, list[BaseMessage]]:
        given = state["messages"] if isinstance(state, dict) else state.messages
        session = session_id or _thread(config)
        return {"llm_input_messages": messages.for_model(session, given)}

    return hook


def _usage(answer: AIMessage) -> Usage:
    said = answer.response_metadata
    used: Any = answer.usage_metadata or {}
    of_input = used.get("input_token_details", {})
    return Usage(
        input_tokens=used.get("input_tokens", 0),
        cache_read_tokens=of_input.get("cache_read", 0) or 0,
        cache_write_tokens=of_input.get("cache_creation", 0) or 0,
        output_tokens=used.get("output_tokens", 0),
        stop_reason=str(said.get("finish_reason") or said.get("stop_reason") or ""),
        model=str(said.get("model_name") or said.get("model") or ""),
    )


def _thread(config: RunnableConfig) -> str:
    thread = config.get("configurable", {}).get("thread_id")
    if not thread:
        raise ValueError("configurable.thread_id: the graph has none, and no session_id was given")
    return str(thread)


__all__ = ["ContextdMessages", "ContextdMiddleware", "pre_model_hook"]
