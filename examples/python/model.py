"""A stand-in for the provider: it takes the SDK's own types and gives them back.

With an API key, `Model().call(request)` is `Anthropic().messages.create(**request)`.
"""

from __future__ import annotations

from anthropic.types import Message, TextBlock, ToolParam, ToolUseBlock, Usage
from anthropic.types.message_create_params import MessageCreateParamsNonStreaming
from contextd_client import Context, Event, events
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


def request(context: Context) -> MessageCreateParamsNonStreaming:
    """The request: what a context gives, and what is the agent's own."""
    return {"model": NAME, "max_tokens": 1024, "tools": TOOLS, **context.request_kwargs()}


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


def run_tools(reply: Message) -> list[Event]:
    """The results of the calls, for the log."""
    return [_result(block) for block in reply.content if block.type == "tool_use"]


def _result(use: ToolUseBlock) -> Event:
    body = "".join(f"def f{i}() -> int: return {i}\n" for i in range(80))
    return events.tool_result(use.id, body)
