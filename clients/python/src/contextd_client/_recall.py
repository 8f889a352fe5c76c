"""Tools by which a model reads the log of its own session."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple

from contextd_client import _formats
from contextd_client._formats import FormatName
from contextd_client._rawjson import dumps
from contextd_client._requests import checked
from contextd_client.v1.recall_pb2 import (
    CallRecallToolRequest,
    CallRecallToolResponse,
    ListRecallToolsRequest,
    ListRecallToolsResponse,
)


class RecallResult(NamedTuple):
    """The result of a recall tool, for the model."""

    text: str
    is_error: bool


def list_request(
    session_id: str, format: FormatName, recall_tool: str | None
) -> ListRecallToolsRequest:
    """The request to list the tools."""
    return checked(
        ListRecallToolsRequest, session_id=session_id, format=_formats.number(format),
        recall_tool=recall_tool,
    )  # fmt: skip


class Tools:
    """The tools of a session, without I/O."""

    schemas: list[Any]
    """The tools in the form of the provider's request: add them to its tools."""
    names: tuple[str, ...]
    """Their names, as the model calls them."""

    def __init__(self, request: ListRecallToolsRequest, listed: ListRecallToolsResponse) -> None:
        self._request = request
        self.schemas = json.loads(listed.tools_json or b"[]")
        self.names = tuple(tool.name for tool in listed.tools)

    def __contains__(self, name: object) -> bool:
        return name in self.names

    def _call_request(
        self, name: str, arguments: str | bytes | Mapping[str, Any]
    ) -> CallRecallToolRequest:
        if isinstance(arguments, str):
            arguments = arguments.encode("utf-8", "replace")
        elif not isinstance(arguments, bytes):
            if not isinstance(arguments, Mapping):
                raise TypeError(f"arguments: must be a dict or its JSON, not {arguments!r:.60}")
            arguments = dumps(dict(arguments)).encode()
        return checked(
            CallRecallToolRequest, session_id=self._request.session_id, name=name,
            arguments_json=arguments,
            recall_tool=self._request.recall_tool or None,
        )  # fmt: skip


class RecallTools(Tools):
    """The tools of a session; `name in tools` says whether a call is one of theirs."""

    def __init__(
        self,
        request: ListRecallToolsRequest,
        listed: ListRecallToolsResponse,
        run: Callable[[CallRecallToolRequest], CallRecallToolResponse],
    ) -> None:
        super().__init__(request, listed)
        self._run = run

    def call(self, name: str, arguments: str | bytes | Mapping[str, Any]) -> RecallResult:
        """Run a model's call. The model's mistakes are reported to it in the result."""
        answer = self._run(self._call_request(name, arguments))
        return RecallResult(answer.text, answer.is_error)


class AsyncRecallTools(Tools):
    """The tools of a session; `name in tools` says whether a call is one of theirs."""

    def __init__(
        self,
        request: ListRecallToolsRequest,
        listed: ListRecallToolsResponse,
        run: Callable[[CallRecallToolRequest], Awaitable[CallRecallToolResponse]],
    ) -> None:
        super().__init__(request, listed)
        self._run = run

    async def call(self, name: str, arguments: str | bytes | Mapping[str, Any]) -> RecallResult:
        """Run a model's call. The model's mistakes are reported to it in the result."""
        answer = await self._run(self._call_request(name, arguments))
        return RecallResult(answer.text, answer.is_error)
