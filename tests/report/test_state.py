from __future__ import annotations

import os
import stat
import sys
from pathlib import Path

import pytest
from gpurules.report.model import Report
from gpurules.report.state import last_report_path, load_report, save_last

posix = pytest.mark.skipif(sys.platform == "win32", reason="POSIX modes and folders")


@posix
def test_where(tmp_path: Path) -> None:
    assert last_report_path({"XDG_STATE_HOME": str(tmp_path)}) == tmp_path / "gpurules" / "last.json"
    beside_home = Path.home() / ".local" / "state" / "gpurules" / "last.json"
    assert last_report_path({}) == last_report_path({"XDG_STATE_HOME": "relative"}) == beside_home


@posix
def test_the_last_report_is_whole_and_private(tmp_path: Path, one_problem: Report, healthy: Report) -> None:
    path = tmp_path / "state" / "gpurules" / "last.json"
    old = os.umask(0)
    try:
        assert save_last(healthy, path) == save_last(one_problem, path) == path
    finally:
        os.umask(old)
    assert load_report(path) == one_problem
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["last.json"]


def test_a_folder_in_the_way_is_an_os_error_and_leaves_nothing(tmp_path: Path, healthy: Report) -> None:
    path = tmp_path / "gpurules" / "last.json"
    path.mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        save_last(healthy, path)
    assert [entry.name for entry in path.parent.iterdir()] == ["last.json"]


def test_what_is_no_report_is_a_value_error(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    for text in ("", "{}", '{"schema": "gpurules.report/2"}', "[1]", "\xff"):
        path.write_text(text, encoding="latin-1")
        with pytest.raises(ValueError, match="Report"):
            load_report(path)
