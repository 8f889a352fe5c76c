"""The formats by name, and the members of a provider's request for the parts of a context."""

from __future__ import annotations

import base64
from typing import Any, Literal

from contextd_client.v1.format_pb2 import Format

FormatName = Literal["anthropic", "openai_chat", "openai_responses", "gemini", "contextd"]
"""How messages are rendered: for a provider's API, or as contextd's own messages."""

NUMBERS: dict[FormatName, Format.ValueType] = {
    "contextd": Format.FORMAT_UNSPECIFIED,
    "anthropic": Format.FORMAT_ANTHROPIC,
    "openai_chat": Format.FORMAT_OPENAI_CHAT,
    "openai_responses": Format.FORMAT_OPENAI_RESPONSES,
    "gemini": Format.FORMAT_GEMINI,
}


def number(format: FormatName) -> Format.ValueType:
    """The API's value for a format."""
    if format not in tuple(NUMBERS):
        raise ValueError(f"format: {format!r} is none of {', '.join(NUMBERS)}")
    return NUMBERS[format]


MESSAGES: dict[FormatName, str] = {
    "contextd": "messages",
    "anthropic": "messages",
    "openai_chat": "messages",
    "openai_responses": "input",
    "gemini": "contents",
}
"""The member of the request's body that holds the messages."""

SYSTEM_BESIDE: tuple[FormatName, ...] = ("anthropic", "gemini")
"""The formats whose requests take the system prompt outside the messages."""


def with_bytes(content: Any) -> Any:
    """A Gemini content with base64 decoded, for members of which the SDK expects bytes."""
    for part in content.get("parts", ()):
        _decode(part, "thoughtSignature")
        if "inlineData" in part:
            _decode(part["inlineData"], "data")
    return content


def _decode(holder: dict[str, Any], name: str) -> None:
    text = holder.get(name)
    if isinstance(text, str):
        padded = text.rstrip("=") + "=" * (-len(text.rstrip("=")) % 4)
        holder[name] = base64.b64decode(padded.replace("-", "+").replace("_", "/"))
