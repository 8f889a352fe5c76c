"""Events from the responses and messages of providers' SDKs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from contextd_client import _rawjson as rawjson
from contextd_client import events
from contextd_client._formats import FormatName
from contextd_client._rawjson import Raw
from contextd_client._read import anthropic, gemini, openai_chat, openai_responses
from contextd_client.v1.event_pb2 import ROLE_ASSISTANT, Event


def response_events(response: Any) -> list[Event]:
    """The events of a response: an SDK's object, a dict, or the raw body.

    With a raw body (str or bytes) tool arguments keep their bytes; otherwise they were parsed
    and are encoded again. The event has the response's id, so appending a response twice has no
    effect. A response without content becomes a custom event instead of a message.
    """
    made = _response_events(to_raw(response, "response"))
    said = made[0].message
    if not said.blocks:
        about = {"id": made[0].event_id, "model": said.model}
        made = [events.custom("empty_response", about, event_id=made[0].event_id)]
    return made


def _response_events(raw: Raw) -> list[Event]:
    kind, outer = raw.string("object"), raw.members()
    if kind in ("", "response") and "output" in outer:
        return openai_responses.response(raw)
    if "choices" in outer:
        return openai_chat.response(raw)
    if "candidates" in outer or "promptFeedback" in outer:
        return gemini.response(raw)
    if raw.string("type") == "message" and raw.string("role") == "assistant":
        return anthropic.message(raw)
    raise ValueError("response: is none of Anthropic's, OpenAI's or Gemini's")


def message_events(messages: Any, format: FormatName, model: str = "") -> list[Event]:
    """The events of messages in the form of a provider's API: one, or a sequence.

    A text may hold a list, or messages one after another. model: wrote the assistant's messages
    that name no model. Content that cannot be read is an error; nothing is dropped silently. A
    message whose content is empty has no event.
    """
    if not isinstance(model, str):
        raise TypeError(f"model: must be str, not {model!r:.60}")
    if format not in _READERS:
        raise ValueError(f"format: {format!r} is none of {', '.join(_READERS)}")
    events = [e for e in _message_events(messages, _READERS[format]) if e.message.blocks]
    if format == "openai_responses":
        events = openai_responses.joined(events)
    for event in events:
        if event.message.role == ROLE_ASSISTANT and not event.message.model:
            event.message.model = model
    return events


def messages_to_append(messages: Any, format: FormatName, model: str) -> list[Event]:
    """The events of messages, of which there must be some."""
    made = message_events(messages, format, model)
    if not made:
        raise ValueError("messages: must not be empty")
    return made


_READERS: dict[str, Callable[[Raw], list[Event]]] = {
    "anthropic": anthropic.message,
    "openai_chat": openai_chat.message,
    "openai_responses": openai_responses.item,
    "gemini": gemini.content,
}


def _message_events(messages: Any, read: Callable[[Raw], list[Event]]) -> list[Event]:
    one = isinstance(messages, Mapping | str | bytes) or not isinstance(messages, Sequence)
    raws: list[Raw] = []
    for given in [messages] if one else messages:
        for raw in _raws(given, "messages" if one else f"messages[{len(raws)}]"):
            raws += raw.elements() if raw.is_list else [raw]
    out: list[Event] = []
    for number, raw in enumerate(raws):
        with rawjson.at(f"messages[{number}]"):
            _require_message(raw)
            out += read(raw)
    return out


def _require_message(raw: Raw) -> None:
    """Raises ValueError for a whole request, and for anything that is not an object."""
    if not raw.is_object:
        raise ValueError("must be an object")
    if raw.get("role").present or raw.get("type").present:
        return
    for name in ("messages", "contents", "input"):
        if raw.get(name).is_list:
            raise ValueError(f'is a whole request; give the list in its "{name}" instead')


def to_raw(value: Any, name: str = "value") -> Raw:
    """The JSON of the argument of this name: text, a dict, or an SDK's (pydantic's) object."""
    return _raws(value, name, lambda text: [rawjson.read(text)])[0]


def _raws(
    value: Any, name: str, read: Callable[[str | bytes], list[Raw]] = rawjson.values
) -> list[Raw]:
    """The same of a text that may have several values."""
    try:
        if isinstance(value, str | bytes):
            return read(value)
        if hasattr(value, "model_dump_json"):
            return read(value.model_dump_json(exclude_none=True, by_alias=True))
        return read(rawjson.dumps(value, _plain))
    except ValueError as error:
        raise ValueError(f"{name}: is no JSON: {error}") from None
    except RecursionError:
        raise ValueError(f"{name}: is nested too deeply") from None
    except TypeError as error:
        raise TypeError(f"{name}: {error}") from None


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump(mode="json", exclude_none=True, by_alias=True)
    raise TypeError(f"a {type(value).__name__} is no JSON")
