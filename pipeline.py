"""The pipeline behind every interface: inputs to a session, a session to a report.

May live here: the wiring of gathering, knowledge, reasoning and report. Must not: reading inputs, rules, rendering,
output, exit codes.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .errors import InputError, reason
from .facts import Fact, Provenance
from .gathering import (
    Gathered,
    card_facts,
    gather,
    knowledge_in,
    of_environment,
    reply_facts,
    signatures_of,
    target_of_files,
)
from .gathering import Inputs as Inputs  # noqa: PLC0414, the form that type checkers read as exported
from .knowledge.loader import Knowledge
from .messages import Message
from .reasoning.engines import open_session
from .reasoning.gaps import questions
from .reasoning.session import Session
from .report.model import ProofNode, Recognised, RecommendResult, Report, RuleDetail, RuleRow, RuleTest, Source

if TYPE_CHECKING:
    from .knowledge.ledger import ErrataFile, Line
    from .knowledge.updating import Update
    from .reasoning.diagnosis import Diagnosis
    from .reasoning.dialogue import Dialogue
    from .reasoning.mirrors import Mirror
    from .report.explanations import HowTo, WhatIf, WhyNot
    from .report.messages import Words
    from .report.model import Lang
    from .report.validation import Validation
    from .validating import Progress

_R = TypeVar("_R", bound=Report)
# The questions that matter to somebody who checks a project, those that decide it first.
_OF_MACHINES = ("nvidia_smi", "gpu_model", "python_version")


# --- the commands -----------------------------------------------------------------------------------------------------


def diagnose(inputs: Inputs) -> Report:
    """The main job: causes, fixes and reasons. Raises InputError."""
    knowledge = knowledge_in(inputs.knowledge)
    return _diagnosed(inputs, knowledge, gather(inputs, knowledge))


def _diagnosed(inputs: Inputs, knowledge: Knowledge, gathered: Gathered) -> Report:
    facts = [*gathered.facts, *(_checked_too(gathered.facts, inputs) if inputs.validate else ())]
    session, notes = open_session(knowledge, facts, inputs.engine, inputs.tick)
    diagnosis = _diagnosis(session, inputs.lang)
    report = asking(diagnosis.report(recognised=gathered.recognised), diagnosis, session, inputs.lang)
    told = [
        *(note.said(inputs.lang) for note in notes),
        *diagnosis.conflicts(),
        *_judged_notes(gathered.facts, inputs),
        *_knowledge_notes(knowledge, {f.type for f in report.facts}, gathered.facts, inputs),
    ]
    report = report.model_copy(update={"notes": tuple(told) or None})
    if inputs.question and (report.plan is not None or report.verdict == "unknown"):
        report = _with_unread(report, inputs.question, knowledge)
    return mirrored(advised(report, session, inputs.question, inputs.lang), inputs.mirror, inputs.knowledge)


def asking(report: Report, diagnosis: Diagnosis, session: Session, lang: Lang) -> Report:
    """The report with its questions in the order of what they decide."""
    if not report.questions:
        return report
    from .reasoning.gain import ordered

    asked = ordered(session, diagnosis.asks(), (f.cause for f in report.findings), lang)
    return report.model_copy(update={"questions": asked})


def plan(inputs: Inputs, wishes: Mapping[str, object], cards: Sequence[str]) -> Report:
    """Whether and how a model, method and cards go together. Raises InputError.

    wishes: goals by name, None where nothing is wished; cards: as people write them.
    """
    from .reasoning.planrequest import PLAN_GOAL

    knowledge = knowledge_in(inputs.knowledge)
    given = {name: str(value) for name, value in wishes.items() if value is not None}
    said = [fact for text in cards for fact in card_facts(text, knowledge)]
    said += [
        Fact("statement", {"kind": kind, "number": int(given.pop(kind))}, (Provenance("user", "plan"),))
        for kind in ("psu_w", "cpu_cores")
        if kind in given
    ]
    report = diagnose(replace(inputs, given=[*inputs.given, *said], goals={PLAN_GOAL: "yes", **inputs.goals, **given}))
    if report.plan is None and not report.findings:
        raise InputError("input.nothing_to_plan")
    return report


def _with_unread(report: Report, question: str, knowledge: Knowledge) -> Report:
    """The report of a planning question with the names in it that no catalog has."""
    from .probes.redact import redact_text
    from .reasoning.plannames import not_understood

    left = tuple(redact_text(name) for name in not_understood(question, knowledge))
    if not left:
        return report
    unread = Recognised(source="question", not_understood=left)
    return report.model_copy(update={"recognised": (*report.recognised, unread)})


def recommend(inputs: Inputs) -> RecommendResult:
    """Which torch to install. Raises InputError."""
    from .reasoning.selection import Selection

    knowledge = knowledge_in(inputs.knowledge)
    facts = _described(gather(inputs, knowledge).facts, inputs.described, knowledge)
    session, _notes = open_session(knowledge, facts, inputs.engine, inputs.tick)
    result = Selection(session, inputs.lang).result()
    notes = tuple(_knowledge_notes(knowledge, (), facts, inputs))
    result = result.model_copy(update={"notes": notes or None})
    if inputs.mirror is None:
        return result
    from .reasoning.mirrors import recommend_with_mirror

    return recommend_with_mirror(result, _mirror(inputs.mirror, inputs.knowledge), result.packages or {})


def _described(facts: Sequence[Fact], texts: Sequence[str], knowledge: Knowledge) -> list[Fact]:
    """The facts with what the machine is said to have in place of what was found. Raises InputError."""
    from .reasoning.changes import changed, read_change

    return changed(facts, [read_change(text, knowledge) for text in texts], knowledge, origin="--")


def probe(inputs: Inputs, *, redact: bool = True) -> list[Fact]:
    """The facts of this machine, without personal details unless asked for. Raises InputError."""
    from .probes.live import collect
    from .probes.redact import redact as redacted
    from .reasoning.merge import merge

    knowledge = knowledge_in(inputs.knowledge)
    facts = merge(collect(python=inputs.python, signatures=signatures_of(knowledge)), knowledge.vocabulary)
    return redacted(facts) if redact else facts


def environments(inputs: Inputs, *, redact: bool = True) -> list[Fact]:
    """The Python environments of this machine, the one that would be judged among them."""
    from .probes.live import environments as found
    from .probes.redact import redact as redacted

    facts = found(python=inputs.python)
    return redacted(facts) if redact else facts


def snapshot(inputs: Inputs, *, redact: bool = True, **machine: Any) -> dict[str, Any]:
    """The facts of this machine and the raw outputs that they come from; `machine`: what `collect` takes of it."""
    from .probes.live import collect
    from .probes.redact import redact_values
    from .probes.runner import SystemRunner
    from .probes.snapshot import Recorder
    from .reasoning.merge import merge

    recorder = Recorder(machine.pop("runner", None) or SystemRunner(machine.get("environ")))
    knowledge = knowledge_in(inputs.knowledge)
    signatures = signatures_of(knowledge)
    found = collect(python=inputs.python, runner=recorder, read=recorder.read, signatures=signatures, **machine)
    facts = [{f.type: dict(f.fields)} for f in merge(found, knowledge.vocabulary)]
    document = {"schema": "gpurules.facts/1", "facts": facts, "raw": recorder.raw()}
    return dict(redact_values(document)) if redact else document


def read(inputs: Inputs) -> list[Fact]:
    """The facts that the inputs state. Raises InputError."""
    return list(gather(inputs, knowledge_in(inputs.knowledge)).facts)


def why(
    report: Report,
    target: str,
    lang: Lang,
    *,
    every: bool = False,
    knowledge: Path | None = None,
    engine: str = "native",
) -> list[ProofNode]:
    """The proof trees of a target of a report; `every`: the other ways to conclude it too.

    Raises InputError for an unknown target and for one that does not hold.
    """
    from .reasoning.why import explain, explain_session

    known = knowledge_in(knowledge)
    if lang == report.lang and not every and engine == "native":
        found = explain(report, target, known)
        if found:
            return _departing(found, known, knowledge, lang)
    session = _recalled(report, known, engine)
    found = _departing(explain_session(session, report, target, lang, every=every), known, knowledge, lang)
    if not found:
        from .reasoning.whynot import why_not as refused

        held = refused(session, target, lang)
        hint = Message("hint.why_not", target=target) if held else _nearest(report, target)
        raise InputError("input.no_target", target=target, hint=hint)
    return found


def pages(folder: Path | None = None) -> dict[str, Source]:
    """The public pages that the knowledge cites, by their address."""
    return {url: Source(url=url, **page) for url, page in knowledge_in(folder).pages.items()}


def _departing(proofs: list[ProofNode], known: Knowledge, folder: Path | None, lang: Lang) -> list[ProofNode]:
    """The proofs, each step that follows a correction in place of the guides with a line that says so."""
    from .knowledge.ledger import Ledger
    from .reasoning.departures import with_departures

    return with_departures(proofs, Ledger(known, folder), lang) if proofs else proofs


def why_not(
    report: Report, target: str, lang: Lang, *, knowledge: Path | None = None, engine: str = "native"
) -> WhyNot:
    """Why a cause, fix, build, rule or derived fact does not hold. Raises InputError for an unknown target."""
    from .reasoning.whynot import why_not as refused

    found = refused(_recalled(report, knowledge_in(knowledge), engine), _cause_of(report, target), lang)
    if found is None:
        names = _targets(knowledge_in(knowledge))
        from .knowledge.problems import did_you_mean

        raise InputError("input.no_such", target=target, hint=did_you_mean(target, names))
    return found


def what_if(
    report: Report, changes: Sequence[str], lang: Lang, *, knowledge: Path | None = None, engine: str = "native"
) -> WhatIf:
    """What changes of the machine would do. Raises InputError for a change that cannot be read."""
    from .reasoning.changes import read_change
    from .reasoning.whatif import what_if as compared

    known = knowledge_in(knowledge)
    wanted = [read_change(text, known) for text in changes]
    return compared(_recalled(report, known, engine), wanted, lang)


def how_to(report: Report, goal: str, lang: Lang, *, knowledge: Path | None = None, engine: str = "native") -> HowTo:
    """The smallest sets of changes after which a goal holds. Raises InputError for an unknown goal."""
    from .knowledge.problems import did_you_mean
    from .reasoning.howto import GOALS
    from .reasoning.howto import how_to as reached

    known = knowledge_in(knowledge)
    found = reached(_recalled(report, known, engine), _cause_of(report, goal), lang)
    if found is None:
        raise InputError("input.no_goal", goal=goal, hint=did_you_mean(goal, [*GOALS, *known.causes]))
    return found


def dialogue(inputs: Inputs, *, report: Report | None = None, saved: object = None) -> Dialogue:
    """A dialogue that begins with the inputs, with a report or with a saved dialogue. Raises InputError."""
    from .reasoning.dialogue import Dialogue
    from .reasoning.recall import facts_of

    knowledge = knowledge_in(inputs.knowledge)
    engine = open_session(knowledge, (), inputs.engine, inputs.tick)[0].engine
    own = list(gather(replace(inputs, question=None), knowledge).facts)
    read = functools.partial(reply_facts, knowledge=knowledge, given=tuple(own))
    own += read(inputs.question, None) if inputs.question else []
    if saved is not None:
        return Dialogue.from_json(knowledge, saved, inputs.lang, read=read, engine=engine, more=own)
    recalled = facts_of(report, knowledge) if report is not None else []
    return Dialogue(knowledge, [*recalled, *own], inputs.lang, read=read, engine=engine)


def _recalled(report: Report, knowledge: Knowledge, engine: str) -> Session:
    """The session that a report was made from."""
    from .reasoning.recall import facts_of

    return open_session(knowledge, facts_of(report, knowledge), engine)[0]


def _cause_of(report: Report, target: str) -> str:
    """The cause of a finding that is named by its number."""
    return next((f.cause for f in report.findings if f.id == target), target)


def _targets(knowledge: Knowledge) -> list[str]:
    return [*knowledge.causes, *knowledge.fixes, *knowledge.rules, *knowledge.vocabulary.types]


def _nearest(report: Report, target: str) -> Message:
    from .knowledge.problems import did_you_mean

    known = [*(f.id for f in report.findings), *(f.cause for f in report.findings), *(f.id for f in report.fixes)]
    return did_you_mean(target, known)


def planned(report: Report, lang: Lang, engine: str, folder: Path | None) -> Report:
    """A saved report diagnosed anew from its facts, so that every command in its plan comes from the knowledge."""
    session = _recalled(report, knowledge_in(folder), engine)
    return _diagnosis(session, lang).report(recognised=report.recognised)


def apply_plan(
    report: Report,
    engine: str,
    folder: Path | None,
    confirm: Callable[[str, Sequence[str]], bool],
    say: Callable[[str], None],
) -> int:
    """Carry out what is safe of a report's plan on this machine; the exit status. Raises InputError."""
    from .applying import Applying, target_of

    def again(python: str) -> Report:
        return diagnose(Inputs(probe=True, python=python, lang=report.lang, engine=engine, knowledge=folder))

    return Applying(report, target_of(report), confirm, say, again).run()


