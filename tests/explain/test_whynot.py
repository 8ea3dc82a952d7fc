from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from gpurules import pipeline
from gpurules.errors import InputError
from gpurules.facts import Fact, Provenance
from gpurules.knowledge.versions import version_text
from gpurules.reasoning.changes import changed, read_change
from gpurules.reasoning.session import Session
from gpurules.reasoning.whynot import why_not
from gpurules.report.explain_text import render_why_not
from gpurules.report.explanations import WhyNot
from gpurules.report.model import ProofNode, Report

from .machines import CASES, described, knowledge, machine, report_of, session
from .test_why import nodes_of

SAMPLE = CASES[::8]
BUILDS = (
    "torch==2.15.0", "torch==2.15+cu130", "torch>=2.15", "torch==2.13.0+cu129", "torch==2.6.0+cu124", "torch==2.6.0",
    "torch==2.7.1+cu118", "torch==2.14.1+cu126", "torch==1.13.1+cu117", "torch==2.12.0+rocm7.2",
)  # fmt: skip
KINDS = {
    "false", "blocked", "unknown", "absent", "struck", "unpublished", "outranked", "excluded", "against", "weaker",
    "no_effect", "no_cure", "raises",
}  # fmt: skip


def reasons(report: Report, target: str, lang: str = "en") -> WhyNot:
    return pipeline.why_not(report, target, lang)


def first(report: Report, target: str) -> str:
    return reasons(report, target).reasons[0].text


# --- each answer has a reason -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", SAMPLE, ids=lambda p: p.stem)
def test_every_losing_cause_and_every_build_has_a_reason(path: Any) -> None:
    report = report_of(path)
    found = {f.cause for f in report.findings if f.confidence >= 0.5}
    one = session(report)
    for target in (*knowledge().causes, *BUILDS):
        answer = why_not(one, target, "en")
        assert answer is not None
        assert answer.summary
        if not answer.holds:
            assert answer.reasons, f"{path.stem}: no reason for {target}"
            assert all(n.text and n.kind in KINDS for n in answer.reasons), f"{path.stem}, {target}"
        assert answer.holds or target not in found
    # A place of a template that nothing filled; braces of a quoted message are none.
    assert not re.search(r"\{[a-z_]+(?:\.[a-z_|]+)?\}", render_why_not(reasons(report, "torch>=2.15", "zh"), lang="zh"))


# --- and the reason is true: with it out of the way, it is gone -------------------------------------------------------


def blockers_of(answer: WhyNot) -> Iterator[ProofNode]:
    """The blockers about observations: what can be made otherwise, as a computed field by itself cannot."""
    types = knowledge().vocabulary.types
    for node in nodes_of(list(answer.reasons)).values():
        if not node.needs or node.kind not in ("false", "unknown", "blocked"):
            continue
        spec = types[node.needs["type"]]
        computed = any(spec.fields[column.partition("__")[0]].computed for column in node.needs["tests"])
        if spec.kind == "observed" and not computed:
            yield node


def without(one: Session, node: ProofNode) -> Session:
    """The session in which a blocker is out of the way."""
    assert node.needs
    kind, tests = node.needs["type"], node.needs["tests"]
    old = node.fact["fields"] if node.fact and node.fact["type"] == kind else None
    facts = [f for f in one.facts if f.type != kind or dict(f.fields) != old]
    if node.needs["negated"]:
        return Session(one.knowledge, facts, one.engine)
    fields = {**(old or {}), **dict(satisfying(kind, tests))}
    return Session(one.knowledge, [*facts, Fact(kind, fields, (Provenance("user", "test"),))], one.engine)


def satisfying(kind: str, tests: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, Any]]:
    """Field values that pass the tests."""
    for column, test in tests.items():
        base, _, part = column.partition("__")
        spec = knowledge().vocabulary.types[kind].fields[base]
        if spec.type == "sm" and part:
            continue  # part of a number that another test asks for
        for operator, value in test.items():
            if operator == "known" and len(test) > 1:
                continue
            wanted = value[0] if operator == "in" else value
            if operator == "known":
                sample = {"int": 1, "bool": True, "sm": 89, "version": "1.0", "enum": (spec.values or ("x",))[0]}
                wanted = "GeForce RTX 4090" if spec.type == "gpu_name" else sample.get(spec.type, "x")
            elif operator in ("ne", "not_in"):
                wanted = next(
                    v for v in (*spec.values, "other", "x") if v not in (value if operator == "not_in" else [value])
                )
            elif operator in ("lt", "gt"):
                wanted = value + (-1 if operator == "lt" else 1) * (1 << 12 if part else 1)
            if spec.type == "version" and part.endswith("n") and operator != "known":
                wanted = version_text(wanted)
            yield base, f"1.0+{wanted}" if part == "local" else wanted


@pytest.mark.parametrize("path", SAMPLE, ids=lambda p: p.stem)
def test_a_named_blocker_is_gone_once_it_is_out_of_the_way(path: Any) -> None:
    one = session(report_of(path))
    tried = 0
    for cause in list(knowledge().causes)[::3]:
        before = why_not(one, cause, "en")
        assert before is not None
        for node in list(blockers_of(before))[:2]:
            after = why_not(without(one, node), cause, "en")
            assert after is not None
            left = {(n.rule, json.dumps(n.needs, sort_keys=True)) for n in nodes_of(list(after.reasons)).values()}
            assert (node.rule, json.dumps(node.needs, sort_keys=True)) not in left, f"{cause}: {node.text}"
            tried += 1
    assert tried > 5


