"""The code on an adapter's page of the documentation."""

from __future__ import annotations

import re
from typing import Any

import pytest
from conftest import REPOSITORY


def run(name: str, given: dict[str, str], **values: Any) -> dict[str, Any]:
    """Run it with some texts replaced, and return the names that it defines."""
    page = REPOSITORY / "docs" / "adapters" / f"{name}.md"
    if not page.exists():
        pytest.skip("not in a checkout: there are no pages")
    program = "\n".join(re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL))
    for text, value in given.items():
        assert text in program
        program = program.replace(text, value)
    defined = {"__name__": name, **values}
    exec(compile(program, str(page), "exec"), defined)
    return defined
