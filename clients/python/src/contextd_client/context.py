"""A received context, and how to make a provider's request from it."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from contextd_client import _formats, _sdk_json
from contextd_client._formats import FormatName
from contextd_client.errors import StreamError
from contextd_client.v1.assembly_pb2 import ContextHeader
from contextd_client.v1.projection_pb2 import ReplayProjectionResponse
from contextd_client.v1.replay_pb2 import RenderProjectionResponse

_MARK = {"type": "ephemeral"}


def hash_lines(lines: Iterable[bytes]) -> str:
    """The SHA-256 of messages as JSON Lines, in the API's form."""
    digest = hashlib.sha256()
    for line in lines:
        digest.update(line)
        digest.update(b"\n")
    return "sha256:" + digest.hexdigest()


@dataclass(frozen=True, eq=False)
class Context:
    """The context of one model call. Its bytes were checked against the daemon's hash."""

    session_id: str
    format: FormatName
    header: ContextHeader
    """What was decided. Without projection=True, session_id and projection are not set."""
    lines: tuple[bytes, ...]
    """The messages as the bytes that the hash covers, without the newlines."""
    sent: int
    """How many of them came with this answer; the client had the others."""
    system_first: bool
    """Whether the first line is a system prompt that the request has outside the messages."""

    @property
    def context_hash(self) -> str:
        """The hash over all lines."""
        return self.header.context_hash

    @property
    def projection_id(self) -> str:
        """Id of the recorded projection; empty for a preview."""
        return self.header.projection_id

    @property
    def tokens(self) -> int:
        """Size of the context without injections, as the daemon estimates it."""
        return self.header.budget.projected_tokens

    @property
    def pointers(self) -> Sequence[str]:
        """The pointers of all bodies that were changed, for resolve_pointer.

        Raises ValueError unless the context was assembled with projection=True.
        """
        if not self.header.HasField("projection"):
            raise ValueError("the context was assembled without projection=True")
        return [p.pointer for p in self.header.projection.redaction_pointers]

    @property
    def system(self) -> Any:
        """The system prompt, if the request has it outside of the messages; else None."""
        if not self.system_first:
            return None
        (value,) = _sdk_json.loads(self.lines[0]).values()
        return value

    def messages(self) -> list[Any]:
        """The messages for the provider's SDK, without cache marks.

        Each call returns new values, which the caller may change.
        """
        values = [_sdk_json.loads(line) for line in self.lines[self._first :]]
        return [_formats.with_bytes(v) for v in values] if self.format == "gemini" else values

    def request_kwargs(self, *, cache: bool = True) -> dict[str, Any]:
        """Arguments for the provider's SDK, besides model, tools and so on.

        anthropic: system, messages. openai_chat: messages, prompt_cache_key.
        openai_responses: input, prompt_cache_key. gemini: contents, and config with the
        system instruction; merge it with a config of your own.

        With cache, it has the provider's cache marks at the places that the daemon recommends.
        """
        kwargs: dict[str, Any] = {_formats.MESSAGES[self.format]: self.messages()}
        if self.system_first and self.format == "gemini":
            kwargs["config"] = {"system_instruction": self.system}
        elif self.system_first:
            kwargs["system"] = self.system
        if cache and self.header.prompt_cache_key:
            kwargs["prompt_cache_key"] = self.header.prompt_cache_key
        if cache:
            self._mark(kwargs)
        return kwargs

    def request_json(self) -> bytes:
        """The same members as one JSON object, with the received bytes unchanged.

        For requests without an SDK. Numbers, duplicate keys and escapes in tool arguments stay
        as the model wrote them. It has no cache marks.
        """
        members = [self.lines[0][1:-1]] if self.system_first else []
        if self.header.prompt_cache_key:
            members.append(b'"prompt_cache_key":"%s"' % self.header.prompt_cache_key.encode())
        name = _formats.MESSAGES[self.format].encode()
        members.append(b'"%s":[%s]' % (name, b",".join(self.lines[self._first :])))
        return b"{" + b",".join(members) + b"}"

    @property
    def _first(self) -> int:
        return 1 if self.system_first else 0

    def _mark(self, kwargs: dict[str, Any]) -> None:
        for point in self.header.cache_breakpoints:
            index = point.message_index - self._first
            items = kwargs["system"] if index < 0 else kwargs["messages"][index]["content"]
            at = point.content_index if point.HasField("content_index") else -1
            items[at]["cache_control"] = dict(_MARK)


class Rendering(NamedTuple):
    """The messages of a recorded projection, without its injections, which are not recorded."""

    replay: ReplayProjectionResponse
    """Whether they are the messages that were originally sent."""
    lines: tuple[bytes, ...]
    """The messages as contextd's own JSON."""

    @classmethod
    def of(cls, parts: Iterable[RenderProjectionResponse]) -> Rendering:
        """The rendering of a complete answer."""
        first, *chunks = parts
        if not first.HasField("replay"):
            raise StreamError("the stream of a projection does not begin with its replay")
        return cls(first.replay, tuple(m.json for part in chunks for m in part.chunk.messages))

    def messages(self) -> list[Any]:
        """The messages as values."""
        return [_sdk_json.loads(line) for line in self.lines]
