"""Proofs of least height."""

from __future__ import annotations

from gpurules.engine.ir import Conclusion, Join, Pattern, Ref, Row, Rule
from gpurules.engine.native import RuleBase
from gpurules.engine.proof import Proof, proof


def chain(length: int) -> tuple[list[Rule], list[Row]]:
    step = Rule(
        "step",
        (Pattern("r", "reached"), Pattern("e", "edge", joins=(Join("a", "eq", "r", "node"),))),
        (Conclusion("reached", {"node": Ref("e", "b")}),),
    )
    rows: list[Row] = [("edge", {"a": i, "b": i + 1}) for i in range(length)]
    return [step], [*rows, ("reached", {"node": 0})]


def shape(p: Proof) -> tuple[str | None, int, list[object]]:
    return p.rule, p.row, [shape(q) for q in p.premises]


def test_an_input_proves_itself_even_if_it_is_concluded_too() -> None:
    rules, rows = chain(2)
    memory = RuleBase(rules).run([*rows, ("edge", {"a": 1, "b": 0})])
    start = memory.find(("reached", {"node": 0}))
    assert start is not None
    assert memory.justifications(start) != ()
    assert shape(proof(memory, start)) == (None, start, [])


def test_the_lowest_proof_wins_and_cycles_do_not_matter() -> None:
    rules, rows = chain(5)
    extra: list[Row] = [("edge", {"a": 0, "b": 4}), ("edge", {"a": 5, "b": 0}), ("edge", {"a": 3, "b": 1})]
    memory = RuleBase(rules).run([*rows, *extra])
    goal = memory.find(("reached", {"node": 5}))
    assert goal is not None
    found = proof(memory, goal)
    assert found.height == 2
    assert found.premises[0].premises[1].row == memory.find(("edge", {"a": 0, "b": 4}))


def test_ties_go_to_the_first_rule_and_then_to_the_first_premises() -> None:
    rules = [Rule(name, (Pattern("a", "t"),), (Conclusion("hit", {}),)) for name in ("z", "b", "c")]
    memory = RuleBase(rules).run([("t", {"x": x}) for x in (3, 1, 2)])
    hit = memory.find(("hit", {}))
    assert hit is not None
    first = memory.find(("t", {"x": 1}))
    assert shape(proof(memory, hit)) == ("b", hit, [(None, first, [])])


def test_a_rule_without_positive_patterns_has_height_one() -> None:
    rules = [
        Rule("always", (), (Conclusion("a", {}),)),
        Rule("next", (Pattern("a", "a"),), (Conclusion("b", {}),)),
    ]
    memory = RuleBase(rules).run([])
    a, b = memory.find(("a", {})), memory.find(("b", {}))
    assert a is not None
    assert b is not None
    assert (proof(memory, a).height, proof(memory, b).height) == (1, 2)


def test_a_proof_a_thousand_rules_deep() -> None:
    rules, rows = chain(1000)
    memory = RuleBase(rules).run(rows)
    goal = memory.find(("reached", {"node": 1000}))
    assert goal is not None
    found = proof(memory, goal)
    assert found.height == 1000
    depth = 0
    while found.rule is not None:
        found, depth = found.premises[0], depth + 1
    assert depth == 1000
    assert repr(found) == f"Proof(row={memory.find(('reached', {'node': 0}))}, rule=None, height=0)"
