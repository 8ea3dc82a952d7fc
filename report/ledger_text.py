"""The ledger of the guides' claims, the errata and the check of a newer catalog, as lines and as JSON documents.

May live here: layout and counting. Must not: claims, corrections, wording (those are data).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from .layout import display_width, pad, wrap
from .messages import Words
from .model import Lang, RuleTest

if TYPE_CHECKING:
    from ..knowledge.ledger import ErrataFile, Line
    from ..knowledge.updating import Update

COVERAGE_SCHEMA = "gpurules.coverage/1"
ERRATA_SCHEMA = "gpurules.errata/1"
UPDATE_SCHEMA = "gpurules.update/1"
_MAX_LISTED = 8


def coverage_lines(
    lines: Sequence[Line], faults: Sequence[str], lang: Lang, *, gaps_only: bool = False
) -> Iterator[str]:
    """One line a claim, then the faults and the count."""
    words = Words(lang)
    for line in lines:
        if gaps_only and not line.is_gap:
            continue
        told = [*line.carriers, *(words("coverage.missing", carrier=m) for m in line.missing)]
        if line.is_gap:
            told.append(words("coverage.open", reason=line.open or words("coverage.no_carrier")))
        yield f"{line.claim:11}  {line.verdict:9}  {', '.join(told)}"
    yield from faults
    gaps = sum(line.is_gap for line in lines)
    verdicts = Counter(line.verdict for line in lines)
    counted = [f"{words(f'coverage.verdict.{name}')} {n}" for name, n in sorted(verdicts.items())]
    shown = words("list.and").join(counted)
    yield words("coverage.count", carried=len(lines) - gaps, claims=len(lines), open=gaps, verdicts=shown)


def coverage_document(lines: Sequence[Line], faults: Sequence[str], lang: Lang) -> dict[str, Any]:
    """The same as JSON values."""
    gaps = sum(line.is_gap for line in lines)
    return {
        "schema": COVERAGE_SCHEMA,
        "ok": not faults and not gaps,
        "claims": [
            {
                "id": line.claim,
                "verdict": line.verdict,
                "topic": getattr(line.topic, lang),
                "where": list(line.carriers),
                **({"missing": list(line.missing)} if line.missing else {}),
                **({"open": line.open or ""} if line.is_gap else {}),
            }
            for line in lines
        ],
        "counts": {"claims": len(lines), "carried": len(lines) - gaps, "open": gaps},
        "verdicts": dict(sorted(Counter(line.verdict for line in lines).items())),
        "faults": list(faults),
    }


def errata_lines(chosen: Sequence[str], found: ErrataFile, lang: Lang, width: int) -> Iterator[str]:
    """Each correction as a short paragraph with its sources."""
    words = Words(lang)
    for claim in chosen:
        entry = found.errata[claim]
        yield claim
        yield from _labelled(words("errata.says"), getattr(entry.says, lang), width)
        yield from _labelled(words("errata.right"), getattr(entry.right, lang), width)
        if entry.sample:
            yield from _labelled(words("errata.sample"), entry.sample, width)
        for source in entry.sources:
            page = found.sources[source]
            told = page.url if page.opened else words("errata.named", url=page.url)
            yield from _labelled(words("errata.source"), told, width)
        yield ""
    yield words("errata.count", n=len(chosen), day=found.retrieved)


def errata_document(chosen: Sequence[str], found: ErrataFile, lang: Lang) -> dict[str, Any]:
    """The same as JSON values."""
    return {
        "schema": ERRATA_SCHEMA,
        "retrieved": found.retrieved,
        "errata": [
            {
                "id": claim,
                "says": getattr(found.errata[claim].says, lang),
                "right": getattr(found.errata[claim].right, lang),
                "sources": [found.sources[s].model_dump() for s in found.errata[claim].sources],
                **({"sample": found.errata[claim].sample} if found.errata[claim].sample else {}),
            }
            for claim in chosen
        ],
    }


def update_lines(update: Update, lang: Lang) -> Iterator[str]:
    """What a newer catalog would change, then its faults."""
    words, catalog = Words(lang), update.catalog
    key = "update.older" if update.older else "update.dates"
    yield words(key, catalog=catalog, new=update.new_day, old=update.old_day)
    for message, rows in (
        ("update.added", update.added),
        ("update.changed", update.changed),
        ("update.removed", update.removed),
    ):
        if rows:
            yield words(message, catalog=catalog, n=len(rows), rows=_first(rows))
    yield from (problem.said(lang) for problem in update.problems)


def update_document(update: Update, lang: Lang) -> dict[str, Any]:
    """The same as JSON values."""
    return {
        "schema": UPDATE_SCHEMA,
        "ok": not update.problems and not update.older,
        "catalog": update.catalog,
        "retrieved": {"here": update.old_day, "file": update.new_day},
        "added": list(update.added),
        "changed": list(update.changed),
        "removed": list(update.removed),
        "problems": [problem.said(lang) for problem in update.problems],
    }


def tested_lines(results: Sequence[RuleTest], lang: Lang, *, passed_too: bool) -> Iterator[str]:
    """One line an example of a rule that did not come out as expected, then the count."""
    words = Words(lang)
    for result in results:
        if passed_too or not result.ok:
            state = words("rules.ok" if result.ok else "rules.failed")
            yield f"{pad(state, 6)}  {result.rule} {result.example}  {result.message}".rstrip()
    yield words("rules.tested", passed=sum(result.ok for result in results), all=len(results))


def _first(rows: Sequence[str]) -> str:
    more = f", … ({len(rows)})" if len(rows) > _MAX_LISTED else ""
    return ", ".join(rows[:_MAX_LISTED]) + more


def _labelled(label: str, text: str, width: int) -> Iterator[str]:
    lead = f"  {label}"
    indent = " " * (display_width(lead) + 1)
    first, *rest = wrap(text, max(width - len(indent), 24)) or [""]
    yield lead + ("" if lead.endswith("：") else " ") + first
    yield from (indent + line for line in rest)
