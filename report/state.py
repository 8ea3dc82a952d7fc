"""The last report, kept in the user's state folder so that `why` and its kin can refer to it.

May live here: where that file is, writing it whole and private, reading it. Must not: the report's content.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path

from .model import Report


def last_report_path(environ: Mapping[str, str] | None = None) -> Path:
    """$XDG_STATE_HOME/gpurules/last.json, by default under ~/.local/state; %LOCALAPPDATA% on Windows."""
    values = os.environ if environ is None else environ
    if sys.platform == "win32" and values.get("LOCALAPPDATA"):
        return Path(values["LOCALAPPDATA"], "gpurules", "last.json")
    stated = values.get("XDG_STATE_HOME", "")
    base = Path(stated) if os.path.isabs(stated) else Path.home() / ".local" / "state"
    return base / "gpurules" / "last.json"


def save_last(report: Report, path: Path | None = None) -> Path:
    """Replace the last report in one step; folder and file are the owner's only. Raises OSError or RuntimeError."""
    path = path or last_report_path()
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    path.parent.chmod(0o700)
    return write_private(path, report.to_json() + "\n")


def write_private(path: Path, text: str) -> Path:
    """Write a file in one step, readable by its owner only. Raises OSError."""
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.stem}-", suffix=".json")  # mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(name, path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise
    return path


def load_report(path: Path) -> Report:
    """A report saved as JSON. Raises OSError, or ValueError where it is no report."""
    return Report.model_validate_json(path.read_bytes())
