"""A dialogue: facts, the question that narrows the causes down best, the answer, and so on to a report.

May live here: the course of a dialogue and what it knows at each turn. Must not: input and output, the reading of texts
(a reader is handed in), any question or word (they are data).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from ..errors import InputError
from ..facts import Fact, Provenance, Scalar
from ..knowledge.loader import Knowledge
from ..knowledge.phrases import read_question
from ..messages import Message
from ..report.messages import Words
from ..report.model import Lang, Report
from .diagnosis import Diagnosis
from .gain import State, Weighed, best, facts_of, questions
from .session import Engine, Session

SCHEMA = "gpurules.dialogue/1"
OPENING = "opening"
# A share that moves less than this is not worth telling.
TOLD = 0.02
MAX_FACTS = 20_000
# A symptom is named in a sentence or two, by its title of at least so many characters.
_MAX_NAMED = 2_000
_MIN_TITLE = 8

# Facts of a text; the second argument is the key that the text is the value of, where the question has one.
Reader = Callable[[str, str | None], Sequence[Fact]]
_QUOTE = re.compile(r"[“\"]([^“”\"]{6,})[”\"]")
_SPLIT = re.compile(r"[,;，；。：:]|\.\s")


@dataclass(frozen=True, slots=True)
class Choice:
    """An answer that can be chosen."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A question. gain: in bits; choices: what may be chosen; command: what answers it by its output."""

    id: str
    text: str
    command: str | None = None
    choices: tuple[Choice, ...] = ()
    gain: float | None = None


@dataclass(frozen=True, slots=True)
class Understood:
    """What became of a reply: a choice, "don't know", facts of a text, or nothing."""

    kind: Literal["choice", "unknown", "text", "nothing"]
    choice: Choice | None = None
    facts: tuple[Fact, ...] = ()


@dataclass(frozen=True, slots=True)
class Belief:
    """A cause with its share; cause None is something else. symptom: what it would explain, None for itself alone."""

    symptom: str | None
    cause: str | None
    title: str
    share: float


@dataclass(frozen=True, slots=True)
class Shift:
    """How an answer moves a cause, and the rules that move it: (rule, its sentence)."""

    cause: str
    title: str
    before: float
    after: float
    rules: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Prospect:
    """What one answer would change, and how likely it is."""

    answer: str
    likelihood: float
    shifts: tuple[Shift, ...]


@dataclass(frozen=True, slots=True)
class Why:
    """Why a question is asked: what each of its answers would tell apart."""

    question: str
    gain: float | None
    prospects: tuple[Prospect, ...]


@dataclass(frozen=True, slots=True)
class Turn:
    """A question with what came of it. choice: the id of the answer chosen; facts: what the reply gave."""

    question: str
    choice: str | None = None
    facts: tuple[Fact, ...] = field(default=())


