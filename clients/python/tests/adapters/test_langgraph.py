"""LangChain's own agent over a log of contextd."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import page
import pytest

import contextd_client
from contextd_client import Budget, errors, events
from contextd_client.v1.tokens_pb2 import ExplainCallRequest

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
from langgraph.graph import END, START, MessagesState, StateGraph

from contextd_client._read import langchain as reading
from contextd_client.langgraph import ContextdMessages, ContextdMiddleware, pre_model_hook

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
        said = AIMessage(
            content=f"Step {number}.",
            tool_calls=calls if number < ROUNDS else [],
            usage_metadata={
                "input_tokens": 100, "output_tokens": 5, "total_tokens": 105,
                "input_token_details": {"cache_read": 60},
            },
            response_metadata={"model_name": "scripted"},
        )  # fmt: skip
        return ChatResult(generations=[ChatGeneration(message=said)])


@tool
def read(path: str) -> str:
    """Read a file."""
    return "\n".join(f"{path}:{i}: func f{i}()" for i in range(40))


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_agent(client: contextd_client.Client, session_id: str, asynchronous: bool) -> None:
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
    # All but the newest answer: it is appended at the next model call.
    ids = [e.event_id for e in client.read_events(session_id)]
    assert ids == [m.id for m in state["messages"][:-1]]
    call = client.stub.ExplainCall(ExplainCallRequest(session_id=session_id)).call
    assert (call.number, call.model, call.input_tokens, call.cache_read_tokens) == (
        ROUNDS, "scripted", 100, 60
    )  # fmt: skip


def test_streams(client: contextd_client.Client, session_id: str) -> None:
    model = Scripted(given=[])
    middleware: Any = ContextdMiddleware(ContextdMessages(client, BUDGET, policy=POLICY))
    agent: Any = create_agent(model, [read], middleware=[middleware], checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": session_id}, "recursion_limit": 100}
    parts = list(agent.stream({"messages": [HumanMessage("Go.")]}, config, stream_mode="messages"))
    assert parts
    for given in model.given:
        paired(given)
    assert len(list(client.read_events(session_id))) == 2 * ROUNDS - 1


@pytest.mark.parametrize("restarted", [False, True])
def test_time_travel(client: contextd_client.Client, session_id: str, restarted: bool) -> None:
    """A graph that continues from an earlier checkpoint, or whose messages were edited."""
    saver = InMemorySaver()

    def agent(session: str | None = None) -> Any:
        middleware = ContextdMiddleware(ContextdMessages(client, BUDGET), session_id=session)
        model = Scripted(given=[])
        model.given.extend([[]] * (ROUNDS - 1))  # it answers at once
        return create_agent(model, [read], middleware=[middleware], checkpointer=saver)

    graph = agent()
    config: Any = {"configurable": {"thread_id": session_id}}
    for question in ("One?", "Two?"):
        graph.invoke({"messages": [HumanMessage(question)]}, config)
    after_one = next(c for c in graph.get_state_history(config) if len(c.values["messages"]) == 2)
    if restarted:
        graph = agent()
    with pytest.raises(errors.HistoryDivergedError) as diverged:
        graph.invoke({"messages": [HumanMessage("Another two?")]}, after_one.config)
    # The answer to the first question was appended with the second; "Two?" is the third event.
    assert (diverged.value.session_id, diverged.value.seq) == (session_id, 2)
    client.fork_session(session_id, f"{session_id}/back", at_seq=diverged.value.seq)
    agent(f"{session_id}/back").invoke(
        {"messages": [HumanMessage("Another two?")]}, after_one.config
    )
    said = [e.message.blocks[0].text.text for e in client.read_events(f"{session_id}/back")]
    assert said[0] == "One?"
    assert said[2] == "Another two?"

    messages = ContextdMessages(client, BUDGET)
    edited = f"{session_id}/edited"
    messages.for_model(edited, [HumanMessage("One.", id="m1"), HumanMessage("Two.", id="m2")])
    if restarted:
        messages = ContextdMessages(client, BUDGET)
    with pytest.raises(errors.HistoryDivergedError):
        messages.for_model(edited, [HumanMessage("Uno.", id="m1"), HumanMessage("Two.", id="m2")])


def test_hook(client: contextd_client.Client, session_id: str) -> None:
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
def test_messages_of_a_context(
    client: contextd_client.Client, session_id: str, format: Any
) -> None:
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
    """The provider's integration turns the messages into a valid request."""
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
    """Check that each call has a result directly after its message, and each result a call."""
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
    (message,) = (at.event().message for at in reading.placed([said]))
    assert [b.WhichOneof("kind") for b in message.blocks] == ["thinking", "text", "tool_call"]
    assert message.blocks[0].thinking.signature == "c2ln"
    assert message.model == "claude-sonnet-4-5"
    seen = HumanMessage(id="m2", content=[
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        {"type": "image", "base64": "aGk=", "mime_type": "image/png"},
    ])  # fmt: skip
    (shown,) = (at.event().message for at in reading.placed([seen]))
    assert {b.media.data for b in shown.blocks} == {b"hi"}
    failed = ToolMessage(id="m3", content="no", tool_call_id="c1", status="error", name="f")
    (_, answer) = (at.event().message for at in reading.placed([said, failed]))
    assert answer.blocks[0].tool_result.is_error


