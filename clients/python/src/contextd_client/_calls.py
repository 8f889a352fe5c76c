"""The address and the requests, for both the sync and the asyncio client."""

from __future__ import annotations

import os
import uuid
from collections.abc import Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any

from google.protobuf.duration_pb2 import Duration

from contextd_client._files import upload
from contextd_client._requests import checked
from contextd_client._usage import Usage, usage_of
from contextd_client.context import Context
from contextd_client.v1.budget_pb2 import Budget
from contextd_client.v1.compaction_pb2 import (
    CompleteSummaryTaskRequest,
    LeaseSummaryTasksRequest,
    SummaryTask,
)
from contextd_client.v1.event_pb2 import Block, Event
from contextd_client.v1.hooks_pb2 import HookCall, HookReply, HookSubscription, ServeHooksRequest
from contextd_client.v1.log_pb2 import AppendEventsRequest
from contextd_client.v1.policy_pb2 import Policy
from contextd_client.v1.session_pb2 import LogMark
from contextd_client.v1.tokens_pb2 import RecordModelCallRequest
from contextd_client.v1.transcript_pb2 import (
    ConvertHeader,
    ConvertTranscriptRequest,
    ExportTranscriptRequest,
    ImportHeader,
    ImportTranscriptRequest,
)

DEFAULT_ADDRESS = "127.0.0.1:7171"


def address_or_default(address: str | None) -> str:
    """The address, or else CONTEXTD_ADDR, or else the daemon's default address."""
    if address is not None and not isinstance(address, str):
        raise TypeError(f"address: must be str, not {address!r:.60}")
    return address or os.environ.get("CONTEXTD_ADDR") or DEFAULT_ADDRESS


def not_a(kind: str, name: str, value: object) -> TypeError:
    """The error for an argument of another type than `kind`."""
    return TypeError(f"{name}: must be a {kind}, not {value!r:.60}")


def append_request(
    session_id: str, events: Iterable[Event], expected_head: int | None, known: LogMark | None
) -> AppendEventsRequest:
    """The request of an append. It can be sent twice, since each event gets an id."""
    request = checked(
        AppendEventsRequest, session_id=session_id, events=events, expected_head=expected_head,
        known=known,
    )  # fmt: skip
    for event in request.events:
        event.event_id = event.event_id or str(uuid.uuid4())
    return request


def record_request(
    context: Context,
    response: Any | None,
    usage: Usage | None,
    rejected_over_budget: bool,
    idempotency_key: str,
) -> RecordModelCallRequest:
    """The report of a context's model call. It can be sent twice, since it has a key."""
    if not isinstance(context, Context):
        raise TypeError(f"context: must be a Context that was assembled, not {context!r:.60}")
    if usage is not None and not isinstance(usage, Usage):
        raise TypeError(f"usage: must be Usage, not {usage!r:.60}")
    if usage is None:
        usage = Usage() if response is None else usage_of(response)
    request = checked(
        RecordModelCallRequest,
        session_id=context.session_id,
        projection_id=context.projection_id,
        model=usage.model,
        input_tokens=usage.input_tokens,
        cache_read_tokens=usage.cache_read_tokens,
        cache_write_tokens=usage.cache_write_tokens,
        output_tokens=usage.output_tokens,
        stop_reason=usage.stop_reason,
        rejected_over_budget=rejected_over_budget,
        idempotency_key=idempotency_key,
    )
    request.idempotency_key = request.idempotency_key or str(uuid.uuid4())
    return request


def lease_request(
    write: object, worker_id: str, session_ids: Iterable[str], lease: float | None
) -> LeaseSummaryTasksRequest:
    """The request to lease summary tasks."""
    if not callable(write):
        raise not_a("function", "write", write)
    return checked(
        LeaseSummaryTasksRequest,
        worker_id=worker_id,
        session_ids=session_ids,
        lease=_duration("lease", lease),
    )


def completed(
    task: SummaryTask, result: str | CompleteSummaryTaskRequest | Exception
) -> CompleteSummaryTaskRequest:
    """The result of a summary task, or its error."""
    if isinstance(result, Exception):
        error = f"{type(result).__name__}: {result}"[:8192]
        return checked(CompleteSummaryTaskRequest, task_id=task.task_id, error=error)
    done = CompleteSummaryTaskRequest()
    if isinstance(result, CompleteSummaryTaskRequest):
        done.CopyFrom(result)
    else:
        done = checked(CompleteSummaryTaskRequest, text=result)
    done.task_id = task.task_id
    return done


def subscription(
    pre_compact: object, post_compact: object, session_ids: Iterable[str], deadline: float | None
) -> ServeHooksRequest:
    """The request to subscribe to hooks."""
    for name, hook in (("pre_compact", pre_compact), ("post_compact", post_compact)):
        if hook is not None and not callable(hook):
            raise not_a("function", name, hook)
    return ServeHooksRequest(
        subscribe=checked(
            HookSubscription,
            session_ids=session_ids,
            pre_compact=pre_compact is not None,
            post_compact=post_compact is not None,
            deadline=_duration("deadline", deadline),
        )
    )


def reply(call: HookCall, given: HookReply | None) -> ServeHooksRequest:
    """The reply to a hook call; None allows the compaction."""
    request = checked(ServeHooksRequest, reply=given or HookReply())
    request.reply.call_id = call.call_id
    return request


def import_requests(
    session_id: str, harness: str, data: bytes
) -> Callable[[], Iterator[ImportTranscriptRequest]]:
    """A function that returns the requests of an upload, for each try."""
    header = ImportTranscriptRequest(
        header=checked(ImportHeader, session_id=session_id, harness=harness)
    )
    return lambda: upload(header, lambda part: ImportTranscriptRequest(data=part), data)


def convert_requests(
    harness: str, to: str, harness_session_id: str, working_directory: str, data: bytes
) -> Callable[[], Iterator[ConvertTranscriptRequest]]:
    """A function that returns the requests of an upload, for each try."""
    if not isinstance(harness, str):
        raise TypeError(f"harness: must be str, not {harness!r:.60}")
    fields = {"from": harness, "to": to, "harness_session_id": harness_session_id}
    header = ConvertTranscriptRequest(
        header=checked(ConvertHeader, working_directory=working_directory, **fields)
    )
    return lambda: upload(header, lambda part: ConvertTranscriptRequest(data=part), data)


def export_request(
    session_id: str,
    harness: str,
    as_compacted: bool,
    budget: Budget | None,
    policy: Policy | None,
    harness_session_id: str,
    working_directory: str,
) -> ExportTranscriptRequest:
    """The request to export a transcript."""
    return checked(
        ExportTranscriptRequest,
        session_id=session_id,
        harness=harness,
        as_compacted=as_compacted,
        budget=budget,
        policy=policy,
        harness_session_id=harness_session_id,
        working_directory=working_directory,
    )


def text_of(block: Block) -> str:
    """The text of a block. The texts of a result are joined by newlines."""
    if block.HasField("tool_call"):
        return block.tool_call.arguments_json.decode(errors="replace")
    if block.HasField("tool_result"):
        return "\n".join(c.text.text for c in block.tool_result.content if c.HasField("text"))
    return block.text.text


def _duration(name: str, seconds: float | None) -> Duration | None:
    if seconds is None:
        return None
    if isinstance(seconds, bool) or not isinstance(seconds, int | float):
        raise TypeError(f"{name}: must be seconds, not {seconds!r}")
    made = Duration()
    try:
        made.FromTimedelta(timedelta(seconds=seconds))
    except (ValueError, OverflowError):
        raise ValueError(f"{name}: must be seconds, not {seconds!r}") from None
    return made
