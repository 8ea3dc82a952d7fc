"""The checks of the knowledge as a whole: the shipped folder has no fault; each kind of fault is named in its place."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date
from pathlib import Path

import gpurules
import pytest
from gpurules.engine.ir import Conclusion, Join, Pattern, Ref, Rule, Test
from gpurules.facts import Scalar
from gpurules.knowledge.checker import check
from gpurules.knowledge.patterns import contradiction, repeated
from gpurules.knowledge.problems import Problem
from gpurules.knowledge.signature_checks import regex_fault
from gpurules.knowledge.vocabulary import FieldSpec, TypeSpec
from gpurules.messages import Message

SHIPPED = Path(gpurules.__file__).parent / "knowledge"
TODAY = date(2026, 12, 1)

RULE = """\
id: {id}
title: {{en: "A title", zh: "标题"}}
since: 0.1.0
area: gpu
severity: error
when:
  g: {{gpu: {{}}}}
conclude:
  - {{cause: own_cause, evidence: strong}}
because: {{en: "a reason", zh: "原因"}}
sources:
  - {{url: "https://example.org/", title: "An example", retrieved: 2026-11-30, kind: vendor}}
examples:
  fires: [{{facts: [{{gpu: {{index: 0, name: Tesla T4}}}}], cause: own_cause}}]
  silent: [{{facts: [{{os: {{family: linux}}}}]}}]
"""
FIX = """\
id: {id}
kind: cure
action: do_it
causes: [own_cause]
title: {{en: "A fix", zh: "修复"}}
when:
  g: {{gpu: {{}}}}
steps:
  - {{run: [tool, "{{g.name}}"]}}
effects:
  - {{remove: {{gpu: {{}}}}}}
verify_run: [tool]
sources:
  - {{url: "https://example.org/", title: "An example", retrieved: 2026-11-30, kind: vendor}}
