"""Where an asyncio client may be made."""

from __future__ import annotations

import asyncio

import pytest

import contextd_client.aio
from contextd_client import events
from contextd_client._conversation import Conversation


def test_a_client_may_be_made_before_its_loop(address: str) -> None:
    """As by a module that makes it when it is imported."""
    client = contextd_client.aio.Client(address)

    async def talk() -> int:
        async with client:
            appended = await client.append("py/loops", events.user("hello"))
            return appended.last_seq

    assert asyncio.run(talk()) == 1


def test_one_that_made_no_call_can_be_closed() -> None:
    asyncio.run(contextd_client.aio.Client("127.0.0.1:1").close())


def test_an_adapter_refuses_the_client_without_loops(client: contextd_client.Client) -> None:
    with pytest.raises(TypeError, match=r"^client: must be contextd_client\.aio\.Client, not "):
        Conversation(client, "py/loops", "contextd")  # type: ignore[arg-type]