def test_matches_results_to_calls() -> None:
    """Calls without or with repeated ids; results without ids, repeated, or without a call."""
    broken: Any = [
        {"type": "invalid_tool_call", "id": None, "name": "f", "args": "{", "error": "no JSON"},
        {"type": "invalid_tool_call", "id": "c1", "name": None, "args": None, "error": None},
    ]
    said = AIMessage(
        content="", tool_calls=[{"id": "c1", "name": "f", "args": {}}], invalid_tool_calls=broken
    )
    results = [
        ToolMessage(content="one", tool_call_id="c1"),
        ToolMessage(content="three", tool_call_id="c1"),
        ToolMessage(content="two", tool_call_id=""),
        ToolMessage(content="too many", tool_call_id="c1"),
        ToolMessage(content="of nothing", tool_call_id="c9"),
    ]
    all_of_them = [HumanMessage("go"), said, *results, HumanMessage("on")]
    at = reading.placed(all_of_them)
    assert len({p.event_id for p in at}) == len(at)
    assert [p.event_id for p in reading.placed(all_of_them[:4])] == [p.event_id for p in at[:4]]
    calls = [b.tool_call for b in at[1].event().message.blocks]
    assert [c.arguments_json for c in calls] == [b"{}", b"{", b""]
    assert [c.name for c in calls] == ["f", "f", "unknown_tool"]
    assert len({c.call_id for c in calls}) == 3
    assert [p.answers for p in at[2:7]] == [
        calls[0].call_id, calls[2].call_id, calls[1].call_id, "", ""
    ]  # fmt: skip
    assert at[6].event().custom.type == "langchain.orphan_result"


BROKEN = ['{"path": "a', "", "plain words", "[1, 2]", '"x"', '{"a": 1}}', '{"a": 1} x', "\ufeff{}"]