class Dialogue:
    """The facts of one case, asked for one by one. `ask()` gives the next question until nothing is worth asking."""

    def __init__(
        self,
        knowledge: Knowledge,
        facts: Sequence[Fact] = (),
        lang: Lang = "en",
        *,
        read: Reader | None = None,
        engine: Engine | None = None,
    ) -> None:
        self.knowledge = knowledge
        self.lang = lang
        self.given = tuple(facts)
        self.turns: list[Turn] = []
        self._read = read or self._phrases
        self._engine = engine
        self._words = Words(lang)

    # --- questions and answers --------------------------------------------------------------------------------------

    def ask(self) -> Asked | None:
        """The question that is worth most now, None where none is worth asking. Asking again changes nothing."""
        return self._asked

    def answer(self, text: str) -> Understood:
        """Takes a reply to the present question: a choice (number, word), "don't know", or a text with facts."""
        asked = self.ask()
        if asked is None:
            return Understood("nothing")
        reply = text.strip()
        if self.is_unknown(reply):
            self._add(Turn(asked.id))
            return Understood("unknown")
        data = self.knowledge.questions.get(asked.id, {})
        chosen = _chosen(reply, data, asked)
        facts = list(self._text(reply, None if chosen else data.get("reads_as")))
        if chosen is not None:
            choice = next(c for c in asked.choices if c.id == chosen["id"])
            # What the answer says comes first: the words around it may only add to it.
            facts = [*_from(asked.id, facts_of(self.session, chosen)), *facts]
            self._add(Turn(asked.id, choice.id, tuple(facts)))
            return Understood("choice", choice, tuple(facts))
        if not facts:
            return Understood("nothing")
        self._add(Turn(asked.id, None, tuple(facts)))
        return Understood("text", None, tuple(facts))

    def answers(self, text: str) -> bool:
        """Whether a line by itself is an answer to the present question: a choice, or "don't know"."""
        asked = self.ask()
        if asked is None:
            return False
        data = self.knowledge.questions.get(asked.id, {})
        return self.is_unknown(text) or _chosen(text.strip(), data, asked) is not None

    def tell(self, text: str) -> Understood:
        """Takes a text that answers nothing in particular, such as what was typed to begin with."""
        facts = self._text(text.strip(), None)
        if not facts:
            return Understood("nothing")
        self._add(Turn(OPENING, None, tuple(facts)))
        return Understood("text", None, tuple(facts))

    def supply(self, facts: Sequence[Fact]) -> Understood:
        """Takes facts as the reply to the present question: of a probe, or of a program that has them as such."""
        asked = self.ask()
        if asked is None or not facts:
            return Understood("nothing")
        self._add(Turn(asked.id, None, tuple(facts)))
        return Understood("text", None, tuple(facts))

    def undo(self) -> Turn | None:
        """Takes the last turn back, and returns it; None at the beginning."""
        if not self.turns:
            return None
        turn = self.turns.pop()
        self._forget()
        return turn

    def is_unknown(self, reply: str) -> bool:
        """Whether a reply says that the answer is not known."""
        return is_word(reply, "ask.word.unknown", self._words)

    # --- what it knows ----------------------------------------------------------------------------------------------

    @property
    def facts(self) -> tuple[Fact, ...]:
        """Everything stated so far."""
        return (*self.given, *(f for t in self.turns for f in t.facts))

    @cached_property
    def session(self) -> Session:
        """The engine's run over everything stated so far."""
        return Session(self.knowledge, self.facts, self._engine)

    def beliefs(self) -> list[Belief]:
        """The competing causes of each symptom with their shares, the likeliest first, something else last."""
        beliefs: list[Belief] = []
        for symptom, shares in self._state.groups:
            about = self.knowledge.symptoms[symptom]["title"][self.lang] if symptom else None
            beliefs += [
                Belief(about, cause, self._title(cause), share)
                for cause, share in sorted(shares.items(), key=lambda s: (-s[1], s[0]))
            ]
            beliefs.append(Belief(about, None, self._words("ask.something_else"), max(0.0, 1 - sum(shares.values()))))
        return beliefs

    def why(self) -> Why | None:
        """Why the present question is asked, None where none is."""
        asked = self.ask()
        if asked is None:
            return None
        weighed = next((w for w in self._best if w.slug == asked.id), None)
        if weighed is None:
            return Why(asked.text, None, ())
        return Why(asked.text, weighed.gain, self._prospects(weighed))

    def report(self, **extra: Any) -> Report:
        """The report of what is known now; `extra` fills what the session does not know (what was read, notes)."""
        report = Diagnosis(self.session, self.lang).report(**extra)
        if report.verdict != "unknown":
            return report
        return report.model_copy(
            update={"questions": questions(self.session, self._best, (f.cause for f in report.findings), self.lang)}
        )

    # --- saving -----------------------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """The dialogue as JSON values: facts and turns, none of the texts that were pasted."""
        return {
            "schema": SCHEMA,
            "knowledge_version": self.knowledge.version,
            "lang": self.lang,
            "facts": [_fact_to_json(f) for f in self.given],
            "turns": [
                {"question": t.question, "choice": t.choice, "facts": [_fact_to_json(f) for f in t.facts]}
                for t in self.turns
            ],
        }

    @classmethod
    def from_json(
        cls,
        knowledge: Knowledge,
        data: Any,
        lang: Lang | None = None,
        *,
        read: Reader | None = None,
        engine: Engine | None = None,
        more: Sequence[Fact] = (),
    ) -> Dialogue:
        """A saved dialogue, with `more` facts. Raises InputError where `data` is none; unknown types are left out."""
        if not isinstance(data, dict) or data.get("schema") != SCHEMA:
            raise _refused(Message("dialogue.no_schema", schema=SCHEMA))
        try:
            chosen: Lang = lang or data["lang"]
            if chosen not in ("en", "zh"):
                raise TypeError("lang")
            given = [*_facts_from_json(knowledge, data["facts"]), *more]
            dialogue = cls(knowledge, given, chosen, read=read, engine=engine)
            for turn in data["turns"]:
                choice = turn["choice"]
                if not (choice is None or isinstance(choice, str)):
                    raise TypeError("choice")
                facts = _facts_from_json(knowledge, turn["facts"])
                dialogue.turns.append(Turn(str(turn["question"]), choice, tuple(facts)))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise _refused(Message("dialogue.incomplete", error=error)) from error
        return dialogue

    # --- inside -----------------------------------------------------------------------------------------------------

    @cached_property
    def _state(self) -> State:
        return State(self.session)

    @cached_property
    def _best(self) -> list[Weighed]:
        return best(self._state, {t.question for t in self.turns if self._settled(t)})

    def _settled(self, turn: Turn) -> bool:
        """Whether a turn is over and done with: it chose, gave up, or gave the text that the question is after."""
        data = self.knowledge.questions.get(turn.question, {})
        return bool(turn.choice or not turn.facts or data.get("command") or data.get("reads_as"))

    @cached_property
    def _asked(self) -> Asked | None:
        if self._must_open():
            return Asked(OPENING, self._words("ask.opening"))
        if not self._best or self._answered():
            return None
        weighed = self._best[0]
        return Asked(
            weighed.slug,
            weighed.data["text"][self.lang],
            self.session.command(weighed.data),
            tuple(Choice(a["id"], a["text"][self.lang]) for a in weighed.data["answers"] if a["gives"]),
            round(weighed.gain, 4),
        )

    def _answered(self) -> bool:
        """Whether a question was asked and its answer is found: then there is nothing to narrow down."""
        return any(self.knowledge.causes.get(c, {}).get("answers") for c in self._state.found)

    def _must_open(self) -> bool:
        """Whether nobody said yet what goes wrong: no symptom or error, nothing wrong found, and it was not asked."""
        state = self._state
        wrong = any(self.knowledge.causes.get(c, {}).get("severity") != "info" for c in state.found)
        told = wrong or state.symptoms or any(f.type == "error" for f in self.facts)
        return not told and all(t.question != OPENING for t in self.turns)

    def _prospects(self, weighed: Weighed) -> tuple[Prospect, ...]:
        return tuple(
            Prospect(o.answer["text"][self.lang], round(o.weight, 4), self._shifts(o.after)) for o in weighed.outlooks
        )

    def _shifts(self, after: State) -> tuple[Shift, ...]:
        before = {r.cause: r.confidence for r in self._state.ranked}
        new = {r.cause: r.confidence for r in after.ranked}
        moved = [c for c in {**before, **new} if abs(new.get(c, 0.0) - before.get(c, 0.0)) >= TOLD]
        ordered = sorted(moved, key=lambda c: (-abs(new.get(c, 0.0) - before.get(c, 0.0)), c))
        return tuple(
            Shift(c, self._title(c), before.get(c, 0.0), new.get(c, 0.0), self._movers(c, after)) for c in ordered
        )

    def _movers(self, cause: str, after: State) -> tuple[tuple[str, str], ...]:
        """The rules that speak of a cause after the answer and did not before, with their sentences."""
        rules = sorted({rule for c, _, rule in after.evidence - self._state.evidence if c == cause})
        told = []
        for rule in rules:
            rows = after.session.rows("evidence", cause=cause, rule=rule)
            firing = after.session.because(rows[0])
            if firing is not None:
                text = after.session.rule_text(firing.rule, "because", after.session.bindings(firing), self.lang)
                told.append((rule, text))
        return tuple(told)

    def _title(self, cause: str) -> str:
        title: str = self.knowledge.causes.get(cause, {}).get("title", {}).get(self.lang, cause)
        return title

    def _text(self, text: str, key: str | None) -> Sequence[Fact]:
        facts = self._read(text, key)[:MAX_FACTS] if text else ()
        return facts if any(f.type == "error" for f in facts) else [*facts, *self._named_symptoms(text)]

    def _named_symptoms(self, text: str) -> list[Fact]:
        """The messages that a sentence names by the title of their symptom, for want of the line itself."""
        said = text[:_MAX_NAMED].casefold()
        named: dict[str, str] = {}
        for data in self.knowledge.symptoms.values():
            titles = [name for lang in ("en", "zh") for name in _names(data["title"][lang])]
            title = next((t for t in titles if t.casefold() in said), None)
            if data["errors"] and title is not None:
                named[data["errors"][0]] = title
        longest = [t.casefold() for t in named.values()]
        return [
            Fact("error", {"kind": kind, "text": title}, (Provenance("user", "reply"),))
            for kind, title in named.items()
            if not any(title.casefold() in other and title.casefold() != other for other in longest)
        ]

    def _phrases(self, text: str, key: str | None) -> Sequence[Fact]:
        del key
        return read_question(text, self.knowledge.phrases, self.knowledge.names)

    def _add(self, turn: Turn) -> None:
        self.turns.append(turn)
        self._forget()

    def _forget(self) -> None:
        for name in ("session", "_state", "_best", "_asked"):
            self.__dict__.pop(name, None)


