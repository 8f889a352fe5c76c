"""A model of Pydantic AI whose messages go through a session of contextd.

Install `contextd-client[pydantic-ai]`.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from contextd_client._conversation import Conversation
from contextd_client._names import Diverged
from contextd_client._read.pydantic_ai import History
from contextd_client._usage import Usage
from contextd_client.aio import Client
from contextd_client.context import Context
from contextd_client.v1.budget_pb2 import Budget
from contextd_client.v1.policy_pb2 import Policy


class ContextdModel(WrapperModel):
    """Gives a model the context of a session instead of all messages of a run.

    One object is for one conversation. Each call must have the whole conversation; it appends
    the new messages, assembles, and records the provider's token counts. A history that does
    not continue the log raises HistoryDivergedError, or continues in a fork.
    """

    def __init__(
        self,
        wrapped: Model | str,
        client: Client,
        session_id: str,
        *,
        budget: Budget | None = None,
        policy: Policy | None = None,
        diverged: Diverged = "raise",
    ) -> None:
        """wrapped: the model, or its name in the form that Agent accepts."""
        super().__init__(wrapped)
        self._conversation = Conversation(
            client, session_id, "contextd", budget=budget, policy=policy, diverged=diverged
        )

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        """Called by the agent."""
        context, shown = await self._context(messages, model_request_parameters)
        response = await super().request(shown, model_settings, model_request_parameters)
        await self._record(context, response)
        return response

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: Any = None,
    ) -> AsyncGenerator[StreamedResponse]:
        """Called by the agent."""
        context, shown = await self._context(messages, model_request_parameters)
        async with super().request_stream(
            shown, model_settings, model_request_parameters, run_context
        ) as stream:
            yield stream
            await self._record(context, stream.get())

    async def count_tokens(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> RequestUsage:
        """Called by the agent for usage limits. Counts the context that the model would get."""
        _, shown = await self._context(messages, model_request_parameters)
        return await self.wrapped.count_tokens(shown, model_settings, model_request_parameters)

    def prepare_messages(self, messages: list[ModelMessage], *_: Any) -> list[ModelMessage]:
        """Called by the agent. Returns the messages unchanged, for the log. Changes for a provider
        differ between requests, so they are applied to the context.
        """
        return messages

    async def _context(
        self, messages: list[ModelMessage], parameters: ModelRequestParameters
    ) -> tuple[Context, list[ModelMessage]]:
        history = History(messages)
        tools = [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.description or "",
                    "parameters": tool.parameters_json_schema,
                },
            }
            for tool in [*parameters.function_tools, *parameters.output_tools]
        ]
        context = await self._conversation.context(
            history.events, system=history.beside, tools=tools
        )
        return context, self._prepared(history.messages(context.messages()), parameters)

    def _prepared(
        self, shown: list[ModelMessage], parameters: ModelRequestParameters
    ) -> list[ModelMessage]:
        """The messages as the wrapped model prepares them; versions before 1.96 do not."""
        prepare: Any = getattr(self.wrapped, "prepare_messages", None)
        if prepare is None:
            return shown
        known = len(inspect.signature(prepare).parameters)  # up to 2.3 it only takes messages
        prepared: list[ModelMessage] = prepare(*(shown, parameters)[:known])
        return prepared

    async def _record(self, context: Context, response: ModelResponse) -> None:
        usage = response.usage
        taken = Usage(
            input_tokens=usage.input_tokens,
            cache_read_tokens=usage.cache_read_tokens,
            cache_write_tokens=usage.cache_write_tokens,
            output_tokens=usage.output_tokens,
            stop_reason=response.finish_reason or "",
            model=response.model_name or "",
        )
        await self._conversation.record(context, taken)


__all__ = ["ContextdModel"]
