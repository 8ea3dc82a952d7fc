"""The pipeline behind every interface: inputs to facts, facts to a session, a session to a report.

May live here: the wiring of probes, knowledge, reasoning and report. Must not: parsing, rules, rendering, output, exit
codes.
"""

from __future__ import annotations

import functools
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .errors import InputError, InputTooLarge
from .facts import Fact, Provenance, Scalar
from .knowledge.loader import Knowledge, KnowledgeError, load_knowledge
from .probes.readers import read_text
from .probes.readers.signatures import Signatures
from .reasoning.session import Engine, Session, native_engine
from .report.model import ProofNode, Recognised, RecommendResult, Report, RuleDetail, RuleRow, RuleTest

if TYPE_CHECKING:
    from .knowledge.ledger import ErrataFile, Line
    from .knowledge.updating import Update
    from .reasoning.diagnosis import Diagnosis
    from .reasoning.dialogue import Dialogue
    from .reasoning.mirrors import Mirror
    from .report.explanations import HowTo, WhatIf, WhyNot
    from .report.messages import Words
    from .report.model import Lang

_R = TypeVar("_R", bound=Report)

# What `recommend --os` stands for.
_SYSTEMS: Mapping[str, Mapping[str, Scalar]] = {
    "linux": {"family": "linux", "machine": "x86_64", "wsl": False},
    "wsl": {"family": "linux", "machine": "x86_64", "wsl": True},
    "aarch64": {"family": "linux", "machine": "aarch64", "wsl": False},
    "windows": {"family": "windows", "machine": "x86_64"},
    "macos": {"family": "macos", "machine": "arm64"},
}
# The type of a loose key that no alias covers.
_UNREAD = "stated"
# The key whose value is the name of a GPU.
_GPU_KEY = "gpu"
# Longer replies are output, in which a phrase is no statement of the user's.
_MAX_PROSE = 2_000
_PAIR = re.compile(r"\s*([\w .-]{1,40}?)\s*[:=：]\s*(\S.{0,200})\Z")
# Threads that come first together wait for one of them to load and compile what all will share.
_LOADING = threading.Lock()


@dataclass(frozen=True)
class Inputs:
    """What an interface was given. reports, facts: (name, content); given: facts as such; today: the day that ages are
    counted from; tick: called between steps, to end the work by what it raises; max_facts: how many facts are too many.
    """

    reports: Sequence[tuple[str, bytes]] = ()
    facts: Sequence[tuple[str, bytes]] = ()
    given: Sequence[Fact] = ()
    question: str | None = None
    goals: Mapping[str, str] = field(default_factory=dict)
    probe: bool = False
    python: str | None = None
    os: str | None = None
    target_python: str | None = None
    lang: str = "en"
    engine: str = "native"
    knowledge: Path | None = None
    today: date | None = None
    mirror: str | None = None
    tick: Callable[[], None] = lambda: None
    max_facts: int | None = None


@dataclass(frozen=True)
class Gathered:
    """The facts of all inputs and what was recognised in each."""

    facts: tuple[Fact, ...]
    recognised: tuple[Recognised, ...]


# --- the commands -----------------------------------------------------------------------------------------------------


def diagnose(inputs: Inputs) -> Report:
    """The main job: causes, fixes and reasons. Raises InputError."""
    knowledge = _knowledge(inputs.knowledge)
    gathered = _gather(inputs, knowledge)
    session, notes = _session(knowledge, gathered.facts, inputs.engine, inputs.tick)
    diagnosis = _diagnosis(session, inputs.lang)
    report = diagnosis.report(recognised=gathered.recognised)
    notes += [
        *diagnosis.conflicts(),
        *_knowledge_notes(knowledge, {f.type for f in report.facts}, gathered.facts, inputs),
    ]
    report = report.model_copy(update={"notes": tuple(notes) or None})
    return mirrored(_advised(report, session, inputs), inputs.mirror, inputs.knowledge)


