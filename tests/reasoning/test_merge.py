from __future__ import annotations

import pytest
from gpurules.facts import Fact, Provenance, Scalar
from gpurules.knowledge.loader import load_knowledge
from gpurules.reasoning.merge import merge

VOCABULARY = load_knowledge().vocabulary


def fact(type_: str, source: str, line: int | None = None, **fields: Scalar) -> Fact:
    return Fact(type_, fields, (Provenance("report", source, line),))


def said(facts: list[Fact]) -> list[tuple[str, dict[str, Scalar]]]:
    return [(f.type, dict(f.fields)) for f in merge(facts, VOCABULARY)]


def test_what_two_sources_say_of_one_gpu_becomes_one_fact_that_keeps_both_places() -> None:
    merged = merge(
        [
            fact("gpu", "env.txt", 13, index=0, name="NVIDIA GeForce RTX 4090"),
            fact("gpu", "smi.txt", 9, index=0, name="NVIDIA GeForce ...", vram_mib=24564),
        ],
        VOCABULARY,
    )
    assert [dict(f.fields) for f in merged] == [{"index": 0, "name": "NVIDIA GeForce RTX 4090", "vram_mib": 24564}]
    assert [(p.source, p.line, p.fields) for p in merged[0].provenance] == [
        ("env.txt", 13, ("index", "name")),
        ("smi.txt", 9, ("index", "name", "vram_mib")),
    ]


def test_two_gpus_stay_two() -> None:
    facts = [fact("gpu", "a", index=i, name="Tesla T4") for i in (0, 1)]
    assert said(facts) == [("gpu", {"index": 0, "name": "Tesla T4"}), ("gpu", {"index": 1, "name": "Tesla T4"})]


@pytest.mark.parametrize(
    ("first", "second", "kept"),
    [("2.6.0", "2.6.0+cu124", "2.6.0+cu124"), ("2.6.0+cu124", "2.6.0", "2.6.0+cu124"), ("2.6", "2.6.1", "2.6.1")],
)
def test_the_more_exact_of_two_agreeing_versions_is_kept(first: str, second: str, kept: str) -> None:
    assert said([fact("torch", "a", version=first), fact("torch", "b", version=second)]) == [
        ("torch", {"version": kept})
    ]


@pytest.mark.parametrize(
    ("first", "second"), [("2.6.0+cu124", "2.6.0+cu126"), ("2.6.1", "2.6.10"), ("1.12.1", "1.12.0")]
)
def test_contradicting_versions_stay_apart_and_are_named(first: str, second: str) -> None:
    low, high = sorted((first, second))
    assert said([fact("torch", "a", version=first), fact("torch", "b", version=second)]) == [
        ("torch", {"version": first}),
        ("torch", {"version": second}),
        ("conflict", {"subject": "torch", "field": "version", "first": low, "second": high}),
    ]


def test_readings_of_a_moment_are_no_contradiction() -> None:
    facts = [fact("gpu", "a", index=0, vram_used_mib=10), fact("gpu", "b", index=0, vram_used_mib=900)]
    assert said(facts) == [("gpu", {"index": 0, "vram_used_mib": 10})]


def test_packages_of_one_name_and_manager_with_two_versions_are_two_facts() -> None:
    facts = [fact("package", "a", name="torch", manager="pip", version=v) for v in ("2.6.0", "2.7.0")]
    assert [f[1]["version"] for f in said(facts)] == ["2.6.0", "2.7.0"]


def test_unknown_types_are_left_out() -> None:
    assert said([fact("no_such_type", "a", x=1)]) == []