def check(inputs: Inputs, path: Path) -> Report:
    """Whether what the files of a project ask for works on the machine. Raises InputError."""
    from .probes.project import project_files, read_project

    try:
        files = project_files(path)
    except OSError as error:
        raise InputError("input.file", file=error.filename, reason=reason(error)) from error
    knowledge = knowledge_in(inputs.knowledge)
    gathered = gather(inputs, knowledge)
    # What is installed here now says nothing of what the files ask for.
    machine = [fact for fact in gathered.facts if not of_environment(fact)]
    project = read_project(files, **target_of_files(machine))
    if not project.read:
        unread = Message("input.project_unread", files=project.unread)
        why_none = unread if project.unread else Message("input.no_project")
        raise InputError("input.file", file=path.name or path, reason=why_none)
    told = Counter(place.source for fact in project.facts for place in fact.provenance)
    seen = [Recognised(source=name, layouts=("project",), facts=told[name]) for name in project.read]
    seen += [Recognised(source=name, layouts=()) for name in project.unread]
    both = Gathered((*machine, *project.facts), (*gathered.recognised, *seen))
    return _of_project(_diagnosed(inputs, knowledge, both), both, knowledge, inputs)


def _of_project(report: Report, gathered: Gathered, knowledge: Knowledge, inputs: Inputs) -> Report:
    """The report without what only matters to an environment: which torch is installed, what it says of itself."""
    from .report.messages import Words

    changed: dict[str, Any] = {
        "not_checked": tuple(n for n in report.not_checked if n.id in _OF_MACHINES),
        "questions": tuple(q for q in report.questions if q.id in _OF_MACHINES),
        "notes": (*(report.notes or ()), Words(inputs.lang)("note.check_scope")),
    }
    if report.verdict == "unknown" and not report.findings:
        session = open_session(knowledge, gathered.facts, inputs.engine, inputs.tick)[0]
        changed["summary"] = _diagnosis(session, inputs.lang).project_summary()
        changed["questions"] = tuple(
            questions(session, (q for q in _OF_MACHINES if q in knowledge.questions), (), inputs.lang)
        )
    return report.model_copy(update=changed)


