"""Calls of models, and members of a block or item that an event has no field for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from contextd_client import events
from contextd_client._rawjson import Raw
from contextd_client.v1.event_pb2 import Block


def beside(provider: str, raw: Raw, *names: str) -> list[Block]:
    """A block with these members, before the one that they belong to.

    That the model made a call itself is not among them.
    """
    kept = [
        f'"{name}":{given.json}'
        for name in names
        if (given := raw.get(name)).present
        and given.string("type") != "direct"
        and given.json != "false"
    ]
    return [events.provider_block(provider, f"{{{','.join(kept)}}}".encode())] if kept else []


def call(
    members: list[Block], call_id: str, name: str, arguments: bytes | str | Mapping[str, Any]
) -> list[Block]:
    """A call after the members of its item.

    A signature that a proxy appended to its id is one of these, unless the item has others.
    """
    _, signature = events.split_call_id(call_id)
    if signature and not members:
        own = f'{{"provider_specific_fields":{{"thought_signature":"{signature}"}}}}'
        members = [events.provider_block("openai", own.encode())]
    return [*members, events.tool_call(call_id, name, arguments)]


def written(raw: Raw) -> bytes:
    """The arguments of a call.

    Some APIs have them as a text, others as they are, and servers do not always do as the API
    that they follow.
    """
    if raw.json.startswith('"'):
        return raw.text().encode()
    return raw.data if raw.present else b""
