"""Events that are made without a daemon."""

from __future__ import annotations

import pytest

import contextd_client
from contextd_client import events


def test_no_response() -> None:
    with pytest.raises(ValueError, match=r"^the response is no JSON$"):
        contextd_client.response_events("hi")


def test_empty_response() -> None:
    empty = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": []}
    (event,) = contextd_client.response_events(empty)
    assert (event.event_id, event.custom.type) == ("m", "empty_response")
    assert events.custom("note", event_id="n").event_id == "n"
    assert events.reminder("Mind the gap.", event_id="r").event_id == "r"


def test_wrong_content() -> None:
    with pytest.raises(TypeError, match="content: must be str or Block, not 5"):
        events.user(5)  # type: ignore[arg-type]