def validate(
    inputs: Inputs, wanted: str, only: Sequence[str], seconds: float, share: float, progress: Progress
) -> tuple[Validation, Report]:
    """Checks that run on a device of this machine, compared with what the rules say. Raises InputError."""
    from .probes.validation import Budget
    from .validating import chosen, device_of, validation

    knowledge = knowledge_in(inputs.knowledge)
    checks = chosen(only)
    facts = gather(replace(inputs, probe=True), knowledge).facts
    device = device_of(wanted, facts)

    def judge(given: Sequence[Fact]) -> tuple[Session, Report]:
        session, notes = open_session(knowledge, given, inputs.engine, inputs.tick)
        told = tuple(note.said(inputs.lang) for note in notes)
        return session, _diagnosis(session, inputs.lang).report().model_copy(update={"notes": told or None})

    return validation(facts, checks, device, Budget(seconds, share), progress, judge, inputs.lang)


def _checked_too(facts: Sequence[Fact], inputs: Inputs) -> list[Fact]:
    """The facts of `diagnose --validate`: what came of all checks on the device that torch would use."""
    from .probes.validation import CHECKS, Budget
    from .validating import device_of, validated

    if not inputs.probe:
        raise InputError("input.validate_needs_probe")
    return validated(facts, CHECKS, device_of("auto", facts), Budget(), inputs.progress)[0]


