"""What if: the conclusions before and after changes of the machine, and why they differ.

May live here: running the engine on changed facts and comparing. Must not: any change by name, rendering.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ..report.explanations import ChangeView, Difference, WhatIf
from ..report.model import Lang, ProofNode
from .causes import Ranked
from .changes import Change, after_changes
from .diagnosis import Diagnosis
from .sentences import Sayer
from .session import Session
from .why import SessionProofs
from .whynot import Blockers, cause_reasons

_REASONS = 2


def what_if(before: Session, changes: Sequence[Change], lang: Lang) -> WhatIf:
    """The difference that the changes make."""
    after = after_changes(before, changes)
    return _Comparison(before, after, changes, lang).result()


def views(changes: Iterable[Change], session: Session, lang: Lang) -> tuple[ChangeView, ...]:
    """Changes as an answer shows them."""
    know = session.knowledge
    return tuple(ChangeView(str(c), c.title(session, lang), c.cost(know), c.risk(know, lang)) for c in changes)


def pick_of(session: Session) -> int | None:
    """The row of the build that is chosen as things are."""
    return next(iter(session.rows("pick", mode="as_is")), None)


def build_name(session: Session, row: int | None) -> str:
    """The chosen build without its platform; empty where there is none."""
    return "" if row is None else str(session.fields(row)["build"]).partition("@")[0]


class _Comparison:
    """Two sessions side by side."""

    def __init__(self, before: Session, after: Session, changes: Sequence[Change], lang: Lang) -> None:
        self.before, self.after = before, after
        self.changes = changes
        self.lang = lang
        self.was, self.now = Diagnosis(before, lang), Diagnosis(after, lang)
        self.sayer = Sayer(after.knowledge, lang)
        self.proofs = SessionProofs(after, lang)
        self.blockers = Blockers(after, self.sayer, self.proofs)

    def result(self) -> WhatIf:
        """Every difference with its reason."""
        was = {r.cause: r for r in self.was.confident()}
        now = {r.cause: r for r in self.now.confident()}
        return WhatIf(
            changes=views(self.changes, self.before, self.lang),
            verdict_before=self.was.verdict(),
            verdict_after=self.now.verdict(),
            recommendation_before=build_name(self.before, pick_of(self.before)),
            recommendation_after=build_name(self.after, pick_of(self.after)),
            gone=tuple(self.gone(r) for c, r in was.items() if c not in now),
            new=tuple(self.new(r) for c, r in now.items() if c not in was),
            stays=tuple(
                Difference(c, self.title(self.now, r), self.now.severity(c)) for c, r in now.items() if c in was
            ),
            choice=self.choice(),
        )

    def title(self, diagnosis: Diagnosis, entry: Ranked) -> str:
        """A finding's title."""
        return diagnosis.finding(entry, 1, ()).title

    def new(self, entry: Ranked) -> Difference:
        """A finding that comes, because of these rules."""
        rows = [i for i, _ in self.now.support(entry.cause)[:_REASONS]]
        reasons = tuple(self.proofs.node(i) for i in rows)
        return Difference(entry.cause, self.title(self.now, entry), self.now.severity(entry.cause), reasons)

    def gone(self, entry: Ranked) -> Difference:
        """A finding that goes, because the rules that concluded it are stopped."""
        cause = entry.cause
        fired = {self.before.knowledge.patterns[j.rule].group for _, j in self.was.support(cause)}
        reasons = cause_reasons(self.now, self.blockers, cause)
        first = [n for n in reasons if n.rule in fired] or list(reasons)
        return Difference(cause, self.title(self.was, entry), self.was.severity(cause), tuple(first[:_REASONS]))

    def choice(self) -> tuple[ProofNode, ...]:
        """Why another build is chosen now: its proof, and what strikes out the former one."""
        old, new = build_name(self.before, pick_of(self.before)), build_name(self.after, pick_of(self.after))
        if old == new:
            return ()
        from .builds import BuildSpec
        from .refusedbuilds import RefusedBuilds

        reasons: list[ProofNode] = []
        spec = BuildSpec.read(old) if old else None
        if spec is not None:
            refused = RefusedBuilds(self.after, spec, self.sayer, self.proofs, self.blockers).answer()
            reasons += refused.reasons[:_REASONS]
        row = pick_of(self.after)
        if row is not None:
            reasons.append(self.proofs.node(row))
        return tuple(reasons)
