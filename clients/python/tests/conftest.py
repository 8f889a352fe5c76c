"""A real daemon for the tests, and the sessions they write."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import subprocess
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

import contextd_client
import contextd_client.aio

REPOSITORY = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="session")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The daemon: CONTEXTD_BINARY, or built from the repository."""
    given = os.environ.get("CONTEXTD_BINARY")
    if given:
        return Path(given)
    if shutil.which("go") is None:
        pytest.skip("no go to build the daemon with, and CONTEXTD_BINARY is not set")
    if not (REPOSITORY / "cmd" / "contextd").is_dir():
        pytest.skip("no repository to build the daemon from, and CONTEXTD_BINARY is not set")
    out = tmp_path_factory.mktemp("bin") / "contextd"
    subprocess.run(["go", "build", "-o", str(out), "./cmd/contextd"], cwd=REPOSITORY, check=True)
    return out


class Daemon:
    """A daemon with the memory store, which forgets everything when it is restarted."""

    def __init__(self, binary: Path, *flags: str) -> None:
        self._binary = binary
        self._flags = flags
        self.address = self._start("127.0.0.1:0")

    def _start(self, listen: str) -> str:
        arguments = f"serve --store memory --listen {listen} --log-format json".split()
        self._process = subprocess.Popen(
            [str(self._binary), *arguments, "--max-event-bytes", "1MiB", *self._flags],
            stderr=subprocess.PIPE,
            text=True,
        )
        return read_address(self._process)

    def stop(self) -> None:
        """End it."""
        self._process.terminate()
        self._process.wait(timeout=30)

    def start_again(self) -> None:
        """Start another at the same address."""
        self._start(self.address)

    def restart(self) -> None:
        """End it, and start another at the same address."""
        self.stop()
        self.start_again()


@pytest.fixture(scope="session")
def address(binary: Path) -> Iterator[str]:
    """A daemon's address. It listens on a port of its own choice and logs it."""
    daemon = Daemon(binary)
    try:
        yield daemon.address
    finally:
        daemon.stop()


@pytest.fixture
def daemon(binary: Path) -> Iterator[Daemon]:
    """A daemon of the test's own."""
    made = Daemon(binary)
    try:
        yield made
    finally:
        made.stop()


def read_address(daemon: subprocess.Popen[str]) -> str:
    """The address in the daemon's log."""
    assert daemon.stderr is not None
    seen = []
    for line in daemon.stderr:
        seen.append(line)
        entry = json.loads(line)
        if entry["msg"] == "listening":
            # What it says later is read and dropped, so that it never waits for us.
            threading.Thread(target=daemon.stderr.read, daemon=True).start()
            return str(entry["address"])
    raise AssertionError("the daemon ended before it listened:\n" + "".join(seen))


@pytest.fixture
def client(address: str) -> Iterator[contextd_client.Client]:
    """A client of the daemon."""
    with contextd_client.Client(address) as made:
        yield made


@pytest.fixture
async def aclient(address: str) -> AsyncIterator[contextd_client.aio.Client]:
    """An asyncio client of the daemon."""
    async with contextd_client.aio.Client(address) as made:
        yield made


_numbers = itertools.count()


@pytest.fixture
def session_id(request: pytest.FixtureRequest) -> str:
    """A session that no other test has."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    return f"py/s{next(_numbers)}-{name}"[:200]
