"""The examples in docs/api.md run, one after the other, and the document names everything that is public."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import gpurules
import pytest

DOCUMENT = Path(__file__).resolve().parents[2] / "docs" / "api.md"
PYTHON = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def test_the_examples_run(capsys: pytest.CaptureFixture[str]) -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    names: dict[str, Any] = {}
    for block in PYTHON.finditer(text):
        line = text[: block.start(1)].count("\n")
        exec(compile("\n" * line + block[1], str(DOCUMENT), "exec"), names)  # noqa: S102
    assert capsys.readouterr().out


def test_every_public_name_is_described() -> None:
    text = DOCUMENT.read_text(encoding="utf-8")
    assert {name for name in gpurules.__all__ if name not in text} == {"ProofNode", "Provenance", "__version__"}
