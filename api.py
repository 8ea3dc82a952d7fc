"""The Python API: what `import gpurules` offers, for programs that embed it.

May live here: checking of arguments and limits, and the thin layer over the pipeline. Must not: logic of diagnosis,
printing, files, network, signals, changes of global state.

Every function is stateless and may be called from any thread. What it raises on purpose is a GpurulesError.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from pydantic import BaseModel

from . import pipeline
from .errors import InputError, InputTooLarge, TimeLimit
from .facts import Fact, Provenance
from .messages import LANGS
from .report import model
from .report.explanations import HowTo, WhatIf, WhyNot
from .report.model import Lang, ProofNode, RecommendResult

if TYPE_CHECKING:
    from typing_extensions import Self

    from .reasoning.dialogue import Asked, Belief, Understood, Why

MAX_BYTES = 4 * 1024 * 1024
MAX_FACTS = 20_000
MAX_SECONDS = 10.0

Text = str | bytes
System = Literal["linux", "windows", "wsl", "aarch64", "macos"]
FactsInput = Text | Mapping[str, Any] | Iterable[Fact | Mapping[str, Any]]
ReportsInput = Mapping[str, Text] | Iterable[tuple[str, Text]]

_M = TypeVar("_M", bound=BaseModel)


class Report(model.Report):
    """A diagnosis (schema `gpurules.report/1`) that can be asked about itself.

    It is immutable and holds the facts that it was made from, so every question works on a report read from JSON too.
    `lang` is by default that of the report; `knowledge` is the folder that it was made with, where one was given.
    """

    @classmethod
    def from_json(cls, text: Text) -> Self:
        """The report of a JSON text that `to_json` or `gpurules diagnose --json` wrote. Raises InputError."""
        return _from_json(cls, text)

    def why(
        self,
        target: str = "1",
        *,
        every: bool = False,
        lang: Lang | None = None,
        knowledge: str | PathLike[str] | None = None,
    ) -> list[ProofNode]:
        """The proofs of a finding (number, cause or rule), fix, fact or build, each a tree down to what was read.

        every: not only the shortest. Raises InputError where the target is unknown or does not hold.
        """
        return pipeline.why(self, target, lang or self.lang, every=every, knowledge=_folder(knowledge))

    def why_not(self, target: str, *, lang: Lang | None = None, knowledge: str | PathLike[str] | None = None) -> WhyNot:
        """What stands in the way of a cause, fix, build (`torch==2.15`), rule or kind of fact."""
        return pipeline.why_not(self, target, lang or self.lang, knowledge=_folder(knowledge))

    def what_if(
        self,
        changes: Mapping[str, str] | Iterable[str],
        *,
        lang: Lang | None = None,
        knowledge: str | PathLike[str] | None = None,
    ) -> WhatIf:
        """What changes would do: `{"driver": "580.95"}` or `["driver=580.95", "unset:NAME"]`."""
        listed = [f"{k}={v}" for k, v in changes.items()] if isinstance(changes, Mapping) else list(changes)
        return pipeline.what_if(self, listed, lang or self.lang, knowledge=_folder(knowledge))

    def how_to(self, goal: str, *, lang: Lang | None = None, knowledge: str | PathLike[str] | None = None) -> HowTo:
        """The smallest sets of changes after which a goal holds: a build (`torch>=2.15`), a cause gone, `no-errors`."""
        return pipeline.how_to(self, goal, lang or self.lang, knowledge=_folder(knowledge))

    def redacted(self) -> Self:
        """The report without names of persons and machines, addresses, serials and secrets."""
        return pipeline.redacted(self)

    def to_text(self, *, width: int = 80, lang: Lang | None = None) -> str:
        """The report as the command line shows it, without colours."""
        from .report.layout import Look
        from .report.text import render_text

        return render_text(self, lang=lang or self.lang, look=Look(width=width))

    def to_markdown(self, *, lang: Lang | None = None, redact: bool = True) -> str:
        """The report as Markdown that is safe to post: nothing in it mentions, links or formats by itself."""
        from .report.markdown import render_markdown

        return render_markdown(self.redacted() if redact else self, lang=lang or self.lang)


class Recommendation(RecommendResult):
    """Which torch to install (schema `gpurules.recommend/1`)."""

    @classmethod
    def from_json(cls, text: Text) -> Self:
        """The result of a JSON text that `to_json` or `gpurules recommend --json` wrote. Raises InputError."""
        return _from_json(cls, text)


def diagnose(
    text: Text | None = None,
    *,
    facts: FactsInput | None = None,
    reports: ReportsInput | None = None,
    question: str | None = None,
    goals: Mapping[str, str] | None = None,
    lang: Lang = "en",
    probe: bool | None = None,
    today: date | None = None,
    knowledge: str | PathLike[str] | None = None,
    mirror: str | None = None,
    max_seconds: float | None = MAX_SECONDS,
    max_bytes: int | None = MAX_BYTES,
) -> Report:
    """Find what is wrong and what to do about it.

    text: a pasted text: collect_env, nvidia-smi, a traceback, a log, or several in one.
    facts: a facts file's content (YAML or JSON), or the same as Python values, or `Fact` objects.
    reports: more texts by name; places in the report read `name:line`.
    question, goals: what the user wants to know or have, as `--question` and `--goal` take them.
    probe: look at this machine too. By default only where nothing else is given: `diagnose()` is about this machine.
    today: the day from which the age of the knowledge is reckoned.
    knowledge: a folder whose files are added to the shipped knowledge or replace those of the same name.
    mirror: the name of a mirror of the PyTorch index to give beside the original, as `--mirror` takes it.
    max_seconds, max_bytes: limits on the work and on all inputs together; None for no limit. The time is looked at
    between steps, so it can be overrun by one step.

    Raises InputError where the input cannot be used (KnowledgeError where files have faults, InputTooLarge) and
    TimeLimit.
    """
    inputs = _inputs(
        text, facts, reports, question, goals, lang, probe, today, knowledge, _Clock(max_seconds), max_bytes
    )
    return _own(Report, pipeline.diagnose(replace(inputs, mirror=mirror)))


def recommend(
    text: Text | None = None,
    *,
    facts: FactsInput | None = None,
    reports: ReportsInput | None = None,
    goals: Mapping[str, str] | None = None,
    gpus: Sequence[str] = (),
    driver: str | None = None,
    os: System | None = None,
    python: str | None = None,
    lang: Lang = "en",
    probe: bool | None = None,
    knowledge: str | PathLike[str] | None = None,
    mirror: str | None = None,
    max_seconds: float | None = MAX_SECONDS,
    max_bytes: int | None = MAX_BYTES,
) -> Recommendation:
    """Say which torch to install on the machine that is described, or on this one where nothing is.

    gpus, driver, os, python: in place of what was found, as `--gpu`, `--driver`, `--os` and `--python`; the
    other arguments are those of `diagnose`.
    """
    said = {"os": os, "driver": driver, "python": python}
    described = [f"{name}={_text(name, value)}" for name, value in said.items() if value is not None]
    described += [f"gpu={_text('gpu', card)}" for card in gpus]
    if gpus and facts is None:
        facts = ()  # a machine is described, so this one is not looked at
    inputs = _inputs(text, facts, reports, None, goals, lang, probe, None, knowledge, _Clock(max_seconds), max_bytes)
    inputs = replace(inputs, mirror=mirror, described=described)
    return _own(Recommendation, pipeline.recommend(inputs))


def read_facts(
    text: Text | None = None,
    *,
    facts: FactsInput | None = None,
    reports: ReportsInput | None = None,
    question: str | None = None,
    knowledge: str | PathLike[str] | None = None,
    max_seconds: float | None = MAX_SECONDS,
    max_bytes: int | None = MAX_BYTES,
) -> list[Fact]:
    """The facts that the inputs state, each with the places where it was read; nothing is concluded from them."""
    inputs = _inputs(text, facts, reports, question, None, "en", False, None, knowledge, _Clock(max_seconds), max_bytes)
    return pipeline.read(inputs)


def probe_facts(*, python: str | PathLike[str] | None = None, redact: bool = True) -> list[Fact]:
    """The facts of this machine, and of the interpreter that runs torch (by default the one on the path)."""
    return pipeline.probe(pipeline.Inputs(python=None if python is None else str(python)), redact=redact)


def facts_to_json(facts: Iterable[Fact]) -> str:
    """Facts as JSON (schema `gpurules.facts/1`) that `facts=` and `--facts` read."""
    from .report.facts_text import facts_json

    return facts_json(facts)


class Session:
    """A dialogue: it asks the question that tells most, takes answers, and has a report at any time.

        session = gpurules.Session(question="my training hangs")
        while (asked := session.ask()) is not None:
            session.answer(input(asked.text))
        print(session.report().to_text())

    It starts from what `diagnose` takes, from a report, or from nothing; this machine is looked at only where `probe`
    is true. An object serves one dialogue and one thread at a time; different objects have nothing in common.
    max_seconds is for each call, max_bytes for the beginning and for each answer.
    """

    def __init__(
        self,
        text: Text | None = None,
        *,
        report: model.Report | None = None,
        facts: FactsInput | None = None,
        reports: ReportsInput | None = None,
        question: str | None = None,
        goals: Mapping[str, str] | None = None,
        lang: Lang = "en",
        probe: bool = False,
        knowledge: str | PathLike[str] | None = None,
        max_seconds: float | None = MAX_SECONDS,
        max_bytes: int | None = MAX_BYTES,
    ) -> None:
        self._clock = _Clock(max_seconds)
        self._max_bytes = max_bytes
        given = _inputs(
            text, facts, reports, question or "", goals, lang, probe, None, knowledge, self._clock, max_bytes
        )
        self._dialogue = pipeline.dialogue(given, report=report)

    def ask(self) -> Asked | None:
        """The question to put now; None where no answer would change anything. Asking twice is asking once."""
        self._clock.restart()
        return self._dialogue.ask()

    def answer(self, text: str) -> Understood:
        """Take a reply to that question: a choice, pasted output, a sentence, or that it is not known."""
        self._clock.restart()
        return self._dialogue.answer(self._reply(text))

    def tell(self, text: str) -> Understood:
        """Take a text that answers nothing in particular."""
        self._clock.restart()
        return self._dialogue.tell(self._reply(text))

    def undo(self) -> bool:
        """Take the last reply back; False where there is none."""
        return self._dialogue.undo() is not None

    def beliefs(self) -> list[Belief]:
        """The competing causes with their shares, the likeliest first."""
        self._clock.restart()
        return self._dialogue.beliefs()

    def why(self) -> Why | None:
        """Why the present question is asked: which causes its answers would tell apart, and by which rules."""
        self._clock.restart()
        return self._dialogue.why()

    def report(self) -> Report:
        """The report of what is known now."""
        self._clock.restart()
        return _own(Report, self._dialogue.report())

    def to_json(self) -> str:
        """The dialogue as JSON, to go on with later; pasted texts are not in it, what was read from them is."""
        return json.dumps(self._dialogue.to_json(), ensure_ascii=False)

    @classmethod
    def from_json(
        cls,
        text: Text,
        *,
        lang: Lang | None = None,
        knowledge: str | PathLike[str] | None = None,
        max_seconds: float | None = MAX_SECONDS,
        max_bytes: int | None = MAX_BYTES,
    ) -> Self:
        """The dialogue that `to_json` wrote. Raises InputError."""
        try:
            saved = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError("input.no_dialogue", reason=error) from error
        spoken = saved.get("lang") if isinstance(saved, dict) else None
        session = cls(
            lang=lang or ("zh" if spoken == "zh" else "en"),
            knowledge=knowledge,
            max_seconds=max_seconds,
            max_bytes=max_bytes,
        )
        session._dialogue = pipeline.dialogue(
            pipeline.Inputs(lang=session._dialogue.lang, knowledge=_folder(knowledge), tick=session._clock),
            saved=saved,
        )
        return session

    def _reply(self, text: str) -> str:
        reply = _text("answer", text)
        if self._max_bytes is not None and len(reply.encode()) > self._max_bytes:
            raise InputTooLarge("input.answer_too_large", n=len(reply.encode()), limit=self._max_bytes)
        return reply


# --- arguments to inputs ----------------------------------------------------------------------------------------------


class _Clock:
    """Raises TimeLimit when it is looked at too late."""

    def __init__(self, seconds: float | None) -> None:
        self._seconds = seconds
        self.restart()

    def restart(self) -> None:
        """Count from now."""
        self._end = None if self._seconds is None else time.monotonic() + self._seconds

    def __call__(self) -> None:
        if self._end is not None and time.monotonic() > self._end:
            raise TimeLimit("input.time_limit", seconds=self._seconds)


def _inputs(
    text: Text | None,
    facts: FactsInput | None,
    reports: ReportsInput | None,
    question: str | None,
    goals: Mapping[str, str] | None,
    lang: Lang,
    probe: bool | None,
    today: date | None,
    knowledge: str | PathLike[str] | None,
    tick: Callable[[], None],
    max_bytes: int | None,
) -> pipeline.Inputs:
    if lang not in ("en", "zh"):
        raise InputError("input.none_of", what="lang", value=lang, known=LANGS)
    nothing = text is None and facts is None and reports is None and question is None
    if nothing and probe is False:
        raise InputError("input.nothing")
    texts = list(_reports(text, reports))
    documents, given = _facts(facts)
    wanted = {_text("goals", name): _text("goals", value) for name, value in (goals or {}).items()}
    asked = None if question is None else _text("question", question)
    size = sum(len(data) for _, data in [*texts, *documents])
    size += sum(len(part.encode()) for part in (asked or "", *wanted, *wanted.values()))
    if max_bytes is not None and size > max_bytes:
        raise InputTooLarge("input.too_many_bytes", n=size, limit=max_bytes)
    return pipeline.Inputs(
        reports=texts,
        facts=documents,
        given=given,
        question=asked,
        goals=wanted,
        probe=nothing if probe is None else probe,
        lang=lang,
        today=today,
        knowledge=_folder(knowledge),
        tick=tick,
        max_facts=MAX_FACTS,
    )


def _folder(knowledge: str | PathLike[str] | None) -> Path | None:
    return None if knowledge is None else Path(knowledge)


def _reports(text: Text | None, reports: ReportsInput | None) -> Iterator[tuple[str, bytes]]:
    if text is not None:
        yield "text", _bytes("text", text)
    pairs = reports.items() if isinstance(reports, Mapping) else (reports or ())
    for name, content in pairs:
        yield _text("reports", name), _bytes(f"reports: {name}", content)


def _facts(facts: FactsInput | None) -> tuple[list[tuple[str, bytes]], list[Fact]]:
    """Facts as documents to read, and as they are."""
    if facts is None:
        return [], []
    if isinstance(facts, str | bytes):
        return [("facts", _bytes("facts", facts))], []
    if isinstance(facts, Mapping):
        return [("facts", _json(facts))], []
    given = list(facts)
    own = [_clean_fact(fact) for fact in given if isinstance(fact, Fact)]
    written = [fact for fact in given if not isinstance(fact, Fact)]
    return [("facts", _json({"facts": written}))] if written else [], own


def _clean_fact(fact: Fact) -> Fact:
    """A caller's fact with texts that every part can hold, and a place: conclusions from it name one."""
    fields = {name: _whole(value) if isinstance(value, str) else value for name, value in fact.fields.items()}
    return Fact(fact.type, fields, fact.provenance or (Provenance("user", "facts"),))


