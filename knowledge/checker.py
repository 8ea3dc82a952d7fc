"""The checks of the knowledge as a whole: every fault at once, with file, line and field.

May live here: what files say of one another (causes, kinds, questions, types), what a rule or fix must have, and the
order of the checks. Must not: checks that loading needs anyway (`build.py`, `compile.py`), evaluation, content.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

from ..engine.analysis import RuleError, check_rules, levels
from ..engine.ir import Pattern, Rule
from ..facts import Scalar
from ..messages import NOTHING, Message
from . import templates
from .build import SLUG, Sources, Unit, read_sources, static_rows
from .compile import EVIDENCE_ALIAS
from .functions import operands_fault
from .loader import knowledge_files
from .message_checks import message_faults
from .patterns import contradiction, may_match_conclusion, may_match_row, repeated, unguarded
from .problems import KnowledgeError, Problem, Problems, did_you_mean
from .publishers import PRIMARY
from .signature_checks import check_phrases, check_signatures, kinds_given
from .yamlnodes import load

# Statements that the pipeline itself makes of a question.
_SAID_BY_ASKING = ("question_asked", "gpu_mentioned")
# Derived types that reports are made of, whether or not a rule reads them too.
_READ_BY_REPORTS = (
    "evidence", "symptom", "fix_offer", "fix_option", "pick", "strike", "driver_target", "wsl_known",
    "plan_verdict", "plan_claim", "plan_beats", "plan_note", "advice_due",
)  # fmt: skip
_SUPPORT = ("decisive", "strong", "weak")
_UNKNOWN_KIND = Message("fault.source_kind")
_HAN = re.compile(r"[\u3400-\u9fff\uf900-\ufaff]")
_WIDE = re.compile(r"[\u3000-\u303f\u3400-\u9fff\uf900-\ufaff\uff01-\uff5e]")
# A Chinese text may be a name, a command or a quoted message throughout, but no sentence of another language.
_QUOTED = re.compile(r"“[^”]*”|`[^`]*`|^gpurules .*", re.MULTILINE)
_PROSE = re.compile(r"[A-Za-z]{2,} [a-z]{2,} [a-z]{2,}")
# Somewhere it is tomorrow already.
_AHEAD = timedelta(days=1)


def check(folder: Path | None = None, today: date | None = None) -> list[Problem]:
    """Every fault of the shipped knowledge, or of it with a folder laid over; empty where it is fine."""
    problems = Problems()
    try:
        sources = read_sources(knowledge_files(folder), problems)
    except KnowledgeError as error:
        return list(error.problems)
    _Checks(sources, problems, today or date.today()).run()
    return sorted(set(problems.found))


class _Checks:
    """The checks over one folder; each adds to `problems`."""

    def __init__(self, sources: Sources, problems: Problems, today: date) -> None:
        self.sources = sources
        self.problems = problems
        self.today = today
        self.vocabulary = sources.vocabulary
        self.units = (*sources.rules.values(), *sources.fixes.values(), *sources.symptoms.values())
        self.ir = [rule for unit in self.units for rule in unit.ir]
        self.kinds = {
            "error": kinds_given(sources, "error"),
            "statement": kinds_given(sources, "statement")
            | {str(entry["kind"]) for entry in sources.phrases}
            | set(_answered(sources))
            | set(_SAID_BY_ASKING),
        }

    def run(self) -> None:
        for unit in self.sources.rules.values():
            self.rule(unit)
        for unit in self.sources.fixes.values():
            self.fix(unit)
        for name, unit in self.sources.symptoms.items():
            self.symptom(name, unit)
        self.causes()
        self.questions()
        self.words()
        self.messages()
        self.rule_base()
        self.derived_types()
        self.reachable()
        self.dates()
        self.tables_of_sources()
        check_signatures(self.sources, self.problems)
        check_phrases(self.sources, self.problems)

    def named(self, unit: Unit, field: str, what: str, name: str, known: Collection[str]) -> None:
        """A name must be known."""
        if name not in known:
            told = Message(f"fault.what.{what}")
            unit.fault(
                self.problems, field, Message("fault.unknown", what=told, name=name, hint=did_you_mean(name, known))
            )

    def asks(self, unit: Unit) -> None:
        for index, name in enumerate(unit.data.get("asks", ())):
            self.named(unit, f"asks[{index}]", "question", name, self.sources.questions)

    # --- rules --------------------------------------------------------------------------------------------------------

    def rule(self, unit: Unit) -> None:
        data = unit.data
        folder = data["file"].split("/")[1]
        if data["area"] != folder:
            unit.fault(self.problems, "area", Message("fault.area", folder=folder))
        for index, conclusion in enumerate(data["conclude"]):
            if "cause" in conclusion:
                self.named(unit, f"conclude[{index}].cause", "cause", conclusion["cause"], self.sources.causes)
                if "severity" not in data:
                    unit.fault(self.problems, "severity", Message("fault.severity"))
        self.asks(unit)
        self.sourced(unit, "finding" if _supports(data) else None)
        self.patterns(unit)
        bound = [_types(rule) for rule in unit.ir]
        for key in ("title", "because"):
            self.text(unit, key, data[key], bound)
        for index, alarm in enumerate(data["false_alarms"]):
            self.text(unit, f"false_alarms[{index}]", alarm, ())
        self.examples(unit)

    def examples(self, unit: Unit) -> None:
        for kind, examples in unit.data["examples"].items():
            for number, example in enumerate(examples):
                field = f"examples.{kind}[{number}]"
                for index, fact in enumerate(example["facts"]):
                    self.fact(unit, f"{field}.facts[{index}]", fact, ("observed",))
                if "derives" in example:
                    self.fact(unit, f"{field}.derives", example["derives"], ("derived",))
                own = {c["cause"] for c in unit.data["conclude"] if "cause" in c}
                if "cause" in example:
                    self.named(unit, f"{field}.cause", "own_conclusion", example["cause"], own)
                if kind == "unknown":
                    if "needs" not in example:
                        unit.fault(self.problems, f"{field}.needs", Message("fault.needs"))
                    else:
                        self.named(unit, f"{field}.needs", "type", example["needs"], self.vocabulary.types)

    def fact(self, unit: Unit, field: str, fact: Mapping[str, Mapping[str, Scalar]], kinds: Sequence[str]) -> None:
        """A fact as examples and effects state it: known type, fields and values."""
        for type_name, fields in fact.items():
            known = [name for name, spec in self.vocabulary.types.items() if spec.kind in kinds]
            self.named(unit, f"{field}.{type_name}", kinds[0], type_name, known)
            if type_name not in known:
                continue
            for name, value in fields.items():
                fault = self.vocabulary.check(type_name, name, value)
                if fault:
                    unit.fault(self.problems, f"{field}.{type_name}.{name}", fault)
                elif name == "kind" and type_name in self.kinds:
                    self.named(unit, f"{field}.{type_name}.kind", type_name, str(value), self.kinds[type_name])

    # --- fixes --------------------------------------------------------------------------------------------------------

    def fix(self, unit: Unit) -> None:
        data = unit.data
        for index, cause in enumerate(data["causes"]):
            self.named(unit, f"causes[{index}]", "cause", cause, self.sources.causes)
        if not SLUG.match(data["action"]):
            unit.fault(self.problems, "action", Message("fault.action"))
        self.sourced(unit, "fix" if any(step["run"] for step in data["steps"]) else None)
        self.patterns(unit)
        bound = [_types(rule) for rule in unit.ir if "?" not in rule.id]
        for key in ("title", "not_simulable", "risks", "undo", "verify"):
            if key in data:
                self.text(unit, key, data[key], bound)
        for field, words in _plain_texts(data):
            self.slots(unit, field, words, bound)
        self.options(unit)
        self.numbers(unit, bound)
        self.steps(unit, bound)
        self.effects(unit, bound)
        if data["kind"] == "cure":
            if not data["effects"] and "not_simulable" not in data:
                unit.fault(self.problems, "effects", Message("fault.cure_effects"))
            if "verify" not in data and not data["verify_run"]:
                unit.fault(self.problems, "verify", Message("fault.cure_verify"))

    def options(self, unit: Unit) -> None:
        optional = unit.data["optional"]
        used: set[str] = set()
        for field, item in _items(unit.data):
            if isinstance(item, dict):
                used.add(item["if"])
                self.named(unit, f"{field}.if", "optional_alias", item["if"], optional)
        for alias in optional:
            if alias not in used:
                unit.fault(self.problems, f"optional.{alias}", Message("fault.no_if"))

    def numbers(self, unit: Unit, bound: Sequence[Mapping[str, str]]) -> None:
        """The computed figures of a fix: a known function of whole numbers that the patterns bind."""
        for name, (function, *operands) in unit.data["numbers"].items():
            fault = operands_fault(str(function), operands)
            if fault:
                unit.fault(self.problems, f"numbers.{name}", fault)
            for operand in operands:
                if isinstance(operand, str):
                    if not operand.startswith("$"):
                        unit.fault(self.problems, f"numbers.{name}", Message("fault.no_reference", value=operand))
                    self.slots(unit, f"numbers.{name}", "{" + operand.removeprefix("$") + "}", bound)

    def steps(self, unit: Unit, bound: Sequence[Mapping[str, str]]) -> None:
        for index, step in enumerate(unit.data["steps"]):
            field = f"steps[{index}]"
            if not step["run"] and "say" not in step:
                unit.fault(self.problems, field, Message("fault.run_or_say"))
            if "say" in step:
                self.text(unit, f"{field}.say", step["say"], bound)
            if step["run"][:1] == ["sudo"] and not step["needs_root"]:
                unit.fault(self.problems, f"{field}.needs_root", Message("fault.sudo"))
            if step["needs_root"] and "risks" not in unit.data:
                unit.fault(self.problems, "risks", Message("fault.root_risks"))

    def effects(self, unit: Unit, bound: Sequence[Mapping[str, str]]) -> None:
        for index, effect in enumerate(unit.data["effects"]):
            for operation, fact in effect.items():
                field = f"effects[{index}].{operation}"
                ((type_name, fields),) = fact.items()
                constants = {n: v for n, v in fields.items() if not (isinstance(v, str) and templates.slots(v))}
                self.fact(unit, field, {type_name: constants}, ("observed",))
                for name in fields.keys() - constants.keys():
                    self.filled(unit, f"{field}.{type_name}.{name}", type_name, name)
                    self.slots(unit, f"{field}.{type_name}.{name}", str(fields[name]), bound)

    def filled(self, unit: Unit, field: str, type_name: str, name: str) -> None:
        """A field of an effect that is filled with a value of a matched fact."""
        if type_name in self.vocabulary.types:
            spec = self.vocabulary.types[type_name].fields.get(name)
            if spec is None:
                unit.fault(self.problems, field, self.vocabulary.check(type_name, name, "") or NOTHING)
            elif spec.type in ("int", "bool"):
                unit.fault(self.problems, field, Message("fault.text_fills", type=spec.type))

    # --- causes, symptoms, questions ----------------------------------------------------------------------------------

    def causes(self) -> None:
        evidenced = {
            conclusion.fields["cause"]
            for rule in self.ir
            for conclusion in rule.conclusions
            if conclusion.type == "evidence" and conclusion.fields["word"] in _SUPPORT
        }
        served = {cause for unit in self.sources.fixes.values() for cause in unit.data["causes"]}
        for name, unit in self.sources.causes.items():
            self.asks(unit)
            for key in ("title", "message"):
                if key in unit.data:
                    self.text(unit, key, unit.data[key], ())
            if unit.data["severity"] == "error" and unit.data["status"] != "preview":
                if name not in evidenced:
                    unit.fault(self.problems, "", Message("fault.no_evidence"))
                if name not in served:
                    unit.fault(self.problems, "", Message("fault.no_fix"))

    def symptom(self, name: str, unit: Unit) -> None:
        self.text(unit, "title", unit.data["title"], ())
        for key, type_name in (("errors", "error"), ("statements", "statement")):
            for index, kind in enumerate(unit.data[key]):
                self.named(unit, f"{key}[{index}]", type_name, kind, self.kinds[type_name])
        raised = {c.fields["kind"] for rule in self.ir for c in rule.conclusions if c.type == "symptom"}
        if name not in raised:
            unit.fault(self.problems, "", Message("fault.symptom"))
        for cause in unit.data["causes"]:
            self.named(unit, f"causes.{cause}", "cause", cause, self.sources.causes)
        self.asks(unit)

    def questions(self) -> None:
        for unit in self.sources.questions.values():
            for key in ("topic", "text"):
                self.text(unit, key, unit.data[key], ())
            for key in ("provides", "moot_if"):
                for index, name in enumerate(unit.data[key]):
                    self.named(unit, f"{key}[{index}]", "type", name, self.vocabulary.types)
            for index, fact in enumerate(unit.data["only_if"]):
                self.fact(unit, f"only_if[{index}]", fact, ("observed",))
            for number, answer in enumerate(unit.data["answers"]):
                self.text(unit, f"answers[{number}].text", answer["text"], ())
                for key in ("gives", "instance"):
                    for index, fact in enumerate(answer[key]):
                        self.fact(unit, f"answers[{number}].{key}[{index}]", fact, ("observed",))

    def words(self) -> None:
        """The tables whose texts have slots of their own."""
        for name, unit in self.sources.sentences.items():
            self.named(unit, "", "type", name, self.vocabulary.types)
            for field, text in unit.data.get("fields", {}).items():
                self.languages(unit, f"fields.{field}", text)
        for unit in (*self.sources.sentences.values(), *self.sources.changes.values()):
            for key in ("noun", "say", "title", "risk"):
                if key in unit.data:
                    self.languages(unit, key, unit.data[key])

    def messages(self) -> None:
        """The words of the interface."""
        root = load(self.sources.files["messages.yaml"], self.problems, "messages.yaml")
        if root is None:
            return
        self.problems.found += message_faults(root)
        for key, entry in root.pairs():
            text = {name.text: value.text for name, value in entry.pairs()}
            if text.keys() >= {"en", "zh"}:
                self.languages(Unit({}, entry, key.text), "", text)

    # --- texts --------------------------------------------------------------------------------------------------------

    def text(self, unit: Unit, field: str, text: Mapping[str, str], bound: Sequence[Mapping[str, str]]) -> None:
        """A text in two languages: each in its own, both with the same slots, which patterns bind."""
        self.languages(unit, field, text)
        for lang in ("en", "zh"):
            self.slots(unit, f"{field}.{lang}", text[lang], bound or ({},))
        # A field that holds a text of one language ends with it: {e.name_en} beside {e.name_zh}.
        own, other = ({s.replace(f"_{lang}}}", "}") for s in templates.slots(text[lang])} for lang in ("en", "zh"))
        if own != other:
            missing = own ^ other
            unit.fault(self.problems, field, Message("fault.one_language", slots=sorted(missing)))

    def languages(self, unit: Unit, field: str, text: Mapping[str, str]) -> None:
        if _WIDE.search(text["en"]):
            unit.fault(self.problems, f"{field}.en", Message("fault.chinese"))
        if not _HAN.search(text["zh"]) and _PROSE.search(_QUOTED.sub("", text["zh"])):
            unit.fault(self.problems, f"{field}.zh", Message("fault.untranslated"))

    def slots(self, unit: Unit, field: str, text: str, bound: Sequence[Mapping[str, str]]) -> None:
        for types in bound:
            for fault in templates.faults(text, types, self.vocabulary):
                unit.fault(self.problems, field, fault)

    # --- patterns -----------------------------------------------------------------------------------------------------

    def patterns(self, unit: Unit) -> None:
        for rule, pattern, place in _patterns(unit):
            spec = self.vocabulary.types[pattern.type]
            field = contradiction(pattern, spec)
            if field:
                effect = "fault.always_holds" if pattern.negated else "fault.never_matches"
                unit.fault(self.problems, f"{place}.{pattern.type}.{field}", Message(effect))
            if unguarded(rule, pattern, spec) and not unit.data.get("assume"):
                guard = f"{{coverage: {{domain: {spec.domain}, complete: true}}}}"
                unit.fault(self.problems, place, Message("fault.unguarded", type=pattern.type, guard=guard))
            for test in pattern.tests:
                if test.field == "kind" and pattern.type in self.kinds:
                    for kind in test.value if isinstance(test.value, tuple) else (test.value,):
                        known = self.kinds[pattern.type]
                        self.named(unit, f"{place}.{pattern.type}.kind", pattern.type, str(kind), known)

    def rule_base(self) -> None:
        """What only all rules together show: negation in circles and rules that repeat others."""
        owners = {rule.id: unit for unit in self.units for rule in unit.ir}
        sound: list[Rule] = []
        for rule in self.ir:
            try:
                check_rules((rule,))
                sound.append(rule)
            except RuleError as error:
                owners[rule.id].fault(self.problems, "when", Message("fault.engine", text=error.message))
        while True:
            try:
                levels(sound)
                break
            except RuleError as error:
                owners[error.rule].fault(self.problems, "when", Message("fault.engine", text=error.fault))
                sound = [rule for rule in sound if rule.id != error.rule]
        for first, second in repeated(r for unit in self.sources.rules.values() for r in unit.ir):
            same = first.group == second.group
            told = Message("fault.repeats_itself") if same else Message("fault.repeats", rule=first.group)
            owners[second.id].fault(self.problems, "when", told)

    def reachable(self) -> None:
        """Positive patterns that nothing can match: no conclusion and no catalog row passes their tests."""
        rows: dict[str, list[Mapping[str, Scalar]]] = {}
        for type_name, fields, _, _ in static_rows(self.sources.catalogs, self.vocabulary)[0]:
            rows.setdefault(type_name, []).append(fields)
        concluded = [conclusion for rule in self.ir for conclusion in rule.conclusions]
        for unit in (*self.sources.rules.values(), *self.sources.fixes.values()):
            for _, pattern, place in _patterns(unit):
                kind = self.vocabulary.types[pattern.type].kind
                if pattern.negated or kind == "observed" or pattern.type == "evidence":
                    continue
                if kind == "catalog":
                    matched = any(may_match_row(pattern, row) for row in rows.get(pattern.type, ()))
                else:
                    matched = any(may_match_conclusion(pattern, c) for c in concluded if c.type == pattern.type)
                if not matched:
                    told = "fault.no_row" if kind == "catalog" else "fault.no_conclusion"
                    unit.fault(self.problems, place, Message(told))

    def derived_types(self) -> None:
        """Derived types that nothing concludes or nothing uses."""
        concluded = {conclusion.type for rule in self.ir for conclusion in rule.conclusions}
        used = {p.type for rule in self.ir for p in rule.patterns}.union(_READ_BY_REPORTS)
        used |= {name for unit in self.sources.questions.values() for name in unit.data["moot_if"]}
        root = load(self.sources.files["vocabulary.yaml"], Problems(), "vocabulary.yaml")
        listed = root.get("types") if root else None
        for key, _ in listed.pairs() if listed else ():
            spec = self.vocabulary.types.get(key.text)
            if spec is None or spec.kind != "derived":
                continue
            if key.text not in concluded:
                self.problems.add(key.file, key.line, key.text, Message("fault.not_concluded"))
            if key.text not in used:
                self.problems.add(key.file, key.line, key.text, Message("fault.unused"))

    # --- sources ------------------------------------------------------------------------------------------------------

    def sourced(self, unit: Unit, what: str | None) -> None:
        """Of every page it is known what it is; `what` rests on one of a primary kind that somebody opened."""
        pages = unit.data["sources"]
        for index, page in enumerate(pages):
            if "kind" not in page:
                unit.fault(self.problems, f"sources[{index}].url", _UNKNOWN_KIND)
        if what and all("kind" in p for p in pages) and not any(p["opened"] and p["kind"] in PRIMARY for p in pages):
            unit.fault(self.problems, "sources", Message(f"fault.primary.{what}"))

    def tables_of_sources(self) -> None:
        for file, table in self.sources.cited.items():
            for key, page in table.items():
                if page.kind is None:
                    self.problems.add(file, 0, f"sources.{key}.url", _UNKNOWN_KIND)

    # --- dates --------------------------------------------------------------------------------------------------------

    def dates(self) -> None:
        for unit in (*self.sources.rules.values(), *self.sources.fixes.values()):
            for index, source in enumerate(unit.data["sources"]):
                fault = self.date_fault(source["retrieved"])
                if fault:
                    unit.fault(self.problems, f"sources[{index}].retrieved", fault)
        for catalog, day in self.sources.catalogs.retrieved.items():
            fault = self.date_fault(day)
            if fault:
                self.problems.add(f"facts/{catalog}.yaml", 0, "retrieved", fault)

    def date_fault(self, text: str) -> Message | None:
        try:
            day = date.fromisoformat(text)
        except ValueError:
            return Message("fault.no_date", text=text)
        return Message("fault.future", text=text) if day > self.today + _AHEAD else None


def _supports(data: Mapping[str, Any]) -> bool:
    """Whether a rule speaks for a cause."""
    return any(conclusion.get("evidence") in _SUPPORT for conclusion in data["conclude"])


def _types(rule: Rule) -> dict[str, str]:
    """The type that each alias binds."""
    return {p.alias: p.type for p in rule.patterns if not p.negated}


def _patterns(unit: Unit) -> Iterator[tuple[Rule, Pattern, str]]:
    """Every pattern that the file itself holds, with its rule and its path in the file."""
    when = unit.data.get("when") or {}
    groups = [[(key, index) for index in range(len(group))] for key, group in when.items() if key.startswith("any_of")]
    branches = list(itertools.product(*groups))
    options = 1 + len(unit.data.get("optional", ()))
    for number, rule in enumerate(unit.ir):
        chosen = branches[number // options]
        places = {alias: f"when.{alias}" for alias in when}
        places |= {alias: f"when.{key}[{index}].{alias}" for key, index in chosen for alias in when[key][index]}
        places |= {alias: f"optional.{alias}" for alias in unit.data.get("optional", ())}
        for pattern in rule.patterns:
            if pattern.alias != EVIDENCE_ALIAS:
                place = places[pattern.alias]
                yield rule, pattern, f"{place}.not" if pattern.negated else place


def _answered(sources: Sources) -> Iterator[str]:
    """The statements that answers of questions make."""
    for unit in sources.questions.values():
        for answer in unit.data["answers"]:
            for fact in answer["gives"]:
                if "statement" in fact:
                    yield str(fact["statement"].get("kind", ""))


def _items(data: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The arguments and package versions of a fix, plain ones and optional ones."""
    for name, item in data["packages"].items():
        yield f"packages.{name}", name
        yield f"packages.{name}", item
    for number, step in enumerate(data["steps"]):
        for index, item in enumerate(step["run"]):
            yield f"steps[{number}].run[{index}]", item


def _plain_texts(data: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """The texts of a fix that are the same in every language."""
    for key in ("index_url", "driver_at_least", "driver_below", "python"):
        if key in data:
            yield key, data[key]
    for name, value in data["env"].items():
        yield f"env.{name}", value
    for index, word in enumerate(data["verify_run"]):
        yield f"verify_run[{index}]", word
    for field, item in _items(data):
        yield field, item["text"] if isinstance(item, dict) else item
