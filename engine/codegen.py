"""Turns one way of matching a rule into one Python function of nested loops.

May live here: join plans and the source text made from them. Must not: sessions, rule order, GPUs.

Safety: the text holds only names made here and numbers of slots; every string and number of a rule is a parameter of
the factory. So equal shapes share one compiled factory, and no rule text can become code.

A generated function is `match(rows, session)`. `rows` are the candidates of the pattern it starts at. In it
  p<i>      is the row bound to positive pattern i (slots: fields, extras, serial),
  v<i>_<s>  is field s of it, E is the empty tuple,
  g<n>/h<n> look up an index of the session's/static rows, a<n>/b<n> are all session/static rows of a type.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from .analysis import ORDERING, negatives, positives
from .ir import Join, Pattern, Ref, Rule, Test
from .rows import Codec, Key, encode_value

Mode = Literal["full", "mixed", "delta", "collect", "cached"]
Source = Literal["both", "static", "session"]
Match = Callable[[Any, Any], None]

_SYMBOL = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
_SWAPPED = {"eq": "eq", "ne": "ne", "lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


@dataclass(frozen=True, slots=True)
class Cond:
    """`slot op bound.other`: a join seen from the pattern whose row is looked for."""

    slot: int
    op: str
    bound: int
    other: int


def build_index(rows: Iterable[Key], slots: tuple[int, ...], into: dict[Any, list[Key]]) -> dict[Any, list[Key]]:
    """Adds rows to an index: one slot is keyed by its value (None where unknown), several by known values only."""
    if len(slots) == 1:
        (slot,) = slots
        for row in rows:
            into.setdefault(row[slot], []).append(row)
        return into
    for row in rows:
        key = tuple([row[slot] for slot in slots])
        if None not in key:
            into.setdefault(key, []).append(row)
    return into


class StaticIndexes:
    """The static rows of a rule base and their indexes, made once each and shared by all sessions."""

    def __init__(self, rows: Mapping[str, list[Key]]) -> None:
        self.rows = rows
        self._indexes: dict[tuple[str, tuple[int, ...]], dict[Any, list[Key]]] = {}

    def index(self, type_: str, slots: tuple[int, ...]) -> dict[Any, list[Key]]:
        """The index of a type that has static rows; threads that race make equal ones."""
        index = self._indexes.get((type_, slots))
        if index is None:
            index = self._indexes[type_, slots] = build_index(self.rows[type_], slots, {})
        return index


class Plan:
    """One way to match a rule: the pattern it starts at, and what the rows of the others may be.

    full     any row anywhere (at least one type has no static rows, so no match is static throughout);
    mixed    the start is a row of the session, patterns before it are static, patterns after it anything;
    delta    the start is a new row, other patterns of its type are older ones;
    collect  static rows only, negation against static rows only: appends the bound rows to the session's list;
    cached   `rows` are bindings that collect found; checks negation against the session's rows.
    """

    def __init__(self, rule: Rule, start: int, mode: Mode, codec: Codec, static_types: frozenset[str]) -> None:
        self.rule, self.mode, self.codec = rule, mode, codec
        self.positive = positives(rule)
        self.static_types = static_types
        self.start = start
        self.dispatch = None if mode in ("collect", "cached") else self._dispatch()
        self.needs = self._needs()
        self._match: Match | None = None

    def _dispatch(self) -> tuple[int, Any] | None:
        """The equality test by which the caller picks the start's rows."""
        pattern = self.positive[self.start]
        for test in pattern.tests:
            if test.op == "eq":
                return self.codec.slot(pattern.type, test.field), _encoded(test)
        return None

    def _needs(self) -> tuple[tuple[str, int, Any], ...]:
        """(type, slot, value) of rows without which nothing can match; slot -1 is any row of the type."""
        out = []
        for i, pattern in enumerate(self.positive):
            if i != self.start and pattern.type not in self.static_types and self.mode not in ("collect", "cached"):
                tests = [t for t in pattern.tests if t.op == "eq"]
                if tests:
                    out.append((pattern.type, self.codec.slot(pattern.type, tests[0].field), _encoded(tests[0])))
                else:
                    out.append((pattern.type, -1, None))
        return tuple(out)

    def run(self, rows: Sequence[Key], session: Any) -> None:
        """Notes every match that starts at one of the rows."""
        if self._match is None:
            for type_, slot, value in self.needs:
                if type_ not in session.rows or (slot >= 0 and value not in session.index(type_, (slot,))):
                    return
            # two threads may both get here; they make equal functions
            self._match = self.compile(session.indexed)
        self._match(rows, session)

    def compile(self, static: StaticIndexes) -> Match:
        """The function of this plan over these static rows."""
        return _Writer(self, static).build()


