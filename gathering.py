"""From what an interface was given to facts: pasted texts, facts files, questions, goals, this machine.

May live here: handing each input to its reader, the checks and provenance of what a caller states. Must not: layouts,
phrases or aliases (readers and knowledge), rules, rendering.
"""

from __future__ import annotations

import functools
import os
import platform
import re
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .errors import InputError, InputTooLarge
from .facts import Entry, Fact, Provenance
from .knowledge.loader import Knowledge, load_knowledge
from .messages import Message
from .probes.readers import Reading, read_text
from .probes.readers.signatures import Signatures
from .report.model import Recognised

if TYPE_CHECKING:
    from .probes.readers.prose import Passage
    from .report.model import Lang

Tick = Callable[[], None]

# The type of a loose key that no alias covers.
_UNREAD = "stated"
# The reader of what an author wrote into a form.
_FORM = "form"
# The statement that names a GPU.
_MENTIONED = "gpu_mentioned"
# The key whose value is the name of a GPU.
_GPU_KEY = "gpu"
# Longer replies are output, in which a phrase is no statement of the user's.
_MAX_PROSE = 2_000
_PAIR = re.compile(r"\s*([\w .-]{1,40}?)\s*[:=：]\s*(\S.{0,200})\Z")
# What is installed, and which of its domains were looked at.
_INSTALLED = ("torch", "package", "arch_list", "torch_target", "python_environment", "vllm")
_INSTALLED_DOMAINS = ("torch", "packages", "arch_list", "python_environments")
_TARGET = (("os", "family", "system"), ("os", "machine", "machine"), ("python", "version", "python"))
# How much of a text is looked through for the names of its people and machines.
_MAX_NAMES_IN = 1 << 18
# Threads that come first together wait for one of them to load and compile what all will share.
_LOADING = threading.Lock()


@dataclass(frozen=True)
class Inputs:
    """What an interface was given. reports, facts: (name, content); given: facts as such; today: the day that ages are
    counted from; tick: called between steps, to end the work by what it raises; max_facts: how many facts are too many.
    described: what the machine has in place of what was found, each NAME=VALUE of knowledge/changes.yaml;
    validate: run checks on this machine too; progress: called before and after each, see probes/validation.
    """

    reports: Sequence[tuple[str, bytes]] = ()
    facts: Sequence[tuple[str, bytes]] = ()
    given: Sequence[Fact] = ()
    question: str | None = None
    goals: Mapping[str, str] = field(default_factory=dict)
    probe: bool = False
    python: str | None = None
    described: Sequence[str] = ()
    lang: Lang = "en"
    engine: str = "native"
    knowledge: Path | None = None
    today: date | None = None
    mirror: str | None = None
    tick: Tick = lambda: None
    max_facts: int | None = None
    validate: bool = False
    progress: Callable[[Any, Any], None] = lambda _check, _outcome: None


@dataclass(frozen=True)
class Gathered:
    """The facts of all inputs and what was recognised in each."""

    facts: tuple[Fact, ...]
    recognised: tuple[Recognised, ...]


def knowledge_in(folder: Path | None) -> Knowledge:
    """The knowledge, with the files of a folder of one's own on top."""
    with _LOADING:
        return load_knowledge(folder)


@functools.lru_cache(maxsize=4)
def _compiled(knowledge: Knowledge) -> Signatures:
    return Signatures.compile(knowledge.signatures)


def signatures_of(knowledge: Knowledge) -> Signatures:
    """The known error lines, ready to be searched for."""
    with _LOADING:
        return _compiled(knowledge)


def gather(inputs: Inputs, knowledge: Knowledge) -> Gathered:
    """The facts of all inputs. Raises InputError where one cannot be read or states too much."""
    facts: list[Fact] = [_known(knowledge, fact) for fact in inputs.given]
    recognised: list[Recognised] = []
    for reader, files in ((_report, inputs.reports), (_facts_file, inputs.facts)):
        for name, data in files:
            inputs.tick()
            own, seen = reader(name, data, knowledge, inputs.tick)
            facts += own
            recognised.append(seen)
    if inputs.question:
        facts += _question_facts(inputs.question, facts, knowledge)
    facts += [f for k, v in inputs.goals.items() for f in _goal_facts(k, v)]
    if inputs.probe:
        from .probes.live import collect

        own = collect(python=inputs.python, signatures=signatures_of(knowledge))
        facts += own
        recognised.append(
            Recognised(
                source="probe",
                layouts=tuple(dict.fromkeys(p.source for f in own for p in f.provenance)),
                facts=len(own),
            )
        )
    if inputs.max_facts is not None and len(facts) > inputs.max_facts:
        raise InputTooLarge("input.too_many_facts", n=len(facts), limit=inputs.max_facts)
    return _without_private(inputs, facts, recognised, knowledge)