def plan(inputs: Inputs, wishes: Mapping[str, str], cards: Sequence[str]) -> Report:
    """Whether and how a model, method and cards go together. cards: as people write them. Raises InputError."""
    from .reasoning.planning import PLAN_GOAL

    knowledge = _knowledge(inputs.knowledge)
    said = [fact for text in cards for fact in _card_facts(text, knowledge)]
    said += [
        Fact("statement", {"kind": kind, "number": int(wishes[kind])}, (Provenance("user", "plan"),))
        for kind in ("psu_w", "cpu_cores")
        if kind in wishes
    ]
    goals = {PLAN_GOAL: "yes", **inputs.goals, **{k: v for k, v in wishes.items() if k not in ("psu_w", "cpu_cores")}}
    report = diagnose(replace(inputs, given=[*inputs.given, *said], goals=goals))
    if report.plan is None and not report.findings:
        raise InputError(
            "nothing to plan: name a model (--model, --params-b) and cards (--gpu), cards to compare (--option), "
            "a budget, or ask a --question"
        )
    return report


def _card_facts(text: str, knowledge: Knowledge) -> list[Fact]:
    """The cards of `2x RTX 3090`, as cards that are spoken of. Raises InputError for a name that no catalog has."""
    from .knowledge.phrases import with_lines

    found = knowledge.names.find_all(with_lines(text, knowledge.names))
    if not found:
        raise InputError(f'--gpu: no GPU "{text}" in the catalog')
    origin = (Provenance("user", "--gpu"),)
    return [Fact("statement", {"kind": "gpu_mentioned", "detail": name, "number": n}, origin) for name, n in found]


def recommend(inputs: Inputs) -> RecommendResult:
    """Which torch to install. Raises InputError."""
    from .reasoning.selection import Selection

    knowledge = _knowledge(inputs.knowledge)
    facts = list(_gather(inputs, knowledge).facts)
    if inputs.os is not None:
        facts = [f for f in facts if f.type not in ("os", "wsl", "kernel")]
        facts.append(Fact("os", _SYSTEMS[inputs.os], (Provenance("user", "--os"),)))
    if inputs.target_python is not None:
        facts = [f for f in facts if f.type != "python"]
        facts.append(
            _checked(
                knowledge,
                Fact("python", {"version": inputs.target_python}, (Provenance("user", "--python"),)),
                "--python",
            )
        )
    session, _notes = _session(knowledge, facts, inputs.engine, inputs.tick)
    result = Selection(session, inputs.lang).result()
    notes = tuple(_knowledge_notes(knowledge, (), facts, inputs))
    result = result.model_copy(update={"notes": notes or None})
    if inputs.mirror is None:
        return result
    from .reasoning.mirrors import recommend_with_mirror

    return recommend_with_mirror(result, _mirror(inputs.mirror, inputs.knowledge), result.packages or {})


def probe(inputs: Inputs, *, redact: bool = True) -> list[Fact]:
    """The facts of this machine, without personal details unless asked for. Raises InputError."""
    from .probes.live import collect
    from .probes.redact import redact as redacted
    from .reasoning.merge import merge

    facts = merge(collect(python=inputs.python), _knowledge(inputs.knowledge).vocabulary)
    return redacted(facts) if redact else facts


def read(inputs: Inputs) -> list[Fact]:
    """The facts that the inputs state. Raises InputError."""
    return list(_gather(inputs, _knowledge(inputs.knowledge)).facts)


