"""What became of a rule that did not fire."""

from __future__ import annotations

from typing import Any

import pytest
from gpurules.engine.ir import Conclusion, Join, Pattern, Row, Rule, Test
from gpurules.engine.native import RuleBase
from gpurules.engine.outcome import outcome

OLD = Test("version", "lt", 500)
JOINED = Join("gpu", "eq", "g", "id")
RULE = Rule(
    "r",
    (
        Pattern("g", "gpu", (Test("cc", "ge", 90),)),
        Pattern("n", "waiver", joins=(JOINED,), negated=True),
        Pattern("d", "driver", (OLD,), (JOINED,)),
    ),
    (Conclusion("hit", {}),),
)
GPU: Row = ("gpu", {"id": "g0", "cc": 90})
DRIVER: Row = ("driver", {"gpu": "g0", "version": 470})


def result(rows: list[Row]) -> dict[str, Any]:
    """The outcome's state and reason, with rows by content."""
    memory = RuleBase([RULE]).run(rows)
    o = outcome(RULE, memory)
    return {
        "state": o.state,
        "matched": [memory.rows[i][0] for i in o.matched],
        "pattern": o.pattern,
        "reason": o.reason,
        "row": None if o.row is None else dict(memory.rows[o.row][1]),
        "test": o.test,
        "field": o.field,
    }


def expect(
    state: str, matched: list[str], pattern: int | None = None, reason: str | None = None, **more: Any
) -> dict[str, Any]:
    base = {
        "state": state,
        "matched": matched,
        "pattern": pattern,
        "reason": reason,
        "row": None,
        "test": None,
        "field": None,
    }
    return {**base, **more}


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        ([GPU, DRIVER], expect("fired", ["gpu", "driver"])),
        ([], expect("not_checked", [], 0, "no_row")),
        ([GPU], expect("not_checked", ["gpu"], 2, "no_row")),
        (
            [("gpu", {"id": "g0", "cc": 80}), DRIVER],
            expect("not_applicable", [], 0, "test_false", row={"id": "g0", "cc": 80}, test=Test("cc", "ge", 90)),
        ),
        (
            [("gpu", {"id": "g0"}), DRIVER],
            expect("not_checked", [], 0, "unknown_field", row={"id": "g0"}, test=Test("cc", "ge", 90), field="cc"),
        ),
        (
            [GPU, ("driver", {"gpu": "g0", "version": 580})],
            expect("not_applicable", ["gpu"], 2, "test_false", row={"gpu": "g0", "version": 580}, test=OLD),
        ),
        (
            # the driver of another card fails the join only, so it is nearer than the other one
            [GPU, ("driver", {"gpu": "g1", "version": 470}), ("driver", {"gpu": "g2", "version": 580})],
            expect("not_applicable", ["gpu"], 2, "test_false", row={"gpu": "g1", "version": 470}, test=JOINED),
        ),
        (
            [("gpu", {"cc": 90}), DRIVER],
            expect("not_checked", ["gpu"], 2, "unknown_field", row={"cc": 90}, test=JOINED, field="id"),
        ),
        (
            # of two partial matches the one with something unknown is told
            [
                GPU,
                ("gpu", {"id": "g1", "cc": 90}),
                ("driver", {"gpu": "g0", "version": 580}),
                ("driver", {"gpu": "g1"}),
            ],
            expect("not_checked", ["gpu"], 2, "unknown_field", row={"gpu": "g1"}, test=OLD, field="version"),
        ),
        (
            [GPU, DRIVER, ("waiver", {"gpu": "g0"})],
            expect("not_applicable", ["gpu", "driver"], 1, "blocked", row={"gpu": "g0"}),
        ),
        (
            [GPU, DRIVER, ("waiver", {})],
            expect("not_checked", ["gpu", "driver"], 1, "maybe_blocked", row={}, test=JOINED, field="gpu"),
        ),
        (
            [GPU, DRIVER, ("waiver", {}), ("waiver", {"gpu": "g0"})],
            expect("not_applicable", ["gpu", "driver"], 1, "blocked", row={"gpu": "g0"}),
        ),
        ([GPU, DRIVER, ("waiver", {"gpu": "g1"})], expect("fired", ["gpu", "driver"])),
    ],
)
def test_outcome(rows: list[Row], expected: dict[str, Any]) -> None:
    assert result(rows) == expected


def test_a_fired_rule_has_its_firings() -> None:
    memory = RuleBase([RULE]).run([GPU, DRIVER])
    assert outcome(RULE, memory).firings == memory.firings("r") != ()


def test_one_row_cannot_stand_for_two_patterns() -> None:
    rule = Rule("two", (Pattern("a", "t"), Pattern("b", "t")), (Conclusion("hit", {}),))
    memory = RuleBase([rule]).run([("t", {"x": 1})])
    o = outcome(rule, memory)
    assert (o.state, o.matched, o.pattern, o.reason) == ("not_checked", (0,), 1, "no_row")


def test_the_search_backtracks_to_the_deepest_partial_match() -> None:
    rule = Rule(
        "deep",
        (
            Pattern("a", "a"),
            Pattern("b", "b", joins=(Join("k", "eq", "a", "k"),)),
            Pattern("c", "c", joins=(Join("k", "eq", "b", "v"),)),
        ),
        (Conclusion("hit", {}),),
    )
    rows: list[Row] = [("a", {"k": k}) for k in range(5)]
    rows += [("b", {"k": 3, "v": 7}), ("c", {"k": 8})]
    memory = RuleBase([rule]).run(rows)
    o = outcome(rule, memory)
    assert [dict(memory.rows[i][1]) for i in o.matched] == [{"k": 3}, {"k": 3, "v": 7}]
    assert (o.state, o.pattern, o.reason, o.row) == ("not_applicable", 2, "test_false", memory.find(("c", {"k": 8})))
