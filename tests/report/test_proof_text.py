from __future__ import annotations

import pytest
from gpurules.report.layout import Look, display_width
from gpurules.report.model import Lang, ProofNode, Source
from gpurules.report.proof_text import render_proofs

GUIDE = "https://docs.nvidia.com/cuda/cuda-c-programming-guide/"
PROOF = ProofNode(
    "torch 2.6.0+cu124 cannot run on RTX 5090",
    where="torch-build-lacks-kernels",
    children=(
        ProofNode("torch is 2.6.0+cu124", where="issue.txt:3"),
        ProofNode(
            "no code in 2.6.0+cu124 runs on sm_120",
            sources=(GUIDE,),
            children=(
                ProofNode(
                    "the build holds code for sm_50, sm_60, sm_70, sm_75, sm_80, sm_86 and sm_90", "issue.txt:41"
                ),
                ProofNode("the RTX 5090 is sm_120", where="catalog gpus"),
            ),
        ),
    ),
)


def test_a_proof() -> None:
    assert (
        render_proofs([PROOF])
        == """\
torch 2.6.0+cu124 cannot run on RTX 5090               torch-build-lacks-kernels
├─ torch is 2.6.0+cu124                                              issue.txt:3
└─ no code in 2.6.0+cu124 runs on sm_120 [1]
   ├─ the build holds code for sm_50, sm_60, sm_70, sm_75, sm_80,   issue.txt:41
   │  sm_86 and sm_90
   └─ the RTX 5090 is sm_120                                        catalog gpus

Sources:
  [1] https://docs.nvidia.com/cuda/cuda-c-programming-guide/
"""
    )


@pytest.mark.parametrize(
    ("said", "lang", "line"),
    [
        ({"kind": "vendor", "retrieved": "2026-11-30"}, "en", f"  [1] {GUIDE} (official docs, 2026-11-30)"),
        ({"kind": "vendor", "retrieved": "2026-11-30"}, "zh", f"  [1] {GUIDE}（官方文档，2026-11-30）"),
        ({"kind": "source_code", "retrieved": "2026-11-30"}, "en", f"  [1] {GUIDE} (source code, 2026-11-30)"),
        (
            {"kind": "report", "retrieved": "2026-11-30", "opened": False},
            "en",
            f"  [1] {GUIDE} (public report, named, not opened)",
        ),
        ({"retrieved": "2026-11-30"}, "en", f"  [1] {GUIDE} (2026-11-30)"),
        ({"kind": "of another version"}, "en", f"  [1] {GUIDE}"),
    ],
)
def test_a_source_says_what_it_is_and_when_it_was_opened(said: dict[str, object], lang: Lang, line: str) -> None:
    page = Source.model_validate({"url": GUIDE, "title": "Guide", **said})
    assert render_proofs([PROOF], lang=lang, pages={GUIDE: page}).splitlines()[-1] == line


def test_a_proof_in_ascii_and_chinese() -> None:
    text = render_proofs([PROOF], lang="zh", look=Look(encoding="ascii"))
    assert "\n|- torch is 2.6.0+cu124" in text
    assert "\n`- no code in 2.6.0+cu124 runs on sm_120" in text
    assert render_proofs([PROOF], lang="zh").splitlines()[-2] == "来源："


@pytest.mark.parametrize("width", [40, 60, 80])
def test_proofs_fit_the_width(width: int) -> None:
    text = render_proofs([PROOF], look=Look(width=width))
    assert [line for line in text.splitlines() if display_width(line) > width and GUIDE not in line] == []


def test_deep_proofs_end_in_an_ellipsis_unless_everything_is_wanted() -> None:
    node = ProofNode("ground")
    for depth in range(40):
        node = ProofNode(f"step {depth}", children=(node,))
    assert render_proofs([node]).rstrip().endswith("└─ …")
    assert render_proofs([node], detail="all").rstrip().endswith("ground")


def test_what_was_read_does_not_control_the_terminal() -> None:
    assert render_proofs([ProofNode("a\x1b[2Jb", where="x\x07.txt:1")], look=Look(width=50)) == (
        "ab" + " " * 41 + "x.txt:1\n"
    )


def test_to_dict_leaves_out_what_is_empty() -> None:
    assert ProofNode("a", children=(ProofNode("b", "w", ("u",)),)).to_dict() == {
        "text": "a",
        "children": [{"text": "b", "where": "w", "sources": ["u"]}],
    }
