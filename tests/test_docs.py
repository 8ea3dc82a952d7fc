"""The documents tell the truth: every console example prints what it shows, every YAML example passes the checks.

`python tests/test_docs.py` writes the output of changed console examples anew. One line `…` stands for lines left out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[1]
GUIDE = CHECKOUT / "CONTRIBUTING.md"
DOCUMENTS = [CHECKOUT / "README.md", CHECKOUT / "README.zh.md", GUIDE]
CONSOLE = re.compile(r"^```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
YAML = re.compile(
    r"^```yaml\n# knowledge/(?P<path>[^\n,]+)(?:, (?P<place>[^\n]+))?\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL
)
TODAY = "2026-11-30"  # ages are reckoned from it, so that the examples do not change with the date


def overlay(section: str, folder: Path) -> Path:
    """A knowledge folder with what a section of the guide adds."""
    folder.mkdir()
    for block in YAML.finditer(section):
        path, place, text = block["path"], block["place"], block["text"]
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if place is None:
            target.write_text(text, encoding="utf-8")
            continue
        old = (target if target.exists() else CHECKOUT / "knowledge" / path).read_text(encoding="utf-8")
        where, _, anchor = place.partition(": ")
        if where == "before":
            at = old.rindex("\n", 0, old.index(anchor)) + 1
        elif where == "after":
            at = old.index(f"\n{anchor}\n") + len(anchor) + 2
        else:
            at = len(old)
        target.write_text(old[:at] + text + old[at:], encoding="utf-8")
    return folder


def shell(commands: str, folder: Path, extra: str) -> str:
    """What the commands print, with `gpurules` standing for this interpreter's and `extra` added to it."""
    tools = folder / "bin"
    tools.mkdir(parents=True, exist_ok=True)
    script = tools / "gpurules"
    script.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m gpurules "$@" {extra}\n', encoding="utf-8")
    script.chmod(0o755)
    kept = {k: v for k, v in os.environ.items() if k not in {"NO_COLOR", "FORCE_COLOR", "GPURULES_DEBUG"}}
    environ = {**kept, "PATH": f"{tools}{os.pathsep}{os.environ['PATH']}", "XDG_STATE_HOME": str(folder / "state")}
    environ |= {"COLUMNS": "80", "LC_ALL": "C.UTF-8", "PYTHONIOENCODING": "utf-8"}
    done = subprocess.run(
        ["sh", "-c", commands], cwd=CHECKOUT, env=environ, capture_output=True, encoding="utf-8", timeout=60
    )
    assert "internal error" not in done.stderr, done.stderr
    return done.stdout + done.stderr


def examples(text: str) -> list[tuple[str, str]]:
    """(command, shown output) of every console example, in order."""
    found: list[tuple[str, str]] = []
    for block in CONSOLE.findall(text):
        for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, _, shown = part.partition("\n")
            found.append((command, shown.rstrip("\n")))
    return found


def printed(document: Path, folder: Path) -> list[str]:
    """What every console example prints; those of the guide with the knowledge that their section adds."""
    found: list[str] = []
    for number, section in enumerate(re.split(r"^## ", document.read_text(encoding="utf-8"), flags=re.MULTILINE)):
        extra = f"--today {TODAY}"
        if document == GUIDE and examples(section):
            extra += f" --knowledge '{overlay(section, folder / str(number))}'"
        found += [shell(command, folder, extra).rstrip("\n") for command, _ in examples(section)]
    return found


def agrees(shown: str, output: str) -> bool:
    pattern = "(?:.*\n)*?".join(re.escape(piece) for piece in re.split(r"^…\n", shown + "\n", flags=re.MULTILINE))
    return re.fullmatch(pattern, output + "\n") is not None


@pytest.mark.skipif(sys.platform == "win32", reason="the examples are for a POSIX shell")
@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: path.name)
def test_console_examples_print_what_they_show(document: Path, tmp_path: Path) -> None:
    for (command, shown), output in zip(
        examples(document.read_text(encoding="utf-8")), printed(document, tmp_path), strict=True
    ):
        assert agrees(shown, output), f"$ {command}\n{output}"


def test_the_readme_names_every_command_and_no_other() -> None:
    def commands(*words: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-m", "gpurules", *words, "--help"], capture_output=True, encoding="utf-8", timeout=60
        )
        return re.findall(r"^  (\S+)  ", done.stdout.partition("Commands:")[2], re.MULTILINE)

    for document in DOCUMENTS[:2]:
        text = document.read_text(encoding="utf-8")
        assert set(re.findall(r"^\| `gpurules ([a-z-]+)", text, re.MULTILINE)) == set(commands())
        (row,) = re.findall(r"^\| `gpurules rules` .*", text, re.MULTILINE)
        assert set(re.findall(r"`([a-z]+)`", row)) == set(commands("rules"))


def test_links_lead_somewhere() -> None:
    for document in [*DOCUMENTS, CHECKOUT / "CHANGELOG.md", *CHECKOUT.glob("docs/*.md"), *CHECKOUT.glob("docs/*/*.md")]:
        links = re.findall(r"\]\(([^)#:]+)\)", document.read_text(encoding="utf-8"))
        assert [link for link in links if not (document.parent / link).exists()] == []


def rewritten(shown: str, output: str) -> str:
    """The output, cut as the old one was: as many lines before and after its `…`."""
    lines, old = output.splitlines(), shown.splitlines()
    if "…" not in old:
        return output
    before, after = old.index("…"), len(old) - old.index("…") - 1
    return "\n".join([*lines[:before], "…", *lines[len(lines) - after :]])


def rewrite(document: Path, folder: Path) -> None:
    """Put the real output into the document."""
    outputs = iter(printed(document, folder))

    def block(match: re.Match[str]) -> str:
        lines: list[str] = []
        for command, shown in examples(match[0]):
            lines += [f"$ {command}", *rewritten(shown, next(outputs)).splitlines()]
        return "\n".join(["```console", *lines, "```"])

    document.write_text(CONSOLE.sub(block, document.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    import tempfile

    for path in DOCUMENTS:
        with tempfile.TemporaryDirectory() as scratch:
            rewrite(path, Path(scratch))
