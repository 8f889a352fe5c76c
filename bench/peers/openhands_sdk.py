"""Runs OpenHands over sessions, as peers.py does the others: openhands_sdk.py SECONDS IN OUT."""

from __future__ import annotations

import json
import logging
import os
import sys
from typing import Any

from peers import TARGET, Message, main

# It would fetch prices, and log to the terminal.
os.environ |= {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "OPENHANDS_SUPPRESS_BANNER": "1"}
logging.disable(logging.CRITICAL)

from openhands.sdk import LLM, event, llm  # noqa: E402
from openhands.sdk.agent.utils import prepare_llm_messages  # noqa: E402
from openhands.sdk.context.condenser import LLMSummarizingCondenser  # noqa: E402
from openhands.sdk.context.view import View  # noqa: E402
from openhands.sdk.testing import TestLLM  # noqa: E402
from openhands.sdk.tool import Observation  # noqa: E402


class Result(Observation):
    """What a tool returns."""


class OpenHands:
    """Its condenser as its agent calls it: on the view, and again after each condensation.

    A model would write the summaries; here it is the SDK's model for tests, with a short text.
    """

    name = "OpenHands LLMSummarizingCondenser"

    def __init__(self, session: Message) -> None:
        summary = llm.Message(role="assistant", content=self._said("The work went on."))
        self.condenser = LLMSummarizingCondenser(
            llm=TestLLM.from_messages([summary] * 10_000), max_tokens=TARGET
        )
        self.counter = LLM(model="gpt-4", api_key="none", max_input_tokens=TARGET)
        self.source = session["messages"]
        self.view = View()
        self.of: dict[str, Any] = {}  # an event's message and call
        self.actions: dict[str, str] = {}
        self.done = 0

    def _said(self, text: str) -> list[Any]:
        return [llm.TextContent(text=text)] if text else []

    def _made(self, i: int) -> list[Any]:
        m = self.source[i]
        said = self._said(m.get("text", ""))
        if m["role"] == "system":
            return [event.SystemPromptEvent(system_prompt=said[0], tools=[])]
        if m["role"] == "tool":
            return [
                event.ObservationEvent(
                    observation=Result(content=said), tool_name=m["tool"],
                    tool_call_id=m["call_id"], action_id=self.actions.get(m["call_id"], ""),
                )
            ]  # fmt: skip
        calls = m.get("calls") or ()
        if not calls:
            message = llm.Message(role=m["role"], content=said)
            source = "user" if m["role"] == "user" else "agent"
            return [event.MessageEvent(source=source, llm_message=message)]
        return [
            event.ActionEvent(
                thought=said if n == 0 else [], tool_name=c["tool"], tool_call_id=c["id"],
                tool_call=llm.MessageToolCall(
                    id=c["id"], name=c["tool"], arguments=json.dumps(c["arguments"]),
                    origin="completion",
                ),
                llm_response_id=f"response-{i}",
            )
            for n, c in enumerate(calls)
        ]  # fmt: skip

    def turn(self, n: int) -> Any:
        for i in range(self.done, n):
            for made in self._made(i):
                if isinstance(made, event.ActionEvent):
                    self.actions[made.tool_call_id] = made.id
                self.of[made.id] = (i, getattr(made, "tool_call_id", None))
                self.view.append_event(made)
        self.done = n
        while True:
            out = prepare_llm_messages(self.view, self.condenser, llm=self.counter)
            if isinstance(out, list):
                return list(self.view.events)
            self.view.append_event(out)

    def items(self, out: Any) -> list[Message]:
        made: list[Message] = []
        for e in out:
            if e.id not in self.of:
                made.append({"role": "user", "text": e.summary})  # names no calls
                continue
            i, call = self.of[e.id]
            if not isinstance(e, event.ActionEvent):
                made.append({"i": i})
                continue
            if not made or made[-1].get("i") != i:
                made.append({"i": i, "text": "", "calls": []})
            made[-1]["text"] += "".join(t.text for t in e.thought)
            made[-1]["calls"].append(call)
        return made


if __name__ == "__main__":
    main([OpenHands], float(sys.argv[1]), sys.argv[2], sys.argv[3])
