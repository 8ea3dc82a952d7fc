"""The checks of `messages.yaml`: every text in both languages, with the same values, in the form that is read fast.

May live here: faults of that file. Must not: what a text in a language may hold (`checker.py`), words.
"""

from __future__ import annotations

from collections.abc import Iterator
from string import Formatter

from .. import messages
from ..messages import Message
from .problems import Problem
from .yamlnodes import Node


def message_faults(root: Node) -> Iterator[Problem]:
    """Every fault of the form of the file; root: the file as YAML."""
    read = set(messages.ids())
    before = ""
    for key, entry in root.pairs():
        if key.text < before:
            yield Problem(root.file, key.line, key.text, Message("fault.unsorted", before=before))
        before = key.text
        texts = {name.text: value.text for name, value in entry.pairs()}
        missing = [lang for lang in messages.LANGS if lang not in texts]
        for lang in missing:
            yield Problem(root.file, key.line, f"{key.text}.{lang}", Message("fault.missing"))
        if missing:
            continue
        if key.text not in read:
            yield Problem(root.file, key.line, key.text, Message("fault.message_form"))
        only = _slots(texts["en"]) ^ _slots(texts["zh"])
        if only:
            yield Problem(root.file, key.line, key.text, Message("fault.one_language", slots=sorted(only)))


def _slots(text: str) -> set[str]:
    return {f"{{{name}}}" for _, name, _, _ in Formatter().parse(text) if name}
