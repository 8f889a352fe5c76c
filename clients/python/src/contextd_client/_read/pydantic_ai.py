"""Pydantic AI's messages, as events for the log, and made from a context."""

from __future__ import annotations

import base64
import dataclasses
import json
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import TypeAdapter
from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    ModelResponsePart,
    RetryPromptPart,
    SystemPromptPart,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from contextd_client import _rawjson, _sdk_json, events
from contextd_client._read import beside
from contextd_client.v1.event_pb2 import Block, Event, Role, Thinking

PROVIDER = "pydantic-ai"
"""The provider of blocks for parts that the log has no kind of block for."""

_NO_NAME = "unknown_tool"
_ANY: TypeAdapter[Any] = TypeAdapter(Any)
_REQUEST: TypeAdapter[ModelRequestPart] = TypeAdapter(ModelRequestPart)
_RESPONSE: TypeAdapter[ModelResponsePart] = TypeAdapter(ModelResponsePart)

_Shown = tuple[ModelResponse, dict[str, Any]]
"""A response, and its parts by what their blocks are shown as; None for a block before a call."""


class History:
    """A conversation as events, and its contexts as messages.

    A part that a context shows unchanged is the original object, with what the log does not
    have: provider's details, metadata, times. Two things are not part of the conversation: a
    response that the provider interrupted and will continue, and prompts for a single request.
    """

    def __init__(self, messages: Sequence[ModelMessage]) -> None:
        self.events: list[Event] = []
        self._paused: list[ModelMessage] = []
        if getattr(messages[-1], "state", "") == "suspended":
            self._paused = [messages[-1]]
            messages = messages[:-1]
        self._newest = next((m for m in reversed(messages) if isinstance(m, ModelRequest)), None)
        newest: Sequence[Any] = self._newest.parts if self._newest else []
        self._once = [part for part in newest if _for_one_request(part)]
        self._asked: dict[str, Any] = {}
        self._said: list[_Shown] = []
        for message in messages:
            if isinstance(message, ModelResponse):
                self._add_response(message)
            else:
                for part in message.parts:
                    self._add_request_part(part)

    def _add_response(self, response: ModelResponse) -> None:
        blocks: list[Block] = []
        parts: dict[str, Any] = {}
        for part in response.parts:
            made = _said(part)
            blocks += made
            parts |= {_key([_shown(block)]): None for block in made[:-1]}
            parts |= {_key([_shown(block)]): part for block in made[-1:]}
        if blocks:
            self.events.append(events.assistant(*blocks, model=response.model_name or ""))
            self._said.append((response, parts))

    def _add_request_part(self, part: Any) -> None:
        event = _asked(part)
        if event is not None:
            self.events.append(event)
            self._asked[_key([_shown(b) for b in event.message.blocks])] = part

    @property
    def beside(self) -> str:
        """The request's texts outside the conversation, such as instructions."""
        instructions = (self._newest and self._newest.instructions) or ""
        return "\n".join([instructions, *(str(part.content) for part in self._once)]).strip()

    def messages(self, context: Sequence[Any]) -> list[ModelMessage]:
        """The messages of a context in contextd's own format."""
        out: list[ModelMessage] = []
        origins = self._origins(context)
        ids: dict[str, str] = {}
        for message in context:
            if message["role"] == "assistant":
                out.append(_response(message["blocks"], origins.pop()))
                calls = [p for p in out[-1].parts if isinstance(p, ToolCallPart)]
                ids |= {events.split_call_id(c.tool_call_id)[0]: c.tool_call_id for c in calls}
                continue
            if not out or not isinstance(out[-1], ModelRequest):
                out.append(ModelRequest(parts=[]))
            out[-1].parts = [*out[-1].parts, self._request_part(message, ids)]
        last = out.pop() if out and isinstance(out[-1], ModelRequest) else ModelRequest(parts=[])
        if self._newest is not None and (last.parts or self._once):
            out.append(dataclasses.replace(self._newest, parts=[*last.parts, *self._once]))
        return out + self._paused

    def _origins(self, context: Sequence[Any]) -> list[_Shown | None]:
        """The response that each of the model's messages shows.

        They are matched from the newest to the oldest, since contexts drop the oldest.
        """
        out: list[_Shown | None] = []
        end = len(self._said)
        for message in reversed(context):
            if message["role"] != "assistant":
                continue
            shown = {_key([block]) for block in message["blocks"]}
            places = (i for i in reversed(range(end)) if shown <= self._said[i][1].keys())
            place = next(places, None)
            out.append(None if place is None else self._said[place])
            end = end if place is None else place
        return out

    def _request_part(self, message: Any, ids: Mapping[str, str]) -> Any:
        """ids: those of the calls so far, without and with Google's signature."""
        blocks = message["blocks"]
        part = self._asked.get(_key(blocks))
        if part is not None:
            return part
        if message["role"] == "system":
            return SystemPromptPart(content=_text(blocks))
        if message["role"] == "tool":
            return _result(blocks[0]["tool_result"], ids)
        if len(blocks) == 1 and "provider" in blocks[0]:
            return _REQUEST.validate_python(blocks[0]["provider"]["json"])
        return UserPromptPart(content=[c for b in blocks for c in _user_content(b)])


