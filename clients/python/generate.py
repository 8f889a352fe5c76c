"""Generate the modules of contextd_client/v1 from the protos of the repository.

Run it by hand (`python generate.py`, with the generators of pyproject.toml's
build-system installed), or let the build run it. A source distribution holds the
generated modules and no protos; there it does nothing.

The protos are those of contextd/v1, and so is the name of their package on the wire. Their
files get the name of this package's folder, by which the generated modules import each other.

The validation rules of buf.validate are only used by the daemon. They are removed from the
descriptors, so that the package does not depend on their runtime.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

HERE = Path(__file__).resolve().parent
REPOSITORY = HERE.parent.parent
PROTOS = REPOSITORY / "proto"
INCLUDE = REPOSITORY / ".build" / "include"
SOURCES = HERE / "src"
VALIDATE = "buf/validate/validate.proto"
PACKAGE = "contextd_client"


def main() -> None:
    """Generate the modules, or report why that is not possible."""
    files = sorted(str(p.relative_to(PROTOS)) for p in PROTOS.glob("contextd/v1/*.proto"))
    if not files:
        if not any((SOURCES / PACKAGE / "v1").glob("*_pb2.py")):
            raise SystemExit("neither protos nor generated modules are there")
        return
    if not (INCLUDE / VALIDATE).exists():
        target = str((INCLUDE / VALIDATE).relative_to(REPOSITORY))
        subprocess.run(["make", "-s", target], cwd=REPOSITORY, check=True)
    with tempfile.TemporaryDirectory() as directory:
        whole, plain = Path(directory) / "whole", Path(directory) / "plain"
        protoc(
            f"-I{PROTOS}",
            f"-I{INCLUDE}",
            "--include_imports",
            "--include_source_info",
            f"--descriptor_set_out={whole}",
            *files,
        )
        plain.write_bytes(prepared(whole.read_bytes()))
        protoc(
            f"--descriptor_set_in={plain}",
            f"--python_out={SOURCES}",
            f"--grpc_python_out={SOURCES}",
            f"--mypy_out=quiet:{SOURCES}",
            f"--mypy_grpc_out=quiet:{SOURCES}",
            *(own(file) for file in files),
        )
    for made in (SOURCES / PACKAGE / "v1").glob("*_pb2_grpc.py*"):
        if not made.name.partition("_pb2_grpc")[0].endswith("_service"):
            made.unlink()


def protoc(*arguments: str) -> None:
    plugins = [
        f"--plugin={name}={plugin(name)}" for name in ("protoc-gen-mypy", "protoc-gen-mypy_grpc")
    ]
    subprocess.run([sys.executable, "-m", "grpc_tools.protoc", *plugins, *arguments], check=True)


def plugin(name: str) -> str:
    beside = Path(sys.executable).parent / name
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        raise SystemExit(f"{name} is missing; it comes with mypy-protobuf")
    return found


def own(file: str) -> str:
    """The name of a proto's file in this package."""
    return file.replace("contextd/", f"{PACKAGE}/", 1) if file.startswith("contextd/") else file


def prepared(descriptors: bytes) -> bytes:
    """The descriptors without validation rules, with the names of this package."""
    from google.protobuf import descriptor_pb2

    files = descriptor_pb2.FileDescriptorSet.FromString(descriptors)
    kept = descriptor_pb2.FileDescriptorSet()
    for file in files.file:
        if file.name == VALIDATE:
            continue
        # The rules are extensions. Those are not registered here, so they are unknown fields.
        file.DiscardUnknownFields()
        others = [name for name in file.dependency if name != VALIDATE]
        del file.dependency[:]
        file.dependency.extend(own(name) for name in others)
        file.name = own(file.name)
        kept.file.append(file)
    return kept.SerializeToString()


class GenerateHook(BuildHookInterface[Any]):
    """Generates before the package is built."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Called by hatchling before each build."""
        main()


if __name__ == "__main__":
    main()
