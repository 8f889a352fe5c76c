"""contextd assembles the contexts of LLM agents from an immutable event log.

`Client` and `aio.Client` call the daemon. `events` makes the events to append, `errors` has
the exceptions, `contextd_client.v1` the API's own messages.
"""

from contextd_client import errors, events
from contextd_client._files import Transcript
from contextd_client._formats import FormatName
from contextd_client._read import message_events, response_events
from contextd_client._recall import AsyncRecallTools, RecallResult, RecallTools
from contextd_client._usage import Usage, usage_of
from contextd_client.client import Client
from contextd_client.context import Context, Rendering, hash_lines
from contextd_client.credentials import Credentials
from contextd_client.errors import ApiError, ContextdError, IntegrityError, StreamError
from contextd_client.v1.assembly_pb2 import Injection
from contextd_client.v1.budget_pb2 import Budget
from contextd_client.v1.event_pb2 import Block, Event, Role
from contextd_client.v1.lifecycle_pb2 import LifecycleCursor
from contextd_client.v1.policy_pb2 import Policy

__all__ = [
    "ApiError",
    "AsyncRecallTools",
    "Block",
    "Budget",
    "Client",
    "Context",
    "ContextdError",
    "Credentials",
    "Event",
    "FormatName",
    "Injection",
    "IntegrityError",
    "LifecycleCursor",
    "Policy",
    "RecallResult",
    "RecallTools",
    "Rendering",
    "Role",
    "StreamError",
    "Transcript",
    "Usage",
    "errors",
    "events",
    "hash_lines",
    "message_events",
    "response_events",
    "usage_of",
]
