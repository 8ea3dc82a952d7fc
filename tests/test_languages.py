"""Everything that a user sees is in the language that was asked for: results, help and complaints."""

from __future__ import annotations

import io
import re
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import click
import pytest
import yaml
from gpurules import messages
from gpurules.cli import cli, main
from gpurules.commands.helping import Command, _option_id
from gpurules.knowledge.loader import load_knowledge
from gpurules.report.layout import display_width

ROOT = Path(__file__).parents[1]
HAN = re.compile(r"[\u3400-\u9fff]")
ENGLISH = re.compile(r"[A-Za-z]{2,} [a-z]{2,} [a-z]{2,}")
# What belongs to no language: what somebody else's program says, code in backticks, addresses, facts as they are.
QUOTED = re.compile(r"“[^”]*”|`[^`\n]*`|\"[^\"\n]*\"|https?://\S+|\b\w+\([a-z_]+=[^)]*\)")
LEAD = re.compile(r"^[\s│├└─>*#$-]*(?:\d+\. +)?")
# Every eighth case stands for the others, which are of the same kinds.
CASES = sorted((ROOT / "tests" / "cases").glob("*.yaml"))[::8]

Screen = Callable[..., "tuple[int, str, str]"]


@cache
def titles() -> re.Pattern[str]:
    """The titles of pages, which are cited as they are."""
    knowledge = load_knowledge()
    units = (*knowledge.rules.values(), *knowledge.fixes.values())
    found = {source["title"] for unit in units for source in unit["sources"]}
    found |= {title for _, title, *_ in knowledge.static_sources}
    # A long one goes on in the next line.
    return re.compile("|".join(re.escape(t).replace(r"\ ", r"[\s│]+") for t in sorted(found, key=len, reverse=True)))


@cache
def programs() -> frozenset[str]:
    """The first words of commands."""
    knowledge = load_knowledge()
    steps = [step for fix in knowledge.fixes.values() for step in fix["steps"]]
    named = {str(step["run"][0]) for step in steps if step["run"]}
    named |= {str(q["command"]).split()[0] for q in knowledge.questions.values() if q.get("command")}
    return frozenset(named | {"gpurules", "uv", "python", "pip"})


def untranslated(text: str) -> Iterator[str]:
    """The lines that are English prose."""
    goes_on = False
    for line in QUOTED.sub("", titles().sub("", text)).splitlines():
        said = LEAD.sub("", line)
        program = re.split(r"[/\\]", said.split(" ")[0].strip("'"))[-1]
        command = goes_on or program in programs()
        goes_on = command and said.endswith("\\")
        if not command and not HAN.search(said) and ENGLISH.search(said):
            yield line


@pytest.fixture
def screen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Screen:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("LC_ALL", "C.UTF-8")
    monkeypatch.chdir(tmp_path)

    def run(*args: str, stdin: str = "", lang: str | None = "zh") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["gpurules", *args, *(("--lang", lang) if lang else ())])
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin.encode())))
        with pytest.raises(SystemExit) as left:
            main()
        written = capsys.readouterr()
        return int(left.value.code or 0), written.out, written.err

    return run


def given(path: Path, folder: Path) -> list[str]:
    """The command that answers a case, with the options that hand over its texts."""
    command, args = ["diagnose"], []
    for name, content in yaml.safe_load(path.read_text(encoding="utf-8"))["input"].items():
        if name == "question":
            args += ["--question", content]
            continue
        if name == "goals":
            args += [part for goal, value in content.items() for part in ("--goal", f"{goal}={value}")]
            continue
        if name == "project":
            command = ["check", str(folder / "project")]
            (folder / "project").mkdir()
            for file_name, text in content.items():
                (folder / "project" / file_name).write_text(text, encoding="utf-8")
            continue
        typed = not isinstance(content, str)
        file = folder / f"{name}.{'yaml' if typed else 'txt'}"
        file.write_text(yaml.safe_dump(content, allow_unicode=True) if typed else content, encoding="utf-8")
        args += ["--facts" if typed else "--report", str(file)]
    return [*command, *args]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_an_answer_and_its_explanations_are_in_chinese(path: Path, screen: Screen, tmp_path: Path) -> None:
    shown = [screen(*given(path, tmp_path), "-v", "--no-probe")]
    shown += [screen("fix", "-v"), screen("fix", "--format", "bash"), screen("why", "1"), screen("how-to", "cuda")]
    assert shown[0][0] in (0, 1)
    assert all(code in (0, 1, 2) for code, _, _ in shown)
    assert HAN.search(shown[0][1])
    assert [line for _, out, err in shown for line in untranslated(out + err)] == []


