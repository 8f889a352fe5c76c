"""Holds rendered messages to the types of the official Python SDKs.

Reads what the Go program next to this file prints, a JSON object a line, and validates
every message: with the SDKs' request types made strict, so that a member that a type does
not have is an error, and lists are looked into, which pydantic by itself leaves to whoever
iterates. Prints how many messages of each format were checked, and exits with 1 if any is
not of its type.
"""

import collections.abc
import json
import os
import sys
import typing

import typing_extensions
from anthropic.types import MessageParam, TextBlockParam
from google.genai.types import Content
from openai.types.chat import ChatCompletionMessageParam
from openai.types.responses import ResponseInputItemParam
from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

SHOWN = 20
NOTHING = object()


def strict(tp, seen):
    """The type with closed dictionaries, and lists for whatever can be iterated."""
    if typing_extensions.is_typeddict(tp):
        if tp not in seen:
            seen.add(tp)
            hints = typing_extensions.get_type_hints(tp, include_extras=True)
            tp.__annotations__ = {name: strict(hint, seen) for name, hint in hints.items()}
            tp.__pydantic_config__ = ConfigDict(extra="forbid")
        return tp
    origin, args = typing_extensions.get_origin(tp), typing_extensions.get_args(tp)
    if getattr(origin or tp, "__name__", "") == "SequenceNotStr":
        return list[strict(args[0], seen)] if args else list[str]
    if origin in (list, collections.abc.Iterable, collections.abc.Sequence):
        return list[strict(args[0], seen)]
    if origin in (typing.Required, typing_extensions.Required):
        return typing_extensions.Required[strict(args[0], seen)]
    if origin is typing.Annotated:
        return strict(args[0], seen)
    if origin is dict:
        return dict[args[0], strict(args[1], seen)]
    if origin is typing.Union or str(origin) == "<class 'types.UnionType'>":
        kept = tuple(t for t in (strict(a, seen) for a in args) if t is not NOTHING)
        return typing.Union[kept] if kept else NOTHING
    if origin in (typing.IO, os.PathLike):
        return NOTHING  # a file that the SDK would read, where JSON has its bytes
    if isinstance(tp, type) and issubclass(tp, BaseModel):
        return NOTHING  # models of answers are taken as requests too, and take any member
    return tp


def anthropic(message):
    if set(message) == {"system"}:
        SYSTEM.validate_python(message["system"], strict=True)
    else:
        MESSAGE.validate_python(message, strict=True)


def gemini(message):
    if set(message) == {"systemInstruction"}:
        message = message["systemInstruction"]
    Content.model_validate(message)


def openai_chat(message):
    CHAT.validate_python(message, strict=True)


def openai_responses(item):
    if item.get("type") == "reasoning" and "id" not in item:
        # The API takes an item whose id nobody kept, and no other id in its place; the
        # type wants one.
        item = dict(item, id="rs_0")
        unnamed.append(item)
    ITEM.validate_python(item, strict=True)


SEEN = set()
SYSTEM = TypeAdapter(strict(typing.List[TextBlockParam], SEEN))
MESSAGE = TypeAdapter(strict(MessageParam, SEEN))
CHAT = TypeAdapter(strict(ChatCompletionMessageParam, SEEN))
ITEM = TypeAdapter(strict(ResponseInputItemParam, SEEN))
CHECKS = {
    "anthropic": anthropic,
    "gemini": gemini,
    "openai_chat": openai_chat,
    "openai_responses": openai_responses,
}

# What the types have to refuse, or they are not as strict as this check needs them.
WRONG = [
    ("anthropic", {"role": "user", "content": [{"type": "text", "text": 1}]}),
    ("anthropic", {"role": "user", "content": [{"type": "text", "text": "x", "more": 1}]}),
    ("anthropic", {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "a", "content": [{"type": "image"}]}]}),
    ("anthropic", {"system": [{"type": "text"}]}),
    ("gemini", {"role": "user", "parts": [{"text": "x", "more": 1}]}),
    ("gemini", {"role": "user", "parts": [{"functionCall": {"name": "f", "args": []}}]}),
    ("openai_chat", {"role": "user", "content": "x", "more": 1}),
    ("openai_chat", {"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}),
    ("openai_chat", {"role": "assistant", "tool_calls": [{"id": "a", "type": "function", "function": {"name": "f"}}]}),
    ("openai_responses", {"type": "function_call", "call_id": "a", "name": "f"}),
    ("openai_responses", {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "x", "annotations": []}]}),
    ("openai_responses", {"type": "function_call_output", "call_id": "a", "output": [{"type": "input_text"}]}),
]

unnamed = []


def main():
    for format, message in WRONG:
        try:
            CHECKS[format](message)
        except ValidationError:
            continue
        sys.exit(f"the types of {format} take {message}")
    unnamed.clear()

    sys.setrecursionlimit(100_000)
    checked, failed, seen = {}, 0, 0
    for row in sys.stdin:
        seen += 1
        entry = json.loads(row)
        format = entry["format"]
        checked[format] = checked.get(format, 0) + 1
        try:
            CHECKS[format](json.loads(entry["line"]))
        except (ValidationError, ValueError, RecursionError) as error:
            failed += 1
            if failed <= SHOWN:
                print(f"{entry['source']}: {format}: {entry['line'][:300]}\n    {str(error)[:600]}", file=sys.stderr)
    for format in sorted(checked):
        print(f"{format}: {checked[format]} messages")
    if unnamed:
        print(f"of these, {len(unnamed)} items of reasoning were given an id for the check")
    print(f"{failed} not of their type")
    if failed or not seen:
        sys.exit(1)


main()