# --- words ------------------------------------------------------------------------------------------------------------


def is_word(reply: str, key: str, words: Words) -> bool:
    """Whether a reply is one of the words of a message, which lists them with `|`; those of both languages count."""
    said = _plain(reply)
    return any(said == _plain(word) for lang in ("en", "zh") for word in words.of(key, lang).split("|"))


def _names(title: str) -> list[str]:
    """What a title quotes; without a quote, the title where it is long enough to be no chance."""
    return _QUOTE.findall(title) or ([title] if len(title) >= _MIN_TITLE else [])


def _plain(text: str) -> str:
    return " ".join(text.casefold().replace("’", "'").strip().strip(".。!！").split())


def _chosen(reply: str, data: Mapping[str, Any], asked: Asked) -> Mapping[str, Any] | None:
    """The answer that a reply chooses: by its number, id, text or one of its words; alone or before a comma."""
    answers = [a for a in data.get("answers", ()) if a["gives"]]
    if len(answers) != len(asked.choices):
        return None
    head = _SPLIT.split(reply, maxsplit=1)[0]
    for said in dict.fromkeys((_plain(reply), _plain(head))):
        for answer in answers:
            names = (answer["id"], answer["id"].replace("_", " "), *answer["text"].values(), *answer["words"])
            if said in map(_plain, names):
                return dict(answer)
        if said.isascii() and said.isdigit() and len(said) < 4 and 0 < int(said) <= len(answers):
            return dict(answers[int(said) - 1])
    return None


