"""From a session to a report: findings, fixes, what is open, and the proof behind each.

May live here: the order of those steps and the verdict. Must not: any cause, rule, fix or text (they are data).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from typing import Any

from .. import __version__
from ..engine.ir import Ref, Rule
from ..engine.memory import Justification
from ..facts import Fact, Provenance, Scalar
from ..knowledge.loader import row_key
from ..report.messages import Words
from ..report.model import (
    Checked,
    Derivation,
    FactView,
    Finding,
    Fix,
    FixPlan,
    Lang,
    ProvenanceView,
    Reason,
    Report,
    Severity,
    Source,
    Verdict,
    Verified,
)
from . import gaps
from .causes import WORDS, Ranked, rank
from .fixes import Offer, cures, instances, offers, present, simulated
from .plan import Planner
from .plananswer import plan_of
from .session import Session, slots

MAX_CANDIDATES = 5
MIN_CANDIDATE = 0.02
MAX_REASONS = 5
# What a verdict needs, and the types of which some row shows that it is known.
_JUDGED = {
    "judged.gpu": ("gpu_arch", "gfx_present", "no_nvidia_system"),
    "judged.driver": ("driver_at", "gfx_present", "no_nvidia_system"),
    "judged.torch": ("torch_install",),
}
_GRAVITY = {"error": 0, "warning": 1, "info": 2}


def ranked(session: Session) -> list[Ranked]:
    """The causes of a session, best first."""
    return rank(evidence_of(session), priors_of(session))


def evidence_of(session: Session) -> list[tuple[str, str, str]]:
    """The evidence of a session: (cause, word, rule)."""
    return [
        (str(f["cause"]), str(f["word"]), str(f["rule"]))
        for i in session.memory.of_type("evidence")
        if (f := session.fields(i))
    ]


def priors_of(session: Session) -> dict[str, dict[str, float]]:
    """The present symptoms with the prior log-odds of their causes."""
    symptoms = session.knowledge.symptoms
    return {kind: {c: float(p) for c, p in symptoms[kind]["causes"].items()} for kind in symptoms_of(session)}


def symptoms_of(session: Session) -> list[str]:
    """The symptoms that are present."""
    return sorted({str(session.fields(i)["kind"]) for i in session.memory.of_type("symptom")})


def _not_among(own: Sequence[Fix], shown: Sequence[Fix]) -> list[Fix]:
    """The checks that no earlier candidate brought: one look serves all that it tells apart."""
    known = {(fix.id, fix.steps) for fix in shown}
    return [fix for fix in own if (fix.id, fix.steps) not in known]


class Diagnosis:
    """Builds the report of one session."""

    def __init__(self, session: Session, lang: Lang) -> None:
        self.session = session
        self.knowledge = session.knowledge
        self.lang = lang
        self.ranked = ranked(session)
        self.symptoms = symptoms_of(session)
        self.ids: dict[int, str] = {}
        self.errors = frozenset(c for c, d in self.knowledge.causes.items() if d["severity"] != "info")

    # --- findings --------------------------------------------------------------------------------------------------

    def confident(self) -> list[Ranked]:
        """The causes that are findings; a grave one silences those that say that nothing is wrong."""
        found = [r for r in self.ranked if r.is_finding]
        grave = [r for r in found if r.cause in self.errors]
        chosen = grave or found
        return sorted(chosen, key=lambda r: (_GRAVITY[self.severity(r.cause)], -r.confidence, r.cause))

    def severity(self, cause: str) -> Severity:
        """The severity of a cause's finding."""
        found: Severity = self.knowledge.causes.get(cause, {}).get("severity", "error")
        return found

    def unexplained(self, found: Sequence[Ranked]) -> list[str]:
        """Symptoms that no finding explains."""
        explained = {s for r in found for s in r.symptoms}
        return [s for s in self.symptoms if s not in explained]

    def unknown_errors(self) -> list[Fact]:
        """Recognised error lines that no symptom knows and that are no mere background."""
        known = {e for d in self.knowledge.symptoms.values() for e in d["errors"]}
        background = {s["id"] for s in self.knowledge.signatures if s.get("background")}
        return [f for f in self.session.facts if f.type == "error" and f.fields.get("kind") not in known | background]

    def finding(self, entry: Ranked, number: int, fixes: Sequence[Fix]) -> Finding:
        """The finding of a cause."""
        firings = self.support(entry.cause)
        rule = self.session.rule_of(firings[0][1].rule) if firings else None
        group = rule.group if rule else ""
        title = (
            self.session.rule_text(firings[0][1].rule, "title", self.session.bindings(firings[0][1]), self.lang)
            if firings and not self._only_evidence(group, entry.cause)
            else ""
        )
        reasons = self.reasons(firings)
        data = self.knowledge.rules.get(group, {})
        subject = next(
            (str(self.session.fields(i)["about"]) for i, _ in firings if "about" in self.session.fields(i)), ""
        )
        return Finding(
            id=f"{number}",
            cause=entry.cause,
            severity=self.severity(entry.cause) if entry.is_finding else "warning",
            confidence=entry.confidence,
            title=title or self.knowledge.causes.get(entry.cause, {}).get("title", {}).get(self.lang, entry.cause),
            message=reasons[0].text if reasons else "",
            subject=subject,
            rule=group,
            fixes=tuple(f.id for f in fixes),
            evidence=tuple(self.fact_id(i) for i, _ in firings),
            because=tuple(reasons) or None,
            false_alarms=tuple(alarm[self.lang] for alarm in data.get("false_alarms", ())) or None,
            sources=tuple(s["url"] for s in data.get("sources", ())) or None,
            answers=self.knowledge.causes.get(entry.cause, {}).get("answers") or None,
        )

    def _only_evidence(self, rule: str, cause: str) -> bool:
        """Whether a rule's title tells a piece of evidence for an error rather than the error."""
        return self.knowledge.rules.get(rule, {}).get("severity") == "info" and cause in self.errors

    def support(self, cause: str) -> list[tuple[int, Justification]]:
        """The evidence rows for a cause with their justifications, the weightiest first."""
        rows = [
            i
            for i in self.session.rows("evidence", cause=cause)
            if WORDS.get(str(self.session.fields(i)["word"]), 0) > 0
        ]
        found = [(i, j) for i in rows if (j := self.session.because(i)) is not None]
        return sorted(found, key=lambda e: (-WORDS[str(self.session.fields(e[0])["word"])], e[1].rule, e[1].premises))

    def reasons(self, firings: Sequence[tuple[int, Justification]]) -> list[Reason]:
        """The sentences that carry a finding, each with the place where it was read."""
        lines: dict[str, Reason] = {}
        for row, firing in firings[:2]:
            self._add_reason(lines, firing, self.session.places(row))
            for premise in firing.premises:
                inner = self.session.because(premise)
                if inner is not None and not self.session.memory.static(premise):
                    self._add_reason(lines, inner, self.session.places(premise))
        return list(lines.values())[:MAX_REASONS]

    def _add_reason(self, lines: dict[str, Reason], firing: Justification, places: Sequence[Provenance]) -> None:
        text = self.session.rule_text(firing.rule, "because", self.session.bindings(firing), self.lang)
        if text:
            lines.setdefault(text, Reason(text=text, where=str(places[0]) if places else None))

    # --- fixes -----------------------------------------------------------------------------------------------------

    def fixes(self, entry: Ranked, number: int) -> list[Fix]:
        """The recommended fixes of a cause: cures only where the engine agrees; below a finding only checks."""
        shown = []
        for offer in offers(self.session, entry.cause):
            data = self.knowledge.fixes[offer.fix]
            if not entry.is_finding and data["kind"] != "check":
                continue
            verified: Verified = "not_applicable"
            note: str | None = None
            chosen: Offer | None = offer
            if data["kind"] == "cure":
                if "not_simulable" in data:
                    verified, note = "not_simulable", data["not_simulable"][self.lang]
                else:
                    verified = "simulated"
                    chosen = next((o for o in instances(offer, self.session) if self._cures(o)), None)
            if chosen is not None:
                shown.append(present(chosen, self.session, str(number), self.lang, verified, note))
        return shown

    def _cures(self, offer: Offer) -> bool:
        """Whether the cause of the offer is gone once its effects are there, and nothing new came up."""
        after = simulated(offer, self.session)
        return after is not None and cures(self.ranked, ranked(after), offer.cause, self.errors)

    def fix_plan(self, findings: Sequence[Finding]) -> FixPlan | None:
        """How to clear all errors together."""
        ids = {f.cause: f.id for f in findings}
        return Planner(self.session, ranked, self.errors, ids, self.lang).plan()

    def _planned(
        self, findings: Sequence[Finding], fixes: Sequence[Fix], plan: FixPlan
    ) -> tuple[list[Finding], list[Fix]]:
        """Findings and fixes, with the steps of the plan for each finding that no fix cures alone."""
        shown: list[Finding] = []
        together: list[Fix] = []
        for finding in findings:
            own = [f for f in fixes if f.finding == finding.id]
            extra = [] if any(f.kind == "cure" for f in own) else self._in_plan(finding, plan)
            own = [*extra, *own]
            together += own
            shown.append(finding.model_copy(update={"fixes": tuple(f.id for f in own)}) if extra else finding)
        return shown, together

    def _in_plan(self, finding: Finding, plan: FixPlan) -> list[Fix]:
        words = Words(self.lang)
        return [
            step.instance.model_copy(
                update={"finding": finding.id, "verified_note": words("fix_plan.together", number=number)}
            )
            for number, step in enumerate(plan.steps, 1)
            if step.verified == "simulated" and finding.id in (step.finding, *step.clears)
        ]

    # --- the report ------------------------------------------------------------------------------------------------

    def report(self, **extra: Any) -> Report:
        """The whole report; `extra` fills fields that the session does not know (what was read, notes)."""
        words = Words(self.lang)
        found = self.confident()
        open_symptoms = self.unexplained(found)
        strange = self.unknown_errors()
        verdict = self.verdict()
        entries = [
            *(found if verdict != "unknown" or any(r.cause in self.errors for r in found) else []),
            *(self._candidates(open_symptoms) if open_symptoms else []),
        ]
        fixes: list[Fix] = []
        findings: list[Finding] = []
        for number, entry in enumerate(entries, 1):
            own = self.fixes(entry, number)
            fixes += own if entry.is_finding else _not_among(own, fixes)
            findings.append(self.finding(entry, number, own))
        plan = self.fix_plan(findings)
        if plan is not None:
            findings, fixes = self._planned(findings, fixes, plan)
        facts, derivations = self._graph(entries)
        answer = plan_of(self.session, self.lang)
        return Report(
            schema="gpurules.report/1",
            version=__version__,
            knowledge_version=self.knowledge.version,
            lang=self.lang,
            verdict=verdict,
            summary=self._summary(verdict, findings, open_symptoms, strange, words),
            platform=self.platform(),
            findings=tuple(findings),
            fixes=tuple(fixes),
            plan=answer,
            fix_plan=plan,
            # What a question leaves open is no gap of a look at a machine.
            not_checked=() if verdict == "ok" and findings[0].answers else gaps.not_checked(self.session, self.lang),
            questions=gaps.questions(
                self.session,
                self.asks(),
                (r.cause for r in entries),
                self.lang,
            ),
            facts=facts,
            derivations=derivations,
            sources=self._sources(findings, fixes),
            assumptions=self.assumptions(self._rests_on(entries, fixes)),
            checked=Checked(
                rules=len(self.knowledge.rules),
                domains=tuple(sorted({f.type for f in self.session.facts} - {"coverage"})),
            ),
            **extra,
        )

    def asks(self) -> list[str]:
        """The questions about what is unexplained, or else about what any judgement needs."""
        if self.verdict() != "unknown":
            return []
        open_symptoms = self.unexplained(self.confident())
        return [a for s in open_symptoms for a in self.knowledge.symptoms[s]["asks"]] or self._default_questions()

    def verdict(self) -> Verdict:
        """Problems where a finding is grave; unknown where something is unexplained or nothing was found."""
        found = self.confident()
        if any(r.cause in self.errors for r in found):
            return "problems"
        return "unknown" if not found or self.unexplained(found) or self.unknown_errors() else "ok"

    def _candidates(self, open_symptoms: Sequence[str]) -> list[Ranked]:
        """Causes that compete for the symptoms that nothing explains."""
        competing = {c for s in open_symptoms for c in self.knowledge.symptoms[s]["causes"]}
        likely = [
            r
            for r in self.ranked
            if not r.is_finding and r.cause in competing and r.cause in self.errors and r.confidence >= MIN_CANDIDATE
        ]
        return likely[:MAX_CANDIDATES]

    def _default_questions(self) -> list[str]:
        asked = ("collect_env", "nvidia_smi", "gpu_model")
        return [slug for slug in self.knowledge.questions if slug in asked]

    def _summary(
        self,
        verdict: Verdict,
        findings: Sequence[Finding],
        open_symptoms: Sequence[str],
        strange: Sequence[Fact],
        words: Words,
    ) -> str:
        if verdict != "unknown" and findings:
            return words("summary.sentence", text=findings[0].title)
        if open_symptoms:
            first = min((self.knowledge.symptoms[s] for s in open_symptoms), key=lambda s: bool(s.get("general")))
            own: str | None = first.get("undecided", {}).get(self.lang)
            return own or words("summary.undecided", symptom=first["title"][self.lang])
        if strange:
            return words("summary.no_rule", error=str(strange[0].fields.get("text", ""))[:160])
        lacking = self._lacking(_JUDGED)
        if not lacking:
            return words("summary.nothing_wrong_seen")
        return words("summary.nothing_to_judge", missing=_listed(lacking, words))

    def project_summary(self) -> str:
        """Why it cannot be said whether what the files of a project ask for works here."""
        words = Words(self.lang)
        lacking = self._lacking([name for name in _JUDGED if name != "judged.torch"])
        if not lacking:
            return words("summary.check_no_build")
        return words("summary.check_unknown", missing=_listed(lacking, words))

    def _lacking(self, wanted: Iterable[str]) -> list[str]:
        known = self.session.memory.of_type
        return [name for name in wanted if not any(known(t) for t in _JUDGED[name])]

    def platform(self) -> str | None:
        """The system that the session is about, unless it is only assumed."""
        system = self.session.system()
        return system if system == "wsl" or not self.assumptions() else None

    def assumptions(self, rules: Set[str] | None = None) -> tuple[str, ...]:
        """The sentences of the rules that concluded something by default: of all, or of those an answer rests on."""
        texts: dict[str, None] = {}
        for rule_id, data in self.knowledge.rules.items():
            if data.get("assume") and (rules is None or rule_id in rules):
                for firing in self.session.memory.firings(rule_id)[:1]:
                    texts[self.session.rule_text(firing.rule, "because", self.session.bindings(firing), self.lang)] = (
                        None
                    )
        return tuple(texts)

    def _rests_on(self, entries: Sequence[Ranked], fixes: Sequence[Fix]) -> frozenset[str]:
        """The rules in the proofs of the findings and of the fixes that are shown; commands of one system rest on
        what the system is."""
        shown = {f.id for f in fixes}
        roots = [i for r in entries if r.is_finding for i, _ in self.support(r.cause)]
        roots += [o.row for r in entries for o in offers(self.session, r.cause) if o.fix in shown]
        if any(step.platform != "any" and step.command for fix in fixes for step in fix.steps):
            roots += self.session.memory.of_type("platform")
        return frozenset(self.session.knowledge.patterns[j.rule].group for j in self._steps(roots).values())

    def conflicts(self) -> list[str]:
        """Where two sources contradict each other on a version or a GPU's name."""
        words = Words(self.lang)
        lines = []
        for fact in self.session.facts:
            if fact.type != "conflict":
                continue
            subject, name = str(fact.fields["subject"]), str(fact.fields["field"])
            if self.knowledge.vocabulary.types[subject].fields[name].type in ("version", "gpu_name"):
                places = ", ".join(str(p) for p in fact.provenance)
                shown = {k: fact.fields[k] for k in ("first", "second")}
                lines.append(words("note.conflict", what=f"{subject} {name}", places=places, **shown))
        return lines

    # --- facts and derivations -------------------------------------------------------------------------------------

    def fact_id(self, row: int) -> str:
        """The report's id of a row."""
        if row not in self.ids:
            kind = "k" if self.session.memory.static(row) else "f" if row in self.session.fact_of else "d"
            self.ids[row] = f"{kind}{row}"
        return self.ids[row]

    def _graph(self, found: Sequence[Ranked]) -> tuple[tuple[FactView, ...], tuple[Derivation, ...]]:
        """All given facts, and every row and step in the proofs of the findings, their fixes and the picks."""
        memory = self.session.memory
        roots = [i for r in found for i, _ in self.support(r.cause)]
        roots += [o.row for r in found for o in offers(self.session, r.cause)]
        roots += [*memory.of_type("pick"), *memory.of_type("symptom")]
        chosen = {self.session.fields(i)["build"] for i in self.session.rows("pick", mode="as_is")}
        roots += [i for i in memory.of_type("runs_on") if self.session.fields(i)["build"] in chosen]
        steps = self._steps(roots)
        premises = [p for firing in steps.values() for p in firing.premises]
        rows = dict.fromkeys([*sorted(self.session.fact_of), *roots, *premises])
        used = self._used_fields(steps.values())
        views = tuple(self._view(i, used.get(i, set())) for i in sorted(rows))
        return views, tuple(self._derivation(row, steps[row]) for row in sorted(steps))

    def _steps(self, roots: Iterable[int]) -> dict[int, Justification]:
        """The steps by which rows follow, down to what was given."""
        steps: dict[int, Justification] = {}
        waiting = list(roots)
        while waiting:
            row = waiting.pop()
            firing = None if row in steps else self.session.because(row)
            if firing is not None:
                steps[row] = firing
                waiting += firing.premises
        return steps

    def _view(self, row: int, used: Set[str]) -> FactView:
        type_name, fields = self.session.memory.rows[row]
        fact = self.session.fact_of.get(row)
        shown: dict[str, Scalar | float] = {**(fact.fields if fact else _plain(fields))}
        if self.session.memory.static(row):
            # A catalog row has dozens of fields; the proof needs those that tell it apart and those that a step used.
            identity = self.knowledge.vocabulary.types[type_name].identity
            shown = {k: shown[k] for k in (*identity, *sorted(used - set(identity))) if k in shown}
        return FactView(id=self.fact_id(row), type=type_name, fields=shown, provenance=self._provenance(row, fact))

    def _used_fields(self, steps: Iterable[Justification]) -> dict[int, set[str]]:
        """For each premise of the steps, the fields that the rule tests, joins, concludes from or says."""
        used: dict[int, set[str]] = {}
        for firing in steps:
            rule = self.knowledge.patterns[firing.rule]
            by_alias = _fields_by_alias(
                rule, self.knowledge.rules.get(rule.group, {}).get("because", {}).get(self.lang, "")
            )
            positive = [p.alias for p in rule.patterns if not p.negated]
            for alias, row in zip(positive, firing.premises, strict=True):
                used.setdefault(row, set()).update(by_alias.get(alias, ()))
        return used

    def _provenance(self, row: int, fact: Fact | None) -> tuple[ProvenanceView, ...]:
        if fact is not None:
            return tuple(
                ProvenanceView(
                    kind=p.kind, source=p.source, line=p.line, reader=p.reader or None, fields=p.fields or None
                )
                for p in fact.provenance
            )
        source = (
            self.knowledge.sources_of_rows.get(row_key(*self.session.memory.rows[row]))
            if self.session.memory.static(row)
            else None
        )
        if source is None:
            return ()
        url, title, confidence = source
        return (ProvenanceView(kind="catalog", source=url, reader=f"{title} ({confidence})"),)

    def _derivation(self, row: int, firing: Justification) -> Derivation:
        rule = self.session.rule_of(firing.rule)
        group = rule.group if rule else firing.rule
        data = self.knowledge.rules.get(group) or self.knowledge.fixes.get(group.removeprefix("fix/")) or {}
        text = self.session.rule_text(firing.rule, "because", self.session.bindings(firing), self.lang)
        return Derivation(
            fact=self.fact_id(row),
            rule=group,
            premises=tuple(self.fact_id(p) for p in firing.premises),
            text=text or None,
            sources=tuple(s["url"] for s in data.get("sources", ())) or None,
        )

    def _sources(self, findings: Iterable[Finding], fixes: Iterable[Fix]) -> tuple[Source, ...]:
        used = {u for f in findings for u in f.sources or ()} | {u for f in fixes for u in f.sources or ()}
        pages = self.knowledge.pages
        return tuple(Source(url=url, **pages[url]) for url in sorted(used) if url in pages)


def _listed(names: Sequence[str], words: Words) -> str:
    *others, last = [words(name) for name in names]
    return words("list.last", first=words("list.and").join(others), last=last) if others else last


def _plain(fields: Mapping[str, Scalar]) -> dict[str, Scalar]:
    """The fields without the sub-fields that exist for comparison only."""
    return {k: v for k, v in sorted(fields.items()) if "__" not in k}


def _fields_by_alias(rule: Rule, text: str) -> dict[str, set[str]]:
    """The fields of each alias that a rule looks at, without the parts that exist for comparison only."""
    found: dict[str, set[str]] = {}

    def note(alias: str, name: str) -> None:
        found.setdefault(alias, set()).add(name.partition("__")[0])

    for pattern in rule.patterns:
        for test in pattern.tests:
            note(pattern.alias, test.field)
        for join in pattern.joins:
            note(pattern.alias, join.field)
            note(join.alias, join.other)
    for conclusion in rule.conclusions:
        for value in conclusion.fields.values():
            if isinstance(value, Ref):
                note(value.alias, value.field)
    for alias, name in slots(text):
        note(alias, name.partition(".")[0])
    return found
