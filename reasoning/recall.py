"""From a saved report back to the facts that it was made from.

May live here: rebuilding facts with their provenance from a report. Must not: reading files, any choice of what to
explain.
"""

from __future__ import annotations

from ..facts import Fact, Provenance
from ..knowledge.loader import Knowledge
from ..report.model import FactView, Report

# What merging adds by itself; it would be added twice.
_MERGED = "conflict"


def facts_of(report: Report, knowledge: Knowledge) -> list[Fact]:
    """The given facts of a report, as they were before the engine ran.

    Facts that this knowledge does not have a type for (the report of another version) are left out.
    """
    types = {name for name, spec in knowledge.vocabulary.types.items() if spec.kind == "observed"} - {_MERGED}
    return [_fact(v, knowledge) for v in report.facts if v.id.startswith("f") and v.type in types]


def _fact(view: FactView, knowledge: Knowledge) -> Fact:
    vocabulary = knowledge.vocabulary
    fields = {
        name: vocabulary.coerce(view.type, name, value)
        for name, value in view.fields.items()
        if not isinstance(value, float) and "." not in name and vocabulary.check(view.type, name, value) is None
    }
    return Fact(
        view.type,
        fields,
        tuple(
            Provenance(p.kind, p.source, p.line, p.reader or "", p.fields or ())  # type: ignore[arg-type]
            for p in view.provenance
        ),
    )
