"""Histories that diverge from a log: which session each goes on in."""

from __future__ import annotations

import pytest
from conftest import Daemon

import contextd_client.aio
from contextd_client import Budget, errors, events
from contextd_client._conversation import Conversation, Versions
from contextd_client._names import session_name
from contextd_client.v1.event_pb2 import Event

BUDGET = Budget(max_tokens=20_000, tokenizer="o200k_base")


def history(*said: str) -> list[Event]:
    """What users and models said in turn."""
    made = [events.user, events.assistant]
    return [made[number % 2](text) for number, text in enumerate(said)]


async def heads(client: contextd_client.aio.Client, session_id: str) -> dict[str, int]:
    """The lengths of the logs of a session and its forks."""
    return {
        s.session_id.removeprefix(session_id): s.head_seq
        async for s in client.list_sessions()
        if s.session_id.startswith(session_id)
    }


async def texts(conversation: Conversation, *said: str) -> list[str]:
    """What the model is given of a history."""
    context = await conversation.context(history(*said))
    return [b["text"]["text"] for m in context.messages() for b in m["blocks"]]


async def test_two_runs_at_once(aclient: contextd_client.aio.Client, session_id: str) -> None:
    """Each goes on in a session of its own, which is made once."""
    conversation = Conversation(aclient, session_id, "contextd", budget=BUDGET, diverged="fork")
    runs = [["q", "a", "left"], ["q", "a", "right"]]
    for number in range(4):
        for run in runs:
            assert await texts(conversation, *run) == run
            run += [f"a{number}", f"q{number}"]
    assert await heads(aclient, session_id) == {"": 9, "/v2": 9}
    # After both, a third has what both said; a new process goes on in each.
    for run in [*runs, ["q", "a", "left", "a0", "right", "a0"]]:
        other = Conversation(aclient, session_id, "contextd", budget=BUDGET, diverged="fork")
        assert await texts(other, *run) == run
    assert await heads(aclient, session_id) == {"": 11, "/v2": 11, "/v3": 6}


async def test_two_processes_that_fork(
    aclient: contextd_client.aio.Client, session_id: str
) -> None:
    one, two = (
        Conversation(aclient, session_id, "contextd", budget=BUDGET, diverged="fork")
        for _ in range(2)
    )
    for conversation in (one, two):
        await texts(conversation, "q", "a", "typo")
    assert await texts(one, "q", "a", "edited") == ["q", "a", "edited"]
    assert await texts(two, "q", "a", "edited") == ["q", "a", "edited"]
    assert await texts(two, "q", "a", "again") == ["q", "a", "again"]
    assert await texts(one, "q", "a", "once more") == ["q", "a", "once more"]
    assert await heads(aclient, session_id) == {"": 3, "/v2": 3, "/v3": 3, "/v4": 3}


async def test_many_forks(aclient: contextd_client.aio.Client, session_id: str) -> None:
    """What is held of them is bounded."""
    conversation = Conversation(aclient, session_id, "contextd", budget=BUDGET, diverged="fork")
    for number in range(20):
        await texts(conversation, "q", "a", f"edit {number}")
    assert len(conversation._logs) == 16
    assert await texts(conversation, "q", "a", "edit 9", "b") == ["q", "a", "edit 9", "b"]
    assert len(await heads(aclient, session_id)) == 20


async def test_fork_of_a_log_that_was_lost(daemon: Daemon, session_id: str) -> None:
    async with contextd_client.aio.Client(daemon.address) as client:
        conversation = Conversation(client, session_id, "contextd", budget=BUDGET, diverged="fork")
        await texts(conversation, "q", "a", "typo")
        daemon.restart()
        assert await texts(conversation, "q", "a", "edited") == ["q", "a", "edited"]


async def test_error_says_what_to_do(aclient: contextd_client.aio.Client, session_id: str) -> None:
    conversation = Conversation(aclient, session_id, "contextd", budget=BUDGET)
    await texts(conversation, "q", "a", "typo")
    with pytest.raises(errors.HistoryDivergedError, match=r'at seq 2, .* diverged="fork"') as error:
        await texts(conversation, "q", "a", "edited")
    assert (error.value.index, error.value.seq) == (2, 2)
    with pytest.raises(errors.HistoryDivergedError, match="take another session"):
        await texts(conversation, "other")
    assert await texts(conversation, "q", "a", "typo", "b") == ["q", "a", "typo", "b"]


NAMES = [
    "a b",
    "a  b",
    "a_b",
    "/a",
    "a//b",
    "a/",
    "-",
    "ü",
    "ä",
    "a\n",
    "x" * 300,
    "x" * 301,
    "\ud800",
]


async def test_names_that_the_daemon_refuses(aclient: contextd_client.aio.Client) -> None:
    names = [session_name(given) for given in NAMES]
    # A name that looks as if made of another one is not the same as it.
    names += [session_name(name) for name in names]
    assert len(set(names)) == len(names) - 1, "only a_b is its own name"
    for name in set(names):
        await aclient.create_session(f"{name}/v1000")
    assert session_name("user one|2").startswith("user_one_2:")
    assert Versions(aclient, "team/user-1@x.org").name(1) == "team/user-1@x.org"
    with pytest.raises(ValueError, match="session_id: must be a name"):
        session_name("")