def _without_private(
    inputs: Inputs, facts: Sequence[Fact], recognised: Sequence[Recognised], knowledge: Knowledge
) -> Gathered:
    """What was gathered without names, addresses, serials and secrets, before anything is concluded or shown."""
    from .probes.redact import redact_input

    texts = [text for seen in recognised for text in (seen.source, *(seen.not_understood or ()))]
    raw = [data[:_MAX_NAMES_IN].decode("utf-8", "replace") for _, data in (*inputs.reports, *inputs.facts)]
    host = platform.node() if inputs.probe else ""
    read = [*raw, inputs.question or ""]
    clean, said = redact_input(facts, texts, read, os.path.expanduser("~"), host, knowledge.vocabulary.closed_sets())
    left = iter(said)
    shown = []
    for seen in recognised:
        changes: dict[str, Any] = {"source": next(left)}
        if seen.not_understood:
            changes["not_understood"] = tuple(next(left) for _ in seen.not_understood)
        shown.append(seen.model_copy(update=changes))
    return Gathered(tuple(clean), tuple(shown))


def _known(knowledge: Knowledge, fact: Fact) -> Fact:
    """A fact that the caller made, if the vocabulary has it."""
    from .knowledge.problems import did_you_mean

    types = {name: spec for name, spec in knowledge.vocabulary.types.items() if spec.kind == "observed"}
    if fact.type not in types:
        raise InputError("input.no_observed_type", name=fact.type, hint=did_you_mean(fact.type, types))
    checked = _checked(knowledge, fact, f"facts: {fact.type}")
    fields = {name: knowledge.vocabulary.coerce(fact.type, name, value) for name, value in checked.fields.items()}
    return Fact(fact.type, fields, fact.provenance)


def _report(name: str, data: bytes, knowledge: Knowledge, tick: Tick) -> tuple[list[Fact], Recognised]:
    reading = read_text(data, name, signatures_of(knowledge), tick)
    if reading.refused:
        raise InputError("input.file", file=name, reason=Message(f"input.refused.{reading.refused}"))
    form = _form_facts(name, reading, knowledge)
    prose = _prose_facts(name, data, reading.facts, form, knowledge)
    facts = [*reading.facts, *form, *prose]
    layouts = (*reading.layouts, *(["form"] if form else ()), *(["prose"] if prose else ()))
    return facts, Recognised(source=name, layouts=layouts, facts=len(facts), truncated=reading.truncated or None)


def _form_facts(name: str, reading: Reading, knowledge: Knowledge) -> list[Fact]:
    """What the author wrote into a form, where no output in the text tells any of it.

    A bare list tells of the machine beside an output or a form only: alone it may be what somebody asks about.
    """
    find = knowledge.aliases.find
    labelled = [e for e in reading.entries if e.label and (known := find(e.label)) is not None and known.alias.forms]
    bare = [e for e in reading.entries if not e.label]
    found = _entry_facts(name, labelled, knowledge) if labelled else []
    if bare and (reading.facts or found):
        found = _entry_facts(name, [*labelled, *bare], knowledge)
    types = knowledge.vocabulary.types
    told = {(fact.type, field_) for fact in reading.facts for field_ in fact.fields.keys() - types[fact.type].identity}
    return [
        Fact(fact.type, fact.fields, tuple(replace(p, kind="report", reader=_FORM) for p in fact.provenance))
        for fact in found
        if fact.type == "statement" or told.isdisjoint((fact.type, field_) for field_ in fact.fields)
    ]


def _entry_facts(name: str, entries: Sequence[Entry], knowledge: Knowledge) -> list[Fact]:
    from .knowledge.factsfile import read_entries

    return read_entries(entries, name, knowledge.vocabulary, knowledge.aliases, knowledge.phrases, knowledge.names)


def _prose_facts(
    name: str, data: bytes, read: Sequence[Fact], form: Sequence[Fact], knowledge: Knowledge
) -> list[Fact]:
    """What the author says around the outputs, or asks where there is no output at all.

    Statements only: what somebody mentions, nobody measured.
    """
    from .knowledge.phrases import read_question
    from .probes.readers.prose import passages

    found: dict[tuple[object, object], Fact] = {}
    taken = {p.line for fact in (*read, *form) for p in fact.provenance if p.line is not None}
    prose = passages(data, taken, alone=not read and not form)
    for passage in prose:
        for fact in read_question(passage.text, knowledge.phrases, knowledge.names, name, passage.line):
            found.setdefault((fact.fields["kind"], fact.fields.get("detail")), fact)
    asked = [] if read or not found else _asked(prose, [*found.values()], form, name, knowledge)
    return [*found.values(), *asked]


def _asked(
    prose: Sequence[Passage], said: Sequence[Fact], given: Sequence[Fact], name: str, knowledge: Knowledge
) -> list[Fact]:
    """What a question adds to its statements: the models and the machine that it names, and that it is one."""
    from .reasoning.plannames import models_of

    origin = (Provenance("user", name, prose[0].line, "question"),)
    models = models_of("\n".join(passage.text for passage in prose), knowledge)
    return [
        *(Fact(f.type, f.fields, origin) for f in (*models, *_machine_asked_about(said, name, given, knowledge))),
        Fact("statement", {"kind": "question_asked"}, origin),
    ]


