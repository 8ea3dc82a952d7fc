"""The functions that computed fields and figures of fixes are made with.

May live here: their values, and how a fact and a fix show them. Must not: the rules that use them (they have examples).
"""

from __future__ import annotations

import pytest
from gpurules.facts import Fact
from gpurules.knowledge.functions import FUNCTIONS, compute, operands_fault
from gpurules.knowledge.loader import load_knowledge
from gpurules.knowledge.problems import Problems
from gpurules.knowledge.vocabulary import load_vocabulary


@pytest.mark.parametrize(
    ("name", "operands", "value"),
    [
        ("sum", [1, 2, 3], 6),
        ("difference", [10, 3, 4], 3),
        ("product", [3, 4], 12),
        ("quotient", [32, 8], 4),
        ("quotient", [33, 8], 4),
        ("quotient", [1, 0], None),
        ("percent", [1, 3], 33),
        ("percent", [1, 0], None),
        ("largest", [1, 3], 3),
        ("smallest", [1, 3], 1),
        ("sum", [1, None], None),
        ("sum", [1, True], None),
        ("sum", [1, "2"], None),
    ],
)  # fmt: skip
def test_values(name: str, operands: list[object], value: int | None) -> None:
    assert compute(name, operands) == value


def test_uses_are_checked() -> None:
    assert operands_fault("sum", ["a", "b", 3]) is None
    assert str(operands_fault("quotient", ["a", "b", "c"])) == '"quotient" takes 2 operands'
    assert str(operands_fault("sum", ["a"])) == '"sum" takes 2 or more operands'
    assert str(operands_fault("root", ["a", "b"])).startswith('unknown function "root": there are ')
    assert all(function.about for function in FUNCTIONS.values())


def test_computed_fields_follow_from_the_stated_ones() -> None:
    vocabulary = load_knowledge().vocabulary
    message = {"kind": "torch_oom", "text": "CUDA out of memory", "requested_mib": 600, "total_mib": 8000}
    _type, row = vocabulary.lower(
        Fact("error", {**message, "free_mib": 100, "allocated_mib": 4000, "reserved_mib": 900})
    )
    assert (row["held_mib"], row["obtainable_mib"], row["short_mib"]) == (4900, 1000, -400)
    assert (row["elsewhere_mib"], row["elsewhere_pct"], row["reserved_pct"]) == (3000, 37, 11)
    _type, row = vocabulary.lower(Fact("error", message))
    assert "obtainable_mib" not in row
    assert row["requested_pct"] == 7


def test_faults_of_the_vocabulary_are_named(tmp_path: object) -> None:
    path = tmp_path / "vocabulary.yaml"  # type: ignore[operator]
    path.write_text(
        "types:\n"
        "  thing:\n"
        "    kind: observed\n"
        "    fields:\n"
        "      a: {type: int}\n"
        "      b: {type: int, computed: [sum, a, c]}\n"
        "      c: {type: str, computed: [sum, a, 1]}\n"
        "      d: {type: int, computed: [root, a, a]}\n",
        encoding="utf-8",
    )
    problems = Problems()
    load_vocabulary(path, problems)
    found = {problem.field: str(problem.message) for problem in problems.found}
    assert found["thing.b.computed"] == '"c" is no int field of thing that stands before it'
    assert found["thing.c.computed"] == "a computed field is an int"
    assert found["thing.d.computed"].startswith('unknown function "root"')
