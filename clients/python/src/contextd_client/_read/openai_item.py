"""The reverse: a message of the log as an item of OpenAI's Responses API."""

from __future__ import annotations

import base64
import json
from typing import Any

from contextd_client._read import openai_part
from contextd_client.v1.event_pb2 import Block, Media, Message, Role, Thinking, ToolResult

_NAMES = {Role.ROLE_SYSTEM: "system", Role.ROLE_USER: "user", Role.ROLE_ASSISTANT: "assistant"}


def item(message: Message) -> dict[str, Any]:
    """The item of a message that was made from a single item."""
    beside: dict[str, Any] = {}
    blocks: list[Block] = []
    for block in message.blocks:
        own: dict[str, Any] = json.loads(block.provider.json) if block.HasField("provider") else {}
        if own and "type" not in own and message.role == Role.ROLE_ASSISTANT:
            beside = own
        else:
            blocks.append(block)
    return {**_item(message.role, blocks), **beside}


def _item(role: Role.ValueType, blocks: list[Block]) -> dict[str, Any]:
    last = blocks[-1]
    if last.HasField("tool_call"):
        call = last.tool_call
        arguments = call.arguments_json.decode()
        return {
            "type": "function_call",
            "call_id": call.call_id,
            "name": call.name,
            "arguments": arguments,
        }
    if last.HasField("tool_result"):
        return _result(last.tool_result)
    if last.HasField("thinking"):
        return _reasoning(last.thinking)
    if last.HasField("provider") and role == Role.ROLE_ASSISTANT:
        own: dict[str, Any] = json.loads(last.provider.json)
        if own.get("type") not in ("output_text", "refusal"):
            return own
    kind = "output_text" if role == Role.ROLE_ASSISTANT else "input_text"
    content: Any = [_part(b, kind) for b in blocks]
    if len(content) == 1 and content[0].get("type") == kind and "annotations" not in content[0]:
        content = content[0]["text"]
    return {"role": _NAMES[role], "content": content}


def _result(result: ToolResult) -> dict[str, Any]:
    parts: Any = [_part(b, "input_text") for b in result.content]
    if not parts:
        parts = ""
    elif len(parts) == 1 and parts[0].get("type") == "input_text":
        parts = parts[0]["text"]
    return {"type": "function_call_output", "call_id": result.call_id, "output": parts}


def _reasoning(thinking: Thinking) -> dict[str, Any]:
    if thinking.signature.startswith("{"):
        own: dict[str, Any] = json.loads(thinking.signature)
        return own
    made: dict[str, Any] = {"type": "reasoning"}
    if thinking.signature:
        made["id"] = thinking.signature
    made["summary"] = [{"type": "summary_text", "text": thinking.text}] if thinking.text else []
    if thinking.encrypted_content:
        made["encrypted_content"] = thinking.encrypted_content
    return made


def _part(block: Block, text: str) -> dict[str, Any]:
    if block.HasField("provider") and block.provider.provider == openai_part.PROVIDER:
        own: dict[str, Any] = json.loads(block.provider.json)
        return own
    if block.HasField("media"):
        return {"type": "input_image", "detail": "auto", "image_url": _url(block.media)}
    return {"type": text, "text": block.text.text}


def _url(media: Media) -> str:
    if media.uri:
        return media.uri
    return f"data:{media.mime_type};base64,{base64.b64encode(media.data).decode()}"
