"""Each line of the docstring of `engine/ir.py`, on every engine at hand (see `harness.run`)."""

from __future__ import annotations

import pytest
from gpurules.engine.ir import Conclusion, Join, Pattern, Ref, Row, Rule, Test
from gpurules.engine.memory import WorkingMemory
from gpurules.engine.native import RuleBase, RuleError
from gpurules.facts import Scalar

from .harness import run


def concluded(memory: WorkingMemory, type_: str) -> list[dict[str, Scalar]]:
    return [dict(memory.rows[i][1]) for i in memory.of_type(type_)]


def select(test: Test, values: list[Scalar | None]) -> list[Scalar | None]:
    """The values of field x that pass a test."""
    rule = Rule("r", (Pattern("a", "t", (test,)),), (Conclusion("hit", {"i": Ref("a", "i")}),))
    rows: list[Row] = [("t", {"i": i} if v is None else {"i": i, "x": v}) for i, v in enumerate(values)]
    return [values[int(hit["i"])] for hit in concluded(run([rule], rows), "hit")]


def not_blocked(test: Test, value: Scalar | None) -> bool:
    """Whether `not t(test)` holds when the only row has this value of x."""
    rule = Rule("r", (Pattern("n", "t", (test,), negated=True),), (Conclusion("hit", {}),))
    return bool(concluded(run([rule], [("t", {"y": 1} if value is None else {"x": value})]), "hit"))


VALUES: list[Scalar | None] = [True, False, 0, 1, 5, "1", "True", "", None]


@pytest.mark.parametrize(
    ("test", "expected"),
    [
        (Test("x", "eq", 1), [1]),
        (Test("x", "eq", "1"), ["1"]),
        (Test("x", "eq", True), [True]),
        (Test("x", "eq", ""), [""]),
        (Test("x", "ne", 1), [True, False, 0, 5, "1", "True", ""]),
        (Test("x", "lt", 1), [0]),
        (Test("x", "le", 1), [0, 1]),
        (Test("x", "gt", 0), [1, 5]),
        (Test("x", "ge", 1), [1, 5]),
        (Test("x", "in", (1, "True")), [1, "True"]),
        (Test("x", "in", (True, 1)), [True, 1]),
        (Test("x", "in", ()), []),
        (Test("x", "not_in", (1, "True")), [True, False, 0, 5, "1", ""]),
        (Test("x", "not_in", ()), [True, False, 0, 1, 5, "1", "True", ""]),
        (Test("x", "known"), [True, False, 0, 1, 5, "1", "True", ""]),
    ],
)
def test_operators_and_the_three_kinds_of_value(test: Test, expected: list[Scalar]) -> None:
    got = select(test, VALUES)
    assert [(type(v), v) for v in got] == [(type(v), v) for v in expected]


@pytest.mark.parametrize(
    ("test", "value", "holds"),
    [
        (Test("x", "eq", 1), 2, True),
        (Test("x", "eq", 1), 1, False),
        (Test("x", "eq", 1), "1", True),
        (Test("x", "eq", 1), None, False),
        (Test("x", "ne", 1), 1, True),
        (Test("x", "ne", 1), None, False),
        (Test("x", "lt", 5), 7, True),
        (Test("x", "lt", 5), "7", True),
        (Test("x", "lt", 5), None, False),
        (Test("x", "in", (1, 2)), 3, True),
        (Test("x", "in", (1, 2)), None, False),
        (Test("x", "not_in", (1, 2)), 1, True),
        (Test("x", "not_in", (1, 2)), None, False),
        (Test("x", "known"), 1, False),
        (Test("x", "known"), None, False),
    ],
)
def test_negation_needs_every_row_definitely_excluded(test: Test, value: Scalar | None, holds: bool) -> None:
    assert not_blocked(test, value) is holds


def test_negation_of_an_absent_type_holds() -> None:
    rule = Rule("r", (Pattern("n", "t", negated=True),), (Conclusion("hit", {}),))
    assert concluded(run([rule], []), "hit") == [{}]
    assert concluded(run([rule], [("t", {})]), "hit") == []


