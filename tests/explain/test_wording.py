from __future__ import annotations

import re

import pytest
from gpurules.engine.ir import Pattern, Test
from gpurules.knowledge.versions import parse_version, version_text
from gpurules.reasoning.builds import BuildSpec
from gpurules.reasoning.sentences import Sayer

from .machines import knowledge

KNOWN = knowledge()


@pytest.mark.parametrize("name", KNOWN.sentences)
def test_sentences_name_fields_of_their_type_and_say_the_same_in_both_languages(name: str) -> None:
    entry, fields = KNOWN.sentences[name], KNOWN.vocabulary.types[name].fields
    assert set(entry["fields"]) <= set(fields)
    if "say" in entry:
        english, chinese = (sorted(re.findall(r"\{([a-z_][a-z0-9_]*)\}", entry["say"][lang])) for lang in ("en", "zh"))
        assert english == chinese
        assert set(english) <= set(fields)
        assert re.search("[一-鿿]", entry["noun"]["zh"] + entry["say"]["zh"])


def test_every_type_that_rules_look_at_or_conclude_has_a_noun() -> None:
    used = {p.type for r in KNOWN.ir for p in r.patterns}
    assert used - set(KNOWN.sentences) == set()


@pytest.mark.parametrize("name", KNOWN.changes)
def test_changes_are_typed(name: str) -> None:
    entry, types = KNOWN.changes[name], KNOWN.vocabulary.types
    for effects in (entry["effects"], *entry["choices"].values()):
        for effect in effects:
            ((type_name, fields),) = (effect.get("add") or effect.get("remove")).items()
            assert types[type_name].kind == "observed"
            assert set(fields) <= set(types[type_name].fields)
    for source in entry["values"]:
        assert {source["field"], *source["where"]} <= set(types[source["type"]].fields)
    if "field" in entry:
        type_name, _, field = entry["field"].partition(".")
        assert field in types[type_name].fields
    assert "risk" in entry or not entry["how_to"]


def test_a_fact_without_what_its_sentence_needs_is_said_by_its_fields() -> None:
    sayer = Sayer(KNOWN, "en")
    assert sayer.fact("driver", {"vendor": "nvidia", "version": "580.95.05"}) == "the nvidia driver is 580.95.05"
    assert sayer.fact("driver", {"version": "580.95.05"}) == "driver: version 580.95.05"
    assert sayer.fact("gpu_arch", {"name": "A", "sm": 120}) == "A has compute capability 12.0"
    assert Sayer(KNOWN, "zh").fact("torch", {"version": "2.6.0"}) == "torch 2.6.0"


def test_conditions_in_words() -> None:
    order = parse_version("580.95")
    assert order is not None
    pattern = Pattern("d", "driver", (Test("version__n", "lt", order.order), Test("vendor", "in", ("nvidia", "amd"))))
    assert Sayer(KNOWN, "en").wanted(pattern, {}) == "a GPU driver (version below 580.95, vendor one of nvidia, amd)"


@pytest.mark.parametrize("text", ["580", "12.4", "580.95.5", "2.13.1"])
def test_ordered_versions_are_read_back(text: str) -> None:
    parts = parse_version(text)
    assert parts is not None
    assert version_text(parts.order) == text


@pytest.mark.parametrize(
    ("text", "yes", "no"),
    [
        ("torch==2.15.0", ["2.15.0+cu132@linux-x86_64", "2.15.0+cpu@macos-arm64"], ["2.15.1+cu132@linux-x86_64"]),
        ("torch==2.15+cu130", ["2.15.0+cu130@linux-x86_64"], ["2.15.0+cu132@linux-x86_64", "2.1.5+cu130@linux-x86_64"]),
        ("torch>=2.15", ["2.15.0+cpu@linux-x86_64", "3.0.0+cu140@linux-x86_64"], ["2.14.1+cu126@linux-x86_64"]),
        ("2.1", ["2.1.2+cu118@linux-x86_64"], ["2.13.0+cu126@linux-x86_64"]),
        ("2.13.0+cu129@linux-x86_64", ["2.13.0+cu129@linux-x86_64"], ["2.13.0+cu129@windows-x86_64"]),
    ],
)
def test_builds_as_people_name_them(text: str, yes: list[str], no: list[str]) -> None:
    spec = BuildSpec.read(text)
    assert spec is not None
    assert [b for b in yes if not spec.names(b)] == []
    assert [b for b in no if spec.names(b)] == []


@pytest.mark.parametrize("text", ["numpy==2.0", "1", "cpu_only_wheel", "torch", "torch==new", ""])
def test_what_names_no_build(text: str) -> None:
    assert BuildSpec.read(text) is None