"""


def rule(name: str, *changes: tuple[str, str]) -> str:
    return changed(RULE.format(id=name), changes)


def fix(name: str, *changes: tuple[str, str]) -> str:
    return changed(FIX.format(id=name), changes)


def changed(text: str, changes: tuple[tuple[str, str], ...]) -> str:
    for old, new in changes:
        assert old in text, old
        text = text.replace(old, new)
    return text


WHEN = "  g: {gpu: {}}\n"
NO_PRIMARY = "needs a page of a primary kind (vendor, project, source_code, maintainer) that was opened"
UNKNOWN_KIND = "nobody says what kind of source this is: give `kind`, or name its publisher in publishers.yaml"
# File -> (its text, what is wrong with it). The lines are those of RULE and FIX.
RULES: dict[str, tuple[str, list[str]]] = {
    "no-fault": (rule("no-fault", (WHEN, "  g: {gpu: {name.product: Tesla T4}}\n")), []),
    "area": (rule("area", ("area: gpu", "area: torch")), ['4: area: must be the folder\'s name, "gpu"']),
    "severity": (
        rule("severity", ("severity: error\n", ""), (WHEN, "  g: {gpu: {index: 8}}\n")),
        ["1: severity: is missing: the rule speaks of a cause"],
    ),
    "names": (
        rule(
            "names",
            ("cause: own_cause, evidence: strong", "cause: own_casue, evidence: strong"),
            ("cause: own_cause}]\n  silent", "cause: none_healthy}]\n  silent"),
            ("sources:", "asks: [nvidia_smi, nvidia_sim]\nsources:"),
        ),
        [
            '9: conclude[0].cause: unknown cause "own_casue"; did you mean "own_cause"?',
            '11: asks[1]: unknown question "nvidia_sim"; did you mean "nvidia_smi"?',
            '15: examples.fires[0].cause: unknown conclusion of this rule "none_healthy"',
        ],
    ),
    "kinds": (
        rule(
            "kinds",
            (WHEN, "  e: {error: {kind: torch_froked}}\n  s: {statement: {kind: {any_of: [hang, slwo]}}}\n"),
            ("{gpu: {index: 0, name: Tesla T4}}", "{error: {kind: torch_frok}}, {statement: {kind: hagn}}"),
        ),
        [
            '7: when.e.error.kind: unknown error "torch_froked"; did you mean "torch_fork"?',
            '8: when.s.statement.kind: unknown statement "slwo"; did you mean "slow"?',
            '15: examples.fires[0].facts[0].error.kind: unknown error "torch_frok"; did you mean "torch_fork"?',
            '15: examples.fires[0].facts[1].statement.kind: unknown statement "hagn"; did you mean "hang"?',
        ],
    ),
    "examples": (
        rule(
            "examples",
            (WHEN, "  g: {gpu: {index: 9}}\n"),
            ("{gpu: {index: 0, name: Tesla T4}}", "{gpu: {index: zero, nmae: Tesla T4}}, {gpu_arch: {sm: 7.5}}"),
            ("cause: own_cause}]\n  silent", "derives: {gpu: {index: 0}}}]\n  silent"),
            ("family: linux}}]}]", "family: linux}}]}]\n  unknown: [{facts: []}, {facts: [], needs: gup}]"),
        ),
        [
            '14: examples.fires[0].derives.gpu: unknown derived type "gpu"; did you mean "no_gpu"?',
            '14: examples.fires[0].facts[0].gpu.index: "index" must be a whole number',
            '14: examples.fires[0].facts[0].gpu.nmae: unknown field "nmae" of gpu; did you mean "name"?',
            '14: examples.fires[0].facts[1].gpu_arch: unknown observed type "gpu_arch"',
            "16: examples.unknown[0].needs: is missing: name the type that is not known",
            '16: examples.unknown[1].needs: unknown type "gup"; did you mean "gpu"?',
        ],
    ),
    "texts": (
        rule(
            "texts",
            (WHEN, "  g: {gpu: {index: 10}}\n"),
            ('en: "A title"', 'en: "{g.name.label} and {h.name} and {g.nmae}"'),
            ('zh: "标题"', 'zh: "{g.name.label} 与 {g.name.lable} 与 {g.index|cc} 与 {g.index|x} 与 {g}"'),
            ('en: "a reason"', 'en: "原因 {g.sm|cc} and ${HOME} {{.Name}}"'),
            ('zh: "原因"', 'zh: "this is not translated {g.sm|cc}"'),
            (
                "sources:",
                'false_alarms:\n  - {en: "a card", zh: "一块卡"}\n'
                '  - {en: "a card", zh: "this one stays as it is"}\nsources:',
            ),
        ),
        [
            "2: title: only one language has {g.index|cc}, {g.index|x}, {g.name.lable}, {g.nmae}, {h.name}",
            '2: title.en: {g.nmae}: gpu has no field "nmae"; did you mean "name"?',
            '2: title.en: {h.name}: no pattern binds "h"',
            '2: title.zh: {g.index|cc}: "cc" shows compute capabilities, and "index" is of type int',
            '2: title.zh: {g.index|x}: unknown form "x"',
            '2: title.zh: {g.name.lable}: "name" has no part "lable"; did you mean "label"?',
            "2: title.zh: {g} is no slot: write {alias.field}",
            "10: because.en: holds Chinese characters",
            "10: because.zh: is not translated",
            "13: false_alarms[1].zh: is not translated",
        ],
    ),
    "alternatives": (
        rule(
            "alternatives",
            (WHEN, "  any_of:\n    - g: {gpu: {index: 1}}\n    - h: {gpu: {index: 2}}\n      o: {not: {gpu: {}}}\n"),
            ('"a reason"', '"GPU {g.index}"'),
            ('"原因"', '"GPU {g.index}"'),
        ),
        [
            "10: when.any_of[1].o.not: nobody may have looked for gpu: needs a pattern"
            " {coverage: {domain: gpus, complete: true}}",
            '13: because.en: {g.index}: no pattern binds "g"',
            '13: because.zh: {g.index}: no pattern binds "g"',
        ],
    ),
    "absence": (
        rule(
            "absence",
            (
                WHEN,
                "  g: {gpu: {}}\n  c: {coverage: {domain: driver, complete: true}}\n  d: {not: {driver: {}}}\n"
                "  p: {not: {process: {}}}\n  a: {not: {gpu_arch: {sm: 7.5}}}\n"
                "  r: {not: {driver_branch: {branch: 1}}}\n",
            ),
        ),
        [
            "10: when.p.not: nobody may have looked for process: needs a pattern"
            " {coverage: {domain: processes, complete: true}}"
        ],
    ),
    "half-covered": (
        rule("half-covered", (WHEN, "  c: {coverage: {domain: gpus}}\n  d: {not: {gpu: {index: 7}}}\n")),
        ["8: when.d.not: nobody may have looked for gpu: needs a pattern {coverage: {domain: gpus, complete: true}}"],
    ),
    "assumed": (
        rule("assumed", (WHEN, "  g: {gpu: {}}\n  d: {not: {driver: {}}}\n"), ("area:", "assume: true\narea:")),
        [],
    ),
    "contradictory": (
        rule(
            "contradictory",
            (
                WHEN,
                "  g: {gpu: {index: {below: 3, above: 2}}}\n"
                "  b: {not: {driver_branch: {branch: {at_least: 5, below: 5}}}}\n",
            ),
        ),
        [
            "7: when.g.gpu.index: contradicts itself: the pattern never matches",
            "8: when.b.not.driver_branch.branch: contradicts itself: the pattern always holds",
        ],
    ),
    "unreachable": (
        rule(
            "unreachable",
            (
                WHEN,
                "  g: {gpu: {}}\n  a: {architecture: {sm: 1.0}}\n  w: {evidence: {word: certain}}\n"
                "  p: {platform: {platform: none, assumed: true}}\n",
            ),
        ),
        [
            "8: when.a: never matches: no row of the catalogs passes its tests",
            "10: when.p: never matches: no rule's conclusion passes its tests",
        ],
    ),
    "circle": (
        rule(
            "circle",
            (WHEN, "  g: {gpu: {}}\n  n: {not: {torch_xpu: {}}}\n"),
            ("{cause: own_cause, evidence: strong}", "{fact: {torch_xpu: {present: true}}}"),
            (", cause: own_cause", ""),
        ),
        ["6: when: its negation of torch_xpu depends on its own conclusions"],
    ),
    "original": (rule("original", (WHEN, "  g: {gpu: {index: 4}}\n  d: {driver: {version: {below: 600}}}\n")), []),
    "repeated": (
        rule("repeated", (WHEN, "  y: {driver: {version: {below: 600.0}}}\n  x: {gpu: {index: 4}}\n")),
        ["6: when: the same patterns and conclusions as rule original"],
    ),
    "repeated-branch": (
        rule("repeated-branch", (WHEN, "  any_of:\n    - x: {gpu: {index: 5}}\n    - y: {gpu: {index: 5}}\n")),
        ["6: when: the same patterns and conclusions as an alternative of this rule"],
    ),
    "dates": (
        rule("dates", ("2026-11-30", "2026-12-03"), (WHEN, "  g: {gpu: {index: 6}}\n")),
        ["12: sources[0].retrieved: 2026-12-03 is in the future"],
    ),
    "no-date": (
        rule("no-date", ("2026-11-30", "2026-02-30"), (WHEN, "  g: {gpu: {index: 7}}\n")),
        ['12: sources[0].retrieved: "2026-02-30" is no date'],
    ),
    "no-primary": (
        rule("no-primary", ("kind: vendor", "kind: report"), (WHEN, "  g: {gpu: {index: 31}}\n")),
        [f"11: sources: a finding {NO_PRIMARY}"],
    ),
    "unopened": (
        rule("unopened", ("kind: vendor", "kind: vendor, opened: false"), (WHEN, "  g: {gpu: {index: 32}}\n")),
        [f"11: sources: a finding {NO_PRIMARY}"],
    ),
    "unknown-kind": (
        rule("unknown-kind", (", kind: vendor", ""), (WHEN, "  g: {gpu: {index: 33}}\n")),
        [f"12: sources[0].url: {UNKNOWN_KIND}"],
    ),
    "kind-by-publisher": (
        rule(
            "kind-by-publisher",
            ("example.org/", "docs.nvidia.com/deploy/"),
            (", kind: vendor", ""),
            (WHEN, "  g: {gpu: {index: 34}}\n"),
        ),
        [],
    ),
    "speaks-against": (
        rule(
            "speaks-against",
            ("kind: vendor", "kind: report"),
            ("evidence: strong", "evidence: against"),
            (WHEN, "  g: {gpu: {index: 35}}\n"),
        ),
        [],
    ),
}
FIXES: dict[str, tuple[str, list[str]]] = {
    "no-fault": (fix("no-fault"), []),
    "names": (
        fix("names", ("[own_cause]", "[own_cause, wheel_misisng_new_arch]"), ("action: do_it", "action: do-it")),
        [
            "3: action: is lower case, its words parted by underscores",
            '4: causes[1]: unknown cause "wheel_misisng_new_arch"; did you mean "wheel_missing_new_arch"?',
        ],
    ),
    "cure": (
        fix("cure", ("effects:\n  - {remove: {gpu: {}}}\n", ""), ("verify_run: [tool]\n", "")),
        [
            "1: effects: is missing: a cure has `effects`, or says why in `not_simulable`",
            "1: verify: is missing: a cure has `verify` or `verify_run`",
        ],
    ),
    "no-primary": (
        fix("no-primary", ("kind: vendor", "kind: report")),
        [f"13: sources: a fix with commands {NO_PRIMARY}"],
    ),
    "only-words": (
        fix(
            "only-words",
            ("kind: vendor", "kind: report"),
            ('{run: [tool, "{g.name}"]}', '{say: {en: "Do it.", zh: "执行。"}}'),
        ),
        [],
    ),
    "advice": (
        fix(
            "advice",
            ("kind: cure", "kind: advice"),
            ("effects:\n  - {remove: {gpu: {}}}\n", ""),
            ("verify_run: [tool]\n", ""),
        ),
        [],
    ),
    "steps": (
        fix(
            "steps",
            (
                '  - {run: [tool, "{g.name}"]}',
                "  - {platform: linux}\n  - {run: [sudo, tool]}\n  - {run: [a], needs_root: true}",
            ),
        ),
        [
            "1: risks: is missing: a step needs root",
            "9: steps[0]: needs `run` or `say`",
            "10: steps[1].needs_root: must be true: the command begins with sudo",
        ],
    ),
    "options": (
        fix(
            "options",
            ('[tool, "{g.name}"]', '[tool, {if: tv, text: "{tv.version}"}, {if: vt, text: x}]'),
            ("steps:", "optional:\n  tv: {package: {name: torchvision}}\n  ta: {package: {name: torchaudio}}\nsteps:"),
        ),
        [
            "10: optional.ta: no `if` uses it",
            '12: steps[0].run[1]: {tv.version}: no pattern binds "tv"',
            '12: steps[0].run[2].if: unknown alias of `optional`: "vt"',
        ],
    ),
    "effects": (
        fix(
            "effects",
            (
                "  - {remove: {gpu: {}}}",
                '  - {remove: {package: {name: "{g.title}"}}}\n'
                '  - {add: {driver: {version: "{g.vram}", cuda_level: "{g.index}"}}}\n'
                "  - {add: {drivre: {}}}\n  - {remove: {gpu: {index: one}}}\n  - {remove: {pick: {}}}",
            ),
        ),
        [
            '11: effects[0].remove.package.name: {g.title}: gpu has no field "title"',
            "12: effects[1].add.driver.cuda_level: a text cannot fill a field of type int",
            '12: effects[1].add.driver.version: {g.vram}: gpu has no field "vram"; did you mean "vram_mib"?',
            '13: effects[2].add.drivre: unknown observed type "drivre"; did you mean "driver"?',
            '14: effects[3].remove.gpu.index: "index" must be a whole number',
            '15: effects[4].remove.pick: unknown observed type "pick"',
        ],
    ),
    "both": (
        fix("both", ("{remove: {gpu: {}}}", "{remove: {gpu: {}}, add: {gpu: {}}}")),
        ["11: effects[0]: needs one of `remove` and `add`"],
    ),
    "texts": (
        fix(
            "texts",
            ('"{g.name}"', '"{g.nmae}"'),
            ("steps:", 'index_url: "https://x/{h.name}"\npackages: {torch: "=={e_.cause}{e_.cuase}"}\nsteps:'),
            ("verify_run:", 'risks: {en: "Some risk", zh: "{g.name} 风险"}\nverify_run:'),
        ),
        [
            '8: index_url: {h.name}: no pattern binds "h"',
            '9: packages.torch: {e_.cuase}: evidence has no field "cuase"; did you mean "cause"?',
            '11: steps[0].run[1]: {g.nmae}: gpu has no field "nmae"; did you mean "name"?',
            "14: risks: only one language has {g.name}",
        ],
    ),
}
CAUSES = """\
own_cause: {title: {en: "Own", zh: "自己的"}, severity: error}
bare_cause: {title: {en: "Bare {g.name}", zh: "裸 {g.name}"}, severity: error, asks: [nvidia_sim]}
preview_cause: {title: {en: "Soon", zh: "将来"}, severity: error, status: preview}
harmless_cause: {title: {en: "Harmless", zh: "无害"}, severity: warning}
"""
CAUSE_FAULTS = [
    "bare_cause: no fix serves it; until one does, `status: preview`",
    "bare_cause: no rule gives evidence for it; until one does, `status: preview`",
    'bare_cause.asks[0]: unknown question "nvidia_sim"; did you mean "nvidia_smi"?',
    'bare_cause.title.en: {g.name}: no pattern binds "g"',
    'bare_cause.title.zh: {g.name}: no pattern binds "g"',
]
SYMPTOMS = """\
own_symptom:
  title: {en: "Own", zh: "自己的"}
  errors: [torch_frok, module_signature_rejected_kernel]
  statements: [question_asked, hang]
  causes: {own_cause: -1, own_casue: 2}
  asks: [kernel_lgo]