# --- the knowledge ----------------------------------------------------------------------------------------------------


def rules_list(folder: Path | None, lang: Lang) -> list[RuleRow]:
    """All rules in the order of area and id."""
    rules = knowledge_in(folder).rules.values()
    return [_row(r, lang) for r in sorted(rules, key=lambda r: (r["area"], r["id"]))]


def rules_show(rule_id: str, folder: Path | None, lang: Lang) -> RuleDetail:
    """One rule with the text of its file. Raises InputError for an unknown id."""
    from .knowledge.loader import knowledge_files
    from .knowledge.problems import did_you_mean

    rules = knowledge_in(folder).rules
    if rule_id not in rules:
        raise InputError("input.no_rule", name=rule_id, hint=did_you_mean(rule_id, rules))
    name = rules[rule_id]["file"]
    text = knowledge_files(folder)[name].read_text(encoding="utf-8")
    return RuleDetail(**_row(rules[rule_id], lang).model_dump(), path=f"knowledge/{name}", text=text)


def rules_check(folder: Path | None, lang: Lang = "en") -> list[str]:
    """Every fault of the knowledge, as `file:line: field: message`; empty when it is fine."""
    from .knowledge.checker import check
    from .knowledge.ledger import Ledger

    return [p.said(lang) for p in check(folder) or Ledger(knowledge_in(folder), folder).faults()]


