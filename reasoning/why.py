"""Why: the proof behind a finding, fix, fact or build, as a tree of sentences.

May live here: resolving what is meant, and walking derivations, either those that a report keeps or those of a session.
Must not: inference, rendering.

The report's own derivations answer what the report is about; everything else (`other proofs`, another language, a fact
that no finding rests on) needs the session over the report's facts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..engine.memory import Justification
from ..facts import Provenance, Scalar
from ..knowledge.loader import Knowledge, row_key
from ..report.model import Derivation, FactView, Lang, ProofNode, ProvenanceView, Report
from .builds import BuildSpec
from .causes import WORDS
from .sentences import Sayer
from .session import Session

_MAX_DEPTH = 40
_MAX_ALTERNATIVES = 20
_MAX_ROOTS = 12
_CHOICE = ("recommendation", "pick")
_AS_IS = "as_is"


def explain(report: Report, target: str, knowledge: Knowledge) -> list[ProofNode]:
    """The proofs that the report itself keeps: of a finding (number, cause, rule), fix, fact or chosen build."""
    return _Kept(report, Sayer(knowledge, report.lang)).trees(target)


def explain_session(
    session: Session, report: Report, target: str, lang: Lang, *, every: bool = False
) -> list[ProofNode]:
    """The proofs of a target in the session of a report, in any language; `every`: alternative proofs too."""
    return SessionProofs(session, lang).trees(_session_roots(session, report, target), every=every)


# --- from the report --------------------------------------------------------------------------------------------------


class _Kept:
    """The derivations that a report keeps."""

    def __init__(self, report: Report, sayer: Sayer) -> None:
        self.report = report
        self.sayer = sayer
        self.facts = {f.id: f for f in report.facts}
        self.steps = {d.fact: d for d in report.derivations}
        self._made: dict[str, ProofNode] = {}

    def trees(self, target: str) -> list[ProofNode]:
        return [self.node(r, 0) for r in dict.fromkeys(self._roots(target)) if r in self.facts]

    def _roots(self, target: str) -> list[str]:
        for finding in self.report.findings:
            if target in (finding.id, finding.cause, finding.rule):
                return list(finding.evidence) or self._suspected(finding.cause)
        for fix in self.report.fixes:
            if target in (fix.id, fix.action):
                return [f.id for f in self.report.facts if f.type == "fix_offer" and f.fields.get("fix") == fix.id]
        if target in self.facts:
            return [target]
        spec = BuildSpec.read(target)
        if spec is not None:
            return [f.id for f in self._chosen("pick", "runs_on") if spec.names(str(f.fields.get("build", "")))]
        if target in _CHOICE:
            return [f.id for f in self._chosen("pick")]
        return [d.fact for d in self.steps.values() if d.rule == target]

    def _suspected(self, cause: str) -> list[str]:
        """The symptoms that a cause competes to explain, where nothing else speaks for it."""
        symptoms = self.sayer.knowledge.symptoms
        seen = [f for f in self.report.facts if f.type == "symptom"]
        return [f.id for f in seen if cause in symptoms.get(str(f.fields["kind"]), {}).get("causes", ())]

    def _chosen(self, *types: str) -> list[FactView]:
        """The concluded facts of these types that hold for the machine as it is."""
        found = [f for f in self.report.facts if f.type in types and f.id in self.steps]
        return sorted((f for f in found if f.fields.get("mode", _AS_IS) == _AS_IS), key=lambda f: types.index(f.type))

    def node(self, fact_id: str, depth: int) -> ProofNode:
        made = self._made.get(fact_id)
        if made is None:
            made = self._made[fact_id] = self._node(fact_id, depth)
        return made

    def _node(self, fact_id: str, depth: int) -> ProofNode:
        fact = self.facts[fact_id]
        said = self.sayer.fact(fact.type, _scalars(fact.fields))
        step = self.steps.get(fact_id)
        if step is None or depth > _MAX_DEPTH:
            return _leaf(said, fact.type, fact.fields, fact.provenance)
        return _step(said, step, [self.node(p, depth + 1) for p in step.premises if p in self.facts])


def _step(said: str, step: Derivation, children: Sequence[ProofNode]) -> ProofNode:
    return ProofNode(
        text=f"{step.text or said}  [{step.rule}]",
        sources=step.sources or (),
        children=tuple(children),
        kind="rule",
        rule=step.rule,
    )


def _leaf(
    said: str,
    type_name: str,
    fields: Mapping[str, object],
    provenance: Sequence[ProvenanceView] | Sequence[Provenance],
) -> ProofNode:
    first = provenance[0] if provenance else None
    catalog = first is not None and first.kind == "catalog"
    return ProofNode(
        text=said,
        where="" if first is None else place(first.kind, first.source, first.line, first.reader or ""),
        sources=(first.source,) if catalog and first is not None else (),
        kind="catalog" if catalog else "observation",
        fact={"type": type_name, "fields": dict(fields)},
    )


def place(kind: str, source: str, line: int | None, reader: str) -> str:
    """Where something was read: file and line, probe and command, or the address of a catalog's source."""
    if kind == "catalog":
        return source
    told = f"{source}:{line}" if line is not None else source
    return f"{told} ({reader})" if kind == "probe" and reader else told


def _scalars(fields: Mapping[str, Scalar | float]) -> dict[str, Scalar]:
    return {k: v for k, v in fields.items() if not isinstance(v, float)}


# --- from the session -------------------------------------------------------------------------------------------------


