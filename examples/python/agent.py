"""A small agent loop: what happens goes into the log, and before each model call the context
is assembled from it.

    agent.py [ADDRESS]
"""

from __future__ import annotations

import sys
import uuid

import grpc
import model
import refused
from contextd.v1 import assembly_pb2, budget_pb2, event_pb2, log_pb2, projection_pb2, session_pb2
from google.protobuf.message import Message
from held import Held, connect
from sidecar import sidecar

BUDGET = budget_pb2.Budget(model="claude-sonnet-4-5", max_tokens=4_000)


class Agent:
    """A session, and what is held of its context."""

    def __init__(self, address: str) -> None:
        self.stub = connect(address)
        self.session_id = f"agent-python/{uuid.uuid4()}"
        self.held = Held()
        self.head = 0
        self.model = model.Model()

    def append(self, *said: event_pb2.Message) -> None:
        """Append messages after what we know. Each has an id, so that sending them again
        after a lost answer appends nothing twice."""
        events = [event_pb2.Event(event_id=str(uuid.uuid4()), message=m) for m in said]
        while True:
            request = log_pb2.AppendEventsRequest(
                session_id=self.session_id, events=events, expected_head=self.head
            )
            try:
                answer = refused.patiently(lambda: self.stub.AppendEvents(request, timeout=10))
            except grpc.RpcError as error:
                self.after(refused.read(error))
                continue
            self.head = max(r.seq for r in answer.receipts)
            return

    def after(self, error: refused.Refused) -> None:
        """Do what makes it worth trying again, or end."""
        if error.code == "ABORTED":
            # Somebody else appended. Read what it was, and go on after it.
            request = log_pb2.ReadEventsRequest(
                session_id=self.session_id, from_seq=self.head + 1
            )
            for part in self.stub.ReadEvents(request):
                for event in part.events:
                    print(f"meanwhile: event {event.seq}, {event.WhichOneof('kind')}")
                    self.head = event.seq
        elif error.exceeded is not None:
            for part in error.exceeded.parts:
                print(f"cannot be reduced: {part.what}, event {part.seq}, {part.tokens} tokens")
            raise SystemExit(f"{error.reason}: {error.exceeded.needed_tokens} tokens are needed")
        else:
            raise SystemExit(f"{error.code} {error.reason} {error.field}: {error.message}")

    def assemble(self, budget: budget_pb2.Budget = BUDGET, *, projection: bool = False) -> None:
        """Bring the context up to date. The projection, which grows with the session, is
        asked for only where it is read."""
        request = assembly_pb2.AssembleContextRequest(
            session_id=self.session_id,
            budget=budget,
            format="FORMAT_ANTHROPIC",
            brief=not projection,
            preview=projection,
        )
        while True:
            try:
                return refused.patiently(lambda: self.held.assemble(self.stub, request))
            except grpc.RpcError as error:
                self.after(refused.read(error))

    def run(self, question: str) -> None:
        """Ask the model until it calls no more tools."""
        self.append(
            spoken("ROLE_SYSTEM", "You find out what files do."), spoken("ROLE_USER", question)
        )
        # What another process does to the session at any time.
        other = event_pb2.Event(custom=event_pb2.CustomEvent(type="editor.saved"))
        self.stub.AppendEvents(
            log_pb2.AppendEventsRequest(session_id=self.session_id, events=[other])
        )
        while True:
            self.assemble()
            header = self.held.header
            print(
                f"{len(self.held.messages)} messages, {self.held.sent} of them new, "
                f"{header.budget.projected_tokens} tokens"
            )
            reply = self.model.call(model.request(self.held))
            self.append(model.message(reply))
            results = model.run_tools(reply)
            if not results:
                print("".join(b.text for b in reply.content if b.type == "text"))
                return
            self.append(*results)

    def resolve(self) -> None:
        """Get a body back that is not shown whole."""
        self.assemble(projection=True)
        pointers = self.held.header.projection.redaction_pointers
        if not pointers:
            raise SystemExit("nothing was shortened: the budget is too wide for this example")
        request = projection_pb2.ResolvePointerRequest(
            session_id=self.session_id, pointer=pointers[0].pointer
        )
        block = self.stub.ResolvePointer(request, timeout=10).block
        characters = sum(len(b.text.text) for b in block.tool_result.content)
        print(f"{pointers[0].pointer} ({pointers[0].decision}): {characters} characters")

    def show_what_does_not_fit(self) -> None:
        """Ask for a context that cannot be made to fit."""
        try:
            self.assemble(budget_pb2.Budget(max_tokens=20))
        except SystemExit as error:
            print(error)

    def delete(self) -> None:
        """Delete the session."""
        self.stub.DeleteSession(session_pb2.DeleteSessionRequest(session_id=self.session_id))


def spoken(role: str, text: str) -> Message:
    """A message of one text."""
    block = event_pb2.Block(text=event_pb2.Text(text=text))
    return event_pb2.Message(role=role, blocks=[block])


def main() -> None:
    """agent.py [ADDRESS]"""
    with sidecar(sys.argv[1] if len(sys.argv) > 1 else None) as address:
        agent = Agent(address)
        agent.run("What do the files in src do?")
        agent.resolve()
        agent.show_what_does_not_fit()
        agent.delete()


if __name__ == "__main__":
    main()
