"""What the sync and the asyncio client have in common: the address and the requests."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable
from typing import Any

from contextd_client._usage import Usage, usage_of
from contextd_client.context import Context
from contextd_client.v1.event_pb2 import Event
from contextd_client.v1.log_pb2 import AppendEventsRequest
from contextd_client.v1.session_pb2 import LogMark
from contextd_client.v1.tokens_pb2 import RecordModelCallRequest

DEFAULT_ADDRESS = "127.0.0.1:7171"


def address_or_default(address: str | None) -> str:
    """The address, or else CONTEXTD_ADDR, or else where the daemon listens by default."""
    return address or os.environ.get("CONTEXTD_ADDR") or DEFAULT_ADDRESS


def append_request(
    session_id: str, events: Iterable[Event], expected_head: int | None, known: LogMark | None
) -> AppendEventsRequest:
    """An append that can be sent twice: each event has an id."""
    batch = []
    for given in events:
        event = Event()
        event.CopyFrom(given)
        event.event_id = given.event_id or str(uuid.uuid4())
        batch.append(event)
    return AppendEventsRequest(
        session_id=session_id, events=batch, expected_head=expected_head, known=known
    )


def record_request(
    context: Context, response: Any | None, usage: Usage | None, rejected_over_budget: bool
) -> RecordModelCallRequest:
    """What the provider counted for the call that a context was made for."""
    if usage is None:
        usage = Usage() if response is None else usage_of(response)
    return RecordModelCallRequest(
        session_id=context.session_id,
        projection_id=context.projection_id,
        model=usage.model,
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        stop_reason=usage.stop_reason,
        rejected_over_budget=rejected_over_budget,
    )
