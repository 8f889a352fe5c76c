"""Runs a scenario and prints a line for each of its steps; see examples/README.md."""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from contextd_client import ApiError, Client, Context, Event, FormatName, hash_lines
from contextd_client.errors import LogLostError
from contextd_client.v1.assembly_pb2 import AssembleContextRequest
from contextd_client.v1.format_pb2 import Format
from contextd_client.v1.log_pb2 import AppendEventsRequest
from google.protobuf import json_format

FORMATS: dict[int, FormatName] = {
    Format.FORMAT_UNSPECIFIED: "contextd",
    Format.FORMAT_ANTHROPIC: "anthropic",
    Format.FORMAT_OPENAI_CHAT: "openai_chat",
    Format.FORMAT_OPENAI_RESPONSES: "openai_responses",
    Format.FORMAT_GEMINI: "gemini",
}


class Scenario:
    """The state between the steps."""

    def __init__(self, client: Client, session_id: str) -> None:
        self.client = client
        self.session_id = session_id
        self.newest: Context | None = None
        self.appended: list[Event] = []  # all of them, for a log that is lost

    def run(self, number: int, step: dict[str, Any]) -> None:
        """Do a step and print its line."""
        if "daemon" in step:
            report({"step": number, **step})
            if not sys.stdin.readline():
                raise SystemExit("nobody answers")
        elif "append" in step:
            made = events(step["append"])
            line = self.append(made)
            self.appended += made
            report({"step": number, **line})
        elif "assemble" in step:
            report({"step": number, **self.assemble(step["assemble"])})
        elif "resolve_first_pointer" in step:
            report({"step": number, **self.resolve()})
        elif "error" in step:
            report({"step": number, **self.error(step["error"])})
        elif "lost" in step:
            report({"step": number, **self.lost(events(step["lost"]))})
        else:
            raise SystemExit(f"a step of an unknown kind: {', '.join(step)}")

    def append(
        self, made: Iterable[Event], expected_head: int | None = None
    ) -> dict[str, Any]:
        answer = self.client.append(self.session_id, *made, expected_head=expected_head)
        duplicates = sum(r.duplicate for r in answer.receipts)
        return {"appended": len(answer.receipts) - duplicates, "duplicates": duplicates}

    def assembled(self, body: dict[str, Any]) -> Context:
        request = json_format.ParseDict(body, AssembleContextRequest())
        return self.client.assemble(
            self.session_id,
            FORMATS[request.format],
            budget=request.budget,
            policy=request.policy,
            injections=request.injections,
            projection=True,
        )

    def assemble(self, body: dict[str, Any]) -> dict[str, Any]:
        made = self.newest = self.assembled(body)
        return {
            "context_hash": hash_lines(made.lines),
            "prefix_hash": made.header.prefix_hash,
            "messages": len(made.lines),
            "sent": made.sent,
            "bytes": sum(len(line) + 1 for line in made.lines),
        }

    def resolve(self) -> dict[str, Any]:
        assert self.newest is not None
        pointer = self.newest.header.projection.redaction_pointers[0]
        body = self.client.recall(self.session_id, pointer.pointer)
        own = "sha256:" + hashlib.sha256(body.encode()).hexdigest()
        if own != pointer.content_hash:
            raise SystemExit(f"{pointer.pointer} hashes to {own}, not {pointer.content_hash}")
        return {"resolved_sha256": own}

    def error(self, expected: dict[str, Any]) -> dict[str, Any]:
        try:
            if "append" in expected:
                request = json_format.ParseDict(expected["append"], AppendEventsRequest())
                head = request.expected_head if request.HasField("expected_head") else None
                self.append(request.events, head)
            else:
                self.assembled(expected["assemble"])
        except ApiError as got:
            line = {"code": got.code.name, "field": got.field}
            if line != {"code": expected["code"], "field": expected["field"]}:
                raise SystemExit(f"refused with {got}, not {expected['code']}") from got
            return line
        raise SystemExit(f"not refused with {expected['code']}")

    def lost(self, made: list[Event]) -> dict[str, Any]:
        """Append to a log that was lost, and then all of the conversation again."""
        try:
            self.append(made)
        except LogLostError as lost:
            self.client.forget_session(self.session_id)
            self.appended += made
            line = self.append(self.appended)
            return {"reason": lost.reason, "field": lost.field, **line}
        raise SystemExit("the loss of the log was not noticed")


def events(bodies: Iterable[dict[str, Any]]) -> list[Event]:
    """Events from protobuf's JSON."""
    return [json_format.ParseDict(body, Event()) for body in bodies]


def report(line: dict[str, Any]) -> None:
    """Print a line."""
    print(json.dumps(line, separators=(",", ":")), flush=True)


def main() -> None:
    """scenario.py ADDRESS FILE"""
    address, path = sys.argv[1:]
    plan = json.loads(Path(path).read_text(encoding="utf-8"))
    with Client(address) as client:
        scenario = Scenario(client, plan["session"] + "-python")
        for number, step in enumerate(plan["steps"]):
            scenario.run(number, step)


if __name__ == "__main__":
    main()
