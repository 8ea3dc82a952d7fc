"""How to: the smallest sets of allowed changes after which a goal holds, each proven by running the engine.

May live here: goals, the search over sets of changes, and the proof that there is none. Must not: any change, build,
cause or version by name (`knowledge/changes.yaml` and the catalogs have them), rendering.

The search is bounded. Values come from what stands in the way: the proofs of a build's strikes and of a finding's
evidence name the figures that the machine is compared with ("needs driver 580"), the picks of the selection rules name
the builds, the environment names the variables. Sets of one, two and three changes of different kinds are tried in the
order of their cost; a set that contains a working one is never looked at, so every way is minimal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations

from ..report.explanations import HowTo, Way
from ..report.model import Lang, ProofNode
from .builds import BuildSpec
from .changes import Change, added_types, after_changes, changeable, concluded_values, values_in
from .diagnosis import Diagnosis
from .fixes import Offer, offers
from .installing import commands
from .refusedbuilds import RefusedBuilds
from .sentences import Sayer
from .session import Session, fill
from .whatif import views
from .why import SessionProofs
from .whynot import Blockers, cause_reasons

NO_ERRORS = "no-errors"
ANY_BUILD = "cuda"
GOALS = (NO_ERRORS, ANY_BUILD)
MAX_SIZE = 3
MAX_RUNS = 160
MAX_WAYS = 5
MAX_VALUES = 4
_ACCELERATED = ("cuda", "rocm", "xpu")


@dataclass(frozen=True)
class Goal:
    """What is wanted. reached: how good a session is for it, None where it does not hold.

    standing: the rows that stand in its way in a session, whose proofs name the values worth trying.
    spec, cause: what the goal is about.
    """

    text: str
    kind: str
    reached: Callable[[Session], str | None]
    standing: Callable[[Session], list[int]]
    spec: BuildSpec | None = None
    cause: str = ""


def how_to(session: Session, goal: str, lang: Lang) -> HowTo | None:
    """The ways to a goal; None where the text is no goal."""
    wanted = _goal(session, goal)
    return None if wanted is None else _Search(session, wanted, lang).result()


# --- goals ------------------------------------------------------------------------------------------------------------


def _goal(session: Session, text: str) -> Goal | None:
    if text == NO_ERRORS:
        return Goal(text, "errors", lambda s: "" if _sound(s) else None, lambda s: _evidence(s, errors_of(s)))
    if text == ANY_BUILD:
        return Goal(text, "build", _survivor(_accelerated), _strikes(_accelerated))
    if text in session.knowledge.causes:
        before = errors_of(session) - {text}

        def gone(s: Session) -> str | None:
            left = {r.cause for r in Diagnosis(s, "en").ranked if r.is_finding}
            return None if text in left or (errors_of(s) - before) else ""

        return Goal(text, "cause", gone, lambda s: _evidence(s, {text}), cause=text)
    spec = BuildSpec.read(text)
    if spec is None:
        return None

    def named(s: Session, build: str) -> bool:
        return spec.names(build) and (spec.local is not None or _accelerated(s, build))

    return Goal(text, "build", _survivor(named), _strikes(named), spec=spec)


def _sound(session: Session) -> bool:
    """Whether there is no error, and no message that nothing explains."""
    diagnosis = Diagnosis(session, "en")
    return not (errors_of(session) or unexplained(diagnosis) or diagnosis.unknown_errors())


def unexplained(diagnosis: Diagnosis) -> list[str]:
    """The symptoms of messages that no finding explains; a question alone is none."""
    symptoms = diagnosis.knowledge.symptoms
    return [s for s in diagnosis.unexplained(diagnosis.confident()) if symptoms[s]["errors"]]


def errors_of(session: Session) -> set[str]:
    """The causes that are findings and no mere information."""
    severity = session.knowledge.causes
    found = Diagnosis(session, "en").confident()
    return {r.cause for r in found if severity.get(r.cause, {}).get("severity", "error") == "error"}


def _accelerated(session: Session, build: str) -> bool:
    rows = session.rows("torch_build", build=build)
    return bool(rows) and session.fields(rows[0])["accelerator"] in _ACCELERATED


def _survivor(wanted: Callable[[Session, str], bool]) -> Callable[[Session], str | None]:
    """The best build of those wanted that nothing rules out as things are."""

    def best(session: Session) -> str | None:
        alive = [session.fields(i) for i in session.rows("survivor", mode="as_is")]
        for fields in sorted(alive, key=lambda f: -int(f["rank"])):
            if wanted(session, str(fields["build"])):
                return str(fields["build"])
        return None

    return best


def _strikes(wanted: Callable[[Session, str], bool]) -> Callable[[Session], list[int]]:
    """The strikes against the wanted builds, those against the best builds first."""

    def standing(session: Session) -> list[int]:
        rank = {
            str(f["build"]): int(f["rank"]) for i in session.memory.of_type("candidate") if (f := session.fields(i))
        }
        struck: dict[str, list[int]] = {}
        for i in session.memory.of_type("strike"):
            build = str(session.fields(i)["build"])
            struck.setdefault(build, []).append(i)
        meant = sorted((b for b in struck if wanted(session, b)), key=lambda b: (len(struck[b]), -rank.get(b, 0)))
        return [i for b in meant[:MAX_VALUES] for i in struck[b]]

    return standing


def _evidence(session: Session, causes: Iterable[str]) -> list[int]:
    diagnosis = Diagnosis(session, "en")
    return [i for c in sorted(causes) for i, _ in diagnosis.support(c)]


# --- the search -------------------------------------------------------------------------------------------------------


class _Search:
    """One search."""

    def __init__(self, session: Session, goal: Goal, lang: Lang) -> None:
        self.session = session
        self.goal = goal
        self.lang = lang
        self.sayer = Sayer(session.knowledge, lang)
        self.words = self.sayer.words
        self.told = self.words("howto.without", cause=goal.cause) if goal.cause else goal.text
        self.runs = 0
        self.complete = True
        self._seen: dict[tuple[Change, ...], Session] = {(): session}

    def result(self) -> HowTo:
        """Whether the goal holds already; else the ways to it or why there is none."""
        reached = self.goal.reached(self.session)
        if reached is not None:
            summary = self.words("howto.installable" if reached else "howto.holds", goal=self.told)
            return HowTo(self.goal.text, True, summary, (Way((), 0, self.then(reached)),) if reached else ())
        own = self.allowed(card=False)
        found = self.search(own)
        impossible: tuple[ProofNode, ...] = ()
        if not found:
            impossible = self.impossible(own)
            cards = self.cards() if self._about_card() else []
            found = self.search([*own, *cards], need=cards) if cards else []
        ways = tuple(self.way(s) for s in sorted(found, key=self._price)[:MAX_WAYS])
        key = "howto.ways" if ways and not impossible else "howto.other_card" if ways else "howto.none"
        summary = self.words(key, goal=self.told)
        return HowTo(self.goal.text, False, summary, ways, impossible, self.runs, self.complete)

    def run(self, changes: tuple[Change, ...]) -> Session | None:
        """The session after changes; None when the limit of runs is reached."""
        if changes not in self._seen:
            if self.runs >= MAX_RUNS:
                self.complete = False
                return None
            self.runs += 1
            self._seen[changes] = after_changes(self.session, changes)
        return self._seen[changes]

    def search(self, options: Sequence[Change], need: Sequence[Change] = ()) -> list[tuple[Change, ...]]:
        """The minimal sets of options that reach the goal; each holds one of `need` where that is given."""
        found: list[tuple[Change, ...]] = []
        for size in range(1, MAX_SIZE + 1):
            for chosen in self._sets(options, size):
                if need and not set(chosen) & set(need):
                    continue
                if any(set(way) <= set(chosen) or self._dominated(chosen, way) for way in found):
                    continue
                after = self.run(chosen)
                if after is None:
                    return found
                if self.goal.reached(after) is not None:
                    found.append(chosen)
            if found and size > 1:
                break
        return found

    def _sets(self, options: Sequence[Change], size: int) -> Iterator[tuple[Change, ...]]:
        sets = (s for s in combinations(options, size) if len({(c.name, c.part) for c in s}) == size)
        yield from sorted(sets, key=self._price)

    def _price(self, changes: Sequence[Change]) -> tuple[int, int, int]:
        order = {c: n for n, c in enumerate(self._options)}
        return (
            sum(c.cost(self.session.knowledge) for c in changes),
            len(changes),
            sum(order.get(c, 0) for c in changes),
        )

    def _dominated(self, chosen: Sequence[Change], way: Sequence[Change]) -> bool:
        """Whether a working set changes the same things to other values and nothing more: one value each is enough."""
        return {(c.name, c.part) for c in way} <= {(c.name, c.part) for c in chosen}

    # --- what may be changed, and to what --------------------------------------------------------------------------

    def allowed(self, *, card: bool) -> list[Change]:
        """The changes worth trying, found round by round: what still stands in the way after one shows the next."""
        options: dict[Change, None] = dict.fromkeys(self._values(self.session, card))
        for change in list(options):
            after = self.run((change,))
            if after is not None and self.goal.reached(after) is None:
                options.update(dict.fromkeys(self._values(after, card)))
        self._options = list(options)
        return self._options

    def _values(self, session: Session, card: bool) -> list[Change]:
        """The least values first: the smallest driver that serves, then what the rules conclude is best."""
        found: list[Change] = []
        for name, values in values_in(session, self.goal.standing(session)).items():
            if self._is_card(name) == card:
                found += [changeable(name, v, session.knowledge) for v in _few(list(reversed(values)))]
        if card:
            return found
        found += concluded_values(session, whole=self.goal.kind != "build")
        return [*found, *self._variables(), *self._fixes()] if self.goal.kind != "build" else found

    def _fixes(self) -> list[Change]:
        """The cures that the rules offer, as far as no change of its own says the same."""
        knowledge = self.session.knowledge
        own = frozenset[str]().union(*(added_types(n, knowledge) for n, e in knowledge.changes.items() if e["how_to"]))
        found = []
        for offer in self._offers():
            data = knowledge.fixes[offer.fix]
            covered = any(own & set(e.get("add", ())) for e in data["effects"])
            if data["kind"] == "cure" and data["effects"] and "not_simulable" not in data and not covered:
                found += [Change(n, offer.fix) for n, e in knowledge.changes.items() if e["fixes"]]
        return found

    def _offers(self) -> list[Offer]:
        """The fixes offered for the causes that stand in the way."""
        causes = [self.goal.cause] if self.goal.cause else sorted(errors_of(self.session))
        return [o for c in causes for o in offers(self.session, c)]

    def _is_card(self, name: str) -> bool:
        """Whether a change replaces the card: the dearest thing there is."""
        field = str(self.session.knowledge.changes[name].get("field", ""))
        return bool(field) and self._kind(field) == "gpu_name"

    def _kind(self, field: str) -> str:
        type_name, _, name = field.partition(".")
        return self.session.knowledge.vocabulary.types[type_name].fields[name].type

    def _variables(self) -> list[Change]:
        names = sorted({str(f.get("name")) for f in self.session.facts if f.type == "env_var"})
        told = {str(v) for i in self._standing_rows() for v in self.session.fields(i).values()}
        tried = [v for v in names if v in told or len(names) <= MAX_VALUES]
        return [Change(n, v) for n in self._with_source("env_var") for v in tried]

    def _standing_rows(self) -> set[int]:
        below: set[int] = set()
        waiting = [self.session.proof(i) for i in self.goal.standing(self.session)]
        while waiting:
            node = waiting.pop()
            if node.row not in below:
                below.add(node.row)
                waiting += node.premises
        return below

    def _with_source(self, type_name: str) -> list[str]:
        entries = self.session.knowledge.changes.items()
        return [n for n, e in entries if e["how_to"] and any(v["type"] == type_name for v in e["values"])]

    # --- another card ----------------------------------------------------------------------------------------------

    def _about_card(self) -> bool:
        """Whether what stands in the way was concluded from the card."""
        entries = self.session.knowledge.changes.items()
        types = {str(e["field"]).partition(".")[0] for n, e in entries if self._is_card(n)}
        return any(self.session.memory.rows[i][0] in types for i in self._standing_rows())

    def cards(self) -> list[Change]:
        """One card for each architecture that could matter, the one with the least power first."""
        found: list[Change] = []
        for name, entry in self.session.knowledge.changes.items():
            if not (entry["how_to"] and self._is_card(name)):
                continue
            for source in entry["values"]:
                rows = self.session.rows(source["type"], **source["where"])
                best: dict[object, tuple[tuple[int, str], str]] = {}
                for i in rows:
                    fields = self.session.fields(i)
                    key = (int(fields.get("tdp_w", 10**6)), str(fields[source["field"]]))
                    sm = fields.get("sm")
                    if sm is not None and (sm not in best or key < best[sm][0]):
                        best[sm] = (key, str(fields[source["field"]]))
                newest = sorted(best, key=lambda sm: -int(str(sm)))[:MAX_VALUES]
                found += [Change(name, "", best[sm][1]) for sm in newest]
        self._options = [*self._options, *found]
        return found

    def impossible(self, own: Sequence[Change]) -> tuple[ProofNode, ...]:
        """What stays in the way under every other change: the proof in the session with the most of them."""
        last: dict[str, Change] = {}
        for change in own:
            last[change.name + change.part] = change
        after = self.run(tuple(last.values())) or self.session
        proofs = SessionProofs(after, self.lang)
        sayer = Sayer(after.knowledge, self.lang)
        blockers = Blockers(after, sayer, proofs)
        if self.goal.spec is not None:
            refused = RefusedBuilds(after, self.goal.spec, sayer, proofs, blockers).answer()
            return refused.reasons[:MAX_WAYS]
        if self.goal.kind == "build":
            strikes = self.goal.standing(after)
            if strikes:
                return tuple(proofs.node(i) for i in strikes[:MAX_WAYS])
            return tuple(blockers.concluding("candidate", (), 0))[:MAX_WAYS]
        rows = self.goal.standing(after)
        if rows:
            return (*self._unproven(), *(proofs.node(i) for i in rows[:MAX_WAYS]))
        if self.goal.kind == "errors":
            return tuple(self._open(after))
        return (
            cause_reasons(Diagnosis(after, self.lang), blockers, self.goal.cause)[:MAX_WAYS] if self.goal.cause else ()
        )

    def _unproven(self) -> list[ProofNode]:
        """The cures whose effect the engine cannot simulate."""
        found = []
        for offer in self._offers():
            data = self.session.knowledge.fixes[offer.fix]
            if data["kind"] == "cure" and "not_simulable" in data:
                title = fill(data["title"][self.lang], offer.bindings)
                text = self.words("howto.unproven", fix=title, note=data["not_simulable"][self.lang])
                sources = tuple(s["url"] for s in data["sources"])
                found.append(ProofNode(text, kind="no_effect", rule=offer.fix, sources=sources))
        return found

    def _open(self, session: Session) -> Iterable[ProofNode]:
        """The messages that nothing explains."""
        diagnosis = Diagnosis(session, self.lang)
        for symptom in unexplained(diagnosis):
            title = session.knowledge.symptoms[symptom]["title"][self.lang]
            yield ProofNode(self.words("howto.open", text=title), kind="unknown")
        for fact in diagnosis.unknown_errors():
            where = str(fact.provenance[0]) if fact.provenance else ""
            yield ProofNode(self.words("howto.open", text=str(fact.get("text"))), where, kind="unknown")

    # --- what is shown ---------------------------------------------------------------------------------------------

    def way(self, changes: tuple[Change, ...]) -> Way:
        """A working set with its cost, what to do then, and why the goal holds."""
        after = self._seen[changes]
        reached = self.goal.reached(after) or ""
        proofs = SessionProofs(after, self.lang)
        proof: list[ProofNode] = []
        if reached:
            proof = [proofs.node(i) for t in ("survivor", "runs_on") for i in after.rows(t, build=reached)][:3]
        shown = tuple(
            replace(v, note=self.note(c, after))
            for c, v in zip(changes, views(changes, self.session, self.lang), strict=True)
        )
        build = reached or self.installed(changes, after)
        return Way(shown, sum(c.cost for c in shown), self.then(build), tuple(proof))

    def installed(self, changes: tuple[Change, ...], after: Session) -> str:
        """The build that one of the changes installs, where one does."""
        for change in changes:
            for source in self.session.knowledge.changes[change.name]["values"]:
                for row in after.memory.of_type(source["type"]) if source.get("value") else ():
                    fields = after.fields(row)
                    if source["value"].format_map(fields) == change.value:
                        return str(fields.get("build", ""))
        return ""

    def note(self, change: Change, after: Session) -> str:
        """What the rules conclude of a change's best value, where they do: the branch of the driver to install."""
        types = self.session.knowledge.vocabulary.types
        for source in self.session.knowledge.changes[change.name]["values"]:
            many = self.session.knowledge.sentences.get(source["type"], {}).get("many")
            if types[source["type"]].kind == "derived" and not many and not source.get("value"):
                for row in after.memory.of_type(source["type"])[:1]:
                    firing = after.because(row)
                    if firing is not None and str(after.fields(row).get(source["field"], "")) != change.value:
                        return after.rule_text(firing.rule, "because", after.bindings(firing), self.lang)
        return ""

    def then(self, build: str) -> str:
        """The command that installs a build."""
        rows = self.session.rows("torch_build", build=build) if build else []
        return commands(self.session, self.session.fields(rows[0]))["pip"] if rows else ""


def _few(values: Sequence[str]) -> list[str]:
    """The least values and the greatest one."""
    return list(values) if len(values) <= MAX_VALUES else [*values[: MAX_VALUES - 1], values[-1]]
