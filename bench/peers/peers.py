"""Runs the Python libraries over sessions: peers.py SECONDS IN OUT. See doc.go for both files."""

from __future__ import annotations

import asyncio
import functools
import importlib.util
import json
import logging
import pathlib
import signal
import sys
import time
from copy import deepcopy
from types import SimpleNamespace
from typing import Any

TARGET = 29491  # tokens: what contextd has of a window of 32,768
OUTPUT = 3277

Message = dict[str, Any]



class LangChain:
    """What both of LangChain's have in common: its messages."""

    def __init__(self, session: Message) -> None:
        from langchain_core import messages as lc

        def made(i: int, m: Message) -> Any:
            match m["role"]:
                case "system":
                    return lc.SystemMessage(m.get("text", ""), id=str(i))
                case "user":
                    return lc.HumanMessage(m.get("text", ""), id=str(i))
                case "tool":
                    return lc.ToolMessage(
                        m.get("text", ""), tool_call_id=m["call_id"], name=m["tool"], id=str(i)
                    )
            calls = [
                {"id": c["id"], "name": c["tool"], "args": c["arguments"], "type": "tool_call"}
                for c in m.get("calls", ())
            ]
            return lc.AIMessage(m.get("text", ""), tool_calls=calls, id=str(i))

        self.all = [made(i, m) for i, m in enumerate(session["messages"])]


class TrimMessages(LangChain):
    """Its documentation starts on a human message, which an agent may have had only once."""

    name = "LangChain trim_messages"

    def turn(self, n: int) -> Any:
        from langchain_core.messages import trim_messages
        from langchain_core.messages.utils import count_tokens_approximately

        return trim_messages(
            self.all[:n], max_tokens=TARGET, token_counter=count_tokens_approximately,
            strategy="last", include_system=True, start_on=("human", "ai"),
        )  # fmt: skip

    def items(self, out: Any) -> list[Message]:
        return [{"i": int(m.id)} for m in out]


class ClearToolUses(LangChain):
    """As ContextEditingMiddleware does it before each call: on a copy of all messages."""

    name = "LangChain ClearToolUsesEdit"

    def __init__(self, session: Message) -> None:
        from langchain.agents.middleware import ClearToolUsesEdit

        super().__init__(session)
        self.edit = ClearToolUsesEdit(trigger=TARGET, keep=3)

    def turn(self, n: int) -> Any:
        from langchain_core.messages.utils import count_tokens_approximately

        edited = deepcopy(self.all[:n])
        self.edit.apply(edited, count_tokens=count_tokens_approximately)
        return edited

    def items(self, out: Any) -> list[Message]:
        return [
            {"i": int(m.id)} if m.content == self.all[int(m.id)].content
            else {"i": int(m.id), "text": m.content}
            for m in out
        ]  # fmt: skip


class Strands:
    """The system prompt is outside its messages; results of one message are one message."""

    name = "Strands SlidingWindow(40)"

    def __init__(self, session: Message) -> None:
        from strands.agent.conversation_manager import SlidingWindowConversationManager

        self.manager = SlidingWindowConversationManager(window_size=40)
        self.source = session["messages"]
        self.agent = SimpleNamespace(messages=[])
        self.system: list[int] = []
        self.done = 0

    def _take(self, n: int) -> None:
        for i in range(self.done, n):
            m = self.source[i]
            if m["role"] == "system":
                self.system.append(i)
                continue
            if m["role"] == "tool":
                part = {
                    "toolResult": {
                        "toolUseId": m["call_id"], "content": [{"text": m.get("text", "")}],
                        "status": "error" if m.get("failed") else "success",
                    }
                }  # fmt: skip
                last = self.agent.messages[-1] if self.agent.messages else None
                if last is not None and "toolResult" in last["content"][0]:
                    last["content"].append(part)
                    last["of"].append(i)
                else:
                    self.agent.messages.append({"role": "user", "content": [part], "of": [i]})
                continue
            parts: list[Any] = [{"text": m["text"]}] if m.get("text") else []
            parts += [
                {"toolUse": {"toolUseId": c["id"], "name": c["tool"], "input": c["arguments"]}}
                for c in m.get("calls", ())
            ]
            self.agent.messages.append({"role": m["role"], "content": parts, "of": [i]})
        self.done = n

    def turn(self, n: int) -> Any:
        self._take(n)
        self.manager.apply_management(self.agent)
        return self.agent.messages

    def items(self, out: Any) -> list[Message]:
        return [{"i": i} for i in self.system] + [{"i": i} for m in out for i in m["of"]]


class OpenAIAgents:
    """A session with a limit, and what its Runner does with it: calls without results go."""

    name = "OpenAI Agents session, limit 40"

    def __init__(self, session: Message) -> None:
        from agents import SessionSettings, SQLiteSession
        from agents.run_internal.items import drop_orphan_function_calls

        self.drop = drop_orphan_function_calls
        self.session = SQLiteSession("s", session_settings=SessionSettings(limit=40))
        self.source = session["messages"]
        self.loop = asyncio.new_event_loop()
        self.system: list[int] = []
        self.done = 0

    def turn(self, n: int) -> Any:
        return self.loop.run_until_complete(self._turn(n))

    async def _turn(self, n: int) -> Any:
        items: list[Any] = []
        for i in range(self.done, n):
            m = self.source[i]
            if m["role"] == "system":  # an agent's instructions
                self.system.append(i)
            elif m["role"] == "tool":
                items.append(
                    {
                        "type": "function_call_output", "call_id": m["call_id"],
                        "output": m.get("text", ""), "of": i,
                    }
                )  # fmt: skip
            else:
                if m.get("text"):
                    items.append({"role": m["role"], "content": m["text"], "of": i})
                for c in m.get("calls", ()):
                    items.append(
                        {
                            "type": "function_call", "call_id": c["id"], "name": c["tool"],
                            "arguments": json.dumps(c["arguments"]), "of": i,
                        }
                    )  # fmt: skip
        self.done = n
        await self.session.add_items(items)
        return self.drop(await self.session.get_items())

    def items(self, out: Any) -> list[Message]:
        made: list[Message] = [{"i": i} for i in self.system]
        for item in out:
            i = item["of"]
            if item.get("type") == "function_call_output":
                made.append({"i": i})
                continue
            if not made or made[-1]["i"] != i:
                made.append({"i": i, "text": "", "calls": []})
            if item.get("type") == "function_call":
                made[-1]["calls"].append(item["call_id"])
            else:
                made[-1]["text"] = item["content"]
        return made