def _facts_file(
    name: str, data: bytes, knowledge: Knowledge, _tick: Tick = lambda: None
) -> tuple[list[Fact], Recognised]:
    from .knowledge.factsfile import read_facts

    reading = read_facts(data, name, knowledge.vocabulary, knowledge.aliases, knowledge.phrases, knowledge.names)
    facts = list(reading.facts)
    for passage in reading.passages:
        for fact in read_text(passage.text, name, signatures_of(knowledge)).facts:
            facts.append(Fact(fact.type, fact.fields, (Provenance("user", name, passage.line, "facts file"),)))
    return facts, Recognised(
        source=name, layouts=("facts",), facts=len(facts), not_understood=tuple(reading.not_understood) or None
    )


def reply_facts(text: str, key: str | None, knowledge: Knowledge, given: Sequence[Fact] = ()) -> list[Fact]:
    """The facts of a reply in a dialogue: pasted output, an error line, a sentence, or the value of a key.

    given: what is known already; a question of what fits names no other machine than that.
    """
    from .knowledge.phrases import read_question, with_lines

    reading = read_text(text, "reply", signatures_of(knowledge))
    facts = [_known(knowledge, f) for f in reading.facts]
    if len(text) <= _MAX_PROSE and not set(reading.layouts) - {"errors"}:
        said = read_question(text, knowledge.phrases, knowledge.names, "reply")
        facts += [*said, *_machine_asked_about(said, "reply", [*given, *facts], knowledge)]
        unread = not any(fact.type == "gpu" for fact in facts)
        if key is None and unread and knowledge.names.identify(with_lines(text, knowledge.names)):
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


def _question_facts(question: str, given: Sequence[Fact], knowledge: Knowledge) -> list[Fact]:
    from .knowledge.phrases import read_question
    from .reasoning.plannames import models_of

    said = read_question(question, knowledge.phrases, knowledge.names)
    facts = [*said, *models_of(question, knowledge), *_machine_asked_about(said, "question", given, knowledge)]
    facts += [
        Fact(f.type, f.fields, (Provenance("user", "question"),))
        for f in read_text(question, "question", signatures_of(knowledge)).facts
        if f.type == "error"
    ]
    return [*facts, Fact("statement", {"kind": "question_asked"}, (Provenance("user", "question"),))]


def _machine_asked_about(said: Sequence[Fact], source: str, given: Sequence[Fact], knowledge: Knowledge) -> list[Fact]:
    """The machine that a question of what fits names, in place of one that is there; nothing for other questions."""
    meant = [(f, m) for f in said if (m := knowledge.phrases.meanings.get(str(f.fields["kind"]))) is not None]
    asked = {meaning.fits for _, meaning in meant} - {None}
    if not asked:
        return []
    rows = [
        Entry(_GPU_KEY, f"{f.fields['number']}x {f.fields['detail']}", 1)
        for f in said
        if f.fields["kind"] == _MENTIONED
    ]
    wished: list[Fact] = []
    for fact, meaning in meant:
        value = str(fact.fields.get("number") or fact.fields["detail"])
        key = meaning.machine or (meaning.goal if "here" in asked else None)
        if key is not None:
            rows.append(Entry(key, value, 1))
        elif meaning.goal is not None:
            wished += _goal_facts(meaning.goal, value)
    left_out = {"statement", *(fact.type for fact in given)}
    named = [f for f in _entry_facts(source, rows, knowledge) if f.type not in left_out]
    return [replace(f, provenance=(Provenance("user", source),)) for f in (*named, *wished)]


def card_facts(text: str, knowledge: Knowledge) -> list[Fact]:
    """The cards of `2x RTX 3090`, as cards that are spoken of. Raises InputError for a name that no catalog has."""
    from .knowledge.phrases import with_lines

    found = knowledge.names.find_all(with_lines(text, knowledge.names))
    if not found:
        raise InputError("input.no_gpu", text=text)
    origin = (Provenance("user", "--gpu"),)
    return [Fact("statement", {"kind": _MENTIONED, "detail": name, "number": n}, origin) for name, n in found]


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
            raise InputError("input.file", file=option, reason=problem)
    return fact


def of_environment(fact: Fact) -> bool:
    """Whether a fact says what is installed in a Python environment."""
    return fact.type in _INSTALLED or (fact.type == "coverage" and fact.fields.get("domain") in _INSTALLED_DOMAINS)


def target_of_files(facts: Iterable[Fact]) -> dict[str, str]:
    """The system, processor and Python that the facts name, for the conditions in files of a project."""
    found: dict[str, str] = {}
    for fact in facts:
        for kind, field_, name in _TARGET:
            if fact.type == kind and field_ in fact.fields:
                found.setdefault(name, str(fact.fields[field_]))
    return found
