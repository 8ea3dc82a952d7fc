"""One diagnosis: facts in, working memory out, and what the working memory says in words and places.

May live here: running an engine over facts and looking up bindings, places and texts. Must not: choices between causes
or fixes, rendering.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from ..engine.ir import Rule
from ..engine.memory import Justification, WorkingMemory
from ..engine.native import RuleBase
from ..engine.proof import Proof, proof
from ..facts import Fact, Provenance, Scalar
from ..knowledge.loader import Knowledge
from ..knowledge.templates import SLOT
from ..messages import closed_up
from ..report.model import Lang
from .merge import merge
from .planning import planned

Bindings = Mapping[str, Mapping[str, Scalar]]
UNKNOWN = "?"
# Threads that come first together wait for one of them to build what all will share.
_LOADING = threading.Lock()


class Engine(Protocol):
    """What every inference engine offers."""

    def run(self, rows: Iterable[tuple[str, Mapping[str, Scalar]]]) -> WorkingMemory:
        """Forward chaining to the fixpoint."""


@functools.lru_cache(maxsize=4)
def _native(knowledge: Knowledge) -> RuleBase:
    return RuleBase(knowledge.ir, knowledge.static)


def native_engine(knowledge: Knowledge) -> Engine:
    """The native engine over this knowledge, built once and shared."""
    with _LOADING:
        return _native(knowledge)


class Session:
    """The facts of one case and everything that follows from them."""

    def __init__(self, knowledge: Knowledge, facts: Iterable[Fact], engine: Engine | None = None) -> None:
        self.knowledge = knowledge
        self.engine = engine or native_engine(knowledge)
        self.facts: tuple[Fact, ...] = tuple(planned(merge(facts, knowledge.vocabulary), knowledge))
        rows = [knowledge.vocabulary.lower(f) for f in self.facts]
        self.memory = self.engine.run(rows)
        self.fact_of: dict[int, Fact] = {}
        for fact, row in zip(self.facts, rows, strict=True):
            found = self.memory.find(row)
            if found is not None:
                self.fact_of.setdefault(found, fact)
        self._proofs: dict[int, Proof] = {}

    def fields(self, row_id: int) -> Mapping[str, Scalar]:
        """The fields of a row."""
        return self.memory.rows[row_id][1]

    def rows(self, type_name: str, **wanted: Scalar) -> list[int]:
        """The rows of a type whose fields have these values."""
        return [i for i in self.memory.of_type(type_name) if all(self.fields(i).get(k) == v for k, v in wanted.items())]

    def system(self) -> str | None:
        """The system that the session is about, where something tells it."""
        if self.rows("wsl_known"):
            return "wsl"
        told = [self.fields(i) for i in self.memory.of_type("platform")]
        return next((str(fields["os"]) for fields in told if not fields.get("assumed")), None)

    def command(self, question: Mapping[str, Any]) -> str | None:
        """The command that answers a question on this system."""
        own: str | None = question.get("commands", {}).get(self.system())
        return own or question.get("command")

    def bindings(self, firing: Justification) -> dict[str, Mapping[str, Scalar]]:
        """The fields bound to each alias of the rule that fired."""
        rule = self.knowledge.patterns[firing.rule]
        aliases = [p.alias for p in rule.patterns if not p.negated]
        return {alias: self.fields(row) for alias, row in zip(aliases, firing.premises, strict=True)}

    def because(self, row_id: int) -> Justification | None:
        """The justification at the root of the row's least proof, None for a given fact."""
        tree = self.proof(row_id)
        if tree.rule is None:
            return None
        return Justification(tree.rule, tuple(p.row for p in tree.premises))

    def proof(self, row_id: int) -> Proof:
        """The proof of least height."""
        if row_id not in self._proofs:
            self._proofs[row_id] = proof(self.memory, row_id)
        return self._proofs[row_id]

    def places(self, row_id: int) -> list[Provenance]:
        """Where the observations at the leaves of the row's proof were read, nearest first."""
        found: dict[Provenance, None] = {}
        level: list[Proof] = [self.proof(row_id)]
        seen: set[int] = set()
        while level:
            deeper: list[Proof] = []
            for node in level:
                if node.row in seen:
                    continue
                seen.add(node.row)
                fact = self.fact_of.get(node.row)
                if fact is not None:
                    found.update(dict.fromkeys(fact.provenance[:1]))
                deeper += node.premises
            level = deeper
        return list(found)

    def rule_text(self, rule_id: str, key: str, bindings: Bindings, lang: Lang) -> str:
        """A text of a rule file (`because`, `title`) with the values in it; empty where the rule has none."""
        rule = self.rule_of(rule_id)
        data = self.knowledge.rules.get(rule.group) if rule else None
        return closed_up(fill(data[key][lang], bindings), lang) if data else ""

    def rule_of(self, rule_id: str) -> Rule | None:
        """The IR rule of that id."""
        return self.knowledge.patterns.get(rule_id)


def fill(template: str, bindings: Bindings) -> str:
    """The template with `{alias.field}` replaced; `{alias.sm|cc}` shows a compute capability as 8.9."""

    def value(match: re.Match[str]) -> str:
        alias, field, form = match.groups()
        found = bindings.get(alias, {}).get(field.replace(".", "__"))
        if found is None:
            return UNKNOWN
        return f"{int(found) // 10}.{int(found) % 10}" if form == "cc" else str(found)

    return SLOT.sub(value, template)


def slots(template: str) -> Sequence[tuple[str, str]]:
    """The (alias, field) pairs that a template uses."""
    return [(m.group(1), m.group(2)) for m in SLOT.finditer(template)]
