"""LangChain's agents whose states return to what was said before, or run several at once."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from conftest import Daemon

import contextd_client
from contextd_client import Budget, errors

pytest.importorskip("langchain")
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, RemoveMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver

from contextd_client.langgraph import ContextdMessages, ContextdMiddleware

BUDGET = Budget(max_tokens=20_000, tokenizer="o200k_base")


class Says(BaseChatModel):
    """A model that gives these answers, then numbers them."""

    answers: list[AIMessage | Callable[[], None]] = []  # noqa: RUF012
    given: list[list[str]] = []  # noqa: RUF012

    @property
    def _llm_type(self) -> str:
        return "says"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Says:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.given.append([str(m.content) for m in messages])
        said = AIMessage(f"a{len(self.given)}")
        answer = self.answers.pop(0) if self.answers else said
        if not isinstance(answer, AIMessage):
            answer()
            answer = said
        return ChatResult(generations=[ChatGeneration(message=answer)])


class Talk:
    """An agent in one thread; several of one client are processes."""

    def __init__(self, client: contextd_client.Client, thread: str, **options: Any) -> None:
        self.model = Says(given=[], answers=[])
        self.saver = options.pop("saver", None) or InMemorySaver()
        messages = ContextdMessages(client, BUDGET, **{"diverged": "fork", **options})
        self.agent: Any = create_agent(
            self.model, [], middleware=[ContextdMiddleware(messages)], checkpointer=self.saver
        )
        self.config: Any = {"configurable": {"thread_id": thread}}

    def say(self, text: str, config: Any = None) -> list[str]:
        """What the model was given after the user said this."""
        self.agent.invoke({"messages": [HumanMessage(text)]}, config or self.config)
        return self.model.given[-1]


def heads(client: contextd_client.Client, session_id: str) -> dict[str, int]:
    """The lengths of the logs of a session and its forks."""
    return {
        s.session_id.removeprefix(session_id): s.head_seq
        for s in client.list_sessions()
        if s.session_id.startswith(session_id)
    }


def test_time_travel(client: contextd_client.Client, session_id: str) -> None:
    """Both branches go on, in any order and in a new process, each in its own session."""
    talk = Talk(client, session_id)
    talk.say("q1")
    talk.say("q2")
    newest = talk.agent.get_state(talk.config).config
    after_one = next(
        c.config
        for c in talk.agent.get_state_history(talk.config)
        if len(c.values["messages"]) == 2
    )
    assert talk.say("edited", after_one) == ["q1", "a1", "edited"]
    branch = talk.agent.get_state(talk.config).config
    assert talk.say("q3", newest) == ["q1", "a1", "q2", "a2", "q3"]
    other = Talk(client, session_id, saver=talk.saver)
    assert other.say("q4", branch) == ["q1", "a1", "edited", "a3", "q4"]
    assert heads(client, session_id) == {"": 5, "/v2": 5}


def test_removed_messages(client: contextd_client.Client, session_id: str) -> None:
    talk = Talk(client, session_id)
    talk.say("q1")
    talk.say("q2")
    state = talk.agent.get_state(talk.config).values["messages"]
    talk.agent.update_state(talk.config, {"messages": [RemoveMessage(m.id) for m in state[2:]]})
    assert talk.say("q3") == ["q1", "a1", "q3"]
    state = talk.agent.get_state(talk.config).values["messages"]
    talk.agent.update_state(talk.config, {"messages": [RemoveMessage(m.id) for m in state]})
    assert talk.say("q4") == ["q4"]
    assert talk.say("q5") == ["q4", "a4", "q5"]
    assert heads(client, session_id) == {"": 3, "/v2": 3, "/v3": 3}


@pytest.mark.parametrize("diverged", ["fork", "raise"])
def test_two_runs_at_once(client: contextd_client.Client, session_id: str, diverged: Any) -> None:
    """The log of each has its own messages only, and the thread goes on."""
    both = threading.Barrier(2, timeout=30)
    talk = Talk(client, session_id, diverged=diverged)
    talk.say("q1")
    begin = talk.agent.get_state(talk.config).config  # of both, whoever is faster
    failed: list[Exception] = []

    def run(text: str) -> None:
        try:
            talk.say(text, begin)
        except errors.HistoryDivergedError as error:
            failed.append(error)
            both.wait()

    talk.model.answers = [lambda: both.wait() and None] * 2
    runs = [threading.Thread(target=run, args=(f"q{n}",)) for n in (2, 3)]
    for thread in runs:
        thread.start()
    for thread in runs:
        thread.join()
    asked = talk.model.given[1:]
    assert len(asked) + len(failed) == 2
    assert len(failed) == (diverged == "raise")
    assert all(given[:2] == ["q1", "a1"] and len(given) == 3 for given in asked)
    assert heads(client, session_id) == ({"": 3, "/v2": 3} if diverged == "fork" else {"": 3})
    if diverged == "fork":
        said = [str(m.content) for m in talk.agent.get_state(talk.config).values["messages"]]
        assert talk.say("q4") == [*said, "q4"]


def test_fork_of_a_log_that_was_lost(daemon: Daemon, session_id: str) -> None:
    with contextd_client.Client(daemon.address) as client:
        talk = Talk(client, session_id)
        talk.say("q1")
        talk.say("q2")
        after_one = list(talk.agent.get_state_history(talk.config))[-3].config
        daemon.restart()
        assert talk.say("edited", after_one) == ["q1", "a1", "edited"]


def test_message_that_another_process_appended_otherwise(
    client: contextd_client.Client, session_id: str
) -> None:
    talk = Talk(client, session_id, diverged="raise")
    talk.say("q1")
    other = Talk(client, session_id, saver=talk.saver)
    other.say("q2")
    state = talk.agent.get_state(talk.config).values["messages"]
    edited = HumanMessage("q2 edited", id=state[2].id)
    talk.agent.update_state(talk.config, {"messages": [edited]})
    with pytest.raises(errors.HistoryDivergedError) as diverged:
        talk.say("q3")
    assert (diverged.value.index, diverged.value.seq) == (2, 2)


def test_agent_in_a_tool(client: contextd_client.Client, session_id: str) -> None:
    """It has the thread of the agent that calls it, and histories of its own."""
    helper = Talk(client, session_id)
    talk = Talk(client, session_id)

    @tool
    def ask(text: str) -> str:
        """Ask the helper."""
        return str(helper.agent.invoke({"messages": [HumanMessage(text)]})["messages"][-1].content)

    messages = ContextdMessages(client, BUDGET, diverged="fork")
    agent: Any = create_agent(talk.model, [ask], middleware=[ContextdMiddleware(messages)])
    talk.model.answers = [
        AIMessage("", tool_calls=[{"id": f"c{n}", "name": "ask", "args": {"text": f"t{n}"}}])
        for n in (1, 2)
    ]
    agent.invoke({"messages": [HumanMessage("Go.")]}, talk.config)
    assert helper.model.given == [["t1"], ["t2"]]
    assert talk.model.given[-1] == ["Go.", "", "a1", "", "a2"]
    assert heads(client, session_id) == {"": 5, "/v2": 1, "/v3": 1}


def test_thread_with_a_name_that_the_daemon_refuses(
    client: contextd_client.Client, session_id: str
) -> None:
    for name in ("user one", "user|one"):
        talk = Talk(client, f"{session_id} {name}")
        talk.say("q1")
        assert talk.say("q2") == ["q1", "a1", "q2"]
    assert len([n for n in heads(client, session_id) if n.startswith("_user_one:")]) == 2
