"""The sessions of a framework's conversation: their names, and when the next one begins."""

from __future__ import annotations

import hashlib
import re
from typing import Any, Literal

from contextd_client.v1.session_pb2 import Session

Diverged = Literal["raise", "fork"]
"""What to do if a history does not continue the log: raise HistoryDivergedError, or continue in a
fork. That is an earlier fork that the history continues, or else a new one that shares the log up
to the first difference."""

WRITERS = 8
"""How many times to try again if another writer was faster."""

SEARCHED = 16
"""How many of the newest forks are searched for one that a history continues."""


class OvertakenError(Exception):
    """Another writer was faster: read the log again."""


_ALLOWED = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._:@-]*(/[A-Za-z0-9_][A-Za-z0-9._:@-]*)*")
_REFUSED = re.compile(r"[^A-Za-z0-9._:@/-]+|(?:^|(?<=/))(?=[^A-Za-z0-9_])|/$")
_MADE = re.compile(r".*:[0-9a-f]{16}", re.DOTALL)
_LONGEST = 240
"""The daemon accepts 256 characters; a successor's number needs some of them."""


def session_name(given: str) -> str:
    """The id unchanged if the daemon accepts it; else a readable name with a hash of the id.

    Different ids have different names.
    """
    if not isinstance(given, str) or not given:
        raise ValueError(f"session_id: must be a name, not {given!r:.60}")
    if _ALLOWED.fullmatch(given) and len(given) <= _LONGEST and not _MADE.fullmatch(given):
        return given
    digest = hashlib.sha256(given.encode("utf-8", "surrogatepass")).hexdigest()[:16]
    return f"{_REFUSED.sub('_', given)[:200]}:{digest}"


def version_name(name: str, version: int) -> str:
    """The name of a session's successor."""
    return name if version == 1 else f"{name}/v{version}"


def settings_of(session: Session) -> dict[str, Any]:
    """The settings with which to create a session like another."""
    return {
        "budget": session.budget if session.HasField("budget") else None,
        "policy": session.policy if session.HasField("policy") else None,
        "labels": dict(session.labels),
    }
