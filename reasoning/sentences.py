"""Facts and conditions in words, from the sentences of the knowledge.

May live here: filling sentences, and putting tests of a rule into words. Must not: any fact type by name, rules' own
sentences, choices.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ..engine.ir import Join, Pattern, Test
from ..facts import Scalar
from ..knowledge.loader import Knowledge
from ..knowledge.versions import version_text
from ..report.messages import Words
from ..report.model import Lang
from .session import Bindings

_FIELD = re.compile(r"\{([a-z_][a-z0-9_]*)\}")
_OPTIONAL = re.compile(r"\[([^\[\]]*)\]")
_LONGEST = 160  # characters of one value


class Sayer:
    """Says facts and conditions in one language."""

    def __init__(self, knowledge: Knowledge, lang: Lang) -> None:
        self.knowledge = knowledge
        self.lang = lang
        self.words = Words(lang)

    def fact(self, type_name: str, fields: Mapping[str, Scalar]) -> str:
        """One fact as a sentence; by its fields where the type has no sentence or the fact lacks a field of it."""
        template = self.knowledge.sentences.get(type_name, {}).get("say")
        return (template and self._filled(template[self.lang], type_name, fields)) or self._listed(type_name, fields)

    def noun(self, type_name: str) -> str:
        """What one such thing is called."""
        entry = self.knowledge.sentences.get(type_name)
        return entry["noun"][self.lang] if entry else type_name.replace("_", " ")

    def wanted(self, pattern: Pattern, bindings: Bindings) -> str:
        """What a pattern asks for: the noun of its type and its conditions, with the values that earlier rows give."""
        every: list[Test | Join] = [*pattern.tests, *pattern.joins]
        fixed = {c.field for c in every if c.op == "eq"}
        kept = [c for c in every if c.op == "eq" or c.field not in fixed]
        conditions = [self.condition(pattern.type, c, bindings) for c in kept]
        told = self.words("explain.and").join(dict.fromkeys(c for c in conditions if c))
        noun = self.noun(pattern.type)
        return self.words("explain.with", noun=noun, conditions=told) if told else noun

    def condition(self, type_name: str, condition: Test | Join, bindings: Bindings) -> str:
        """One test or join in words; empty where it only asks that a field is known."""
        label = self.label(type_name, condition.field)
        if isinstance(condition, Join):
            other = bindings.get(condition.alias, {})
            base = condition.other.removesuffix("__n")
            value = other.get(base, other.get(condition.other))
            told = self.words("explain.unknown") if value is None else self.value(type_name, condition.field, value)
        elif condition.op == "known":
            return self.words("explain.known", field=label)
        elif isinstance(condition.value, tuple):
            values = [self.value(type_name, condition.field, v) for v in condition.value]
            told = self.words("explain.and").join(values)
        else:
            told = self.value(type_name, condition.field, condition.value)
        truth = condition.op == "eq" and isinstance(condition, Test) and isinstance(condition.value, bool)
        return self.words("explain.op.is" if truth else f"explain.op.{condition.op}", field=label, value=told)

    def label(self, type_name: str, field: str) -> str:
        """What a field is called."""
        base, _, part = field.partition("__")
        named = self.knowledge.sentences.get(type_name, {}).get("fields", {}).get(base)
        told = named[self.lang] if named else self.words.named(f"field.{base}", base.replace("_", " "))
        return f"{told} ({part})" if part in ("local", "accelerator", "minor") else told

    def value(self, type_name: str, field: str, value: Scalar) -> str:
        """A value as people write it: ordered versions and compute capabilities with their points."""
        base, _, part = field.partition("__")
        known = self.knowledge.vocabulary.types.get(type_name)  # a report of another version may have other types
        spec = known.fields.get(base) if known else None
        if isinstance(value, bool):
            return self.words("explain.yes" if value else "explain.no")
        if isinstance(value, int) and spec is not None:
            if spec.type == "sm" and not part:
                return f"{value // 10}.{value % 10}"
            if spec.type == "version" and part.endswith("n"):
                return version_text(value)
        if spec is not None and spec.type == "enum":
            return self.words.named(f"value.{value}", str(value))
        text = str(value) or self.words("explain.empty")
        return text if len(text) <= _LONGEST else text[: _LONGEST - 3] + "..."

    def _filled(self, template: str, type_name: str, fields: Mapping[str, Scalar]) -> str | None:
        def lacks(text: str) -> bool:
            return any(m.group(1) not in fields for m in _FIELD.finditer(text))

        kept = _OPTIONAL.sub(lambda m: "" if lacks(m.group(1)) else m.group(1), template)
        if lacks(kept):
            return None
        return _FIELD.sub(lambda m: self.value(type_name, m.group(1), fields[m.group(1)]), kept).strip()

    def _listed(self, type_name: str, fields: Mapping[str, Scalar]) -> str:
        told = ", ".join(
            f"{self.label(type_name, n)} {self.value(type_name, n, v)}" for n, v in fields.items() if "__" not in n
        )
        return f"{type_name}: {told}" if told else type_name
