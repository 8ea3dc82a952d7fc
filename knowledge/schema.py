"""The shape of rule, fix, cause and question files, as pydantic models; the published JSON Schema comes from here.

May live here: structure and its documentation. Must not: meaning (names, joins, guards are checked in `checker.py`).
Not imported when knowledge comes from the compiled cache.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints

Slug = Annotated[str, StringConstraints(pattern=r"^[a-z0-9]+(?:[-_][a-z0-9]+)*$", max_length=80)]
Day = Annotated[str, StringConstraints(pattern=r"^20\d\d-\d\d-\d\d$")]
Word = Literal["decisive", "strong", "weak", "against", "excludes"]
Scalar = str | int | bool
Patterns = dict[str, Any]


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
    retrieved: Day


class Conclusion(_Model):
    """Exactly one of: a derived fact, or evidence about a cause."""

    fact: dict[str, dict[str, Scalar]] | None = None
    cause: Slug | None = None
    evidence: Word | None = None
    about: str | None = Field(default=None, description="what the finding is about, e.g. $g.name")


class Example(_Model):
    """Facts that go in and what must come out; run as a test with only the catalogs around them."""

    facts: list[dict[str, dict[str, Scalar]]]
    cause: Slug | None = None
    derives: dict[str, dict[str, Scalar]] | None = None
    needs: str | None = Field(default=None, description="for `unknown`: the fact type whose absence leaves the rule unchecked")
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
    assume: bool = Field(default=False, description="a default that holds until something is known; its conclusions are shown as assumptions")
    when: Patterns = Field(description="alias: {type: {field: test}}; alias: {not: {type: …}}; any_of: [ {alias: …}, … ]")
    conclude: list[Conclusion] = Field(min_length=1)
    because: Text
    asks: list[Slug] = Field(default_factory=list)
    false_alarms: list[str] = Field(default_factory=list)
    sources: list[Source] = Field(min_length=1)
    guidance: list[str] = Field(default_factory=list)
    examples: Examples


class Step(_Model):
    """One command: an argument list, quoted for the platform when shown; an item `{if: alias, text: …}` is optional."""

    platform: Literal["any", "linux", "windows", "macos", "wsl"] = "any"
    tool: str | None = None
    run: list[str | dict[str, Any]] = Field(default_factory=list)
    say: Text | None = None
    needs_root: bool = False
    reversible: bool = True


class Effect(_Model):
    """What the world looks like after the fix: facts replaced, removed or added before the engine runs again."""

    remove: dict[str, dict[str, Scalar]] | None = None
    add: dict[str, dict[str, Scalar]] | None = None


class FixFile(_Model):
    """One fix, shared by the causes that it cures."""

    id: Slug
    kind: Literal["cure", "mitigation", "prevention", "check", "advice"]
    action: Slug
    causes: list[Slug] = Field(min_length=1)
    order: int = Field(default=50, description="smaller comes first")
    title: Text
    when: Patterns = Field(default_factory=dict)
    optional: Patterns = Field(default_factory=dict, description="patterns that may match; their aliases are used in `if` items")
    index_url: str | None = None
    packages: dict[str, str | dict[str, Any]] = Field(default_factory=dict)
    driver_at_least: str | None = None
    driver_below: str | None = None
    python: str | None = None
    env: dict[str, str] = Field(default_factory=dict)
    env_unset: list[str] = Field(default_factory=list)
    steps: list[Step] = Field(default_factory=list)
    effects: list[Effect] = Field(default_factory=list)
    not_simulable: Text | None = Field(default=None, description="for a cure whose effect lies outside the facts: why it cannot be simulated")
    risks: Text | None = None
    undo: Text | None = None
    verify: Text | None = None
    verify_run: list[str] = Field(default_factory=list)
    sources: list[Source] = Field(min_length=1)


class CauseEntry(_Model):
    """A root cause: its title, the severity of its finding and the facts that would settle it."""

    title: Text
    severity: Literal["error", "warning", "info"]
    message: Text | None = None
    asks: list[Slug] = Field(default_factory=list)


class SymptomEntry(_Model):
    """A symptom, what raises it and the causes that compete to explain it (prior log-odds against "something else")."""

    title: Text
    errors: list[Slug] = Field(default_factory=list)
    statements: list[Slug] = Field(default_factory=list)
    causes: dict[Slug, float | int | str]
    asks: list[Slug] = Field(default_factory=list)


class QuestionEntry(_Model):
    """A question, the command that answers it better, and the facts that it would settle."""

    topic: Text = Field(description="the same as a noun, for the list of what was not checked")
    text: Text
    command: str | None = None
    provides: list[str] = Field(default_factory=list)
    moot_if: list[str] = Field(default_factory=list, description="fact types that make the question pointless")


class PhraseEntry(_Model):
    """A way people put something; RE2 syntax, matched case-insensitively in questions and loose facts."""

    kind: Slug
    patterns: list[str] = Field(min_length=1)
    unless: list[str] = Field(default_factory=list, description="patterns that take the statement back in the same sentence")
    samples: list[str] = Field(min_length=1)
    near_misses: list[str] = Field(default_factory=list, description="sentences that must not give the kind")
