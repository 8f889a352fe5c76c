"""A small agent loop: what happens goes into the log, and before each model call the context
is assembled from it.

    agent.py [ADDRESS]
"""

from __future__ import annotations

import sys
import uuid

import model
from contextd_client import Budget, Client, Context, Event, events
from contextd_client.errors import BudgetExceededError, HeadMismatchError
from sidecar import sidecar

BUDGET = Budget(model="claude-sonnet-4-5", max_tokens=4_000)


class Agent:
    """A session, and what is known of its log."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.session_id = f"agent-python/{uuid.uuid4()}"
        self.head = 0
        self.model = model.Model()

    def append(self, *said: Event) -> None:
        """Append events after what we know. Where somebody else appended, read what it was,
        and go on after it."""
        while True:
            try:
                answer = self.client.append(self.session_id, *said, expected_head=self.head)
            except HeadMismatchError:
                for event in self.client.read_events(self.session_id, from_seq=self.head + 1):
                    print(f"meanwhile: event {event.seq}, {event.WhichOneof('kind')}")
                    self.head = event.seq
            else:
                self.head = answer.last_seq
                return

    def assemble(self, *, projection: bool = False) -> Context:
        """The context. The projection, which grows with the session, is asked for only where
        it is read."""
        return self.client.assemble(
            self.session_id, "anthropic", budget=BUDGET, tools=model.TOOLS, projection=projection
        )

    def run(self, question: str) -> None:
        """Ask the model until it calls no more tools."""
        self.append(events.system("You find out what files do."), events.user(question))
        # What another process does to the session at any time.
        self.client.append(self.session_id, events.custom("editor.saved"))
        while True:
            context = self.assemble()
            print(
                f"{len(context.lines)} messages, {context.sent} of them new, "
                f"{context.tokens} tokens"
            )
            reply = self.model.call(model.request(context))
            self.head = self.client.append_response(self.session_id, reply).last_seq
            self.client.record_model_call(context, reply)
            results = model.run_tools(reply)
            if not results:
                print("".join(b.text for b in reply.content if b.type == "text"))
                return
            self.append(*results)

    def recall(self) -> None:
        """Get a body back that is not shown whole."""
        pointers = self.assemble(projection=True).header.projection.redaction_pointers
        if not pointers:
            raise SystemExit("nothing was shortened: the budget is too wide for this example")
        body = self.client.recall(self.session_id, pointers[0].pointer)
        print(f"{pointers[0].pointer} ({pointers[0].decision}): {len(body)} characters")

    def show_what_does_not_fit(self) -> None:
        """Ask for a context that cannot be made to fit."""
        try:
            self.client.assemble(self.session_id, "anthropic", budget=Budget(max_tokens=20))
        except BudgetExceededError as error:
            for part in error.parts:
                print(f"cannot be reduced: {part.what}, event {part.seq}, {part.tokens} tokens")


def main() -> None:
    """agent.py [ADDRESS]"""
    with (
        sidecar(sys.argv[1] if len(sys.argv) > 1 else None) as address,
        Client(address) as client,
    ):
        agent = Agent(client)
        agent.run("What do the files in src do?")
        agent.recall()
        agent.show_what_does_not_fit()
        client.delete_session(agent.session_id)


if __name__ == "__main__":
    main()
