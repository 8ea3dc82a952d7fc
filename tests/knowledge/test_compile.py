"""The rule language: what patterns, tests, references and conclusions compile to, and every fault with its place."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from gpurules.engine.ir import Conclusion, Join, Pattern, Ref, Rule, Test
from gpurules.knowledge.compile import Compiler, LanguageErrors
from gpurules.knowledge.problems import Problems
from gpurules.knowledge.versions import parse_version
from gpurules.knowledge.vocabulary import load_vocabulary
from gpurules.knowledge.yamlnodes import parse

VOCABULARY = """\
types:
  card:
    kind: observed
    domain: cards
    fields:
      name: {type: gpu_name}
      sm: {type: sm}
      slots: {type: int}
      shown: {type: bool}
      maker: {type: enum, values: [nvidia, amd]}
  driver: {kind: observed, domain: driver, fields: {version: {type: version}, note: {type: str}}}
  coverage: {kind: observed, domain: coverage, fields: {domain: {type: str}, complete: {type: bool}}}
  release: {kind: catalog, fields: {cuda: {type: version}, driver: {type: version}, first_sm: {type: sm}}}
  fit:
    kind: derived
    closed_by: rules
    fields: {name: {type: str}, version: {type: version}, slots: {type: int}, sm: {type: sm}}
  evidence:
    kind: derived
    closed_by: rules
    fields: {cause: {type: str}, word: {type: str}, rule: {type: str}, about: {type: str}}
  fix_offer: {kind: derived, closed_by: fixes, fields: {fix: {type: str}, cause: {type: str}}}
  fix_option: {kind: derived, closed_by: fixes, fields: {fix: {type: str}, cause: {type: str}, option: {type: str}}}
  symptom: {kind: derived, closed_by: symptoms, fields: {kind: {type: str}}}
