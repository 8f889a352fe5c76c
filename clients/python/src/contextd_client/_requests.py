"""Requests whose fields are checked before they are sent, so that errors name the argument."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, TypeVar

from google.protobuf import message_factory
from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from contextd_client._rawjson import mended

M = TypeVar("M", bound=Message)

_TYPES: dict[int, tuple[type, ...]] = {
    FieldDescriptor.CPPTYPE_STRING: (str,),
    FieldDescriptor.CPPTYPE_BOOL: (bool,),
    FieldDescriptor.CPPTYPE_FLOAT: (float, int),
    FieldDescriptor.CPPTYPE_DOUBLE: (float, int),
}

# Fields that models, tools and people write, which may contain lone surrogates.
_WRITTEN = {"body", "error", "instructions", "summary", "text"}


def checked(kind: type[M], **fields: Any) -> M:
    """A message with these fields. Raises TypeError or ValueError, which names an invalid field."""
    for name, value in fields.items():
        if name in _WRITTEN and isinstance(value, str):
            fields[name] = value = mended(value)
        field = kind.DESCRIPTOR.fields_by_name[name]
        if value is None and field.has_presence:
            continue
        if not field.is_repeated:
            _check(name, value, field)
        elif field.message_type is not None and field.message_type.GetOptions().map_entry:
            if value is not None:
                _check_map(name, value, field)
        else:
            if isinstance(value, str | bytes) or not isinstance(value, Iterable):
                raise TypeError(f"{name}: must be a list, not {_shown(value)}")
            fields[name] = value = list(value)
            for i, item in enumerate(value):
                _check(f"{name}[{i}]", item, field)
    try:
        return kind(**fields)
    except (TypeError, ValueError):
        # Protobuf's own error does not name the field.
        for name, value in fields.items():
            try:
                kind(**{name: value})
            except ValueError as error:
                raise ValueError(f"{name}: {error}") from None
            except TypeError as error:
                raise TypeError(f"{name}: {error}") from None
        raise


def _check(name: str, value: Any, field: Any) -> None:
    expected = _expected(field)
    if not isinstance(value, expected) or (isinstance(value, bool) and bool not in expected):
        names = " or ".join(kind.__name__ for kind in expected)
        raise TypeError(f"{name}: must be {names}, not {_shown(value)}")


def _check_map(name: str, value: Any, field: Any) -> None:
    if not isinstance(value, Mapping):
        raise TypeError(f"{name}: must be a dict, not {_shown(value)}")
    members = field.message_type.fields_by_name
    for key, item in value.items():
        _check(f"a key of {name}", key, members["key"])
        _check(f"{name}[{key!r}]", item, members["value"])


@cache
def _expected(field: Any) -> tuple[type, ...]:
    if field.message_type is not None:
        return (message_factory.GetMessageClass(field.message_type),)
    if field.type == FieldDescriptor.TYPE_BYTES:
        return (bytes,)
    return _TYPES.get(field.cpp_type, (int,))


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
