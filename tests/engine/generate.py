"""Random stratified rule bases and rows for the differential tests, drawn by a seeded generator."""

from __future__ import annotations

import random

from gpurules.engine.ir import Conclusion, Join, Pattern, Ref, Row, Rule, Test
from gpurules.facts import Scalar

BASE = ("t0", "t1", "t2")
DERIVED = ("d0", "d1", "d2", "d3")
STRINGS = ("a", "b", "1", "rtx 4090", "é", "it's", 'x"y', "b\\c", "")
MIXED: tuple[Scalar, ...] = (True, False, 0, 1, "1", "True", "x")
FIELDS: dict[str, tuple[Scalar, ...]] = {"k": tuple(range(4)), "s": STRINGS[:5], "n": tuple(range(6)), "m": MIXED}


def row(r: random.Random, type_: str, unknown: float) -> Row:
    return type_, {f: r.choice(values) for f, values in FIELDS.items() if r.random() >= unknown}


def _test(r: random.Random) -> Test:
    field = r.choice(("k", "s", "n", "n", "m"))
    values = FIELDS[field] if field != "s" else STRINGS
    op = r.choice(("eq", "eq", "ne", "in", "not_in", "known") + (("lt", "le", "gt", "ge") * 2 if field == "n" else ()))
    if op in ("in", "not_in"):
        return Test(field, op, tuple(r.choice(values) for _ in range(r.randrange(4))))
    if op in ("lt", "le", "gt", "ge"):
        return Test(field, op, r.randrange(6))
    return Test(field, op, r.choice(values))


def _joins(r: random.Random, aliases: list[str], likely: float) -> tuple[Join, ...]:
    joins = []
    if aliases and r.random() < likely:
        joins.append(Join("k", "eq", r.choice(aliases), "k"))
    if aliases and r.random() < 0.4:
        joins.append(Join("n", r.choice(("lt", "le", "gt", "ge", "ne", "eq")), r.choice(aliases), r.choice("nk")))
    if aliases and r.random() < 0.2:
        field = r.choice("sm")
        joins.append(Join(field, r.choice(("eq", "ne")), r.choice(aliases), field))
    return tuple(joins)


def _pattern(r: random.Random, alias: str, type_: str, joinable: list[str], *, negated: bool = False) -> Pattern:
    tests = tuple(_test(r) for _ in range(r.choice((0, 0, 0, 1, 2))))
    return Pattern(alias, type_, tests, _joins(r, joinable, 0.7), negated)


def _conclusion(r: random.Random, type_: str, aliases: list[str]) -> Conclusion:
    fields: dict[str, Scalar | Ref] = {}
    for field, values in FIELDS.items():
        dice = r.random()
        if dice < 0.5 and aliases:
            fields[field] = Ref(r.choice(aliases), field)
        elif dice < 0.8:
            fields[field] = r.choice(values)
    return Conclusion(type_, fields)


def rule(r: random.Random, number: int) -> Rule:
    level = r.randrange(len(DERIVED))
    readable = BASE + DERIVED[: level + 1]
    aliases: list[str] = []
    patterns: list[Pattern] = []
    for alias in "abc"[: r.choice((0, 1, 1, 2, 2, 2, 3))]:
        patterns.append(_pattern(r, alias, r.choice(readable), aliases.copy()))
        aliases.append(alias)
    for alias in "vw"[: r.choice((0, 0, 1, 2))]:
        pattern = _pattern(r, alias, r.choice(BASE + DERIVED[:level]), aliases, negated=True)
        patterns.insert(r.randrange(len(patterns) + 1), pattern)
    count = r.choice((1, 1, 1, 2))
    return Rule(f"r{number}", tuple(patterns), tuple(_conclusion(r, DERIVED[level], aliases) for _ in range(count)))


def case(seed: int) -> tuple[list[Rule], list[Row], list[Row]]:
    """(rules, static rows, session rows)."""
    r = random.Random(seed)
    unknown = r.choice((0, 0.15, 0.4))
    rules = [rule(r, i) for i in range(r.randrange(2, 14))]
    types = BASE + DERIVED[:1]
    static = [row(r, r.choice(types[: r.randrange(1, 5)]), unknown) for _ in range(r.choice((0, 0, 3, 6)))]
    rows = [row(r, r.choice(types), unknown) for _ in range(r.randrange(0, 22))]
    return rules, static, rows