def why(
    report: Report,
    target: str,
    lang: str,
    *,
    every: bool = False,
    knowledge: Path | None = None,
    engine: str = "native",
) -> list[ProofNode]:
    """The proof trees of a target of a report; `every`: the other ways to conclude it too.

    Raises InputError for an unknown target and for one that does not hold.
    """
    from .reasoning.why import explain, explain_session

    known = _knowledge(knowledge)
    if lang == report.lang and not every and engine == "native":
        found = explain(report, target, known)
        if found:
            return _departing(found, known, knowledge, lang)
    session = _recalled(report, known, engine)
    found = _departing(explain_session(session, report, target, lang, every=every), known, knowledge, lang)
    if not found:
        from .reasoning.whynot import why_not as refused

        held = refused(session, target, lang)
        hint = f'; see: gpurules why-not "{target}"' if held else _nearest(report, target)
        raise InputError(f'the report has no finding, fix, fact or build "{target}" that holds{hint}')
    return found


def _departing(proofs: list[ProofNode], known: Knowledge, folder: Path | None, lang: str) -> list[ProofNode]:
    """The proofs, each step that follows a correction in place of the guides with a line that says so."""
    from .knowledge.ledger import Ledger
    from .reasoning.departures import with_departures

    return with_departures(proofs, Ledger(known, folder), "zh" if lang == "zh" else "en") if proofs else proofs


def why_not(report: Report, target: str, lang: str, *, knowledge: Path | None = None, engine: str = "native") -> WhyNot:
    """Why a cause, fix, build, rule or derived fact does not hold. Raises InputError for an unknown target."""
    from .reasoning.whynot import why_not as refused

    found = refused(_recalled(report, _knowledge(knowledge), engine), _cause_of(report, target), lang)
    if found is None:
        names = _targets(_knowledge(knowledge))
        from .knowledge.problems import did_you_mean

        raise InputError(f'no cause, fix, build, rule or fact type "{target}"{did_you_mean(target, names)}')
    return found


def what_if(
    report: Report, changes: Sequence[str], lang: str, *, knowledge: Path | None = None, engine: str = "native"
) -> WhatIf:
    """What changes of the machine would do. Raises InputError for a change that cannot be read."""
    from .reasoning.changes import ChangeError, read_change
    from .reasoning.whatif import what_if as compared

    known = _knowledge(knowledge)
    try:
        wanted = [read_change(text, known) for text in changes]
        return compared(_recalled(report, known, engine), wanted, lang)
    except ChangeError as error:
        raise InputError(str(error)) from error


def how_to(report: Report, goal: str, lang: str, *, knowledge: Path | None = None, engine: str = "native") -> HowTo:
    """The smallest sets of changes after which a goal holds. Raises InputError for an unknown goal."""
    from .knowledge.problems import did_you_mean
    from .reasoning.howto import GOALS
    from .reasoning.howto import how_to as reached

    known = _knowledge(knowledge)
    found = reached(_recalled(report, known, engine), _cause_of(report, goal), lang)
    if found is None:
        raise InputError(f'no build, cause or goal "{goal}"{did_you_mean(goal, [*GOALS, *known.causes])}')
    return found


def dialogue(inputs: Inputs, *, report: Report | None = None, saved: object = None) -> Dialogue:
    """A dialogue that begins with the inputs, with a report or with a saved dialogue. Raises InputError."""
    from .reasoning.dialogue import Dialogue
    from .reasoning.recall import facts_of

    knowledge = _knowledge(inputs.knowledge)
    read = functools.partial(_reply_facts, knowledge=knowledge)
    engine = _session(knowledge, (), inputs.engine, inputs.tick)[0].engine
    own = list(_gather(replace(inputs, question=None), knowledge).facts)
    own += read(inputs.question, None) if inputs.question else []
    if saved is not None:
        try:
            return Dialogue.from_json(knowledge, saved, inputs.lang, read=read, engine=engine, more=own)
        except ValueError as error:
            raise InputError(f"this is no saved dialogue of gpurules: {error}") from error
    recalled = facts_of(report, knowledge) if report is not None else []
    return Dialogue(knowledge, [*recalled, *own], inputs.lang, read=read, engine=engine)


def _recalled(report: Report, knowledge: Knowledge, engine: str) -> Session:
    """The session that a report was made from."""
    from .reasoning.recall import facts_of

    return _session(knowledge, facts_of(report, knowledge), engine)[0]


