from __future__ import annotations

import re

import pytest
from gpurules import pipeline
from gpurules.errors import InputError
from gpurules.reasoning.why import SessionProofs, explain
from gpurules.report.model import ProofNode
from gpurules.report.proof_text import render_mermaid, render_proofs

from .machines import described, knowledge, machine, reports, session


def nodes_of(roots: list[ProofNode]) -> dict[int, ProofNode]:
    """Every node of the trees, shared parts once."""
    found: dict[int, ProofNode] = {}
    waiting = list(roots)
    while waiting:
        node = waiting.pop()
        if id(node) not in found:
            found[id(node)] = node
            waiting += node.children
    return found


def faults_of(node: ProofNode) -> str | None:
    """What is wrong with a node of a proof: rules have sources, leaves a place or the source of the catalog row."""
    group = node.rule.removeprefix("fix/")
    if node.kind == "rule":
        known = node.rule in knowledge().rules or group in knowledge().fixes or node.rule.startswith("symptom/")
        sourced = bool(node.sources) or node.rule.startswith("symptom/")
        return None if known and sourced and node.text else f"rule {node.rule}: {node.text}"
    if node.children:
        return f"{node.kind} with premises: {node.text}"
    if node.kind == "catalog":
        return None if node.sources and node.sources[0].startswith("https://") else f"catalog: {node.text}"
    return None if node.kind == "observation" and node.where and node.text else f"{node.kind}: {node.text}"


def test_every_proof_of_every_case_ends_in_what_was_read_or_in_a_sourced_catalog() -> None:
    proven = 0
    for path, report in reports():
        targets = [*(f.id for f in report.findings), *(f.id for f in report.fixes)]
        for target in targets:
            kept = explain(report, target, knowledge())
            assert kept, f"{path.name}: no proof of {target}"
            proven += len(kept)
            wrong = [f for n in nodes_of(kept).values() if (f := faults_of(n))]
            assert not wrong, f"{path.name}, {target}: {wrong}"
    assert proven > 200


def test_the_session_proves_the_same_as_the_report_keeps() -> None:
    report = machine()
    proofs = SessionProofs(session(report), "en")
    for finding in report.findings:
        kept = [n.to_dict() for n in explain(report, finding.id, knowledge())]
        rows = [int(i[1:]) for i in finding.evidence]
        again = [proofs.node(i).to_dict() for i in rows]
        assert [texts(n) for n in kept] == [texts(n) for n in again]


def texts(node: dict[str, object]) -> object:
    """The steps of a tree; catalog rows are told in less detail by a report."""
    children = [texts(c) for c in node.get("children", ())]  # type: ignore[attr-defined]
    return (node.get("rule"), node["text"] if node["kind"] == "rule" else node["kind"], children)


def test_a_recommended_build_is_proven_down_to_the_driver_and_the_gpu() -> None:
    report = machine()
    (pick, runs) = pipeline.why(report, "torch==2.13.0+cu129", "en")
    assert (pick.rule, runs.rule) == ("pick-best", "build-runs-by-sass")
    leaves = {n.where for n in nodes_of([pick, runs]).values() if n.kind == "observation"}
    assert leaves == {"machine.yaml:2", "machine.yaml:5"}
    assert pipeline.why(report, "recommendation", "en")[0].rule == "pick-best"


@pytest.mark.parametrize(
    ("target", "rule"),
    [
        ("1", "wheel-predates-gpu"),
        ("wheel_missing_new_arch", "wheel-predates-gpu"),
        ("install-torch-build", "fix/install-torch-build"),
        ("install_torch_build", "fix/install-torch-build"),
        ("gpu_arch", "gpu-arch-from-catalog"),
        ("driver_at", "driver-at-linux"),
        ("gpu-arch-from-catalog", "gpu-arch-from-catalog"),
    ],
)
def test_targets(target: str, rule: str) -> None:
    assert pipeline.why(machine(), target, "en")[0].rule == rule


def test_a_fact_by_its_id_in_both_ways() -> None:
    report = machine()
    fact = next(f for f in report.facts if f.type == "driver")
    for every in (False, True):
        (leaf,) = pipeline.why(report, fact.id, "en", every=every)
        assert (leaf.text, leaf.where) == ("the nvidia driver is 570.124.06", "machine.yaml:8")


def test_another_language_than_the_report() -> None:
    report = machine()
    (first, *_) = pipeline.why(report, "1", "zh")
    assert re.search("[一-鿿]", first.text)
    assert pipeline.why(machine(lang="zh"), "1", "zh")[0].text == first.text


def test_other_proofs_end_in_the_same_conclusion() -> None:
    report = described(
        {"gpu": {"index": 0, "name": "RTX 5090", "sm": "12.0"}}, {"torch": {"version": "2.6.0+cu124", "cuda": "12.4"}}
    )
    least = pipeline.why(report, "1", "en")
    every = pipeline.why(report, "1", "en", every=True)
    assert [n.text for n in every[: len(least)]] == [n.text for n in least]
    assert {n.rule for n in every[len(least) :]} >= {"torch-from-local-version", "gpu-arch-printed"}
    assert [f for n in nodes_of(every).values() if (f := faults_of(n))] == []


def test_what_does_not_hold_is_referred_to_why_not() -> None:
    with pytest.raises(InputError, match=r"see: gpurules why-not \"torch==2.15.0\""):
        pipeline.why(machine(), "torch==2.15.0", "en")
    with pytest.raises(InputError, match="did you mean"):
        pipeline.why(machine(), "wheel_missing_new_arc", "en")


def test_mermaid_labels_are_escaped_and_every_edge_has_its_boxes() -> None:
    leaf = ProofNode('says "no" <b> & `x` #1\n]', where="a.txt:1", kind="observation")
    text = render_mermaid([ProofNode("root", children=(leaf, leaf)), ProofNode("alone")])
    assert text == (
        "flowchart TD\n"
        '  n0["root"]\n'
        '  n1(["says #quot;no#quot; #lt;b#gt; #amp; #96;x#96; #35;1 ] (a.txt:1)"])\n'
        '  n2(["alone"])\n'
        "  n0 --> n1\n"
    )
    drawn = render_mermaid(pipeline.why(machine(), "1", "en"))
    boxes = set(re.findall(r"^  (n\d+)[\[(]", drawn, re.M))
    assert {n for edge in re.findall(r"^  (n\d+) --> (n\d+)$", drawn, re.M) for n in edge} <= boxes
    assert all(line.startswith(("flowchart", "  n")) for line in drawn.splitlines())


def test_a_part_that_stands_above_is_not_drawn_again() -> None:
    shared = ProofNode("both rest on this", children=(ProofNode("ground"),))
    assert render_proofs([ProofNode("a", children=(shared,)), ProofNode("b", children=(shared,))]).splitlines() == [
        "a",
        "└─ both rest on this",
        "   └─ ground",
        "",
        "b",
        "└─ both rest on this",
        "   └─ as above",
    ]
