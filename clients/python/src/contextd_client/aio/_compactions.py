"""Compactions, the summaries they use, and what happens to sessions."""

from __future__ import annotations

from asyncio import Queue
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable, Sequence

from contextd_client import _calls
from contextd_client._following import Following
from contextd_client._requests import checked
from contextd_client.aio._caller import Caller
from contextd_client.v1.budget_pb2 import Budget
from contextd_client.v1.compaction_pb2 import (
    CompactSessionRequest,
    CompactSessionResponse,
    CompleteSummaryTaskRequest,
    ListSummariesRequest,
    Summary,
    SummaryTask,
    UndoCompactionRequest,
    UndoCompactionResponse,
)
from contextd_client.v1.hooks_pb2 import (
    HookCall,
    HookReply,
    ServeHooksRequest,
    ServeHooksResponse,
)
from contextd_client.v1.lifecycle_pb2 import LifecycleCursor, LifecycleEvent
from contextd_client.v1.policy_pb2 import Policy


class Compactions(Caller):
    """The part of the client for compactions."""

    async def compact(
        self,
        session_id: str,
        *,
        target_tokens: int = 0,
        keep_last_turns: int = 0,
        strategy: str = "",
        summary: str = "",
        instructions: str = "",
        budget: Budget | None = None,
        policy: Policy | None = None,
    ) -> CompactSessionResponse:
        """Compact a session now, for every later context; see CompactSessionRequest.

        The log stays as it is. `outcome` of the answer says whether it was compacted, and
        `over_target_tokens` whether the target was missed.
        """
        request = checked(
            CompactSessionRequest, session_id=session_id, target_tokens=target_tokens,
            keep_last_turns=keep_last_turns, strategy=strategy, summary=summary,
            instructions=instructions, budget=budget, policy=policy,
        )  # fmt: skip
        return await self._call(self.compaction_stub.CompactSession, request)

    async def undo_compaction(
        self, session_id: str, *, compaction_seq: int = 0
    ) -> UndoCompactionResponse:
        """Revert a compaction and all later ones; 0: the newest.

        With 0 a call that got no answer is not repeated: it may have been done.
        """
        request = checked(
            UndoCompactionRequest, session_id=session_id, compaction_seq=compaction_seq
        )
        known = compaction_seq > 0
        return await self._call(self.compaction_stub.UndoCompaction, request, unanswered=known)

    async def list_summaries(self, session_id: str) -> Sequence[Summary]:
        """The summaries of a session, newest first."""
        request = checked(ListSummariesRequest, session_id=session_id)
        summaries: list[Summary] = []
        while True:
            page = await self._call(self.compaction_stub.ListSummaries, request)
            summaries.extend(page.summaries)
            if not page.next_page_token:
                return summaries
            request.page_token = page.next_page_token

    async def run_summaries(
        self,
        write: Callable[[SummaryTask], Awaitable[str | CompleteSummaryTaskRequest]],
        *,
        worker_id: str,
        session_ids: Iterable[str] = (),
        lease: float | None = None,
    ) -> None:
        """Write the summaries that the daemon asks for, one after another, until it refuses.

        write: gives the text, or a request that also has the model and its tokens. What it
            raises is reported to the daemon, which may ask again.
        worker_id: the name that the daemon reports failures under.
        session_ids: only of these sessions; none: of all.
        lease: seconds after which the daemon gives a task away. None: the daemon's default.
        """
        request = _calls.lease_request(write, worker_id, session_ids, lease)
        async for part in self._parts(lambda: self.compaction_stub.LeaseSummaryTasks(request)):
            try:
                done = _calls.completed(part.task, await write(part.task))
            except Exception as error:
                done = _calls.completed(part.task, error)
            await self._call(self.compaction_stub.CompleteSummaryTask, done)

    async def run_hooks(
        self,
        *,
        pre_compact: Callable[[HookCall], Awaitable[HookReply | None]] | None = None,
        post_compact: Callable[[HookCall], Awaitable[None]] | None = None,
        session_ids: Iterable[str] = (),
        deadline: float | None = None,
    ) -> None:
        """Serve hooks, one call after another, until the daemon refuses or a hook raises.

        pre_compact: decides on a compaction; None allows it.
        post_compact: is notified of one.
        session_ids: only of these sessions; none: of all.
        deadline: seconds that the daemon waits for a reply. None: its default.
        """
        subscription = _calls.subscription(pre_compact, post_compact, session_ids, deadline)
        replies: Queue[ServeHooksRequest]

        async def sent(queue: Queue[ServeHooksRequest]) -> AsyncIterator[ServeHooksRequest]:
            while True:
                yield await queue.get()

        def open() -> AsyncIterable[ServeHooksResponse]:
            nonlocal replies
            replies = Queue()
            replies.put_nowait(subscription)
            return self.compaction_stub.ServeHooks(sent(replies))

        async for part in self._parts(open):
            if part.call.hook == "post_compact":
                if post_compact is not None:
                    await post_compact(part.call)
            elif pre_compact is not None:
                replies.put_nowait(_calls.reply(part.call, await pre_compact(part.call)))

    async def watch(
        self, session_ids: Iterable[str] = (), *, after: Iterable[LifecycleCursor] = ()
    ) -> AsyncIterator[LifecycleEvent]:
        """Lifecycle events of sessions, as they happen; it does not end by itself.

        Each event of the named sessions is given exactly once, in order, even if the connection
        breaks.

        session_ids: only these; none: all.
        after: positions to start after in some of these; the others start now.
        """
        following = Following(session_ids, after)
        async for part in self._parts(
            lambda: self.compaction_stub.WatchLifecycle(following.request)
        ):
            yield following.take(part.event)