def _cause_of(report: Report, target: str) -> str:
    """The cause of a finding that is named by its number."""
    return next((f.cause for f in report.findings if f.id == target), target)


def _targets(knowledge: Knowledge) -> list[str]:
    return [*knowledge.causes, *knowledge.fixes, *knowledge.rules, *knowledge.vocabulary.types]


def _nearest(report: Report, target: str) -> str:
    from .knowledge.problems import did_you_mean

    known = [*(f.id for f in report.findings), *(f.cause for f in report.findings), *(f.id for f in report.fixes)]
    return did_you_mean(target, known)


def planned(report: Report, lang: str, engine: str, folder: Path | None) -> Report:
    """A saved report diagnosed anew from its facts, so that every command in its plan comes from the knowledge."""
    session = _recalled(report, _knowledge(folder), engine)
    return _diagnosis(session, lang).report(recognised=report.recognised)


def apply_plan(
    report: Report,
    engine: str,
    folder: Path | None,
    confirm: Callable[[str, Sequence[str]], bool],
    say: Callable[[str], None],
) -> int:
    """Carry out what is safe of a report's plan on this machine; the exit status. Raises InputError."""
    from .applying import Applying, NotHere, target_of

    def again(python: str) -> Report:
        return diagnose(Inputs(probe=True, python=python, lang=report.lang, engine=engine, knowledge=folder))

    try:
        return Applying(report, target_of(report), confirm, say, again).run()
    except NotHere as error:
        raise InputError(f"fix --apply: the report is not of this machine as it is now: {error}") from error


# --- the knowledge ----------------------------------------------------------------------------------------------------


def rules_list(folder: Path | None, lang: str) -> list[RuleRow]:
    """All rules in the order of area and id."""
    rules = _knowledge(folder).rules.values()
    return [_row(r, lang) for r in sorted(rules, key=lambda r: (r["area"], r["id"]))]


def rules_show(rule_id: str, folder: Path | None, lang: str) -> RuleDetail:
    """One rule with the text of its file. Raises InputError for an unknown id."""
    from .knowledge.loader import knowledge_files
    from .knowledge.problems import did_you_mean

    rules = _knowledge(folder).rules
    if rule_id not in rules:
        raise InputError(f'no rule "{rule_id}"{did_you_mean(rule_id, rules)}')
    name = rules[rule_id]["file"]
    text = knowledge_files(folder)[name].read_text(encoding="utf-8")
    return RuleDetail(**_row(rules[rule_id], lang).model_dump(), path=f"knowledge/{name}", text=text)


def rules_check(folder: Path | None) -> list[str]:
    """Every fault of the knowledge, as `file:line: field: message`; empty when it is fine."""
    from .knowledge.checker import check

    return [str(p) for p in check(folder)]


def rules_test(folder: Path | None, ids: Sequence[str]) -> list[RuleTest]:
    """Run the examples of the rules: of all, or of those named."""
    from .knowledge.problems import did_you_mean
    from .reasoning.examples import run_examples

    knowledge = _knowledge(folder)
    for rule_id in ids:
        if rule_id not in knowledge.rules:
            raise InputError(f'no rule "{rule_id}"{did_you_mean(rule_id, knowledge.rules)}')
    return run_examples(knowledge, ids or sorted(knowledge.rules))


def rules_coverage(folder: Path | None, claims: tuple[str, bytes] | None = None) -> tuple[list[Line], list[str]]:
    """The ledger of the guides' claims and its faults; `claims`: a file (name, content) whose ids must all be in it."""
    from .knowledge.ledger import Ledger, claim_ids

    ledger = Ledger(_knowledge(folder), folder)
    return ledger.lines(), ledger.faults(claim_ids(*claims) if claims else None)


