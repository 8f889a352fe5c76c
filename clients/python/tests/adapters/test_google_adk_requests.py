"""Contents that ADK adds to single requests are shown, and are not in the log."""

from __future__ import annotations

from typing import Any

import pytest

import contextd_client.aio

pytest.importorskip("google.adk")
from google.adk.agents import Agent
from google.adk.agents.run_config import RunConfig
from google.genai import types
from test_google_adk import ROOMY, Talk
from test_google_adk_parts import Says, call

from contextd_client.google_adk import ContextdPlugin


def draw() -> str:
    """Draw."""
    return "drawn"


def words(contents: list[types.Content]) -> list[str]:
    """What a request has, shortened."""
    out = []
    for content in contents:
        for part in content.parts or []:
            done = part.function_call or part.function_response
            out.append(done.name if done else (part.text or "").strip().splitlines()[-1])
    return [str(word) for word in out]


def talk_of(client: contextd_client.aio.Client, agent: Agent) -> Talk:
    talk = Talk(Says(turns=[], given=[]), ContextdPlugin(client, budget=ROOMY, diverged="raise"))
    talk.runner.agent = agent
    return talk


@pytest.mark.parametrize("static", ["Never change.", types.Part(text="Never change.")])
async def test_instruction_beside_a_static_one(
    aclient: contextd_client.aio.Client, session_id: str, static: Any
) -> None:
    steps = iter(range(9))

    def instruction(_: Any) -> str:
        return f"Step {next(steps)}."

    model = Says(turns=[[call("draw")]], given=[])
    agent = Agent(
        name="reader", model=model, static_instruction=static, instruction=instruction, tools=[draw]
    )
    talk = talk_of(aclient, agent)
    await talk.say(session_id, "Go.")
    await talk.say(session_id, "And now?")
    for number, shown in enumerate(model.given):
        texts = [p.text or "" for c in shown for p in c.parts or []]
        own = [n for n, t in enumerate(texts) if "Step " in t]
        assert len(own) == 1, "one instruction, of this request"
        assert f"Step {number}." in texts[own[0]]
        # Before what the user said, or after the results.
        assert own[0] == (len(texts) - 1 if number == 1 else len(texts) - 2)
    assert (await aclient.get_session(f"{session_id}/reader")).head_seq == 5


async def test_input_context(aclient: contextd_client.aio.Client, session_id: str) -> None:
    if "model_input_context" not in RunConfig.model_fields:
        pytest.skip("this version of ADK has none")
    model = Says(turns=[[call("draw")]], given=[])
    talk = talk_of(aclient, Agent(name="reader", model=model, tools=[draw]))
    await talk.service.create_session(app_name="app", user_id="u", session_id=session_id)
    for text in ("Go.", "And now?"):
        near = types.Content(role="user", parts=[types.Part(text=f"Near {text}")])
        async for _ in talk.runner.run_async(
            user_id="u",
            session_id=session_id,
            new_message=types.Content(role="user", parts=[types.Part(text=text)]),
            run_config=RunConfig(model_input_context=[near]),
        ):
            pass
    assert [words(given) for given in model.given] == [
        ["Near Go.", "Go."],
        ["Go.", "draw", "draw", "Near Go."],
        ["Go.", "draw", "draw", "end", "Near And now?", "And now?"],
    ]
    assert (await aclient.get_session(f"{session_id}/reader")).head_seq == 5


async def test_artifact_that_a_tool_loads(
    aclient: contextd_client.aio.Client, session_id: str
) -> None:
    from google.adk.artifacts import InMemoryArtifactService
    from google.adk.tools.load_artifacts_tool import load_artifacts_tool

    model = Says(turns=[[call("load_artifacts", artifact_names=["a.txt"])]], given=[])
    talk = talk_of(aclient, Agent(name="reader", model=model, tools=[load_artifacts_tool]))
    artifacts = InMemoryArtifactService()
    talk.runner.artifact_service = artifacts
    await artifacts.save_artifact(
        app_name="app",
        user_id="u",
        session_id=session_id,
        filename="a.txt",
        artifact=types.Part(text="the artifact"),
    )
    await talk.say(session_id, "Go.")
    await talk.say(session_id, "And now?")
    given = [words(g) for g in model.given]
    assert given[1][:3] == ["Go.", "load_artifacts", "load_artifacts"]
    assert given[1][-1] == "the artifact"
    assert given[2] == ["Go.", "load_artifacts", "load_artifacts", "end", "And now?"]
    assert (await aclient.get_session(f"{session_id}/reader")).head_seq == 5
