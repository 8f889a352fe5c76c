"""Contents that ADK adds to a single request, besides the history.

These are an instruction beside a static one, `model_input_context`, memories, and artifacts that a
tool loads. They are not appended to the log, since the history would then differ each time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from google.genai import types

if TYPE_CHECKING:
    from google.adk.agents.invocation_context import InvocationContext
    from google.adk.models.llm_request import LlmRequest

_OTHER_AGENT = "For context:"
"""The beginning of contents that ADK makes from messages of other agents."""

Beside = list[tuple[types.Content, int | None]]
"""Contents of one request, each with how many of the history's come after it; None: all."""


def parted(request: LlmRequest, at: InvocationContext) -> tuple[list[types.Content], Beside]:
    """The history of a request, and the rest.

    A content after the model's newest, or after the results of its calls, that is of no event of
    ADK's session is for this request.
    """
    contents, events = request.contents, at.session.events
    # With a static instruction that is not a text, all instructions come first.
    first: int = getattr(request, "_static_instruction_prefix_end_index", None) or 0
    known = getattr(at.run_config, "model_input_context", None) or ()
    begin = _newest(contents)
    only = [
        place < first or ((place >= begin or content in known) and not _of_history(content, events))
        for place, content in enumerate(contents)
    ]
    if all(only) and only:
        only[-1] = False  # the input of a task, which is in no event of this session
    history = [content for content, beside in zip(contents, only, strict=True) if not beside]
    out: Beside = []
    for place, content in enumerate(contents):
        if only[place]:
            following = None if place < first else only[place:].count(False)
            out.append((content, following))
    return history, out


def joined(shown: list[types.Content], beside: Beside) -> list[types.Content]:
    """The contents of a context, with those of the request in their places."""
    begin, length = _newest(shown), len(shown)
    for content, following in reversed(beside):
        place = 0 if following is None else max(begin, length - following)
        shown.insert(place, content)
    return shown


def text_of(beside: Beside) -> str:
    """The texts, so that the context leaves room for their tokens."""
    return "\n".join(p.text for content, _ in beside for p in content.parts or [] if p.text)


def _newest(contents: Sequence[types.Content]) -> int:
    """Where the newest messages of users begin, after those of the model and its tools."""
    place = len(contents)
    while place and not _of_model(contents[place - 1]):
        place -= 1
    return place


def _of_model(content: types.Content) -> bool:
    return content.role != "user" or any(p.function_response for p in content.parts or [])


def _of_history(content: types.Content, events: Sequence[Any]) -> bool:
    parts = content.parts or []
    if not parts or (parts[0].text or "").startswith(_OTHER_AGENT):
        return True
    return any(all(part in said for part in parts) for said in _said(reversed(events)))


def _said(events: Iterable[Any]) -> Iterable[Sequence[types.Part]]:
    for event in events:
        if event.content:
            yield event.content.parts or ()
        compaction = getattr(event.actions, "compaction", None)
        if compaction and compaction.compacted_content:
            yield compaction.compacted_content.parts or ()
