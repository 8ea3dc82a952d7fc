"""The output contract: the models of `gpurules.report/1` and `gpurules.recommend/1`.

May live here: frozen pydantic models, their JSON form, the exit status. Must not: wording, layout, GPUs, rules.

The contract changes only by adding. Readers of the JSON ignore what they do not know, so models do too. An optional
value that does not apply is None and is left out of the JSON; the top-level lists are always there, empty or not.
Texts are in the language the report was made in (`lang`); ids, slugs and commands are language-free.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from ..messages import Lang as Lang  # noqa: PLC0414, the form that type checkers read as exported

Severity = Literal["error", "warning", "info"]
Verdict = Literal["ok", "problems", "unknown"]
FixKind = Literal["cure", "mitigation", "prevention", "check", "advice"]
Verified = Literal["simulated", "not_simulable", "not_applicable"]
FailOn = Literal["error", "warning", "never"]
Scalar = str | int | bool | float

SCHEMA = "gpurules.report/1"
RECOMMEND_SCHEMA = "gpurules.recommend/1"

# JSON leaves these as they are, but terminals act on them (C1 controls) or reorder text by them (bidi controls).
_UNSAFE_IN_JSON = re.compile("[\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]")


class _Model(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore", populate_by_name=True)

    def to_dict(self) -> dict[str, Any]:
        """The JSON object as plain Python values, without absent optional fields."""
        return self.model_dump(mode="json", by_alias=True, exclude_none=True)

    def to_json(self, *, ascii_only: bool = False) -> str:
        """The JSON text, indented by one space; no character in it can control a terminal."""
        text = json.dumps(self.to_dict(), ensure_ascii=ascii_only, indent=1, allow_nan=False)
        return _UNSAFE_IN_JSON.sub(lambda m: f"\\u{ord(m.group()):04x}", text)


class Reason(_Model):
    """One line of an argument: a sentence with its value, and where the value was read (`issue.txt:41`)."""

    text: str
    where: str | None = None
    url: str | None = Field(default=None, description="public source, where the line rests on general knowledge")


class Step(_Model):
    """One thing to do, in order: a command to copy, or (where there is none) a sentence in `text`.

    platform: any | linux | windows | macos | wsl | container | ... ; tool: pip | uv | conda | ..., where steps of one
    fix do the same with different tools.
    """

    platform: str = "any"
    command: str | None = None
    text: str | None = None
    tool: str | None = None
    argv: tuple[str, ...] | None = Field(default=None, description="the command as an argument list, unquoted")
    needs_root: bool = False
    reversible: bool = True


class Effect(_Model):
    """What a fix changes, as the engine simulates it: facts of `type` matching `where` get `fields` (set), are added
    with `fields` (add), or disappear (remove)."""

    op: Literal["set", "add", "remove"]
    type: str
    where: dict[str, Scalar] | None = None
    fields: dict[str, Scalar] | None = None


class Fix(_Model):
    """Something to do about a finding. Only recommended fixes are in a report, best first.

    packages: {name: specifier}, torch always pinned with `==`; numbers: {name_unit: value};
    driver_at_least, driver_below, python: plain dotted versions; env: {NAME: value} to set, env_unset: names to unset.
    verified: simulated (the engine applied the effects and the finding went away without a new error),
    not_simulable (verified_note says why), not_applicable (not a cure).
    """

    id: str
    finding: str = Field(description="id of the finding")
    kind: FixKind
    action: str = Field(description="slug of the taxonomy's actions")
    title: str
    steps: tuple[Step, ...] = ()
    index_url: str | None = None
    mirror_url: str | None = None
    packages: dict[str, str] | None = None
    driver_at_least: str | None = None
    driver_below: str | None = None
    python: str | None = None
    env: dict[str, str] | None = None
    env_unset: tuple[str, ...] | None = None
    numbers: dict[str, int | float] | None = None
    effects: tuple[Effect, ...] = ()
    verified: Verified = "not_applicable"
    verified_note: str | None = None
    verify: str | None = Field(default=None, description="command or observation that confirms the fix")
    verify_argv: tuple[str, ...] | None = Field(default=None, description="that command as an argument list, unquoted")
    notes: tuple[str, ...] | None = None
    risks: tuple[str, ...] | None = None
    undo: str | None = None
    sources: tuple[str, ...] | None = Field(default=None, description="urls, see the report's sources")


class Finding(_Model):
    """A conclusion about the machine or the question. confidence: 0 to 1."""

    id: str
    cause: str = Field(description="slug of the taxonomy's root causes")
    severity: Severity
    confidence: float = Field(default=1.0, ge=0.0, le=1.0)
    title: str
    message: str
    subject: str = ""
    rule: str = ""
    fixes: tuple[str, ...] = Field(default=(), description="ids, best first")
    evidence: tuple[str, ...] = Field(default=(), description="ids of facts")
    because: tuple[Reason, ...] | None = None
    ruled_out: tuple[Reason, ...] | None = Field(default=None, description="commonly suspected, and not the cause here")
    false_alarms: tuple[str, ...] | None = None
    sources: tuple[str, ...] | None = Field(default=None, description="urls, see the report's sources")
    answers: bool | None = Field(default=None, description="true where it is the answer to a question")


class Plan(_Model):
    """The answer to a planning question. Units are in the names of numbers and ranges (`_gib`, `_w`)."""

    verdict: Literal["yes", "no", "conditional"]
    choices: tuple[str, ...] = ()
    numbers: dict[str, int | float] = Field(default_factory=dict)
    ranges: dict[str, tuple[float, float]] = Field(default_factory=dict, description="{name: [low, high]}")
    claims: tuple[str, ...] = ()
    reasons: tuple[Reason, ...] = ()


class PlanStep(_Model):
    """One fix in its place in a plan. instance: the fix as it reads once the steps before it are done.

    finding: the id of the finding that it is for, empty where an earlier step brings the cause up. clears: the ids of
    the findings that are gone after this step.
    """

    fix: str
    finding: str = ""
    cause: str
    because: str = Field(default="", description="what the step is for, in words")
    stage: str
    clears: tuple[str, ...] = ()
    verified: Verified
    instance: Fix


class Left(_Model):
    """A finding that no plan clears, and why."""

    finding: str
    reason: str


class FixPlan(_Model):
    """All findings cleared together: the fixes in the order in which they have to be done, simulated as a whole.

    verified: simulated (no error is left but those in `left`, and none is new) or not_simulable (a step is).
    """

    steps: tuple[PlanStep, ...] = ()
    verified: Verified = "simulated"
    left: tuple[Left, ...] = ()


class NotChecked(_Model):
    """Something nobody looked at. id: a coverage domain or rule; obtain: a command or sentence that would give it."""

    id: str
    title: str
    reason: str | None = None
    obtain: str | None = None
    rules: tuple[str, ...] | None = Field(default=None, description="rules that could not be decided without it")


class Question(_Model):
    """What to ask the user. command and look_for: the observation that answers it as well."""

    id: str
    text: str
    answers: tuple[str, ...] | None = None
    command: str | None = None
    look_for: str | None = None
    separates: tuple[str, ...] | None = Field(default=None, description="causes that the answer tells apart")
    why: str | None = Field(default=None, description="why it is asked, as a sentence")


class Advice(_Model):
    """A recommendation that belongs to no finding."""

    id: str
    text: str
    where: str | None = None
    sources: tuple[str, ...] | None = None
    sample: str | None = Field(default=None, description="a program of this repository that shows it")


class ProvenanceView(_Model):
    """Where a fact was read; `fields` empty means all of them."""

    kind: str
    source: str
    line: int | None = None
    reader: str | None = None
    fields: tuple[str, ...] | None = None


class FactView(_Model):
    """A fact with provenance; scope is host, container or environment where it is known."""

    id: str
    type: str
    fields: dict[str, Scalar]
    provenance: tuple[ProvenanceView, ...] = ()
    scope: str | None = None


class Derivation(_Model):
    """One justification: `rule` concluded `fact` (an id of a fact, finding or fix) from `premises` (ids)."""

    fact: str
    rule: str
    premises: tuple[str, ...] = ()
    text: str | None = Field(default=None, description="the rule's sentence with the values in it")
    sources: tuple[str, ...] | None = None


class Source(_Model):
    """A public source of the knowledge. retrieved: ISO date; opened: false where the page was named and not read."""

    url: str
    title: str
    retrieved: str | None = None
    kind: str | None = Field(
        default=None, description="vendor | project | source_code | maintainer | standard | paper | report | data"
    )
    opened: bool | None = None


class Recognised(_Model):
    """What one input gave. layouts: the kinds of output recognised in it; facts: how many."""

    source: str
    layouts: tuple[str, ...] = ()
    facts: int = 0
    not_understood: tuple[str, ...] | None = Field(default=None, description="loose keys or sentences that were left")
    truncated: bool | None = None


class Checked(_Model):
    """How far the diagnosis went: rules that could be decided, and the domains they cover."""

    rules: int
    domains: tuple[str, ...] = ()


class Passed(_Model):
    """A rule that was decided and did not apply, in words."""

    rule: str
    text: str


class Report(_Model):
    """A diagnosis, `gpurules.report/1`.

    verdict: ok (nothing of severity error or warning), problems, unknown. summary: one sentence that states the case;
    the thing to do is the title of the first fix. platform: where the commands will run, as far as it is known.
    """

    schema_id: Literal["gpurules.report/1"] = Field(default="gpurules.report/1", alias="schema")
    version: str
    knowledge_version: str
    lang: Lang = "en"
    verdict: Verdict
    summary: str
    platform: str | None = Field(default=None, description="linux | windows | macos | wsl")
    findings: tuple[Finding, ...] = ()
    fixes: tuple[Fix, ...] = ()
    plan: Plan | None = None
    fix_plan: FixPlan | None = Field(default=None, description="how to clear all error findings together")
    not_checked: tuple[NotChecked, ...] = ()
    questions: tuple[Question, ...] = ()
    recommendations: tuple[Advice, ...] = ()
    facts: tuple[FactView, ...] = ()
    derivations: tuple[Derivation, ...] = ()
    sources: tuple[Source, ...] = ()
    recognised: tuple[Recognised, ...] = ()
    assumptions: tuple[str, ...] = ()
    checked: Checked | None = None
    passed: tuple[Passed, ...] | None = None
    notes: tuple[str, ...] | None = Field(default=None, description="about the run: engines compared, old knowledge")

    def exit_status(self, fail_on: FailOn = "error") -> int:
        """1 when a finding is at or above `fail_on`, else 0."""
        counted = {"error": {"error"}, "warning": {"error", "warning"}, "never": set[str]()}[fail_on]
        return int(any(f.severity in counted for f in self.findings))


class Alternative(_Model):
    """Another build that works, or that would work after `needs`."""

    torch: str
    index: str
    index_url: str
    packages: dict[str, str] = Field(default_factory=dict)
    commands: dict[str, str] = Field(default_factory=dict)
    reason: str
    needs: str | None = None


class Change(_Model):
    """What would have to change before any build fits: what (python | driver | card | os | ...), and to what."""

    what: str
    text: str
    to: str | None = None
    command: str | None = None


class NoBuild(_Model):
    """Why no published build fits, and what would have to change, best first."""

    reason: str
    changes: tuple[Change, ...] = ()


class RecommendResult(_Model):
    """Which torch to install, `gpurules.recommend/1`: either a build (index_url, index, torch, packages, commands) or
    `none`. index: the variant (`cu129`); torch: the public version; packages: {name: specifier}; commands: {tool:
    command} with pip and uv; reasons: why this build; struck: builds that were considered first and why they fall out.
    """

    schema_id: Literal["gpurules.recommend/1"] = Field(default="gpurules.recommend/1", alias="schema")
    version: str
    knowledge_version: str
    lang: Lang = "en"
    summary: str
    platform: str | None = None
    index_url: str | None = None
    index: str | None = None
    torch: str | None = None
    packages: dict[str, str] | None = None
    commands: dict[str, str] | None = None
    mirror_url: str | None = None
    confirmed: bool | None = Field(default=None, description="false where the build's existence or code is inferred")
    none: NoBuild | None = None
    reasons: tuple[Reason, ...] = ()
    alternatives: tuple[Alternative, ...] = ()
    struck: tuple[Reason, ...] = ()
    assumptions: tuple[str, ...] = ()
    notes: tuple[str, ...] | None = Field(default=None, description="about the knowledge: old, own, or overtaken")
    verify: str | None = None
    facts: tuple[FactView, ...] = ()
    sources: tuple[Source, ...] = ()

    def exit_status(self) -> int:
        """1 when no build can be recommended, else 0."""
        return int(self.none is not None)


@dataclass(frozen=True, slots=True)
class ProofNode:
    """A step of an explanation: what holds, where that was read, the public sources, and what it rests on.

    kind: of a proof `rule`, `observation` or `catalog`; of a refusal what stands in the way: `false` (a condition is
    not met), `blocked` (something holds that must not), `unknown` (nobody looked), `absent` (looked at, not there),
    `struck`, `unpublished`, `outranked`, `excluded`, `against`, `weaker`, `no_effect`, `no_cure`, `raises`.
    rule: the rule's id. fact: the fact in question, {type, fields}. needs: what would have to hold, {type, tests}.
    obtain: a command or sentence that tells what is unknown.
    """

    text: str
    where: str = ""
    sources: tuple[str, ...] = ()
    children: tuple[ProofNode, ...] = ()
    kind: str = ""
    rule: str = ""
    fact: Mapping[str, Any] | None = None
    needs: Mapping[str, Any] | None = None
    obtain: str = ""

    def to_dict(self) -> dict[str, Any]:
        """The node as JSON values, without what is empty."""
        whole = {
            "text": self.text,
            "kind": self.kind,
            "rule": self.rule,
            "where": self.where,
            "fact": dict(self.fact or {}),
            "needs": dict(self.needs or {}),
            "obtain": self.obtain,
            "sources": list(self.sources),
            "children": [child.to_dict() for child in self.children],
        }
        return {name: value for name, value in whole.items() if value or name == "text"}


class RuleRow(_Model):
    """A rule in a list: title in the language asked for."""

    id: str
    area: str
    severity: str
    status: str
    title: str


class RuleDetail(RuleRow):
    """A rule as a whole: `text` is its file."""

    path: str
    text: str


class RuleTest(_Model):
    """What became of one example of a rule; `message` says what was expected and what came."""

    rule: str
    example: str
    ok: bool
    message: str = ""
