"""The command runner against real programs that behave badly."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from gpurules.probes.runner import Result, SystemRunner

pytestmark = pytest.mark.skipif(os.name != "posix", reason="stub programs are shell scripts")

Program = Callable[[str, str], Path]


def run(folder: Path, name: str, *arguments: str, limit_s: float = 5.0, max_bytes: int = 4 << 20) -> Result:
    runner = SystemRunner({"PATH": f"{folder}:/usr/bin:/bin", "LANG": "de_DE.UTF-8", "LANGUAGE": "de", "KEPT": "yes"})
    return runner.run([name, *arguments], limit_s=limit_s, max_bytes=max_bytes)


def test_output_and_return_code(program: Program) -> None:
    folder = program("tool", 'echo "out $1"; echo err >&2; exit 9')
    assert run(folder, "tool", "a b; exit 1") == Result("ok", "out a b; exit 1\n", "err\n", 9)


def test_c_locale_and_no_standard_input(program: Program) -> None:
    folder = program("tool", 'echo "$LC_ALL|$LANG|$LANGUAGE|$KEPT"; cat')
    assert run(folder, "tool") == Result("ok", "C|||yes\n", "", 0)


def test_missing_program(tmp_path: Path) -> None:
    assert run(tmp_path, "no-such-tool") == Result("missing")


def test_file_without_permission(tmp_path: Path) -> None:
    plain = tmp_path / "plain"
    plain.write_text("text")
    assert run(tmp_path, os.fspath(plain)) == Result("permission")


def test_file_that_is_no_program(program: Program) -> None:
    folder = program("broken", "")
    (folder / "broken").write_bytes(b"\x7fELFnonsense")
    assert run(folder, "broken") == Result("missing")


def test_hanging_program_is_killed_with_its_children(program: Program, tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    folder = program("tool", f'echo begin; (sleep 1; echo late > "{mark}") & sleep 30')
    begin = time.monotonic()
    result = run(folder, "tool", limit_s=0.3)
    assert result == Result("timeout", "begin\n", "", None)
    assert time.monotonic() - begin < 2.0
    time.sleep(1.0)
    assert not mark.exists()


def test_endless_output_is_cut(program: Program) -> None:
    result = run(program("tool", "exec yes"), "tool", max_bytes=1000)
    assert result == Result("too_large", "y\n" * 500, "", None)


def test_grandchild_that_keeps_the_pipe_open(program: Program) -> None:
    begin = time.monotonic()
    result = run(program("tool", "echo done; sleep 20 & exit 3"), "tool")
    assert result == Result("ok", "done\n", "", 3)
    assert time.monotonic() - begin < 3.0


def test_program_killed_by_a_signal(program: Program) -> None:
    assert run(program("tool", "kill -ABRT $$"), "tool") == Result("ok", "", "", -6)


def test_bytes_that_are_no_utf8(program: Program) -> None:
    assert run(program("tool", "printf 'a\\377b'"), "tool").stdout == "a\ufffdb"
