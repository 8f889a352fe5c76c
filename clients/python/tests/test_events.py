"""Events that are made without a daemon."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

import contextd_client
from contextd_client import events


@pytest.mark.parametrize(
    ("body", "wrong"),
    [
        ("hi", "response: is no JSON: "),
        ("{}", "response: is none of Anthropic's, OpenAI's or Gemini's"),
        ("[]", "response: is none of Anthropic's, OpenAI's or Gemini's"),
        ({"object": "response"}, "response: is none of Anthropic's, OpenAI's or Gemini's"),
        ({"choices": []}, "choices: the response has none"),
        ({"candidates": []}, "candidates: the response has none"),
        ({"choices": [{"message": {"function_call": {"name": "f"}}}]}, "function_call: is not"),
    ],
)
def test_no_response(body: Any, wrong: str) -> None:
    with pytest.raises(ValueError, match=f"^{wrong}"):
        contextd_client.response_events(body)


def test_empty_response() -> None:
    empty = {"id": "m", "type": "message", "role": "assistant", "model": "x", "content": []}
    (event,) = contextd_client.response_events(empty)
    assert (event.event_id, event.custom.type) == ("m", "empty_response")
    assert events.custom("note", event_id="n").event_id == "n"
    assert events.reminder("Mind the gap.", event_id="r").event_id == "r"


def test_usage_of_tools_of_servers() -> None:
    """The prompt that was sent is the first of those that Anthropic adds up."""
    first = {"type": "message", "input_tokens": 10, "cache_read_input_tokens": 100}
    usage = {
        "input_tokens": 30,
        "cache_read_input_tokens": 210,
        "output_tokens": 9,
        "iterations": [first, {**first, "input_tokens": 20, "cache_read_input_tokens": 110}],
    }
    body = {"id": "m", "type": "message", "role": "assistant", "content": [], "usage": usage}
    counted = contextd_client.usage_of(body)
    assert counted.input_tokens == 110
    assert counted.cache_read_tokens == 100
    assert counted.output_tokens == 9


@pytest.mark.parametrize("count", [True, -1, 1.5, "7", 2**64, None])
def test_usage_that_is_no_count(count: Any) -> None:
    body = {"choices": [], "usage": {"prompt_tokens": count, "completion_tokens": 2}}
    counted = contextd_client.usage_of(body)
    assert (counted.input_tokens, counted.output_tokens) == (0, 2)


# Calls of OpenAI's tools that the runtime runs, with the tool, its input and the result.
RUN_HERE: list[tuple[dict[str, Any], str, Any, dict[str, Any], str]] = [
    (
        {"type": "shell_call", "call_id": "c", "action": {"commands": ["ls"]}},
        "shell",
        {"commands": ["ls"]},
        {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "a"}]},
        '[{"stdout": "a"}]',
    ),
    (
        {"type": "apply_patch_call", "call_id": "c", "operation": {"path": "a"}},
        "apply_patch",
        {"path": "a"},
        {"type": "apply_patch_call_output", "call_id": "c", "status": "failed", "output": "no"},
        "no",
    ),
    (
        {"type": "computer_call", "call_id": "c", "actions": [{"type": "wait"}]},
        "computer",
        {"actions": [{"type": "wait"}]},
        {"type": "computer_call_output", "call_id": "c", "output": {"image_url": "https://a/b"}},
        "https://a/b",
    ),
    (
        {"type": "local_shell_call", "id": "l", "call_id": "c", "action": {"command": ["ls"]}},
        "local_shell",
        {"command": ["ls"]},
        {"type": "local_shell_call_output", "id": "c", "output": "a"},
        "a",
    ),
]


@pytest.mark.parametrize(("call", "name", "arguments", "output", "shown"), RUN_HERE)
def test_tools_of_openai(
    call: dict[str, Any], name: str, arguments: Any, output: dict[str, Any], shown: str
) -> None:
    asked, answered = contextd_client.message_events([call, output], "openai_responses")
    made = asked.message.blocks[0].tool_call
    assert (made.call_id, made.name, json.loads(made.arguments_json)) == ("c", name, arguments)
    result = answered.message.blocks[0].tool_result
    (block,) = result.content
    assert block.text.text or block.media.uri == shown
    assert (result.call_id, result.is_error) == ("c", output.get("status") == "failed")


def test_shell_in_a_container() -> None:
    """A shell in a container is OpenAI's to run."""
    call = {"type": "shell_call", "call_id": "c", "environment": {"type": "container_reference"}}
    (event,) = contextd_client.message_events([call], "openai_responses")
    assert event.message.blocks[0].HasField("provider")