def rules_new(folder: Path, today: date | None, **wanted: str) -> Path:
    """Write a new rule with its three examples into a knowledge folder; where it was written. Raises InputError.

    wanted: the fields of `knowledge.scaffold.Wanted`.
    """
    from .knowledge.scaffold import Wanted, write_rule

    return write_rule(Wanted(**wanted), _knowledge(folder if folder.is_dir() else None), folder, today or date.today())


def rules_update(name: str, data: bytes) -> Update:
    """What a newer catalog would change, and why it must not be used where something is wrong. Raises InputError."""
    from .knowledge.updating import check_update

    return check_update(name, data)


def errata(folder: Path | None) -> ErrataFile:
    """What the guides say that is wrong or no longer holds, and what holds instead."""
    from .knowledge.ledger import Ledger

    return Ledger(_knowledge(folder), folder).errata


def chosen_errata(found: ErrataFile, claims: Sequence[str]) -> list[str]:
    """The ids asked for, or all. Raises InputError for one that is not there."""
    from .knowledge.problems import did_you_mean

    for claim in claims:
        if claim not in found.errata:
            raise InputError(f'no erratum "{claim}"{did_you_mean(claim, found.errata)}')
    return list(claims or found.errata)


# --- sharing ----------------------------------------------------------------------------------------------------------


def redacted(report: _R) -> _R:
    """The report without names, addresses, serials and secrets, to be shown to strangers."""
    from .probes.redact import redact_values

    return type(report).model_validate(redact_values(report.to_dict()))


# --- inputs to facts --------------------------------------------------------------------------------------------------


def _knowledge(folder: Path | None) -> Knowledge:
    with _LOADING:
        return load_knowledge(folder)


@functools.lru_cache(maxsize=4)
def _signatures(knowledge: Knowledge) -> Signatures:
    return Signatures.compile(knowledge.signatures)


def _gather(inputs: Inputs, knowledge: Knowledge) -> Gathered:
    facts: list[Fact] = [_known(knowledge, fact) for fact in inputs.given]
    recognised: list[Recognised] = []
    with _LOADING:
        signatures = _signatures(knowledge)
    for name, data in inputs.reports:
        inputs.tick()
        reading = read_text(data, name, signatures, inputs.tick)
        if reading.refused:
            raise InputError(f"{name}: {reading.refused}")
        facts += reading.facts
        recognised.append(
            Recognised(
                source=name, layouts=reading.layouts, facts=len(reading.facts), truncated=reading.truncated or None
            )
        )
    for name, data in inputs.facts:
        inputs.tick()
        own, seen = _facts_file(name, data, knowledge)
        facts += own
        recognised.append(seen)
    if inputs.question:
        facts += _question_facts(inputs.question, knowledge)
    facts += [f for k, v in inputs.goals.items() for f in _goal_facts(k, v)]
    if inputs.probe:
        from .probes.live import collect

        own = collect(python=inputs.python)
        facts += own
        recognised.append(
            Recognised(
                source="probe",
                layouts=tuple(dict.fromkeys(p.source for f in own for p in f.provenance)),
                facts=len(own),
            )
        )
    if inputs.max_facts is not None and len(facts) > inputs.max_facts:
        raise InputTooLarge(f"the input states {len(facts)} facts, the limit is {inputs.max_facts}")
    return Gathered(tuple(facts), tuple(recognised))


def _known(knowledge: Knowledge, fact: Fact) -> Fact:
    """A fact that the caller made, if the vocabulary has it."""
    from .knowledge.problems import did_you_mean

    types = {name: spec for name, spec in knowledge.vocabulary.types.items() if spec.kind == "observed"}
    if fact.type not in types:
        raise InputError(f'facts: no observed type "{fact.type}"{did_you_mean(fact.type, types)}')
    checked = _checked(knowledge, fact, f"facts: {fact.type}")
    fields = {name: knowledge.vocabulary.coerce(fact.type, name, value) for name, value in checked.fields.items()}
    return Fact(fact.type, fields, fact.provenance)


