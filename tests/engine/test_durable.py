"""The durable-rules engine's process: values at the edges, limits, failures."""

from __future__ import annotations

import stat
import sys
from pathlib import Path

import pytest
from gpurules.engine.durable import DurableEngine, DurableError, DurableUnavailable, DurableWorker
from gpurules.engine.ir import Conclusion, Join, Pattern, Ref, Row, Rule, Test
from gpurules.engine.native import RuleBase

from .harness import view, worker

RULES = [
    Rule(
        "same",
        (Pattern("a", "a"), Pattern("b", "b", joins=(Join("x", "eq", "a", "x"),))),
        (Conclusion("hit", {"x": Ref("a", "x")}),),
    )
]


@pytest.fixture
def shared() -> DurableWorker:
    found = worker()
    if found is None:
        pytest.skip("durable-rules is not available here")
    return found


def test_long_and_unusual_text(shared: DurableWorker) -> None:
    texts = ["x" * 70000, "x" * 70000 + "y", "nul\0", "nul", "\ud800", "漢字", 'q"\\', "\x1b[0m", " ", ""]
    rows: list[Row] = [(t, {"x": text}) for text in texts for t in ("a", "b")]
    expected = RuleBase(RULES).run(rows)
    assert len(expected.firings("same")) == len(texts)
    assert view(DurableEngine(RULES, worker=shared).run(rows)) == view(expected)


def test_many_rules_on_one_type(shared: DurableWorker) -> None:
    rules = [
        Rule(f"r{i}", (Pattern("a", "a", (Test("x", "ge", i), Test("y", "ne", i))),), (Conclusion("hit", {"i": i}),))
        for i in range(150)
    ]
    rows: list[Row] = [("a", {"x": x, "y": 3}) for x in (10, 149)]
    expected = RuleBase(rules).run(rows)
    assert view(DurableEngine(rules, worker=shared).run(rows)) == view(expected)


def test_integers_up_to_the_limit_and_no_further(shared: DurableWorker) -> None:
    top = 2**53 - 1
    rule = Rule("r", (Pattern("a", "a", (Test("x", "ge", top),)),), (Conclusion("hit", {}),))
    engine = DurableEngine([rule], worker=shared)
    for value in (top, top - 1, -top):
        assert view(engine.run([("a", {"x": value})])) == view(RuleBase([rule]).run([("a", {"x": value})]))
    with pytest.raises(DurableError, match=r"a\.x: .* too large"):
        engine.run([("a", {"x": 2**53})])


def test_static_rows_and_many_sessions(shared: DurableWorker) -> None:
    static: list[Row] = [("b", {"x": i}) for i in range(300)]
    base, engine = RuleBase(RULES, static), DurableEngine(RULES, static, worker=shared)
    for x in range(20):
        assert view(engine.run([("a", {"x": x})])) == view(base.run([("a", {"x": x})]))


def test_a_crash_is_survived(shared: DurableWorker) -> None:
    rows: list[Row] = [("a", {"x": 1}), ("b", {"x": 1})]
    with DurableEngine(RULES) as engine:
        expected = view(engine.run(rows))
        process = engine.worker.start()
        process.kill()
        process.wait()
        assert view(engine.run(rows)) == expected
        assert engine.worker.start().pid != process.pid
        last = engine.worker.start()
    assert last.poll() is not None


def script(tmp_path: Path, body: str) -> str:
    """An interpreter that does something else."""
    path = tmp_path / "python"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return str(path)


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
def test_a_hanging_process_is_stopped(tmp_path: Path) -> None:
    python = script(tmp_path, "exec sleep 60")
    with (
        DurableEngine(RULES, python=python, timeout_s=0.2) as engine,
        pytest.raises(DurableError, match=r"took longer than 0\.2 s and was stopped"),
    ):
        engine.run([])


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
def test_a_process_that_keeps_crashing_is_given_up(tmp_path: Path) -> None:
    python = script(tmp_path, f"echo . >> {tmp_path}/starts; kill -SEGV $$")
    with (
        DurableEngine(RULES, python=python) as engine,
        pytest.raises(DurableError, match=r"ended unexpectedly \(status -11\)"),
    ):
        engine.run([])
    assert (tmp_path / "starts").read_text() == ".\n.\n"


@pytest.mark.skipif(sys.platform == "win32", reason="needs a shell")
def test_an_absent_extra_is_named(tmp_path: Path) -> None:
    # an isolated interpreter without site-packages
    python = script(tmp_path, f'exec "{sys.executable}" -S "$@"')
    with DurableEngine(RULES, python=python) as engine, pytest.raises(DurableUnavailable) as error:
        engine.run([])
    assert ("gpurules[durable]" in str(error.value)) is (sys.version_info < (3, 13))
    assert ("3.13" in str(error.value)) is (sys.version_info >= (3, 13))


def test_an_interpreter_that_is_not_there() -> None:
    with (
        DurableEngine(RULES, python="/nonexistent/python") as engine,
        pytest.raises(DurableUnavailable, match="cannot start"),
    ):
        engine.run([])
