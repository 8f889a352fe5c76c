"""Members of a model's block or item that an event has no field for."""

from __future__ import annotations

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
