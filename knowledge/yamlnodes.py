"""YAML with line numbers: files become a tree of nodes that remember where they stand.

May live here: parsing and the node model. Must not: any meaning of the content.

Why not `yaml.safe_load`: it loses lines, keeps the last of duplicate keys in silence and turns the version 12.10 into
the number 12.1. Here a plain scalar is an integer only when it is all digits, a boolean only as true/false, else text.
References to anchors (`*name`) are refused: nested ones make a file of a few lines expand without bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from ..errors import reason
from ..facts import Scalar
from ..messages import Message, known
from .problems import Problems

_INT = re.compile(r"-?(?:0|[1-9]\d*)\Z")
_Loader: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)
MAX_DEPTH = 40


@dataclass(slots=True)
class Node:
    """A mapping, list or scalar of a YAML file; `line` is 1-based."""

    file: str
    line: int
    kind: str  # "map" | "list" | "scalar"
    text: str = ""
    quoted: bool = False
    items: list[Node] | None = None
    keys: list[Node] | None = None

    def get(self, key: str) -> Node | None:
        """The value under a key of a mapping, None where absent or where this is no mapping."""
        for name, value in self.pairs():
            if name.text == key:
                return value
        return None

    def pairs(self) -> Iterator[tuple[Node, Node]]:
        """Key and value nodes of a mapping; nothing for other kinds."""
        if self.kind == "map":
            yield from zip(self.keys or (), self.items or (), strict=True)

    def elements(self) -> list[Node]:
        """The elements of a list; nothing for other kinds."""
        return list(self.items or ()) if self.kind == "list" else []

    def scalar(self) -> Scalar:
        """The scalar's value: int and bool only where written plainly, else text."""
        if not self.quoted:
            if self.text in ("true", "false"):
                return self.text == "true"
            if _INT.match(self.text) and len(self.text) < 16:
                return int(self.text)
        return self.text

    def plain(self) -> Any:
        """Plain dicts, lists and scalars."""
        if self.kind == "map":
            return {key.text: value.plain() for key, value in self.pairs()}
        if self.kind == "list":
            return [item.plain() for item in self.items or ()]
        return self.scalar()


def parse(text: str, file: str, problems: Problems) -> Node | None:
    """The document's root, None where it is empty or no YAML (then a problem is recorded)."""
    try:
        root = yaml.compose(text, Loader=_Loader)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        # A reader's error says `reason`, the others `problem`.
        said = getattr(error, "problem", None) or getattr(error, "reason", None) or "unreadable"
        problems.add(file, mark.line + 1 if mark else 0, "", Message("fault.yaml", reason=_parser_fault(said)))
        return None
    except (RecursionError, ValueError) as error:
        problems.add(file, 0, "", Message("fault.yaml", reason=type(error).__name__))
        return None
    return None if root is None else _Converter(file, problems).node(root, 0)


def _parser_fault(said: str) -> Message | str:
    """What the parser finds wrong, in our words where there are any: the faults that people make."""
    name = "yaml." + re.sub(r"[^a-z0-9]+", "_", said.lower()).strip("_")
    return Message(name) if known(name) else said


def load(path: Path, problems: Problems, name: str | None = None) -> Node | None:
    """Parse a UTF-8 file; `name` is what errors call it (default: the path)."""
    shown = name or str(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        problems.add(shown, 0, "", Message("fault.unreadable", reason=reason(error)))
        return None
    return parse(text, shown, problems)


class _Converter:
    """One walk over a composed document, in which every node stands once; an alias shows as a node met again."""

    def __init__(self, file: str, problems: Problems) -> None:
        self.file = file
        self.problems = problems
        self.met: set[int] = set()

    def node(self, node: Any, depth: int) -> Node:
        line = node.start_mark.line + 1
        if id(node) in self.met:
            self.problems.add(self.file, line, "", Message("fault.anchor"))
            return Node(self.file, line, "scalar")
        self.met.add(id(node))
        if depth > MAX_DEPTH:
            self.problems.add(self.file, line, "", Message("fault.depth", n=MAX_DEPTH))
            return Node(self.file, line, "scalar")
        if isinstance(node, yaml.ScalarNode):
            return Node(self.file, line, "scalar", text=node.value, quoted=bool(node.style))
        if isinstance(node, yaml.SequenceNode):
            return Node(self.file, line, "list", items=[self.node(n, depth + 1) for n in node.value])
        return self.mapping(node, line, depth)

    def mapping(self, node: Any, line: int, depth: int) -> Node:
        keys: list[Node] = []
        values: list[Node] = []
        seen: set[str] = set()
        for key, value in node.value:
            name = self.node(key, depth + 1)
            if name.kind != "scalar":
                self.problems.add(self.file, name.line, "", Message("fault.key"))
                continue
            if name.text in seen:
                self.problems.add(self.file, name.line, name.text, Message("fault.twice"))
                continue
            seen.add(name.text)
            keys.append(name)
            values.append(self.node(value, depth + 1))
        return Node(self.file, line, "map", keys=keys, items=values)
