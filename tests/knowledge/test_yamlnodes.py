"""YAML as nodes: lines, plain values, and hostile texts that end in one clear problem."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from gpurules.knowledge.problems import Problems
from gpurules.knowledge.yamlnodes import MAX_DEPTH, Node, load, parse


def good(text: str) -> Node:
    problems = Problems()
    root = parse(text, "f.yaml", problems)
    assert problems.found == []
    assert root is not None
    return root


def faults(text: str) -> list[str]:
    problems = Problems()
    parse(text, "f.yaml", problems)
    return [str(p) for p in problems.found]


def test_plain_values_keep_what_was_written() -> None:
    root = good(
        'cuda: 12.10\nquoted: "12"\ncount: 12\nminus: -3\nzero: 0\nold: 007\nhex: 0x1f\nlong: 1234567890123456\n'
        "yes: yes\non: true\noff: false\nword: null\nempty:\nday: 2026-11-30\nlist: [1, a, {b: c}]\n"
        "raw: |\n  two\n  lines\n"
    )
    assert root.plain() == {
        "cuda": "12.10",
        "quoted": "12",
        "count": 12,
        "minus": -3,
        "zero": 0,
        "old": "007",
        "hex": "0x1f",
        "long": "1234567890123456",
        "yes": "yes",
        "on": True,
        "off": False,
        "word": "null",
        "empty": "",
        "day": "2026-11-30",
        "list": [1, "a", {"b": "c"}],
        "raw": "two\nlines\n",
    }


def test_nodes_know_their_lines() -> None:
    root = good("# a comment\na: 1\nb:\n  - x\n  - {c: y,\n     d: z}\n")
    listed = root.get("b")
    assert listed is not None
    assert [key.line for key, _ in root.pairs()] == [2, 3]
    assert [element.line for element in listed.elements()] == [4, 5]
    inner = listed.elements()[1].get("d")
    assert inner is not None
    assert (inner.line, inner.text, inner.file) == (6, "z", "f.yaml")


def test_other_kinds_answer_empty() -> None:
    root = good("[1, 2]")
    assert root.get("a") is None
    assert list(root.pairs()) == []
    assert good("a: 1").elements() == []


def test_json_is_yaml() -> None:
    assert good('{"a": [true, "1", 1, null]}').plain() == {"a": [True, "1", 1, "null"]}


@pytest.mark.parametrize("text", ["", "# only a comment\n", "---\n"])
def test_nothing_is_no_fault(text: str) -> None:
    problems = Problems()
    root = parse(text, "f.yaml", problems)
    assert problems.found == []
    assert root is None or root.plain() == ""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a: 1\nb: 2\na: 3\n", ["f.yaml:3: a: given twice"]),
        ("a: 1\n? [x, y]\n: 2\n", ["f.yaml:2: a key must be a plain name"]),
        ("a: [1\nb: 2\n", ['f.yaml:2: not YAML: a "[" or "{" that is not closed, or a missing comma in it']),
        ("a: 1\n---\nb: 2\n", ["f.yaml:2: not YAML: but found another document"]),
        ("a: *nowhere\n", ["f.yaml:1: not YAML: found undefined alias"]),
        ("a: \0\n", ["f.yaml: not YAML: a control character"]),
        (
            "a: b: c\n",
            ['f.yaml:1: not YAML: a second ": " in one value; put the value in quotes, or indent it below its key'],
        ),
    ],
)
def test_one_problem_with_its_line(text: str, expected: list[str]) -> None:
    assert faults(text) == expected


ALIAS = "the anchor here is referred to by an alias (*name): write it out"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("x: 1\na: &a [1, 2]\nb: *a\n", 2),
        ("a: &a one\nb: *a\n", 1),
        ("a: &a {k: v}\nb:\n  <<: *a\n", 1),
        ("&k a: 1\nb: *k\n", 1),
        ("x: 1\na: &a\n  b: *a\n", 2),
    ],
)
def test_aliases_are_refused(text: str, line: int) -> None:
    assert faults(text) == [f"f.yaml:{line}: {ALIAS}"]


def test_an_anchor_alone_is_harmless() -> None:
    assert good("a: &a 1\n").plain() == {"a": 1}


def test_nested_aliases_do_not_expand() -> None:
    text = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n" + "".join(
        f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]\n" for n in range(1, 60)
    )
    start = time.perf_counter()
    found = faults(text)
    assert time.perf_counter() - start < 2
    assert set(found) == {f"f.yaml:{n}: {ALIAS}" for n in range(1, 60)}


def test_depth_is_limited() -> None:
    assert faults("[" * MAX_DEPTH + "]" * MAX_DEPTH) == []
    assert faults("[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2)) == [f"f.yaml:1: nested deeper than {MAX_DEPTH} levels"]
    assert faults("{a: " * 100_000) == ["f.yaml:1: not YAML: exceeded maximum nesting depth"]


def test_files_that_cannot_be_read(tmp_path: Path) -> None:
    binary = tmp_path / "b.yaml"
    binary.write_bytes(b"a: \xff\xfe\n")
    marked = tmp_path / "m.yaml"
    marked.write_bytes(b"\xef\xbb\xbfa: 1\r\nb: 2\r\n")
    problems = Problems()
    assert load(tmp_path / "none.yaml", problems, "none.yaml") is None
    assert load(binary, problems, "b.yaml") is None
    assert load(tmp_path, problems, "folder") is None
    root = load(marked, problems)
    assert root is not None
    assert root.plain() == {"a": 1, "b": 2}
    assert [str(p) for p in problems.found] == [
        "none.yaml: cannot be read: no such file or directory",
        "b.yaml: cannot be read: not UTF-8 text",
        "folder: cannot be read: is a directory",
    ]
