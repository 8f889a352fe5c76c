"""Contents and responses of Google's Gemini API."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from contextd_client import _rawjson as rawjson
from contextd_client import events
from contextd_client._rawjson import Raw
from contextd_client._read.beside import beside, call, written
from contextd_client.v1.event_pb2 import Block, Event, Role, Thinking

PROVIDER = "google"
_MEDIA = ("image/", "audio/", "video/")
_SAID_BESIDE = ("thought", "thoughtSignature")
_BARE = '{"thoughtSignature":%s}'


def response(raw: Raw) -> list[Event]:
    """The event of a response: its first candidate; a prompt that was blocked has none.

    Gemini's API omits ids of some calls. They are given one, as a result must name its call.
    """
    candidates = raw.get("candidates").elements()
    if not candidates and not raw.get("promptFeedback").present:
        raise ValueError("candidates: the response has none")
    first = candidates[0] if candidates else rawjson.NULL
    numbers = itertools.count()
    prefix = raw.string("responseId") or "call"
    said = _parts(first.get("content"), lambda _: f"{prefix}_{next(numbers)}")
    model = raw.string("modelVersion")
    return [events.assistant(*said, model=model, event_id=raw.string("responseId"))]


def content(raw: Raw) -> list[Event]:
    """The events of a content."""
    prompt = raw.get("systemInstruction")
    said_by = prompt if prompt.present else raw
    _require_parts(said_by)
    blocks = _parts(said_by)
    if prompt.present:
        return [events.system(*blocks)]
    role = raw.string("role")
    if role == "model":
        return [events.assistant(*blocks)]
    if role not in ("", "user"):
        raise ValueError(f'role: "{role}" is unknown')
    results = [b for b in blocks if b.HasField("tool_result")]
    said = [b for b in blocks if not b.HasField("tool_result")]
    out = [events.message(Role.ROLE_TOOL, results)] if results else []
    return out + ([events.user(*said)] if said else [])


def _require_parts(raw: Raw) -> None:
    """Raises ValueError if a content's parts would be lost."""
    parts = raw.get("parts")
    empty = raw.is_object and parts == rawjson.NULL and set(raw.members()) <= {"role", "parts"}
    if not parts.is_list and not empty:
        raise ValueError("parts: must be a list")
    parts.require_objects("parts")


def _no_id(name: str) -> str:
    raise ValueError(f'functionCall.id: the call of "{name}" has none; give it one first')


def _parts(raw: Raw, new_id: Callable[[str], str] = _no_id) -> list[Block]:
    found: list[Block] = []
    for number, part in enumerate(raw.get("parts").elements()):
        with rawjson.at(f"parts[{number}]"):
            found += _part(part, new_id)
    return found


def _part(raw: Raw, new_id: Callable[[str], str]) -> list[Block]:
    kind, others = _kind(raw)
    signature = raw.get("thoughtSignature")
    is_thought = raw.get("thought") == Raw("true")
    if is_thought and kind in ("", "text") and not others:
        made = Thinking(text=raw.string("text"), signature=signature.text())
        return [Block(thinking=made)] if made.text or made.signature else []
    # The signature of a part that is not reasoning is a separate block before it.
    before: list[Block] = []
    if signature.text():
        before = [events.provider_block(PROVIDER, (_BARE % signature.json).encode())]
    part = raw.get(kind)
    if kind == "functionCall":
        name = part.string("name")
        call_id = part.string("id") or new_id(name)
        members = [*beside(PROVIDER, raw, *others), *before]
        return call(members, call_id, name, written(part.get("args")))
    if kind == "functionResponse":
        result = _result(part)
        result.tool_result.content.extend(beside(PROVIDER, raw, *others))
        return [*before, result]
    if kind == "text" and not others:
        return [*before, events.text(part.text())] if part.text() else before
    if kind == "inlineData" and not others and not is_thought and (media := _media(part)):
        return [*before, media]
    return [events.provider_block(PROVIDER, raw.data)]


def _kind(raw: Raw) -> tuple[str, list[str]]:
    """The member of a part that says what it is, and the other members.

    Beside a call or a result they are metadata.
    """
    members = raw.members()
    others = sorted(name for name in members if members[name].present and name not in _SAID_BESIDE)
    kinds = [name for name in others if name in ("functionCall", "functionResponse")]
    kind = kinds[0] if kinds else others[0] if len(others) == 1 else ""
    return kind, [name for name in others if name != kind]


def _media(raw: Raw) -> Block | None:
    """The media of a part. Files that are texts are not media: only Gemini accepts these as files.

    The SDK writes base64 in the alphabet for URLs; the API accepts both.
    """
    mime = raw.string("mimeType")
    if not mime.lower().startswith(_MEDIA) and mime.lower() != "application/pdf":
        return None
    data = rawjson.unbase64(raw.string("data").replace("-", "+").replace("_", "/"))
    return events.media(data=data, mime_type=mime) if data else None


def _result(raw: Raw) -> Block:
    given = raw.get("response")
    members = given.members()
    # ADK and the SDK's automatic calls say "result" where the API's documentation says "output".
    value = given
    if set(members) in ({"output"}, {"result"}, {"error"}):
        (only,) = members.values()
        value = only if only.present else given
    failed = value is not given and "error" in members
    parts = raw.get("parts").elements()
    said = value.json
    if said.startswith('"'):
        said = value.text()
    elif not members and (parts or not given.present):
        said = ""
    blocks = [events.text(said)] if said else []
    blocks += [_file(part) for part in parts]
    return events.result_block(
        raw.string("id"), blocks, is_error=failed, tool_name=raw.string("name")
    )


def _file(raw: Raw) -> Block:
    file = raw.get("fileData")
    uri = file.string("fileUri")
    if uri:
        return events.media(uri=uri, mime_type=file.string("mimeType"))
    return _media(raw.get("inlineData")) or events.provider_block(PROVIDER, raw.data)
