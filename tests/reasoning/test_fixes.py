from __future__ import annotations

import shlex

import pytest
from gpurules.facts import Fact, Provenance, Scalar
from gpurules.knowledge.loader import load_knowledge
from gpurules.reasoning.diagnosis import Diagnosis
from gpurules.reasoning.session import Session, fill
from gpurules.report.model import Report
from gpurules.report.quoting import quoted
from hypothesis import given
from hypothesis import strategies as st

KNOWLEDGE = load_knowledge()


def report(*facts: tuple[str, dict[str, Scalar]], lang: str = "en") -> Report:
    given_ = [Fact(t, f, (Provenance("report", "paste.txt", i),)) for i, (t, f) in enumerate(facts, 1)]
    return Diagnosis(Session(KNOWLEDGE, given_), lang).report()


LINUX: tuple[str, dict[str, Scalar]] = ("os", {"family": "linux", "machine": "x86_64"})


def driver(version: str) -> tuple[str, dict[str, Scalar]]:
    return "driver", {"vendor": "nvidia", "version": version}


def gpu(name: str, index: int = 0) -> tuple[str, dict[str, Scalar]]:
    return "gpu", {"index": index, "name": name}


@given(st.lists(st.text(st.characters(exclude_categories=("Cs", "Cc")), min_size=1), min_size=1))
def test_a_quoted_command_reads_back_as_its_words(words: list[str]) -> None:
    assert shlex.split(quoted(words, "any")) == words


@pytest.mark.parametrize(
    ("word", "expected"), [("torch==2.6.0+cu124", "torch==2.6.0+cu124"), ("a b", "'a b'"), ("it's; rm", "'it''s; rm'")]
)
def test_powershell_quoting(word: str, expected: str) -> None:
    assert quoted(["pip", word], "windows") == f"pip {expected}"


def test_templates_fill_fields_parts_and_capabilities_and_show_what_is_unknown() -> None:
    bound = {"g": {"sm": 89, "name__label": "T4"}}
    assert fill("{g.name.label} {g.sm|cc} sm_{g.sm} {g.vram}", bound) == "T4 8.9 sm_89 ?"


def test_a_wheel_without_kernels_is_cured_by_one_that_has_them_and_fits_the_driver() -> None:
    made = report(LINUX, gpu("NVIDIA GeForce RTX 5080"), driver("570.86.16"), ("torch", {"version": "2.5.1+cu124"}))
    assert [(f.cause, f.severity) for f in made.findings] == [("wheel_missing_new_arch", "error")]
    fix = made.fixes[0]
    assert (fix.kind, fix.action, fix.verified) == ("cure", "install_torch_build", "simulated")
    assert fix.packages == {"torch": "==2.13.0+cu129"}
    assert fix.steps[0].command == "pip install torch==2.13.0+cu129 --index-url https://download.pytorch.org/whl/cu129"
    assert (
        fix.steps[1].command == "uv pip install torch==2.13.0+cu129 --index-url https://download.pytorch.org/whl/cu129"
    )


def test_companions_that_are_installed_come_along() -> None:
    packages = [
        ("package", {"name": n, "version": v, "manager": "pip"})
        for n, v in (("torchvision", "0.20.1"), ("torchaudio", "2.5.1"))
    ]
    made = report(
        LINUX, gpu("NVIDIA GeForce RTX 5080"), driver("570.86.16"), ("torch", {"version": "2.5.1+cu124"}), *packages
    )
    assert made.fixes[0].packages == {
        "torch": "==2.13.0+cu129",
        "torchvision": "==0.28.0+cu129",
        "torchaudio": "==2.11.0",
    }


def test_an_old_driver_is_offered_both_ways_the_driver_first() -> None:
    made = report(LINUX, gpu("Tesla T4"), driver("535.104.05"), ("torch", {"version": "2.11.0+cu130", "cuda": "13.0"}))
    assert [f.cause for f in made.findings] == ["driver_too_old_for_wheel"]
    assert [(f.action, f.driver_at_least, f.index_url) for f in made.fixes] == [
        ("upgrade_driver", "580", None),
        ("install_torch_build", None, "https://download.pytorch.org/whl/cu126"),
    ]
    assert {f.verified for f in made.fixes} == {"simulated"}