def test_one_definitely_false_condition_excludes_a_row_whatever_is_unknown() -> None:
    tests = (Test("x", "eq", 1), Test("y", "eq", 1))
    rule = Rule("r", (Pattern("n", "t", tests, negated=True),), (Conclusion("hit", {}),))
    assert concluded(run([rule], [("t", {"y": 2}), ("t", {"x": 3})]), "hit") == [{}]
    assert concluded(run([rule], [("t", {"y": 1})]), "hit") == []


def test_a_negated_pattern_may_join_any_positive_pattern_and_an_unknown_on_either_side_blocks() -> None:
    rule = Rule(
        "r",
        (
            Pattern("n", "t", joins=(Join("k", "eq", "b", "k"),), negated=True),
            Pattern("a", "a"),
            Pattern("b", "b"),
        ),
        (Conclusion("hit", {"k": Ref("b", "k")}),),
    )
    rows: list[Row] = [("a", {}), ("b", {"k": 1}), ("b", {"k": 2}), ("b", {})]
    assert concluded(run([rule], rows), "hit") == [{}, {"k": 1}, {"k": 2}]
    assert concluded(run([rule], [*rows, ("t", {"k": 2})]), "hit") == [{"k": 1}]
    assert concluded(run([rule], [*rows, ("t", {})]), "hit") == []


@pytest.mark.parametrize(
    ("op", "expected"),
    [
        ("eq", [(1, 1), (2, 2)]),
        ("ne", [(1, 2), (2, 1)]),
        ("lt", [(1, 2)]),
        ("le", [(1, 1), (1, 2), (2, 2)]),
        ("gt", [(2, 1)]),
        ("ge", [(1, 1), (2, 1), (2, 2)]),
    ],
)
def test_joins_compare_the_own_field_with_the_earlier_rows(op: str, expected: list[tuple[int, int]]) -> None:
    rule = Rule(
        "r",
        (Pattern("a", "a"), Pattern("b", "b", joins=(Join("y", op, "a", "x"),))),
        (Conclusion("hit", {"y": Ref("b", "y"), "x": Ref("a", "x")}),),
    )
    rows: list[Row] = [("a", {"x": 1}), ("a", {"x": 2}), ("a", {}), ("b", {"y": 1}), ("b", {"y": 2}), ("b", {})]
    assert [(h["y"], h["x"]) for h in concluded(run([rule], rows), "hit")] == sorted(
        expected, key=lambda pair: (pair[1], pair[0])
    )


def test_several_joins_of_one_pattern_all_count() -> None:
    joins = (Join("k", "eq", "a", "k"), Join("s", "eq", "a", "s"), Join("v", "lt", "a", "v"))
    rule = Rule("r", (Pattern("a", "a"), Pattern("b", "b", joins=joins)), (Conclusion("hit", {"i": Ref("b", "i")}),))
    rows: list[Row] = [("a", {"k": 1, "s": "x", "v": 5})]
    rows += [
        ("b", {"k": k, "s": s, "v": v, "i": i}) for i, (k, s, v) in enumerate([(1, "x", 4), (1, "x", 5), (1, "y", 4)])
    ]
    rows += [("b", {"k": 1, "v": 4, "i": 9})]
    assert concluded(run([rule], rows), "hit") == [{"i": 0}]


def test_two_positive_patterns_of_a_type_match_two_rows() -> None:
    rule = Rule("r", (Pattern("a", "t"), Pattern("b", "t")), (Conclusion("hit", {}),))
    assert concluded(run([rule], [("t", {"x": 1})]), "hit") == []
    memory = run([rule], [("t", {"x": 1}), ("t", {"x": 2})])
    one, two = memory.of_type("t")
    assert [j.premises for j in memory.firings("r")] == [(one, two), (two, one)]


def test_a_negated_pattern_may_match_the_row_of_a_positive_one() -> None:
    joined = (Join("x", "gt", "a", "x"),)
    largest = Rule(
        "r",
        (Pattern("a", "t"), Pattern("n", "t", (), joined, negated=True)),
        (Conclusion("hit", {"x": Ref("a", "x")}),),
    )
    assert concluded(run([largest], [("t", {"x": x}) for x in (3, 9, 4)]), "hit") == [{"x": 9}]
    alone = Rule("r", (Pattern("a", "t"), Pattern("n", "t", negated=True)), (Conclusion("hit", {}),))
    assert concluded(run([alone], [("t", {"x": 1})]), "hit") == []