class AgentFramework:
    """Its compaction by a model's window: results are collapsed first, then groups go."""

    name = "Agent Framework ContextWindow"

    def __init__(self, session: Message) -> None:
        import agent_framework as af

        self.af = af
        self.strategy = self._strategy()
        self.source = session["messages"]
        self.loop = asyncio.new_event_loop()
        self.messages: list[Any] = []
        self.done = 0

    def _strategy(self) -> Any:
        return self.af.ContextWindowCompactionStrategy(
            max_context_window_tokens=TARGET + OUTPUT, max_output_tokens=OUTPUT
        )

    def _made(self, i: int) -> Any:
        m, content = self.source[i], self.af.Content
        if m["role"] == "tool":
            parts = [content.from_function_result(m["call_id"], result=m.get("text", ""))]
        else:
            parts = [content.from_text(m["text"])] if m.get("text") else []
            parts += [
                content.from_function_call(c["id"], c["tool"], arguments=json.dumps(c["arguments"]))
                for c in m.get("calls", ())
            ]
        return self.af.Message(m["role"], parts, message_id=str(i))

    def turn(self, n: int) -> Any:
        # Decisions are kept with the messages, as its history provider keeps them.
        self.messages += [self._made(i) for i in range(self.done, n)]
        self.done = n
        return self.loop.run_until_complete(
            self.af.apply_compaction(self.messages, strategy=self.strategy)
        )

    def items(self, out: Any) -> list[Message]:
        return [self._item(m) for m in out]

    def _item(self, m: Any) -> Message:
        if (m.message_id or "").isdecimal():
            return {"i": int(m.message_id)}
        group = m.additional_properties.get("_group") or {}
        return {"role": str(m.role), "text": m.text, "of": group.get("_summary_of_message_ids", [])}


class AgentFrameworkSliding(AgentFramework):
    name = "Agent Framework SlidingWindow(20)"

    def _strategy(self) -> Any:
        return self.af.SlidingWindowStrategy(keep_last_groups=20)


class SWEAgent:
    """Its agent has one message of a human, the first; all later ones are observations to it."""

    name = "SWE-agent LastNObservations(5)"

    def __init__(self, session: Message) -> None:
        self.processor = history_processors().LastNObservations(5)
        self.all = [
            {
                "role": "user" if m["role"] == "tool" else m["role"],
                "content": m.get("text", ""), "i": i,
            }
            for i, m in enumerate(session["messages"])
        ]  # fmt: skip

    def turn(self, n: int) -> Any:
        return self.processor(self.all[:n])

    def items(self, out: Any) -> list[Message]:
        return [
            {"i": m["i"]} if m["content"] == self.all[m["i"]]["content"]
            else {"i": m["i"], "text": m["content"]}
            for m in out
        ]  # fmt: skip


@functools.cache
def history_processors() -> Any:
    """Their module alone, which needs nothing: the package around it needs Docker and more."""
    package = importlib.util.find_spec("sweagent").submodule_search_locations[0]
    place = pathlib.Path(package, "agent", "history_processors.py")
    spec = importlib.util.spec_from_file_location("history_processors", place)
    sys.modules[spec.name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PEERS = [
    TrimMessages, ClearToolUses, Strands, OpenAIAgents, AgentFramework, AgentFrameworkSliding,
    SWEAgent,
]  # fmt: skip


def run(peer: Any, session: Message, out: Any) -> None:
    """Runs a library before each call. What keeps decisions takes them from the first call on."""
    if session.get("earlier") and hasattr(peer, "done"):
        for step in session["earlier"]:
            peer.turn(step)
    for step in session["steps"]:
        begun = time.perf_counter()
        made = peer.turn(step)
        took = time.perf_counter() - begun
        row = {"session": session["name"], "peer": peer.name, "step": step,
               "seconds": took, "items": peer.items(made)}  # fmt: skip
        out.write(json.dumps(row) + "\n")


def late(*_: Any) -> None:
    raise TimeoutError


def main(kinds: list[Any], seconds: float, source: str, target: str) -> None:
    logging.disable(logging.CRITICAL)
    signal.signal(signal.SIGALRM, late)
    with open(source) as lines, open(target, "w") as out:
        for line in lines:
            session = json.loads(line)
            for kind in kinds:
                peer = kind(session)
                signal.setitimer(signal.ITIMER_REAL, seconds)
                try:
                    run(peer, session, out)
                except TimeoutError:
                    print(f"{peer.name} left {session['name']} after {seconds} s", file=sys.stderr)
                finally:
                    signal.setitimer(signal.ITIMER_REAL, 0)


if __name__ == "__main__":
    main(PEERS, float(sys.argv[1]), sys.argv[2], sys.argv[3])
