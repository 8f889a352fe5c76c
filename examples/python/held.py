"""What a client keeps of a context, and how it is brought up to date.

The messages stay the bytes that were received: the hash is over them, and the provider's
cache is, too.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import grpc
from contextd.v1 import assembly_pb2
from contextd.v1.context_service_pb2_grpc import ContextServiceStub

# An event, and so a message, may be larger than gRPC's default of 4 MiB.
OPTIONS = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]


def connect(address: str) -> ContextServiceStub:
    """The service at an address."""
    return ContextServiceStub(grpc.insecure_channel(address, options=OPTIONS))


def hash_of(messages: Iterable[bytes]) -> str:
    """The hash of messages: each one's bytes, then a newline."""
    digest = hashlib.sha256()
    for message in messages:
        digest.update(message + b"\n")
    return "sha256:" + digest.hexdigest()


class Mismatch(Exception):
    """What was received is not what the daemon says it sent."""


class Held:
    """The messages of one session in one format."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []
        self.header = assembly_pb2.ContextHeader()
        # The first message is the system prompt. Only Anthropic and Gemini take it
        # outside the messages; in the other formats it stays one of them.
        self.system = False
        self.sent = 0

    @property
    def context_hash(self) -> str:
        """Our own hash over all messages."""
        return hash_of(self.messages)

    def assemble(
        self, stub: ContextServiceStub, request: assembly_pb2.AssembleContextRequest
    ) -> None:
        """Bring the messages up to date. A call that fails leaves them as they are."""
        asked = assembly_pb2.AssembleContextRequest()
        asked.CopyFrom(request)
        # With injections the last messages are another request's: they are asked for again.
        said = self.header.prefix_messages
        if said:
            asked.have.message_count = said
            asked.have.prefix_hash = hash_of(self.messages[:said])
        header: assembly_pb2.ContextHeader | None = None
        trailer: assembly_pb2.ContextTrailer | None = None
        new: list[assembly_pb2.RenderedMessage] = []
        for part in stub.AssembleContext(asked, timeout=60):
            kind = part.WhichOneof("part")
            if kind == "header":
                header = part.header
            elif kind == "chunk":
                new.extend(part.chunk.messages)
            elif kind == "trailer":
                trailer = part.trailer
        if header is None or trailer is None:
            raise Mismatch("the stream ended before its trailer")
        self._take(said, header, trailer, new)

    def _take(
        self,
        said: int,
        header: assembly_pb2.ContextHeader,
        trailer: assembly_pb2.ContextTrailer,
        new: list[assembly_pb2.RenderedMessage],
    ) -> None:
        skipped = header.skipped_messages
        if skipped > said or (skipped < said and not header.HasField("have_broken")):
            raise Mismatch(f"{skipped} of {said} messages were skipped, and nothing says why")
        if [m.index for m in new] != list(range(skipped, skipped + len(new))):
            raise Mismatch("messages are missing or out of order")
        messages = self.messages[:skipped] + [m.json for m in new]
        if not header.message_count == trailer.message_count == len(messages):
            raise Mismatch(f"{len(messages)} messages, {header.message_count} were announced")
        own = hash_of(messages)
        if not header.context_hash == trailer.context_hash == own:
            raise Mismatch(f"the messages hash to {own}, not {header.context_hash}")
        if header.prefix_messages == header.message_count and header.prefix_hash != own:
            raise Mismatch(f"the prefix hashes to {own}, not {header.prefix_hash}")
        if skipped == 0:
            self.system = bool(new) and new[0].system
        self.messages, self.header, self.sent = messages, header, len(new)