def test_every_firing_is_a_justification_also_of_a_row_known_before() -> None:
    rules = [
        Rule("r1", (Pattern("a", "t", (Test("x", "ge", 1),)),), (Conclusion("hit", {"y": 1}),)),
        Rule("r2", (Pattern("a", "t"), Pattern("b", "u")), (Conclusion("hit", {"y": 1}), Conclusion("t", {"x": 2}))),
    ]
    memory = run(rules, [("t", {"x": 1}), ("t", {"x": 2}), ("u", {}), ("hit", {"y": 1})])
    u, t1, t2 = (memory.find(row) for row in (("u", {}), ("t", {"x": 1}), ("t", {"x": 2})))
    hit = memory.find(("hit", {"y": 1}))
    assert hit is not None
    assert t2 is not None
    assert len(memory.rows) == 4
    assert memory.given(hit)
    assert [(j.rule, j.premises) for j in memory.justifications(hit)] == [
        ("r1", (t1,)),
        ("r1", (t2,)),
        ("r2", (t1, u)),
        ("r2", (t2, u)),
    ]
    assert [(j.rule, j.premises) for j in memory.justifications(t2)] == [("r2", (t1, u)), ("r2", (t2, u))]
    assert memory.firings("r2") == memory.justifications(t2)


def test_recursion_reaches_the_fixpoint_with_every_justification() -> None:
    path = (Conclusion("path", {"a": Ref("x", "a"), "b": Ref("y", "b")}),)
    rules = [
        Rule("base", (Pattern("x", "edge"),), (Conclusion("path", {"a": Ref("x", "a"), "b": Ref("x", "b")}),)),
        Rule("step", (Pattern("x", "path"), Pattern("y", "path", joins=(Join("a", "eq", "x", "b"),))), path),
    ]
    nodes = 6
    memory = run(rules, [("edge", {"a": i, "b": (i + 1) % nodes}) for i in range(nodes)])
    assert len(memory.of_type("path")) == nodes * nodes
    # every pair of adjoining paths, less the cases in which both are the same loop
    assert len(memory.firings("step")) == nodes**3 - nodes


def test_an_unknown_field_stays_unknown_in_a_conclusion() -> None:
    rule = Rule("r", (Pattern("a", "t"),), (Conclusion("hit", {"x": Ref("a", "x"), "c": True}),))
    assert concluded(run([rule], [("t", {}), ("t", {"x": "v"})]), "hit") == [{"c": True}, {"c": True, "x": "v"}]


def test_fields_that_no_rule_mentions_tell_rows_apart() -> None:
    rule = Rule("r", (Pattern("a", "t", (Test("x", "eq", 1),)),), (Conclusion("hit", {}),))
    rows: list[Row] = [("t", {"x": 1, "note": n}) for n in ("a", "b", True, 1)]
    rows.append(("loose", {"z": 1}))
    memory = run([rule], rows)
    assert len(memory.firings("r")) == 4
    assert [dict(memory.rows[i][1]) for i in memory.of_type("loose")] == [{"z": 1}]


def test_rules_without_positive_patterns_fire_once() -> None:
    rules = [
        Rule("always", (), (Conclusion("a", {}),)),
        Rule("absent", (Pattern("n", "a", negated=True),), (Conclusion("b", {}),)),
        Rule("blocked", (Pattern("n", "t", (Test("x", "eq", 1),), negated=True),), (Conclusion("c", {}),)),
    ]
    memory = run(rules, [("t", {"x": 2})])
    assert [memory.rows[i][0] for i in range(len(memory.rows))] == ["a", "c", "t"]
    assert [(j.rule, j.premises) for j in memory.firings("blocked")] == [("blocked", ())]


