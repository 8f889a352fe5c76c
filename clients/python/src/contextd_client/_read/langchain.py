"""Messages of LangChain, to the log and from a context."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)

from contextd import _rawjson, events
from contextd._read import anthropic, openai_part, openai_responses
from contextd.context import Context
from contextd.v1.event_pb2 import Block, Event, Role, Thinking

_ANTHROPIC = ("thinking", "redacted_thinking", "document", "search_result")
# The calls of a message stand in tool_calls, whatever its content says of them.
_CALLS = ("tool_use", "tool_call", "function_call", "input_json_delta", "tool_call_chunk")


def event(message: BaseMessage) -> Event:
    """The event of a message. Its id is the message's, so that one message is one event."""
    if not message.id:
        raise ValueError("id: a message has none; the messages of a graph's state have one")
    if isinstance(message, ToolMessage):
        return events.tool_result(
            message.tool_call_id,
            content(message),
            is_error=message.status == "error",
            tool_name=message.name or "",
            event_id=message.id,
        )
    if isinstance(message, AIMessage):
        said = _assistant(message)
        model = message.response_metadata.get("model_name", "")
        model = model or message.response_metadata.get("model", "")
        if not said:
            return Event(
                event_id=message.id, custom=events.custom("empty_response").custom
            )  # fmt: skip
        return events.assistant(*said, model=model, event_id=message.id)
    role = Role.ROLE_SYSTEM if isinstance(message, SystemMessage) else Role.ROLE_USER
    return events.message(role, content(message), event_id=message.id)


def content(message: BaseMessage) -> list[Block]:
    """The blocks of a message's content: a text, or a list of texts and parts."""
    if isinstance(message.content, str):
        return [events.text(message.content)] if message.content else []
    blocks: list[Block] = []
    for part in message.content:
        blocks += [events.text(part)] if isinstance(part, str) and part else []
        blocks += _part(part, _provider(message)) if isinstance(part, dict) else []
    return blocks


def _assistant(message: AIMessage) -> list[Block]:
    blocks = content(message)
    reasoning = message.additional_kwargs.get("reasoning_content")
    if isinstance(reasoning, str) and reasoning:
        blocks.insert(0, Block(thinking=Thinking(text=reasoning)))
    for call in message.tool_calls:
        blocks.append(events.tool_call(call["id"] or "", call["name"], call["args"]))
    for broken in message.invalid_tool_calls:
        blocks.append(events.provider_block("langchain", _rawjson.dumps(broken).encode()))
    return blocks


def _part(part: dict[str, Any], provider: str) -> list[Block]:
    kind = part.get("type")
    raw = _rawjson.read(_rawjson.dumps(part))
    if kind in _CALLS:
        return []
    if kind == "text" and not part.get("citations") and not part.get("annotations"):
        return [events.text(part["text"])] if part.get("text") else []
    if kind in ("image", "audio", "file", "video") and "source" not in part:
        found = _media(part)
        return [found or events.provider_block(provider, raw.data)]
    if kind in _ANTHROPIC or kind == "image":
        return anthropic.content(_rawjson.Raw(f"[{raw.json}]"))
    if kind in ("image_url", "input_image"):
        return openai_part.content(_rawjson.Raw(f"[{raw.json}]"))
    if kind == "reasoning" and "summary" in part:
        return openai_responses.output(raw)
    return [events.provider_block(provider, raw.data)]


def _media(part: dict[str, Any]) -> Block | None:
    mime_type = part.get("mime_type", "")
    if part.get("base64"):
        return events.media(data=base64.b64decode(part["base64"]), mime_type=mime_type)
    return events.media(uri=part["url"], mime_type=mime_type) if part.get("url") else None


def _provider(message: BaseMessage) -> str:
    named = str(message.response_metadata.get("model_provider", "") or "langchain")
    return "google" if named.startswith("google") else named


def messages(context: Context) -> list[BaseMessage]:
    """A context as LangChain's messages, the system prompt first."""
    if context.format == "openai_chat":
        return list(convert_to_messages(context.messages()))
    out: list[BaseMessage] = []
    if context.system is not None:
        out.append(SystemMessage(content=context.system))
    for message in context.messages():
        if message["role"] == "assistant":
            out.append(_ai(message["content"]))
        else:
            out.extend(_human(message["content"]))
    return out


def _ai(blocks: list[Any]) -> AIMessage:
    calls = [b for b in blocks if b["type"] == "tool_use"]
    return AIMessage(
        content=blocks,
        tool_calls=[{"id": c["id"], "name": c["name"], "args": c["input"]} for c in calls],
        response_metadata={"model_provider": "anthropic"},
    )


def _human(blocks: Sequence[Any]) -> list[BaseMessage]:
    """Results are messages of their own here; they stand before what the user says."""
    out: list[BaseMessage] = []
    said = []
    for block in blocks:
        if block["type"] != "tool_result":
            said.append(block)
            continue
        out.append(
            ToolMessage(
                content=block.get("content", ""),
                tool_call_id=block["tool_use_id"],
                status="error" if block.get("is_error") else "success",
            )
        )
    return [*out, HumanMessage(content=said)] if said else out
