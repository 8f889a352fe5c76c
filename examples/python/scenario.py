"""Runs a scenario and prints a line for each of its steps; see examples/README.md."""

from __future__ import annotations

import hashlib
import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import Any

import grpc
import refused
from contextd.v1 import assembly_pb2, log_pb2, projection_pb2
from google.protobuf import json_format
from held import Held, connect


class Scenario:
    """The state between the steps."""

    def __init__(self, address: str, session_id: str) -> None:
        self.stub = connect(address)
        self.session_id = session_id
        self.held: defaultdict[int, Held] = defaultdict(Held)
        self.newest = Held()

    def run(self, step: dict[str, Any]) -> dict[str, Any]:
        """Do a step; the members of its line."""
        if "append" in step:
            return self.append({"events": step["append"]})
        if "assemble" in step:
            return self.assemble(step["assemble"])
        if "resolve_first_pointer" in step:
            return self.resolve()
        if "error" in step:
            return self.error(step["error"])
        raise SystemExit(f"a step of an unknown kind: {', '.join(step)}")

    def append(self, body: dict[str, Any]) -> dict[str, Any]:
        request = log_pb2.AppendEventsRequest(session_id=self.session_id)
        json_format.ParseDict(body, request)
        receipts = self.stub.AppendEvents(request, timeout=60).receipts
        duplicates = sum(r.duplicate for r in receipts)
        return {"appended": len(receipts) - duplicates, "duplicates": duplicates}

    def request(self, body: dict[str, Any]) -> assembly_pb2.AssembleContextRequest:
        request = assembly_pb2.AssembleContextRequest(session_id=self.session_id)
        return json_format.ParseDict(body, request)

    def assemble(self, body: dict[str, Any]) -> dict[str, Any]:
        request = self.request(body)
        held = self.newest = self.held[request.format]
        held.assemble(self.stub, request)
        return {
            "context_hash": held.context_hash,
            "prefix_hash": held.header.prefix_hash,
            "messages": len(held.messages),
            "sent": held.sent,
            "bytes": sum(len(m) + 1 for m in held.messages),
        }

    def resolve(self) -> dict[str, Any]:
        pointer = self.newest.header.projection.redaction_pointers[0]
        request = projection_pb2.ResolvePointerRequest(
            session_id=self.session_id, pointer=pointer.pointer
        )
        block = self.stub.ResolvePointer(request, timeout=60).block
        body = "\n".join(b.text.text for b in block.tool_result.content)
        own = "sha256:" + hashlib.sha256(body.encode()).hexdigest()
        if own != pointer.content_hash:
            raise SystemExit(f"{pointer.pointer} hashes to {own}, not {pointer.content_hash}")
        return {"resolved_sha256": own}

    def error(self, expected: dict[str, Any]) -> dict[str, Any]:
        try:
            if "append" in expected:
                self.append(expected["append"])
            else:
                for _ in self.stub.AssembleContext(self.request(expected["assemble"]), timeout=60):
                    pass
        except grpc.RpcError as error:
            got = refused.read(error)
            line = {"code": got.code, "field": got.field}
            if line != {"code": expected["code"], "field": expected["field"]}:
                raise SystemExit(f"refused with {got}, not {expected['code']}") from error
            return line
        raise SystemExit(f"not refused with {expected['code']}")


def main() -> None:
    """scenario.py ADDRESS FILE"""
    address, path = sys.argv[1:]
    plan = json.loads(Path(path).read_text(encoding="utf-8"))
    scenario = Scenario(address, plan["session"] + "-python")
    for number, step in enumerate(plan["steps"]):
        line = {"step": number, **scenario.run(step)}
        print(json.dumps(line, separators=(",", ":")), flush=True)


if __name__ == "__main__":
    main()
