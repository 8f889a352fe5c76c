"""A conversation that grows turn by turn, beyond its budget."""

from __future__ import annotations

from contextd_client import Budget, Event, Policy, events
from contextd_client.v1.policy_pb2 import ResultClipping, Summarization

BUDGET = Budget(max_tokens=3000, safety_margin=0, tokenizer="o200k_base")
# Deep cuts, so that what is held is long, and results that are clipped.
POLICY = Policy(
    summarization=Summarization(enabled=False, collapse_to=0.2, keep_last_turns=2),
    clipping=ResultClipping(max_tokens=150),
)
MODEL = "claude-sonnet-4-5"


def opening() -> list[Event]:
    return [
        events.system("You repair builds.", event_id="system"),
        events.user("Grüße! Why does “make” fail? 日本語 👩🏽‍💻", event_id="user"),
    ]


def turn(number: int) -> list[Event]:
    """What the model and its tools add in a turn; two calls in every third."""
    calls = [f"call_{number}_{i}" for i in range(2 if number % 3 == 0 else 1)]
    arguments = b'{"n":1.0,"path":"pkg/file%d.go"}' % number
    said = [events.tool_call(c, "read_file", arguments) for c in calls]
    body = "\n".join(f"pkg/file{number}.go:{i}: func f{number}_{i}()" for i in range(30))
    out = [events.assistant(f"Step {number}.", *said, model=MODEL, event_id=f"a{number}")]
    for call in calls:
        failed = number % 5 == 0
        out.append(events.tool_result(call, body, is_error=failed, event_id=f"r-{call}"))
    return out