"""


@pytest.fixture(name="compiler", scope="module")
def small_compiler(tmp_path_factory: pytest.TempPathFactory) -> Compiler:
    path: Path = tmp_path_factory.mktemp("vocabulary") / "vocabulary.yaml"
    path.write_text(VOCABULARY, encoding="utf-8")
    problems = Problems()
    vocabulary = load_vocabulary(path, problems)
    assert problems.found == []
    return Compiler(vocabulary)


def data(text: str) -> dict[str, Any]:
    problems = Problems()
    root = parse(text, "r.yaml", problems)
    assert root is not None
    assert problems.found == []
    return {"id": "r", **root.plain()}


def order(version: str) -> int:
    parts = parse_version(version)
    assert parts is not None
    return parts.order


def rules(compiler: Compiler, when: str, conclude: str = "{cause: c, evidence: weak}") -> list[Rule]:
    return compiler.rule(data(f"when: {when}\nconclude: [{conclude}]"))


def faults(compiler: Compiler, when: str, conclude: str = "{cause: c, evidence: weak}") -> list[str]:
    with pytest.raises(LanguageErrors) as caught:
        rules(compiler, when, conclude)
    return sorted({f"{fault.field}: {fault}" for fault in caught.value.faults})


def test_a_rule(compiler: Compiler) -> None:
    found = rules(
        compiler,
        "{n: {not: {release: {first_sm: {above: $c.sm}}}}, r: {release: {driver: {at_most: $d.version}}},"
        " c: {card: {maker: nvidia}}, d: {driver: {}}}",
        "{cause: too_old, evidence: decisive, about: $c.name.label}",
    )
    assert found == [
        Rule(
            "r",
            (
                Pattern("c", "card", (Test("maker", "eq", "nvidia"),)),
                Pattern("d", "driver"),
                Pattern("r", "release", (), (Join("driver__n", "le", "d", "version__n"),)),
                Pattern("n", "release", (), (Join("first_sm", "gt", "c", "sm"),), negated=True),
            ),
            (
                Conclusion(
                    "evidence",
                    {"cause": "too_old", "word": "decisive", "rule": "r", "about": Ref("c", "name__label")},
                ),
            ),
            "r",
        )
    ]


@pytest.mark.parametrize(
    ("conditions", "tests"),
    [
        ("card: {sm: 8.9}", [Test("sm", "eq", 89)]),
        ("card: {sm: {at_least: 7.5, below: 12.0}}", [Test("sm", "ge", 75), Test("sm", "lt", 120)]),
        ("card: {sm.major: 8}", [Test("sm__major", "eq", 8)]),
        ("card: {slots: {above: 1, not: 3}}", [Test("slots", "gt", 1), Test("slots", "ne", 3)]),
        ("card: {shown: true}", [Test("shown", "eq", True)]),
        ("card: {maker: {any_of: [nvidia, amd]}}", [Test("maker", "in", ("nvidia", "amd"))]),
        ("card: {maker: {none_of: [amd]}}", [Test("maker", "not_in", ("amd",))]),
        ("card: {name: {known: true}}", [Test("name", "known", True)]),
        ("card: {name.product: Tesla T4}", [Test("name__product", "eq", "Tesla T4")]),
        ("driver: {version: {at_most: 570.86.10}}", [Test("version__n", "le", order("570.86.10"))]),
        ("driver: {version: {known: true}}", [Test("version__n", "known", True)]),
        ("driver: {version.local: 12}", [Test("version__local", "eq", "12")]),
        ("driver: {version.release: {below: 2.10}}", [Test("version__release__n", "lt", order("2.10"))]),
        ("driver: {note: 12}", [Test("note", "eq", "12")]),
        ("driver: {}", []),
    ],
)
def test_tests(compiler: Compiler, conditions: str, tests: list[Test]) -> None:
    (rule,) = rules(compiler, f"{{a: {{{conditions}}}}}")
    assert list(rule.patterns[0].tests) == tests


def test_any_of_makes_one_rule_a_combination(compiler: Compiler) -> None:
    found = rules(
        compiler,
        "{d: {driver: {}}, any_of: [{c: {card: {slots: 1}}}, {c: {card: {slots: 2}}, e: {release: {}}}],"
        " any_of_b: [{f: {card: {shown: true}}}, {f: {card: {shown: false}}}]}",
    )
    assert [(r.id, r.group) for r in found] == [("r", "r"), ("r#2", "r"), ("r#3", "r"), ("r#4", "r")]
    assert [[p.alias for p in r.patterns] for r in found] == [list("dcf"), list("dcf"), list("dcef"), list("dcef")]
    assert [r.patterns[-1].tests[0].value for r in found] == [True, False, True, False]


def test_a_copied_version_brings_its_parts(compiler: Compiler) -> None:
    (rule,) = rules(
        compiler, "{d: {driver: {}}}", "{fact: {fit: {name: here, version: $d.version, slots: 2, sm: 8.6}}}"
    )
    parts = ("public", "local", "release", "major", "built_for", "n", "release__n", "built_for__n")
    assert rule.conclusions[0].fields == {
        "name": "here",
        "version": Ref("d", "version"),
        **{f"version__{p}": Ref("d", f"version__{p}") for p in parts},
        "slots": 2,
        "sm": 86,
        "sm__major": 8,
        "sm__minor": 6,
    }


def test_a_fix(compiler: Compiler) -> None:
    fix = data("causes: [b, a]\nwhen: {d: {driver: {}}}\noptional: {c: {card: {slots: 1}}}")
    lead = Pattern(
        "e_", "evidence", (Test("cause", "in", ("a", "b")), Test("word", "in", ("decisive", "strong", "weak")))
    )
    cause = Ref("e_", "cause")
    assert compiler.fix(fix) == [
        Rule(
            "fix/r", (lead, Pattern("d", "driver")), (Conclusion("fix_offer", {"fix": "r", "cause": cause}),), "fix/r"
        ),
        Rule(
            "fix/r?c",
            (lead, Pattern("d", "driver"), Pattern("c", "card", (Test("slots", "eq", 1),))),
            (Conclusion("fix_option", {"fix": "r", "cause": cause, "option": "c"}),),
            "fix/r",
        ),
    ]
    (plain,) = compiler.fix(data("causes: [a]"))
    assert plain.patterns[0].tests[0] == Test("cause", "eq", "a")


def test_a_symptom(compiler: Compiler) -> None:
    (rule,) = compiler.symptom("s", {"errors": ["y", "x"], "statements": []})
    assert rule == Rule(
        "symptom/s/error",
        (Pattern("s", "error", (Test("kind", "in", ("x", "y")),)),),
        (Conclusion("symptom", {"kind": "s"}),),
        "symptom/s",
    )


@pytest.mark.parametrize(
    ("when", "expected"),
    [
        ("{c: {crad: {}}}", ['when.c: unknown type "crad"; did you mean "card"?']),
        ("{c: {card: {}, driver: {}}}", ["when.c: a pattern is {type: {field: test}}"]),
        ("{c: card}", ["when.c: a pattern is {type: {field: test}}"]),
        ("{c: {card: [sm]}}", ["when.c.card: must map fields to tests"]),
        ("{c: {not: {crad: {}}}}", ['when.c.not: unknown type "crad"; did you mean "card"?']),
        ("{c: {card: {slto: 1}}}", ['when.c.card.slto: unknown field "slto" of card; did you mean "slots"?']),
        ("{c: {card: {sm.mayor: 8}}}", ['when.c.card.sm.mayor: "sm" has no part "mayor"; did you mean "major"?']),
        ("{c: {card: {sm.major: eight}}}", ['when.c.card.sm.major: "sm.major" must be a whole number']),
        ("{c: {card: {maker: intel}}}", ['when.c.card.maker: "maker" must be one of nvidia, amd']),
        ("{c: {card: {maker: {above: amd}}}}", ["when.c.card.maker: enum has no order"]),
        ("{c: {card: {name: {below: b}}}}", ["when.c.card.name: gpu_name has no order"]),
        ("{c: {card: {slots: {bellow: 1}}}}", ['when.c.card.slots: unknown test "bellow"; did you mean "below"?']),
        ("{c: {card: {slots: {any_of: 1}}}}", ["when.c.card.slots: `any_of` takes a list of values"]),
        ("{c: {card: {slots: {none_of: []}}}}", ["when.c.card.slots: `none_of` takes a list of values"]),
        (
            "{c: {card: {slots: {known: false}}}}",
            ["when.c.card.slots: `known` takes true only: what is unknown cannot be tested for"],
        ),
        ("{d: {driver: {version: newest}}}", ['when.d.driver.version: "version" must be a version']),
        ("{d: {driver: {note: $c}}}", ['when.d.driver.note: "$c" is no reference: write $alias.field, and only one']),
        (
            "{c: {card: {}}, d: {driver: {note: {any_of: [$c.name]}}}}",
            ['when.d.driver.note: "$c.name" is no reference: write $alias.field, and only one'],
        ),
        ("{c: {card: {sm: $b.sm}}, bb: {card: {}}}", ['when.c.card.sm: unknown alias "$b"; did you mean "bb"?']),
        (
            "{c: {card: {sm: $d.sm}}, d: {card: {sm: $c.sm}}}",
            ["when.c: references go in a circle"],
        ),
        (
            "{c: {card: {}}, n: {not: {card: {sm: $m.sm}}}, m: {not: {card: {}}}}",
            ['when.n.not.card.sm: unknown alias "$m"'],
        ),
        ("{c: {card: {}}, d: {driver: {version: $c.sm}}}", ["when.d.driver.version: compares version with sm"]),
        (
            "{c: {card: {}}, d: {driver: {note: $c.nmae}}}",
            ['when.d.driver.note: unknown field "nmae" of card; did you mean "name"?'],
        ),
        ("{C: {card: {}}}", ["when.C: an alias is lower case with underscores"]),
        ("{c: {card: {}}, any_of: [{c: {driver: {}}}]}", ["when.any_of[0].c: the alias is used twice"]),
        ("{any_of: {c: {card: {}}}}", ["when.any_of: must be a list of patterns by alias"]),
        ("{any_of: []}", ["when.any_of: must be a list of patterns by alias"]),
        (
            "{any_of: [{c: {card: {slots: 1}}}, {c: {card: {slots: two}}}]}",
            ['when.any_of[1].c.card.slots: "slots" must be a whole number'],
        ),
    ],
)
def test_faults_of_patterns(compiler: Compiler, when: str, expected: list[str]) -> None:
    assert faults(compiler, when) == expected


@pytest.mark.parametrize(
    ("conclude", "expected"),
    [
        ("{fact: {card: {slots: 1}}}", 'conclude[0].fact.card: "card" is not a derived type'),
        ("{fact: {fti: {slots: 1}}}", 'conclude[0].fact.fti: "fti" is not a derived type; did you mean "fit"?'),
        ("{fact: {fit: {slots: one}}}", 'conclude[0].fact.fit.slots: "slots" must be a whole number'),
        ("{fact: {fit: {slot: 1}}}", 'conclude[0].fact.fit.slot: unknown field "slot" of fit; did you mean "slots"?'),
        ("{fact: {fit: {name: $x.name}}}", 'conclude[0].fact.fit.name: unknown alias "$x"'),
        ("{fact: {fit: {name: $c}}}", 'conclude[0].fact.fit.name: "$c" is no reference: write $alias.field'),
        (
            "{fact: {fit: {slots: $c.name}}}",
            "conclude[0].fact.fit.slots: a field of type int cannot be filled from gpu_name",
        ),
        ("{fact: {fit: {name: $c.slots}}}", "conclude[0].fact.fit.name: a field of type str cannot be filled from int"),
        (
            "{fact: {fit: {version: $c.name}}}",
            "conclude[0].fact.fit.version: a field of type version cannot be filled from gpu_name",
        ),
        ("{fact: {fit: {slots: 1}}, cause: c}", "conclude[0]: concludes either one fact or evidence for a cause"),
        ("{cause: c}", "conclude[0]: needs `fact`, or `cause` with `evidence`"),
        ("{cause: c, evidence: weak, about: $x.name}", 'conclude[0].about: unknown alias "$x"'),
    ],
)
def test_faults_of_conclusions(compiler: Compiler, conclude: str, expected: str) -> None:
    assert faults(compiler, "{c: {card: {}}}", conclude) == [expected]


def test_every_fault_at_once_and_none_that_only_follows(compiler: Compiler) -> None:
    found = faults(
        compiler,
        "{c: {crad: {}}, d: {driver: {version: $c.sm, note: {below: x}}}, r: {release: {cuda: new, driver: old}},"
        " n: {not: {card: {slots: many, sm: $c.sm}}}}",
        "{fact: {fit: {name: $c.name, slots: many}}}",
    )
    assert found == [
        'conclude[0].fact.fit.slots: "slots" must be a whole number',
        'when.c: unknown type "crad"; did you mean "card"?',
        "when.d.driver.note: str has no order",
        'when.n.not.card.slots: "slots" must be a whole number',
        'when.r.release.cuda: "cuda" must be a version',
        'when.r.release.driver: "driver" must be a version',
    ]


def test_the_alias_of_the_evidence_is_taken(compiler: Compiler) -> None:
    with pytest.raises(LanguageErrors, match=r"when\.e_: the alias is used twice"):
        compiler.fix(data("causes: [a]\nwhen: {e_: {driver: {}}}"))
