"""Newer catalogs, own rows, new rules, mirrors, and what reports say of the knowledge that they rest on."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from gpurules import pipeline
from gpurules.errors import InputError
from gpurules.knowledge.loader import load_knowledge
from gpurules.knowledge.pages import pages, stale
from gpurules.knowledge.problems import KnowledgeError

CHECKOUT = Path(__file__).resolve().parents[2]
GFX = (CHECKOUT / "knowledge" / "facts" / "gfx_targets.yaml").read_text(encoding="utf-8")
MACHINE = b"gpus: RTX 5090\ndriver: 580.95.05\nos: Linux x86_64\ntorch: 2.6.0+cu124\n"
TODAY = date(2026, 11, 30)


def inputs(facts: bytes = MACHINE, **options: object) -> pipeline.Inputs:
    return pipeline.Inputs(facts=[("machine.yaml", facts)], **{"today": TODAY, **options})  # type: ignore[arg-type]


def test_a_newer_catalog_is_compared_row_by_row() -> None:
    text = GFX.replace("gfx: gfx803, integrated: false", "gfx: gfx804, integrated: false")
    text = text.replace("gfx: gfx900, integrated: false", "gfx: gfx900, integrated: true")
    update = pipeline.rules_update("new.yaml", text.replace("2026-11-30", "2026-11-29").encode())
    assert (update.catalog, update.older, update.problems) == ("gfx_targets", True, ())
    assert update.added == ("gfx_target gfx804",)
    assert update.removed == ("gfx_target gfx803",)
    assert update.changed == ("gfx_target gfx900",)


def test_a_catalog_at_fault_is_named_with_file_line_and_field() -> None:
    update = pipeline.rules_update("new.yaml", GFX.replace("integrated: false", "integratd: false", 1).encode())
    assert any("facts/gfx_targets.yaml" in str(p) and "integratd" in str(p) for p in update.problems)
    with pytest.raises(KnowledgeError, match="must name a catalog"):
        pipeline.rules_update("new.yaml", b"catalog: gpu\n")


def test_own_rows_lie_over_the_shipped_ones_and_the_report_says_so(tmp_path: Path) -> None:
    (tmp_path / "facts").mkdir()
    head = GFX[GFX.index("catalog:") : GFX.index("rows:")].replace("retrieved:", "over: shipped\nretrieved:")
    row = "rows:\n  - {gfx: gfx803, integrated: true, source: llvm, confidence: inferred}\n"
    (tmp_path / "facts" / "gfx_targets.yaml").write_text(head + row, encoding="utf-8")
    own = {f["gfx"]: f["integrated"] for t, f in load_knowledge(tmp_path).static if t == "gfx_target"}
    shipped = {f["gfx"]: f["integrated"] for t, f in load_knowledge().static if t == "gfx_target"}
    assert own == {**shipped, "gfx803": True}
    report = pipeline.diagnose(inputs(knowledge=tmp_path))
    assert report.notes == (f"Own knowledge of {tmp_path.name} is in use: facts/gfx_targets.yaml",)


def test_a_shipped_catalog_cannot_lie_over_itself(tmp_path: Path) -> None:
    (tmp_path / "facts").mkdir()
    text = GFX.replace("retrieved:", "over: mine\nretrieved:")
    (tmp_path / "facts" / "gfx_targets.yaml").write_text(text, encoding="utf-8")
    assert any('must be "shipped"' in fault for fault in pipeline.rules_check(tmp_path))


@pytest.mark.parametrize(
    ("facts", "note"),
    [
        (MACHINE.replace(b"2.6.0+cu124", b"2.99.0+cu132"), "torch 2.99.0+cu132 is newer than this knowledge"),
        (MACHINE.replace(b"580.95.05", b"640.95.05"), "Driver 640.95.05 is newer than this knowledge"),
    ],
)
def test_a_version_beyond_the_knowledge_is_said(facts: bytes, note: str) -> None:
    notes = pipeline.diagnose(inputs(facts)).notes or ()
    assert [n for n in notes if n.startswith(note)] == list(notes) != []
    assert any(n.startswith(note) for n in pipeline.recommend(inputs(facts)).notes or ())


def test_catalogs_that_are_old_are_said_by_name() -> None:
    assert pipeline.diagnose(inputs(today=date(2027, 5, 29))).notes is None
    (note,) = pipeline.diagnose(inputs(today=date(2027, 5, 30))).notes or ()
    assert note.startswith("The answer rests on ")
    assert "gpus" in note
    assert "181 days old" in note


def test_a_mirror_stands_beside_the_original() -> None:
    report = pipeline.diagnose(inputs(mirror="aliyun"))
    (fix,) = [f for f in report.fixes if f.index_url]
    canonical = fix.index_url or ""
    assert canonical.startswith("https://download.pytorch.org/whl/")
    assert fix.mirror_url == f"https://mirrors.aliyun.com/pytorch-wheels/{canonical.rpartition('/')[2]}/"
    (step,) = [s for s in fix.steps if s.tool == "pip, aliyun"]
    assert (step.argv or ())[-2:] == ("--find-links", fix.mirror_url)
    result = pipeline.recommend(inputs(mirror="nju"))
    assert result.mirror_url == f"https://mirror.nju.edu.cn/pytorch/whl/{result.index}"
    assert (result.commands or {})["pip, nju"].endswith(f"--index-url {result.mirror_url}")


def test_an_unknown_mirror_names_those_known() -> None:
    with pytest.raises(InputError, match='did you mean "nju"'):
        pipeline.diagnose(inputs(mirror="njuu"))


@pytest.mark.parametrize(
    "condition", ["os.family=linux", "os.wsl=true", "driver.version=470.10", "gpu.ecc_uncorrected=3"]
)
def test_a_new_rule_passes_the_checks_and_its_examples(tmp_path: Path, condition: str) -> None:
    wanted = {"area": "torch", "condition": condition, "cause": "cpu_only_wheel", "evidence": "strong"}
    path = pipeline.rules_new(tmp_path, TODAY, id="a-new-one", source="https://pytorch.org/", **wanted)
    assert path == tmp_path / "rules" / "torch" / "a-new-one.yaml"
    assert pipeline.rules_check(tmp_path) == []
    results = pipeline.rules_test(tmp_path, ["a-new-one"])
    assert [r.example.partition("[")[0] for r in results if r.ok] == [r.example.partition("[")[0] for r in results]
    assert len(results) == 3
    with pytest.raises(InputError, match=r"is there already|there is a rule"):
        pipeline.rules_new(tmp_path, TODAY, id="a-new-one", source="https://pytorch.org/", **wanted)


def test_wrong_names_of_a_new_rule_are_told(tmp_path: Path) -> None:
    with pytest.raises(KnowledgeError) as error:
        pipeline.rules_new(
            tmp_path, TODAY, id="Bad Id", area="torch", condition="os.famly=linux", cause="cpu_only", evidence="strong",
            source="https://pytorch.org/",
        )  # fmt: skip
    assert [p.file for p in error.value.problems] == ["--cause", "--when", "ID"]


def test_the_pages_of_the_rules_are_current() -> None:
    assert stale(load_knowledge(), CHECKOUT / "docs" / "rules") == [], "python -m gpurules.knowledge.pages docs/rules"


def test_every_rule_has_its_section() -> None:
    knowledge = load_knowledge()
    text = "\n".join(pages(knowledge).values())
    assert all(f"\n## {rule_id}\n" in text for rule_id in knowledge.rules)
