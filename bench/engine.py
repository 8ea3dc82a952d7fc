"""Times the engines on one synthetic workload, interleaved in one run.

300 rules on three levels with joins over two and three rows, 200 facts a session; every engine keeps all
justifications, and all must find the same number of rows and justifications.

    python bench/engine.py [--sessions N] [--idle-rules N] [--chainer FILE] [--durable]

--chainer FILE  a Python file with RuleBase(rules) and Session(rule_base).run(facts), rules and facts as dicts:
                {id, when: [{alias, type, tests: [(field, op, value)], joins: [(field, op, alias, field)], neg}],
                then: (type, {field: value | (alias, field)}), pri}, {type, field: value, ...}; Session has facts, just.
"""

from __future__ import annotations

import argparse
import importlib.util
import random
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from gpurules.engine.durable import DurableEngine, DurableUnavailable
from gpurules.engine.ir import Conclusion, Join, Pattern, Ref, Row, Rule, Test
from gpurules.engine.native import RuleBase
from gpurules.facts import Scalar

Counts = tuple[int, int]
Run = Callable[[Sequence[Row]], Any]
FIELDS = ("slot", "capability", "memory", "version", "name", "needs", "kind", "number")


class Engine:
    """A named way to run a session: `run` is timed, `count` (rows, justifications) of its result is not."""

    def __init__(self, name: str, run: Run, count: Callable[[Any], Counts]) -> None:
        self.name, self.run, self.count = name, run, count
        self.times: list[float] = []

    def time(self, rows: Sequence[Row]) -> Counts:
        started = time.perf_counter()
        result = self.run(rows)
        self.times.append((time.perf_counter() - started) * 1e3)
        return self.count(result)

    @property
    def median(self) -> float:
        return statistics.median(self.times)


def workload(count: int, seed: int) -> list[Rule]:
    """Half the rules on the first level, a third on the second, the rest on the third."""
    r = random.Random(seed)
    first, second = count // 2, count // 3
    rules = [_need(i, r) if i % 3 else _triple(i, r) for i in range(first)]
    rules += [_second(i, r) for i in range(second)]
    rules += [_third(i, r) for i in range(count - first - second)]
    return rules


def _same(alias: str) -> Join:
    return Join("slot", "eq", alias, "slot")


def _need(i: int, r: random.Random) -> Rule:
    a = Pattern("a", "framework", (Test("name", "eq", i % 10), Test("needs", "ge", r.randrange(20, 60))))
    b = Pattern("b", "driver", (), (_same("a"), Join("version", "lt", "a", "needs")))
    return Rule(f"need{i}", (a, b), (Conclusion("issue", {"slot": Ref("a", "slot"), "kind": i % 30}),))


def _triple(i: int, r: random.Random) -> Rule:
    a = Pattern("a", "goal", (Test("name", "eq", i % 10),))
    b = Pattern("b", "gpu", (Test("capability", "ge", r.randrange(50, 90)),), (_same("a"),))
    c = Pattern("c", "driver", (Test("version", "lt", r.randrange(40, 90)),), (_same("b"),))
    return Rule(f"triple{i}", (a, b, c), (Conclusion("issue", {"slot": Ref("a", "slot"), "kind": i % 30}),))


def _second(i: int, r: random.Random) -> Rule:
    a = Pattern("a", "issue", (Test("kind", "eq", i % 30),))
    b = Pattern("b", "gpu", (Test("memory", "ge", r.randrange(4, 40)),), (_same("a"),))
    return Rule(f"second{i}", (a, b), (Conclusion("problem", {"slot": Ref("a", "slot"), "kind": i % 20}),))


def _third(i: int, r: random.Random) -> Rule:
    a = Pattern("a", "problem", (Test("kind", "eq", i % 20),))
    b = Pattern("b", "goal", (), (_same("a"),))
    c = Pattern("c", "framework", (Test("needs", "ge", r.randrange(10, 80)),), (_same("b"),))
    fields: dict[str, Scalar | Ref] = {"slot": Ref("a", "slot"), "kind": i, "name": Ref("b", "name")}
    return Rule(f"third{i}", (a, b, c), (Conclusion("finding", fields),))


