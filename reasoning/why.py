"""Why: the proof behind a finding, fix, fact or build of a saved report, as a tree of sentences.

May live here: reading a report's derivation graph. Must not: inference; the report holds all that is needed.
"""

from __future__ import annotations

from collections.abc import Mapping

from ..report.model import Derivation, FactView, ProofNode, Report

_MAX_DEPTH = 12


def explain(report: Report, target: str) -> list[ProofNode]:
    """The proof trees of a target: a finding's number, cause, rule or title, a fix id, a fact id or a build. Empty if none."""
    facts = {f.id: f for f in report.facts}
    steps = {d.fact: d for d in report.derivations}
    roots = _roots(report, target, facts, steps)
    return [_node(r, facts, steps, 0) for r in dict.fromkeys(roots)]


def _roots(report: Report, target: str, facts: Mapping[str, FactView], steps: Mapping[str, Derivation]) -> list[str]:
    for finding in report.findings:
        if target in (finding.id, finding.cause, finding.rule):
            return list(finding.evidence)
    for fix in report.fixes:
        if target in (fix.id, fix.action):
            return [f.id for f in report.facts if f.type == "fix_offer" and f.fields.get("fix") == fix.id]
    if target in facts:
        return [target]
    return [
        d.fact
        for d in steps.values()
        if d.rule == target or target in (str(v) for v in facts[d.fact].fields.values() if d.fact in facts)
    ]


def _node(fact_id: str, facts: Mapping[str, FactView], steps: Mapping[str, Derivation], depth: int) -> ProofNode:
    fact = facts.get(fact_id)
    step = steps.get(fact_id)
    if fact is None:
        return ProofNode(text=fact_id)
    said = _said(fact)
    if step is None or depth > _MAX_DEPTH:
        return ProofNode(text=said, where=_where(fact))
    children = tuple(_node(p, facts, steps, depth + 1) for p in step.premises)
    return ProofNode(
        text=f"{step.text}  [{step.rule}]" if step.text else f"{said}  [{step.rule}]",
        where=_where(fact),
        sources=step.sources or (),
        children=children,
    )


def _said(fact: FactView) -> str:
    fields = ", ".join(f"{k} {_short(v)}" for k, v in fact.fields.items())
    return f"{fact.type}: {fields}"


def _short(value: object) -> str:
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= 100 else text[:97] + "..."


def _where(fact: FactView) -> str:
    if not fact.provenance:
        return ""
    first = fact.provenance[0]
    if first.kind == "catalog":
        return first.source
    place = f"{first.source}:{first.line}" if first.line is not None else first.source
    return place if first.kind != "probe" else f"{first.source} ({first.reader})" if first.reader else first.source
