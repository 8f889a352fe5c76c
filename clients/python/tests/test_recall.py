"""The tools by which a model reads its log, held to the vectors of all clients."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import REPOSITORY
from google.protobuf.json_format import ParseDict
from pydantic import TypeAdapter

import contextd_client
import contextd_client.aio
from contextd_client import Budget, Event, FormatName, Policy, events

VECTORS = REPOSITORY / "client" / "testdata" / "recall.json"

if not VECTORS.exists():
    pytest.skip("no repository with the vectors", allow_module_level=True)


@pytest.fixture
def vectors(client: contextd_client.Client, session_id: str) -> Any:
    """The vectors, with their session in the daemon."""
    loaded = json.loads(VECTORS.read_text())
    client.create_session(session_id, policy=ParseDict(loaded["policy"], Policy()))
    client.append(session_id, *(ParseDict(event, Event()) for event in loaded["events"]))
    return loaded


def test_answers(client: contextd_client.Client, session_id: str, vectors: Any) -> None:
    tools = client.recall_tools(session_id, "contextd")
    assert tools.schemas == []
    assert tools.names == ("look_up", "search_log", "explain")
    for call in vectors["calls"]:
        answer = tools.call(call["name"], call["arguments"])
        assert answer == (call["text"], call["is_error"])
    # Arguments that an SDK has decoded are written again.
    for call in vectors["calls"][:1]:
        assert tools.call(call["name"], json.loads(call["arguments"])).text == call["text"]


async def test_answers_async(
    aclient: contextd_client.aio.Client, session_id: str, vectors: Any
) -> None:
    tools = await aclient.recall_tools(session_id, "anthropic")
    assert "look_up" in tools
    assert "bash" not in tools
    for call in vectors["calls"]:
        answer = await tools.call(call["name"], call["arguments"])
        assert answer == (call["text"], call["is_error"])


def test_schemas(client: contextd_client.Client, session_id: str, vectors: Any) -> None:
    anthropic = pytest.importorskip("anthropic").types
    openai = pytest.importorskip("openai").types
    genai = pytest.importorskip("google.genai").types
    kinds: dict[FormatName, Any] = {
        "anthropic": anthropic.ToolUnionParam,
        "openai_chat": openai.chat.ChatCompletionToolUnionParam,
        "openai_responses": openai.responses.ToolParam,
        "gemini": genai.Tool,
    }
    for format, kind in kinds.items():
        tools = client.recall_tools(session_id, format)
        assert tools.schemas == vectors["tools"][format]
        TypeAdapter(list[kind]).validate_python(tools.schemas)
        # They are counted like any other tools.
        budget = Budget(max_tokens=20_000)
        plain = client.assemble(session_id, format, budget=budget)
        beside = client.assemble(session_id, format, budget=budget, tools=tools.schemas)
        assert beside.header.budget.target_tokens < plain.header.budget.target_tokens - 200


def test_own_name(client: contextd_client.Client, session_id: str) -> None:
    client.append(session_id, events.user("Hello"))
    tools = client.recall_tools(session_id, "anthropic", recall_tool="show")
    assert tools.schemas[0]["name"] == "show"
    assert tools.call("show", {"pointer": "ctx:1.0"}).text.endswith("]\nHello")
    assert "show(pointer:" in tools.call("show", {}).text
    assert tools.call("show", {"pointer": "\ud800"}).is_error


async def test_mcp_client(binary: Path, address: str, session_id: str, vectors: Any) -> None:
    """The official client of the Model Context Protocol gets the same texts."""
    mcp = pytest.importorskip("mcp")
    server = mcp.StdioServerParameters(
        command=str(binary), args=["mcp", "--addr", address, "--session", session_id]
    )
    async with (
        mcp.stdio_client(server) as (read, write),
        mcp.ClientSession(read, write) as session,
    ):
        await session.initialize()
        listed = await session.list_tools()
        assert {tool.name for tool in listed.tools} == {"recall", "search_log", "explain"}
        for call in vectors["calls"]:
            name = call["name"].replace("look_up", "recall")
            if name == "bash" or not call["arguments"].startswith("{"):
                continue
            if "\\ud800" in call["arguments"]:
                continue  # no Python client can send it
            result = await session.call_tool(name, json.loads(call["arguments"]))
            assert result.content[0].text == call["text"]