silent_symptom:
  title: {en: "Silent", zh: "无声"}
  causes: {own_cause: 0.5, preview_cause: much}
"""
SYMPTOM_FAULTS = [
    '3: own_symptom.errors[0]: unknown error "torch_frok"; did you mean "torch_fork"?',
    '3: own_symptom.errors[1]: unknown error "module_signature_rejected_kernel";'
    ' did you mean "module_signature_rejected"?',
    '5: own_symptom.causes.own_casue: unknown cause "own_casue"; did you mean "own_cause"?',
    '6: own_symptom.asks[0]: unknown question "kernel_lgo"; did you mean "kernel_log"?',
    "9: silent_symptom.causes.preview_cause: must be a number",
]


def signature(name: str, pattern: str, sample: str, more: str = "", source: str = "torch") -> str:
    return (
        f"  - {{id: {name}, about: x, pattern: '{pattern}', sample: '{sample}', source: {source}, {more}"
        f"confidence: verified}}\n"
    )


SIGNATURES = "".join(
    (
        signature(
            "own_good", r"own code (?P<code>[0-9]+) of (?P<name>\w+)", "own code 3 of x", "convert: {code: int}, "
        ),
        signature("own_good", "again", "again"),
        signature("own_bare", "bare", "bare").replace("sample", "sampel"),
        signature("own-name", "a", "a", "companions: [own_god], ", "trch").replace("verified", "certain"),
        signature("own_regex", "a(?=b)", "ab"),
        signature("own_broken", "a(b", "a"),
        signature("own_sample", "abc", "abd"),
        signature("own_groups", "(?P<code>[0-9])(?P<colour>x)(?P<_unused>y)", "3xy"),
        signature("own_convert", "(?P<code>[0-9])", "3", "convert: {code: itn, gpu: int gup}, "),
        signature("own_gives", "(?P<a>[0-9])", "3", "gives: {gpu: {index: $a, name: $b, nmae: x}, pick: {}}, "),
    )
)
REGEX = "look-around, back-references, inline flags and possessive repeats are not allowed"
SIGNATURE_FAULTS = [
    'own-name.companions: unknown signature "own_god"; did you mean "own_good"?',
    "own-name.confidence: must be one of verified, secondary",
    "own-name.id: an id is lower case, its words parted by underscores",
    'own-name.source: unknown source "trch"; did you mean "torch"?',
    'own_bare.sampel: unknown field; did you mean "sample"?',
    "own_bare.sample: is missing",
    "own_broken.pattern: no valid pattern: missing ), unterminated subpattern at position 1",
    'own_convert.convert: the pattern has no group "gup"',
    'own_convert.convert: unknown conversion "itn"; did you mean "int"?',
    'own_convert.pattern: "code" of error is of type int: convert it',
    'own_gives.gives.gpu.index: "index" of gpu is of type int: convert it',
    'own_gives.gives.gpu.name: the pattern has no group "b"',
    'own_gives.gives.gpu.nmae: unknown field "nmae" of gpu; did you mean "name"?',
    'own_gives.gives: "pick" is no observed type',
    "own_good: already stands in line LINE",
    'own_groups.pattern: "code" of error is of type int: convert it',
    'own_groups.pattern: nothing uses the group "_unused"',
    'own_groups.pattern: unknown field "colour" of error',
    f"own_regex.pattern: {REGEX}",
    "own_sample.sample: the pattern does not match it",
]
PHRASES = """\
  - {kind: hang, patterns: ['\\bown (?P<number>[0-9]+)'], samples: [own 3]}
  - {kind: own_kind, patterns: ['(?<=a)b'], samples: [], smaples: []}
