"""Messages and responses of Anthropic's Messages API."""

from __future__ import annotations

from contextd_client import _rawjson as rawjson
from contextd_client import events
from contextd_client._rawjson import Raw
from contextd_client._read.beside import beside, call, written
from contextd_client.v1.event_pb2 import Block, Event, Role, Thinking

PROVIDER = "anthropic"


def message(raw: Raw) -> list[Event]:
    """The events of a message, or of a response, which is a message with an id."""
    if raw.get("system").present and not raw.get("role").present:
        return [events.system(*_content(raw, "system"))]
    role = raw.string("role")
    blocks = _content(raw, "content")
    if role == "assistant":
        return [events.assistant(*blocks, model=raw.string("model"), event_id=raw.string("id"))]
    if role == "system":
        return [events.system(*blocks)]
    if role != "user":
        raise ValueError(f'role: "{role}" is unknown')
    # In this API a user's message has the results, before the user's own content.
    results = [b for b in blocks if b.HasField("tool_result")]
    said = [b for b in blocks if not b.HasField("tool_result")]
    out = [events.message(Role.ROLE_TOOL, results)] if results else []
    return out + ([events.user(*said)] if said else [])


def _content(of: Raw, name: str) -> list[Block]:
    of.require_content(name)
    return content(of.get(name), name)


def content(raw: Raw, name: str = "content") -> list[Block]:
    """The blocks of the member with a content: a string or a list."""
    if not raw.is_list:
        return [events.text(raw.text())] if raw.text() else []
    found: list[Block] = []
    for number, item in enumerate(raw.elements()):
        with rawjson.at(f"{name}[{number}]"):
            found += _call(item) if item.string("type") == "tool_use" else [_block(item)]
    return [b for b in found if not (b.HasField("text") and not b.text.text)]


def _call(raw: Raw) -> list[Block]:
    members = beside(PROVIDER, raw, "caller", "toolset_name")
    return call(members, raw.string("id"), raw.string("name"), written(raw.get("input")))


def _block(raw: Raw) -> Block:
    kind = raw.string("type")
    if kind == "text" and not raw.get("citations").elements():
        return events.text(raw.string("text"))
    if kind == "thinking":
        thinking = Thinking(text=raw.string("thinking"), signature=raw.string("signature"))
        return Block(thinking=thinking)
    if kind == "redacted_thinking":
        return Block(thinking=Thinking(redacted_data=raw.string("data").encode()))
    if kind == "tool_result":
        said = _content(raw, "content") if raw.get("content").present else []
        failed = raw.get("is_error").value is True
        return events.result_block(raw.string("tool_use_id"), said, is_error=failed)
    if kind in ("image", "document"):
        found = _media(raw)
        if found is not None:
            return found
    return events.provider_block(PROVIDER, raw.data)


def _media(raw: Raw) -> Block | None:
    if any(raw.get(name).present for name in ("title", "context", "citations")):
        return None
    source = raw.get("source")
    if source.string("type") == "url" and source.string("url"):
        return events.media(uri=source.string("url"), mime_type=source.string("media_type"))
    if source.string("type") != "base64":
        return None
    data = rawjson.unbase64(source.string("data"))
    return events.media(data=data, mime_type=source.string("media_type")) if data else None
