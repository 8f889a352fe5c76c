"""Models of ADK are shown the parts of the history as ADK has them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

import contextd_client.aio

pytest.importorskip("google.adk")
from google.adk import version
from google.adk.models.base_llm import BaseLlm
from google.adk.models.llm_response import LlmResponse
from google.genai import types
from test_google_adk import ROOMY, Talk

from contextd_client.google_adk import ContextdPlugin

# Its base64 differs between the alphabets.
BYTES = bytes([0xFB, 0xFF, 0xFE])
PNG = b"\x89PNG\r\n\x1a\n" + BYTES * 99


class Says(BaseLlm):
    """Says these parts, one list after another, then nothing but "end"."""

    model: str = "gemini-3-pro"
    tool: str = "draw"
    turns: list[list[types.Part]]
    given: list[list[types.Content]] = []  # noqa: RUF012

    async def generate_content_async(
        self, llm_request: Any, stream: bool = False
    ) -> AsyncIterator[LlmResponse]:
        self.given.append(llm_request.contents)
        number = len(self.given) - 1
        parts = self.turns[number] if number < len(self.turns) else [types.Part(text="end")]
        yield LlmResponse(content=types.Content(role="model", parts=parts))


def call(name: str, signature: bytes | None = None, **args: Any) -> types.Part:
    made = types.FunctionCall(name=name, args=args)
    return types.Part(function_call=made, thought_signature=signature)


def parts_of(contents: list[types.Content], role: str) -> list[types.Part]:
    return [part for c in contents if c.role == role for part in c.parts or []]


async def shown(
    client: contextd_client.aio.Client,
    session_id: str,
    model: Says,
    *said: types.Part,
    **tools: Any,
) -> list[types.Content]:
    """What the model is shown of a turn when the next one begins."""
    talk = Talk(model, ContextdPlugin(client, budget=ROOMY))
    agent: Any = talk.runner.agent
    agent.tools = list(tools.values())
    await talk.say(session_id, "Look.", *said)
    await talk.say(session_id, "And now?")
    return model.given[-1]


@pytest.mark.parametrize("mime", ["image/png", "audio/x-wav", "text/csv", "application/json"])
async def test_media(aclient: contextd_client.aio.Client, session_id: str, mime: str) -> None:
    data = PNG if mime == "image/png" else BYTES
    file = types.Part(inline_data=types.Blob(mime_type=mime, data=data))
    contents = await shown(aclient, session_id, Says(turns=[], given=[]), file)
    assert parts_of(contents, "user")[1] == file


async def test_media_is_not_counted_as_text(
    aclient: contextd_client.aio.Client, session_id: str
) -> None:
    file = types.Part(inline_data=types.Blob(mime_type="image/png", data=PNG * 1000))
    contents = await shown(aclient, session_id, Says(turns=[], given=[]), file)
    assert parts_of(contents, "user")[1] == file


async def test_media_of_a_tool(aclient: contextd_client.aio.Client, session_id: str) -> None:
    def draw() -> types.Part:
        """Draw."""
        return types.Part(inline_data=types.Blob(mime_type="image/png", data=PNG))

    model = Says(turns=[[call("draw")]], given=[])
    contents = await shown(aclient, session_id, model, draw=draw)
    if version.__version__.startswith("1."):
        pytest.skip("this version of ADK has tools return texts only")
    assert [p.inline_data.data for p in parts_of(contents, "user") if p.inline_data] == [PNG]


async def test_text_of_a_tool(aclient: contextd_client.aio.Client, session_id: str) -> None:
    """ADK puts it into an object; as JSON in JSON no line of it could be clipped or quoted."""

    def draw() -> str:
        """Draw."""
        return 'one\n"two"\n'

    model = Says(turns=[[call("draw")]], given=[])
    contents = await shown(aclient, session_id, model, draw=draw)
    (result,) = (p.function_response for p in parts_of(contents, "user") if p.function_response)
    assert result.response == {"output": 'one\n"two"\n'}


@pytest.mark.parametrize("name", ["gemini-3-pro", "claude-sonnet-4-5", "openai/gpt-5"])
async def test_thoughts(aclient: contextd_client.aio.Client, session_id: str, name: str) -> None:
    """A signature stays where it was: ADK's Claude has it with the thought."""

    def draw() -> str:
        """Draw."""
        return "ok"

    said = [
        types.Part(text="hm", thought=True, thought_signature=b"one" + BYTES),
        types.Part(thought=True, thought_signature=b"redacted"),
        types.Part(text="I draw."),
        call("draw", b"two" + BYTES),
        call("draw"),
    ]
    last = types.Part(text="so", thought_signature=b"three")
    model = Says(model=name, turns=[said, [last]], given=[])
    contents = await shown(aclient, session_id, model, draw=draw)
    got = parts_of(contents, "model")
    for part in got + said:
        if part.function_call:
            part.function_call.id = None
    assert got == [*said, last]


async def test_unsigned_calls(aclient: contextd_client.aio.Client, session_id: str) -> None:
    """Gemini alone needs a signature for the calls that another model made."""

    def draw() -> str:
        """Draw."""
        return "ok"

    for name, signed in (("gemini-3-pro", True), ("openai/gpt-5", False)):
        model = Says(model=name, turns=[[call("draw")]], given=[])
        contents = await shown(aclient, f"{session_id}/{signed}", model, draw=draw)
        (made,) = (p for p in parts_of(contents, "model") if p.function_call)
        assert bool(made.thought_signature) == signed


async def test_tools_that_the_provider_runs(
    aclient: contextd_client.aio.Client, session_id: str
) -> None:
    if "tool_call" not in types.Part.model_fields:
        pytest.skip("this version of the SDK has no such parts")
    used = {"id": "t", "tool_type": "GOOGLE_SEARCH_WEB"}
    said = [
        types.Part(
            tool_call=types.ToolCall(**used, args={"queries": ["q"]}), thought_signature=BYTES
        ),
        types.Part(tool_response=types.ToolResponse(**used, response={"n": [1]})),
        types.Part(text="Found."),
    ]
    contents = await shown(aclient, session_id, Says(turns=[said], given=[]))
    assert parts_of(contents, "model") == said
