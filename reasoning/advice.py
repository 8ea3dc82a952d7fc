"""Which advice belongs into a report: by what was asked, what was said and what was found.

May live here: the choice among the entries of advice.yaml. Must not: any advice.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from typing import Any

from ..facts import Fact
from ..knowledge.loader import Knowledge
from ..report.messages import Words
from ..report.model import Advice, Lang
from .session import Session

MAX_ADVICE = 6
# Beside a fault only what is nearest: the fault comes first.
MAX_BESIDE_FAULTS = 2


def advise(
    knowledge: Knowledge,
    question: str | None,
    facts: Iterable[Fact],
    causes: Collection[str],
    due: Mapping[str, str],
    lang: Lang,
) -> tuple[Advice, ...]:
    """The fitting advice: what a word of the question asks for comes first, then what was said, then what was found.

    causes: of the findings; what is not for a program that the machine runs is left out. due: what the state of the
    machine calls for, with the reason.
    """
    facts = tuple(facts)
    said = {str(f.fields.get("kind")) for f in facts if f.type == "statement"}
    purposes = {f.fields.get("purpose") for f in facts if f.type == "program"}
    chosen: list[tuple[int, str]] = []
    for key, entry in knowledge.advice.items():
        if question and any(re.search(word, question, re.IGNORECASE) for word in entry["words"]):
            chosen.append((0, key))
        elif key in due or said.intersection(entry["statements"]):
            chosen.append((1, key))
        elif not set(entry["causes"]).isdisjoint(causes) and not purposes & set(entry["not_for"]):
            chosen.append((2, key))
    faults = any(knowledge.causes.get(c, {}).get("severity") != "info" for c in causes)
    best = sorted(chosen, key=lambda c: c[0])[: MAX_BESIDE_FAULTS if faults else MAX_ADVICE]
    return tuple(_advice(key, knowledge.advice[key], due.get(key), lang) for _, key in best)


def _advice(key: str, entry: Mapping[str, Any], reason: str | None, lang: Lang) -> Advice:
    text = entry["text"][lang]
    return Advice(
        id=key,
        text=text if reason is None else Words(lang)("advice.here", text=text, reason=reason),
        sources=tuple(entry["sources"]) or None,
        sample=entry.get("sample"),
    )


def due(session: Session, lang: Lang) -> dict[str, str]:
    """The advice that rules call for, by id, with the sentence of the rule."""
    found: dict[str, str] = {}
    for row in session.rows("advice_due"):
        firing = session.because(row)
        if firing is not None:
            text = session.rule_text(firing.rule, "because", session.bindings(firing), lang)
            found.setdefault(str(session.fields(row)["advice"]), text)
    return found