def test_wrong_content() -> None:
    with pytest.raises(TypeError, match="content: must be str or Block, not 5"):
        events.user(5)  # type: ignore[arg-type]


@pytest.mark.parametrize("content", [None, 5, b"text", {"lines": 3}, ValueError("no")])
def test_wrong_result(content: Any) -> None:
    expected = re.escape(f"content: must be str, or a list of str and Block, not {content!r}")
    with pytest.raises(TypeError, match=f"^{expected}$"):
        events.tool_result("c", content)


def test_message_of_a_text() -> None:
    """A string is one text, not one for each letter."""
    said = events.message(events.ASSISTANT, "hello")
    assert [block.text.text for block in said.message.blocks] == ["hello"]


def test_wrong_arguments() -> None:
    """Each error names the argument."""
    wrong: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
        (events.tool_result, {"call_id": 5}, "call_id: must be str, not 5"),
        (events.tool_result, {"call_id": "c", "is_error": "yes"}, "is_error: must be bool"),
        (events.media, {"data": "text"}, "data: must be bytes, not 'text'"),
        (events.media, {"uri": "u", "tokens": -1}, "tokens: "),
        (events.reminder, {"body": "b", "ttl_turns": -1}, "ttl_turns: "),
        (events.reminder, {"body": "b", "event_id": 5}, "event_id: must be str, not 5"),
        (events.message, {"role": "robot", "content": ["x"]}, "role: must be int, not 'robot'"),
        (events.message, {"role": 1, "content": None}, "content: must be str, or a list"),
        (events.message, {"role": 1, "content": {"a": 1}}, "content: must be str, or a list"),
        (events.text, {"value": None}, "value: must be str, not None"),
        (events.provider_block, {"provider": "p", "value": "x"}, "value: must be bytes, not 'x'"),
    ]
    for make, arguments, error in wrong:
        with pytest.raises((TypeError, ValueError), match=f"^{error}"):
            make(**arguments)


WRONG_VALUES: dict[str, Callable[[], Any]] = {
    "value: ": lambda: events.custom("note", object()),
    "arguments: ": lambda: events.tool_call("c", "read", {"a": object()}),
    "time: must be a datetime, not 5": lambda: events.message(1, "x", time=5),  # type: ignore[arg-type]
    "provider: must be str": lambda: events.provider_block(5, b"{}"),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("message", WRONG_VALUES)
def test_wrong_values(message: str) -> None:
    with pytest.raises(TypeError, match="^" + message):
        WRONG_VALUES[message]()


def test_geminis_files_and_results() -> None:
    """Base64 has either alphabet; a result may be called so, and have files."""
    file = {"inlineData": {"mimeType": "audio/wav", "data": "-_8="}}
    uri = {"fileData": {"fileUri": "gs://b/x.png", "mimeType": "image/png"}}
    table = {"inlineData": {"mimeType": "text/csv", "data": "YSxi"}}
    said = {"id": "a", "name": "f", "response": {"result": "a\nb"}}
    drawn = {"id": "b", "name": "f", "response": {}, "parts": [file, uri]}
    parts = [{"functionResponse": said}, {"functionResponse": drawn}, file, table]
    results, user = contextd_client.message_events({"role": "user", "parts": parts}, "gemini")
    first, second = (b.tool_result.content for b in results.message.blocks)
    assert [b.text.text for b in first] == ["a\nb"]
    assert [(b.media.data, b.media.uri) for b in second] == [
        (b"\xfb\xff", ""),
        (b"", "gs://b/x.png"),
    ]
    assert [b.WhichOneof("kind") for b in user.message.blocks] == ["media", "provider"]
