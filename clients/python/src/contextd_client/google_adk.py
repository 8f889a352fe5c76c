"""A plugin of Google's ADK whose agents' histories go through sessions of contextd.

Install `contextd-client[google-adk]`.
"""

from __future__ import annotations

import base64
import json
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from google.adk.plugins.base_plugin import BasePlugin
from google.genai import types

from contextd_client import _read
from contextd_client._adk_contents import joined, parted, text_of
from contextd_client._conversation import Conversation
from contextd_client._names import Diverged
from contextd_client._usage import Usage
from contextd_client.aio import Client
from contextd_client.context import Context
from contextd_client.v1.budget_pb2 import Budget
from contextd_client.v1.event_pb2 import Block
from contextd_client.v1.policy_pb2 import Policy

if TYPE_CHECKING:
    from google.adk.agents.callback_context import CallbackContext
    from google.adk.models.llm_request import LlmRequest
    from google.adk.models.llm_response import LlmResponse

_CONVERSATIONS = 1024
_MADE = "contextd_"
"""The beginning of ids for calls that have none in ADK's requests."""

_UNSIGNED = base64.urlsafe_b64decode("skip_thought_signature_validator")


def session_of(context: CallbackContext) -> str:
    """The session for an agent: each agent of ADK's session has its own history.

    It also has one in each task that another agent gave it, and in each branch of a workflow. A
    name that the daemon does not accept is replaced; see session_name.
    """
    at = context._invocation_context
    name = f"{context.session.id}/{context.agent_name}"
    where = getattr(at, "isolation_scope", None) or at.branch
    return f"{name}/{where}" if where else name


class ContextdPlugin(BasePlugin):
    """Gives the models of a runner's agents contexts instead of all contents so far.

    At each model call it appends the new contents, assembles, and records the provider's token
    counts. Agents without a history (`include_contents="none"`) are not affected.
    """

    def __init__(
        self,
        client: Client,
        *,
        budget: Budget | None = None,
        policy: Policy | None = None,
        session_id: Callable[[CallbackContext], str] = session_of,
        diverged: Diverged = "fork",
    ) -> None:
        """session_id: name of the session of an agent's history.

        diverged: what to do when the history was edited. ADK does so itself, for example when
        a long-running tool returns its result.
        """
        super().__init__(name="contextd")
        self._client = client
        self._budget = budget
        self._policy = policy
        self._session_id = session_id
        self._diverged: Diverged = diverged
        self._conversations: OrderedDict[str, Conversation] = OrderedDict()
        self._shown: OrderedDict[tuple[str, str], Context] = OrderedDict()  # of each run

    async def before_model_callback(
        self, *, callback_context: CallbackContext, llm_request: LlmRequest
    ) -> LlmResponse | None:
        """Called by the runner."""
        at = callback_context._invocation_context
        agent = at.agent
        if getattr(agent, "include_contents", "default") == "none":
            return None
        name = self._session_id(callback_context)
        given, beside = parted(llm_request, at)
        contents = [json.loads(_read.to_raw(content).json) for content in given]
        _identify(contents)
        # ADK holds what models of all providers said in the form of Gemini's.
        history = [e for c in contents for e in _read.message_events(c, "gemini", "gemini")]
        if all(_blank(block) for event in history for block in event.message.blocks):
            return None
        context = await self._conversation(name).context(
            history,
            system=_text(llm_request.config.system_instruction) + text_of(beside),
            tools=[
                tool.model_dump(mode="json", exclude_none=True, by_alias=True)
                for tool in llm_request.config.tools or ()
                if isinstance(tool, types.Tool)
            ],
        )
        shown = context.messages()
        _sign(shown, llm_request.contents, "gemini" in (llm_request.model or "").lower())
        llm_request.contents = joined([_content(value) for value in shown], beside)
        _keep(self._shown, (callback_context.invocation_id, name), context)
        return None

    async def after_model_callback(
        self, *, callback_context: CallbackContext, llm_response: LlmResponse
    ) -> LlmResponse | None:
        """Called by the runner."""
        name = self._session_id(callback_context)
        run = (callback_context.invocation_id, name)
        if llm_response.partial or run not in self._shown:
            return None
        used = llm_response.usage_metadata or types.GenerateContentResponseUsageMetadata()
        reason = llm_response.finish_reason
        usage = Usage(
            input_tokens=used.prompt_token_count or 0,
            cache_read_tokens=used.cached_content_token_count or 0,
            output_tokens=(used.candidates_token_count or 0) + (used.thoughts_token_count or 0),
            stop_reason=reason.name if reason else "",
            model=llm_response.model_version or "",
        )
        await self._conversation(name).record(self._shown.pop(run), usage)
        return None

    def _conversation(self, name: str) -> Conversation:
        found = self._conversations.get(name)
        if found is None:
            found = Conversation(
                self._client,
                name,
                "gemini",
                budget=self._budget,
                policy=self._policy,
                diverged=self._diverged,
            )
        _keep(self._conversations, name, found)
        return found


def _keep(held: OrderedDict[Any, Any], name: Any, value: Any) -> None:
    held[name] = value
    held.move_to_end(name)
    while len(held) > _CONVERSATIONS:
        held.popitem(last=False)


def _blank(block: Block) -> bool:
    return block.HasField("text") and not block.text.text.strip()


def _identify(contents: Sequence[Any]) -> None:
    """Give an id to each call without one, and to its result.

    ADK removes its own ids from requests, since Gemini's API does not need them. A result
    without an id answers the first open call of its tool.
    """
    waiting: list[tuple[str, str]] = []
    number = 0
    for content in contents:
        for part in content.get("parts") or ():
            call, result = part.get("functionCall"), part.get("functionResponse")
            if call and not call.get("id"):
                call["id"] = f"{_MADE}{number}"
                number += 1
                waiting.append((call.get("name", ""), call["id"]))
            elif result and not result.get("id"):
                open_call = next((c for c in waiting if c[0] == result.get("name")), None)
                if open_call:
                    waiting.remove(open_call)
                result["id"] = open_call[1] if open_call else f"{_MADE}{number}"
                number += not open_call


def _sign(shown: Sequence[Any], contents: Sequence[types.Content], gemini: bool) -> None:
    """Put signatures back on the thoughts that they came with, for models of other providers.

    The daemon shows them with the next part, as Gemini does, and signs unsigned calls, which Gemini
    alone needs.
    """
    given = [part for content in contents for part in content.parts or ()]
    sealed = {part.thought_signature for part in given if part.thought}
    sealed -= {part.thought_signature for part in given if not part.thought}
    for content in shown:
        parts: list[Any] = []
        for part in content["parts"]:
            signature = part.get("thoughtSignature")
            if signature and signature in sealed:
                del part["thoughtSignature"]
                if not parts or not parts[-1].get("thought") or parts[-1].get("thoughtSignature"):
                    parts.append({"thought": True})
                parts[-1]["thoughtSignature"] = signature
            elif signature == _UNSIGNED and not gemini:
                del part["thoughtSignature"]
            if part != {"text": ""}:
                parts.append(part)
        content["parts"] = parts


def _content(value: Any) -> types.Content:
    for part in value["parts"]:
        for member in ("functionCall", "functionResponse"):
            if part.get(member, {}).get("id", "").startswith(_MADE):
                del part[member]["id"]
    return types.Content.model_validate(value)


def _text(instruction: Any) -> str:
    if instruction is None or isinstance(instruction, str):
        return instruction or ""
    return str(_read.to_raw(instruction).json)


__all__ = ["ContextdPlugin", "session_of"]
