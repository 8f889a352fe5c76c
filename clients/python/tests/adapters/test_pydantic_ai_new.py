"""What Pydantic AI has of late, over a log of contextd."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import contextd_client.aio
from contextd_client import Budget

pytest.importorskip("pydantic_ai", minversion="2.62")
from pydantic_ai import Agent, ModelRetry, UsageLimits
from pydantic_ai.messages import (
    BinaryImage,
    CachePoint,
    FilePart,
    ImageUrl,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    NativeToolCallPart,
    NativeToolReturnPart,
    SpeechPart,
    StructuredContent,
    SystemPromptPart,
    TextContent,
    TextPart,
    ThinkingPart,
    UserPromptPart,
)
from pydantic_ai.models.fallback import FallbackModel
from pydantic_ai.models.function import AgentInfo, FunctionModel
from pydantic_ai.usage import RequestUsage

from contextd_client.pydantic_ai import ContextdModel

ROOMY = Budget(max_tokens=20_000, tokenizer="o200k_base")


class Answering(FunctionModel):
    """Gives one answer after another, and keeps what it was given."""

    def __init__(self, *answers: str | ModelResponse) -> None:
        self.given: list[list[ModelMessage]] = []
        super().__init__(self._answer)
        self._answers = answers

    def _answer(self, messages: list[ModelMessage], info: AgentInfo) -> ModelResponse:
        self.given.append(messages)
        answer = self._answers[len(self.given) - 1]
        return answer if isinstance(answer, ModelResponse) else ModelResponse([TextPart(answer)])

    async def count_tokens(
        self, messages: list[ModelMessage], model_settings: Any, model_request_parameters: Any
    ) -> RequestUsage:
        return RequestUsage(input_tokens=sum(len(text) for text in shown(messages)))


def shown(messages: list[ModelMessage]) -> list[str]:
    return [str(getattr(part, "content", part)) for m in messages for part in m.parts]


async def texts(client: contextd_client.aio.Client, session: str) -> list[str]:
    return [
        block.text.text
        async for event in client.read_events(session)
        for block in event.message.blocks
    ]


async def test_paused_response(aclient: contextd_client.aio.Client, session_id: str) -> None:
    """A response that a provider interrupts and continues is logged once it is complete."""
    paused = ModelResponse([TextPart("I look")], state="suspended", provider_response_id="r1")
    whole = ModelResponse([TextPart("I look. Done.")], provider_response_id="r1")
    model = Answering("No.", paused, whole, "Bye.")
    agent = Agent(ContextdModel(model, aclient, session_id, budget=ROOMY), retries=2)

    @agent.output_validator
    def refuse(said: str) -> str:
        if said == "No.":
            raise ModelRetry("Try again.")
        return said

    first = await agent.run("Go.")
    assert first.output == "I look. Done."
    assert shown(model.given[2]) == [*shown(model.given[1]), "I look"]
    await agent.run("Thanks.", message_history=first.all_messages())
    assert [t for t in await texts(aclient, session_id) if "Try again." not in t] == [
        "Go.", "No.", "I look. Done.", "Thanks."
    ]  # fmt: skip


async def test_prompt_for_one_request(aclient: contextd_client.aio.Client, session_id: str) -> None:
    """A prompt for one request is shown once, and is not part of the conversation."""

    def asked(question: str) -> ModelRequest:
        once = SystemPromptPart(f"Reminder for {question}", scope="request")
        return ModelRequest(parts=[UserPromptPart(question), once])

    model = Answering("One.", "Two.")
    agent = Agent(ContextdModel(model, aclient, session_id, budget=ROOMY))
    first = await agent.run(message_history=[asked("First?")])
    await agent.run(message_history=[*first.all_messages(), asked("Second?")])
    one, two = (" ".join(shown(given)) for given in model.given)
    assert "Reminder for First?" in one
    assert "Reminder for First?" not in two
    assert "Reminder for Second?" in two
    assert await texts(aclient, session_id) == ["First?", "One.", "Second?"]


async def test_limit_of_tokens(aclient: contextd_client.aio.Client, session_id: str) -> None:
    """A limit applies to the context that the model gets, not to the whole history."""
    history = [ModelRequest([UserPromptPart("Go.")]), ModelResponse([TextPart("word " * 20_000)])]
    budget = Budget(max_tokens=2_000, tokenizer="o200k_base")
    agent = Agent(ContextdModel(Answering("Done."), aclient, session_id, budget=budget))
    limits = UsageLimits(input_tokens_limit=50_000, count_tokens_before_request=True)
    result = await agent.run("And now?", message_history=history, usage_limits=limits)
    assert result.output == "Done."


@pytest.mark.parametrize("wrap", [lambda model: model, FallbackModel], ids=["model", "fallback"])
async def test_words_of_the_framework(
    aclient: contextd_client.aio.Client, session_id: str, wrap: Callable[[Any], Any]
) -> None:
    """A request to try again does not count as a human message."""
    model = Answering("No.", "Yes.")
    agent = Agent(ContextdModel(wrap(model), aclient, session_id, budget=ROOMY), retries=2)

    @agent.output_validator
    def refuse(said: str) -> str:
        if said == "No.":
            raise ModelRetry("Try again.")
        return said

    await agent.run("Go.")
    events = [event async for event in aclient.read_events(session_id)]
    assert [event.labels.get("harness.injected", "") for event in events] == ["", "", "true"]
    assert "Try again." in events[2].message.blocks[0].text.text
    assert "Try again." in shown(model.given[1])[-1]


async def test_kinds_of_parts(aclient: contextd_client.aio.Client, session_id: str) -> None:
    """Each kind of content is unchanged, also after the history was stored."""
    image = BinaryImage(b"png", media_type="image/png", vendor_metadata={"detail": "high"})
    asked = ["See.", TextContent("Noted.", metadata={"a": 1}), StructuredContent({"b": 2}),
             ImageUrl("https://example.org/a.png"), image, CachePoint()]  # fmt: skip
    said = ModelResponse([
        ThinkingPart("hm", signature="sig", provider_name="anthropic"),
        NativeToolCallPart("web_search", {"q": "x"}, tool_call_id="s1", provider_name="anthropic"),
        NativeToolReturnPart("web_search", [], tool_call_id="s1", provider_name="anthropic"),
        TextPart("Cited.", provider_name="anthropic", provider_details={"citations": [1]}),
        FilePart(image, id="f1", provider_name="openai"),
    ])  # fmt: skip
    spoken: list[ModelMessage] = [
        ModelRequest([SpeechPart(speaker="user", transcript="Hello.")]),
        ModelResponse([SpeechPart(speaker="assistant", transcript="Hi.")]),
    ]
    model = Answering(said, "Bye.")
    agent = Agent(ContextdModel(model, aclient, session_id, budget=ROOMY))
    first = await agent.run(asked, message_history=spoken)
    stored = ModelMessagesTypeAdapter.validate_json(first.all_messages_json())
    await agent.run("Thanks.", message_history=stored)
    before, after = model.given
    assert shown(after[:2]) == shown(before[:2]) == ["Hello.", "Hi."]
    assert after[2].parts == before[2].parts
    assert after[2].parts[0].content == asked  # type: ignore[union-attr]
    assert after[3].parts == said.parts
    plain = [text for text in await texts(aclient, session_id) if text]
    assert plain == ["Hello.", "Hi.", "See.", "Noted.", '{"b":2}', "Cited.", "Thanks."]
