"""The tutorial's commands are run, its program is the one that runs, and its output is shown."""

from __future__ import annotations

import fnmatch
import os
import re
import shutil
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import REPOSITORY

PAGE = REPOSITORY / "docs" / "tutorial.md"
INSTALL = ["make build", "python3 -m venv venv", "venv/bin/pip install --quiet ./clients/python"]
"""What the build and test_install run."""


@pytest.mark.skipif(not PAGE.is_file(), reason="not in a checkout: there is no tutorial")
@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash")
def test_the_tutorial(binary: Path, tmp_path: Path) -> None:
    script: list[str] = []
    shown: list[str] = []
    for kind, block in re.findall(r"^```(\w+)\n(.*?)^```$", PAGE.read_text(), re.M | re.S):
        if kind == "python":
            (tmp_path / "agent.py").write_text(block)
        elif kind == "text":
            shown += block.splitlines()
        else:
            script += block.splitlines()
    assert script[: len(INSTALL)] == INSTALL
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "contextd").symlink_to(binary)
    (tmp_path / "venv" / "bin").mkdir(parents=True)
    python = tmp_path / "venv" / "bin" / "python"
    python.write_text(f'#!/bin/sh\nexec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    address = f"127.0.0.1:{free_port()}"
    stop = "trap 'kill $! 2>/dev/null || true' EXIT"
    ran = subprocess.run(
        ["bash", "-eu", "-c", "\n".join([stop, *script[len(INSTALL) :]])],
        cwd=tmp_path,
        env={**os.environ, "CONTEXTD_ADDR": address, "CONTEXTD_LISTEN": address},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    output = iter(ran.stdout.splitlines())
    for line in shown:
        pattern = fnmatch.translate(line.replace("[", "[[]").replace("…", "*"))
        assert any(re.match(pattern, said.rstrip()) for said in output), f"{line}\n\n{ran.stdout}"


def free_port() -> int:
    """A port that nothing listens on."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
