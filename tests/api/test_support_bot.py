"""The example bot: run as its users run it, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from .inputs import ISSUE
from .test_markdown import PARSER, check, outside_code

BOT = Path(__file__).resolve().parents[2] / "examples" / "support_bot.py"
SAID = "Hi, I'm @zoe (zoe@corp.example, /home/zoe/run.py) and it fails since #12\x1b[31m <b>now</b>\n\n"


def run(issue: object, *options: str, raw: str | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(BOT), "-", *options],
        input=json.dumps(issue) if raw is None else raw,
        capture_output=True,
        encoding="utf-8",
        timeout=60,
    )


def check_answer(answer: str) -> None:
    body, _, note = answer.rpartition("\n---\n")
    check(body, frozenset(str(t.attrs["href"]) for t in outside_code(body) if t.type == "link_open"))
    check(note)


def test_finding_fix_and_why() -> None:
    done = run({"title": "@bob no kernel image", "body": f"{SAID}````\n```\n{ISSUE}```\n````\n"})
    assert (done.returncode, done.stderr) == (0, "")
    check_answer(done.stdout)
    fences = [t.content for t in PARSER.parse(done.stdout) if t.type == "fence"]
    assert fences[0].startswith("pip install torch==2.13.0+cu129 ")
    assert "**Because**:" in done.stdout
    assert not {w for w in ("zoe", "@bob", "#12", "<b>", "\x1b") if w in done.stdout}


@pytest.mark.parametrize(
    ("issue", "options"),
    [
        ({"title": "it hangs", "body": "", "lang": "zh"}, []),
        ({"title": "it hangs", "body": "### Language / 语言\n\n中文\n\n### What happens\n\nit hangs"}, []),
        ({"title": "it hangs", "body": None, "lang": "en"}, ["--lang", "zh"]),
    ],
)
def test_the_next_question_in_chinese(issue: object, options: list[str]) -> None:
    done = run(issue, *options)
    check_answer(done.stdout)
    assert "**下一问**：" in done.stdout


def test_the_next_question_in_english() -> None:
    done = run({"title": "it hangs", "body": "on 2 GPUs", "lang": "fr"})
    assert "**Ask next**: " in done.stdout


def test_a_file_and_what_is_none(tmp_path: Path) -> None:
    file = tmp_path / "issue.json"
    file.write_text(json.dumps({"title": "x", "body": ISSUE}), encoding="utf-8")
    done = subprocess.run([sys.executable, str(BOT), str(file)], capture_output=True, encoding="utf-8", timeout=60)
    assert done.stdout.startswith("**PROBLEM** ")
    for raw in ("", "[]", "{"):
        bad = run(None, raw=raw)
        assert (bad.returncode, bad.stdout) == (2, "")
        assert bad.stderr.startswith("support_bot: -: ")
    refused = run({"title": "x", "body": "\x00\x01\x02" * 500})
    assert refused.stdout == "The issue could not be read; please paste the output as text.\n"


def test_it_needs_nothing_but_gpurules_and_the_standard_library() -> None:
    imported = {line.split()[1] for line in BOT.read_text().splitlines() if line.startswith(("import ", "from "))}
    assert imported - set(sys.stdlib_module_names) - {"collections.abc"} == {"gpurules"}
