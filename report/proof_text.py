"""The text form of explanations: proof trees drawn with lines, and the same as Mermaid flow charts.

May live here: the drawing of `ProofNode` trees. Must not: what they say.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from .citing import with_remark
from .layout import Look, clean, columns, display_width, fit, joined, paint, wrap
from .messages import Words
from .model import Lang, ProofNode, Source

_DEPTH = 12  # deeper trees are cut with an ellipsis, unless everything is wanted
_ALL = 200
# What Mermaid would take for its own syntax inside a quoted label.
_MERMAID = {"#": "#35;", '"': "#quot;", "<": "#lt;", ">": "#gt;", "&": "#amp;", "`": "#96;", "\\": "#92;"}


def render_proofs(
    roots: Sequence[ProofNode],
    *,
    lang: Lang = "en",
    look: Look | None = None,
    detail: str = "normal",
    pages: Mapping[str, Source] | None = None,
) -> str:
    """The trees, one after the other; sources are numbered and listed once, beneath, with what `pages` says of them."""
    look = look or Look()
    drawing = TreeDrawing(Words(lang), look, _ALL if detail == "all" else _DEPTH, pages=pages)
    lines: list[str] = []
    for i, root in enumerate(roots):
        lines += [""] if i else []
        lines += drawing.tree(root)
    if detail != "verdict":
        lines += drawing.sources()
    return fit(joined(lines), look.encoding)


class TreeDrawing:
    """Draws trees of one answer: sources are numbered throughout, and what was drawn before is not drawn again."""

    def __init__(
        self,
        words: Words,
        look: Look,
        depth: int,
        *,
        remarks: bool = True,
        pages: Mapping[str, Source] | None = None,
    ) -> None:
        """remarks: whether it is said where a tree is cut or stands above. pages: the sources by their address."""
        self.words = words
        self.look = look
        self.depth = depth
        self.remarks = remarks
        self.pages = pages or {}
        self._numbers: dict[str, int] = {}
        self._drawn: set[str] = set()

    def tree(self, root: ProofNode, lead: str = "", below: str = "") -> list[str]:
        """A tree; `lead` before its first line, `below` before the others."""
        return self._node(root, lead, below, self.depth)

    def sources(self) -> list[str]:
        """The list of the sources that the trees refer to, with a blank line before it."""
        if not self._numbers:
            return []
        head = ["", self.words("sources") + self.words("fix.colon")]
        told = ((n, with_remark(clean(url), self.pages.get(url), self.words)) for url, n in self._numbers.items())
        return head + [f"  [{number}] {line}" for number, line in told]

    def _node(self, node: ProofNode, lead: str, below: str, depth: int) -> list[str]:
        where = "" if node.where in node.sources else clean(self.words.place(node.where))
        room = max(self.look.width - display_width(lead), 24)
        body = columns(self._text(node), where, room, display_width(where)) or [""]
        children = self._children(node) if depth or self.remarks else ()
        stem = below + ("│  " if children else "")
        lines = [lead + (paint(body[0], "command", self.look) if not lead else body[0])]
        lines += [stem + line for line in _again(body[1:], self.look.width - len(stem))]
        if children and not depth:
            return [*lines, below + "└─ …"]
        for i, child in enumerate(children):
            last = i == len(children) - 1
            lines += self._node(
                child, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  "), depth - 1
            )
        return lines

    def _text(self, node: ProofNode) -> str:
        text = clean(node.text)
        if node.obtain:
            text = self.words("explain.obtain", text=text, command=clean(node.obtain))
        marks = "".join(f"[{self._numbers.setdefault(url, len(self._numbers) + 1)}]" for url in node.sources)
        return f"{text} {marks}" if marks else text

    def _children(self, node: ProofNode) -> tuple[ProofNode, ...]:
        """The children, or a remark where the same step stands above with its own."""
        if not node.children:
            return ()
        key = f"{node.text}\n{node.where}"
        if key in self._drawn:
            return (ProofNode(self.words("explain.above")),) if self.remarks else ()
        self._drawn.add(key)
        return node.children


def _again(lines: list[str], width: int) -> list[str]:
    """Continuation lines wrapped once more to the narrower room behind the stem."""
    return wrap(" ".join(lines), max(width, 24)) if lines else []


def render_mermaid(roots: Sequence[ProofNode]) -> str:
    """The trees as one Mermaid flow chart: what follows points to what it rests on; equal steps are one box."""
    names: dict[str, str] = {}
    boxes: list[str] = []
    edges: dict[str, None] = {}

    def box(node: ProofNode) -> str:
        text = clean(node.text) + (f" ({clean(node.where)})" if node.where and node.where not in node.sources else "")
        if text not in names:
            names[text] = f"n{len(names)}"
            shape = ('["', '"]') if node.children else ('(["', '"])')
            boxes.append(f"  {names[text]}{shape[0]}{_label(text)}{shape[1]}")
        return names[text]

    for parent, child in _pairs(roots):
        above = box(parent)
        if child is not None:
            edges[f"  {above} --> {box(child)}"] = None
    return "\n".join(["flowchart TD", *boxes, *edges]) + "\n"


def _pairs(roots: Sequence[ProofNode]) -> Iterator[tuple[ProofNode, ProofNode | None]]:
    """Every node with each of its children, roots alone too; a shared part once."""
    seen: set[int] = set()
    waiting = list(roots)
    while waiting:
        node = waiting.pop(0)
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield node, None
        for child in node.children:
            yield node, child
        waiting += node.children


def _label(text: str) -> str:
    return "".join(_MERMAID.get(char, char) for char in text)
