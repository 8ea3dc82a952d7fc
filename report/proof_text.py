"""The text form of explanations: proof trees drawn with lines.

May live here: the drawing of `ProofNode` trees. Must not: what they say.
"""

from __future__ import annotations

from collections.abc import Sequence

from .layout import Look, clean, columns, display_width, fit, joined, paint, wrap
from .messages import Words
from .model import Lang, ProofNode

_DEPTH = 12  # deeper trees are cut with an ellipsis, unless everything is wanted


def render_proofs(
    roots: Sequence[ProofNode], *, lang: Lang = "en", look: Look | None = None, detail: str = "normal"
) -> str:
    """The trees, one after the other; sources are listed once, beneath."""
    look = look or Look()
    words = Words(lang)
    lines: list[str] = []
    for i, root in enumerate(roots):
        lines += [""] if i else []
        lines += _node(root, "", "", look, _DEPTH if detail != "all" else 200)
    sources = list(dict.fromkeys(url for root in roots for url in _sources(root)))
    if sources and detail != "verdict":
        lines += ["", words("sources") + words("fix.colon")]
        lines += ["  " + clean(url) for url in sources]
    return fit(joined(lines), look.encoding)


def _node(node: ProofNode, lead: str, below: str, look: Look, depth: int) -> list[str]:
    """A node's lines: `lead` before the first, `below` before the others and the children."""
    where = clean(node.where)
    room = max(look.width - display_width(lead), 24)
    body = columns(clean(node.text), where, room, display_width(where)) or [""]
    stem = below + ("│  " if node.children else "")
    lines = [lead + (paint(body[0], "command", look) if not lead else body[0])]
    lines += [stem + line for line in _again(body[1:], look.width - len(stem))]
    if node.children and not depth:
        return [*lines, below + "└─ …"]
    for i, child in enumerate(node.children):
        last = i == len(node.children) - 1
        lines += _node(child, below + ("└─ " if last else "├─ "), below + ("   " if last else "│  "), look, depth - 1)
    return lines


def _again(lines: list[str], width: int) -> list[str]:
    """Continuation lines wrapped once more to the narrower room behind the stem."""
    return wrap(" ".join(lines), max(width, 24)) if lines else []


def _sources(node: ProofNode) -> list[str]:
    return [*node.sources, *(url for child in node.children for url in _sources(child))]
