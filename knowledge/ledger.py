"""The ledger of the guides' claims: what each is worth, and where the knowledge carries it.

May live here: reading guidance.yaml, errata.yaml and advice.yaml, and checking that every claim has a carrier that
exists. Must not: any claim, figure or advice (they are data), rendering.

A rule, a piece of advice and an erratum name the claims that they carry; the ledger adds what cannot name any: catalog
rows, fixes, formulas. A claim is a gap while nothing carries it, or while what it names is not there.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from ..messages import Message
from . import formulas as _formulas
from .loader import Knowledge, knowledge_files
from .problems import KnowledgeError, Problem, Problems, did_you_mean
from .schema import Day, Kind, OneFact, Slug, Text
from .shapes import shape_fault
from .yamlnodes import load, parse

# A program that shows how, in the checkout and beside the installed package.
Sample = Annotated[str, StringConstraints(pattern=r"^docs/samples/[a-z_]+\.py$")]
ClaimId = Annotated[str, StringConstraints(pattern=r"^G\d-[A-Z]+-\d\d$")]
Verdict = Literal["correct", "imprecise", "outdated", "wrong", "opinion"]
_M = TypeVar("_M", bound=BaseModel)


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Page(_Model):
    """A page of the maker, the project or its maintainers; `opened`: whether it was read for this entry."""

    url: Annotated[str, StringConstraints(pattern=r"^https://\S+$")]
    title: str
    opened: bool = True
    kind: Kind | None = None


class Where(_Model):
    """What carries a claim: one of a rule, a fix, a catalog row with these values, a formula."""

    rule: Slug | None = None
    fix: Slug | None = None
    row: OneFact | None = None
    formula: str | None = None

    @model_validator(mode="after")
    def _one(self) -> Where:
        if len(self.model_fields_set) != 1:
            raise ValueError("carrier_of_one_kind")
        return self


class Claim(_Model):
    """A claim of the guides, without its wording."""

    verdict: Verdict
    where: tuple[Where, ...] = ()
    open: str | None = Field(default=None, description="why nothing carries it yet")


class LedgerFile(_Model):
    """guidance.yaml."""

    topics: dict[str, Text]
    claims: dict[ClaimId, Claim]


class Erratum(_Model):
    """What a guide says, and what holds instead."""

    says: Text
    right: Text
    sources: tuple[str, ...] = Field(min_length=1)
    sample: Sample | None = None


class ErrataFile(_Model):
    """errata.yaml."""

    retrieved: Day
    sources: dict[str, Page]
    errata: dict[ClaimId, Erratum]


class AdviceEntry(_Model):
    """A piece of advice and when it is shown."""

    text: Text
    causes: tuple[Slug, ...] = ()
    statements: tuple[Slug, ...] = ()
    words: tuple[str, ...] = ()
    by_rule: bool = Field(default=False, description="a rule concludes advice_due of it")
    not_for: tuple[Literal["inference", "training"], ...] = ()
    sources: tuple[str, ...] = Field(min_length=1)
    sample: Sample | None = None
    guidance: tuple[ClaimId, ...] = ()

    @model_validator(mode="after")
    def _shown(self) -> AdviceEntry:
        if not (self.causes or self.statements or self.words or self.by_rule):
            raise ValueError("advice_never_shown")
        return self


class AdviceFile(_Model):
    """advice.yaml."""

    retrieved: Day
    sources: dict[str, Page]
    advice: dict[Slug, AdviceEntry]


@dataclass(frozen=True, slots=True)
class Line:
    """A claim in the ledger. carriers: `rule:ID`, `row:TYPE VALUE`, ...; missing: those named that do not exist."""

    claim: str
    verdict: str
    topic: Text
    carriers: tuple[str, ...]
    missing: tuple[str, ...]
    open: str | None

    @property
    def is_gap(self) -> bool:
        """Whether nothing carries the claim, or something that should is not there."""
        return bool(self.missing) or not self.carriers


class Ledger:
    """The three files together with the knowledge that they speak of."""

    def __init__(self, knowledge: Knowledge, folder: Path | None = None) -> None:
        files = knowledge_files(folder)
        self.knowledge = knowledge
        self.book = _read(files, "guidance.yaml", LedgerFile)
        self.errata = _read(files, "errata.yaml", ErrataFile)
        self.advice = _read(files, "advice.yaml", AdviceFile)
        self._named = _named(knowledge, self.errata, self.advice)
        self._rows = _rows_by_type(knowledge, self.book)

    def lines(self) -> list[Line]:
        """Every claim in order, with what carries it."""
        return [self._line(claim, entry) for claim, entry in self.book.claims.items()]

    def faults(self, wanted: Iterable[str] | None = None) -> list[Problem]:
        """What is wrong with the files themselves; `wanted`: the claims that must be in the ledger."""
        return [
            *self._unknown_claims(), *self._uncorrected(), *self._names(), *self._patterns(), *self._due(),
            *self._lost(wanted),
        ]  # fmt: skip

    def departures(self, rule: str) -> list[tuple[str, Erratum]]:
        """The corrected claims that a rule follows in place of what the guides say."""
        named = {c for c, carriers in self._named.items() if f"rule:{rule}" in carriers}
        named |= {c for c, e in self.book.claims.items() if any(w.rule == rule for w in e.where)}
        return [(c, self.errata.errata[c]) for c in self.book.claims if c in named and c in self.errata.errata]

    # --- one claim ---------------------------------------------------------------------------------------------------

    def _line(self, claim: str, entry: Claim) -> Line:
        found: list[str] = list(self._named.get(claim, ()))
        missing: list[str] = []
        for where in entry.where:
            name, there = self._carrier(where)
            (found if there else missing).append(name)
        topic = self.book.topics.get(_topic(claim), Text(en=claim, zh=claim))
        return Line(claim, entry.verdict, topic, tuple(dict.fromkeys(found)), tuple(missing), entry.open)

    def _carrier(self, where: Where) -> tuple[str, bool]:
        if where.row is not None:
            ((type_name, wanted),) = where.row.items()
            shown = next(iter(wanted.values()))
            rows = self._rows.get(type_name, ())
            return f"row:{type_name} {shown}", any(all(r.get(k) == v for k, v in wanted.items()) for r in rows)
        if where.rule is not None:
            return f"rule:{where.rule}", where.rule in self.knowledge.rules
        if where.fix is not None:
            return f"fix:{where.fix}", where.fix in self.knowledge.fixes
        return f"formula:{where.formula}", callable(getattr(_formulas, where.formula or "", None))

    # --- the files ---------------------------------------------------------------------------------------------------

    def _unknown_claims(self) -> Iterator[Problem]:
        claims = self.book.claims
        for claim, carriers in self._named.items():
            if claim not in claims:
                told = Message("fault.no_claim", claim=claim, hint=did_you_mean(claim, claims))
                yield Problem(carriers[0], 0, "", told)
        for claim in claims:
            if _topic(claim) not in self.book.topics:
                yield Problem("guidance.yaml", 0, claim, Message("fault.no_topic", topic=_topic(claim)))

    def _uncorrected(self) -> Iterator[Problem]:
        for claim, entry in self.book.claims.items():
            if entry.verdict in ("wrong", "outdated") and claim not in self.errata.errata:
                told = Message("fault.uncorrected", claim=claim, verdict=entry.verdict)
                yield Problem("errata.yaml", 0, "", told)

    def _names(self) -> Iterator[Problem]:
        for file, table, sources in (
            ("errata.yaml", self.errata.errata, self.errata.sources),
            ("advice.yaml", self.advice.advice, self.advice.sources),
        ):
            for key, entry in table.items():
                for name in entry.sources:
                    if name not in sources:
                        told = Message("fault.no_source", name=name, hint=did_you_mean(name, sources))
                        yield Problem(file, 0, key, told)
            used = {name for entry in table.values() for name in entry.sources}
            unused = (name for name in sources if name not in used)
            yield from (Problem(file, 0, "", Message("fault.source_unused", name=name)) for name in unused)

    def _patterns(self) -> Iterator[Problem]:
        for key, entry in self.advice.advice.items():
            for pattern in entry.words:
                try:
                    re.compile(pattern)
                except re.error as error:
                    told = Message("fault.no_pattern", pattern=pattern, error=error)
                    yield Problem("advice.yaml", 0, key, told)

    def _due(self) -> Iterator[Problem]:
        """Advice that rules call for and that is not there, or the other way round."""
        called = {
            str(conclusion.fields["advice"]): rule.group
            for rule in self.knowledge.ir
            for conclusion in rule.conclusions
            if conclusion.type == "advice_due"
        }
        ready = {key for key, entry in self.advice.advice.items() if entry.by_rule}
        for key in sorted(called.keys() - ready):
            told = Message("fault.no_advice", advice=key, rule=called[key], hint=did_you_mean(key, ready))
            yield Problem("advice.yaml", 0, key, told)
        for key in sorted(ready - called.keys()):
            yield Problem("advice.yaml", 0, key, Message("fault.advice_not_called"))

    def _lost(self, wanted: Iterable[str] | None) -> Iterator[Problem]:
        for claim in wanted or ():
            if claim not in self.book.claims:
                yield Problem("guidance.yaml", 0, "", Message("fault.claim_missing", claim=claim))


def read_advice(files: Mapping[str, Path]) -> AdviceFile:
    """advice.yaml. Raises KnowledgeError."""
    return _read(files, "advice.yaml", AdviceFile)


def read_errata(files: Mapping[str, Path]) -> ErrataFile:
    """errata.yaml. Raises KnowledgeError."""
    return _read(files, "errata.yaml", ErrataFile)


def claim_ids(name: str, data: bytes) -> list[str]:
    """The ids of a file of claims: a YAML list of mappings with `id`. Raises KnowledgeError."""
    problems = Problems()
    root = parse(data.decode("utf-8", "replace"), name, problems)
    problems.raise_if_any()
    found = [value.text for item in (root.elements() if root else ()) if (value := item.get("id")) is not None]
    if not found:
        problems.add(name, 0, "", Message("fault.no_claims"))
        problems.raise_if_any()
    return found


def _topic(claim: str) -> str:
    return claim.split("-")[1]


def _named(knowledge: Knowledge, errata: ErrataFile, advice: AdviceFile) -> dict[str, list[str]]:
    """The carriers that name their claims themselves, by claim."""
    named: dict[str, list[str]] = {}
    for rule_id, rule in knowledge.rules.items():
        for claim in rule.get("guidance", ()):
            named.setdefault(claim, []).append(f"rule:{rule_id}")
    for key, entry in advice.advice.items():
        for claim in entry.guidance:
            named.setdefault(claim, []).append(f"advice:{key}")
    for claim in errata.errata:
        named.setdefault(claim, []).append("erratum")
    return named


def _rows_by_type(knowledge: Knowledge, book: LedgerFile) -> dict[str, list[Mapping[str, Any]]]:
    wanted = {t for entry in book.claims.values() for w in entry.where for t in w.row or ()}
    rows: dict[str, list[Mapping[str, Any]]] = {t: [] for t in wanted}
    for type_name, fields in knowledge.static:
        if type_name in wanted:
            rows[type_name].append(fields)
    return rows


def _read(files: Mapping[str, Path], name: str, model: type[_M]) -> _M:
    """One file, validated. Raises KnowledgeError."""
    problems = Problems()
    root = load(files[name], problems, name)
    problems.raise_if_any()
    try:
        return model.model_validate(root.plain() if root else {})
    except ValidationError as error:
        for fault in error.errors():
            problems.add(name, 0, ".".join(map(str, fault["loc"])), shape_fault(fault))
        raise KnowledgeError(problems.found) from error