"""
PHRASE_FAULTS = [
    "hang: already stands in line LINE",
    f"own_kind.patterns: {REGEX}",
    "own_kind.samples: must have at least 1, not 0",
    "own_kind.smaples: unknown field",
]
VOCABULARY = """\
  own_orphan: {kind: derived, about: "Nothing makes it.", closed_by: none, fields: {a: {type: int}}}
"""


@pytest.fixture(name="found", scope="module")
def faults_by_file(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """One folder with every kind of fault, checked once: `line: field: message` by file."""
    folder = tmp_path_factory.mktemp("knowledge")
    texts = {f"rules/gpu/own-{name}.yaml": own(name, text) for name, (text, _) in RULES.items()}
    texts |= {f"fixes/own-{name}.yaml": own(name, text) for name, (text, _) in FIXES.items()}
    for name, extra in (
        ("causes.yaml", CAUSES),
        ("symptoms.yaml", SYMPTOMS),
        ("facts/errors.yaml", SIGNATURES),
        ("facts/phrases.yaml", PHRASES),
        ("vocabulary.yaml", VOCABULARY),
        ("facts/gpus.yaml", ""),
    ):
        texts[name] = (SHIPPED / name).read_text(encoding="utf-8") + extra
    texts["facts/gpus.yaml"] = re.sub(r"(?m)^retrieved: .*$", "retrieved: 2030-01-01", texts["facts/gpus.yaml"])
    texts["questions.yaml"] = (SHIPPED / "questions.yaml").read_text(encoding="utf-8") + QUESTIONS
    for name, text in texts.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    found: dict[str, list[str]] = {}
    for problem in check(folder, TODAY):
        found.setdefault(problem.file, []).append(str(problem).removeprefix(problem.file).removeprefix(":"))
    return found


QUESTIONS = """\
own_question:
  topic: {en: "own", zh: "自己的"}
  text: {en: "Own?", zh: "Is this one translated?"}
  provides: [gpu, gup]
  moot_if: [no_gup]
  answers:
    - {id: a, text: {en: "a", zh: "甲"}, gives: [{statement: {kind: own_answer}}, {gpu: {index: one}}]}
    - {id: b, text: {en: "b", zh: "乙"}, instance: [{statement: {kind: own_answer}}, {error: {kind: torch_frok}}]}
