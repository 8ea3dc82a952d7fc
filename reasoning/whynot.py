"""Why not: what keeps a cause, fix, build, rule or derived fact from holding, down to what was read or not looked at.

May live here: finding the rules that could conclude a target, the deepest partial match of each, and what stopped it.
Must not: inference, rendering, any rule, cause or fix by name.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..engine.ir import Conclusion, Join, Pattern, Ref, Rule, Test
from ..engine.outcome import Outcome, deepest
from ..engine.truth import holds
from ..facts import Scalar
from ..knowledge.loader import Knowledge
from ..report.explanations import WhyNot
from ..report.model import Lang, ProofNode
from .builds import BuildSpec
from .causes import EXCLUDES, WORDS
from .diagnosis import Diagnosis, ranked
from .fixes import cures, offers, simulated
from .sentences import Sayer
from .session import Session
from .why import SessionProofs, sources_of

_MAX_DEPTH = 4
_MAX_RULES = 4  # of those that could conclude a derived fact, beneath the first level


def why_not(session: Session, target: str, lang: Lang, diagnosis: Diagnosis | None = None) -> WhyNot | None:
    """Why a target does not hold; None where there is no such target."""
    return _WhyNot(session, lang, diagnosis).answer(target)


class _WhyNot:
    """The answers about one session."""

    def __init__(self, session: Session, lang: Lang, diagnosis: Diagnosis | None) -> None:
        self.session = session
        self.knowledge = session.knowledge
        self.lang = lang
        self.sayer = Sayer(session.knowledge, lang)
        self.words = self.sayer.words
        self._given = diagnosis
        self.proofs = SessionProofs(session, lang)
        self.blockers = Blockers(session, self.sayer, self.proofs)

    @functools.cached_property
    def diagnosis(self) -> Diagnosis:
        """The ranking of the causes, which builds do not need."""
        return self._given or Diagnosis(self.session, self.lang)

    def answer(self, target: str) -> WhyNot | None:
        """The answer for whatever the target is."""
        if target in self.knowledge.causes:
            return self.cause(target)
        fixes = [f for f, d in self.knowledge.fixes.items() if target in (f, d["action"])]
        if fixes:
            return self.fix(target, fixes)
        if target in self.knowledge.rules:
            return self.rule(target)
        if target in self.knowledge.vocabulary.types:
            return self.fact(target)
        spec = BuildSpec.read(target)
        return self.build(spec) if spec is not None else None

    def _held(self, target: str, kind: str, text: str) -> WhyNot:
        return WhyNot(target, kind, True, text)

    # --- causes ----------------------------------------------------------------------------------------------------

    def cause(self, cause: str) -> WhyNot:
        """Why a cause is no finding."""
        title = self.knowledge.causes[cause]["title"][self.lang]
        if any(r.cause == cause for r in self.diagnosis.confident()):
            return self._held(cause, "cause", self.words("whynot.cause.holds", title=title))
        return WhyNot(cause, "cause", False, self.words("whynot.cause", title=title), self.cause_nodes(cause))

    def cause_nodes(self, cause: str) -> tuple[ProofNode, ...]:
        """What excludes or outweighs a cause, or why nothing speaks for it."""
        return cause_reasons(self.diagnosis, self.blockers, cause)

    # --- rules and derived facts -----------------------------------------------------------------------------------

    def rule(self, rule_id: str) -> WhyNot:
        """Why a rule did not fire."""
        rules = [r for r in self.knowledge.ir if r.group == rule_id]
        if any(self.session.memory.firings(r.id) for r in rules):
            return self._held(rule_id, "rule", self.words("whynot.rule.holds", rule=rule_id))
        nodes = _distinct(self.blockers.node(r, 0) for r in rules)
        return WhyNot(rule_id, "rule", False, self.words("whynot.rule", rule=rule_id), nodes)

    def fact(self, type_name: str) -> WhyNot:
        """Why there is no fact of a type."""
        rows = [i for i in self.session.memory.of_type(type_name) if not self.session.memory.static(i)]
        noun = self.sayer.noun(type_name)
        if rows or self.session.memory.of_type(type_name):
            told = self.proofs.said((rows or list(self.session.memory.of_type(type_name)))[0])
            return self._held(type_name, "fact", self.words("whynot.fact.holds", text=told))
        summary = self.words("whynot.fact", noun=noun)
        if self.knowledge.vocabulary.types[type_name].kind == "observed":
            return WhyNot(type_name, "fact", False, summary, (self.blockers.unseen(Pattern("x", type_name), {}),))
        return WhyNot(type_name, "fact", False, summary, self.conclusions(type_name, ()))

    def conclusions(self, type_name: str, wanted: Sequence[Test]) -> tuple[ProofNode, ...]:
        """The rules that could conclude such a fact, those that came furthest first."""
        return _distinct(self.blockers.concluding(type_name, wanted, 0))

    # --- fixes -----------------------------------------------------------------------------------------------------

    def fix(self, target: str, fixes: Sequence[str]) -> WhyNot:
        """Why a fix, or any fix with an action, is not recommended."""
        findings = self.diagnosis.confident()
        for entry in findings:
            if any(f.id in fixes for f in self.diagnosis.fixes(entry, 1)):
                return self._held(target, "fix", self.words("whynot.fix.holds", fix=target))
        causes = [r.cause for r in findings]
        idle: dict[tuple[str, ...], list[str]] = {}
        nodes: list[ProofNode] = []
        for fix in fixes:
            evidenced = [c for c in self.knowledge.fixes[fix]["causes"] if self._speaks(c)]
            if evidenced:
                nodes += self._fix_nodes(fix, evidenced, causes)
            else:
                idle.setdefault(tuple(self.knowledge.fixes[fix]["causes"]), []).append(fix)
        nodes += [self._idle(names, its) for its, names in idle.items()]
        return WhyNot(target, "fix", False, self.words("whynot.fix", fix=target), _distinct(nodes))

    def _speaks(self, cause: str) -> bool:
        """Whether any evidence speaks for a cause."""
        rows = self.session.rows("evidence", cause=cause)
        return any(WORDS.get(str(self.session.fields(i)["word"]), 0) > 0 for i in rows)

    def _idle(self, fixes: Sequence[str], causes: Sequence[str]) -> ProofNode:
        """Fixes for causes that nothing speaks for."""
        text = self.words("whynot.fix.no_cause", fix=", ".join(fixes), causes=", ".join(causes))
        children = tuple(n for c in causes for n in self._cause_child(c))
        return ProofNode(text, children=children, kind="false", rule=fixes[0])

    def _fix_nodes(self, fix: str, evidenced: Sequence[str], findings: Sequence[str]) -> Iterable[ProofNode]:
        title = fix
        offered = [o for c in evidenced for o in offers(self.session, c) if o.fix == fix]
        if not offered:
            for rule in self.knowledge.ir:
                if rule.group == f"fix/{fix}" and "?" not in rule.id:
                    node = self.blockers.node(rule, 0)
                    yield replace(node, text=self.words("whynot.fix.condition", fix=title, text=node.text))
        for offer in offered:
            if offer.cause not in findings:
                text = self.words("whynot.fix.not_found", fix=title, cause=offer.cause)
                yield ProofNode(text, children=self.cause_nodes(offer.cause), kind="false", rule=fix)
            else:
                yield self._simulation(fix, title, offer)

    def _cause_child(self, cause: str) -> Iterable[ProofNode]:
        title = self.knowledge.causes.get(cause, {}).get("title", {}).get(self.lang, cause)
        yield ProofNode(self.words("whynot.cause", title=title), children=self.cause_nodes(cause)[:_MAX_RULES])

    def _simulation(self, fix: str, title: str, offer: Any) -> ProofNode:
        after = simulated(offer, self.session)
        if after is None:
            return ProofNode(self.words("whynot.fix.no_effect", fix=title), kind="no_effect", rule=fix)
        left = [r for r in ranked(after) if r.is_finding]
        if cures(self.diagnosis.ranked, ranked(after), offer.cause, self.diagnosis.errors):
            return ProofNode(self.words("whynot.fix.other", fix=title), kind="no_effect", rule=fix)
        proofs = SessionProofs(after, self.lang)
        later = Diagnosis(after, self.lang)
        stays = [r for r in left if r.cause == offer.cause] or [r for r in left if r.cause in self.diagnosis.errors]
        children = [proofs.node(i) for r in stays for i, _ in later.support(r.cause)[:1]]
        key = "whynot.fix.no_cure" if stays[0].cause == offer.cause else "whynot.fix.raises"
        return ProofNode(
            self.words(key, fix=title, cause=stays[0].cause),
            children=tuple(children),
            kind=key.rpartition(".")[2],
            rule=fix,
        )

    # --- builds ----------------------------------------------------------------------------------------------------

    def build(self, spec: BuildSpec) -> WhyNot:
        """Why a build, or any build of a version, is not offered here."""
        from .refusedbuilds import RefusedBuilds

        return RefusedBuilds(self.session, spec, self.sayer, self.proofs, self.blockers).answer()


class Blockers:
    """What stopped rules, in words."""

    def __init__(self, session: Session, sayer: Sayer, proofs: SessionProofs) -> None:
        self.session = session
        self.knowledge = session.knowledge
        self.sayer = sayer
        self.words = sayer.words
        self.proofs = proofs
        self._open: list[tuple[str, tuple[Test, ...]]] = []
        self._made: dict[tuple[str, tuple[Test, ...]], list[ProofNode]] = {}

    def concluding(self, type_name: str, wanted: Sequence[Test], depth: int) -> list[ProofNode]:
        """A node for each rule that could conclude such a fact, those that came furthest first."""
        key = (type_name, tuple(wanted))
        if key in self._open:
            return []
        if depth and key in self._made:
            return self._made[key]
        self._open.append(key)
        found = []
        for rule, conclusion in _concluding(self.knowledge).get(type_name, ()):
            special = specialised(rule, conclusion, wanted)
            if special is None or "?" in rule.id or _never_for(conclusion, type_name):
                continue
            outcome = deepest(special, self.session.memory)
            if outcome.state != "fired":
                impossible = depth == 0 and self._impossible(special, rule)
                found.append((impossible, self._distance(special, outcome), special, outcome))
        found.sort(key=lambda f: (f[0], f[1], f[2].id))
        possible = [f for f in found if not f[0]] or found
        shown = possible if depth == 0 else possible[:_MAX_RULES]
        nodes = [self._node(rule, outcome, depth) for _, _, rule, outcome in shown]
        self._open.pop()
        if depth:
            self._made[key] = nodes
        return nodes

    def _impossible(self, special: Rule, rule: Rule) -> bool:
        """Whether the catalogs have no row that the question adds to a pattern, whatever the machine is."""
        types = self.knowledge.vocabulary.types
        return any(
            types[p.type].kind == "catalog"
            and not any(
                all(holds(t.op, self.session.fields(i).get(t.field), t.value) for t in p.tests)
                for i in self.session.memory.of_type(p.type)
            )
            for p, old in zip(special.patterns, rule.patterns, strict=True)
            if p is not old
        )

    def _distance(self, rule: Rule, outcome: Outcome) -> float:
        """The share of the positive patterns that is left, smaller where the rule came further."""
        return 1 - len(outcome.matched) / max(1, sum(not p.negated for p in rule.patterns))

    def node(self, rule: Rule, depth: int) -> ProofNode:
        """What stopped a rule that did not fire."""
        return self._node(rule, deepest(rule, self.session.memory), depth)

    def _node(self, rule: Rule, outcome: Outcome, depth: int) -> ProofNode:
        group = rule.group or rule.id
        if outcome.pattern is None:
            return ProofNode(group, kind="rule", rule=group)
        pattern = rule.patterns[outcome.pattern]
        positive = [p.alias for p in rule.patterns if not p.negated]
        bindings = {a: self.session.fields(i) for a, i in zip(positive, outcome.matched, strict=False)}
        node = self._stopped(pattern, outcome, bindings, dict(zip(positive, outcome.matched, strict=False)), depth)
        return replace(node, text=f"{node.text}  [{group}]", rule=group, sources=sources_of(self.knowledge, group))

    def _stopped(
        self,
        pattern: Pattern,
        outcome: Outcome,
        bindings: Mapping[str, Mapping[str, Scalar]],
        bound: Mapping[str, int],
        depth: int,
    ) -> ProofNode:
        wanted = self.sayer.wanted(pattern, bindings)
        needs = {"type": pattern.type, "tests": needed(pattern, bindings), "negated": pattern.negated}
        if outcome.reason == "no_row" or (outcome.reason == "test_false" and self._another(pattern, outcome)):
            return self._none(pattern, bindings, wanted, needs, depth)
        assert outcome.row is not None
        row = outcome.row
        said = self.proofs.said(row)
        fact = self._fact(row)
        where = self._where(row, outcome.test, bound)
        if outcome.reason == "blocked":
            children = self._because(row)
            text = self.words("whynot.blocked", wanted=wanted, text=said)
            return ProofNode(text, where, children=children, kind="blocked", fact=fact, needs=needs)
        if outcome.reason == "test_false":
            text = self.words("whynot.false", wanted=wanted, text=said)
            children = self._deeper(pattern, bindings, depth) or self._because(row)
            return ProofNode(text, where, children=children, kind="false", fact=fact, needs=needs)
        kind = self.session.memory.rows[row][0]
        field = self.sayer.label(kind, outcome.field or "")
        if self.knowledge.vocabulary.types[kind].kind == "catalog":
            text = self.words("whynot.not_set", wanted=wanted, text=said, field=field)
            return ProofNode(text, where, kind="absent", fact=fact, needs=needs)
        text = self.words("whynot.unknown_field", wanted=wanted, text=said, field=field)
        obtain = self.obtain(kind)
        return ProofNode(text, where, kind="unknown", fact=fact, needs=needs, obtain=obtain)

    def _another(self, pattern: Pattern, outcome: Outcome) -> bool:
        """Whether the nearest row is simply another thing of its kind: another message, another package."""
        spec = self.knowledge.vocabulary.types[pattern.type]
        field = outcome.test.field.partition("__")[0] if outcome.test else ""
        if spec.kind == "observed":
            return field in spec.identity
        return spec.kind == "derived" and bool(self.knowledge.sentences.get(pattern.type, {}).get("many"))

    def _none(
        self,
        pattern: Pattern,
        bindings: Mapping[str, Mapping[str, Scalar]],
        wanted: str,
        needs: Mapping[str, Any],
        depth: int,
    ) -> ProofNode:
        spec = self.knowledge.vocabulary.types[pattern.type]
        if spec.kind == "observed":
            return replace(self.unseen(pattern, bindings), needs=needs)
        if spec.kind == "catalog":
            return ProofNode(self.words("whynot.not_in_catalog", wanted=wanted), kind="absent", needs=needs)
        children = self._deeper(pattern, bindings, depth)
        unknown = any(c.kind == "unknown" for c in children)
        return ProofNode(
            self.words("whynot.none", wanted=wanted),
            children=children,
            kind="unknown" if unknown or not children else "false",
            needs=needs,
            obtain=next((c.obtain for c in children if c.obtain), ""),
        )

    def unseen(self, pattern: Pattern, bindings: Mapping[str, Mapping[str, Scalar]]) -> ProofNode:
        """No row of an observed type: known to be absent where its domain was read wholly, else not looked at."""
        wanted = self.sayer.wanted(pattern, bindings)
        spec = self.knowledge.vocabulary.types[pattern.type]
        whole = self.session.rows("coverage", domain=spec.domain, complete=True) if spec.domain else []
        if whole:
            text = self.words("whynot.absent", wanted=wanted, domain=spec.domain)
            return ProofNode(text, self._where(whole[0], None, {}), kind="absent", fact=self._fact(whole[0]))
        kinds = [pattern.type, *self._covered(pattern)]
        obtain = next((o for k in kinds if (o := self.obtain(k))), "")
        return ProofNode(self.words("whynot.unseen", wanted=wanted), kind="unknown", obtain=obtain)

    def _covered(self, pattern: Pattern) -> list[str]:
        """The types of the domain that a missing statement of completeness is about."""
        domains = {t.value for t in pattern.tests if t.field == "domain" and pattern.type == "coverage"}
        return [name for name, spec in self.knowledge.vocabulary.types.items() if spec.domain in domains]

    def obtain(self, type_name: str) -> str:
        """The command, or the question, that tells of facts of a type; a message comes when it comes."""
        if type_name == "error":
            return ""
        able = [q for q in self.knowledge.questions.values() if type_name in q["provides"]]
        asked = sorted(able, key=lambda q: len(q["provides"]))  # the most particular first
        command = next((q["command"] for q in asked if q.get("command")), None)
        return command or next((str(q["text"][self.sayer.lang]) for q in asked), "")

    def _deeper(
        self, pattern: Pattern, bindings: Mapping[str, Mapping[str, Scalar]], depth: int
    ) -> tuple[ProofNode, ...]:
        """Why no rule concludes the derived fact that a pattern asks for."""
        if depth >= _MAX_DEPTH or self.knowledge.vocabulary.types[pattern.type].kind != "derived":
            return ()
        return _distinct(self.concluding(pattern.type, _asked(pattern, bindings), depth + 1))

    def _because(self, row: int) -> tuple[ProofNode, ...]:
        """The proof of a row, unless it is an observation or a catalog row that is said already."""
        return () if self.session.because(row) is None else (self.proofs.node(row),)

    def _fact(self, row: int) -> dict[str, Any]:
        type_name, fields = self.session.memory.rows[row]
        return {"type": type_name, "fields": {k: v for k, v in fields.items() if "__" not in k}}

    def _where(self, row: int, condition: Test | Join | None, bound: Mapping[str, int]) -> str:
        """The place of a row; of the row it is compared with where the first is no observation."""
        rows = [row]
        if isinstance(condition, Join) and condition.alias in bound:
            rows.append(bound[condition.alias])
        for candidate in rows:
            places = self.session.places(candidate)
            if places:
                return str(places[0])
        node = self.proofs.node(row)
        return node.where if not node.children else ""


def cause_reasons(diagnosis: Diagnosis, blockers: Blockers, cause: str) -> tuple[ProofNode, ...]:
    """What excludes or outweighs a cause, or why nothing speaks for it."""
    session, proofs = blockers.session, blockers.proofs
    rows = session.rows("evidence", cause=cause)
    word = {i: str(session.fields(i)["word"]) for i in rows}
    excluding = [i for i in rows if word[i] == EXCLUDES]
    if excluding:
        return tuple(replace(proofs.node(i), kind="excluded") for i in excluding)
    against = tuple(replace(proofs.node(i), kind="against") for i in rows if WORDS[word[i]] < 0)
    speaking = [i for i in rows if WORDS[word[i]] > 0]
    if not speaking:
        stopped = _distinct(blockers.concluding("evidence", (Test("cause", "eq", cause),), 0))
        return (*against, *stopped) or (ProofNode(blockers.words("whynot.no_rule"), kind="absent"),)
    return (*against, _weaker(diagnosis, blockers, cause, speaking))


def _weaker(diagnosis: Diagnosis, blockers: Blockers, cause: str, speaking: Sequence[int]) -> ProofNode:
    """Something speaks for a cause, but not enough, or something graver holds."""
    proofs, words = blockers.proofs, blockers.words
    share = next((f"{r.confidence:.0%}" for r in diagnosis.ranked if r.cause == cause), "0%")
    best = next(iter(diagnosis.confident()), None)
    held = tuple(proofs.node(i) for i in speaking)
    if best is None:
        return ProofNode(words("whynot.weak", share=share), children=held, kind="weaker")
    title = blockers.knowledge.causes.get(best.cause, {}).get("title", {}).get(blockers.sayer.lang, best.cause)
    text = words("whynot.outweighed", share=share, title=title, other=f"{best.confidence:.0%}")
    theirs = tuple(proofs.node(i) for i, _ in diagnosis.support(best.cause)[:2])
    return ProofNode(text, children=(*theirs, *held), kind="weaker")


@functools.lru_cache(maxsize=4)
def _concluding(knowledge: Knowledge) -> Mapping[str, Sequence[tuple[Rule, Conclusion]]]:
    """The rules that conclude facts of each type."""
    found: dict[str, list[tuple[Rule, Conclusion]]] = {}
    for rule in knowledge.ir:
        for conclusion in rule.conclusions:
            found.setdefault(conclusion.type, []).append((rule, conclusion))
    return found


def specialised(rule: Rule, conclusion: Conclusion, wanted: Sequence[Test]) -> Rule | None:
    """The rule as it must match to conclude a fact that passes these tests; None where it never can."""
    extra: dict[str, list[Test]] = {}
    for test in wanted:
        given = conclusion.fields.get(test.field)
        if isinstance(given, Ref):
            extra.setdefault(given.alias, []).append(replace(test, field=given.field))
        elif given is None or not holds(test.op, given, test.value):
            return None
    if not extra:
        return rule
    patterns = tuple(replace(p, tests=(*p.tests, *extra[p.alias])) if p.alias in extra else p for p in rule.patterns)
    return replace(rule, patterns=patterns)


def _never_for(conclusion: Conclusion, type_name: str) -> bool:
    """Evidence against a cause concludes nothing that somebody asks for."""
    word = conclusion.fields.get("word")
    return type_name == "evidence" and isinstance(word, str) and WORDS.get(word, -1) < 0


def _asked(pattern: Pattern, bindings: Mapping[str, Mapping[str, Scalar]]) -> tuple[Test, ...]:
    """The conditions of a pattern as tests, joins with the values that earlier rows give."""
    joined = [(j, bindings.get(j.alias, {}).get(j.other)) for j in pattern.joins]
    return (*pattern.tests, *(Test(j.field, j.op, value) for j, value in joined if value is not None))


def needed(pattern: Pattern, bindings: Mapping[str, Mapping[str, Scalar]]) -> dict[str, Any]:
    """The conditions of a pattern as {field: {operator: value}}, joins with the values that earlier rows give."""
    found: dict[str, Any] = {}
    for test in pattern.tests:
        found.setdefault(test.field, {})[test.op] = list(test.value) if isinstance(test.value, tuple) else test.value
    for join in pattern.joins:
        found.setdefault(join.field, {})[join.op] = bindings.get(join.alias, {}).get(join.other)
    return found


def _distinct(nodes: Iterable[ProofNode]) -> tuple[ProofNode, ...]:
    """Each text once: alternatives of one rule often fail alike."""
    return tuple({n.text: n for n in reversed(list(nodes))}.values())[::-1]