def _from(question: str, facts: Sequence[Fact]) -> list[Fact]:
    """The facts of an answer, with the question as the place where they were said."""
    return [Fact(f.type, f.fields, (Provenance("user", f"ask {question}"),)) for f in facts]


def _refused(reason: Message) -> InputError:
    return InputError("input.no_dialogue", reason=reason)


# --- facts as JSON ----------------------------------------------------------------------------------------------------


def _fact_to_json(fact: Fact) -> dict[str, Any]:
    return {
        "type": fact.type,
        "fields": dict(fact.fields),
        "from": [[p.kind, p.source, p.line, p.reader, list(p.fields)] for p in fact.provenance],
    }


def _facts_from_json(knowledge: Knowledge, data: Any) -> list[Fact]:
    if not isinstance(data, list) or len(data) > MAX_FACTS:
        raise TypeError("facts")
    facts = []
    for entry in data:
        spec = knowledge.vocabulary.types.get(entry["type"])
        if spec is None or spec.kind != "observed":
            continue
        fields: dict[str, Scalar] = {
            name: value
            for name, value in entry["fields"].items()
            if knowledge.vocabulary.check(spec.name, name, value) is None
        }
        places = tuple(Provenance(k, str(s), n, str(r), tuple(map(str, f))) for k, s, n, r, f in entry["from"])
        facts.append(Fact(spec.name, fields, places))
    return facts
