"""A log that was lost is noticed, and begun again by whoever has the conversation."""

from __future__ import annotations

from typing import Any

import pytest
from conftest import Daemon

import contextd_client
import contextd_client.aio
from contextd_client import Budget, errors, events
from contextd_client._following import Following
from contextd_client._known import Known
from contextd_client._threads import Threads
from contextd_client.v1.lifecycle_pb2 import LifecycleCursor, LifecycleEvent
from contextd_client.v1.log_pb2 import AppendEventsResponse
from contextd_client.v1.session_pb2 import LogMark, Session

BUDGET = Budget(max_tokens=20_000)


def talk() -> list[contextd_client.Event]:
    return [events.system("You repair builds."), events.user("Why does make fail?")]


def lose(daemon: Daemon, session_id: str, how: str) -> None:
    """Restart the daemon, or have another client delete the session and make it again."""
    if how == "restarted":
        daemon.restart()
        return
    with contextd_client.Client(daemon.address) as other:
        other.delete_session(session_id)
        if how == "created again":
            other.append(session_id, *talk())  # as many events, of the same content


LOST = pytest.mark.parametrize("how", ["restarted", "deleted", "created again"])


@LOST
def test_client(daemon: Daemon, session_id: str, how: str) -> None:
    with contextd_client.Client(daemon.address) as client:
        client.append(session_id, *talk())
        client.assemble(session_id, "anthropic", budget=BUDGET)
        lose(daemon, session_id, how)
        for _ in range(2):
            with pytest.raises(errors.LogLostError) as lost:
                client.append(session_id, events.user("And now?"))
            assert lost.value.known_seq == 2
            assert lost.value.head_seq == (2 if how == "created again" else 0)
            assert "lost" in str(lost.value)
            with pytest.raises(errors.LogLostError):
                client.assemble(session_id, "anthropic", budget=BUDGET)
        client.forget_session(session_id)
        if how != "created again":
            client.append(session_id, *talk())
        client.append(session_id, events.user("And now?"))
        context = client.assemble(session_id, "anthropic", budget=BUDGET)
        assert context.system is not None


def test_marks_have_the_chain() -> None:
    known = Known()
    made = Session(session_id="s", incarnation="i", head_seq=2, chain_head="sha256:02")
    known.made(made)
    assert known.of("s") == LogMark(incarnation="i", head_seq=2, chain_head="sha256:02")
    newer = LogMark(incarnation="i", head_seq=3, chain_head="sha256:03")
    known.appended("s", AppendEventsResponse(mark=newer))
    known.made(made)  # an answer that was overtaken
    assert known.of("s") == newer


def test_a_watch_goes_on_after_what_happened_then() -> None:
    following = Following(["s"], [])
    event = LifecycleEvent(session_id="s", number=4, incarnation="i")
    event.time.FromJsonString("2026-01-02T03:04:05.123456789Z")
    following.take(event)
    assert list(following.request.after) == [
        LifecycleCursor(session_id="s", number=4, incarnation="i", time=event.time)
    ]


@LOST
async def test_asyncio_client(daemon: Daemon, session_id: str, how: str) -> None:
    async with contextd_client.aio.Client(daemon.address) as client:
        await client.append(session_id, *talk())
        lose(daemon, session_id, how)
        with pytest.raises(errors.LogLostError):
            await client.append(session_id, events.user("And now?"))
        with pytest.raises(errors.LogLostError):
            await client.assemble(session_id, "anthropic", budget=BUDGET)


def test_other_writers_disturb_nobody(address: str, session_id: str) -> None:
    with contextd_client.Client(address) as one, contextd_client.Client(address) as other:
        head = one.append(session_id, *talk()).last_seq
        other.append(session_id, events.user("I am here, too."))
        with pytest.raises(errors.HeadMismatchError) as moved:
            one.append(session_id, events.user("And now?"), expected_head=head)
        assert moved.value.head_seq == 3
        one.append(session_id, events.user("And now?"))
        assert len(one.assemble(session_id, "contextd", budget=BUDGET).lines) == 4


def test_own_deletion_is_no_loss(address: str, session_id: str) -> None:
    with contextd_client.Client(address) as client:
        client.append(session_id, *talk())
        client.delete_session(session_id)
        client.append(session_id, *talk())
        client.fork_session(session_id, f"{session_id}/fork")
        client.append(f"{session_id}/fork", events.user("And here?"))
        client.create_session(f"{session_id}/made")
        client.append(f"{session_id}/made", *talk())


@LOST
def test_langgraph(daemon: Daemon, session_id: str, how: str) -> None:
    pytest.importorskip("langchain")
    from langchain_core.messages import HumanMessage, SystemMessage

    from contextd_client.langgraph import ContextdMessages

    said: list[Any] = [SystemMessage("Be brief.", id="m1"), HumanMessage("One.", id="m2")]
    with contextd_client.Client(daemon.address) as client:
        messages = ContextdMessages(client, BUDGET)
        messages.for_model(session_id, said)
        lose(daemon, session_id, how)
        said.append(HumanMessage("Two.", id="m3"))
        if how == "created again":
            with pytest.raises(errors.LogLostError):  # the other log is another conversation
                messages.for_model(session_id, said)
            return
        shown = messages.for_model(session_id, said)
        assert [m.content for m in shown] == ["Be brief.", "One.", "Two."]
        assert [e.event_id for e in client.read_events(session_id)] == ["m1", "m2", "m3"]
        lose(daemon, session_id, how)
        shown = messages.for_model(session_id, said)  # nothing is new
        assert [m.content for m in shown] == ["Be brief.", "One.", "Two."]
        with contextd_client.Client(daemon.address) as another:  # and one that begins it again
            lose(daemon, session_id, how)
            ContextdMessages(another, BUDGET).for_model(session_id, said[:2])
            messages.for_model(session_id, said)
        assert [e.event_id for e in client.read_events(session_id)] == ["m1", "m2", "m3"]
        lose(daemon, session_id, how)
        for _ in range(2):
            with pytest.raises(errors.LogLostError):  # the graph has not all of it any more
                messages.for_model(session_id, said[1:])


@LOST
async def test_openai_agents(daemon: Daemon, session_id: str, how: str) -> None:
    pytest.importorskip("agents")
    from contextd_client.openai_agents import ContextdSession

    async with contextd_client.aio.Client(daemon.address) as client:
        session = ContextdSession(session_id, client, budget=BUDGET)
        await session.add_items([{"role": "user", "content": "One."}])
        await session.add_items([{"role": "assistant", "content": "Two."}])  # type: ignore[list-item, misc]
        lose(daemon, session_id, how)
        with pytest.raises(errors.LogLostError):
            await session.get_items()
        with pytest.raises(errors.LogLostError):
            await session.add_items([{"role": "user", "content": "Three."}])


class Overtaken(contextd_client.Client):
    """A client of which another is faster to append again what was lost."""

    other: contextd_client.Client

    def forget_session(self, session_id: str) -> None:
        super().forget_session(session_id)
        self.other.append(session_id, *state(1))


def state(count: int) -> list[contextd_client.Event]:
    return [events.user(f"q{n}", event_id=f"e{n}") for n in range(count)]


def test_thread_that_another_process_appends_again_too(daemon: Daemon, session_id: str) -> None:
    with (
        Overtaken(daemon.address) as client,
        contextd_client.Client(daemon.address) as client.other,
    ):
        threads = Threads(client, "raise")
        threads.follow(session_id, state(2), lambda session: session)
        daemon.restart()
        threads.follow(session_id, state(3), lambda session: session)
        assert [e.event_id for e in client.read_events(session_id)] == ["e0", "e1", "e2"]
