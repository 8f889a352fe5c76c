"""Errors of the daemon as typed exceptions with the fields of their details."""

from __future__ import annotations

import grpc
import pytest

import contextd_client
import contextd_client.aio
from contextd_client import Budget, Injection, errors, events


def test_fields(client: contextd_client.Client, session_id: str) -> None:
    client.append(session_id, events.user("hi", event_id="e1"))
    with pytest.raises(errors.AlreadyExistsError) as taken:
        client.append(session_id, events.user("ho", event_id="e1"))
    assert taken.value.reason == "EVENT_ID_CONFLICT"
    assert taken.value.field == "events[0].event_id"
    assert taken.value.seq == 1
    with pytest.raises(errors.HeadMismatchError) as moved:
        client.append(session_id, events.user("ho"), expected_head=0)
    assert moved.value.head_seq == 1
    with pytest.raises(errors.InvalidArgumentError) as invalid:
        client.append(session_id, events.user("ok"), events.user(""))
    assert invalid.value.field.startswith("events[1].message.blocks")
    assert invalid.value.violations[0].description
    with pytest.raises(errors.NotFoundError) as missing:
        client.get_session(session_id + "/none")
    assert missing.value.reason == "SESSION_NOT_FOUND"
    assert missing.value.resource_name == session_id + "/none"
    with pytest.raises(errors.NotFoundError):
        client.resolve_pointer(session_id, "ctx:9.9")
    with pytest.raises(errors.InvalidArgumentError):
        list(client.read_events(session_id, from_seq=3, to_seq=2))
    with pytest.raises(errors.LimitExceededError) as large:
        client.append(session_id, events.user("x" * (2 << 20)))
    assert large.value.metadata["setting"] == "max_event_bytes"
    assert client.get_session(session_id).head_seq == 1, "a refused append left something"


def test_budget(client: contextd_client.Client, session_id: str) -> None:
    client.append(session_id, events.system("be kind " * 50), events.user("hi"))
    with pytest.raises(errors.BudgetExceededError) as over:
        client.assemble(session_id, "anthropic", budget=Budget(max_tokens=20))
    assert over.value.needed_tokens > over.value.target_tokens > 0
    assert over.value.parts[0].tokens > 50
    assert over.value.code is grpc.StatusCode.FAILED_PRECONDITION
    clock = Injection(name="clock", blocks=[events.text("tick " * 50)], reserve_tokens=5)
    with pytest.raises(errors.InjectionOverReserveError) as wide:
        client.assemble(session_id, "anthropic", injections=[clock], budget=Budget(max_tokens=999))
    assert (wide.value.injection, wide.value.reserve_tokens) == ("clock", 5)
    assert wide.value.tokens > 40


async def test_asyncio(aclient: contextd_client.aio.Client, session_id: str) -> None:
    with pytest.raises(errors.NotFoundError):
        await aclient.assemble(session_id, "gemini")
    with pytest.raises(errors.NotFoundError):
        _ = [e async for e in aclient.read_events(session_id)]
    with pytest.raises(errors.InvalidArgumentError):
        await aclient.append(session_id)


def test_nobody_listens() -> None:
    with (
        contextd_client.Client("127.0.0.1:1", timeout=5, patience=0) as client,
        pytest.raises(errors.ApiError) as no,
    ):
        client.get_session("s")
    assert no.value.code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.DEADLINE_EXCEEDED)
    assert no.value.reason == ""
    with pytest.raises(ValueError, match="format"):
        client.assemble("s", "word")  # type: ignore[arg-type]


def test_appends_once(client: contextd_client.Client, session_id: str) -> None:
    event = events.user("hi")
    client.append(session_id, event)
    assert event.event_id == "", "the caller's event was changed"
    again = events.user("hi", event_id="mine")
    assert not client.append(session_id, again).receipts[0].duplicate
    assert client.append(session_id, again).receipts[0].duplicate
