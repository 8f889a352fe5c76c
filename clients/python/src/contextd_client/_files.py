"""Transcripts as files: uploads and downloads."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, NamedTuple, Protocol, TypeVar

from contextd_client.v1.transcript_pb2 import ExportReport

Request = TypeVar("Request")

Source = str | os.PathLike[str] | bytes | BinaryIO
"""A transcript: the path of a file, its bytes, or a binary file that is open."""

_PIECE = 256 << 10


class Transcript(NamedTuple):
    """A transcript that the daemon wrote."""

    data: bytes
    report: ExportReport
    """How many entries and compactions it has, and what the harness cannot represent."""


class _Part(Protocol):
    @property
    def data(self) -> bytes: ...
    @property
    def report(self) -> ExportReport: ...


def read(source: Source) -> bytes:
    """The bytes of a transcript. They are kept in memory, so that an upload can be retried."""
    if isinstance(source, bytes):
        return source
    if isinstance(source, str | os.PathLike):
        return Path(source).read_bytes()
    data = source.read() if hasattr(source, "read") else source
    if not isinstance(data, bytes):
        raise TypeError(f"source: must be a path, bytes or a binary file, not {source!r:.60}")
    return data


def upload(header: Request, part: Callable[[bytes], Request], data: bytes) -> Iterator[Request]:
    """The requests of an upload: a header, then the bytes."""
    yield header
    for at in range(0, len(data), _PIECE):
        yield part(data[at : at + _PIECE])


def gathered(parts: Iterable[_Part]) -> Transcript:
    """The transcript of a whole answer, whose last part has the report."""
    received = list(parts)
    report = received[-1].report if received else ExportReport()
    return Transcript(b"".join(part.data for part in received), report)
