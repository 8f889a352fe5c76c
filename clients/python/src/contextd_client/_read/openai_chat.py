"""Messages and responses of OpenAI's Chat Completions API."""

from __future__ import annotations

from contextd_client import events
from contextd_client._rawjson import Raw
from contextd_client._read import openai_part
from contextd_client.v1.event_pb2 import Block, Event, Thinking


def response(raw: Raw) -> list[Event]:
    """The event of a response: its first choice."""
    choices = raw.get("choices").elements()
    if not choices:
        raise ValueError("choices: the response has none")
    said = _said(choices[0].get("message"))
    return [events.assistant(*said, model=raw.string("model"), event_id=raw.string("id"))]


def message(raw: Raw) -> list[Event]:
    """The events of a message."""
    role = raw.string("role")
    if role != "assistant" or raw.get("content").present:
        raw.require_content("content")
    content = openai_part.content(raw.get("content"))
    if role in ("system", "developer"):
        return [events.system(*content)]
    if role == "user":
        return [events.user(*content)]
    if role == "tool":
        call_id = raw.string("tool_call_id")
        return [events.tool_result(call_id, content, tool_name=raw.string("name"))]
    if role != "assistant":
        raise ValueError(f'role: "{role}" is unknown')
    blocks = _said(raw)
    if not blocks:
        raw.require_content("content")
    return [events.assistant(*blocks)]


def _said(raw: Raw) -> list[Block]:
    """The blocks of a message of the model."""
    if raw.get("function_call").present:
        raise ValueError("function_call: is not read; give the call in tool_calls")
    # Servers with this API name reasoning, which the API does not have, in one of these ways.
    reasoning = raw.string("reasoning_content") or raw.string("reasoning")
    blocks = [Block(thinking=Thinking(text=reasoning))] if reasoning else []
    blocks += openai_part.content(raw.get("content"))
    blocks += outside(raw)
    return blocks + [_call(c) for c in raw.get("tool_calls").elements()]


def outside(raw: Raw) -> list[Block]:
    """What a model said outside of the content: of a sound without a transcript, the sound."""
    audio = raw.get("audio")
    said = audio.string("transcript")
    blocks = [events.text(said)] if said else []
    if audio.is_object and not said:
        blocks.append(_own("audio", audio))
    if raw.string("refusal"):
        blocks.append(_own("refusal", raw.get("refusal")))
    return blocks


def _own(kind: str, raw: Raw) -> Block:
    part = f'{{"type":"{kind}","{kind}":{raw.json}}}'
    return events.provider_block(openai_part.PROVIDER, part.encode())


def _call(raw: Raw) -> Block:
    function = raw.get("function")
    if function.is_object:
        arguments = openai_part.written(function.get("arguments"))
        return events.tool_call(raw.string("id"), function.string("name"), arguments)
    custom = raw.get("custom")
    arguments = openai_part.free_input(custom.get("input"))
    return events.tool_call(raw.string("id"), custom.string("name"), arguments)