SCREENS: dict[str, list[str]] = {
    "why not a build": ["why-not", "torch==2.15.0"],
    "why not a cause": ["why-not", "driver_not_installed"],
    "why not a fix": ["why-not", "reboot-for-driver-mismatch"],
    "what if": ["what-if", "driver=580", "python=3.9"],
    "markdown": ["diagnose", "--no-save", "--report", "issue.txt", "--format", "markdown"],
    "recommend": ["recommend", "-v", "--report", "issue.txt"],
    "plan": ["plan", "--no-save", "--model", "Llama-3.1-8B", "--method", "full", "--gpu", "2x A10", "--psu-w", "800"],
    "check": ["check", "requirements.txt", "--report", "issue.txt"],
    "coverage": ["rules", "coverage", "-q"],
    "errata": ["errata"],
}


@pytest.mark.parametrize("name", SCREENS)
def test_every_other_screen_is_in_chinese(name: str, screen: Screen, tmp_path: Path) -> None:
    (tmp_path / "issue.txt").write_bytes((ROOT / "tests" / "samples" / "issue.txt").read_bytes())
    (tmp_path / "requirements.txt").write_text("torch==2.99\n", encoding="utf-8")
    screen("diagnose", "--report", "issue.txt")
    _, out, err = screen(*SCREENS[name])
    assert HAN.search(out)
    assert list(untranslated(out + err)) == []


def test_a_dialogue_is_in_chinese(screen: Screen) -> None:
    _, out, err = screen("ask", stdin="help\nb\nw\nu\nd\nNVIDIA-SMI has failed\n\nd\nq\n")
    assert "已记录：不知道" in out
    own = [line for line in out.splitlines() if not line.startswith("> ")]
    assert list(untranslated("\n".join([*own, err]))) == []


COMPLAINTS: dict[str, tuple[list[str], str]] = {
    "no file": (["diagnose", "--report", "nope.txt"], "nope.txt：没有该文件或目录"),
    "a folder": (["diagnose", "--facts", "."], ".：是一个目录"),
    "stdin twice": (["diagnose", "--report", "-", "--facts", "-"], "标准输入（-）只能读取一次"),
    "no goal": (["diagnose", "--goal", "x"], "'--goal' 的值无效：'x' 不符合 NAME=VALUE 的形式"),
    "no number": (["plan", "--batch", "0"], "'--batch' 的值无效：必须是 1 至 100000 之间的数"),
    "no choice": (["diagnose", "--format", "xml"], "'--format' 的值无效：必须是以下之一：text、json、markdown"),
    "no day": (["diagnose", "--today", "soon"], "'--today' 的值无效：必须是形如 2026-11-30 的日期"),
    "no path": (["check", "nope"], "'PATH' 的值无效：没有这样的文件或文件夹，或不能用于此处"),
    "no value": (["rules", "new", "x"], "缺少 '--area'"),
    "no option": (["diagnose", "--reprot", "x"], "没有选项 --reprot"),
    "a value for a flag": (["diagnose", "--json=3"], "--json 不接受值"),
    "too much": (["why", "1", "2", "3"], "多余的参数：2、3"),
    "no command": (["diagnos"], "没有命令 'diagnos'。"),
    "a typo in facts": (["diagnose", "--facts", "facts.yaml"], "facts.yaml:2: gpu.nmae: 未知字段；是否指“name”？"),
    "no rule": (["rules", "show", "nothing-like-it"], "没有规则“nothing-like-it”"),
    "no mirror": (["recommend", "--mirror", "x", "--facts", "machine.yaml"], "没有镜像“x”；已知的有："),
    "no card": (["plan", "--gpu", "XYZ 1"], "--gpu：目录中没有 GPU“XYZ 1”"),
    "nothing to plan": (["plan"], "没有可规划的内容："),
    "no report": (["why"], "此处没有保存的报告；请先运行 gpurules diagnose"),
    "no dialogue": (["ask", "--in", "dialogue.json"], "这不是 gpurules 保存的对话：不完整：'facts'"),
    "no device": (["validate", "--device", "tpu"], "没有设备“tpu”：可用 auto、cpu、cuda 和 cuda:N"),
    "no knowledge": (["rules", "list", "--knowledge", "own"], "misplaced.txt.yaml: 没有程序会读取此文件"),
    "no project": (["check", "empty"], "empty：没有 gpurules 能读取的项目文件"),
}