def _json(value: object) -> bytes:
    try:
        return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError("input.file", file="facts", reason=error) from error


def _bytes(what: str, value: object) -> bytes:
    if isinstance(value, str):
        return value.encode("utf-8", "replace")
    if isinstance(value, bytes):
        return value
    raise InputError("input.str_or_bytes", what=what, type=type(value).__name__)


def _text(what: str, value: object) -> str:
    if not isinstance(value, str):
        raise InputError("input.str", what=what, type=type(value).__name__)
    return _whole(value)


def _whole(text: str) -> str:
    """Lone surrogates are no characters: neither JSON nor UTF-8 can hold them."""
    return text.encode("utf-8", "replace").decode("utf-8")


# --- results ----------------------------------------------------------------------------------------------------------


def _own(kind: type[_M], result: BaseModel) -> _M:
    """The pipeline's result as the API's class; it was checked when it was made."""
    values = {name: getattr(result, name) for name in type(result).model_fields}
    return kind.model_construct(_fields_set=set(result.model_fields_set), **values)


def _from_json(kind: type[_M], text: Text) -> _M:
    try:
        return kind.model_validate(json.loads(text))
    except (ValueError, RecursionError) as error:  # pydantic's ValidationError is a ValueError
        wanted = kind.model_fields["schema_id"].default
        raise InputError("input.no_document", schema=wanted, reason=str(error).splitlines()[0]) from error
