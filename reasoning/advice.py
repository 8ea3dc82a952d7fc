"""Which advice belongs into a report: by what was asked, what was said and what was found.

May live here: the choice among the entries of advice.yaml. Must not: any advice.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable

from ..facts import Fact
from ..knowledge.loader import Knowledge
from ..report.model import Advice, Lang

MAX_ADVICE = 6
# Beside a fault only what is nearest: the fault comes first.
MAX_BESIDE_FAULTS = 2


def advise(
    knowledge: Knowledge, question: str | None, facts: Iterable[Fact], causes: Collection[str], lang: Lang
) -> tuple[Advice, ...]:
    """The fitting advice: what a word of the question asks for comes first, then what was said, then what was found.

    causes: of the findings.
    """
    said = {str(f.fields.get("kind")) for f in facts if f.type == "statement"}
    chosen: list[tuple[int, str]] = []
    for key, entry in knowledge.advice.items():
        if question and any(re.search(word, question, re.IGNORECASE) for word in entry["words"]):
            chosen.append((0, key))
        elif said.intersection(entry["statements"]):
            chosen.append((1, key))
        elif not set(entry["causes"]).isdisjoint(causes):
            chosen.append((2, key))
    faults = any(knowledge.causes.get(c, {}).get("severity") != "info" for c in causes)
    best = sorted(chosen, key=lambda c: c[0])[: MAX_BESIDE_FAULTS if faults else MAX_ADVICE]
    return tuple(
        Advice(id=key, text=entry["text"][lang], sources=tuple(entry["sources"]) or None, sample=entry.get("sample"))
        for key, entry in ((key, knowledge.advice[key]) for _, key in best)
    )
