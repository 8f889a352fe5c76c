"""Records of model calls and of their contexts."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from contextd_client import _calls
from contextd_client._formats import FormatName
from contextd_client._recall import AsyncRecallTools, list_request
from contextd_client._requests import checked
from contextd_client._usage import Usage
from contextd_client.aio._caller import Caller
from contextd_client.context import Context, Rendering
from contextd_client.v1.projection_pb2 import (
    ListProjectionsRequest,
    Projection,
    ReplayProjectionRequest,
    ReplayProjectionResponse,
    ResolvePointerRequest,
    ResolvePointerResponse,
)
from contextd_client.v1.replay_pb2 import RenderProjectionRequest
from contextd_client.v1.tokens_pb2 import (
    ExplainCallRequest,
    ExplainCallResponse,
    ListModelCallsRequest,
    ModelCall,
)


class Records(Caller):
    """The part of the client for what was recorded."""

    async def record_model_call(
        self,
        context: Context,
        response: Any = None,
        *,
        usage: Usage | None = None,
        rejected_over_budget: bool = False,
        idempotency_key: str = "",
    ) -> float:
        """Report the token counts of a provider's response, or a usage. Returns the calibration
        from now on: real tokens / estimated tokens.

        idempotency_key: reports of one key count once; by default each has a key of its own.
        """
        request = _calls.record_request(
            context, response, usage, rejected_over_budget, idempotency_key
        )
        return (await self._call(self.stub.RecordModelCall, request)).calibration

    async def explain(
        self, session_id: str, text: str = "", *, call: int = 0
    ) -> ExplainCallResponse:
        """What the model saw of a text or a pointer in a recorded call, and if not, why.

        call: counted from 1; 0: the newest.
        """
        request = checked(ExplainCallRequest, session_id=session_id, text=text, call=call)
        return await self._call(self.stub.ExplainCall, request)

    async def list_calls(self, session_id: str) -> AsyncIterator[ModelCall]:
        """The recorded model calls of a session, oldest first."""
        request = checked(ListModelCallsRequest, session_id=session_id)
        while True:
            page = await self._call(self.stub.ListModelCalls, request)
            for call in page.calls:
                yield call
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def list_projections(self, session_id: str) -> AsyncIterator[Projection]:
        """The recorded projections of a session, oldest first."""
        request = checked(ListProjectionsRequest, session_id=session_id)
        while True:
            page = await self._call(self.stub.ListProjections, request)
            for projection in page.projections:
                yield projection
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    async def replay_projection(
        self, session_id: str, projection_id: str
    ) -> ReplayProjectionResponse:
        """A recorded projection rebuilt from the log, and whether the hash is the same."""
        request = checked(
            ReplayProjectionRequest, session_id=session_id, projection_id=projection_id
        )
        return await self._call(self.stub.ReplayProjection, request)

    async def render_projection(self, session_id: str, projection_id: str = "") -> Rendering:
        """The messages of a recorded projection, rebuilt from the log; by default the newest's."""
        request = checked(
            RenderProjectionRequest, session_id=session_id, projection_id=projection_id
        )
        return Rendering.of(
            await self._all(lambda: self.stub.RenderProjection(request, timeout=self._timeout))
        )

    async def resolve_pointer(self, session_id: str, pointer: str) -> ResolvePointerResponse:
        """The raw body of a pointer in a context."""
        request = checked(ResolvePointerRequest, session_id=session_id, pointer=pointer)
        return await self._call(self.stub.ResolvePointer, request)

    async def recall(self, session_id: str, pointer: str) -> str:
        """The text of a pointer in a context. For other content use resolve_pointer."""
        return _calls.text_of((await self.resolve_pointer(session_id, pointer)).block)

    async def recall_tools(
        self, session_id: str, format: FormatName, *, recall_tool: str | None = None
    ) -> AsyncRecallTools:
        """Tools by which the session's model reads its own log, in a provider's form.

        recall_tool: the name of the tool that returns a pointer's body. None: the name in the
            session's policy, or recall.
        """
        request = list_request(session_id, format, recall_tool)
        listed = await self._call(self.stub.ListRecallTools, request)
        return AsyncRecallTools(
            request, listed, lambda call: self._call(self.stub.CallRecallTool, call)
        )