def _encoded(test: Test) -> Any:
    if isinstance(test.value, tuple):
        return frozenset(encode_value(v) for v in test.value)
    return encode_value(test.value)


@lru_cache(maxsize=4096)
def _factory(source: str) -> Callable[..., Match]:
    """The compiled text; a pure function of it, so sharing it is no state."""
    namespace: dict[str, Any] = {}
    # the text is made in this module from slots and counters alone
    exec(compile(source, "<gpurules match>", "exec"), namespace)  # noqa: S102
    made: Callable[..., Match] = namespace["make"]
    return made


class _Writer:
    """Writes the function of one plan."""

    def __init__(self, plan: Plan, static: StaticIndexes) -> None:
        self.plan, self.codec, self.static = plan, plan.codec, static
        self.types = [p.type for p in plan.positive]
        self.numbers = {p.alias: i for i, p in enumerate(plan.positive)}
        self.params: dict[str, Any] = {}
        self.prologue: list[str] = []
        self.lines: list[str] = []
        self.depth = 1
        self.bound: list[int] = []
        self.loaded: set[tuple[int, int]] = set()
        self.lookups: dict[tuple[Any, ...], tuple[str, str]] = {}
        self.negs = [(n, self._neg_conds(n)) for n in negatives(plan.rule)]
        self.done_negs: set[int] = set()
        self.pairs = self._pairs()

    # -- names ------------------------------------------------------------------------------------------------------

    def param(self, value: Any) -> str:
        name = f"c{len(self.params)}"
        self.params[name] = value
        return name

    def emit(self, line: str) -> None:
        self.lines.append(" " * (self.depth + 1) + line)

    def serial(self, i: int) -> str:
        return f"p{i}[{self.codec.serial(self.types[i])}]"

    def value(self, i: int, slot: int) -> str:
        return f"v{i}_{slot}" if (i, slot) in self.loaded else f"p{i}[{slot}]"

    # -- what the rule asks -----------------------------------------------------------------------------------------

    def _pairs(self) -> list[tuple[int, Cond]]:
        """All joins between positive patterns, from the side of the pattern that states them."""
        return [(i, self._cond(p.type, join)) for i, p in enumerate(self.plan.positive) for join in p.joins]

    def _neg_conds(self, pattern: Pattern) -> list[Cond]:
        return [self._cond(pattern.type, join) for join in pattern.joins]

    def _cond(self, type_: str, join: Join) -> Cond:
        bound = self.numbers[join.alias]
        return Cond(self.codec.slot(type_, join.field), join.op, bound, self.codec.slot(self.types[bound], join.other))

    def conds(self, i: int) -> list[Cond]:
        """Joins of pattern i with the patterns bound so far."""
        out = [c for j, c in self.pairs if j == i and c.bound in self.bound]
        for j, c in self.pairs:
            if c.bound == i and j in self.bound:
                out.append(Cond(c.other, _SWAPPED[c.op], j, c.slot))
        return out

    def order(self) -> list[int]:
        """The start, then always the pattern that the bound ones restrict most."""
        out = [self.plan.start]
        rest = [i for i in range(len(self.types)) if i != self.plan.start]
        self.bound = out
        while rest:
            rest.sort(key=self._looseness)
            out.append(rest.pop(0))
        self.bound = []
        return out

    def _looseness(self, i: int) -> tuple[int, int, int, int]:
        conds = self.conds(i)
        tests = self.plan.positive[i].tests
        equal = sum(c.op == "eq" for c in conds)
        return (
            -min(equal, 1),
            -sum(t.op == "eq" for t in tests) - equal,
            int(self.types[i] in self.plan.static_types),
            -len(conds) - len(tests),
        )

    # -- the function -----------------------------------------------------------------------------------------------

    def build(self) -> Match:
        sources: dict[str, Source] = {"collect": "static", "cached": "session"}
        source = sources.get(self.plan.mode, "both")
        self.check_negs(source)
        if self.plan.mode == "cached" or not self.types:
            rows = "".join(f"p{i}, " for i in range(len(self.types)))
            self.emit(f"for {rows or '_'} in rows:")
            self.depth += 1
            self.bound = list(range(len(self.types)))
            self.check_negs(source)
        else:
            order = self.order()
            for n, i in enumerate(order):
                self.loop(i, first=n == 0, last=n == len(order) - 1)
                self.check_negs(source)
        self.finish()
        return self._compile()

    def _compile(self) -> Match:
        names = ", ".join(self.params)
        source = "\n".join((f"def make(E, {names}):", " def match(rows, session):", *self.prologue, *self.lines))
        return _factory(source + "\n return match\n")((), *self.params.values())

    def loop(self, i: int, *, first: bool, last: bool) -> None:
        """One loop over the candidates of pattern i, its tests, and the negations that it completes."""
        conds = self.conds(i)
        dispatched = self.plan.dispatch if first else None
        used: set[Test] = set()
        if first:
            self.emit(f"for p{i} in rows:")
        else:
            used = self._candidates(i, conds)
        self.depth += 1
        self.bound.append(i)
        slots = self._tests(i, [t for t in self.plan.positive[i].tests if t not in used], dispatched)
        for cond in conds:
            if cond.op != "eq":
                slots = self._join(i, cond, slots)
        self._distinct(i)
        if not last:
            self._load_for_later(i, slots)

    def _candidates(self, i: int, conds: list[Cond]) -> set[Test]:
        """Opens the loop over an index or over all rows; returns the tests that the index has answered."""
        pattern = self.plan.positive[i]
        source: Source = "both"
        if self.plan.mode == "collect" or (self.plan.mode == "mixed" and i < self.plan.start):
            source = "static"
        equal = sorted({(c.slot, c.bound, c.other) for c in conds if c.op == "eq"})
        used: set[Test] = set()
        if equal:
            parts = [(slot, self.value(bound, other)) for slot, bound, other in equal]
        else:
            tests = sorted((t for t in pattern.tests if t.op == "eq"), key=lambda t: t.field)
            used = set(tests)
            parts = [(self.codec.slot(pattern.type, t.field), self.param(_encoded(t))) for t in tests]
        if parts:
            key = parts[0][1] if len(parts) == 1 else f"({', '.join(p[1] for p in parts)})"
            session, static = self.lookup(pattern.type, tuple(p[0] for p in parts), source)
            groups = [f"{get}({key}, E)" for get in (static, session) if get]
        else:
            groups = [name for name in reversed(self.lookup(pattern.type, None, source)) if name]
        if len(groups) == 2:
            self.emit(f"x, y = {groups[0]}, {groups[1]}")
            groups = ["(x or y if not x or not y else [*x, *y])"]
        self.emit(f"for p{i} in {groups[0] if groups else 'E'}:")
        return used

    def lookup(self, type_: str, slots: tuple[int, ...] | None, source: Source) -> tuple[str, str]:
        """(session's, static) name of an index, or of all rows of a type; "" where there is nothing to look at."""
        cached = self.lookups.get((type_, slots, source))
        if cached is not None:
            return cached
        n = len(self.lookups)
        session = static = ""
        if source != "static":
            name = self.param(type_)
            if slots is None:
                session = f"a{n}"
                self.prologue.append(f"  a{n} = session.rows.get({name}, E)")
            else:
                session = f"g{n}"
                self.prologue.append(f"  g{n} = session.index({name}, {self.param(slots)}).get")
        if source != "session" and type_ in self.plan.static_types:
            static = self.param(self.static.rows[type_] if slots is None else self.static.index(type_, slots).get)
        self.lookups[type_, slots, source] = session, static
        return session, static

    def _tests(self, i: int, tests: Sequence[Test], dispatched: tuple[int, Any] | None) -> dict[int, str]:
        """Emits the constant tests; returns what is known of each slot that they prove ("int" or "known")."""
        proved: dict[int, str] = {}
        for test in tests:
            slot = self.codec.slot(self.types[i], test.field)
            if dispatched and test.op == "eq" and (slot, _encoded(test)) == dispatched:
                proved.setdefault(slot, "known")
                continue
            self._load(i, slot)
            v = self.value(i, slot)
            c = self.param(_encoded(test)) if test.op != "known" else ""
            if test.op in ORDERING:
                self.skip_unless(f"{v}.__class__ is int and {v} {_SYMBOL[test.op]} {c}")
                proved[slot] = "int"
                continue
            conditions = {
                "eq": f"{v} == {c}",
                "ne": f"{v} is not None and {v} != {c}",
                "in": f"{v} in {c}",
                "not_in": f"{v} is not None and {v} not in {c}",
                "known": f"{v} is not None",
            }
            self.skip_unless(conditions[test.op])
            proved.setdefault(slot, "known")
        return proved

    def skip_unless(self, condition: str) -> None:
        self.emit(f"if not ({condition}): continue")

    def _load(self, i: int, slot: int) -> None:
        if (i, slot) not in self.loaded:
            self.loaded.add((i, slot))
            self.emit(f"v{i}_{slot} = p{i}[{slot}]")

    def _join(self, i: int, cond: Cond, proved: dict[int, str]) -> dict[int, str]:
        """A join that no index answers; the other side was proved when it was bound."""
        self._load(i, cond.slot)
        mine, other = self.value(i, cond.slot), self.value(cond.bound, cond.other)
        guard = f"{mine}.__class__ is int" if cond.op in ORDERING else f"{mine} is not None"
        self.skip_unless(f"{guard} and {mine} {_SYMBOL[cond.op]} {other}")
        return {**proved, cond.slot: "int" if cond.op in ORDERING else proved.get(cond.slot, "known")}

    def _distinct(self, i: int) -> None:
        others = [j for j in self.bound if j != i and self.types[j] == self.types[i]]
        for j in others:
            if self.plan.mode == "delta" and j == self.plan.start:
                self.skip_unless(f"{self.serial(i)} < {self.serial(j)}")
            else:
                self.skip_unless(f"p{i} is not p{j}")

    def _load_for_later(self, i: int, proved: dict[int, str]) -> None:
        """Loads what later loops join with, once, and drops rows that can never join."""
        wants: dict[int, str] = {}
        for j, cond in self.pairs:
            for slot, op, mine, other in ((cond.slot, cond.op, j, cond.bound), (cond.other, cond.op, cond.bound, j)):
                if mine == i and other not in self.bound:
                    wants[slot] = "int" if op in ORDERING or wants.get(slot) == "int" else "known"
        for slot, kind in sorted(wants.items()):
            self._load(i, slot)
            have = proved.get(slot)
            if kind == "int" and have != "int":
                self.skip_unless(f"v{i}_{slot}.__class__ is int")
            elif kind == "known" and have is None:
                self.skip_unless(f"v{i}_{slot} is not None")

    # -- negation ---------------------------------------------------------------------------------------------------

    def check_negs(self, source: Source) -> None:
        """Emits the negations whose joined patterns are all bound."""
        for n, (pattern, conds) in enumerate(self.negs):
            if n not in self.done_negs and all(c.bound in self.bound for c in conds):
                self.done_negs.add(n)
                args = ", ".join(self.value(c.bound, c.other) for c in conds)
                self._write_neg(n, pattern, conds, source)
                self.emit(f"if n{n}({args}): {'continue' if self.bound else 'return'}")

    def _write_neg(self, n: int, pattern: Pattern, conds: list[Cond], source: Source) -> None:
        """A local function: is there a row that matches, or that could if its unknown fields were known?"""
        slot_of = self.codec.slot
        key_cond = next((k for k, c in enumerate(conds) if c.op == "eq"), None)
        key_test = next((k for k, t in enumerate(pattern.tests) if t.op == "eq"), None) if key_cond is None else None
        checks = [
            check
            for k, t in enumerate(pattern.tests)
            if k != key_test and (check := self._not_excluded(slot_of(pattern.type, t.field), t))
        ]
        checks += [_maybe(c, f"y{k}") for k, c in enumerate(conds) if k != key_cond]
        everything = [name for name in self.lookup(pattern.type, None, source) if name]
        groups = everything
        if key_cond is not None:
            groups = self._keyed(pattern.type, conds[key_cond].slot, f"y{key_cond}", source)
        elif key_test is not None:
            test = pattern.tests[key_test]
            groups = self._keyed(pattern.type, slot_of(pattern.type, test.field), self.param(_encoded(test)), source)
        text = [f"def n{n}({', '.join(f'y{k}' for k in range(len(conds)))}):"]
        if key_cond is not None:
            text.append(f" for rows in ({_listed(groups)}) if y{key_cond} is not None else ({_listed(everything)}):")
        else:
            text.append(f" for rows in ({_listed(groups)}):")
        text.append("  for r in rows:")
        text.append(f"   if {' and '.join(checks) or 'True'}: return True")
        text.append(" return False")
        self.prologue += ["  " + line for line in text]

    def _keyed(self, type_: str, slot: int, key: str, source: Source) -> list[str]:
        """The rows whose field equals the key, and those where it is unknown."""
        names = [name for name in self.lookup(type_, (slot,), source) if name]
        return [f"{name}({k}, E)" for name in names for k in (key, "None")]

    def _not_excluded(self, slot: int, test: Test) -> str:
        """The test is not definitely false for r; "" where it can never be."""
        if test.op == "known":
            return ""
        v, value = f"r[{slot}]", _encoded(test)
        if test.op == "in":
            return f"{v} in {self.param(value | {None})}"
        c = self.param(value)
        if test.op in ORDERING:
            return f"({v} is None or {v}.__class__ is int and {v} {_SYMBOL[test.op]} {c})"
        # an unknown field is None, which differs from every value
        return {"eq": f"({v} is None or {v} == {c})", "ne": f"{v} != {c}", "not_in": f"{v} not in {c}"}[test.op]

    # -- the end ----------------------------------------------------------------------------------------------------

    def finish(self) -> None:
        """Notes the match, or hands out its rows."""
        if self.plan.mode == "collect":
            self.emit(f"session.append(({''.join(f'p{i}, ' for i in range(len(self.types)))}))")
            return
        record = ", ".join((self.param(self.plan.rule.id), *(self.serial(i) for i in range(len(self.types)))))
        several = len(self.plan.rule.conclusions) > 1
        if several:
            self.emit(f"record = ({record},)")
        for n, conclusion in enumerate(self.plan.rule.conclusions):
            type_ = self.param(conclusion.type)
            self.prologue.append(f"  get{n} = session.ids[{type_}].get")
            slots = []
            for name in self.codec.names[conclusion.type]:
                value = conclusion.fields.get(name)
                if isinstance(value, Ref):
                    i = self.numbers[value.alias]
                    slots.append(self.value(i, self.codec.slot(self.types[i], value.field)))
                else:
                    slots.append("None" if value is None else self.param(encode_value(value)))
            self.emit(f"key = ({''.join(f'{s}, ' for s in slots)}E,)")
            self.emit(f"noted = get{n}(key)")
            self.emit(f"if noted is None: noted = session.add({type_}, key)")
            self.emit("noted.append(record)" if several else f"noted.append(({record},))")


def _listed(groups: list[str]) -> str:
    return "".join(f"{group}, " for group in groups)


def _maybe(cond: Cond, other: str) -> str:
    """The join is not definitely false for r; an unknown on either side leaves it open."""
    v = f"r[{cond.slot}]"
    holds = f"{v} {_SYMBOL[cond.op]} {other}"
    if cond.op in ORDERING:
        holds = f"{v}.__class__ is int and {other}.__class__ is int and {holds}"
    return f"({v} is None or {other} is None or {holds})"
