"""The durable-rules engine: the same rules, rows, ids and justifications as `native.py`, by way of durable-rules.

May live here: the worker process's keeper, the translation of rules and rows, and the work that durable-rules cannot be
trusted with: chaining, negation, distinctness, identity. Must not: imports of durable-rules (it may crash a process).

What keeps durable-rules right (see docs/decisions/0001-engine.md): every join ends in an equality that always holds; a
sentinel rule fires first in every session; no timer threads; consequents only record; few rules and conditions to a
ruleset; short session ids; no joins on our row numbers; every field present, unknown ones as a value that every test
excludes; a scalar as a tagged string for equality and, if it is an integer, as a number for ordering.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import TracebackType
from typing import Any

from ..errors import reason
from ..facts import Scalar
from ..messages import Message
from .analysis import ORDERING, check_rules, levels, negatives, positives
from .ir import Conclusion, Join, Pattern, Ref, Row, Rule, Test
from .memory import Journal, StaticRows, WorkingMemory
from .native import closable
from .rows import Codec, Key, encode_value
from .truth import holds

MAX_RULES = 40
MAX_BRANCHES = 48  # durable-rules refuses a fact that meets more than 64
MAX_PROPERTIES = 250  # durable-rules refuses facts with some more
NO_NUMBER = -(2**53)

_WORKER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "durable_worker.py")
_PLAIN = re.compile(r"[ !#-\[\]-~]{0,200}\Z")
_OPERATOR = {"ne": "$neq", "lt": "$lt", "le": "$lte", "gt": "$gt", "ge": "$gte"}
_UNKNOWN = "u"
_KNOWN = "known"
_INTEGER = "integer"

Json = dict[str, Any]
_Guards = dict[tuple[int, str], None]


class DurableError(RuntimeError):
    """durable-rules failed: it crashed, took too long or refused a row."""

    def __init__(self, message: Message) -> None:
        super().__init__(message)
        self.message = message


class DurableUnavailable(DurableError):
    """durable-rules cannot be used here; the message says why."""


class DurableWorker:
    """The process that runs durable-rules; it may serve several engines, one request at a time."""

    def __init__(self, *, python: str = sys.executable, timeout_s: float = 60) -> None:
        self._python, self._timeout = python, timeout_s
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.RLock()
        self._late = False
        self.loaded: object = None

    @property
    def lock(self) -> threading.RLock:
        """To be held from load to close: sessions of different engines must not mix."""
        return self._lock

    def ask(self, request: Json) -> Json:
        """The answer to a request; starts the process if need be."""
        process = self.start()
        answer = self._exchange(process, json.dumps(request) + "\n")
        if "error" in answer:
            self.close()
            raise DurableError(Message("durable.refused", error=answer["error"]))
        return answer

    def close(self) -> None:
        """Ends the process; the next request starts another."""
        process, self._process, self.loaded = self._process, None, None
        if process is not None:
            process.kill()
            process.wait()
            for stream in (process.stdin, process.stdout):
                if stream is not None:
                    try:
                        stream.close()
                    except OSError:
                        continue  # unsent text for a process that is gone

    def start(self) -> subprocess.Popen[str]:
        """The running process; raises DurableUnavailable where durable-rules cannot be used."""
        if self._process is not None:
            return self._process
        try:
            self._process = process = subprocess.Popen(
                [self._python, _WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                encoding="ascii",
            )
        except OSError as error:
            raise DurableUnavailable(Message("durable.no_start", python=self._python, reason=reason(error))) from error
        hello = self._exchange(process, "")
        if "unavailable" in hello:
            self.close()
            raise DurableUnavailable(Message(f"durable.{hello['unavailable']}", error=hello["error"]))
        return process

    def _exchange(self, process: subprocess.Popen[str], text: str) -> Json:
        assert process.stdin is not None
        assert process.stdout is not None
        self._late = False
        timer = threading.Timer(self._timeout, self._expire, (process,))
        timer.daemon = True
        timer.start()
        try:
            process.stdin.write(text)
            process.stdin.flush()
            line = process.stdout.readline()
        except OSError:
            line = ""
        finally:
            timer.cancel()
        if line.endswith("\n"):
            answer: Json = json.loads(line)
            return answer
        try:
            code: int | None = process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            code = None
        self.close()
        if self._late:
            raise DurableError(Message("durable.late", seconds=self._timeout))
        raise WorkerCrashed(Message("durable.ended", code=code))

    def _expire(self, process: subprocess.Popen[str]) -> None:
        self._late = True
        process.kill()


class WorkerCrashed(DurableError):
    """The process died by itself; a run is tried once more in a fresh one."""


class DurableEngine:
    """A rule base that durable-rules matches; same meaning and results as `native.RuleBase`.

    worker: a process to share with other engines; without one the engine has its own and `close` ends it.
    """

    def __init__(
        self,
        rules: Iterable[Rule],
        static: Iterable[Row] = (),
        *,
        python: str = sys.executable,
        timeout_s: float = 60,
        worker: DurableWorker | None = None,
    ) -> None:
        self.rules: tuple[Rule, ...] = tuple(rules)
        check_rules(self.rules)
        self._levels = levels(self.rules)
        self._given = tuple(static)
        self._codec = Codec(self.rules, self._given)
        self._static: StaticRows | None = None
        self._own = worker is None
        self.worker = worker or DurableWorker(python=python, timeout_s=timeout_s)
        self._text = _Translation(self.rules, self._codec)
        self._shards = [list(self._text.shards(level.rules)) for level in self._levels]
        self._sessions = itertools.count(1)

    def run(self, rows: Iterable[Row]) -> WorkingMemory:
        """The fixpoint over the static rows and these rows."""
        listed = list(rows)
        with self.worker.lock:
            try:
                return self._run(listed)
            except WorkerCrashed:
                return self._run(listed)

    def close(self) -> None:
        """Ends the engine's own process."""
        if self._own:
            self.worker.close()

    def __enter__(self) -> DurableEngine:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self, rows: Sequence[Row]) -> WorkingMemory:
        if self.worker.loaded is not self:
            named = {s.name: s.rules for shards in self._shards for s in shards}
            self.worker.ask({"op": "load", "shards": named})
            self.worker.loaded = self
        if self._static is None:
            chosen = closable(self.rules, self._given)
            self._static = StaticRows.freeze(self._session(StaticRows(), self._given, chosen, closing=True))
        return self._session(self._static, rows, frozenset(range(len(self.rules))))

    def _session(
        self, static: StaticRows, rows: Iterable[Row], chosen: frozenset[int], *, closing: bool = False
    ) -> WorkingMemory:
        sid = f"s{next(self._sessions)}"
        session = _Session(self.rules, self._text, static, sid, self.worker, closing=closing)
        for row in rows:
            session.give(row)
        for level, shards in zip(self._levels, self._shards, strict=True):
            session.level(frozenset(level.rules) & chosen, shards)
        self.worker.ask({"op": "close", "sid": sid})
        return session.close()


