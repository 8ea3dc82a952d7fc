from __future__ import annotations

import math

from gpurules.reasoning.causes import Ranked, rank


def test_a_decisive_word_alone_is_a_finding() -> None:
    assert rank([("a", "decisive", "r1")], {}) == [Ranked("a", round(1 / (1 + math.exp(-5)), 4), (), True)]


def test_a_weak_word_alone_is_no_finding_and_a_strong_one_is() -> None:
    weak, strong = rank([("a", "weak", "r1")], {})[0], rank([("a", "strong", "r1")], {})[0]
    assert (weak.is_finding, strong.is_finding) == (False, True)
    assert (weak.confidence, strong.confidence) == (0.4256, 0.7311)


def test_a_rule_counts_once_however_often_it_fired() -> None:
    once = rank([("a", "weak", "r1")], {})
    assert rank([("a", "weak", "r1"), ("a", "weak", "r1")], {}) == once
    assert rank([("a", "weak", "r1"), ("a", "weak", "r2")], {})[0].confidence > once[0].confidence


def test_causes_of_a_symptom_share_with_something_else() -> None:
    ranked = rank([], {"s": {"a": 0.0, "b": 0.0}})
    assert [(r.cause, r.confidence, r.symptoms, r.supported) for r in ranked] == [
        ("a", 0.3333, ("s",), False),
        ("b", 0.3333, ("s",), False),
    ]


def test_evidence_moves_the_ranking_within_a_symptom() -> None:
    ranked = rank([("b", "strong", "r"), ("a", "against", "q")], {"s": {"a": 0.0, "b": 0.0}})
    assert [r.cause for r in ranked] == ["b", "a"]
    total = math.exp(2) + math.exp(-1.5) + 1
    assert ranked[0].confidence == round(math.exp(2) / total, 4)


def test_excludes_takes_a_cause_out_whatever_speaks_for_it() -> None:
    ranked = rank([("a", "decisive", "r"), ("a", "excludes", "q")], {"s": {"a": 0.0, "b": 0.0}})
    assert [r.cause for r in ranked] == ["b"]


def test_equal_ranks_go_by_id_and_order_of_evidence_does_not_matter() -> None:
    evidence = [("b", "strong", "r1"), ("a", "strong", "r2"), ("c", "weak", "r3")]
    assert rank(evidence, {}) == rank(evidence[::-1], {})
    assert [r.cause for r in rank(evidence, {})] == ["a", "b", "c"]


def test_a_cause_takes_its_best_symptom() -> None:
    ranked = rank([], {"s": {"a": 2.0}, "t": {"a": -2.0, "b": 0.0}})
    assert ranked[0] == Ranked("a", round(math.exp(2) / (1 + math.exp(2)), 4), ("s", "t"), False)