def _facts_file(name: str, data: bytes, knowledge: Knowledge) -> tuple[list[Fact], Recognised]:
    from .knowledge.factsfile import read_facts

    try:
        reading = read_facts(data, name, knowledge.vocabulary, knowledge.aliases, knowledge.phrases, knowledge.names)
    except KnowledgeError as error:
        raise InputError(str(error)) from error
    facts = list(reading.facts)
    for passage in reading.passages:
        for fact in read_text(passage.text, name, _signatures(knowledge)).facts:
            facts.append(Fact(fact.type, fact.fields, (Provenance("user", name, passage.line, "facts file"),)))
    return facts, Recognised(
        source=name, layouts=("facts",), facts=len(facts), not_understood=tuple(reading.not_understood) or None
    )


def _reply_facts(text: str, key: str | None, knowledge: Knowledge) -> list[Fact]:
    """The facts of a reply in a dialogue: pasted output, an error line, a sentence, or the value of a key."""
    from .knowledge.phrases import read_question, with_lines

    reading = read_text(text, "reply", _signatures(knowledge))
    facts = [_known(knowledge, f) for f in reading.facts]
    if len(text) <= _MAX_PROSE and not set(reading.layouts) - {"errors"}:
        facts += read_question(text, knowledge.phrases, knowledge.names, "reply")
        if key is None and knowledge.names.identify(with_lines(text, knowledge.names)):
            key = _GPU_KEY  # a reply that is a name and nothing else says what is there
        if key is not None and "\n" not in text:
            facts += _loose_facts({key: text}, knowledge)
        if not facts:
            pairs = [m for m in map(_PAIR.match, text.splitlines()) if m]
            facts += _loose_facts({m[1]: m[2] for m in pairs}, knowledge)
    return facts


def _loose_facts(values: Mapping[str, str], knowledge: Knowledge) -> list[Fact]:
    """The facts of loose keys and values; none where they cannot be read."""
    import json

    try:
        facts, _ = _facts_file("reply", json.dumps(values).encode(), knowledge)
    except InputError:
        return []
    return [f for f in facts if f.type != _UNREAD]


def _question_facts(question: str, knowledge: Knowledge) -> list[Fact]:
    from .knowledge.phrases import read_question
    from .reasoning.planning import models_of

    facts = [
        *read_question(question, knowledge.phrases, knowledge.names),
        *models_of(question, knowledge),
    ]
    facts += [
        Fact(f.type, f.fields, (Provenance("user", "question"),))
        for f in read_text(question, "question", _signatures(knowledge)).facts
        if f.type == "error"
    ]
    return [*facts, Fact("statement", {"kind": "question_asked"}, (Provenance("user", "question"),))]


def _goal_facts(name: str, value: str) -> list[Fact]:
    origin = (Provenance("user", f"--goal {name}"),)
    facts = [Fact("goal", {"name": name, "value": value}, origin)]
    version = value.removeprefix("==")
    if name == "torch" and version[:1].isdigit():
        facts.append(
            Fact(
                "pin", {"package": name, "version": version, "exact": version.partition("+")[0].count(".") >= 2}, origin
            )
        )
    return facts


def _checked(knowledge: Knowledge, fact: Fact, option: str) -> Fact:
    for name, value in fact.fields.items():
        problem = knowledge.vocabulary.check(fact.type, name, value)
        if problem:
            raise InputError(f"{option}: {problem}")
    return fact


# --- facts to a session -----------------------------------------------------------------------------------------------


def _session(
    knowledge: Knowledge, facts: Iterable[Fact], engine: str, tick: Callable[[], None] = lambda: None
) -> tuple[Session, list[str]]:
    """The session with the engine asked for; `both` runs two and reports a difference as a defect."""
    given = tuple(facts)
    tick()
    if engine == "native":
        with _LOADING:
            shared = native_engine(knowledge)
        return Session(knowledge, given, _Ticking(shared, tick)), []
    other = _durable(knowledge)
    if engine == "durable":
        return Session(knowledge, given, other), []
    native, durable = Session(knowledge, given, native_engine(knowledge)), Session(knowledge, given, other)
    return native, [_compare(native, durable)]


