"""The shape of rule, fix, cause and question files, as pydantic models; the published JSON Schema comes from here.

May live here: structure and its documentation. Must not: meaning (names, joins, guards are checked in `checker.py`).
Not imported when knowledge comes from the compiled cache.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, model_validator

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(?:[-_][a-z0-9]+)*$", max_length=80)]
Day = Annotated[str, StringConstraints(pattern=r"^20\d\d-\d\d-\d\d$")]
Word = Literal["decisive", "strong", "weak", "against", "excludes"]
Scalar = str | int | bool
# `publishers.PRIMARY` names those that a finding may rest on.
Kind = Literal["vendor", "project", "source_code", "maintainer", "standard", "paper", "report", "data"]
Patterns = dict[str, Any]
# {type: {field: value}} of exactly one type.
OneFact = Annotated[dict[str, dict[str, Scalar]], Field(min_length=1, max_length=1)]


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


class Text(_Model):
    """One text in both languages; `{alias.field}` inserts a value of a matched fact."""

    en: str = Field(min_length=1)
    zh: str = Field(min_length=1)


class Source(_Model):
    """Where the knowledge can be read: a primary page (vendor, project, source code, maintainer)."""

    url: Annotated[str, StringConstraints(pattern=r"^https://\S+$")]
    title: str
    retrieved: Day = Field(description="the day on which the page was opened, or named where `opened` is false")
    opened: bool = Field(default=True, description="false where the page is named as the proper one and was not read")
    kind: Kind | None = Field(default=None, description="by default what publishers.yaml says of the address")


class Conclusion(_Model):
    """Exactly one of: a derived fact, or evidence about a cause."""

    fact: OneFact | None = None
    cause: Slug | None = None
    evidence: Word | None = None
    about: str | None = Field(default=None, description="what the finding is about, e.g. $g.name")


class Example(_Model):
    """Facts that go in and what must come out; run as a test with only the catalogs around them."""

    facts: list[OneFact]
    cause: Slug | None = None
    derives: dict[str, dict[str, Scalar]] | None = None
    needs: str | None = Field(
        default=None, description="for `unknown`: the fact type whose absence leaves the rule unchecked"
    )
    note: str | None = None


class Examples(_Model):
    """At least one input that fires the rule and one near miss; `unknown` shows what an unseen fact does."""

    fires: list[Example] = Field(min_length=1)
    silent: list[Example] = Field(min_length=1)
    unknown: list[Example] = Field(default_factory=list)


class RuleFile(_Model):
    """One rule: what must hold, what follows, the sentence that explains it, its sources and its examples."""

    id: Slug
    title: Text
    status: Literal["preview", "stable", "deprecated"] = "stable"
    since: str
    area: Slug
    severity: Literal["error", "warning", "info"] | None = None
    assume: bool = Field(
        default=False,
        description="a default that holds until something is known; its conclusions are shown as assumptions",
    )
    when: Patterns = Field(
        description="alias: {type: {field: test}}; alias: {not: {type: …}}; any_of: [ {alias: …}, … ]"
    )
    conclude: list[Conclusion] = Field(min_length=1)
    because: Text
    asks: list[Slug] = Field(default_factory=list)
    false_alarms: list[Text] = Field(default_factory=list)
    sources: list[Source] = Field(min_length=1)
    guidance: list[str] = Field(default_factory=list)
    examples: Examples


class OptionalItem(_Model):
    """An argument or version that stands only where a pattern of `optional` matches."""

    model_config = ConfigDict(populate_by_name=False)

    option: str = Field(alias="if", description="an alias of `optional`")
    text: str


class Step(_Model):
    """One command: an argument list, quoted for the platform when shown."""

    platform: Literal["any", "linux", "windows", "macos", "wsl"] = "any"
    tool: str | None = None
    run: list[str | OptionalItem] = Field(default_factory=list)
    say: Text | None = None
    needs_root: bool = False
    reversible: bool = True


class Effect(_Model):
    """What the world looks like after the fix: facts replaced, removed or added before the engine runs again."""

    model_config = ConfigDict(json_schema_extra={"oneOf": [{"required": ["remove"]}, {"required": ["add"]}]})

    remove: OneFact | None = Field(default=None, description="facts of the type with these constant values")
    add: OneFact | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> Effect:
        if (self.remove is None) == (self.add is None):
            raise ValueError("effect_of_one_kind")
        return self


class FixFile(_Model):
    """One fix, shared by the causes that it cures."""

    id: Slug
    kind: Literal["cure", "mitigation", "prevention", "check", "advice"]
    action: Slug
    causes: list[Slug] = Field(min_length=1)
    order: int = Field(default=50, description="smaller comes first")
    title: Text
    when: Patterns = Field(default_factory=dict)
    optional: Patterns = Field(
        default_factory=dict, description="patterns that may match; their aliases are used in `if` items"
    )
    index_url: str | None = None
    packages: dict[str, str | OptionalItem] = Field(default_factory=dict)
    driver_at_least: str | None = None
    driver_below: str | None = None
    python: str | None = None
    env: dict[str, str] = Field(default_factory=dict)
    env_unset: list[str] = Field(default_factory=list)
    numbers: dict[str, list[str | int]] = Field(
        default_factory=dict, description="NAME_UNIT: [FUNCTION, OPERAND ...]; an operand is $alias.field or a number"
    )
    steps: list[Step] = Field(default_factory=list)
    every_match: bool = Field(
        default=False, description="the steps and packages of all matches stand together, not those of the best alone"
    )
    effects: list[Effect] = Field(default_factory=list)
    not_simulable: Text | None = Field(
        default=None, description="for a cure whose effect lies outside the facts: why it cannot be simulated"
    )
    risks: Text | None = None
    undo: Text | None = None
    verify: Text | None = None
    verify_run: list[str] = Field(default_factory=list)
    sources: list[Source] = Field(min_length=1)


class CauseEntry(_Model):
    """A root cause: its title, the severity of its finding and the facts that would settle it."""

    title: Text
    severity: Literal["error", "warning", "info"]
    status: Literal["preview", "stable"] = Field(
        default="stable", description="preview: a candidate to ask about, which no rule concludes or no fix cures yet"
    )
    message: Text | None = None
    asks: list[Slug] = Field(default_factory=list)
    answers: bool = Field(
        default=False, description="the finding is the answer to a question, not a state of a machine"
    )


class SymptomEntry(_Model):
    """A symptom, what raises it and the causes that compete to explain it (prior log-odds against "something else")."""

    title: Text
    errors: list[Slug] = Field(default_factory=list)
    statements: list[Slug] = Field(default_factory=list)
    nvml: list[int] = Field(default_factory=list, description="codes that NVML does not start with")
    causes: dict[Slug, float]
    asks: list[Slug] = Field(default_factory=list)
    undecided: Text | None = Field(default=None, description="what a report says where nothing explains it")
    general: bool = Field(default=False, description="another symptom that is unexplained too is named before it")


class AnswerEntry(_Model):
    """What a question may be answered with. One without `gives` cannot be chosen: it comes by pasting or in words."""

    id: Slug
    text: Text
    words: list[str] = Field(default_factory=list, description="accepted beside the id, the text and the number")
    gives: list[OneFact] = Field(default_factory=list, description="the facts recorded when it is chosen")
    instance: list[OneFact] = Field(
        default_factory=list, description="facts that it might bring; they only weigh the question"
    )


class QuestionEntry(_Model):
    """A question, the command that answers it better, and the facts that it would settle."""

    topic: Text = Field(description="the same as a noun, for the list of what was not checked")
    text: Text
    command: str | None = None
    commands: dict[Literal["windows", "wsl", "macos"], str] = Field(
        default_factory=dict, description="instead of the command, on systems that have another"
    )
    provides: list[str] = Field(default_factory=list)
    moot_if: list[str] = Field(default_factory=list, description="fact types that make the question pointless")
    only_if: list[OneFact] = Field(
        default_factory=list, description="facts of which one must be stated before the question makes sense"
    )
    reads_as: str | None = Field(
        default=None, description="the key of aliases.yaml that a reply in words is a value of"
    )
    answers: list[AnswerEntry] = Field(default_factory=list)


class SentenceEntry(_Model):
    """How facts of one type are said: `{field}` inserts a value, `[...]` is dropped where a field in it is unknown."""

    noun: Text = Field(description="one such thing, with its article where the language has them")
    say: Text | None = None
    many: bool = Field(default=False, description="a derived type with many facts: another one is no obstacle")
    fields: dict[str, Text] = Field(
        default_factory=dict, description="names of fields, where the field's own is no word"
    )


class ValueSource(_Model):
    """Where the values of a change come from that `how-to` tries: the field of the rows of a type."""

    type: str
    field: str
    where: dict[str, Scalar] = Field(default_factory=dict)
    value: str | None = Field(default=None, description="how the value is written, where it is not the field alone")


class ChangeEntry(_Model):
    """A change that `what-if` can be asked for: `NAME=VALUE`, or `NAME:PART[=VALUE]` where the effects use `{part}`."""

    title: Text
    field: str | None = Field(default=None, description="TYPE.FIELD that the value is checked against")
    effects: list[Effect] = Field(default_factory=list)
    choices: dict[str, list[Effect]] = Field(default_factory=dict, description="the effects by value, for closed sets")
    messages: Literal["touched", "all"] = Field(
        default="touched",
        description="which messages no longer hold: those that a fix of the same facts is for, or all",
    )
    fixes: bool = Field(default=False, description="the part is a fix that the rules offer; its effects are applied")
    how_to: bool = Field(default=False, description="whether `how-to` may propose it")
    cost: int = Field(default=50, description="smaller is proposed first; costs of a set add up")
    values: list[ValueSource] = Field(default_factory=list)
    risk: Text | None = None


class PhraseEntry(_Model):
    """A way people put something; RE2 syntax, matched case-insensitively in questions and loose facts."""

    kind: Slug
    patterns: list[str] = Field(min_length=1)
    unless: list[str] = Field(
        default_factory=list, description="patterns that take the statement back in the same sentence"
    )
    samples: list[str] = Field(min_length=1)
    near_misses: list[str] = Field(default_factory=list, description="sentences that must not give the kind")
    fits: Literal["wanted", "here"] | None = Field(
        default=None, description="then the question names a machine, and versions that are wished for or are there"
    )
    machine: str | None = Field(default=None, description="key of aliases.yaml that the detail is a value of, then")
    goal: Slug | None = Field(
        default=None, description="the goal that the detail is a value of, where it is wished for"
    )


class PublisherEntry(_Model):
    """The kind of source that pages are whose addresses begin so; the longest beginning counts."""

    kind: Kind
    at: list[Annotated[str, StringConstraints(pattern=r"^https://\S+$")]] = Field(min_length=1)


class FreshnessEntry(_Model):
    """What tells that an input is newer than the knowledge: TYPE.FIELD of a fact against the newest of a catalog's."""

    what: Text
    fact: str
    newest: str
    catalog: str
    part: Literal["release", "major"] = Field(default="release", description="how much of the version counts")


class StageEntry(_Model):
    """A stage of a plan: where it stands among the others, and the actions that belong to it."""

    order: int
    default: bool = Field(default=False, description="takes the actions that no stage names")
    actions: list[Slug] = Field(default_factory=list)