class SessionProofs:
    """The proofs of rows of a session in words."""

    def __init__(self, session: Session, lang: Lang) -> None:
        self.session = session
        self.knowledge = session.knowledge
        self.lang = lang
        self.sayer = Sayer(session.knowledge, lang)
        self._made: dict[int, ProofNode] = {}

    def trees(self, rows: Iterable[int], *, every: bool = False) -> list[ProofNode]:
        """A tree a row; with `every` one more for each other way to conclude it or a row beneath it."""
        roots = list(dict.fromkeys(rows))
        found = [self.node(r) for r in roots[:_MAX_ROOTS]]
        return [*found, *self._others(roots)] if every else found

    def node(self, row: int) -> ProofNode:
        """The proof of least height of a row."""
        made = self._made.get(row)
        if made is None:
            firing = self.session.because(row)
            made = self.leaf(row) if firing is None else self.step(row, firing)
            self._made[row] = made
        return made

    def step(self, row: int, firing: Justification) -> ProofNode:
        """One way to conclude a row, its premises proven in the least way."""
        group = self.session.knowledge.patterns[firing.rule].group or firing.rule
        text = self.session.rule_text(firing.rule, "because", self.session.bindings(firing), self.lang)
        return ProofNode(
            text=f"{text or self.said(row)}  [{group}]",
            sources=sources_of(self.knowledge, group),
            children=tuple(self.node(p) for p in firing.premises),
            kind="rule",
            rule=group,
        )

    def leaf(self, row: int) -> ProofNode:
        """A given fact or a catalog row."""
        type_name, fields = self.session.memory.rows[row]
        fact = self.session.fact_of.get(row)
        if fact is not None:
            return _leaf(self.said(row), type_name, fact.fields, fact.provenance)
        source = self.knowledge.sources_of_rows.get(row_key(type_name, fields))
        url = source[0] if source else ""
        shown = {n: fields[n] for n in self.knowledge.vocabulary.types[type_name].identity if n in fields}
        return _leaf(self.said(row), type_name, shown, (Provenance("catalog", url),))

    def said(self, row: int) -> str:
        """A row as a sentence."""
        return self.sayer.fact(*self.session.memory.rows[row])

    def _others(self, roots: Sequence[int]) -> list[ProofNode]:
        """The other justifications of the roots and of the rows in their proofs, as far as they are no circles."""
        found: list[ProofNode] = []
        seen: set[int] = set()
        waiting = list(roots)
        while waiting and len(found) < _MAX_ALTERNATIVES:
            row = waiting.pop(0)
            if row in seen or self.session.memory.static(row):
                continue
            seen.add(row)
            least = self.session.because(row)
            if least is None:
                continue
            waiting += least.premises
            for other in self.session.memory.justifications(row):
                if other != least and not any(row in self._below(p) for p in other.premises):
                    found.append(self.step(row, other))
        return found[:_MAX_ALTERNATIVES]

    def _below(self, row: int) -> set[int]:
        below: set[int] = set()
        waiting = [self.session.proof(row)]
        while waiting:
            proof = waiting.pop()
            if proof.row not in below:
                below.add(proof.row)
                waiting += proof.premises
        return below


def sources_of(knowledge: Knowledge, group: str) -> tuple[str, ...]:
    """The addresses of a rule's or fix's sources."""
    data = knowledge.rules.get(group) or knowledge.fixes.get(group.removeprefix("fix/"))
    return tuple(s["url"] for s in data["sources"]) if data else ()


def _session_roots(session: Session, report: Report, target: str) -> list[int]:
    cause = next((f.cause for f in report.findings if target in (f.id, f.cause, f.rule)), target)
    word = {i: WORDS.get(str(session.fields(i)["word"]), 0.0) for i in session.rows("evidence", cause=cause)}
    rows = [i for i in word if word[i] > 0]
    if rows:
        return sorted(rows, key=lambda i: (-word[i], i))
    if target in session.knowledge.causes or cause != target:
        known = session.knowledge.symptoms
        return [i for i in session.memory.of_type("symptom") if _competes(session, i, cause, known)]
    fixes = [f for f, d in session.knowledge.fixes.items() if target in (f, d["action"])]
    offered = [i for f in fixes for i in session.rows("fix_offer", fix=f)]
    if offered:
        return offered
    spec = BuildSpec.read(target)
    if spec is not None:
        alive = {str(session.fields(i)["build"]) for i in session.rows("survivor", mode=_AS_IS)}
        found = [i for t in ("pick", "survivor", "runs_on") for i in session.memory.of_type(t) if _as_is(session, i)]
        return [i for i in found if (build := str(session.fields(i)["build"])) in alive and spec.names(build)]
    if target in _CHOICE:
        return [i for i in session.memory.of_type("pick") if _as_is(session, i)]
    if target in session.knowledge.vocabulary.types:
        return [i for i in session.memory.of_type(target) if not session.memory.static(i)]
    firings = session.memory.firings(target)
    if firings:
        wanted = session.knowledge.patterns[target].conclusions[0].type
        rows = list(session.memory.of_type(wanted))
        return [i for i in rows if any(j.rule == target for j in session.memory.justifications(i))]
    return _told(session, report, target)


def _competes(session: Session, row: int, cause: str, symptoms: Mapping[str, Mapping[str, Any]]) -> bool:
    return cause in symptoms.get(str(session.fields(row)["kind"]), {}).get("causes", ())


def _as_is(session: Session, row: int) -> bool:
    return session.fields(row).get("mode", _AS_IS) == _AS_IS


def _told(session: Session, report: Report, target: str) -> list[int]:
    """The row of a fact of the report, found by its content."""
    view = next((f for f in report.facts if f.id == target), None)
    if view is None or view.type not in session.knowledge.vocabulary.types:
        return []
    fields = {k: v for k, v in _scalars(view.fields).items() if "__" not in k}
    return session.rows(view.type, **fields)[:1]
