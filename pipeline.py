"""The pipeline behind every interface: inputs to facts, facts to a session, a session to a report.

May live here: the wiring of probes, knowledge, reasoning and report. Must not: parsing, rules, rendering, output, exit codes.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from .errors import InputError, InputTooLarge
from .facts import Fact, Provenance, Scalar
from .knowledge.factsfile import read_facts
from .knowledge.loader import Knowledge, KnowledgeError, load_knowledge
from .knowledge.phrases import read_question
from .probes.readers import read_text
from .probes.readers.signatures import Signatures
from .reasoning.session import Engine, Session, native_engine
from .report.model import ProofNode, Recognised, RecommendResult, Report, RuleDetail, RuleRow, RuleTest

if TYPE_CHECKING:
    from .reasoning.diagnosis import Diagnosis

_R = TypeVar("_R", bound=Report)

# After this many days a report says that its knowledge is old.
FRESH_DAYS = 180
# What `recommend --os` stands for.
_SYSTEMS: Mapping[str, Mapping[str, Scalar]] = {
    "linux": {"family": "linux", "machine": "x86_64", "wsl": False},
    "wsl": {"family": "linux", "machine": "x86_64", "wsl": True},
    "aarch64": {"family": "linux", "machine": "aarch64", "wsl": False},
    "windows": {"family": "windows", "machine": "x86_64"},
    "macos": {"family": "macos", "machine": "arm64"},
}
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
    tick: Callable[[], None] = lambda: None
    max_facts: int | None = None


@dataclass(frozen=True)
class Gathered:
    """The facts of all inputs and what was recognised in each."""

    facts: tuple[Fact, ...]
    recognised: tuple[Recognised, ...]


# --- the commands ---------------------------------------------------------------------------------------------------------


def diagnose(inputs: Inputs) -> Report:
    """The main job: causes, fixes and reasons. Raises InputError."""
    knowledge = _knowledge(inputs.knowledge)
    gathered = _gather(inputs, knowledge)
    session, notes = _session(knowledge, gathered.facts, inputs.engine, inputs.tick)
    diagnosis = _diagnosis(session, inputs.lang)
    notes += [*diagnosis.conflicts(), *_age_notes(knowledge, inputs)]
    return diagnosis.report(recognised=gathered.recognised, notes=tuple(notes) or None)


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
    return Selection(session, inputs.lang).result()


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


def why(report: Report, target: str, lang: str) -> list[ProofNode]:
    """The proof trees of a target of a report, in the report's own language. Raises InputError for an unknown target."""
    from .knowledge.problems import did_you_mean
    from .reasoning.why import explain

    del lang  # the report's sentences are in the language that it was made in
    found = explain(report, target)
    if not found:
        known = [*(f.id for f in report.findings), *(f.cause for f in report.findings), *(f.id for f in report.fixes)]
        raise InputError(f'the report has no finding, fix or fact "{target}"{did_you_mean(target, known)}')
    return found


# --- the knowledge --------------------------------------------------------------------------------------------------------


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


# --- sharing --------------------------------------------------------------------------------------------------------------


def redacted(report: _R) -> _R:
    """The report without names, addresses, serials and secrets, to be shown to strangers."""
    from .probes.redact import redact_values

    return type(report).model_validate(redact_values(report.to_dict()))


# --- inputs to facts ------------------------------------------------------------------------------------------------------


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
    return _checked(knowledge, fact, f"facts: {fact.type}")


def _facts_file(name: str, data: bytes, knowledge: Knowledge) -> tuple[list[Fact], Recognised]:
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


def _question_facts(question: str, knowledge: Knowledge) -> list[Fact]:
    facts = read_question(question, knowledge.phrases, knowledge.names)
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


# --- facts to a session ---------------------------------------------------------------------------------------------------


def _session(
    knowledge: Knowledge, facts: Iterable[Fact], engine: str, tick: Callable[[], None] = lambda: None
) -> tuple[Session, list[str]]:
    """The session with the engine asked for; `both` runs two and reports a difference as a defect."""
    given = tuple(facts)
    tick()
    if engine == "native":
        with _LOADING:
            native = native_engine(knowledge)
        return Session(knowledge, given, _Ticking(native, tick)), []
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


def _age_notes(knowledge: Knowledge, inputs: Inputs) -> list[str]:
    newest = max(knowledge.retrieved.values(), default="")
    today = inputs.today or date.today()
    try:
        age = (today - date.fromisoformat(newest)).days
    except ValueError:
        return []
    if age <= FRESH_DAYS:
        return []
    from .report.messages import Words

    return [Words(inputs.lang)("note.old_knowledge", day=newest, days=age)]  # type: ignore[arg-type]


def _row(rule: Mapping[str, Any], lang: str) -> RuleRow:
    return RuleRow(
        id=rule["id"],
        area=rule["area"],
        severity=rule.get("severity", "-"),
        status=rule["status"],
        title=rule["title"][lang],
    )
