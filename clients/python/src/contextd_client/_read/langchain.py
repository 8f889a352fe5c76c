"""LangChain's messages, as events for the log, and made from a context."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    InvalidToolCall,
    SystemMessage,
    ToolMessage,
    convert_to_messages,
)

from contextd_client import _rawjson, events
from contextd_client._read import anthropic, openai_chat, openai_part, openai_responses
from contextd_client._read.beside import call
from contextd_client.context import Context
from contextd_client.v1.event_pb2 import Block, Event, Role, Thinking

_ANTHROPIC = ("thinking", "redacted_thinking", "document", "search_result")
_OPENAI = ("image_url", "input_image", "input_audio")
# The calls of a message are taken from tool_calls, not from its content.
_NO_NAME = "unknown_tool"
"""The tool's name for a call that names none."""
_CALLS = ("tool_use", "tool_call", "function_call", "input_json_delta", "tool_call_chunk")


@dataclass(frozen=True)
class Placed:
    """A message in its conversation."""

    message: BaseMessage
    event_id: str
    """The message's id, so that one message is one event; or an id made from its content."""
    calls: tuple[str, ...] = ()
    """Of a message of the model: the ids of its calls, the invalid ones last."""
    answers: str = ""
    """Of a tool's message: the id of the call that it answers; empty: of none."""

    def event(self) -> Event:
        """The message's event."""
        return _event(self)


def placed(messages: Iterable[BaseMessage]) -> list[Placed]:
    """The messages of a conversation, each call with an id and each result with its call.

    A call without an id, or with one that the message has already, gets an id of its own. A
    result without the id of an open call answers the first open call of the newest message
    with one; if there is none, it answers nothing. A message without an id gets one that only
    depends on the conversation up to it.
    """
    out: list[Placed] = []
    turns: list[dict[str, str]] = []  # per message of the model: its open calls, and their own ids
    before = ""
    for message in messages:
        before = message.id or _made_id(before, message)
        if isinstance(message, AIMessage):
            own = [str(c["id"] or "") for c in [*message.tool_calls, *message.invalid_tool_calls]]
            made = _unique(own, before)
            turns.append(dict(zip(made, own, strict=True)))
            out.append(Placed(message, before, calls=tuple(made)))
        elif isinstance(message, ToolMessage):
            out.append(Placed(message, before, answers=_answered(turns, message.tool_call_id)))
        else:
            out.append(Placed(message, before))
    return out


def _made_id(before: str, message: BaseMessage) -> str:
    said = {k: v for k, v in message.model_dump(mode="json").items() if k != "id"}
    text = _rawjson.dumps([before, said])
    return "message-" + hashlib.sha256(text.encode()).hexdigest()[:32]


def _unique(ids: Sequence[str], message_id: str) -> list[str]:
    out: list[str] = []
    for place, given in enumerate(ids):
        made = given if given and given not in out else f"{given or message_id}#{place + 1}"
        out.append(made)
    return out


def _answered(turns: list[dict[str, str]], named: str) -> str:
    """Close and return the open call that a result answers; empty if there is none."""
    for names_it in (True, False):
        for opened in reversed(turns):
            for made, own in opened.items():
                if made == named or own == named if names_it else not (named and own):
                    del opened[made]
                    return made
    return ""


def _event(at: Placed) -> Event:
    message = at.message
    if isinstance(message, ToolMessage):
        if not at.answers:
            # A result without a call: providers refuse it, so it becomes a custom event.
            value = message.model_dump(mode="json")
            custom = events.custom("langchain.orphan_result", value).custom
            return Event(event_id=at.event_id, custom=custom)
        return events.tool_result(
            at.answers,
            content(message),
            is_error=message.status == "error",
            tool_name=message.name or "",
            event_id=at.event_id,
        )
    if isinstance(message, AIMessage):
        said = _assistant(message, at.calls)
        model = message.response_metadata.get("model_name", "")
        model = model or message.response_metadata.get("model", "")
        if not said:
            return Event(event_id=at.event_id, custom=events.custom("empty_response").custom)
        return events.assistant(*said, model=model, event_id=at.event_id)
    role = Role.ROLE_SYSTEM if isinstance(message, SystemMessage) else Role.ROLE_USER
    return events.message(role, content(message), event_id=at.event_id)


def content(message: BaseMessage) -> list[Block]:
    """The blocks of a message's content: a text, or a list of texts and parts."""
    if isinstance(message.content, str):
        return [events.text(message.content)] if message.content else []
    blocks: list[Block] = []
    for part in message.content:
        blocks += [events.text(part)] if isinstance(part, str) and part else []
        blocks += _part(part, message) if isinstance(part, dict) else []
    return blocks


def _assistant(message: AIMessage, call_ids: Sequence[str]) -> list[Block]:
    blocks = content(message)
    names = ("reasoning_content", *openai_chat.SEALED, "audio", "refusal", "tool_calls")
    beside = {name: message.additional_kwargs.get(name) for name in names}
    outside = _rawjson.read(_rawjson.dumps(beside))
    blocks = openai_chat.reasoning(outside) + blocks + openai_chat.outside(outside)
    sealed = {c.string("id"): c for c in outside.get("tool_calls").elements()}
    # The arguments of an invalid call are not JSON: args has what the model wrote.
    for call_id, made in zip(
        call_ids, [*message.tool_calls, *message.invalid_tool_calls], strict=True
    ):
        written = "" if made["args"] is None else made["args"]
        members = openai_chat.beside_call(sealed.get(made["id"] or "", _rawjson.NULL))
        blocks += call(members, call_id, made["name"] or _NO_NAME, written)
    return blocks