def idle(count: int) -> list[Rule]:
    """Rules that never match: a third for want of a type, a third of a value, a third of a matching row."""
    rules = []
    for i in range(count):
        starts = (
            Pattern("a", f"absent{i}"),
            Pattern("a", "goal", (Test("name", "eq", 1000 + i),)),
            Pattern("a", "driver"),
        )
        b = Pattern("b", "framework" if i % 3 else "gpu", (Test("name", "eq", 2000 + i),), (_same("a"),))
        rules.append(Rule(f"idle{i}", (starts[i % 3], b), (Conclusion("nothing", {"slot": Ref("a", "slot")}),)))
    return rules


def session(seed: int, count: int = 200) -> list[Row]:
    r = random.Random(seed)
    fifth = count // 5
    rows: list[Row] = [
        ("gpu", {"slot": i, "capability": r.randrange(30, 121), "memory": r.choice((4, 8, 12, 16, 24, 48, 80))})
        for i in range(fifth)
    ]
    rows += [("driver", {"slot": i, "version": r.randrange(30, 100)}) for i in range(fifth)]
    rest = count - 2 * fifth
    for i in range(rest // 2):
        needs = r.randrange(30, 100)
        rows.append(("framework", {"slot": r.randrange(fifth), "name": r.randrange(10), "needs": needs, "number": i}))
    rows += [
        ("goal", {"slot": r.randrange(fifth), "name": r.randrange(10), "number": i}) for i in range(rest - rest // 2)
    ]
    r.shuffle(rows)
    return rows


def memory_counts(memory: Any) -> Counts:
    return len(memory.rows), sum(len(memory.justifications(i)) for i in range(len(memory.rows)))


def _read(memory: Any) -> Any:
    """Makes every justification an object at once; they are made when first asked for otherwise."""
    memory_counts(memory)
    return memory


def external(path: Path, rules: Sequence[Rule]) -> Engine:
    """The chainer in a file, given the rules as dicts."""
    spec = importlib.util.spec_from_file_location("chainer", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    base = module.RuleBase([_as_dict(rule) for rule in rules])

    def count(done: Any) -> Counts:
        return len(done.facts), sum(rule is not None for noted in done.just.values() for rule, _ in noted)

    return Engine(path.stem, lambda rows: module.Session(base).run([{"type": t, **f} for t, f in rows]), count)


def _as_dict(rule: Rule) -> dict[str, Any]:
    when = [
        {
            "alias": p.alias,
            "type": p.type,
            "tests": [(t.field, t.op, t.value) for t in p.tests],
            "joins": [(j.field, j.op, j.alias, j.other) for j in p.joins],
            "neg": p.negated,
        }
        for p in rule.patterns
    ]
    (conclusion,) = rule.conclusions
    fields = {k: (v.alias, v.field) if isinstance(v, Ref) else v for k, v in conclusion.fields.items()}
    return {"id": rule.id, "when": when, "then": (conclusion.type, fields), "pri": 0}


def clips_engine(rules: Sequence[Rule]) -> Engine | None:
    """CLIPS with joins as shared variables, each firing noted with its fact indexes."""
    try:
        import clips  # type: ignore[import-untyped]
    except ImportError:
        return None
    env = clips.Environment()
    types = {p.type for rule in rules for p in rule.patterns} | {c.type for rule in rules for c in rule.conclusions}
    for type_ in sorted(types):
        env.build(f"(deftemplate {type_} {' '.join(f'(slot {f} (default nil))' for f in FIELDS)})")
    noted: list[tuple[Any, ...]] = []
    env.define_function(lambda *firing: noted.append(firing), name="note")
    for rule in rules:
        env.build(_defrule(rule))
    templates = {type_: env.find_template(type_) for type_ in types}

    def run(rows: Sequence[Row]) -> None:
        env.reset()
        noted.clear()
        for type_, fields in rows:
            templates[type_].assert_fact(**fields)
        env.run()

    return Engine("clips", run, lambda _: (sum(f.template.name in types for f in env.facts()), len(noted)))


def _defrule(rule: Rule) -> str:
    symbols = {"eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
    (conclusion,) = rule.conclusions
    left = []
    for p in rule.patterns:
        slots: dict[str, list[str]] = {}
        for j in p.joins:
            shared = f"?{j.alias}_{j.other}"
            own = f"?{p.alias}_{j.field}"
            slots.setdefault(j.field, [own]).append(shared if j.op == "eq" else f":({symbols[j.op]} {own} {shared})")
        for t in p.tests:
            own = f"?{p.alias}_{t.field}"
            slots.setdefault(t.field, [own]).append(
                str(t.value) if t.op == "eq" else f":({symbols[t.op]} {own} {t.value})"
            )
        wanted = {j.other for q in rule.patterns for j in q.joins if j.alias == p.alias}
        wanted |= {v.field for v in conclusion.fields.values() if isinstance(v, Ref) and v.alias == p.alias}
        for field in sorted(wanted):
            slots.setdefault(field, [f"?{p.alias}_{field}"])
        left.append(f"?f_{p.alias} <- ({p.type} {' '.join(f'({f} {chr(38).join(c)})' for f, c in slots.items())})")
    values = " ".join(
        f"({k} {f'?{v.alias}_{v.field}' if isinstance(v, Ref) else v})" for k, v in conclusion.fields.items()
    )
    premises = " ".join(f"(fact-index ?f_{p.alias})" for p in rule.patterns)
    return f"(defrule {rule.id} {' '.join(left)} => (assert ({conclusion.type} {values})) (note {rule.id} {premises}))"


def compare(engines: Sequence[Engine], sessions: int) -> None:
    """Every session on every engine in turn, each time starting with another engine."""
    for number in range(sessions):
        rows = session(number)
        turn = number % len(engines)
        counts = {e.name: e.time(rows) for e in (*engines[turn:], *engines[:turn])}
        if len(set(counts.values())) != 1:
            sys.exit(f"session {number}: (rows, justifications) differ: {counts}")
    for engine in engines:
        low, high = min(engine.times), max(engine.times)
        ratio = engine.median / engines[0].median
        print(f"{engine.name:<14} {engine.median:8.2f} ms ({low:.2f} to {high:.2f})  {ratio:6.2f} x {engines[0].name}")


def first_run(rules: Sequence[Rule]) -> RuleBase:
    """Building and the first session, in a process that has compiled nothing yet."""
    started = time.perf_counter()
    base = RuleBase(rules)
    built = time.perf_counter()
    base.run(session(0))
    done = time.perf_counter()
    print(f"native, first run: build {(built - started) * 1e3:.1f} ms, session {(done - built) * 1e3:.1f} ms")
    return base


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--sessions", type=int, default=40)
    parser.add_argument("--rules", type=int, default=300)
    parser.add_argument("--idle-rules", type=int, default=0)
    parser.add_argument("--chainer", type=Path)
    parser.add_argument("--durable", action="store_true")
    options = parser.parse_args()
    rules = workload(options.rules, seed=1)
    base = first_run(rules)
    engines = [
        Engine("native", base.run, memory_counts),
        Engine("native, read", lambda rows: _read(base.run(rows)), memory_counts),
    ]
    if options.idle_rules:
        more = [*rules, *idle(options.idle_rules)]
        engines.append(Engine(f"native+{options.idle_rules}", RuleBase(more).run, memory_counts))
    clips = clips_engine(rules)
    if clips is not None:
        engines.append(clips)
    if options.chainer:
        engines.append(external(options.chainer, rules))
    if not options.durable:
        compare(engines, options.sessions)
        return
    with DurableEngine(rules) as durable:
        try:
            durable.run([])
        except DurableUnavailable as error:
            sys.exit(str(error))
        compare([*engines, Engine("durable", durable.run, memory_counts)], options.sessions)


if __name__ == "__main__":
    main()
