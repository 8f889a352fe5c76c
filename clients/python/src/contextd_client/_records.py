"""Records of model calls and of their contexts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from contextd_client import _calls
from contextd_client._caller import Caller
from contextd_client._formats import FormatName
from contextd_client._recall import RecallTools, list_request
from contextd_client._requests import checked
from contextd_client._usage import Usage
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

    def record_model_call(
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
        return self._call(self.stub.RecordModelCall, request).calibration

    def explain(self, session_id: str, text: str = "", *, call: int = 0) -> ExplainCallResponse:
        """What the model saw of a text or a pointer in a recorded call, and if not, why.

        call: counted from 1; 0: the newest.
        """
        request = checked(ExplainCallRequest, session_id=session_id, text=text, call=call)
        return self._call(self.stub.ExplainCall, request)

    def list_calls(self, session_id: str) -> Iterator[ModelCall]:
        """The recorded model calls of a session, oldest first."""
        request = checked(ListModelCallsRequest, session_id=session_id)
        while True:
            page = self._call(self.stub.ListModelCalls, request)
            yield from page.calls
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def list_projections(self, session_id: str) -> Iterator[Projection]:
        """The recorded projections of a session, oldest first."""
        request = checked(ListProjectionsRequest, session_id=session_id)
        while True:
            page = self._call(self.stub.ListProjections, request)
            yield from page.projections
            if not page.next_page_token:
                return
            request.page_token = page.next_page_token

    def replay_projection(self, session_id: str, projection_id: str) -> ReplayProjectionResponse:
        """A recorded projection rebuilt from the log, and whether the hash is the same."""
        request = checked(
            ReplayProjectionRequest, session_id=session_id, projection_id=projection_id
        )
        return self._call(self.stub.ReplayProjection, request)

    def render_projection(self, session_id: str, projection_id: str = "") -> Rendering:
        """The messages of a recorded projection, rebuilt from the log; by default the newest's."""
        request = checked(
            RenderProjectionRequest, session_id=session_id, projection_id=projection_id
        )
        return Rendering.of(
            self._all(lambda: self.stub.RenderProjection(request, timeout=self._timeout))
        )

    def resolve_pointer(self, session_id: str, pointer: str) -> ResolvePointerResponse:
        """The raw body of a pointer in a context."""
        request = checked(ResolvePointerRequest, session_id=session_id, pointer=pointer)
        return self._call(self.stub.ResolvePointer, request)

    def recall(self, session_id: str, pointer: str) -> str:
        """The text of a pointer in a context. For other content use resolve_pointer."""
        return _calls.text_of(self.resolve_pointer(session_id, pointer).block)

    def recall_tools(
        self, session_id: str, format: FormatName, *, recall_tool: str | None = None
    ) -> RecallTools:
        """Tools by which the session's model reads its own log, in a provider's form.

        recall_tool: the name of the tool that returns a pointer's body. None: the name in the
            session's policy, or recall.
        """
        request = list_request(session_id, format, recall_tool)
        listed = self._call(self.stub.ListRecallTools, request)
        return RecallTools(request, listed, lambda call: self._call(self.stub.CallRecallTool, call))