def test_a_driver_that_dropped_the_gpu_gets_its_last_branch_back() -> None:
    made = report(LINUX, gpu("NVIDIA GeForce GTX 1080 Ti"), driver("595.71.05"), ("torch", {"version": "2.14.1+cu126"}))
    assert [f.cause for f in made.findings] == ["driver_branch_dropped_gpu"]
    assert [(f.action, f.driver_at_least, f.driver_below) for f in made.fixes] == [
        ("pin_legacy_driver_branch", "580", "590")
    ]


def test_a_healthy_machine_gets_a_clean_bill_in_both_languages() -> None:
    facts = (LINUX, gpu("NVIDIA GeForce RTX 4090"), driver("570.133.20"), ("torch", {"version": "2.13.0+cu129"}))
    assert (report(*facts).verdict, [f.cause for f in report(*facts).findings]) == ("ok", ["none_healthy"])
    assert (
        report(*facts, lang="zh").findings[0].title
        == "GeForce RTX 4090、驱动 570.133.20 与 torch 2.13.0+cu129 相互匹配"
    )


def test_an_error_that_no_rule_covers_is_unknown_and_never_healthy() -> None:
    facts = (LINUX, gpu("NVIDIA GeForce RTX 4090"), driver("570.133.20"), ("torch", {"version": "2.13.0+cu129"}))
    made = report(*facts, ("error", {"kind": "cuda_715", "text": "CUDA error: an illegal instruction was encountered"}))
    assert (made.verdict, made.findings) == ("unknown", ())


def test_every_derivation_ends_in_facts_with_a_place() -> None:
    made = report(LINUX, gpu("NVIDIA GeForce RTX 5080"), driver("570.86.16"), ("torch", {"version": "2.5.1+cu124"}))
    derived = {d.fact: d for d in made.derivations}
    for view in made.facts:
        assert view.provenance or view.id in derived
    for finding in made.findings:
        assert finding.evidence
        assert all(e in derived for e in finding.evidence)


def package(name: str, version: str) -> tuple[str, dict[str, Scalar]]:
    return "package", {"name": name, "version": version, "manager": "pip"}


@pytest.mark.parametrize(
    ("name", "version", "cause", "action", "packages"),
    [
        ("xformers", "0.0.30", "extension_abi_mismatch", "align_extension_with_torch", {"xformers": "==0.0.29.post3"}),
        ("vllm", "0.9.1", "extension_abi_mismatch", "align_extension_with_torch", {"vllm": "==0.8.5"}),
        ("bitsandbytes", "0.50.1", None, None, None),
        ("gptqmodel", "7.0.0", "torch_companion_mismatch", "align_extension_with_torch", {"gptqmodel": "==2.2.0"}),
        (
            *("flash-attn", "2.7.4+cu12torch2.4cxx11abiFALSE", "extension_abi_mismatch"),
            *("use_prebuilt_wheel", {"flash-attn": "==2.8.3.post1"}),
        ),
    ],
)
def test_an_add_on_package_of_another_torch_is_cured_by_the_release_that_belongs(
    name: str, version: str, cause: str | None, action: str | None, packages: dict[str, str] | None
) -> None:
    made = report(LINUX, gpu("NVIDIA A100-SXM4-80GB"), ("torch", {"version": "2.6.0+cu124"}), package(name, version))
    faults = [f.cause for f in made.findings if f.severity != "info"]
    assert faults == ([cause] if cause else [])
    if cause:
        best = made.fixes[0]
        assert (best.action, best.packages, best.verified) == (action, packages, "simulated")


def test_a_package_that_the_gpu_is_too_old_for_is_not_updated_but_done_without() -> None:
    made = report(
        LINUX,
        gpu("Tesla T4"),
        ("torch", {"version": "2.6.0+cu124"}),
        package("flash-attn", "2.7.4+cu12torch2.4cxx11abiFALSE"),
    )
    assert {f.action for f in made.fixes if f.kind == "cure"} == {"use_alternative_package"}
