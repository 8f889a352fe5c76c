"""Messages and responses of OpenAI's Chat Completions API."""

from __future__ import annotations

from contextd_client import events
from contextd_client._rawjson import Raw
from contextd_client._read import openai_part
from contextd_client._read.beside import beside, call, written
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
    blocks = reasoning(raw) + openai_part.content(raw.get("content"))
    if raw.get("images").is_list:  # of OpenRouter's
        blocks += openai_part.content(raw.get("images"))
    blocks += outside(raw)
    for item in raw.get("tool_calls").elements():
        blocks += _call(item)
    return blocks


# The members of a message in which hosts of this API give the reasoning that a model's maker
# sealed, as lists: OpenRouter and LiteLLM.
SEALED = ("reasoning_details", "thinking_blocks")


def reasoning(raw: Raw) -> list[Block]:
    """A message's reasoning.

    Servers with this API name its text, which the API does not have, in one of two ways. A seal
    holds for the whole list, which must come back as it was, so the lists are the signature.
    """
    text = raw.string("reasoning_content") or raw.string("reasoning")
    texts: list[str] = []
    sealed = []
    for name in SEALED:
        details = raw.get(name).elements()
        texts = texts or [said for detail in details if (said := _detail(detail))]
        if any(detail.string("signature") or detail.string("data") for detail in details):
            sealed.append(f'"{name}":{raw.get(name).json}')
    text = text or "\n\n".join(texts)
    signature = f"{{{','.join(sealed)}}}" if sealed else ""
    return [Block(thinking=Thinking(text=text, signature=signature))] if text or sealed else []


def _detail(raw: Raw) -> str:
    return raw.string("text") or raw.string("summary") or raw.string("thinking")


def beside_call(raw: Raw) -> list[Block]:
    """The members in which hosts give Google's signature of a call.

    They are Google itself, or LiteLLM, which may have them in the function.
    """
    if members := beside(openai_part.PROVIDER, raw, "extra_content"):
        return members
    for of in (raw, raw.get("function")):
        fields = of.get("provider_specific_fields")
        names = ("thought_signature", "thought_signatures")
        if any(fields.get(name).present for name in names):
            return beside(openai_part.PROVIDER, of, "provider_specific_fields")
    return []


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


def _call(raw: Raw) -> list[Block]:
    of = raw.get("function")
    arguments = written(of.get("arguments"))
    if not of.is_object:
        of = raw.get("custom")
        arguments = openai_part.free_input(of.get("input"))
    return call(beside_call(raw), raw.string("id"), of.string("name"), arguments)
