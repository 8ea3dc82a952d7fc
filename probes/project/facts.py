"""How the readers of project files state facts: requirements with their version ranges, and indexes with their variant.

May live here: what the kinds of files share. Must not: the layout of one kind, which versions exist.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ...facts import Fact, Provenance, Scalar
from .markers import applies
from .specs import Range, normalised, parse

MAX_LINES = 20_000
_REQUIREMENT = re.compile(
    r"^(?P<name>[A-Za-z0-9][A-Za-z0-9._-]*) ?(?:\[[^\]]*\])? ?(?P<spec>[^;#@]*)(?:;(?P<marker>[^#]*))?"
)
_VARIANT = re.compile(r"/(?P<variant>cu[0-9]{2,3}|cpu|xpu|rocm[0-9.]+)(?:/|$)")
_CREDENTIALS = re.compile(r"://[^/@ ]+@")
_MAX_TEXT = 200


@dataclass(frozen=True, slots=True)
class Read:
    """What is read for: the system, processor and Python of the target, and the texts of all files by name."""

    system: str
    machine: str
    python: str | None
    texts: Mapping[str, str] = field(default_factory=dict)

    def holds(self, marker: str | None) -> bool | None:
        """Whether a condition holds for the target; None where it cannot be told."""
        return applies(marker, self.system, self.machine, self.python)


class Asked:
    """Collects the facts of one file; a build that no local version names is that of the file's only index."""

    def __init__(self, name: str, target: Read) -> None:
        self.name = name
        self.target = target
        self.facts: list[Fact] = []
        self._variants: set[str] = set()
        self._beside: set[bool] = set()

    def add(self, kind: str, at: int | None, /, **fields: Scalar | None) -> None:
        """A fact of this file."""
        known = {key: value for key, value in fields.items() if value is not None}
        self.facts.append(Fact(kind, known, (Provenance("user", self.name, at, "project"),)))

    def index(self, url: str, line: int | None, *, for_all: bool = True, beside: bool = False) -> str | None:
        """A package index; its variant. for_all: packages without an index of their own come from it.

        beside: it comes on top of the default index and has no priority, so that the newest of both is taken.
        """
        found = _VARIANT.search(url)
        variant = found["variant"] if found else None
        if variant and for_all:
            self._variants.add(variant)
        if for_all:
            self._beside.add(beside)
        self.add(
            "project_index",
            line,
            file=self.name,
            line=line,
            url=_CREDENTIALS.sub("://", url)[:_MAX_TEXT],
            variant=variant,
        )
        return variant

    def requirement(
        self, text: str, line: int | None, variant: str | None = None, role: str = "asked", beside: bool = False
    ) -> None:
        """A requirement as pip writes it; one under a condition that does not hold is none."""
        found = _REQUIREMENT.match(" ".join(text.split()))
        if found is None:
            return
        holds = self.target.holds(found["marker"])
        if holds is False:
            return
        asked = parse(found["spec"])
        self.package(found["name"], asked, line, text.strip(), variant=asked.local or variant, role=role,
                     beside_default=True if beside and variant and not asked.local else None,
                     conditional=True if holds is None else None)  # fmt: skip

    def package(
        self, name: str, asked: Range, line: int | None, text: str, /, *, manager: str = "pip", **more: Scalar | None
    ) -> None:
        """A requirement whose range is known."""
        self.add(
            "requirement", line, file=self.name, package=normalised(name), spec=asked.text or None,
            version=asked.version, pinned=asked.version is not None, at_least=asked.at_least, below=asked.below,
            line=line, text=text[:_MAX_TEXT], manager=manager, **more,
        )  # fmt: skip

    def done(self) -> list[Fact]:
        """The facts; where the file names no index at all, packages come from the default one."""
        more: dict[str, Scalar] = {"variant": next(iter(self._variants))} if len(self._variants) == 1 else {}
        if more and self._beside == {True}:
            more["beside_default"] = True
        if not any(fact.type == "project_index" for fact in self.facts):
            more = {"default_index": True}
        return [_with(more, f) if _of_index(f) else f for f in self.facts]


def _of_index(fact: Fact) -> bool:
    return fact.type == "requirement" and fact.fields.get("manager") == "pip" and "variant" not in fact.fields


def _with(more: Mapping[str, Scalar], fact: Fact) -> Fact:
    return Fact(fact.type, {**fact.fields, **more}, fact.provenance)


def mapping(value: Any) -> dict[str, Any]:
    """The value where it is a mapping, else an empty one."""
    return value if isinstance(value, dict) else {}


def items(value: Any) -> list[Any]:
    """The value where it is a list, else an empty one."""
    return value if isinstance(value, list) else []


def texts(value: Any) -> list[str]:
    """The texts of a list. What YAML's aliases can make huge is never turned into text."""
    return [item for item in items(value) if isinstance(item, str)]


def line_of(lines: list[str], part: str, after: int = 0) -> int | None:
    """The first line that holds a text."""
    return next((number for number, line in enumerate(lines, 1) if number > after and part in line), None)


def yaml_of(text: str) -> dict[str, Any] | None:
    """The mapping that a YAML text is; None for anything else."""
    import yaml

    try:
        document = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError, ValueError):
        return None
    return document if isinstance(document, dict) else None


def toml_of(text: str) -> dict[str, Any] | None:
    """The table that a TOML text is; None for anything else, and where the standard library reads none."""
    import sys
    from importlib import import_module

    if sys.version_info < (3, 11):
        return None
    tomllib = import_module("tomllib")  # so that types can be checked for Python 3.10 too
    try:
        found: dict[str, Any] = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, RecursionError):
        return None
    return found