class _Shard:
    """One ruleset: at most MAX_RULES rules, of which a fact meets at most MAX_BRANCHES conditions."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.rules: dict[str, list[tuple[str, Json]]] = {}
        self.branches: dict[str, int] = {}

    def takes(self, branches: dict[str, int]) -> bool:
        if not self.rules:
            return True
        fits = all(self.branches.get(t, 0) + n <= MAX_BRANCHES for t, n in branches.items())
        return fits and len(self.rules) < MAX_RULES


class _Translation:
    """Rules and rows as durable-rules gets them."""

    def __init__(self, rules: Sequence[Rule], codec: Codec) -> None:
        self._rules, self.codec = rules, codec
        self._types = {type_: f"t{n}" for n, type_ in enumerate(sorted(codec.names))}
        self.long: dict[str, str] = {}
        self._compared: dict[str, set[int]] = {}
        self._ordered: dict[str, set[int]] = {}
        self._sets: dict[tuple[str, int], list[tuple[int, frozenset[str]]]] = {}
        self._names = itertools.count()
        self._set_numbers = itertools.count()

    def shards(self, numbers: Iterable[int]) -> Iterator[_Shard]:
        """The rulesets of a level; rules without positive patterns need none."""
        shard = _Shard(f"r{next(self._names)}")
        for number in numbers:
            patterns = self._patterns(self._rules[number])
            if patterns:
                branches: dict[str, int] = {}
                for pattern, (_, condition) in zip(positives(self._rules[number]), patterns, strict=True):
                    branches[pattern.type] = branches.get(pattern.type, 0) + len(condition["$and"])
                if not shard.takes(branches):
                    yield shard
                    shard = _Shard(f"r{next(self._names)}")
                shard.rules[f"q{number}"] = patterns
                for type_, count in branches.items():
                    shard.branches[type_] = shard.branches.get(type_, 0) + count
        if shard.rules:
            yield shard

    def fact(self, type_: str, key: Key, long: dict[str, str]) -> Json:
        """A row: what some test or join looks at. long: numbers of texts, added to."""
        fact: Json = {"type": self._types[type_], "one": 1, "fid": key[-1]}
        for slot in self._compared.get(type_, ()):
            value = key[slot]
            fact[f"s{slot}"] = _UNKNOWN if value is None else _token(value, long)
            for number, tokens in self._sets.get((type_, slot), ()):
                fact[f"x{number}"] = int(fact[f"s{slot}"] in tokens)
        for slot in self._ordered.get(type_, ()):
            value = key[slot]
            fact[f"n{slot}"] = value if isinstance(value, int) else NO_NUMBER
            if isinstance(value, int) and abs(value) >= -NO_NUMBER:
                raise DurableError(
                    Message("durable.value", field=f"{type_}.{self.codec.names[type_][slot]}", value=value)
                )
        if len(fact) > MAX_PROPERTIES:
            raise DurableError(Message("durable.fields", type=type_))
        return fact

    def _patterns(self, rule: Rule) -> list[tuple[str, Json]]:
        bound = positives(rule)
        numbers = {p.alias: n for n, p in enumerate(bound)}
        guards: list[_Guards] = [{} for _ in bound]
        joins = [[self._join(j, n, bound, numbers, guards) for j in p.joins] for n, p in enumerate(bound)]
        patterns = []
        for n, pattern in enumerate(bound):
            conditions: list[Json] = [{"type": self._types[pattern.type]}]
            for test in pattern.tests:
                conditions += self._test(pattern, test, guards[n])
            conditions += [_guard(slot, kind) for slot, kind in guards[n]]
            # the last condition of a join must never be false, or the matcher reads past its buffer
            conditions += joins[n] + ([{"one": {"p0": "one"}}] if n else [])
            patterns.append((f"p{n}", {"$and": conditions}))
        return patterns

    def _test(self, pattern: Pattern, test: Test, guards: _Guards) -> list[Json]:
        slot = self.codec.slot(pattern.type, test.field)
        if test.op in ORDERING:
            self._look(pattern.type, slot, _INTEGER, guards)
            return [{_OPERATOR[test.op]: {f"n{slot}": test.value}}]
        # only a comparison that an unknown field would pass needs a guard
        self._look(pattern.type, slot, _KNOWN, {} if test.op in ("eq", "in") else guards)
        if test.op == "known":
            return []
        values = test.value if isinstance(test.value, tuple) else (test.value,)
        tokens = sorted({_token(encode_value(v), self.long) for v in values})
        if test.op == "in":
            return [{f"x{self._set(pattern.type, slot, frozenset(tokens))}": 1}]
        if test.op == "eq":
            return [{f"s{slot}": tokens[0]}]
        return [{"$neq": {f"s{slot}": token}} for token in tokens]

    def _set(self, type_: str, slot: int, tokens: frozenset[str]) -> int:
        """The number of the property that says whether a field is in a set: `$or` in a join loses the join."""
        sets = self._sets.setdefault((type_, slot), [])
        for number, known in sets:
            if known == tokens:
                return number
        sets.append((next(self._set_numbers), tokens))
        return sets[-1][0]

    def _look(self, type_: str, slot: int, kind: str, guards: _Guards) -> None:
        """Notes that rows need this slot for equality or for ordering, and that the pattern needs it known."""
        (self._ordered if kind == _INTEGER else self._compared).setdefault(type_, set()).add(slot)
        guards[slot, kind] = None

    def _join(
        self, join: Join, n: int, bound: Sequence[Pattern], numbers: dict[str, int], guards: Sequence[_Guards]
    ) -> Json:
        other = numbers[join.alias]
        mine = self.codec.slot(bound[n].type, join.field)
        theirs = self.codec.slot(bound[other].type, join.other)
        kind = _INTEGER if join.op in ORDERING else _KNOWN
        self._look(bound[n].type, mine, kind, guards[n])
        self._look(bound[other].type, theirs, kind, guards[other])
        letter = "n" if join.op in ORDERING else "s"
        condition = {f"{letter}{mine}": {f"p{other}": f"{letter}{theirs}"}}
        return condition if join.op == "eq" else {_OPERATOR[join.op]: condition}


def _token(encoded: Any, long: dict[str, str]) -> str:
    """A string that stands for one scalar; long or unusual text is numbered."""
    if not isinstance(encoded, str):
        return f"i{encoded}" if isinstance(encoded, int) else f"b{encoded}"
    if _PLAIN.match(encoded):
        return "s" + encoded
    return long.setdefault(encoded, f"l{len(long)}")


def _guard(slot: int, kind: str) -> Json:
    """Excludes the value that stands for an unknown field, or for one that is no integer."""
    return {"$neq": {f"s{slot}": _UNKNOWN}} if kind == _KNOWN else {"$gt": {f"n{slot}": NO_NUMBER}}


class _Session(Journal):
    """One run: what durable-rules matched, and everything concluded from it."""

    def __init__(
        self,
        rules: Sequence[Rule],
        text: _Translation,
        static: StaticRows,
        sid: str,
        worker: DurableWorker,
        *,
        closing: bool,
    ) -> None:
        super().__init__(text.codec, static)
        self._rules, self._text, self._sid, self._worker, self._closing = rules, text, sid, worker, closing
        self._long = dict(text.long)
        self._fields: dict[int, dict[str, Scalar]] = {}

    def level(self, chosen: frozenset[int], shards: Sequence[_Shard]) -> None:
        """Matches the rules of one level to the fixpoint."""
        for number in sorted(chosen):
            if not positives(self._rules[number]):
                self._conclude(number, ())
        everything = (self.static.by_type, self.rows)
        batch = [(type_, row) for rows in everything for type_, found in rows.items() for row in found]
        while batch:
            for number, serials in self._match(shards, batch):
                if number in chosen:
                    self._conclude(number, serials)
            batch = self._admit()
        self._admit()

    def _admit(self) -> list[tuple[str, Key]]:
        """Makes new rows visible to rules."""
        batch = [(type_, row) for type_, rows in self.new.items() for row in rows]
        for type_, row in batch:
            self.rows[type_].append(row)
        self.new.clear()
        return batch

    def _match(self, shards: Sequence[_Shard], batch: Iterable[tuple[str, Key]]) -> list[tuple[int, list[int]]]:
        """What fires when these rows are asserted: rule numbers and the serials of the matched rows."""
        facts = []
        for type_, row in batch:
            names = [shard.name for shard in shards if type_ in shard.branches]
            if names:
                self._fields_of(type_, row)
                facts.append((names, self._text.fact(type_, row, self._long)))
        if not facts:
            return []
        fired = self._worker.ask({"op": "assert", "sid": self._sid, "facts": facts})["fired"]
        return [(int(rule[1:]), serials) for rule, serials in fired]

    def _conclude(self, number: int, serials: Sequence[int]) -> None:
        """Notes a firing, unless it is no match: one row twice, a blocked negation, or known from the static rows."""
        rule = self._rules[number]
        if len(set(serials)) < len(serials):
            return
        closed = not negatives(rule) and all(serial < len(self.static.order) for serial in serials)
        if closed and not self._closing:
            return
        bound = {p.alias: self._fields[serial] for p, serial in zip(positives(rule), serials, strict=True)}
        if any(self._blocked(pattern, bound) for pattern in negatives(rule)):
            return
        for conclusion in rule.conclusions:
            type_, key = self.codec.encode((conclusion.type, _concluded(conclusion, bound)))
            noted = self.ids[type_].get(key)
            (self.add(type_, key) if noted is None else noted).append((rule.id, *serials))

    def _fields_of(self, type_: str, row: Key) -> dict[str, Scalar]:
        fields = self._fields.get(row[-1])
        if fields is None:
            fields = self._fields[row[-1]] = self.codec.decode(type_, row)
        return fields

    def _blocked(self, pattern: Pattern, bound: Mapping[str, Mapping[str, Scalar]]) -> bool:
        """Whether a row matches a negated pattern, or could if its unknown fields were known."""
        for row in (*self.static.by_type.get(pattern.type, ()), *self.rows.get(pattern.type, ())):
            fields = self._fields_of(pattern.type, row)
            verdicts = [holds(t.op, fields.get(t.field), t.value) for t in pattern.tests]
            verdicts += [holds(j.op, fields.get(j.field), bound[j.alias].get(j.other)) for j in pattern.joins]
            if False not in verdicts:
                return True
        return False


def _concluded(conclusion: Conclusion, bound: Mapping[str, Mapping[str, Scalar]]) -> dict[str, Scalar]:
    values = {
        name: bound[value.alias].get(value.field) if isinstance(value, Ref) else value
        for name, value in conclusion.fields.items()
    }
    return {name: value for name, value in values.items() if value is not None}
