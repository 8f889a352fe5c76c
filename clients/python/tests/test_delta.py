"""A client that requests only new messages holds the same as one that requests all."""

from __future__ import annotations

import hashlib
from typing import get_args

import pytest
from conversation import BUDGET, POLICY, opening, turn

import contextd_client
import contextd_client.aio
from contextd_client import FormatName, Injection, IntegrityError, _assembly, events
from contextd_client.errors import StreamError
from contextd_client.v1.assembly_pb2 import (
    AssembleContextRequest,
    AssembleContextResponse,
    ContextHeader,
    ContextTrailer,
    MessageChunk,
    RenderedMessage,
)

FORMATS = get_args(FormatName)


def clock(number: int) -> list[Injection]:
    """An injection in every second turn."""
    if number % 2:
        return []
    text = events.text(f"It is {number} o'clock.")
    return [Injection(name="clock", blocks=[text], reserve_tokens=40)]


@pytest.mark.parametrize("format", FORMATS)
def test_forty_turns(address: str, session_id: str, format: FormatName) -> None:
    with contextd_client.Client(address) as delta:
        delta.append(session_id, *opening())
        sent = whole = rewritten = 0
        for number in range(1, 41):
            injections = clock(number)
            held = delta.assemble(
                session_id, format, budget=BUDGET, policy=POLICY, injections=injections
            )
            with contextd_client.Client(address) as full:
                asked = full.assemble(
                    session_id, format, budget=BUDGET, policy=POLICY, injections=injections,
                    preview=True,
                )  # fmt: skip
            assert held.lines == asked.lines
            assert held.context_hash == contextd_client.hash_lines(held.lines)
            assert held.system == asked.system
            assert asked.sent == len(asked.lines)
            sent += held.sent
            whole += asked.sent
            rewritten += held.header.HasField("have_broken")
            delta.append(session_id, *turn(number))
    assert rewritten, "nothing was ever rewritten: the budget is too wide for this test"
    assert sent * 2 < whole, f"{sent} of {whole} messages were sent"


async def test_asyncio_is_sent_the_same(
    client: contextd_client.Client, aclient: contextd_client.aio.Client, session_id: str
) -> None:
    client.append(session_id, *opening())
    for number in range(1, 6):
        mine = client.assemble(session_id, "anthropic", budget=BUDGET, policy=POLICY)
        other = await aclient.assemble(session_id, "anthropic", budget=BUDGET, policy=POLICY)
        assert mine.lines == other.lines
        assert other.sent < len(other.lines) or number == 1
        await aclient.append(session_id, *turn(number))
    read = [event.event_id async for event in aclient.read_events(session_id)]
    assert read == [event.event_id for event in client.read_events(session_id)]
    assert len(read) == (await aclient.get_session(session_id)).head_seq


def test_resolves_what_is_not_shown(client: contextd_client.Client, session_id: str) -> None:
    client.append(session_id, *opening(), *(e for n in range(1, 30) for e in turn(n)))
    plain = client.assemble(session_id, "anthropic", budget=BUDGET, policy=POLICY)
    assert not plain.header.HasField("projection"), "it grows with the session"
    assert plain.projection_id
    with pytest.raises(ValueError, match="projection=True"):
        _ = plain.pointers
    told = client.assemble(
        session_id, "anthropic", budget=BUDGET, policy=POLICY, preview=True, projection=True
    )
    assert told.lines == plain.lines
    assert told.sent == 0
    for known in told.header.projection.redaction_pointers:
        result = client.resolve_pointer(session_id, known.pointer).block.tool_result
        body = "\n".join(block.text.text for block in result.content)
        assert "sha256:" + hashlib.sha256(body.encode()).hexdigest() == known.content_hash
    assert [p.pointer for p in told.header.projection.redaction_pointers] == told.pointers
    assert told.pointers


def test_forgets_the_oldest(address: str, session_id: str) -> None:
    with contextd_client.Client(address, held_contexts=1) as client:
        for name in ("a", "b"):
            client.append(f"{session_id}/{name}", *opening())
            client.assemble(f"{session_id}/{name}", "contextd", budget=BUDGET)
        assert client.assemble(f"{session_id}/b", "contextd", budget=BUDGET).sent == 0
        assert client.assemble(f"{session_id}/a", "contextd", budget=BUDGET).sent == 2


PARTS: dict[str, AssembleContextResponse] = {
    "header": AssembleContextResponse(
        header=ContextHeader(context_hash="h", message_count=1, prefix_messages=1)
    ),
    "second": AssembleContextResponse(
        chunk=MessageChunk(messages=[RenderedMessage(index=1, json=b"{}")])
    ),
    "skipping": AssembleContextResponse(header=ContextHeader(skipped_messages=1)),
    "trailer": AssembleContextResponse(trailer=ContextTrailer(message_count=1, context_hash="h")),
}


@pytest.mark.parametrize(
    ("parts", "wrong"),
    [
        ("", "has the parts"),
        ("header", "has the parts"),
        ("header second", "has the parts"),
        ("second trailer", "has the parts"),
        ("header second trailer", "message 1 came at place 0"),
        ("skipping trailer", "1 messages were skipped; 0 are held"),
    ],
)
def test_refuses_broken_streams(parts: str, wrong: str) -> None:
    with pytest.raises(StreamError, match=wrong):
        _assembly.read([PARTS[name] for name in parts.split()], "s", "contextd")


class Tampered:
    """A service whose answers are tampered with."""

    def __init__(self, header: ContextHeader, lines: list[bytes]) -> None:
        messages = [RenderedMessage(index=i, json=line) for i, line in enumerate(lines)]
        self.held = 0
        self.parts = [
            AssembleContextResponse(header=header),
            AssembleContextResponse(chunk=MessageChunk(messages=messages)),
            AssembleContextResponse(
                trailer=ContextTrailer(
                    message_count=header.message_count, context_hash=header.context_hash
                )
            ),
        ]

    def AssembleContext(
        self, request: AssembleContextRequest, timeout: object
    ) -> list[AssembleContextResponse]:
        self.held = request.have.message_count
        return self.parts


LINES = [b"{}", b'{"a":1}']


def tampered(lines: list[bytes]) -> Tampered:
    true_hash = contextd_client.hash_lines(LINES)
    header = ContextHeader(
        context_hash=true_hash, prefix_hash=true_hash, message_count=2, prefix_messages=2
    )
    return Tampered(header, lines)


@pytest.mark.parametrize("lines", [[b"{}", b'{"a":2}'], [b"{}"], [b'{"a":1}', b"{}"]])
def test_refuses_other_bytes(client: contextd_client.Client, lines: list[bytes]) -> None:
    client.stub = tampered(LINES)  # type: ignore[assignment]
    assert client.assemble("s", "contextd").sent == 2
    client.stub = tampered(lines)  # type: ignore[assignment]
    with pytest.raises(IntegrityError):
        contextd_client.Client.assemble(client, "t", "contextd")


def test_drops_what_a_wrong_answer_continues(client: contextd_client.Client) -> None:
    """An answer of the wrong parts may be wrong because of what the client said that it holds."""
    service = tampered(LINES)
    client.stub = service  # type: ignore[assignment]
    whole = service.parts
    client.assemble("s", "contextd")
    service.parts = whole[:1]
    with pytest.raises(StreamError):
        client.assemble("s", "contextd")
    assert service.held == 2
    service.parts = whole
    assert client.assemble("s", "contextd").sent == 2
    assert service.held == 0
