"""Which session the history of one of several agents of ADK goes to."""

from __future__ import annotations

from typing import Any

import pytest

import contextd_client.aio

pytest.importorskip("google.adk")
from google.adk import version
from google.adk.agents import Agent, ParallelAgent
from google.adk.runners import Runner
from google.genai import types
from test_google_adk import ROOMY, Scripted, Talk, read
from test_google_adk_parts import Says, call

from contextd_client.google_adk import ContextdPlugin

NEW = pytest.mark.skipif(version.__version__.startswith("1."), reason="ADK 1 has no such agents")


async def heads(
    client: contextd_client.aio.Client, session_id: str, agent: Any, *said: str
) -> dict[str, int]:
    """The lengths of the agents' logs after the user said this."""
    talk = Talk(Scripted(given=[]), ContextdPlugin(client, budget=ROOMY, diverged="raise"))
    talk.runner = Runner(
        app_name="app",
        agent=agent,
        plugins=talk.runner.plugin_manager.plugins,
        session_service=talk.service,
    )
    for text in said:
        await talk.say(session_id, text)
    return {
        s.session_id.removeprefix(f"{session_id}/"): s.head_seq
        async for s in client.list_sessions()
        if s.session_id.startswith(f"{session_id}/")
    }


async def test_branches(aclient: contextd_client.aio.Client, session_id: str) -> None:
    agents: list[Any] = [
        Agent(name=name, model=Scripted(given=[], rounds=2), tools=[read]) for name in "ab"
    ]
    both = ParallelAgent(name="both", sub_agents=agents)
    assert await heads(aclient, session_id, both, "Go.") == {"a/both.a": 3, "b/both.b": 3}


@NEW
async def test_parallel_workers(aclient: contextd_client.aio.Client, session_id: str) -> None:
    """One agent at work several times at once; each call would fork the history of another."""
    from google.adk.workflow import Workflow

    def draw() -> str:
        """Draw."""
        return "ok"

    async def split(node_input: Any) -> list[str]:
        return ["one", "two", "three"]

    turns = [[call("draw")] for _ in range(3)]
    worker: Any = Agent(
        name="worker",
        model=Says(turns=turns, given=[]),
        tools=[draw],
        parallel_worker=True,
        include_contents="default",
    )
    work = Workflow(name="work", edges=[("START", split, worker)])
    got = await heads(aclient, session_id, work, "Go.")
    assert sorted(got) == [f"worker/worker@{n}" for n in (1, 2, 3)]


@NEW
async def test_tasks(aclient: contextd_client.aio.Client, session_id: str) -> None:
    def draw() -> str:
        """Draw."""
        return "ok"

    steps = [s for _ in range(3) for s in ([call("draw")], [call("finish_task", result="drawn")])]
    helper: Any = Agent(name="helper", mode="task", model=Says(turns=steps, given=[]), tools=[draw])
    asks = [call("helper", request="Draw.") for _ in range(3)]
    model = Says(turns=[asks[:2], [types.Part(text="Drawn.")], asks[2:]], given=[])
    agent = Agent(name="reader", model=model, sub_agents=[helper])
    got = await heads(aclient, session_id, agent, "Have it drawn.", "And again.")
    assert [head for name, head in got.items() if name.startswith("helper/")] == [3] * 3


async def test_names_that_the_daemon_refuses(
    aclient: contextd_client.aio.Client, session_id: str
) -> None:
    agent = Agent(name="reader", model=Scripted(given=[], rounds=1))
    for user in ("user one", "user|one"):
        await heads(aclient, f"{session_id} {user}", agent, "Go.")
    names = [s.session_id async for s in aclient.list_sessions()]
    assert len([n for n in names if n.startswith(f"{session_id}_user_one/reader:")]) == 2


async def test_nothing_said(aclient: contextd_client.aio.Client, session_id: str) -> None:
    """ADK's models add a text of their own where there is none."""
    model = Says(turns=[], given=[])
    agent = Agent(name="reader", model=model)
    assert await heads(aclient, session_id, agent, "") == {}
    assert await heads(aclient, session_id, agent, "Go.") == {"reader": 1}
