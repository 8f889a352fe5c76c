"""The README says how to install from a checkout, and that works."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

import pytest
from conftest import REPOSITORY

README = Path(__file__).resolve().parents[1] / "README.md"
COMMANDS = re.findall(r"^    pip install (.*)$", README.read_text(), re.MULTILINE)


def test_nothing_is_installed_from_the_index() -> None:
    """The name contextd belongs to other software there."""
    assert COMMANDS
    for command in COMMANDS:
        assert command.strip("'").startswith("./clients/python"), command


@pytest.mark.skipif(
    not (REPOSITORY / "proto").is_dir(), reason="not in a checkout: there are no protos"
)
def test_the_first_command_works_in_a_fresh_environment() -> None:
    with tempfile.TemporaryDirectory() as directory:
        venv.create(directory, with_pip=True)
        python = Path(directory) / "bin" / "python"
        environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
        run = {"cwd": REPOSITORY, "env": environment, "check": True, "timeout": 900}
        subprocess.run([python, "-m", "pip", "install", "--quiet", *COMMANDS[0].split()], **run)  # type: ignore[call-overload]
        program = (
            "import contextd_client, contextd_client.aio, importlib.metadata as m\n"
            "from contextd_client.v1 import log_pb2\n"
            "assert log_pb2.DESCRIPTOR.package == 'contextd.v1'\n"
            "print(contextd_client.__file__, m.version('contextd-client'))\n"
        )
        told = subprocess.run(
            [python, "-c", program],
            cwd=directory,
            env=environment,
            check=True,
            capture_output=True,
            text=True,
        ).stdout
        assert told.startswith(str(Path(directory).resolve())) or told.startswith(directory), told
        assert sys.prefix not in told
