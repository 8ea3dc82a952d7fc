"""Why not this build: never published, not for this machine, struck out, or outranked.

May live here: reading candidates, strikes and picks of a session for the builds that somebody asks about. Must not: the
choice itself (rules), versions, rendering.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ..engine.ir import Test
from ..facts import Scalar
from ..report.explanations import ChangeView, WhyNot
from ..report.model import ProofNode
from .builds import BuildSpec, order_of
from .changes import values_in
from .sentences import Sayer
from .session import Session
from .why import SessionProofs

if TYPE_CHECKING:
    from .whynot import Blockers

Fields = Mapping[str, Scalar]
_NEAREST = 3
# What ranks builds, in this order: the field of the catalog's rows, and whether more is better.
_RANKING = ("confirmed", "torch__n", "pypi_default", "cuda__n")


class RefusedBuilds:
    """The answer for the builds that a specifier names."""

    def __init__(
        self, session: Session, spec: BuildSpec, sayer: Sayer, proofs: SessionProofs, blockers: Blockers
    ) -> None:
        self.session = session
        self.spec = spec
        self.sayer = sayer
        self.words = sayer.words
        self.proofs = proofs
        self.blockers = blockers
        self.published = [session.fields(i) for i in session.memory.of_type("torch_build")]
        self.platforms = sorted({str(session.fields(i)["platform"]) for i in session.memory.of_type("platform")})
        self.picks = {str(f["mode"]): f for i in session.memory.of_type("pick") if (f := session.fields(i))}
        self.candidates = {str(session.fields(i)["build"]) for i in session.memory.of_type("candidate")}
        self.strikes: dict[str, list[int]] = {}
        for i in session.memory.of_type("strike"):
            self.strikes.setdefault(str(session.fields(i)["build"]), []).append(i)

    def answer(self) -> WhyNot:
        """Whether one of the builds is the pick; else for each what stands in its way, equal reasons told once."""
        meant = [b for b in self.published if self.spec.names(str(b["build"]))]
        here = [b for b in meant if not self.platforms or b["platform"] in self.platforms]
        pick = self.picks.get("as_is")
        if pick and any(b["build"] == pick["build"] for b in here):
            text = self.words("whynot.build.holds", build=_bare(pick))
            return WhyNot(self.spec.text, "build", True, text)
        summary = self.words("whynot.build", build=self.spec.bare)
        if not here:
            return WhyNot(self.spec.text, "build", False, summary, (self.unpublished(meant),))
        here.sort(key=lambda b: -int(b["rank"]))
        considered = [b for b in here if b["build"] in self.candidates]
        nodes = self._grouped(considered or here)
        if considered and len(considered) < len(here) and self.spec.local is None:
            others = [_bare(b) for b in here if b not in considered]
            nodes.append(self._named(ProofNode(self.words("whynot.build.no_candidate"), kind="false"), others))
        nodes += self._other_variants(considered)
        return WhyNot(self.spec.text, "build", False, summary, tuple(nodes), tuple(self.changes(here)))

    # --- what was never published ----------------------------------------------------------------------------------

    def unpublished(self, elsewhere: Sequence[Fields]) -> ProofNode:
        """No such build for this platform, or none at all; with the nearest that there are."""
        platform = ", ".join(self.platforms)
        if elsewhere:
            others = ", ".join(sorted({str(b["platform"]) for b in elsewhere}))
            text = self.words("whynot.build.other_platform", build=self.spec.bare, platform=platform, others=others)
            where = self._platform_place()
        else:
            text, where = self.words("whynot.build.unpublished", build=self.spec.bare), ""
        nearest = self.nearest()
        children = (ProofNode(self.words("whynot.build.nearest", builds=", ".join(nearest))),) if nearest else ()
        return ProofNode(text, where, children=children, kind="unpublished")

    def nearest(self) -> list[str]:
        """The builds that come nearest, for this platform: by variant and by distance of the version."""
        here = [b for b in self.published if not self.platforms or b["platform"] in self.platforms]
        alike = [b for b in here if self.spec.local in (None, b["variant"])]
        asked = [b for b in here if self.spec.covers(str(b["torch"]))]
        wanted = order_of({"torch": self.spec.version})
        near = sorted(alike, key=lambda b: (abs(order_of(b) - wanted), -int(b["rank"])))[:_NEAREST]
        best = sorted(asked, key=lambda b: -int(b["rank"]))[:_NEAREST]
        return list(dict.fromkeys(_bare(b) for b in (*near, *best)))

    def _other_variants(self, here: Sequence[Fields]) -> Iterable[ProofNode]:
        """For a version without a variant: the last release for the next older CUDA major, where this has none."""
        majors = {int(b["cuda_major"]) for b in here if "cuda_major" in b}
        if self.spec.local is not None or not majors:
            return
        older = [
            b
            for b in self.published
            if b["platform"] == here[0]["platform"] and "cuda_major" in b and int(b["cuda_major"]) == min(majors) - 1
        ]
        if older:
            last = max(older, key=lambda b: (order_of(b), int(b["rank"])))
            text = self.words(
                "whynot.build.last", build=self.spec.bare, major=int(last["cuda_major"]), last=_bare(last)
            )
            children = tuple(n for n in (self.reason(last, with_rank=False),) if n is not None)
            yield ProofNode(text, children=children, kind="unpublished")

    # --- what stands in the way of published ones ------------------------------------------------------------------

    def _grouped(self, builds: Sequence[Fields]) -> list[ProofNode]:
        """A node for each build, builds with one and the same reason together."""
        groups: dict[Any, tuple[ProofNode, list[str]]] = {}
        for build in builds:
            node = self.reason(build) or ProofNode("", kind="struck")
            key = (node.kind, node.text, tuple(c.text for c in node.children))
            groups.setdefault(key, (node, []))[1].append(_bare(build))
        return [self._named(node, names) for node, names in groups.values()]

    def _named(self, node: ProofNode, names: Sequence[str]) -> ProofNode:
        shown = ", ".join(names[:_NEAREST])
        if len(names) > _NEAREST:
            shown += self.words("whynot.build.more", n=len(names) - _NEAREST)
        return replace(node, text=self.words("whynot.build.named", builds=shown, text=node.text))

    def reason(self, build: Fields, *, with_rank: bool = True) -> ProofNode | None:
        """Why a published build for this platform is not the one that is offered."""
        name = str(build["build"])
        if name not in self.candidates:
            nodes = self.blockers.concluding("candidate", (Test("build", "eq", name),), 0)
            return ProofNode(self.words("whynot.build.no_candidate"), children=tuple(nodes[:2]), kind="false")
        strikes = [self.strike(i) for i in self.strikes.get(name, ())]
        if strikes:
            first, *rest = {n.text: n for n in strikes}.values()
            return first if not rest else replace(first, children=(*first.children, *rest))
        return self.outranked(build) if with_rank else None

    def strike(self, row: int) -> ProofNode:
        """One strike: the rule's sentence, where the machine's side of it was read, and its premises."""
        firing = self.session.because(row)
        assert firing is not None
        text = self.session.rule_text(firing.rule, "because", self.session.bindings(firing), self.sayer.lang)
        node = self.proofs.node(row)
        places = self.session.places(row)
        told = {k: v for k, v in self.session.fields(row).items() if k in ("reason", "kind")}
        children = tuple(c for c in node.children if c.kind == "rule" and not self._candidate(c))
        where = str(places[0]) if places else ""
        return ProofNode(text, where, node.sources, children, "struck", node.rule, {"type": "strike", "fields": told})

    def _candidate(self, node: ProofNode) -> bool:
        """That a build is a candidate needs no proof here; the reader named it."""
        rule = self.session.knowledge.patterns.get(node.rule)
        return rule is not None and any(c.type == "candidate" for c in rule.conclusions)

    def outranked(self, build: Fields) -> ProofNode:
        """By which build, and by what."""
        pick = self.picks.get("as_is")
        if pick is None:
            return ProofNode(self.words("whynot.build.no_pick"), kind="outranked")
        better = next(b for b in self.published if b["build"] == pick["build"])
        field = next((f for f in _RANKING if better.get(f) != build.get(f)), _RANKING[0])
        text = self.words(f"whynot.outranked.{field.removesuffix('__n')}", build=_bare(better))
        return ProofNode(text, kind="outranked")

    # --- what would change it --------------------------------------------------------------------------------------

    def changes(self, builds: Sequence[Fields]) -> Iterable[ChangeView]:
        """For the build that is best but struck only by what can be changed: the least values that lift the strikes."""
        catalog = self.session.knowledge.changes
        for build in builds:
            rows = self.strikes.get(str(build["build"]), [])
            if not rows or any(self.session.fields(i)["kind"] in ("hard", "pin") for i in rows):
                continue
            for name, values in values_in(self.session, rows).items():
                title = catalog[name]["title"][self.sayer.lang].format(value=values[0], part="")
                yield ChangeView(f"{name}={values[0]}", title)
            return

    def _platform_place(self) -> str:
        for i in self.session.memory.of_type("platform"):
            places = self.session.places(i)
            if places:
                return str(places[0])
        return ""


def _bare(build: Fields) -> str:
    """The build without its platform."""
    return str(build["build"]).partition("@")[0]