def rules_test(folder: Path | None, ids: Sequence[str], lang: Lang = "en") -> list[RuleTest]:
    """Run the examples of the rules: of all, or of those named."""
    from .knowledge.problems import did_you_mean
    from .reasoning.examples import run_examples

    knowledge = knowledge_in(folder)
    for rule_id in ids:
        if rule_id not in knowledge.rules:
            raise InputError("input.no_rule", name=rule_id, hint=did_you_mean(rule_id, knowledge.rules))
    return run_examples(knowledge, ids or sorted(knowledge.rules), lang)


def rules_coverage(
    folder: Path | None, claims: tuple[str, bytes] | None = None, lang: Lang = "en"
) -> tuple[list[Line], list[str]]:
    """The ledger of the guides' claims and its faults; `claims`: a file (name, content) whose ids must all be in it."""
    from .knowledge.ledger import Ledger, claim_ids

    ledger = Ledger(knowledge_in(folder), folder)
    faults = ledger.faults(claim_ids(*claims) if claims else None)
    return ledger.lines(), [fault.said(lang) for fault in faults]


def rules_new(folder: Path, today: date | None, **wanted: str) -> Path:
    """Write a new rule with its three examples into a knowledge folder; where it was written. Raises InputError.

    wanted: the fields of `knowledge.scaffold.Wanted`.
    """
    from .knowledge.scaffold import Wanted, write_rule

    return write_rule(
        Wanted(**wanted), knowledge_in(folder if folder.is_dir() else None), folder, today or date.today()
    )


def rules_update(name: str, data: bytes) -> Update:
    """What a newer catalog would change, and why it must not be used where something is wrong. Raises InputError."""
    from .knowledge.updating import check_update

    return check_update(name, data)


def errata(folder: Path | None) -> ErrataFile:
    """What the guides say that is wrong or no longer holds, and what holds instead."""
    from .knowledge.ledger import Ledger

    return Ledger(knowledge_in(folder), folder).errata


