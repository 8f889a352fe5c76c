"""Items and responses of OpenAI's Responses API."""

from __future__ import annotations

from collections.abc import Iterable

from contextd_client import events
from contextd_client._rawjson import Raw
from contextd_client._read import openai_part
from contextd_client._read.beside import beside, call, written
from contextd_client.v1.event_pb2 import Block, Event, Thinking

# The items with calls of OpenAI's tools that the runtime runs: the tool's name, and the members of
# which one has the input. What answers one is the same with _output.
_RUN_HERE = {
    "local_shell_call": ("local_shell", ("action",)),
    "shell_call": ("shell", ("action",)),
    "apply_patch_call": ("apply_patch", ("operation",)),
    "computer_call": ("computer", ("action", "actions")),
}
_OUTPUTS_RUN_HERE = frozenset(f"{kind}_output" for kind in _RUN_HERE)
_OF_THE_RUNTIME = _OUTPUTS_RUN_HERE | {"function_call_output", "custom_tool_call_output"}


def response(raw: Raw) -> list[Event]:
    """The event of a response: all its output is one message of the model."""
    blocks = [b for item in raw.get("output").elements() for b in output(item)]
    return [events.assistant(*blocks, model=raw.string("model"), event_id=raw.string("id"))]


def item(raw: Raw) -> list[Event]:
    """The event of an input item."""
    if not from_model(raw):
        return [_input(raw)]
    if raw.string("type") in ("", "message"):
        raw.require_content("content")
    return [events.assistant(*output(raw))]


def joined(made: Iterable[Event]) -> list[Event]:
    """The events of items. Consecutive items of the model are one message."""
    out: list[Event] = []
    for event in made:
        if out and out[-1].message.role == event.message.role == events.ASSISTANT:
            out[-1].message.blocks.extend(event.message.blocks)
        else:
            out.append(event)
    return out


def from_model(raw: Raw) -> bool:
    """Whether the model wrote an item."""
    if raw.string("type") in ("", "message"):
        return raw.string("role") == "assistant"
    return raw.string("type") not in _OF_THE_RUNTIME


def _input(raw: Raw) -> Event:
    if raw.string("type") in _OUTPUTS_RUN_HERE:
        return _result(raw)
    if raw.string("type") in _OF_THE_RUNTIME:
        raw.require_content("output")
        return events.tool_result(raw.string("call_id"), openai_part.content(raw.get("output")))
    raw.require_content("content")
    blocks = openai_part.content(raw.get("content"))
    role = raw.string("role")
    if role in ("system", "developer"):
        return events.system(*blocks)
    if role != "user":
        raise ValueError(f'role: "{role}" is unknown')
    return events.user(*blocks)


def output(raw: Raw) -> list[Block]:
    """The blocks of an item that the model wrote."""
    kind = raw.string("type")
    if not kind and (raw.get("role").present or raw.get("content").present):
        kind = "message"  # whose type may be left out
    if kind == "message":
        phase = beside(openai_part.PROVIDER, raw, "phase")
        return [b for said in openai_part.content(raw.get("content")) for b in (*phase, said)]
    if kind in ("function_call", "custom_tool_call"):
        arguments = written(raw.get("arguments"))
        if kind == "custom_tool_call":
            arguments = openai_part.free_input(raw.get("input"))
        members = beside(openai_part.PROVIDER, raw, "namespace", "caller", "async")
        return call(members, raw.string("call_id"), raw.string("name"), arguments)
    if kind == "reasoning":
        thinking = _reasoning(raw)
        return [] if thinking is None else [Block(thinking=thinking)]
    if kind in _RUN_HERE and not raw.get("environment").string("type").startswith("container"):
        name, wanted = _RUN_HERE[kind]
        return call([], _call_id(raw), name, _arguments(raw, wanted))
    return [events.provider_block(openai_part.PROVIDER, raw.data)]


def _arguments(raw: Raw, members: tuple[str, ...]) -> bytes:
    """The object with a call's input, which is in one of the members."""
    for name in members:
        given = raw.get(name)
        if given.is_object:
            return given.data
        if given.present:
            return b'{"%b":%b}' % (name.encode(), given.data)
    return b""


def _call_id(raw: Raw) -> str:
    """The id of a call, which old items have as their own."""
    return raw.string("call_id") or raw.string("id")


def _result(raw: Raw) -> Event:
    """The result of a tool of OpenAI's: a text, a screenshot, or the JSON that it is."""
    output = raw.get("output")
    picture = openai_part.image(output.string("image_url"))
    content: list[Block] = [] if picture is None else [picture]
    if not content and (output.is_object or output.is_list):
        content = [events.text(output.json)]
    elif output.text():
        content = [events.text(output.text())]
    failed = raw.string("status") == "failed"
    return events.tool_result(_call_id(raw), content, is_error=failed)


def _reasoning(raw: Raw) -> Thinking | None:
    """Reasoning with its seal, which is valid for the unchanged item: its id and texts.

    Servers of open models give no seal, but the reasoning itself as content, which is what they
    want back.
    """
    sealed = raw.string("encrypted_content")
    texts = _texts(raw.get("summary"))
    own = _texts(raw.get("content"))
    if not texts or (not sealed and "".join(own).strip()):
        texts = own
    item_id = raw.string("id")
    if not sealed:
        # Without a seal the item cannot be sent again; the provider may still know it by its id.
        return Thinking(text="\n\n".join(texts)) if "".join(texts).strip() else None
    members = raw.members()
    plain = len(texts) <= 1 and not any(
        members[name].present for name in ("content", "status") if name in members
    )
    signature = item_id if plain else _as_given(members)
    return Thinking(text="\n\n".join(texts), signature=signature, encrypted_content=sealed)


def _texts(parts: Raw) -> list[str]:
    return [part.string("text") for part in parts.elements()]


def _as_given(members: dict[str, Raw]) -> str:
    kept = ("type", "id", "summary", "content", "encrypted_content", "status")
    pairs = [f'"{n}":{members[n].json}' for n in kept if n in members and members[n].json != "null"]
    return "{" + ",".join(pairs) + "}"
