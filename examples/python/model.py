"""A stand-in for the provider: it takes the SDK's own types and gives them back.

With an API key, `Model().call(request)` is `Anthropic().messages.create(**request)`.
"""

from __future__ import annotations

import json

from anthropic.types import Message, TextBlock, ToolParam, ToolUseBlock, Usage
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from contextd.v1 import event_pb2
from held import Held
from pydantic import TypeAdapter

NAME = "claude-sonnet-4-5"
FILES = 8
TOOLS: list[ToolParam] = [
    {
        "name": "read_file",
        "description": "Read a file.",
        "input_schema": {"type": "object", "properties": {"path": {"type": "string"}}},
    }
]
_REQUEST: TypeAdapter[MessageCreateParamsNonStreaming] = TypeAdapter(
    MessageCreateParamsNonStreaming
)


def request(held: Held) -> MessageCreateParamsNonStreaming:
    """The request, with the provider's cache marks on copies: the kept bytes stay."""
    values = [json.loads(m) for m in held.messages]
    system = values.pop(0)["system"] if held.system else []
    for point in held.header.cache_breakpoints:
        index = point.message_index - held.system
        items = system if index < 0 else values[index]["content"]
        item = items[point.content_index if point.HasField("content_index") else -1]
        item["cache_control"] = {"type": "ephemeral"}
    return {
        "model": NAME,
        "max_tokens": 1024,
        "tools": TOOLS,
        "system": system,
        "messages": values,
    }


class Model:
    """A model that reads one file after another, then answers."""

    def __init__(self) -> None:
        self._asked = 0

    def call(self, body: MessageCreateParamsNonStreaming) -> Message:
        """Answer a request. One that is not valid by the SDK's types is refused."""
        _REQUEST.validate_python(body)
        self._asked += 1
        return _answer(self._asked)


def _answer(number: int) -> Message:
    content: list[TextBlock | ToolUseBlock]
    if number > FILES:
        content = [TextBlock(type="text", text="They print numbers.")]
    else:
        path = {"path": f"src/FILE-{number}.py"}
        content = [
            TextBlock(type="text", text=f"I read file {number}."),
            ToolUseBlock(type="tool_use", id=f"toolu_{number}", name="read_file", input=path),
        ]
    return Message(
        id=f"msg_{number}", type="message", role="assistant", model=NAME, content=content,
        stop_reason="end_turn" if number > FILES else "tool_use",
        usage=Usage(input_tokens=0, output_tokens=0),
    )  # fmt: skip


def message(reply: Message) -> event_pb2.Message:
    """What the model said, for the log."""
    blocks = []
    for block in reply.content:
        if block.type == "text":
            blocks.append(event_pb2.Block(text=event_pb2.Text(text=block.text)))
        elif block.type == "tool_use":
            arguments = json.dumps(block.input, ensure_ascii=False).encode()
            made = event_pb2.ToolCall(
                call_id=block.id, name=block.name, arguments_json=arguments
            )
            blocks.append(event_pb2.Block(tool_call=made))
    return event_pb2.Message(role="ROLE_ASSISTANT", blocks=blocks, model=reply.model)


def run_tools(reply: Message) -> list[event_pb2.Message]:
    """The results of the calls, for the log."""
    return [_result(block) for block in reply.content if block.type == "tool_use"]


def _result(use: ToolUseBlock) -> event_pb2.Message:
    body = "".join(f"def f{i}() -> int: return {i}\n" for i in range(80))
    result = event_pb2.ToolResult(
        call_id=use.id, content=[event_pb2.Block(text=event_pb2.Text(text=body))]
    )
    return event_pb2.Message(role="ROLE_TOOL", blocks=[event_pb2.Block(tool_result=result)])
