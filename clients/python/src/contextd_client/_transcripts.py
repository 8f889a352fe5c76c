"""Transcripts of harnesses."""

from __future__ import annotations

from contextd_client import _calls, _files
from contextd_client._caller import Caller
from contextd_client._files import Source, Transcript
from contextd_client.v1.budget_pb2 import Budget
from contextd_client.v1.policy_pb2 import Policy
from contextd_client.v1.transcript_pb2 import ImportTranscriptResponse


class Transcripts(Caller):
    """The part of the client for transcripts."""

    def import_transcript(
        self, session_id: str, source: Source, *, harness: str = ""
    ) -> ImportTranscriptResponse:
        """Import a harness's transcript. Importing the same again appends nothing.

        source: the path of a file, its bytes, or a binary file that is open.
        harness: the one that wrote it; empty: detected from the content.
        """
        requests = _calls.import_requests(session_id, harness, _files.read(source))
        return self._repeat(lambda: self.transcript_stub.ImportTranscript(requests()))

    def export_transcript(
        self,
        session_id: str,
        harness: str,
        *,
        as_compacted: bool = False,
        budget: Budget | None = None,
        policy: Policy | None = None,
        harness_session_id: str = "",
        working_directory: str = "",
    ) -> Transcript:
        """A session as the transcript that a harness resumes from; see ExportTranscriptRequest."""
        request = _calls.export_request(
            session_id, harness, as_compacted, budget, policy, harness_session_id, working_directory
        )
        return _files.gathered(self._all(lambda: self.transcript_stub.ExportTranscript(request)))

    def convert_transcript(
        self,
        source: Source,
        to: str,
        *,
        harness: str = "",
        harness_session_id: str = "",
        working_directory: str = "",
    ) -> Transcript:
        """A transcript as one of the harness `to`. Nothing is stored.

        source: the path of a file, its bytes, or a binary file that is open.
        harness: the one that wrote it; empty: detected from the content.
        """
        requests = _calls.convert_requests(
            harness, to, harness_session_id, working_directory, _files.read(source)
        )
        return _files.gathered(
            self._all(lambda: self.transcript_stub.ConvertTranscript(requests()))
        )
