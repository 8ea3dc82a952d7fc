"""The names in a planning question: models that the catalog has, and words that look like a name and are in none.

May live here: finding names in a text. Must not: any name of a card or model (data in `knowledge/facts`), what was
asked (planrequest.py).
"""

from __future__ import annotations

import re

from ..facts import Fact, Provenance
from ..knowledge.loader import Knowledge
from .plantables import tables

_UNNAMED = re.compile(r"\b[A-Z]{2,} \d{3,5}\b|\b[A-Za-z][\w.\-]*\d[\w.\-]*\b", re.ASCII)
# What one thing said of itself is not a name: sizes, units, precisions.
_NO_NAME = re.compile(r"(?:fp|bf|int|tf|nf|cu|q|rocm|sm_?|ddr|gddr|hbm|pcie|v|gen|python|x)[\d.]+\w*\Z", re.IGNORECASE)
_BEFORE = 12  # characters: a name may begin with a word before the one with the digits


def models_of(question: str, knowledge: Knowledge) -> list[Fact]:
    """A `model_mentioned` statement for each model of the catalog that a question names."""
    origin = (Provenance("user", "question", None, "question"),)
    named = tables(knowledge).names.find_all(question)
    return [Fact("statement", {"kind": "model_mentioned", "detail": name}, origin) for name, _ in named]


def not_understood(question: str, knowledge: Knowledge) -> list[str]:
    """Words of a question that look like the name of a card or model and are in no catalog."""
    from ..knowledge.phrases import with_lines

    known = tables(knowledge)
    strange = []
    for match in _UNNAMED.finditer(question):
        word = match.group().rstrip(".-")
        around = question[max(0, match.start() - _BEFORE) : match.end()]
        if _NO_NAME.match(word) or known.names.find_all(around) or known.names.find_all(word):
            continue
        if not knowledge.names.find_all(with_lines(around, knowledge.names)):
            strange.append(word)
    return list(dict.fromkeys(strange))