"""
QUESTION_FAULTS = [
    "own_question.text.zh: is not translated",
    'own_question.provides[1]: unknown type "gup"; did you mean "gpu"?',
    'own_question.moot_if[0]: unknown type "no_gup"; did you mean "no_gpu"?',
    'own_question.answers[0].gives[1].gpu.index: "index" must be a whole number',
    'own_question.answers[1].instance[1].error.kind: unknown error "torch_frok"; did you mean "torch_fork"?',
]


def own(name: str, text: str) -> str:
    return text.replace(f"id: {name}\n", f"id: own-{name}\n", 1)


def without_lines(faults: list[str]) -> list[str]:
    return [re.sub(r"in line \d+", "in line LINE", re.sub(r"^\d+: ", "", fault)) for fault in faults]


def test_the_shipped_knowledge_has_no_fault() -> None:
    assert check() == []


@pytest.mark.parametrize("name", RULES)
def test_rules(found: dict[str, list[str]], name: str) -> None:
    expected = [fault.replace("as rule ", "as rule own-") for fault in RULES[name][1]]
    assert found.get(f"rules/gpu/own-{name}.yaml", []) == expected


@pytest.mark.parametrize("name", FIXES)
def test_fixes(found: dict[str, list[str]], name: str) -> None:
    assert found.get(f"fixes/own-{name}.yaml", []) == FIXES[name][1]


def test_tables(found: dict[str, list[str]]) -> None:
    assert without_lines(found["causes.yaml"]) == CAUSE_FAULTS
    first = len((SHIPPED / "symptoms.yaml").read_text(encoding="utf-8").splitlines())
    assert [re.sub(r"^\d+", lambda m: str(int(m.group()) - first), fault) for fault in found["symptoms.yaml"]] == (
        SYMPTOM_FAULTS
    )
    assert without_lines(found["questions.yaml"]) == QUESTION_FAULTS
    assert without_lines(found["vocabulary.yaml"]) == [
        "own_orphan: no rule concludes it",
        "own_orphan: nothing uses it",
    ]


def test_text_catalogs(found: dict[str, list[str]]) -> None:
    assert sorted(without_lines(found["facts/errors.yaml"])) == SIGNATURE_FAULTS
    assert sorted(without_lines(found["facts/phrases.yaml"])) == PHRASE_FAULTS
    assert found["facts/gpus.yaml"] == [" retrieved: 2030-01-01 is in the future"]


def test_nothing_else_is_named(found: dict[str, list[str]]) -> None:
    tables = {"causes.yaml", "symptoms.yaml", "questions.yaml", "vocabulary.yaml"}
    catalogs = {"facts/errors.yaml", "facts/phrases.yaml", "facts/gpus.yaml"}
    assert {name for name in found if "/own-" not in name} == tables | catalogs


def test_a_folder_that_is_none(tmp_path: Path) -> None:
    assert check(tmp_path / "none") == [Problem(str(tmp_path / "none"), 0, "", Message("fault.no_folder"))]


# --- patterns ---------------------------------------------------------------------------------------------------------

SPEC = TypeSpec(
    "t",
    "observed",
    {"n": FieldSpec("n", "int"), "b": FieldSpec("b", "bool"), "e": FieldSpec("e", "enum", ("x", "y", "z"))},
)


def made_of(*parts: tuple[str, str, object]) -> Iterator[Test]:
    for field, op, value in parts:
        yield Test(field, op, value)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("parts", "field"),
    [
        ([("n", "eq", 1), ("n", "eq", 2)], "n"),
        ([("n", "eq", 1), ("n", "eq", 1)], None),
        ([("n", "eq", 1), ("n", "eq", "1")], "n"),
        ([("n", "eq", 1), ("b", "eq", True)], None),
        ([("n", "lt", 3), ("n", "gt", 3)], "n"),
        ([("n", "lt", 3), ("n", "ge", 3)], "n"),
        ([("n", "le", 3), ("n", "ge", 3)], None),
        ([("n", "le", 3), ("n", "ge", 3), ("n", "ne", 3)], "n"),
        ([("n", "lt", 5), ("n", "gt", 1), ("n", "not_in", (2, 3, 4))], "n"),
        ([("n", "lt", 5), ("n", "gt", 1), ("n", "not_in", (2, 4))], None),
        ([("n", "gt", 5), ("n", "not_in", (6, 7, 8))], None),
        ([("n", "eq", 4), ("n", "lt", 4)], "n"),
        ([("n", "in", (1, 9)), ("n", "lt", 1)], "n"),
        ([("n", "in", (1, 9)), ("n", "lt", 2)], None),
        ([("n", "in", (1, 9)), ("n", "not_in", (9, 1))], "n"),
        ([("n", "ne", 1), ("n", "ne", 2), ("n", "known", True)], None),
        ([("b", "ne", True), ("b", "ne", False)], "b"),
        ([("b", "ne", True)], None),
        ([("e", "ne", "x"), ("e", "not_in", ("y", "z"))], "e"),
        ([("e", "ne", "x"), ("e", "ne", "y")], None),
        ([("name__product", "eq", "a"), ("name__product", "eq", "b")], "name"),
        ([], None),
    ],
)
def test_contradictions_of_tests(parts: list[tuple[str, str, object]], field: str | None) -> None:
    assert contradiction(Pattern("a", "t", tuple(made_of(*parts))), SPEC) == field


@pytest.mark.parametrize(
    ("joins", "field"),
    [
        ([("n", "lt", "x", "n"), ("n", "gt", "x", "n")], "n"),
        ([("n", "le", "x", "n"), ("n", "ge", "x", "n")], None),
        ([("n", "le", "x", "n"), ("n", "ge", "x", "n"), ("n", "ne", "x", "n")], "n"),
        ([("n", "eq", "x", "n"), ("n", "ne", "x", "n")], "n"),
        ([("n", "lt", "x", "n"), ("n", "gt", "y", "n")], None),
        ([("n", "lt", "x", "n"), ("n", "gt", "x", "m")], None),
    ],
)
def test_contradictions_of_joins(joins: list[tuple[str, str, str, str]], field: str | None) -> None:
    assert contradiction(Pattern("a", "t", (), tuple(Join(*j) for j in joins)), SPEC) == field


def a_rule(name: str, aliases: str, *, op: str = "lt", word: str = "weak", backwards: bool = False) -> Rule:
    first, second, third = tuple(aliases)
    one = Pattern(first, "t", (Test("n", "eq", 1), Test("b", "eq", True)))
    two = Pattern(second, "u", (Test("n", "in", (2, 1)),), (Join("m", op, first, "m"),))
    three = Pattern(third, "t", (), (Join("m", "eq", second, "m"),), negated=True)
    if backwards:
        one = Pattern(first, "t", one.tests[::-1])
        two = Pattern(second, "u", (Test("n", "in", (1, 2)),), two.joins)
    fields: dict[str, Scalar | Ref] = {"cause": "c", "word": word, "rule": name, "about": Ref(second, "m")}
    return Rule(name, (one, two, three), (Conclusion("evidence", fields),), name)


def test_repeated_rules() -> None:
    base = a_rule("a", "xyz")
    same = a_rule("b", "zxy", backwards=True)
    others = [
        a_rule("c", "xyz", op="le"),
        a_rule("d", "xyz", word="strong"),
        Rule("e", base.patterns[:2], base.conclusions),
    ]
    assert list(repeated([base, *others, same])) == [(base, same)]


@pytest.mark.parametrize(
    ("pattern", "fault"),
    [
        ("plain", None),
        (r"(?i)any case", None),
        (r"is \(?(?P<sm>[0-9]+)\)? - \d++", REGEX),
        (r"is \(?(?P<sm>[0-9]+)\)?\+", None),
        (r"(?:a|b)*?c", None),
        (r"a(?!b)", REGEX),
        (r"(a)\1", REGEX),
        (r"(?P<a>x)(?P=a)", REGEX),
        (r"[", "no valid pattern: unterminated character set at position 0"),
        (r"a{1,2000}", "RE2 does not take it: invalid repetition size: {1,2000}"),
    ],
)
def test_patterns_that_every_engine_reads(pattern: str, fault: str | None) -> None:
    if fault and fault.startswith("RE2"):
        pytest.importorskip("re2")
    found = regex_fault(pattern)
    assert (found and str(found)) == fault
