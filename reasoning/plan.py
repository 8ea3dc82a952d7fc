"""One plan for all findings: which fixes, in which order, simulated as a whole.

May live here: the search over fixes and what it found in the report's terms. Must not: any fix, cause or stage by name
(the stages are data), rendering.

A state of the search is a session; a move is a cure that is offered in it, and its effects give the next session, so
that every later fix is chosen for the machine as the earlier ones leave it. Moves keep to the order of the stages and
never replace what an earlier move put in place. The best plan leaves the fewest errors, raises none, and has the
fewest steps; among those the sum of the fixes' `order` decides, the figure by which the fixes of a finding are sorted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..knowledge.loader import Knowledge
from ..report.messages import Words
from ..report.model import FixPlan, Lang, Left, PlanStep, Verified
from .causes import Ranked
from .fixes import Offer, Simulation, instances, offers, present, simulate
from .session import Session

MAX_STEPS = 4
# A session takes some milliseconds; a machine with as many ways as this is described, not planned for.
MAX_SESSIONS = 60
# Of the ways that are open after each step the most promising are followed: a paste of every error there is has many.
MAX_WAYS = 40
# What a fix that cannot be simulated costs beside one that can.
_UNSURE = 100


@dataclass(frozen=True, slots=True)
class _Move:
    """A fix as it was done: where it was offered, and the causes that were open before and after."""

    offer: Offer
    session: Session
    simulated: bool
    before: frozenset[str]
    after: frozenset[str]


@dataclass(frozen=True, slots=True)
class _State:
    """A machine after some moves. assumed: causes that only a fix beyond simulation clears."""

    session: Session
    found: frozenset[str]
    moves: tuple[_Move, ...] = ()
    assumed: frozenset[str] = frozenset()
    placed: frozenset[tuple[object, ...]] = frozenset()
    price: int = 0
    stage: int = 0

    @property
    def open(self) -> frozenset[str]:
        return self.found - self.assumed


@dataclass(slots=True)
class Planner:
    """Finds the plan of one session.

    judge: ranks the causes of a session. errors: the causes that count. findings: ids of the findings by cause.
    """

    session: Session
    judge: Callable[[Session], Iterable[Ranked]]
    errors: frozenset[str]
    findings: Mapping[str, str]
    lang: Lang
    _sessions: int = field(default=0, init=False)
    # Holds the sessions, so that no other one gets the id of one that is gone.
    _offers: dict[tuple[int, str], tuple[Session, list[Offer]]] = field(default_factory=dict, init=False)

    def plan(self) -> FixPlan | None:
        """The plan, None where there is no error to clear."""
        start = _State(self.session, self._found(self.session))
        if not start.found:
            return None
        end = self._best(start)
        return FixPlan(
            steps=tuple(self._step(move) for move in end.moves),
            verified="simulated" if all(m.simulated for m in end.moves) else "not_simulable",
            left=tuple(self._left(cause, start, end) for cause in sorted(end.open, key=self._number)),
        )

    # --- the search ------------------------------------------------------------------------------------------------

    def _best(self, start: _State) -> _State:
        best, level = start, [start]
        seen = {_key(start)}
        for _ in range(MAX_STEPS):
            reached: dict[tuple[object, ...], _State] = {}
            for state in sorted(level, key=_merit):
                for child in self._children(state):
                    key = _key(child)
                    if key not in seen:
                        reached[key] = min(reached.get(key, child), child, key=_merit)
            seen.update(reached)
            level = sorted(reached.values(), key=_merit)[:MAX_WAYS]
            best = min([best, *(s for s in level if s.open <= start.found)], key=_merit)
            if not best.open or not level:
                break
        return best

    def _children(self, state: _State) -> Iterator[_State]:
        for cause in sorted(state.open):
            for offer in self._offered(state.session, cause):
                data = self.session.knowledge.fixes[offer.fix]
                if data["kind"] == "cure" and stage_of(offer.fix, self.session.knowledge)[1] >= state.stage:
                    yield from self._after(state, offer)

    def _offered(self, session: Session, cause: str) -> list[Offer]:
        """The offers for a cause; a fix that cannot be simulated leads to the same session once more."""
        at = (id(session), cause)
        if at not in self._offers:
            self._offers[at] = session, list(offers(session, cause))
        return self._offers[at][1]

    def _after(self, state: _State, offer: Offer) -> Iterator[_State]:
        data = self.session.knowledge.fixes[offer.fix]
        if "not_simulable" in data:
            yield self._moved(state, offer, None)
            return
        for instance in instances(offer, state.session):
            if self._sessions >= MAX_SESSIONS:
                return
            result = simulate(instance, state.session)
            if result is not None and not state.placed & result.placed:
                self._sessions += 1
                yield self._moved(state, instance, result)

    def _moved(self, state: _State, offer: Offer, result: Simulation | None) -> _State:
        session = result.session if result else state.session
        found = self._found(session) if result else state.found
        assumed = state.assumed if result else state.assumed | {offer.cause}
        move = _Move(offer, state.session, result is not None, state.open, found - assumed)
        price = int(self.session.knowledge.fixes[offer.fix]["order"]) + (0 if result else _UNSURE)
        return _State(
            session,
            found,
            (*state.moves, move),
            assumed,
            state.placed | (result.placed if result else frozenset()),
            state.price + price,
            stage_of(offer.fix, self.session.knowledge)[1],
        )

    def _found(self, session: Session) -> frozenset[str]:
        return frozenset(r.cause for r in self.judge(session) if r.is_finding and r.cause in self.errors)

    # --- what was found --------------------------------------------------------------------------------------------

    def _step(self, move: _Move) -> PlanStep:
        offer, knowledge = move.offer, self.session.knowledge
        verified: Verified = "simulated"
        note: str | None = None
        if not move.simulated:
            verified, note = "not_simulable", knowledge.fixes[offer.fix]["not_simulable"][self.lang]
        finding = self.findings.get(offer.cause, "")
        gone = (self.findings[c] for c in sorted(move.before - move.after, key=self._number) if c in self.findings)
        return PlanStep(
            fix=offer.fix,
            finding=finding,
            cause=offer.cause,
            because=knowledge.causes[offer.cause]["title"][self.lang],
            stage=stage_of(offer.fix, knowledge)[0],
            clears=tuple(gone),
            verified=verified,
            instance=present(offer, move.session, finding, self.lang, verified, note),
        )

    def _left(self, cause: str, start: _State, end: _State) -> Left:
        words = Words(self.lang)
        return Left(finding=self.findings.get(cause, cause), reason=self._reason(cause, start, end, words))

    def _reason(self, cause: str, start: _State, end: _State, words: Words) -> str:
        """Why no fix clears a cause: its fixes clash with others, no build runs, or none is known."""
        fixes = self.session.knowledge.fixes
        if any(fixes[o.fix]["kind"] == "cure" for s in (start, end) for o in offers(s.session, cause)):
            return words("fix_plan.left.clash")
        if any("index_url" in d and cause in d["causes"] for d in fixes.values()):
            from .selection import Selection  # which needs the diagnosis, and that needs this

            selection = Selection(end.session, self.lang)
            if not selection.picks.get("as_is"):
                none = selection.nothing()
                return words("fix_plan.left.no_build", reason=none.reason.rstrip(".。"))
        if any(fixes[o.fix]["kind"] == "check" for o in offers(start.session, cause)):
            return words("fix_plan.left.check_first")
        return words("fix_plan.left.no_cure")

    def _number(self, cause: str) -> tuple[int, str]:
        number = self.findings.get(cause, "")
        return (int(number) if number.isdigit() else 10**6, cause)


def stage_of(fix: str, knowledge: Knowledge) -> tuple[str, int]:
    """The stage of a fix and its place among the stages."""
    action = knowledge.fixes[fix]["action"]
    named = (s for s, data in knowledge.stages.items() if action in data["actions"])
    default = (s for s, data in knowledge.stages.items() if data["default"])
    stage = next(named, None) or next(default)
    return stage, int(knowledge.stages[stage]["order"])


def _merit(state: _State) -> tuple[int, int, int, Sequence[str]]:
    return len(state.open), len(state.moves), state.price, [m.offer.fix for m in state.moves]


def _key(state: _State) -> tuple[object, ...]:
    return frozenset(f.key() for f in state.session.facts), state.assumed
