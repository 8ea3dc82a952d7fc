"""The ledger of the guides' claims: every claim carried by something that is there, every wrong one corrected."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path

import gpurules
import pytest
import yaml
from gpurules import pipeline
from gpurules.errors import InputError
from gpurules.knowledge.ledger import Ledger, claim_ids
from gpurules.knowledge.loader import load_knowledge

CHECKOUT = Path(__file__).resolve().parents[2]
CORPUS = Path(os.environ.get("GPURULES_CORPUS", CHECKOUT.parent / "shared"))
CLAIMS = CORPUS / "guidance" / "claims.yaml"
needs_claims = pytest.mark.skipif(not CLAIMS.is_file(), reason="the guides' claims are not here")


@pytest.fixture(scope="module")
def ledger() -> Ledger:
    return Ledger(load_knowledge())


def test_every_claim_is_carried_and_nothing_is_at_fault(ledger: Ledger) -> None:
    lines = ledger.lines()
    assert [line.claim for line in lines if line.is_gap] == []
    assert ledger.faults() == []
    assert Counter(line.verdict for line in lines) == {
        "correct": 74,
        "imprecise": 66,
        "outdated": 34,
        "wrong": 23,
        "opinion": 33,
    }


@needs_claims
def test_the_ledger_has_the_claims_and_verdicts_of_the_guides(ledger: Ledger) -> None:
    assert ledger.faults(claim_ids(CLAIMS.name, CLAIMS.read_bytes())) == []
    wanted = {c["id"]: c["verdict"] for c in yaml.safe_load(CLAIMS.read_text(encoding="utf-8"))}
    assert {line.claim: line.verdict for line in ledger.lines()} == wanted


@needs_claims
def test_no_sentence_of_the_guides_is_copied() -> None:
    own = (CHECKOUT / "knowledge" / "errata.yaml").read_text(encoding="utf-8")
    own += (CHECKOUT / "knowledge" / "advice.yaml").read_text(encoding="utf-8")
    for claim in yaml.safe_load(CLAIMS.read_text(encoding="utf-8")):
        for text in (claim["claim"], claim.get("correction") or "", claim["zh"]):
            assert len(text) < 45 or text not in own, claim["id"]


def test_a_carrier_that_is_gone_and_a_claim_without_one_are_gaps(tmp_path: Path) -> None:
    text = (CHECKOUT / "knowledge" / "guidance.yaml").read_text(encoding="utf-8")
    text = text.replace("cuda_cores: 896", "cuda_cores: 897").replace("rule: wsl-windows-too-old", "rule: no-such-rule")
    text += "  G9-OS-01: {verdict: opinion, open: no card does it}\n  G9-OS-02: {verdict: wrong}\n"
    (tmp_path / "guidance.yaml").write_text(text, encoding="utf-8")
    lines, faults = pipeline.rules_coverage(tmp_path)
    gaps = {line.claim: (line.missing, line.open) for line in lines if line.is_gap}
    assert gaps == {
        "G0-CORE-02": (("row:gpu_model GeForce GTX 1650",), None),
        "G0-OS-01": (("rule:no-such-rule",), None),
        "G9-OS-01": ((), "no card does it"),
        "G9-OS-02": ((), None),
    }
    assert faults == ["errata.yaml: G9-OS-02 is wrong and has no correction"]


def test_advice_that_no_rule_calls_for_and_a_rule_without_advice_are_faults(tmp_path: Path) -> None:
    text = (CHECKOUT / "knowledge" / "advice.yaml").read_text(encoding="utf-8")
    (tmp_path / "advice.yaml").write_text(text.replace("  one_lane:", "  one_lanes:"), encoding="utf-8")
    _, faults = pipeline.rules_coverage(tmp_path)
    assert faults == [
        "advice.yaml: one_lane: rule gpu-on-one-lane calls for the advice one_lane, which is not there or not shown "
        'by_rule; did you mean "one_lanes"?',
        "advice.yaml: one_lanes: no rule concludes advice_due of it",
    ]


def test_an_unknown_erratum_names_the_nearest() -> None:
    with pytest.raises(InputError, match="G0-ARCH-06"):
        pipeline.chosen_errata(pipeline.errata(None), ["G0-ARCH-66"])


def test_every_trigger_of_advice_is_known(ledger: Ledger) -> None:
    knowledge = ledger.knowledge
    kinds = {str(entry["kind"]) for entry in knowledge.phrases_data}
    entries = ledger.advice.advice.values()
    assert {s for e in entries for s in e.statements} <= kinds
    assert {c for e in entries for c in e.causes} <= set(knowledge.causes)


@pytest.mark.parametrize(
    ("question", "advice"),
    [
        ("Does NVLink add up the memory of two cards?", "memory_does_not_add_up"),
        ("多卡显存会合并吗", "memory_does_not_add_up"),
        ("How many CUDA cores do I need?", "cores_do_not_rank"),
        ("BERT 微调要多少显存", "bert_memory"),
        ("is dlss useful for training", "graphics_features_do_not_count"),
        ("Should I use torchrun for DDP?", "ddp_launch"),
    ],
)
def test_advice_is_shown_where_the_question_calls_for_it(question: str, advice: str) -> None:
    assert advice in [a.id for a in gpurules.diagnose(question=question).recommendations]


def test_an_explanation_says_where_it_departs_from_a_guide() -> None:
    facts = b"gpus: Tesla P100\ndriver: 580.95.05\nos: Linux x86_64\ntorch: 2.15.0+cu130\n"
    report = pipeline.diagnose(pipeline.Inputs(facts=[("machine.yaml", facts)]))
    told = json.dumps([p.to_dict() for p in pipeline.why(report, "1", "en")])
    assert told.count("departs from the guides (G0-ARCH-04)") == 1