def test_negation_waits_for_the_lower_strata() -> None:
    rules = [
        Rule("z", (Pattern("a", "t"), Pattern("n", "bad", joins=(Join("k", "eq", "a", "k"),), negated=True)),
             (Conclusion("good", {"k": Ref("a", "k")}),)),
        Rule("a", (Pattern("a", "t"), Pattern("b", "mark", joins=(Join("k", "eq", "a", "k"),))),
             (Conclusion("bad", {"k": Ref("a", "k")}),)),
    ]  # fmt: skip
    assert concluded(run(rules, [("t", {"k": 1}), ("t", {"k": 2}), ("mark", {"k": 1})]), "good") == [{"k": 2}]


P = Pattern("a", "t")
HIT = (Conclusion("hit", {}),)


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        ([Rule("r", (P,), HIT), Rule("r", (P,), HIT)], "rule r: the id is used twice"),
        ([Rule("r", (P, P), HIT)], "rule r: an alias is used twice"),
        ([Rule("r", (Pattern("a", "t", joins=(Join("x", "eq", "z", "x"),)),), HIT)], "joins the unknown alias 'z'"),
        (
            [Rule("r", (Pattern("a", "t", joins=(Join("x", "eq", "b", "x"),)), Pattern("b", "t")), HIT)],
            "may not join 'b'",
        ),
        (
            [Rule("r", (Pattern("n", "u", negated=True), Pattern("a", "t", joins=(Join("x", "eq", "n", "x"),))), HIT)],
            "may not join 'n'",
        ),
        ([Rule("r", (P,), (Conclusion("hit", {"x": Ref("z", "x")}),))], "refers to 'z', which binds no row"),
        ([Rule("r", (Pattern("a", "t", (Test("x", "like", "y"),)),), HIT)], "unknown operator 'like'"),
        ([Rule("r", (Pattern("a", "t", (Test("x", "lt", "5"),)),), HIT)], "compares integers only"),
        ([Rule("r", (Pattern("a", "t", (Test("x", "in", "abc"),)),), HIT)], "in does not take 'abc'"),
        ([Rule("r", (P, Pattern("b", "t", joins=(Join("x", "in", "a", "x"),))), HIT)], "unknown join operator"),
        ([Rule("r", (Pattern("a", "t\n"),), HIT)], "is not an identifier"),
        ([Rule("r", (Pattern("n", "hit", negated=True),), HIT)], "negation of hit depends on its own conclusions"),
        (
            [
                Rule("r", (P, Pattern("n", "q", negated=True)), (Conclusion("p", {}),)),
                Rule("s", (P, Pattern("n", "p", negated=True)), (Conclusion("q", {}),)),
            ],
            "negation of q depends on its own conclusions",
        ),
        ([Rule("r", tuple(Pattern(f"a{i}", "t") for i in range(17)), HIT)], "more than 16 positive patterns"),
    ],
)
def test_rules_that_no_engine_accepts(rules: list[Rule], message: str) -> None:
    with pytest.raises(RuleError) as error:
        RuleBase(rules)
    assert message in str(error.value)


def test_rows_hold_scalars_only() -> None:
    base = RuleBase([Rule("r", (P,), HIT)])
    for value in (None, 1.5, ["a"]):
        with pytest.raises(ValueError, match=r"row t\.x: neither str, int nor bool"):
            base.run([("t", {"x": value})])  # type: ignore[dict-item]


def test_rule_text_never_becomes_code() -> None:
    nasty = '"); import os; os._exit(3) #'
    rule = Rule(nasty, (Pattern("a", "t", (Test("x", "eq", nasty),)),), (Conclusion("hit", {"y": nasty}),))
    memory = run([rule], [("t", {"x": nasty})])
    assert [(j.rule, j.premises) for j in memory.firings(nasty)] == [(nasty, (1,))]


def test_sixteen_positive_patterns() -> None:
    patterns = [Pattern("a0", "t0")]
    patterns += [Pattern(f"a{i}", f"t{i}", joins=(Join("x", "eq", f"a{i - 1}", "x"),)) for i in range(1, 16)]
    rows: list[Row] = [(f"t{i}", {"x": x}) for i in range(16) for x in (1, 2)]
    memory = RuleBase([Rule("r", tuple(patterns), HIT)]).run(rows)
    assert len(memory.firings("r")) == 2
