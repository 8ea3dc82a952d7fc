"""Where an explanation departs from what the guides say.

May live here: adding those lines to proof trees. Must not: claims, corrections (errata), rules.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ..knowledge.ledger import Ledger
from ..report.messages import Words
from ..report.model import Lang, ProofNode


def with_departures(proofs: Sequence[ProofNode], ledger: Ledger, lang: Lang) -> list[ProofNode]:
    """The trees with one line for each corrected claim, under the first step whose rule follows the correction."""
    words = Words(lang)
    told: set[str] = set()

    def line(claim: str, says: str, sources: Sequence[str]) -> ProofNode:
        text = words("explain.departs", claim=claim, says=says)
        return ProofNode(text=text, kind="departs", sources=tuple(ledger.errata.sources[s].url for s in sources))

    def visit(node: ProofNode) -> ProofNode:
        lines: list[ProofNode] = []
        for claim, erratum in ledger.departures(node.rule) if node.rule else ():
            if claim not in told:
                told.add(claim)
                lines.append(line(claim, getattr(erratum.says, lang), erratum.sources))
        return replace(node, children=(*(visit(child) for child in node.children), *lines))

    return [visit(proof) for proof in proofs]
