"""LangChain's own agent over a log of contextd."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

import contextd
from contextd import Budget, events

pytest.importorskip("langchain")
from conversation import BUDGET, POLICY, opening, turn
from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, MessagesState, StateGraph

from contextd._read import langchain as reading
from contextd.langgraph import ContextdMessages, ContextdMiddleware, pre_model_hook

ROUNDS = 12


class Scripted(BaseChatModel):
    """A model that reads one file after another, then answers; it keeps what it was given."""

    given: list[list[BaseMessage]] = []  # noqa: RUF012

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Scripted:
        return self

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.given.append(messages)
        number = len(self.given)
        calls = [{"id": f"call_{number}", "name": "read", "args": {"path": f"file{number}"}}]
        said = AIMessage(content=f"Step {number}.", tool_calls=calls if number < ROUNDS else [])
        return ChatResult(generations=[ChatGeneration(message=said)])


@tool
def read(path: str) -> str:
    """Read a file."""
    return "\n".join(f"{path}:{i}: func f{i}()" for i in range(40))


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_agent(client: contextd.Client, session_id: str, asynchronous: bool) -> None:
    model = Scripted(given=[])
    budget = Budget(max_tokens=3000, safety_margin=0, tokenizer="o200k_base")
    agent: Any = create_agent(
        model, [read], system_prompt="Be brief.",
        middleware=[ContextdMiddleware(ContextdMessages(client, budget, policy=POLICY))],
        checkpointer=InMemorySaver(),
    )  # fmt: skip
    config: Any = {"configurable": {"thread_id": session_id}, "recursion_limit": 100}
    question = {"messages": [HumanMessage("What does it do?")]}
    if asynchronous:
        state = await agent.ainvoke(question, config)
    else:
        state = agent.invoke(question, config)
    assert state["messages"][-1].content == f"Step {ROUNDS}."
    last = model.given[-1]
    whole = sum(len(str(m.content)) for m in state["messages"])
    shown = sum(len(str(m.content)) for m in last)
    assert shown < whole * 2 / 3, f"{shown} of {whole} characters: nothing was reduced"
    assert isinstance(last[0], SystemMessage)
    assert last[0].content == "Be brief."
    paired(last)
    # All but the newest answer, which no model call followed.
    ids = [e.event_id for e in client.read_events(session_id)]
    assert ids == [m.id for m in state["messages"][:-1]]


def test_hook(client: contextd.Client, session_id: str) -> None:
    hook = pre_model_hook(ContextdMessages(client, BUDGET), session_id=session_id)
    model = Scripted(given=[])

    class State(MessagesState):
        llm_input_messages: list[Any]

    graph: Any = StateGraph(State)
    graph.add_node("hook", hook)
    graph.add_node("model", lambda s: {"messages": [model.invoke(s["llm_input_messages"])]})
    graph.add_edge(START, "hook")
    graph.add_edge("hook", "model")
    state = graph.compile().invoke({"messages": [HumanMessage("hi"), HumanMessage("there")]})
    assert [m.content for m in model.given[0]] == ["hi", "there"]
    assert len(state["messages"]) == 3


@pytest.mark.parametrize("format", ["openai_chat", "anthropic"])
def test_messages_of_a_context(client: contextd.Client, session_id: str, format: Any) -> None:
    client.append(session_id, *opening(), *(e for n in range(1, 9) for e in turn(n)))
    client.append(session_id, events.user("Go on."))
    context = client.assemble(session_id, format, budget=BUDGET, policy=POLICY)
    messages = reading.messages(context)
    assert isinstance(messages[0], SystemMessage)
    assert isinstance(messages[-1], HumanMessage)
    paired(messages)
    calls = [c for m in messages if isinstance(m, AIMessage) for c in m.tool_calls]
    assert calls
    assert calls[-1]["args"] == {"n": 1.0, "path": "pkg/file8.go"}
    request(messages, format)


def request(messages: list[BaseMessage], format: str) -> None:
    """What the provider's integration makes of the messages is a request again."""
    if format == "anthropic":
        integration = pytest.importorskip("langchain_anthropic")
        model = integration.ChatAnthropic(model_name="claude-sonnet-4-5", api_key="none")
        roles = [m["role"] for m in model._get_request_payload(messages)["messages"]]
        assert roles == ["user", "assistant"] * (len(roles) // 2) + ["user"]
    else:
        integration = pytest.importorskip("langchain_openai")
        model = integration.ChatOpenAI(model="gpt-5", api_key="none")
        roles = [m["role"] for m in model._get_request_payload(messages)["messages"]]
        assert roles[0] in ("system", "developer")
        assert roles.count("tool") == sum(isinstance(m, ToolMessage) for m in messages)


def paired(messages: list[BaseMessage]) -> None:
    """Each call has its result directly behind its message, and each result its call."""
    waiting: set[str] = set()
    for message in messages:
        if isinstance(message, ToolMessage):
            waiting.remove(message.tool_call_id)
            continue
        assert not waiting
        if isinstance(message, AIMessage):
            waiting = {str(c["id"]) for c in message.tool_calls}
    assert not waiting


def test_reads_what_integrations_write() -> None:
    said = AIMessage(
        id="m1",
        content=[
            {"type": "thinking", "thinking": "hm", "signature": "c2ln"},
            {"type": "text", "text": "I look."},
            {"type": "tool_use", "id": "c1", "name": "f", "input": {"a": 1}},
        ],
        tool_calls=[{"id": "c1", "name": "f", "args": {"a": 1}}],
        response_metadata={"model_name": "claude-sonnet-4-5"},
    )
    message = reading.event(said).message
    assert [b.WhichOneof("kind") for b in message.blocks] == ["thinking", "text", "tool_call"]
    assert message.blocks[0].thinking.signature == "c2ln"
    assert message.model == "claude-sonnet-4-5"
    seen = HumanMessage(id="m2", content=[
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "image", "base64": "aGk=", "mime_type": "image/png"},
    ])  # fmt: skip
    assert {b.media.data for b in reading.event(seen).message.blocks} == {b"hi"}
    failed = ToolMessage(id="m3", content="no", tool_call_id="c1", status="error", name="f")
    (block,) = reading.event(failed).message.blocks
    assert block.tool_result.is_error
    with pytest.raises(ValueError, match="id:"):
        reading.event(HumanMessage("no id"))
