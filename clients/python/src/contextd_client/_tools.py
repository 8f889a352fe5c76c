"""The tokens of tool schemas, which a request has besides the messages."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from contextd_client import _formats
from contextd_client._formats import FormatName
from contextd_client._rawjson import dumps
from contextd_client.v1.budget_pb2 import Budget
from contextd_client.v1.tokens_pb2 import CountTokensRequest

_MOST = 1024


class ToolSizes:
    """A cache of the daemon's counts, so that the same tools are counted once."""

    def __init__(self) -> None:
        self._sizes: dict[bytes, int] = {}

    def get(self, request: CountTokensRequest) -> int | None:
        """The size; None if it is not known yet."""
        return self._sizes.get(request.SerializeToString(deterministic=True))

    def put(self, request: CountTokensRequest, tokens: int) -> int:
        """Remember a size."""
        if len(self._sizes) >= _MOST:
            self._sizes.clear()
        self._sizes[request.SerializeToString(deterministic=True)] = tokens
        return tokens


def count_request(
    tools: Iterable[Any], budget: Budget | None, format: FormatName
) -> CountTokensRequest:
    """The request to count the tokens of tools in a provider's request."""
    if not isinstance(budget, Budget):
        raise TypeError("budget: must be given with tools, which are added to its overhead_tokens")
    if isinstance(tools, str | bytes | dict):
        raise TypeError(f"tools: must be a list of schemas, not {tools!r:.60}")
    try:
        schemas = dumps([_schema(tool) for tool in tools]).encode()
    except (TypeError, ValueError) as error:
        raise type(error)(f"tools: {error}") from None
    return CountTokensRequest(
        model=budget.model,
        tokenizer=budget.tokenizer,
        tools_json=schemas,
        format=_formats.number(format),
    )


def with_overhead(budget: Budget | None, tokens: int) -> Budget:
    """A copy of a budget with room for that many tokens more."""
    wider = Budget()
    if budget is not None:
        wider.CopyFrom(budget)
    wider.overhead_tokens += tokens
    return wider


def _schema(tool: Any) -> Any:
    """A tool as a JSON value; it may have a type of an SDK."""
    if hasattr(tool, "model_dump"):
        return tool.model_dump(mode="json", by_alias=True, exclude_none=True)
    return tool
