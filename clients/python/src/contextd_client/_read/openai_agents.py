"""Items of the OpenAI Agents SDK as its models of Chat Completions make them.

In `provider_data` they have what a host sealed: Google's signature of a call, and LiteLLM's
thinking_blocks. The log has these as other readers of Chat Completions make them.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

from agents.models.fake_id import FAKE_RESPONSES_ID

from contextd_client import _rawjson, events
from contextd_client._rawjson import Raw
from contextd_client._read import openai_chat, openai_item, openai_part, openai_responses
from contextd_client.v1.event_pb2 import Block, Message

_SIGNED = b'{"provider_specific_fields":{"thought_signature":%b}}'


def sealed(raw: Raw) -> list[Block]:
    """The blocks of an item in which a host sealed something; else none."""
    signature = raw.get("provider_data").get("thought_signature")
    if raw.string("type") == "function_call" and signature.text():
        signed = events.provider_block(openai_part.PROVIDER, _SIGNED % signature.data)
        return [signed, openai_responses.output(raw)[-1]]
    if raw.string("type") == "reasoning" and (blocks := _thinking_blocks(raw)):
        return openai_chat.reasoning(Raw(f'{{"thinking_blocks":{blocks}}}'))
    return []


def _thinking_blocks(raw: Raw) -> str:
    """LiteLLM's list. Older versions of the SDK only keep its texts and signatures."""
    whole = raw.get("provider_data").get("thinking_blocks")
    if whole.elements():
        return whole.json
    sealed = raw.string("encrypted_content")
    if not sealed or raw.string("id") != FAKE_RESPONSES_ID:
        return ""
    texts = [part.string("text") for part in raw.get("content").elements()]
    return _rawjson.dumps(
        [
            {"type": "thinking", "thinking": text or "", "signature": signature or ""}
            for text, signature in itertools.zip_longest(texts, sealed.split("\n"))
        ]
    )


def items(messages: Sequence[Any], model: str) -> list[Any]:
    """The messages of a context as items, which the SDK makes into these messages again.

    model: the one that is asked; the SDK gives no other model what was sealed.
    """
    out: list[Any] = []
    for message in messages:
        if message["role"] == "assistant":
            out += _said(message, model)
        elif message["role"] == "tool":
            output = _content(message["content"])
            call_id = message["tool_call_id"]
            out.append({"type": "function_call_output", "call_id": call_id, "output": output})
        else:
            content = _content(message["content"])
            out.append({"type": "message", "role": message["role"], "content": content})
    return out


def _said(message: Any, model: str) -> list[Any]:
    out: list[Any] = []
    text, blocks = message.get("reasoning_content"), message.get("thinking_blocks")
    if text or blocks:
        out.append(_reasoning(text or "", blocks or [], model))
    content = message["content"] or []
    if isinstance(content, str):
        content = [{"type": "text", "text": content}]
    parts: list[Any] = [
        {"type": "output_text", "text": part["text"], "annotations": []} for part in content
    ]
    if refusal := message.get("refusal"):
        parts.append({"type": "refusal", "refusal": refusal})
    if parts:
        # The SDK reads reasoning into such messages only.
        said = {"type": "message", "id": FAKE_RESPONSES_ID, "role": "assistant"}
        out.append({**said, "status": "completed", "content": parts})
    return out + [_call(made, model) for made in message.get("tool_calls", ())]


def _reasoning(text: str, blocks: list[Any], model: str) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "reasoning", "id": FAKE_RESPONSES_ID, "content": []}
    made["summary"] = [{"type": "summary_text", "text": text}] if text else []
    if blocks:
        texts = [thought for block in blocks if (thought := block.get("thinking"))]
        made["content"] = [{"type": "reasoning_text", "text": thought} for thought in texts]
        signatures = [signed for block in blocks if (signed := block.get("signature"))]
        made["encrypted_content"] = "\n".join(signatures)
        made["provider_data"] = _of(model, thinking_blocks=blocks)
    return made


def _call(made: Any, model: str) -> dict[str, Any]:
    of = made["function"]
    item = {"type": "function_call", "id": FAKE_RESPONSES_ID, "call_id": made["id"], **of}
    signature = _signature(made)
    return {**item, "provider_data": _of(model, thought_signature=signature)} if signature else item


def _signature(call: Any) -> Any:
    """Google's signature of a call, as LiteLLM or Google itself gives it."""
    fields = call.get("provider_specific_fields")
    google = Raw(_rawjson.dumps(call.get("extra_content"))).get("google")
    return (fields or {}).get("thought_signature") or google.string("thought_signature")


def _of(model: str, **sealed: Any) -> dict[str, Any]:
    return {"model": model, **sealed} if model else sealed


def _content(content: Any) -> Any:
    return content if isinstance(content, str) else [_part(part) for part in content]


def _part(part: Any) -> dict[str, Any]:
    """A part, of which the SDK takes the names of the Responses API."""
    if part["type"] == "text":
        return {"type": "input_text", "text": part["text"]}
    if part["type"] == "image_url":
        image = part["image_url"]
        detail = image.get("detail", "auto")
        return {"type": "input_image", "image_url": image["url"], "detail": detail}
    if part["type"] == "file":
        return {"type": "input_file", **part["file"]}
    return dict(part)


def item(message: Message) -> dict[str, Any]:
    """The item of a message of the log that was made from a single item."""
    last = message.blocks[-1]
    if last.HasField("thinking") and last.thinking.signature.startswith('{"thinking_blocks":'):
        blocks = json.loads(last.thinking.signature)["thinking_blocks"]
        return _reasoning("", blocks, message.model)
    made = openai_item.item(message)
    if signature := _signature(made):
        del made["provider_specific_fields"]
        made["provider_data"] = _of(message.model, thought_signature=signature)
    return made
