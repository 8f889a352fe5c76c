"""Messages and responses of OpenAI's Chat Completions API."""

from __future__ import annotations

from contextd_client import _rawjson as rawjson
from contextd_client import events
from contextd_client._rawjson import Raw
from contextd_client._read import openai_part
from contextd_client.v1.event_pb2 import Block, Event, Thinking


def response(raw: Raw) -> list[Event]:
    """The event of a response: its first choice."""
    choices = raw.get("choices").elements()
    if not choices:
        raise ValueError("choices: the response has none")
    return message(choices[0].get("message"), raw.string("model"), raw.string("id"))


def message(raw: Raw, model: str = "", event_id: str = "") -> list[Event]:
    """The events of a message."""
    role = raw.string("role")
    if role != "assistant" or "content" in raw.members():
        raw.require_content("content")
    if raw.get("function_call").is_object:
        raise ValueError("function_call: is not read; give the call in tool_calls")
    blocks = openai_part.content(raw.get("content"))
    if role in ("system", "developer"):
        return [events.system(*blocks)]
    if role == "user":
        return [events.user(*blocks)]
    if role == "tool":
        call_id = raw.string("tool_call_id")
        return [events.tool_result(call_id, blocks, tool_name=raw.string("name"))]
    if role != "assistant":
        raise ValueError(f"role: {role!r} is unknown")
    reasoning = raw.string("reasoning_content")
    if reasoning:
        blocks.insert(0, Block(thinking=Thinking(text=reasoning)))
    refusal = raw.string("refusal")
    if refusal:
        part = rawjson.dumps({"type": "refusal", "refusal": refusal})
        blocks.append(events.provider_block(openai_part.PROVIDER, part.encode()))
    blocks.extend(_call(c) for c in raw.get("tool_calls").elements())
    return [events.assistant(*blocks, model=model, event_id=event_id)]


def _call(raw: Raw) -> Block:
    function = raw.get("function")
    if function.is_object:
        arguments = function.string("arguments").encode()
        return events.tool_call(raw.string("id"), function.string("name"), arguments)
    custom = raw.get("custom")
    arguments = rawjson.dumps({"input": custom.string("input")}).encode()
    return events.tool_call(raw.string("id"), custom.string("name"), arguments)
