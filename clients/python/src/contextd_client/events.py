"""Events and their blocks, made from plain values."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from contextd_client._rawjson import dumps, mended
from contextd_client._requests import checked
from contextd_client.v1.event_pb2 import (
    Block,
    CustomEvent,
    Event,
    Media,
    Message,
    ProviderBlock,
    Reminder,
    Role,
    Text,
    ToolCall,
    ToolResult,
)

ASSISTANT = Role.ROLE_ASSISTANT

Content = str | Block
"""A block, or the text of one."""


def system(*content: Content, event_id: str = "", pinned: bool = False) -> Event:
    """The system prompt, or a later message of the system."""
    return message(Role.ROLE_SYSTEM, content, event_id=event_id, pinned=pinned)


def user(*content: Content, event_id: str = "", pinned: bool = False) -> Event:
    """A user's message."""
    return message(Role.ROLE_USER, content, event_id=event_id, pinned=pinned)


def assistant(*content: Content, model: str = "", event_id: str = "", group_id: str = "") -> Event:
    """A message of the model: texts, calls, reasoning.

    Without a model's name, contexts omit reasoning whose seal does not identify its provider.
    """
    return message(ASSISTANT, content, model=model, event_id=event_id, group_id=group_id)


def tool_result(
    call_id: str,
    content: str | Iterable[Content] = (),
    *,
    is_error: bool = False,
    tool_name: str = "",
    event_id: str = "",
) -> Event:
    """The result of one tool call."""
    block = result_block(call_id, content, is_error=is_error, tool_name=tool_name)
    return message(Role.ROLE_TOOL, [block], event_id=event_id)


def message(
    role: Role.ValueType,
    content: str | Iterable[Content],
    *,
    model: str = "",
    event_id: str = "",
    group_id: str = "",
    pinned: bool = False,
    time: datetime | None = None,
    labels: Mapping[str, str] | None = None,
) -> Event:
    """A message of any role."""
    said = checked(
        Message, role=role, blocks=_blocks(content), model=model, group_id=group_id, pinned=pinned
    )
    event = checked(Event, event_id=event_id, message=said, labels=labels)
    if time is not None:
        if not isinstance(time, datetime):
            raise TypeError(f"time: must be a datetime, not {time!r:.60}")
        event.time.FromDatetime(time)
    return event


def reminder(
    body: str,
    *,
    ttl_turns: int | None = None,
    dedupe_key: str = "",
    source: str = "",
    event_id: str = "",
) -> Event:
    """A text at the end of contexts, for ttl_turns turns; None: until it is replaced."""
    made = checked(Reminder, body=body, ttl_turns=ttl_turns, dedupe_key=dedupe_key, source=source)
    return checked(Event, event_id=event_id, reminder=made)


def custom(type: str, value: Any = None, *, event_id: str = "") -> Event:
    """An entry that no model sees."""
    data = b"" if value is None else _json("value", value)
    made = checked(CustomEvent, type=type, json=data)
    return checked(Event, event_id=event_id, custom=made)


def text(value: str) -> Block:
    """A text. Lone surrogates, which UTF-8 cannot encode, become U+FFFD."""
    if not isinstance(value, str):
        raise TypeError(f"value: must be str, not {value!r:.60}")
    return Block(text=Text(text=mended(value)))


_SIGNED = "__thought__"


def signed_call_id(call_id: str, signature: str) -> str:
    """The reverse of split_call_id."""
    return f"{call_id}{_SIGNED}{signature}" if signature else call_id


def split_call_id(call_id: str) -> tuple[str, str]:
    """A call's id, and Google's signature of the call.

    Proxies such as LiteLLM append the signature to the id so that it comes back through clients
    that know no other member for it. An id is at most 512 characters, and the signature is longer.
    """
    if isinstance(call_id, str):
        of, _, signature = call_id.partition(_SIGNED)
        if of and re.fullmatch(r"[A-Za-z0-9+/=_-]+", signature):
            return of, signature
    return call_id, ""


def tool_call(call_id: str, name: str, arguments: bytes | str | Mapping[str, Any]) -> Block:
    """A call. arguments: what the model wrote, JSON or not, or a value to encode as JSON."""
    if isinstance(arguments, str):
        arguments = mended(arguments).encode()
    elif not isinstance(arguments, bytes):
        arguments = _json("arguments", arguments)
    call = checked(ToolCall, call_id=split_call_id(call_id)[0], name=name, arguments_json=arguments)
    return Block(tool_call=call)


def result_block(
    call_id: str, content: str | Iterable[Content], *, is_error: bool = False, tool_name: str = ""
) -> Block:
    """The result of a call as a block; a tool's message may have several."""
    result = checked(
        ToolResult,
        call_id=split_call_id(call_id)[0],
        content=_blocks(content),
        is_error=is_error,
        tool_name=tool_name,
    )
    return Block(tool_result=result)


def media(*, data: bytes = b"", uri: str = "", mime_type: str = "", tokens: int = 0) -> Block:
    """An image, a sound or a document: its bytes, or its URI."""
    made = checked(Media, data=data, uri=uri, mime_type=mime_type, tokens=tokens)
    return Block(media=made)


def provider_block(provider: str, value: bytes) -> Block:
    """A block of `anthropic`, `openai` or `google`, kept unchanged for that provider."""
    if not isinstance(value, bytes):
        raise TypeError(f"value: must be bytes, not {value!r:.60}")
    return Block(provider=checked(ProviderBlock, provider=provider, json=value))


def _json(name: str, value: Any) -> bytes:
    try:
        return dumps(value).encode()
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def _blocks(content: str | Iterable[Content]) -> list[Block]:
    if isinstance(content, str):
        content = [content] if content else []
    if not isinstance(content, Iterable) or isinstance(content, bytes | Mapping):
        # The items of a bytes or a dict would be numbers or keys.
        raise TypeError(f"content: must be str, or a list of str and Block, not {content!r:.60}")
    return [_block(c) for c in content]


def _block(content: Content) -> Block:
    if isinstance(content, str):
        return text(content)
    if not isinstance(content, Block):
        raise TypeError(f"content: must be str or Block, not {content!r:.60}")
    return content
