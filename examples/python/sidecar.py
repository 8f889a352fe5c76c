"""Finds the daemon, or starts one of our own."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import threading
from collections.abc import Iterator


@contextlib.contextmanager
def sidecar(given: str | None) -> Iterator[str]:
    """The address that was given, that of CONTEXTD_ADDR, or that of a child, which is
    stopped at the end."""
    address = given or os.environ.get("CONTEXTD_ADDR")
    if address:
        yield address
        return
    binary = os.environ.get("CONTEXTD_BINARY") or shutil.which("contextd")
    if binary is None:
        raise SystemExit("no contextd: set CONTEXTD_ADDR or CONTEXTD_BINARY, or put it in PATH")
    flags = ["--store", "memory", "--listen", "127.0.0.1:0", "--log-format", "json"]
    child = subprocess.Popen([binary, "serve", *flags], stderr=subprocess.PIPE, text=True)
    try:
        yield _listening(child)
    finally:
        child.terminate()
        child.wait(timeout=30)


def _listening(child: subprocess.Popen[str]) -> str:
    assert child.stderr is not None
    for line in child.stderr:
        entry = json.loads(line)
        if entry["msg"] == "listening":
            # What it says later is read and dropped, so that it never waits for us.
            threading.Thread(target=child.stderr.read, daemon=True).start()
            return entry["address"]
    raise SystemExit("contextd ended before it listened")