def chosen_errata(found: ErrataFile, claims: Sequence[str]) -> list[str]:
    """The ids asked for, or all. Raises InputError for one that is not there."""
    from .knowledge.problems import did_you_mean

    for claim in claims:
        if claim not in found.errata:
            raise InputError("input.no_erratum", name=claim, hint=did_you_mean(claim, found.errata))
    return list(claims or found.errata)


# --- sharing ----------------------------------------------------------------------------------------------------------


def redacted(report: _R) -> _R:
    """The report without names, addresses, serials and secrets, to be shown to strangers."""
    from .probes.redact import redact_values

    return type(report).model_validate(redact_values(report.to_dict()))


# --- what belongs to an answer ----------------------------------------------------------------------------------------


def _diagnosis(session: Session, lang: Lang) -> Diagnosis:
    from .reasoning.diagnosis import Diagnosis

    return Diagnosis(session, lang)


def advised(report: Report, session: Session, question: str | None, lang: Lang) -> Report:
    """The report with the advice that fits the question and the findings."""
    from .reasoning.advice import advise, due

    causes = {f.cause for f in report.findings}
    called_for = due(session, lang)
    found = advise(session.knowledge, question, session.facts, causes, called_for, lang)
    return report.model_copy(update={"recommendations": (*report.recommendations, *found)}) if found else report


def _knowledge_notes(knowledge: Knowledge, types: Iterable[str], facts: Iterable[Fact], inputs: Inputs) -> list[str]:
    """What is to be said of the knowledge behind an answer: own files, catalogs that are old, versions it cannot know.

    types: of the catalog rows that the answer rests on; none stands for all.
    """
    from .reasoning.freshness import newer, old_catalogs
    from .report.messages import Words

    words = Words(inputs.lang)
    notes = [
        words("note.old_catalog", day=day, days=age, catalogs=words("explain.and").join(names))
        for day, names, age in old_catalogs(knowledge, types, inputs.today or date.today())
    ]
    notes += [
        words("note.newer", what=n.what[inputs.lang], value=n.value, newest=n.newest, day=n.day)
        for n in newer(knowledge, facts)
    ]
    return notes + _overlay_notes(inputs.knowledge, words)


def _judged_notes(facts: Iterable[Fact], inputs: Inputs) -> list[str]:
    """Which Python environment was judged, unless there is only the one that gpurules runs in."""
    from .report.messages import Words

    found = [f for f in facts if f.type == "python_environment"]
    judged = next((f for f in found if f.fields.get("chosen")), None)
    if judged is None or (len(found) == 1 and judged.fields["found_by"] == "own"):
        return []
    words = Words(inputs.lang)
    said = {"executable": judged.fields["executable"], "why": words(f"environment.by.{judged.fields['found_by']}")}
    more = len(found) - 1
    return [words("note.environments", n=more, **said) if more else words("note.environment", **said)]


def _overlay_notes(folder: Path | None, words: Words) -> list[str]:
    from .knowledge.loader import knowledge_files

    if folder is None:
        return []
    own = [name for name, path in knowledge_files(folder).items() if path == folder / name]
    return (
        [words("note.overlay", folder=folder.name or str(folder), files=words("explain.and").join(own))] if own else []
    )


def mirrored(report: Report, name: str | None, folder: Path | None) -> Report:
    """The report with the commands of a mirror beside the original's. Raises InputError for an unknown one."""
    if name is None:
        return report
    from .reasoning.mirrors import with_mirror

    return with_mirror(report, _mirror(name, folder))


def _mirror(name: str, folder: Path | None) -> Mirror:
    from .knowledge.problems import did_you_mean
    from .reasoning.mirrors import mirrors

    known = mirrors(knowledge_in(folder))
    if name not in known:
        raise InputError("input.no_mirror", name=name, hint=did_you_mean(name, known), known=[*known])
    return known[name]


def _row(rule: Mapping[str, Any], lang: Lang) -> RuleRow:
    return RuleRow(
        id=rule["id"],
        area=rule["area"],
        severity=rule.get("severity", "-"),
        status=rule["status"],
        title=rule["title"][lang],
    )
