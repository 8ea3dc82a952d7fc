"""A new rule from one condition: the file with its three examples, which then only lacks its sentences.

May live here: the shape of a new rule's file and the values of its examples. Must not: any rule, cause or text about
GPUs.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from ..errors import reason
from ..facts import Scalar
from ..messages import Message
from .loader import Knowledge
from .problems import KnowledgeError, Problems, did_you_mean
from .vocabulary import FieldSpec

_OTHER_TEXT = "something else"
_ID = re.compile(r"[a-z0-9]+(?:[-_][a-z0-9]+)*\Z")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a new rule is to be: its id and area, the condition `TYPE.FIELD=VALUE`, the cause and how strongly."""

    id: str
    area: str
    condition: str
    cause: str
    evidence: str
    source: str


def rule_text(wanted: Wanted, knowledge: Knowledge, today: date) -> str:
    """The file of a new rule. Raises KnowledgeError where the names are not those of the knowledge."""
    type_name, field, value = _condition(wanted, knowledge)
    spec = knowledge.vocabulary.types[type_name].fields[field]
    other = _other(value, spec)
    return _TEMPLATE.format(
        id=wanted.id,
        area=wanted.area,
        severity=knowledge.causes[wanted.cause]["severity"],
        type=type_name,
        field=field,
        value=_yaml(value),
        other=_yaml(other),
        cause=wanted.cause,
        evidence=wanted.evidence,
        source=_yaml(wanted.source),
        day=today.isoformat(),
    )


def write_rule(wanted: Wanted, knowledge: Knowledge, folder: Path, today: date) -> Path:
    """Write the file under a knowledge folder; one that is there is never replaced."""
    text = rule_text(wanted, knowledge, today)
    path = folder / "rules" / wanted.area / f"{wanted.id}.yaml"
    problems = Problems()
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        problems.add(path, 0, "", Message("fault.there_already"))
    except OSError as error:
        problems.add(path, 0, "", Message("fault.unwritable", reason=reason(error)))
    problems.raise_if_any()
    return path


def _condition(wanted: Wanted, knowledge: Knowledge) -> tuple[str, str, Scalar]:
    problems = Problems()
    place, equals, text = wanted.condition.partition("=")
    type_name, _, field = place.strip().partition(".")
    types = {n: t for n, t in knowledge.vocabulary.types.items() if t.kind == "observed"}
    if not equals or not field:
        problems.add("--when", 0, "", Message("fault.condition", text=wanted.condition))
    elif type_name not in types:
        problems.add(
            "--when", 0, "", Message("fault.no_observed_type", name=type_name, hint=did_you_mean(type_name, types))
        )
    elif field not in types[type_name].fields:
        known = types[type_name].fields
        problems.add(
            "--when", 0, "", Message("fault.no_field", type=type_name, name=field, hint=did_you_mean(field, known))
        )
    else:
        fault = knowledge.vocabulary.check(type_name, field, _typed(text, types[type_name].fields[field]))
        if fault:
            problems.add("--when", 0, "", fault)
    if wanted.cause not in knowledge.causes:
        problems.add(
            "--cause",
            0,
            "",
            Message("fault.no_cause", name=wanted.cause, hint=did_you_mean(wanted.cause, knowledge.causes)),
        )
    if wanted.id in knowledge.rules:
        problems.add("ID", 0, "", Message("fault.rule_there", name=wanted.id))
    areas = {r["area"] for r in knowledge.rules.values()}
    for option, value in (("ID", wanted.id), ("--area", wanted.area)):
        if not _is_slug(value):
            problems.add(option, 0, "", Message("fault.words", value=value))
    if wanted.area not in areas and not problems.found:
        problems.add("--area", 0, "", Message("fault.no_area", name=wanted.area, hint=did_you_mean(wanted.area, areas)))
    if problems.found:
        raise KnowledgeError(problems.found)
    return type_name, field, _typed(text, types[type_name].fields[field])


def _is_slug(text: str) -> bool:
    return _ID.match(text) is not None


def _typed(text: str, spec: FieldSpec) -> Scalar:
    text = text.strip()
    if spec.type == "int" and text.lstrip("-").isdigit():
        return int(text)
    return text == "true" if spec.type == "bool" and text in ("true", "false") else text


def _other(value: Scalar, spec: FieldSpec) -> Scalar:
    """A value of the field that the condition does not name."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if spec.type == "enum":
        return next((v for v in spec.values if v != value), value)
    return "0.1" if spec.type == "version" else "1.0" if spec.type == "sm" else _OTHER_TEXT


def _yaml(value: Scalar) -> str:
    return json.dumps(value, ensure_ascii=False)


_TEMPLATE = """\
# Say in both languages what holds; {{f.{field}}} inserts the value. Then: gpurules rules check DIR
id: {id}
title: {{en: "TODO: what is wrong, with {{f.{field}}}", zh: "待写：问题是什么，含 {{f.{field}}}"}}
status: preview
since: 0.1.0
area: {area}
severity: {severity}
when:
  f: {{{type}: {{{field}: {value}}}}}
conclude:
  - {{cause: {cause}, evidence: {evidence}}}
because: {{en: "TODO: why, in one sentence with {{f.{field}}}", zh: "待写：原因，一句话，含 {{f.{field}}}"}}
sources:
  - {{url: {source}, title: "TODO: title of the page", retrieved: {day}}}
examples:
  fires: [{{facts: [{{{type}: {{{field}: {value}}}}}], cause: {cause}}}]
  silent: [{{facts: [{{{type}: {{{field}: {other}}}}}]}}]
  unknown: [{{facts: [{{statement: {{kind: question_asked}}}}], needs: {type}}}]
"""
