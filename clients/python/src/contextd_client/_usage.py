"""A provider's token counts for a model call."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from contextd_client._rawjson import Raw
from contextd_client._read import to_raw


@dataclass(frozen=True)
class Usage:
    """Tokens of one call. 0: not reported."""

    input_tokens: int = 0
    """All tokens of the prompt, cached ones included."""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    output_tokens: int = 0
    stop_reason: str = ""
    model: str = ""


def usage_of(response: Any) -> Usage:
    """The usage in a response of Anthropic, OpenAI or Gemini."""
    raw = to_raw(response, "response")
    members = raw.members()
    used = raw.get("usage")
    if any(name in members for name in ("candidates", "usageMetadata", "promptFeedback")):
        return _gemini(raw)
    if "choices" in members:
        first = (raw.get("choices").elements() or [Raw("{}")])[0]
        of_prompt = used.get("prompt_tokens_details")
        return Usage(
            input_tokens=_count(used, "prompt_tokens"),
            cache_read_tokens=_count(of_prompt, "cached_tokens"),
            cache_write_tokens=_count(of_prompt, "cache_write_tokens"),
            output_tokens=_count(used, "completion_tokens"),
            stop_reason=first.string("finish_reason"),
            model=raw.string("model"),
        )
    if "output" in members:
        of_input = used.get("input_tokens_details")
        return Usage(
            input_tokens=_count(used, "input_tokens"),
            cache_read_tokens=_count(of_input, "cached_tokens"),
            cache_write_tokens=_count(of_input, "cache_write_tokens"),
            output_tokens=_count(used, "output_tokens"),
            stop_reason=raw.get("incomplete_details").string("reason") or raw.string("status"),
            model=raw.string("model"),
        )
    if "usage" not in members and raw.string("type") != "message":
        raise ValueError("response: is none of Anthropic's, OpenAI's or Gemini's")
    # Anthropic's input_tokens do not include tokens read from or written to the cache. Where its
    # servers ran tools, it adds up the prompts of the model's calls, of which the first was sent.
    calls = [c for c in used.get("iterations").elements() if c.string("type") == "message"]
    prompt = (calls or [used])[0]
    read = _count(prompt, "cache_read_input_tokens")
    written = _count(prompt, "cache_creation_input_tokens")
    return Usage(
        input_tokens=_count(prompt, "input_tokens") + read + written,
        cache_read_tokens=read,
        cache_write_tokens=written,
        output_tokens=_count(used, "output_tokens"),
        stop_reason=raw.string("stop_reason"),
        model=raw.string("model"),
    )


def _gemini(raw: Raw) -> Usage:
    used = raw.get("usageMetadata")
    first = (raw.get("candidates").elements() or [Raw("{}")])[0]
    said = _count(used, "candidatesTokenCount") + _count(used, "thoughtsTokenCount")
    return Usage(
        input_tokens=_count(used, "promptTokenCount"),
        cache_read_tokens=_count(used, "cachedContentTokenCount"),
        output_tokens=said,
        stop_reason=first.string("finishReason"),
        model=raw.string("modelVersion"),
    )


def _count(raw: Raw, name: str) -> int:
    """A whole number, as 1.0 is one, and not too large for JSON's readers in other languages."""
    value = raw.get(name).value
    whole = type(value) is int or (type(value) is float and value.is_integer())
    return int(value) if whole and 0 < value < 2**53 else 0
