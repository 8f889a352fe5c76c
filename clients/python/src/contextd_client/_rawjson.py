"""JSON parsed one level at a time, so that nested values keep their bytes."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


def _refuse(name: str) -> Any:
    raise ValueError(f"it has {name}")


_DECODER = json.JSONDecoder(parse_constant=_refuse)
_SPACE = " \t\n\r"


@dataclass(frozen=True)
class Raw:
    """The text of a JSON value."""

    json: str

    @property
    def value(self) -> Any:
        """The value."""
        return json.loads(self.json)

    @property
    def data(self) -> bytes:
        """The text as UTF-8."""
        return self.json.encode()

    @property
    def is_object(self) -> bool:
        """Whether it is an object."""
        return self.json.startswith("{")

    @property
    def is_list(self) -> bool:
        """Whether it is a list."""
        return self.json.startswith("[")

    @property
    def present(self) -> bool:
        """Whether it is not null."""
        return self.json != "null"

    def text(self) -> str:
        """The string; empty if it is not one. A lone surrogate becomes U+FFFD."""
        value = self.value if self.json.startswith('"') else ""
        return mended(str(value))

    def members(self) -> dict[str, Raw]:
        """The members of an object, the last of each name; empty if it is not one."""
        return dict(self._pairs()) if self.is_object else {}

    def elements(self) -> list[Raw]:
        """The elements of a list; empty if it is not one."""
        if not self.is_list:
            return []
        out = []
        at = _skip(self.json, 1)
        while self.json[at] != "]":
            value, at = _value(self.json, at)
            out.append(value)
            at = _skip(self.json, at)
            if self.json[at] == ",":
                at = _skip(self.json, at + 1)
        return out

    def get(self, name: str) -> Raw:
        """A member; null if there is none."""
        return self.members().get(name, NULL)

    def string(self, name: str) -> str:
        """A member that is a string; empty if there is none."""
        return self.get(name).text()

    def require_content(self, name: str) -> None:
        """Raises ValueError if a member is neither a string nor a list of objects.

        It would be lost. Null counts as empty content, and so does a message that only has a role.
        """
        members = self.members()
        if name not in members and set(members) != {"role"}:
            raise ValueError(f"{name}: must be set")
        content = self.get(name).json
        if content != "null" and content[0] not in '"[':
            raise ValueError(f"{name}: must be a string or a list")
        self.get(name).require_objects(name)

    def require_objects(self, name: str) -> None:
        """Raises ValueError if an element of a list is not an object."""
        for number, item in enumerate(self.elements()):
            if not item.is_object:
                raise ValueError(f"{name}[{number}]: must be an object")

    def _pairs(self) -> Iterator[tuple[str, Raw]]:
        at = _skip(self.json, 1)
        while self.json[at] != "}":
            name, at = _DECODER.raw_decode(self.json, at)
            at = _skip(self.json, at)
            value, at = _value(self.json, _skip(self.json, at + 1))
            yield name, value
            at = _skip(self.json, at)
            if self.json[at] == ",":
                at = _skip(self.json, at + 1)


def read(text: str | bytes) -> Raw:
    """A JSON text. Raises ValueError if it is not valid JSON."""
    found = values(text)
    if len(found) != 1:
        raise ValueError(f"it has {len(found)} values")
    return found[0]


def values(text: str | bytes) -> list[Raw]:
    """The JSON values of a text, one after another. Raises ValueError if one is not valid.

    A byte order mark, which some editors write before a text, is not part of it.
    """
    text = text.decode() if isinstance(text, bytes) else text
    text = text.removeprefix("\ufeff").strip(_SPACE)
    out = []
    at = 0
    while at < len(text):
        _, end = _DECODER.raw_decode(text, at)
        out.append(Raw(text[at:end]))
        at = _skip(text, end) if end < len(text) else end
    return out


@contextmanager
def at(place: str) -> Iterator[None]:
    """Puts the place of what is read before the errors of its reader."""
    try:
        yield
    except ValueError as error:
        raise ValueError(f"{place}: {error}") from None


def mended(text: str) -> str:
    """A text that UTF-8 can encode: lone surrogates are replaced by U+FFFD."""
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def unbase64(text: str) -> bytes:
    """The bytes of a text in base64, which may have line ends; empty if it is not base64."""
    try:
        return base64.b64decode(text.replace("\n", "").replace("\r", ""), validate=True)
    except ValueError:
        return b""


def dumps(value: Any, default: Callable[[Any], Any] | None = None) -> str:
    """The JSON of a value, unescaped if it can be encoded as UTF-8."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"), default=default)
    if text.isascii():
        return text
    try:
        text.encode()
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":"), default=default)
    return text


def _value(text: str, at: int) -> tuple[Raw, int]:
    try:
        _, end = _DECODER.raw_decode(text, at)
    except RecursionError:
        raise ValueError("is nested too deeply") from None
    return Raw(text[at:end]), end


def _skip(text: str, at: int) -> int:
    while text[at] in _SPACE:
        at += 1
    return at


NULL = Raw("null")
