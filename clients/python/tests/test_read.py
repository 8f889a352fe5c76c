"""Responses and messages are read as the Go client reads them: the fixtures are the same."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format
from google.protobuf.message import Message

import contextd_client
from contextd_client import events
from contextd_client.v1.event_pb2 import Event
from contextd_client.v1.tokens_pb2 import RecordModelCallRequest

FIXTURES = Path(__file__).resolve().parents[3] / "client" / "read" / "testdata"


def read(path: Path) -> list[Message]:
    """What the client reads in a fixture."""
    text = path.read_text()
    if path.name.endswith(".response.json"):
        usage = RecordModelCallRequest(**vars(contextd_client.usage_of(text)))
        return [*contextd_client.response_events(text), usage]
    format: Any = path.name.partition(".")[0]
    return [*contextd_client.message_events(text.splitlines(), format)]


def golden(path: Path) -> list[Message]:
    """What it must be."""
    lines = path.with_suffix(".golden").read_text().splitlines()
    kinds: list[type[Message]] = [Event] * len(lines)
    if path.name.endswith(".response.json"):
        kinds[-1] = RecordModelCallRequest
    return [json_format.Parse(line, kind()) for kind, line in zip(kinds, lines, strict=True)]


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("*.json")), ids=lambda path: path.name)
def test_fixtures(path: Path) -> None:
    """Skipped in a source distribution, which has no fixtures."""
    assert read(path) == golden(path)


def test_refused() -> None:
    """What cannot be read is named by its place, as by the Go client."""
    if not FIXTURES.is_dir():
        pytest.skip("a source distribution has no fixtures")
    for line in (FIXTURES / "refused.jsonl").read_text().splitlines():
        case = json.loads(line)
        wrong = re.escape(f"messages[{case['at']}]: {case['wrong']}")
        with pytest.raises(ValueError, match=f"^{wrong}"):
            contextd_client.message_events(case["messages"], case["format"])


def test_no_json_of_the_go_client() -> None:
    """What some parsers take for JSON is refused."""
    if not FIXTURES.is_dir():
        pytest.skip("a source distribution has no fixtures")
    for line in (FIXTURES / "no_json.jsonl").read_text().splitlines():
        body = json.loads(line)
        with pytest.raises(ValueError, match=r"^messages: is no JSON: "):
            contextd_client.message_events(body, "anthropic")
        with pytest.raises(ValueError, match=r"^response: is no JSON: "):
            contextd_client.response_events(body)
    with pytest.raises(ValueError, match=r"^response: is no JSON: it has NaN$"):
        contextd_client.response_events({"output": [float("nan")]})


def test_texts() -> None:
    """A text may have messages one after another, as the Go client reads it."""
    one, two = '{"role":"user","content":"a"}', '[{"role":"assistant","content":"b"}]'
    read = contextd_client.message_events
    both = read([json.loads(one), *json.loads(two)], "anthropic")
    for text in (f"{one}\r\n{two}\n", f"\ufeff {one}{two}", f"[{one},{two[1:]}"):
        assert read(text, "anthropic") == both
        assert read(text.encode(), "anthropic") == both
    for nothing in ("", "\ufeff\n", b"", [], "[]", ["", b""]):
        assert read(nothing, "anthropic") == []
    response = '{"choices":[{"message":{"content":"a"}}],"usage":{"prompt_tokens":5}}'
    for body in ("\ufeff" + response, ("\ufeff" + response).encode()):
        made = contextd_client.response_events(body)
        assert made == contextd_client.response_events(json.loads(response))
        assert contextd_client.usage_of(body).input_tokens == 5
    with pytest.raises(ValueError, match=r"^response: is no JSON: it has 2 values$"):
        contextd_client.response_events(response * 2)


def test_ids_of_calls() -> None:
    """A call and its result have the same id, without a signature, as in the Go client."""
    if not FIXTURES.is_dir():
        pytest.skip("a source distribution has no fixtures")
    for line in (FIXTURES / "call_ids.jsonl").read_text().splitlines():
        case = json.loads(line)
        given, call_id, signature = case["given"], case["id"], case["signature"]
        assert events.split_call_id(given) == (call_id, signature)
        assert events.signed_call_id(call_id, signature) == given
        assert events.tool_call(given, "read", "{}").tool_call.call_id == call_id
        assert events.result_block(given, "ok").tool_result.call_id == call_id
        assert events.tool_result(given, "ok").message.blocks[0].tool_result.call_id == call_id


def test_no_json() -> None:
    with pytest.raises(ValueError, match=r"^messages\[1\]: is no JSON: "):
        contextd_client.message_events(['{"role":"user","content":"a"}', "{"], "anthropic")


def test_nested_too_deeply() -> None:
    with pytest.raises(ValueError, match=r"^messages: is nested too deeply$"):
        contextd_client.message_events("[" * 100_000, "anthropic")
