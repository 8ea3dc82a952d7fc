from __future__ import annotations

import shlex

import pytest
from gpurules.report.layout import clean, clean_lines, columns, command_lines, display_width, fit, wrap


@pytest.mark.parametrize(
    ("text", "width"),
    [("abc", 3), ("显卡", 4), ("é", 1), ("e\u0301", 1), ("，", 2), ("✗ ·", 3), ("GPU 显存", 8), ("ｱ", 1), ("👍", 2)],
)
def test_display_width(text: str, width: int) -> None:
    assert display_width(text) == width


def test_chinese_breaks_anywhere_but_not_before_closing_punctuation() -> None:
    assert wrap("驱动版本过旧，无法运行。请升级驱动", 12) == ["驱动版本过", "旧，无法运", "行。请升级驱", "动"]


def test_chinese_does_not_break_after_opening_punctuation_or_inside_words() -> None:
    assert wrap("请安装（CUDA 12.8）版本", 8) == ["请安装", "（CUDA", "12.8）版", "本"]


def test_words_longer_than_a_line_stay_whole() -> None:
    assert wrap("see https://download.pytorch.org/whl/cu129 now", 10) == [
        "see",
        "https://download.pytorch.org/whl/cu129",
        "now",
    ]
    assert wrap("", 10) == []


def test_columns_fall_back_to_brackets_where_it_gets_narrow() -> None:
    assert columns("a b", "x.txt:1", 60, 7) == ["a b" + " " * 50 + "x.txt:1"]
    assert columns("a b", "x.txt:1", 46, 7) == ["a b (x.txt:1)"]
    assert columns("a b", "", 46, 7) == ["a b"]


@pytest.mark.parametrize(
    ("raw", "shown"),
    [
        ("a\tb\r\nc", "a b c"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]8;;http://evil\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1bPq#0\x1b\\x", "x"),
        ("\x9b31mx\x07", "31mx"),
        ("user\u202etxt.exe", "usertxt.exe"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("\x1b[", ""),
    ],
)
def test_clean(raw: str, shown: str) -> None:
    assert clean(raw) == shown


def test_clean_lines_keep_the_shape_of_a_script() -> None:
    assert clean_lines("if x; then\n\ty\nfi\x1b[2J\n\n") == ["if x; then", "    y", "fi"]


LONG = "pip install 'torch==2.13.0+cu129' torchvision==0.28.0+cu129 --index-url https://download.pytorch.org/whl/cu129"


@pytest.mark.parametrize("width", [30, 50, 70, 90, 200])
def test_a_broken_command_means_the_same_to_a_shell(width: int) -> None:
    lines = command_lines(LONG, width, posix=True)
    assert shlex.split("\n".join(lines).replace("\\\n", " ")) == shlex.split(LONG)
    assert all(line.endswith(" \\") for line in lines[:-1])


def test_index_url_begins_a_line_of_its_own() -> None:
    assert command_lines(LONG, 70, posix=True) == [
        "pip install 'torch==2.13.0+cu129' torchvision==0.28.0+cu129 \\",
        "    --index-url https://download.pytorch.org/whl/cu129",
    ]


@pytest.mark.parametrize(
    "command",
    [
        "echo 'a string of many words that must not be broken, however narrow the terminal is'",
        'python -c "import torch; print(torch.ones(1, device=1)); print(2); print(3); print(4)"',
    ],
)
def test_quotes_are_never_broken(command: str) -> None:
    lines = command_lines(command, 40, posix=True)
    assert "\n".join(lines).replace(" \\\n    ", " ") == command
    assert shlex.split(lines[-1])  # raises where a quote was cut


@pytest.mark.parametrize(("command", "posix"), [(LONG, False), (LONG + " # why", True)])
def test_commands_that_cannot_be_continued_stay_whole(command: str, posix: bool) -> None:
    assert command_lines(command, 40, posix=posix) == [command]


def test_several_lines_stay_as_they_are() -> None:
    script = "cat > x <<'EOF'\n" + "word " * 30 + "end\nEOF"
    assert command_lines(script, 40, posix=True) == script.splitlines()


@pytest.mark.parametrize(
    ("encoding", "shown"),
    [
        ("utf-8", "✗ · — … ≥ 显"),
        ("ascii", "x - - ... >= ?"),
        ("latin-1", "x · - ... >= ?"),
        ("cp936", "x · — … ≥ 显"),
        ("no-such-encoding", "x - - ... >= ?"),
    ],
)
def test_fit(encoding: str, shown: str) -> None:
    assert fit("✗ · — … ≥ 显", encoding) == shown