def _response(blocks: Sequence[Any], origin: _Shown | None) -> ModelResponse:
    if origin is None:
        return ModelResponse(parts=_response_parts(blocks))
    response, of_block = origin
    parts = [part for block in blocks if (part := of_block[_key([block])]) is not None]
    shown = {id(part) for part in parts}
    parts = [p for p in parts if not _blank(p)] or parts
    if any(isinstance(p, ThinkingPart) and id(p) not in shown for p in of_block.values()):
        # A stored item must not be referred to by its id without the reasoning before it.
        parts = [dataclasses.replace(p, id=None) if getattr(p, "id", "") else p for p in parts]
    return dataclasses.replace(response, parts=parts)


def _blank(part: Any) -> bool:
    """Whether it is a blank text, which Anthropic refuses. With an id, a provider may need it."""
    return isinstance(part, TextPart) and not part.content.strip() and not part.id


def _said(part: Any) -> list[Block]:
    """A part's block, which is the last, and what is before it."""
    if isinstance(part, TextPart):
        return [events.text(part.content)] if part.content else []
    if getattr(part, "part_kind", "") == "speech" and part.transcript and not part.audio:
        return [events.text(part.transcript)]
    if isinstance(part, ToolCallPart):
        written = "" if part.args is None else part.args
        return beside.call([], part.tool_call_id, part.tool_name or _NO_NAME, written)
    if isinstance(part, ThinkingPart):
        thinking = _thinking(part)
        return [Block(thinking=thinking)] if thinking.ByteSize() else []
    return [events.provider_block(PROVIDER, _RESPONSE.dump_json(part))]


def _thinking(part: ThinkingPart) -> Thinking:
    sealed = part.signature or ""
    if part.id == "redacted_thinking":
        return Thinking(text=part.content, redacted_data=sealed.encode())
    if part.provider_name == "openai" and sealed:
        # The seal is only valid for the item with this id.
        return Thinking(text=part.content, signature=part.id or "", encrypted_content=sealed)
    return Thinking(text=part.content, signature=sealed)


def _for_one_request(part: Any) -> bool:
    return getattr(part, "scope", "") == "request"


def _asked(part: Any) -> Event | None:
    if _for_one_request(part):
        return None
    if isinstance(part, SystemPromptPart):
        return events.system(part.content) if part.content else None
    if isinstance(part, UserPromptPart):
        given = [part.content] if isinstance(part.content, str) else part.content
        blocks = [block for content in given if content for block in _user_block(content)]
        return events.user(*blocks) if blocks else None
    if isinstance(part, ToolReturnPart):
        failed = getattr(part, "outcome", "success") not in ("success", "denied")
        return _answer(part, part.model_response_str(), failed)
    if getattr(part, "part_kind", "") == "retry-prompt":
        assert isinstance(part, RetryPromptPart)
        if part.tool_name is not None:
            return _answer(part, part.model_response(), True)
        return _of_the_framework(part.model_response())
    if getattr(part, "part_kind", "") == "retry-feedback":
        return _of_the_framework(part.model_response())
    if getattr(part, "part_kind", "") == "speech" and part.transcript and not part.audio:
        return events.user(part.transcript)
    return _of_the_framework(events.provider_block(PROVIDER, _REQUEST.dump_json(part)))


def _of_the_framework(content: str | Block) -> Event:
    """A message with the user's role that no human wrote."""
    return events.message(Role.ROLE_USER, [content], labels={"harness.injected": "true"})


def _answer(part: Any, text: str, failed: bool) -> Event:
    blocks: list[str | Block] = [text] if text else []
    for file in getattr(part, "files", ()):
        blocks += _user_block(file)
    return events.tool_result(part.tool_call_id, blocks, is_error=failed, tool_name=part.tool_name)