def _part(part: dict[str, Any], message: BaseMessage) -> list[Block]:
    provider = _provider(message)
    part = _as_the_provider_has_it(part, provider)
    kind = part.get("type")
    if kind in _CALLS:
        return []
    raw = _rawjson.read(_rawjson.dumps(part))
    if kind == "text" and not part.get("citations") and not part.get("annotations"):
        return [events.text(part["text"])] if part.get("text") else []
    if kind in _ANTHROPIC or (kind == "image" and "source" in part):
        return anthropic.content(_rawjson.Raw(f"[{raw.json}]"))
    if kind in _OPENAI or (kind == "file" and "file" in part):
        return openai_part.content(_rawjson.Raw(f"[{raw.json}]"))
    if kind == "reasoning" and "summary" in part:
        return openai_responses.output(raw)
    if kind == "reasoning" and isinstance(part.get("reasoning"), str):
        signature = part.get("extras", {}).get("signature", "")
        return [Block(thinking=Thinking(text=part["reasoning"], signature=signature))]
    found = _media(part) if kind in ("image", "audio", "file", "video", "text-plain") else None
    if found is None and not isinstance(message, AIMessage):
        only = " that only the provider has" if part.get("file_id") or part.get("id") else ""
        raise ValueError(f"content: a part of the type {kind!r}{only} is not carried")
    return [found or events.provider_block(provider, raw.data)]


def _as_the_provider_has_it(part: dict[str, Any], provider: str) -> dict[str, Any]:
    """A part without members that streaming or LangChain added."""
    part = {name: value for name, value in part.items() if name != "index"}
    kind, extras = part.get("type"), part.get("extras") or {}
    if kind == "non_standard" and isinstance(part.get("value"), dict):
        return dict(part["value"])
    if kind == "server_tool_use" and "partial_json" in part:
        written = _rawjson.read(part.pop("partial_json") or "{}")
        return {**part, "input": written.value}
    if provider != "anthropic":
        return part
    if kind == "server_tool_call" and part.get("name") != "remote_mcp":
        name = "code_execution" if part["name"] == "code_interpreter" else part["name"]
        return {"type": "server_tool_use", "id": part["id"], "name": name, "input": part["args"]}
    if kind == "server_tool_result" and "block_type" in extras:
        of, output = part["tool_call_id"], part.get("output", [])
        return {"type": extras["block_type"], "tool_use_id": of, "content": output}
    return part


def _media(part: dict[str, Any]) -> Block | None:
    if isinstance(part.get("text"), str):
        return events.text(part["text"])
    mime_type = part.get("mime_type", "")
    encoded = part.get("base64") or part.get("data")
    if encoded:
        return events.media(data=base64.b64decode(encoded), mime_type=mime_type)
    return events.media(uri=part["url"], mime_type=mime_type) if part.get("url") else None


def _provider(message: BaseMessage) -> str:
    named = str(message.response_metadata.get("model_provider", "") or "langchain")
    return "google" if named.startswith("google") else named


def messages(context: Context) -> list[BaseMessage]:
    """A context as LangChain's messages, the system prompt first."""
    if context.format == "openai_chat":
        return [_chat(m) for m in _with_signatures(context.messages())]
    out: list[BaseMessage] = []
    if context.system is not None:
        out.append(SystemMessage(content=context.system))
    for message in context.messages():
        if message["role"] == "assistant":
            out.append(_ai(message["content"]))
        else:
            out.extend(_human(message["content"]))
    return out


def _with_signatures(given: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A signature that a proxy appended to the id of a call is there again.

    LangChain sends no other member of a call.
    """
    ids: dict[str, str] = {}
    for message in given:
        for made in message.get("tool_calls", ()):
            signature = made.get("provider_specific_fields", {}).get("thought_signature")
            ids[made["id"]] = events.signed_call_id(made["id"], signature or "")
            made["id"] = ids[made["id"]]
        if message["role"] == "tool":
            message["tool_call_id"] = ids.get(message["tool_call_id"], message["tool_call_id"])
    return given


def _chat(message: dict[str, Any]) -> BaseMessage:
    """The message. Calls whose arguments are not an object are invalid calls, sent unchanged."""
    valid: list[Any] = []
    invalid: list[InvalidToolCall] = []
    for made in message.get("tool_calls", ()):
        function = made["function"]
        if _is_object(function["arguments"]):
            valid.append(made)
            continue
        invalid.append(
            InvalidToolCall(
                type="invalid_tool_call",
                id=made["id"],
                name=function["name"],
                args=function["arguments"],
                error=None,
            )
        )
    if not invalid:
        return convert_to_messages([message])[0]
    plain = {name: value for name, value in message.items() if name != "tool_calls"}
    (said,) = convert_to_messages([{**plain, "tool_calls": valid} if valid else plain])
    assert isinstance(said, AIMessage)
    said.invalid_tool_calls = invalid
    return said


def _is_object(arguments: str) -> bool:
    try:
        return isinstance(json.loads(arguments, strict=False), dict)
    except (ValueError, RecursionError):
        return False


def _ai(blocks: list[Any]) -> AIMessage:
    calls = [b for b in blocks if b["type"] == "tool_use"]
    return AIMessage(
        content=blocks,
        tool_calls=[{"id": c["id"], "name": c["name"], "args": c["input"]} for c in calls],
        response_metadata={"model_provider": "anthropic"},
    )


def _human(blocks: Sequence[Any]) -> list[BaseMessage]:
    """In LangChain results are messages of their own, before the user's content."""
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
