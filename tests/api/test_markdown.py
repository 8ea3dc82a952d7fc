"""Markdown that is safe to post, judged by a CommonMark parser: prose holds nothing that a forge acts on."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import gpurules
import pytest
from gpurules.report.markdown import fence, prose, render_markdown
from gpurules.report.model import (
    Advice,
    Finding,
    Fix,
    FixPlan,
    Lang,
    NotChecked,
    PlanStep,
    Question,
    Reason,
    Report,
    Source,
    Step,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt
from markdown_it.token import Token

from .inputs import ISSUE

PARSER = MarkdownIt("commonmark").enable(["table", "strikethrough"])
# What forges act on in text outside code: mentions, references, addresses, commits, emoji, mathematics.
ACTIVE = re.compile(
    r"@\w|[#!%]\d|\bGH-\d|://|\bwww\.|\b(?=[a-f]*\d)[0-9a-f]{7,40}\b|:[a-z0-9+-]+:|\$|<!--|\[[ x]\]", re.IGNORECASE
)
INVISIBLE = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff]")
NASTY = [
    "ping @alice and @org/team",
    "see #12, owner/name#34, GH-56, !7 and %8",
    "<script>alert(1)</script> <img src=x>",
    "[click](http://evil.example) ![i](x)",
    "http://evil.example www.evil.example me@evil.example",
    "deadbeef1234567",
    "```\nbroken\n```",
    "~~~",
    "`a` ``b`` ```c",
    "*b* _i_ **bb** __ii__ ~~s~~",
    "# heading",
    "- list",
    "1. one",
    "> quote",
    "=====",
    "a | b",
    "$x^2$",
    ":tada: x:tada:y",
    "a\u202eb\u200bc\x1b[31md\x07",
    "\\@alice \\`",
    "[^1] [x] [ ] <!-- c -->",
    "&lt; &#64;bob",
    "('@bob').",
    "显存@bob不足#12了",
    "--",
    "***",
    "\t    indented",
    "x" * 5000,
    "",
]


def outside_code(markdown: str) -> Iterator[Token]:
    """All inline tokens that are no code."""
    for block in PARSER.parse(markdown):
        assert block.type not in {"html_block", "code_block", "hr", "table_open", "blockquote_open"}
        for token in block.children or ():
            if token.type != "code_inline":
                yield token


def check(markdown: str, links: frozenset[str] = frozenset()) -> None:
    """The document is inert."""
    assert not INVISIBLE.search(markdown)
    for token in outside_code(markdown):
        assert token.type in {"text", "softbreak", "strong_open", "strong_close", "link_open", "link_close"}, token
        if token.type == "text":
            assert not ACTIVE.search(token.content), token.content
        if token.type == "link_open":
            assert token.attrs["href"] in links


def words_of(markdown: str) -> str:
    """What a reader sees of one paragraph."""
    return "".join(token.content for block in PARSER.parse(markdown) for token in block.children or ())


@pytest.mark.parametrize("text", NASTY)
def test_prose_is_inert_and_says_the_same(text: str) -> None:
    shown = prose(text)
    check(shown)
    if len(text) < 600 and shown:
        assert words_of(shown).split() == INVISIBLE.sub("", text.replace("\x1b[31m", "").replace("\n", " ")).split()


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("torch 2.6.0+cu124 has no code for GeForce RTX 5090; it is sm_120.", None),
        ("Set NCCL_P2P_DISABLE=1 (see --help).", "Set `NCCL_P2P_DISABLE=1` (see `--help`)."),
        ("驱动 570.124.06，需要 ≥ 580", "驱动 570.124.06，需要 ≥ 580"),
        ("`x`", "`` `x` ``"),
    ],
)
def test_prose_stays_readable(text: str, shown: str | None) -> None:
    assert prose(text) == (shown or text.replace("sm_120", "`sm_120`"))


@settings(max_examples=300, deadline=None)
@given(st.text(max_size=120) | st.text(alphabet="@#`~*_[]()<>!|\\-=+.:/ 1aé中w\n", max_size=60))
def test_any_text_is_inert(text: str) -> None:
    check(f"- {prose(text)}")
    block = fence(text, "bash")
    (token,) = PARSER.parse(block)
    assert (token.type, token.info) == ("fence", "bash")
    assert not INVISIBLE.search(block)


def hostile(text: str, *, planned: bool = False) -> Report:
    """A report in which every text is the same nasty one."""
    command = Step(command=text, needs_root=True, reversible=False)
    fix = Fix(
        id="f",
        finding="1",
        kind="cure",
        action="a",
        title=text,
        steps=(command, Step(text=text)),
        verify=text,
        notes=(text,),
        risks=(text,),
    )
    step = PlanStep(fix="f", finding="1", cause="c", stage="s", verified="simulated", instance=fix)
    reason = Reason(text=text, where=text)
    found = Finding(
        id="1",
        cause="c",
        severity="error",
        title=text,
        message=text,
        fixes=("f",),
        because=(reason,),
        ruled_out=(reason,),
    )
    unsure = Finding(id="2", cause="d", severity="warning", confidence=0.2, title=text, message=text)
    return Report(
        schema="gpurules.report/1",
        version="0",
        knowledge_version="0",
        verdict="problems",
        summary=text,
        platform="linux",
        findings=(found, unsure),
        fixes=(fix,),
        fix_plan=FixPlan(steps=(step, step)) if planned else None,
        questions=(Question(id="q", text=text, answers=(text,), command=text),),
        recommendations=(Advice(id="r", text=text),),
        not_checked=(NotChecked(id="n", title=text),),
        notes=(text,),
        sources=(
            Source(url="https://docs.example/a(b)", title=text),
            Source(url="javascript:x", title=text),
            Source(url=f"https://x.example/{text}", title="t"),
            Source(url="https://a@b.example/", title="t"),
        ),
    )


@pytest.mark.parametrize("text", NASTY)
@pytest.mark.parametrize(("lang", "planned"), [("en", False), ("zh", True)])
def test_a_report_of_hostile_texts_is_inert(text: str, lang: Lang, planned: bool) -> None:
    shown = render_markdown(hostile(text, planned=planned), lang=lang)
    known = {t.attrs["href"] for t in outside_code(shown) if t.type == "link_open"}
    assert all(re.fullmatch(r"https://(?:docs|x)\.example/[^\s()<>\"'`\\]*", str(link)) for link in known)
    check(shown, frozenset(map(str, known)))
    fences = [t.content.strip() for t in PARSER.parse(shown) if t.type == "fence"]
    assert all(line in text.replace("\t", "    ") or INVISIBLE.search(text) for f in fences for line in f.splitlines())


def test_a_long_report_is_cut_between_blocks() -> None:
    whole = render_markdown(hostile("word " * 100))
    cut = render_markdown(hostile("word " * 100), limit=2500)
    assert len(cut) <= 2500
    assert whole.startswith(cut)
    check(cut)


def test_a_report_as_markdown() -> None:
    shown = gpurules.diagnose(ISSUE).to_markdown()
    assert shown.startswith("**PROBLEM** ")
    assert "```bash\npip install torch==2.13.0+cu129 --index-url https://download.pytorch.org/whl/cu129\n```" in shown
    assert "(`text:9`)" in shown
    assert gpurules.diagnose(ISSUE, lang="zh").to_markdown().startswith("**有问题** ")


@pytest.mark.parametrize("options", [[], ["--lang", "zh"]])
def test_the_command_line_writes_the_same(options: list[str], tmp_path: Path) -> None:
    (tmp_path / "text").write_text(ISSUE, encoding="utf-8")
    command = [sys.executable, "-m", "gpurules", "diagnose", "--report", "text", "--format", "markdown", "--no-save"]
    environ = {**os.environ, "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        [*command, *options], capture_output=True, encoding="utf-8", cwd=tmp_path, env=environ, timeout=60
    )
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == gpurules.diagnose(ISSUE, lang="zh" if options else "en").to_markdown()


def test_several_fixes_are_numbered_in_their_order() -> None:
    facts = {"gpus": "RTX 5090", "driver": "535.183.01", "torch": "2.6.0+cu124", "python": "3.9", "os": "Ubuntu 22.04"}
    report = gpurules.diagnose(facts=facts)
    assert report.fix_plan
    steps = report.fix_plan.steps
    assert len(steps) > 1
    shown = report.to_markdown()
    (ordered,) = (t for t in PARSER.parse(shown) if t.type == "ordered_list_open")
    assert "**Do this, in this order**:" in shown
    assert shown.count("\n1. ") == shown.count(f"\n{len(steps)}. ") == 1
    assert ordered.level == 0


def test_private_things_stay_out() -> None:
    pasted = (
        ISSUE
        + 'RuntimeError: CUDA error: unknown error /home/zoe/x zoe@corp.example 203.0.113.7\n  File "/home/zoe/a.py"\n'
    )
    report = gpurules.diagnose(reports={"/home/zoe/issue.txt": pasted})
    assert "zoe" not in report.to_markdown(redact=False)  # what is gathered is redacted before it is judged
    assert "zoe" not in report.to_markdown()
