"""Row ids, static rows, look-ups, threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from gpurules.engine.ir import Conclusion, Join, Pattern, Ref, Row, Rule, Test
from gpurules.engine.native import Justification, RuleBase

from . import generate
from .harness import run, view

SUITS = Rule(
    "suits",
    (Pattern("d", "driver"), Pattern("b", "build", joins=(Join("needs", "le", "d", "version"),))),
    (Conclusion("candidate", {"build": Ref("b", "name")}),),
)
STRUCK = Rule(
    "best",
    (
        Pattern("a", "candidate"),
        Pattern("n", "struck", joins=(Join("build", "eq", "a", "build"),), negated=True),
    ),
    (Conclusion("best", {"build": Ref("a", "build")}),),
)
FAMILY = Rule(
    "family", (Pattern("b", "build", (Test("needs", "ge", 20),)),), (Conclusion("modern", {"build": Ref("b", "name")}),)
)
KEPT = Rule(
    "kept",
    (Pattern("b", "build"), Pattern("n", "struck", joins=(Join("build", "eq", "b", "name"),), negated=True)),
    (Conclusion("kept", {"build": Ref("b", "name")}),),
)
BUILDS: list[Row] = [("build", {"name": f"b{i}", "needs": 10 * i}) for i in range(4)]


def test_static_rows_come_first_and_keep_their_ids() -> None:
    rules = [SUITS, STRUCK, FAMILY, KEPT]
    one = run(rules, [("driver", {"version": 15})], BUILDS)
    two = run(rules, [("driver", {"version": 99}), ("struck", {"build": "b1"})], BUILDS)
    statics = [(t, dict(f)) for t, f in one.rows[:6]]
    assert (
        statics
        == [(t, dict(f)) for t, f in two.rows[:6]]
        == [*BUILDS, ("modern", {"build": "b2"}), ("modern", {"build": "b3"})]
    )
    assert [one.static(i) for i in range(8)] == [True] * 6 + [False] * 2
    assert [one.given(i) for i in range(8)] == [True] * 4 + [False] * 4
    assert one.justifications(4) == (Justification("family", (2,)),)
    assert [dict(one.rows[i][1])["build"] for i in one.of_type("kept")] == ["b0", "b1", "b2", "b3"]
    assert [dict(two.rows[i][1])["build"] for i in two.of_type("kept")] == ["b0", "b2", "b3"]
    assert [dict(two.rows[i][1])["build"] for i in two.of_type("best")] == ["b0", "b2", "b3"]


def test_a_session_may_give_and_conclude_static_rows() -> None:
    again = Rule("again", (Pattern("d", "driver"),), (Conclusion("modern", {"build": "b2"}),))
    memory = run(
        [FAMILY, again],
        [("driver", {"version": 1}), ("modern", {"build": "b3"}), ("build", {"name": "x", "needs": 50})],
        BUILDS,
    )
    derived, given = memory.find(("modern", {"build": "b2"})), memory.find(("modern", {"build": "b3"}))
    driver, extra = memory.find(("driver", {"version": 1})), memory.find(("build", {"name": "x", "needs": 50}))
    assert (derived, given) == (4, 5)
    assert (memory.given(4), memory.given(5)) == (False, True)
    assert memory.justifications(4) == (Justification("again", (driver or 0,)), Justification("family", (2,)))
    assert memory.firings("family") == tuple(Justification("family", (i,)) for i in (2, 3, extra or 0))
    assert list(memory.of_type("build")) == [0, 1, 2, 3, extra]


def test_two_sessions_of_one_rule_base_share_nothing() -> None:
    base = RuleBase([SUITS, STRUCK, FAMILY, KEPT], BUILDS)
    before = view(base.run([("driver", {"version": 15})]))
    base.run([("struck", {"build": "b0"}), ("build", {"name": "b9", "needs": 0}), ("driver", {"version": 15})])
    assert view(base.run([("driver", {"version": 15})])) == before


def test_find_looks_at_kinds_of_values() -> None:
    memory = RuleBase([SUITS]).run(
        [("driver", {"version": 1}), ("driver", {"version": True}), ("driver", {"version": "1"})]
    )
    ids = [memory.find(("driver", {"version": v})) for v in (1, True, "1")]
    assert sorted(i for i in ids if i is not None) == [0, 1, 2]
    assert memory.find(("driver", {"version": 2})) is None
    assert memory.find(("elsewhere", {})) is None


def test_rows_cannot_be_changed() -> None:
    memory = RuleBase([SUITS], BUILDS).run([])
    assert not hasattr(memory.rows[0][1], "__setitem__")
    assert [row[0] for row in memory.rows] == ["build"] * 4
    assert memory.rows[-1][1]["name"] == "b3"


def test_eight_threads_get_the_same_result() -> None:
    rules, static, rows = max((generate.case(seed) for seed in range(40)), key=lambda case: len(case[0]) * len(case[2]))
    expected = view(RuleBase(rules, static).run(rows))
    shared = RuleBase(rules, static)
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: view(shared.run(rows)), range(32)))
    assert all(result == expected for result in results)