@pytest.mark.parametrize("format", ["openai_chat", "anthropic"])
def test_goes_on_behind_invalid_calls(
    client: contextd_client.Client, session_id: str, format: Any
) -> None:
    """A graph that answers calls that it cannot run, with and without ids, and continues."""
    broken: list[Any] = [
        {"type": "invalid_tool_call", "id": f"c{i}" if i % 2 else None, "name": "read",
         "args": args, "error": "no JSON"}
        for i, args in enumerate(BROKEN)
    ]  # fmt: skip
    replies = [
        AIMessage(
            content="",
            tool_calls=[{"id": "good", "name": "read", "args": {"path": "a"}}],
            invalid_tool_calls=broken,
        ),
        AIMessage(content="", tool_calls=[{"id": "good", "name": "read", "args": {"path": "b"}}]),
        AIMessage(content="Done."),
        AIMessage(content="Still there."),
    ]
    messages = ContextdMessages(client, Budget(max_tokens=20_000), format=format)
    given: list[list[BaseMessage]] = []

    def model(state: Any) -> Any:
        given.append(messages.for_model(session_id, state["messages"]))
        return {"messages": [replies[len(given) - 1]]}

    def run_tools(state: Any) -> Any:
        said = state["messages"][-1]
        results = [read.invoke({**c, "type": "tool_call"}) for c in said.tool_calls]
        for call in said.invalid_tool_calls:
            results.append(ToolMessage(content="no JSON", tool_call_id=call["id"] or ""))
        return {"messages": results}

    def onward(state: Any) -> str:
        said = state["messages"][-1]
        return "tools" if said.tool_calls or said.invalid_tool_calls else END

    graph: Any = StateGraph(MessagesState)
    graph.add_node("model", model)
    graph.add_node("tools", run_tools)
    graph.add_edge(START, "model")
    graph.add_conditional_edges("model", onward)
    graph.add_edge("tools", "model")
    app = graph.compile(checkpointer=InMemorySaver())
    config: Any = {"configurable": {"thread_id": session_id}}
    assert app.invoke({"messages": [SystemMessage("Be brief."), HumanMessage("Read.")]}, config)[
        "messages"
    ][-1].content == ("Done.")
    state = app.invoke({"messages": [HumanMessage("Are you there?")]}, config)
    assert state["messages"][-1].content == "Still there."
    events_of = list(client.read_events(session_id))
    assert len(events_of) == len(state["messages"]) - 1
    calls = [b.tool_call for e in events_of for b in e.message.blocks if b.HasField("tool_call")]
    assert [c.arguments_json.decode() for c in calls[1 : len(BROKEN) + 1]] == BROKEN
    for shown in given[1:]:
        request(shown, format)
        turn = next(m for m in shown if isinstance(m, AIMessage))
        if format == "openai_chat":
            assert [c["args"] for c in turn.invalid_tool_calls] == [a for a in BROKEN if a]
            integration = pytest.importorskip("langchain_openai")
            payload = integration.ChatOpenAI(model="gpt-5", api_key="none")._get_request_payload(
                shown
            )
            sent = [c["function"]["arguments"] for m in payload["messages"]
                    for c in m.get("tool_calls", ())]  # fmt: skip
            assert set(BROKEN) - {""} <= set(sent)
        else:
            kept = [c["args"].get("raw_arguments") for c in turn.tool_calls]
            assert [k for k in kept if k is not None] == [a for a in BROKEN if a]


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_agent_with_invalid_calls(
    client: contextd_client.Client, session_id: str, asynchronous: bool
) -> None:
    """LangChain's own agent runs what is valid and goes on; so does its next run."""

    class Broken(Scripted):
        def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
            made = super()._generate(messages)
            said = made.generations[0].message
            assert isinstance(said, AIMessage)
            if len(self.given) == 2:
                said.invalid_tool_calls = [
                    {
                        "type": "invalid_tool_call",
                        "id": None,
                        "name": None,
                        "args": '{"a',
                        "error": "",
                    }
                ]
            return made

    model = Broken(given=[])
    messages = ContextdMessages(client, BUDGET, policy=POLICY)
    agent: Any = create_agent(
        model, [read], middleware=[ContextdMiddleware(messages)], checkpointer=InMemorySaver(),
    )  # fmt: skip
    config: Any = {"configurable": {"thread_id": session_id}, "recursion_limit": 100}
    for question in ("What does it do?", "And now?"):
        asked = {"messages": [HumanMessage(question)]}
        state = await agent.ainvoke(asked, config) if asynchronous else agent.invoke(asked, config)
        assert state["messages"][-1].content.startswith("Step")
    assert len(list(client.read_events(session_id))) == len(state["messages"]) - 1


def test_page(address: str, session_id: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CONTEXTD_ADDR", address)
    given = {'"anthropic:claude-sonnet-4-5"': "MODEL", "my-session": session_id}
    defined = page.run("langchain", given, MODEL=Scripted(given=[]), tools=[read])
    assert len(defined["ask"]("What does it do?")["messages"]) == 2 * ROUNDS
    with defined["client"] as client:
        assert client.get_session(session_id).head_seq == 2 * ROUNDS - 1