@pytest.mark.parametrize("name", COMPLAINTS)
def test_every_complaint_is_in_chinese(name: str, screen: Screen, tmp_path: Path) -> None:
    (tmp_path / "facts.yaml").write_text("facts:\n- {gpu: {nmae: RTX 4090}}\n", encoding="utf-8")
    (tmp_path / "machine.yaml").write_text("gpus: RTX 4090\n", encoding="utf-8")
    (tmp_path / "dialogue.json").write_text('{"schema": "gpurules.dialogue/1"}', encoding="utf-8")
    (tmp_path / "own").mkdir()
    (tmp_path / "own" / "misplaced.txt.yaml").write_text("a: 1\n", encoding="utf-8")
    (tmp_path / "empty").mkdir()
    args, complaint = COMPLAINTS[name]
    code, out, err = screen(*args)
    assert (code, out) == (2, "")
    assert err.startswith("gpurules: " + complaint)
    assert list(untranslated(err)) == []


def test_a_missing_value_is_complained_of_in_the_language_of_the_locale(
    screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    told = "gpurules: --gpu 缺少值\n请参阅“gpurules recommend --help”。\n"
    assert screen("recommend", "--gpu", lang=None) == (2, "", told)


# --- help -------------------------------------------------------------------------------------------------------------


def every_command(command: click.Command, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Command]]:
    assert isinstance(command, Command)
    yield path, command
    for name, inner in command.commands.items() if isinstance(command, click.Group) else ():
        yield from every_command(inner, (*path, name))


COMMANDS = list(every_command(cli))


@pytest.mark.parametrize("path", [path for path, _ in COMMANDS], ids=" ".join)
def test_help_is_in_chinese_before_and_behind_the_command(path: tuple[str, ...], screen: Screen) -> None:
    code, out, err = screen(*path, "--help")
    assert (code, err) == (0, "")
    assert out.startswith("用法：gpurules")
    assert list(untranslated(out)) == []
    assert max(map(display_width, out.splitlines())) <= 102


@pytest.mark.parametrize("args", [["plan", "--help"], ["--lang", "zh", "plan", "--help"], ["plan", "--lang=zh", "-h"]])
def test_help_takes_its_language_from_anywhere(
    args: list[str], screen: Screen, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, chinese, _ = screen("plan", "--help")
    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8" if "zh" not in " ".join(args) else "en_US.UTF-8")
    assert screen(*args, lang=None)[1] == chinese


def test_help_in_english_has_no_chinese(screen: Screen) -> None:
    for path, _ in COMMANDS:
        assert screen(*path, "--help", lang="en")[1].isascii()


def test_every_text_of_the_help_is_used() -> None:
    used = {"help.usage", "help.options", "help.commands", "help.required", "help.default", "option.help"}
    for _, command in COMMANDS:
        used |= {f"help.{command.about}{part}" for part in ("", ".long", ".examples", ".after")}
        used |= {_option_id(command.about, p) for p in command.params if isinstance(p, click.Option)}
    catalog = {key for key in messages.ids() if key.startswith(("help.", "option."))}
    assert catalog - used == set()
    assert {key for key in used if not messages.known(key) and key.count(".") == 1} == set()
