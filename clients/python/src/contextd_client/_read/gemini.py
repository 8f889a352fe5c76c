"""Contents and responses of Google's Gemini API."""

from __future__ import annotations

import base64
import binascii
import json

from contextd_client import _rawjson as rawjson
from contextd_client import events
from contextd_client._rawjson import Raw
from contextd_client.v1.event_pb2 import Block, Event, Role, Thinking

PROVIDER = "google"
_MEDIA = ("image/", "audio/", "video/", "application/pdf")
_BARE = '{"thoughtSignature":%s}'


def response(raw: Raw) -> list[Event]:
    """The event of a response: its first candidate."""
    candidates = raw.get("candidates").elements()
    if not candidates:
        raise ValueError("candidates: the response has none")
    said = _parts(candidates[0].get("content"))
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
    if raw.string("role") == "model":
        return [events.assistant(*blocks)]
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


def _parts(raw: Raw) -> list[Block]:
    return [b for part in raw.get("parts").elements() for b in _part(part)]


def _part(raw: Raw) -> list[Block]:
    members = {name: value for name, value in raw.members().items() if value.json != "null"}
    signature = members.pop("thoughtSignature", None)
    if members.pop("thought", None) == Raw("true"):
        sealed = signature.text() if signature is not None else ""
        return [Block(thinking=Thinking(text=raw.string("text"), signature=sealed))]
    # The signature of a part that is not reasoning is a separate block before it.
    before: list[Block] = []
    if signature is not None and signature.text():
        before = [events.provider_block(PROVIDER, (_BARE % signature.json).encode())]
    if set(members) == {"text"}:
        said = members["text"].text()
        return [*before, events.text(said)] if said else before
    if set(members) == {"functionCall"}:
        return [*before, _call(members["functionCall"])]
    if set(members) == {"functionResponse"}:
        return [_result(members["functionResponse"])]
    if set(members) == {"inlineData"} and (media := _media(members["inlineData"])):
        return [*before, media]
    return [events.provider_block(PROVIDER, raw.data)]


def _call(raw: Raw) -> Block:
    name = raw.string("name")
    call_id = raw.string("id")
    if not call_id:
        raise ValueError(f"functionCall.id: the call of {name!r} has none; give it one first")
    arguments = raw.get("args")
    return events.tool_call(call_id, name, arguments.data if arguments.is_object else b"")


def _media(raw: Raw) -> Block | None:
    """The media of a part. Files that are texts are not media: only Gemini accepts these as files.

    The SDK writes base64 in the alphabet for URLs; the API accepts both.
    """
    mime = raw.string("mimeType")
    data = raw.string("data").replace("-", "+").replace("_", "/")
    if not mime.lower().startswith(_MEDIA) or not data:
        return None
    try:
        return events.media(data=base64.b64decode(data, validate=True), mime_type=mime)
    except binascii.Error:
        return None


def _result(raw: Raw) -> Block:
    given = raw.get("response")
    members = given.members()
    failed = set(members) == {"error"}
    # ADK and the SDK's automatic calls say "result" where the API's documentation says "output".
    if failed or set(members) in ({"output"}, {"result"}):
        (value,) = members.values()
    else:
        value = given
    parts = raw.get("parts").elements()
    said = value.text() if value.json.startswith('"') else value.json
    if not members and (parts or not given.present):
        said = ""
    blocks = [events.text(said)] if said else []
    blocks += [block for part in parts for block in _result_part(part)]
    return events.result_block(
        raw.string("id"), blocks, is_error=failed, tool_name=raw.string("name")
    )


def _result_part(raw: Raw) -> list[Block]:
    file = raw.get("fileData")
    uri = file.string("fileUri")
    if uri:
        return [events.media(uri=uri, mime_type=file.string("mimeType"))]
    return _part(raw)


def with_call_ids(raw: Raw, prefix: str) -> Raw:
    """The same response with ids for calls without one.

    Gemini's API omits ids of some calls, but a result must name its call.
    """
    body = json.loads(raw.json)
    for candidate in body.get("candidates", ())[:1]:
        parts = (candidate.get("content") or {}).get("parts") or ()
        calls = [p["functionCall"] for p in parts if p.get("functionCall")]
        if all(call.get("id") for call in calls):
            return raw
        for number, call in enumerate(calls):
            call["id"] = call.get("id") or f"{prefix}_{number}"
        return Raw(rawjson.dumps(body))
    return raw
