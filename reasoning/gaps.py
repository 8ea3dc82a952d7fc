"""What could not be decided, and which question or command would decide it.

May live here: the walk from undecided rules to the facts that nobody looked at. Must not: any question or rule by name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ..engine.ir import Pattern, Rule
from ..engine.outcome import Outcome, outcome
from ..engine.truth import holds
from ..facts import Scalar
from ..report.model import Lang, NotChecked, Question
from .session import Session

# The field of an observed fact that is free text: two facts that differ in it alone say the same.
FREE = "text"
# What starts a rule: what a program or a person said. Its absence is no gap.
OCCASIONS = ("error", "statement", "symptom")
_MAX_DEPTH = 6
MAX_QUESTIONS = 3


class Gaps:
    """The undecided rules of a session and the observed types that they lack."""

    def __init__(self, session: Session) -> None:
        self.session = session
        self._outcomes: dict[str, Outcome] = {}
        self._missing: dict[str, frozenset[str]] = {}
        self.concluding: dict[str, list[Rule]] = {}
        for rule in session.knowledge.ir:
            for conclusion in rule.conclusions:
                self.concluding.setdefault(conclusion.type, []).append(rule)

    def outcome(self, rule: Rule) -> Outcome:
        """What became of a rule."""
        if rule.id not in self._outcomes:
            self._outcomes[rule.id] = outcome(rule, self.session.memory)
        return self._outcomes[rule.id]

    def undecided(self, rules: Iterable[Rule]) -> dict[str, list[str]]:
        """Observed types that are missing, each with the rules (by file id) that wait for it."""
        waiting: dict[str, list[str]] = {}
        for rule in rules:
            found = self.outcome(rule)
            if found.state == "not_checked" and found.pattern is not None:
                for missing in self.missing(rule.patterns[found.pattern].type, 0):
                    waiting.setdefault(missing, []).append(rule.group)
        return waiting

    def missing(self, type_name: str, depth: int) -> frozenset[str]:
        """The observed types whose absence leaves a type without rows."""
        spec = self.session.knowledge.vocabulary.types[type_name]
        if spec.kind == "observed":
            return frozenset((type_name,))
        if spec.kind == "catalog" or depth > _MAX_DEPTH:
            return frozenset()
        if type_name not in self._missing:
            self._missing[type_name] = frozenset()  # a circle adds nothing
            found: set[str] = set()
            for rule in self.concluding.get(type_name, ()):
                result = self.outcome(rule)
                if result.state == "not_checked" and result.pattern is not None:
                    found |= self.missing(rule.patterns[result.pattern].type, depth + 1)
            self._missing[type_name] = frozenset(found)
        return self._missing[type_name]


def not_checked(session: Session, lang: Lang) -> tuple[NotChecked, ...]:
    """What nobody looked at, by the question that would tell, with the rules that wait for it."""
    knowledge = session.knowledge
    rules = [
        r
        for r in knowledge.ir
        if r.group in knowledge.rules
        and knowledge.rules[r.group].get("severity") in ("error", "warning")
        and _has_occasion(session, r)
    ]
    waiting = Gaps(session).undecided(rules)
    known = {f.type for f in session.facts}
    entries = []
    for slug, question in knowledge.questions.items():
        lacking = [t for t in question["provides"] if t in waiting and t not in known]
        if lacking and question.get("command") and not moot(session, question):
            names = tuple(sorted({r for t in lacking for r in waiting[t]}))
            command = session.command(question)
            entries.append(NotChecked(id=slug, title=question["topic"][lang], obtain=command, rules=names))
    return tuple(entries)


def _has_occasion(session: Session, rule: Rule) -> bool:
    """Whether the messages and statements that a rule is about are there; an error that did not come is no gap."""
    occasions = [p for p in rule.patterns if not p.negated and p.type in OCCASIONS]
    return all(any(_passes(session, row, p) for row in session.memory.of_type(p.type)) for p in occasions)


def _passes(session: Session, row: int, pattern: Pattern) -> bool:
    """Whether a row passes the pattern's tests, its joins aside."""
    fields = session.fields(row)
    return all(holds(t.op, fields.get(t.field), t.value) for t in pattern.tests)


def questions(session: Session, slugs: Iterable[str], separates: Iterable[str], lang: Lang) -> tuple[Question, ...]:
    """The first questions of those ids that the facts do not answer yet."""
    named = tuple(separates) or None
    return tuple(
        Question(id=slug, text=data["text"][lang], command=session.command(data), separates=named)
        for slug in unanswered(session, slugs)[:MAX_QUESTIONS]
        for data in [session.knowledge.questions[slug]]
    )


def unanswered(session: Session, slugs: Iterable[str]) -> list[str]:
    """The ids of the questions that the facts do not answer yet."""
    known = {f.type for f in session.facts}
    asked = []
    for slug in dict.fromkeys(slugs):
        data = session.knowledge.questions.get(slug)
        if data is None or decided(session, data) or (data["provides"] and set(data["provides"]) <= known):
            continue
        asked.append(slug)
    return asked


def moot(session: Session, question: Mapping[str, Any]) -> bool:
    """Whether something known makes the question pointless, or nothing known gives it a point."""
    only_if = [fact for entry in question["only_if"] for fact in entry.items()]
    if only_if and not any(stated(session, type_name, fields) for type_name, fields in only_if):
        return True
    return any(session.memory.of_type(t) for t in question["moot_if"])


def stated(session: Session, type_name: str, fields: Mapping[str, Scalar]) -> bool:
    """Whether some fact says this, whatever the text is that it was read from."""
    return any(
        f.type == type_name and all(f.fields.get(k) == v for k, v in fields.items() if k != FREE) for f in session.facts
    )


def decided(session: Session, data: Mapping[str, Any]) -> bool:
    """Whether the facts answer the question already, or make it pointless."""
    if moot(session, data):
        return True
    given = [[one(entry) for entry in a["gives"]] for a in data["answers"] if a["gives"]]
    if given:
        if any(all(stated(session, t, f) for t, f in facts) for facts in given):
            return True
        return all(any(_identified(session, t, f) for t, f in facts) for facts in given)
    known = {f.type for f in session.facts}
    return bool(data["provides"]) and set(data["provides"]) <= known


def one(entry: Mapping[str, Mapping[str, Scalar]]) -> tuple[str, Mapping[str, Scalar]]:
    """Type and fields of an entry `{type: {field: value}}`."""
    ((type_name, fields),) = entry.items()
    return type_name, fields


def _identified(session: Session, type_name: str, fields: Mapping[str, Scalar]) -> bool:
    """Whether a fact of the same thing is known, whatever it says."""
    names = [n for n in session.knowledge.vocabulary.types[type_name].identity if n != FREE and n in fields]
    return any(
        f.type == type_name and all(f.fields.get(n, fields[n]) == fields[n] for n in names) for f in session.facts
    )