def _durable(knowledge: Knowledge) -> Engine:
    from .engine.durable import DurableEngine, DurableError, DurableUnavailable

    try:
        return _Guarded(DurableEngine(knowledge.ir, knowledge.static), DurableError)
    except (DurableUnavailable, DurableError) as error:
        raise InputError(f"--engine durable: {error}") from error


class _Ticking:
    """An engine that calls `tick` before every run: simulating fixes runs it many times."""

    def __init__(self, engine: Engine, tick: Callable[[], None]) -> None:
        self.engine = engine
        self.tick = tick

    def run(self, rows: Iterable[tuple[str, Mapping[str, Scalar]]]) -> Any:
        self.tick()
        return self.engine.run(rows)


class _Guarded:
    """An engine whose own errors become input errors with one clear message."""

    def __init__(self, engine: Any, error: type[Exception]) -> None:
        self.engine = engine
        self.error = error

    def run(self, rows: Iterable[tuple[str, Mapping[str, Scalar]]]) -> Any:
        try:
            return self.engine.run(rows)
        except self.error as error:
            raise InputError(f"--engine durable: {error}") from error


def _compare(native: Session, durable: Session) -> str:
    first, second = (_content(s) for s in (native, durable))
    if first == second:
        return f"engines native and durable agree: {len(first[0])} rows, {first[1]} justifications"
    return f"DEFECT: engines native and durable differ in {len(first[0] ^ second[0])} rows; please report this input"


def _content(session: Session) -> tuple[frozenset[tuple[str, tuple[tuple[str, Scalar], ...]]], int]:
    memory = session.memory
    rows = frozenset((t, tuple(sorted(f.items()))) for t, f in memory.rows)
    return rows, sum(len(memory.justifications(i)) for i in range(len(memory.rows)))


def _diagnosis(session: Session, lang: str) -> Diagnosis:
    from .reasoning.diagnosis import Diagnosis

    return Diagnosis(session, lang)


def _advised(report: Report, session: Session, inputs: Inputs) -> Report:
    """The report with the advice that fits the question and the findings."""
    from .reasoning.advice import advise

    causes = {f.cause for f in report.findings}
    found = advise(session.knowledge, inputs.question, session.facts, causes, inputs.lang)
    return report.model_copy(update={"recommendations": (*report.recommendations, *found)}) if found else report


def _knowledge_notes(knowledge: Knowledge, types: Iterable[str], facts: Iterable[Fact], inputs: Inputs) -> list[str]:
    """What is to be said of the knowledge behind an answer: own files, catalogs that are old, versions it cannot know.

    types: of the catalog rows that the answer rests on; none stands for all.
    """
    from .reasoning.freshness import newer, old_catalogs
    from .report.messages import Words

    lang: Lang = "zh" if inputs.lang == "zh" else "en"
    words = Words(lang)
    notes = [
        words("note.old_catalog", day=day, days=age, catalogs=words("explain.and").join(names))
        for day, names, age in old_catalogs(knowledge, types, inputs.today or date.today())
    ]
    notes += [
        words("note.newer", what=n.what[lang], value=n.value, newest=n.newest, day=n.day)
        for n in newer(knowledge, facts)
    ]
    return notes + _overlay_notes(inputs.knowledge, words)


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

    known = mirrors(_knowledge(folder))
    if name not in known:
        raise InputError(f'no mirror "{name}"{did_you_mean(name, known)}; known: {", ".join(known)}')
    return known[name]


def _row(rule: Mapping[str, Any], lang: str) -> RuleRow:
    return RuleRow(
        id=rule["id"],
        area=rule["area"],
        severity=rule.get("severity", "-"),
        status=rule["status"],
        title=rule["title"][lang],
    )