def _user_block(content: Any) -> list[Block]:
    if isinstance(content, str):
        return [events.text(content)]
    if isinstance(content, BinaryContent):
        return [events.media(data=content.data, mime_type=content.media_type)]
    kind = getattr(content, "kind", "")
    if kind == "cache-point":
        return []  # a cache mark of one request; the daemon sets its own
    if kind in ("text-content", "structured-content"):
        return [events.text(content.content)]
    return [events.provider_block(PROVIDER, _ANY.dump_json(content))]


_USER: TypeAdapter[UserPromptPart] = TypeAdapter(UserPromptPart)


def _user_content(block: Any) -> list[Any]:
    if "text" in block:
        return [block["text"]["text"]]
    if "media" in block:
        value = block["media"]
        data = base64.b64decode(value["data"])
        return [BinaryContent(data=data, media_type=value["mime_type"])]
    if "provider" in block:
        read = _USER.validate_python({"content": [block["provider"]["json"]]})
        return list(read.content)
    return []


def _response_parts(blocks: Sequence[Any]) -> list[Any]:
    parts: list[Any] = []
    signature = ""
    for block in blocks:
        if "provider" in block and block["provider"]["provider"] == "openai":
            members = _rawjson.Raw(_rawjson.dumps(block["provider"]["json"]))
            signature = members.get("provider_specific_fields").string("thought_signature")
            continue
        part = _response_part(block)
        if isinstance(part, ToolCallPart):
            part.tool_call_id = events.signed_call_id(part.tool_call_id, signature)
            signature = ""
        parts.append(part)
    return parts


def _response_part(block: Any) -> Any:
    if "text" in block:
        return TextPart(content=block["text"]["text"])
    if "tool_call" in block:
        call = block["tool_call"]
        args = call.get("arguments_json", call.get("arguments_text"))
        if args is not None and not isinstance(args, dict | str):
            args = _rawjson.dumps(args)
        return ToolCallPart(tool_name=call["name"], args=args, tool_call_id=call["call_id"])
    if "thinking" in block:
        return ThinkingPart(content=block["thinking"].get("text", ""))
    return _RESPONSE.validate_python(block["provider"]["json"])


def _result(value: Any, ids: Mapping[str, str]) -> ToolReturnPart:
    return ToolReturnPart(
        tool_name=value.get("tool_name", ""),
        content=_text(value["content"]),
        tool_call_id=ids.get(value["call_id"], value["call_id"]),
    )


def _text(blocks: Sequence[Any]) -> str:
    return "\n".join(b["text"]["text"] for b in blocks if "text" in b)


def _key(blocks: Sequence[Any]) -> str:
    return json.dumps(blocks, sort_keys=True)


def _shown(block: Block) -> Any:
    """A block as contextd's own format shows it, as a value."""
    if block.HasField("text"):
        return {"text": {"text": block.text.text}}
    if block.HasField("tool_call"):
        return {"tool_call": _shown_call(block.tool_call)}
    if block.HasField("tool_result"):
        result = block.tool_result
        shown: dict[str, Any] = {"call_id": result.call_id}
        if result.tool_name:
            shown["tool_name"] = result.tool_name
        shown["content"] = [_shown(b) for b in result.content]
        if result.is_error:
            shown["is_error"] = True
        return {"tool_result": shown}
    if block.HasField("provider"):
        value = _sdk_json.loads(block.provider.json)
        return {"provider": {"provider": block.provider.provider, "json": value}}
    if block.HasField("media"):
        media = block.media
        data = base64.b64encode(media.data).decode()
        return {"media": _present(mime_type=media.mime_type, data=data, uri=media.uri)}
    thinking = block.thinking
    redacted = base64.b64encode(thinking.redacted_data).decode()
    return {
        "thinking": _present(
            text=thinking.text,
            signature=thinking.signature,
            redacted_data=redacted,
            encrypted_content=thinking.encrypted_content,
        )
    }


def _shown_call(call: Any) -> dict[str, Any]:
    shown = {"call_id": call.call_id, "name": call.name}
    try:
        return {**shown, "arguments_json": _sdk_json.loads(call.arguments_json)}
    except ValueError:
        written = call.arguments_json.decode()
        return {**shown, "arguments_text": written} if written else shown


def _present(**members: str) -> dict[str, str]:
    return {name: value for name, value in members.items() if value}