@pytest.mark.parametrize("gpu", ["NVIDIA GeForce RTX 5090", "NVIDIA GeForce RTX 3090", "Tesla V100-SXM2-16GB"])
@pytest.mark.parametrize("driver", ["470.82.01", "535.183.01", "570.124.06"])
def test_the_change_that_is_named_for_a_build_lifts_its_strike(gpu: str, driver: str) -> None:
    report = machine(gpu=gpu, driver=driver, python="3.9.1")
    one = session(report)
    for target in BUILDS:
        answer = reasons(report, target)
        if not answer.changes:
            continue
        struck = {n.text for n in answer.reasons if n.kind == "struck"}
        changes = [read_change(c.change, knowledge()) for c in answer.changes]
        after = why_not(Session(knowledge(), changed(one.facts, changes, knowledge())), target, "en")
        assert after is not None
        assert after.holds or answer.reasons[0].text not in {n.text for n in after.reasons}, (target, struck)


# --- what is said -----------------------------------------------------------------------------------------------------


def test_a_build_that_the_driver_rules_out() -> None:
    answer = reasons(machine(), "torch==2.15.0")
    assert answer.reasons[0].text == (
        "2.15.0+cu132: CUDA 13.2 needs driver 580 or newer (minor-version compatibility); this machine has 570.124.06"
    )
    assert answer.reasons[0].where == "machine.yaml:8"
    assert [c.change for c in answer.changes] == ["driver=580"]
    assert "2.15.0 for CUDA 12 was never published: 2.14.1+cu126 was the last" in {n.text for n in answer.reasons}


@pytest.mark.parametrize(
    ("target", "text"),
    [
        ("torch==2.13.0+cu126", "2.13.0+cu126: it holds code for sm_50"),
        ("torch==2.12.1+cu129", "2.12.1+cu129: would run, but 2.13.0+cu129 is a newer torch"),
        ("torch==9.9", "9.9 was never published"),
        ("torch==2.15.0+cu126", "2.15.0+cu126 was never published"),
        ("torch==2.13.0+rocm7.2", "2.13.0+rocm7.2: not considered for this machine"),
    ],
)
def test_why_a_build_is_not_offered(target: str, text: str) -> None:
    assert first(machine(), target).startswith(text)


def test_a_build_of_another_platform() -> None:
    report = machine(family="windows", driver="577.00")
    text = first(report, "torch==2.13.0+rocm7.2")
    assert text == "2.13.0+rocm7.2 was never published for windows-x86_64, only for linux-x86_64"


def test_what_is_the_case_is_referred_to_why() -> None:
    for target in (
        "torch==2.13.0+cu129",
        "1",
        "wheel_missing_new_arch",
        "install_torch_build",
        "gpu_arch",
        "pick-best",
    ):
        answer = reasons(machine(), target)
        assert (answer.holds, answer.reasons) == (True, ()), target
    assert render_why_not(reasons(machine(), "torch==2.13.0+cu129")).endswith("See: gpurules why torch==2.13.0+cu129\n")


def test_a_cause_is_refused_down_to_the_figure_that_was_read() -> None:
    answer = reasons(machine(), "driver_too_old_for_wheel")
    node = next(n for n in answer.reasons if n.rule == "driver-too-old-for-wheel-linux")
    assert (node.kind, node.where) == ("false", "machine.yaml:8")
    assert "oldest driver on Linux above 570.124.06" in node.text


def test_the_unknown_is_named_with_the_command_that_tells_it() -> None:
    report = described({"gpu": {"index": 0, "name": "NVIDIA GeForce RTX 5090"}})
    node = next(n for n in reasons(report, "driver_lacks_gpu").reasons if n.kind == "unknown")
    assert node.obtain == "nvidia-smi"


def test_absence_that_is_known_is_told_from_what_nobody_looked_at() -> None:
    seen = described(
        {"coverage": {"domain": "packages", "complete": True}}, {"package": {"name": "numpy", "version": "2.0"}}
    )
    texts = {n.kind: n.text for n in nodes_of(list(reasons(seen, "cpu_only_wheel").reasons)).values()}
    assert "all of packages was read, and there is none" in texts["absent"]


def test_fixes_say_whether_the_cause_the_condition_or_the_simulation_fails() -> None:
    kinds = {n.rule: n.kind for n in reasons(machine(), "upgrade_driver").reasons}
    assert kinds["upgrade-driver-for-gpu"] == "false"
    assert "nothing speaks for a cause" in first(machine(), "reboot-for-driver-mismatch")


def test_unknown_targets_name_the_nearest() -> None:
    with pytest.raises(InputError, match='did you mean "cpu_only_wheel"'):
        reasons(machine(), "cpu_only_whel")


def test_the_text_form() -> None:
    text = render_why_not(reasons(machine(), "torch==2.15.0+cu132"))
    assert text.splitlines()[:3] == [
        "torch 2.15.0+cu132 is not offered for this machine:",
        "└─ 2.15.0+cu132: CUDA 13.2 needs driver 580 or newer              machine.yaml:8",
        "   │  (minor-version compatibility); this machine has 570.124.06 [1][2]",
    ]
    assert "What would change it: NVIDIA driver 580\n  gpurules what-if driver=580\n" in text
