"""Content parts that both of OpenAI's APIs have."""

from __future__ import annotations

from contextd_client import _rawjson as rawjson
from contextd_client import events
from contextd_client._rawjson import Raw
from contextd_client.v1.event_pb2 import Block

PROVIDER = "openai"


def content(raw: Raw) -> list[Block]:
    """The blocks of a content: a string or a list of parts. Empty texts are dropped."""
    if not raw.is_list:
        return [events.text(raw.text())] if raw.text() else []
    found = [_part(item) for item in raw.elements()]
    return [b for b in found if not (b.HasField("text") and not b.text.text)]


def _part(raw: Raw) -> Block:
    kind = raw.string("type")
    if kind in ("text", "input_text", "output_text") and not raw.get("annotations").elements():
        return events.text(raw.string("text"))
    if kind in ("image_url", "input_image"):
        source = raw.get("image_url")
        url = source.text() or source.string("url")
        detail = raw.string("detail") or source.string("detail")
        found = image(url) if detail in ("", "auto") else None
        if found is not None:
            return found
    return events.provider_block(PROVIDER, raw.data)


def free_input(raw: Raw) -> bytes:
    """The arguments of a call whose input is a text."""
    return b'{"input":%b}' % (raw.data if raw.present else b'""')


def image(url: str) -> Block | None:
    """The image at an address, or in one; None where there is none."""
    if not url.startswith("data:"):
        return events.media(uri=url) if url else None
    mime_type, _, encoded = url.removeprefix("data:").partition(";base64,")
    data = rawjson.unbase64(encoded)
    return events.media(data=data, mime_type=mime_type) if data else None
