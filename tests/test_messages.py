"""The texts of the interface: complete in both languages, read fast, and each one named by the code."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from gpurules import messages
from gpurules.errors import InputError, InputTooLarge, reason
from gpurules.knowledge.message_checks import message_faults
from gpurules.knowledge.problems import KnowledgeError, Problem, Problems, did_you_mean
from gpurules.knowledge.yamlnodes import parse
from gpurules.messages import Message, locale_lang
from gpurules.report.messages import Words

ROOT = Path(__file__).parents[1]
CATALOG = yaml.safe_load((ROOT / "knowledge" / "messages.yaml").read_text(encoding="utf-8"))
HAN = re.compile(r"[\u3400-\u9fff]")
# Texts without a Chinese word: names, marks, and forms that only put values together.
SAME = {
    "field.gpu",
    "field.tdp_w",
    "help.rules.new.examples",
    "help.what-if.examples",
    "environment.torch",
    "input.durable",
    "judged.gpu",
    "judged.torch",
    "plan.method.lora",
    "plan.method.qlora",
    "validate.check.compile",
    "validate.detail.rank",
}
# Ids that are completed with a value of the report or of the input.
FAMILIES = (
    "coverage.verdict.",
    "engine.",
    "environment.by.",
    "explain.op.",
    "fault.what.",
    "field.",
    "fault.primary.",
    "fix.checked.",
    "help.",
    "option.",
    "input.refused.",
    "label.",
    "number.",
    "place.",
    "plan.",
    "reason.",
    "recommend.any_",
    "recommend.none_any_",
    "shape.",
    "source.",
    "validate.check.",
    "value.",
    "validate.state.",
    "validate.verdict.",
    "verdict.",
    "whynot.outranked.",
    "yaml.",
)
SAYING = {"Message", "InputError", "InputTooLarge", "TimeLimit", "ChangeError", "words", "self.words", "Failure"}


def code() -> Iterator[tuple[Path, ast.Module]]:
    for path in [*ROOT.glob("*.py"), *(p for part in ROOT.glob("*/__init__.py") for p in part.parent.rglob("*.py"))]:
        yield path, ast.parse(path.read_text(encoding="utf-8"))


def test_the_fast_reader_reads_what_yaml_reads() -> None:
    read = {key: {lang: messages.template(key, lang) for lang in messages.LANGS} for key in messages.ids()}
    assert read == CATALOG


def test_every_text_is_in_chinese_or_needs_no_word() -> None:
    no_word = re.compile(r"[A-Za-z]{2,}")
    silent = {
        key
        for key, entry in CATALOG.items()
        if not HAN.search(entry["zh"]) and no_word.search(re.sub(r"\{[^}]*\}", "", entry["zh"]))
    }
    assert silent == SAME
    assert [key for key, entry in CATALOG.items() if not entry["en"].isascii()] == ["list.dot"]


FAULTY = """\
b.one: {en: "{n} x", zh: "{m} 个"}
a.two: {en: "x"}
c.three:
  en: "x"
  zh: "甲"
"""


def test_the_check_of_the_knowledge_names_every_fault_of_the_catalog() -> None:
    root = parse(FAULTY, "messages.yaml", Problems())
    assert root is not None
    assert [str(p) for p in message_faults(root)] == [
        'messages.yaml:1: b.one: must be one line, {en: "...", zh: "..."}',
        "messages.yaml:1: b.one: only one language has {m}, {n}",
        "messages.yaml:2: a.two: stands behind b.one: keep ids sorted",
        "messages.yaml:2: a.two.zh: is missing",
        'messages.yaml:3: c.three: must be one line, {en: "...", zh: "..."}',
    ]


def test_every_message_that_the_code_names_exists_and_every_one_is_named() -> None:
    literals: set[str] = set()
    said: set[str] = set()
    for _, tree in code():
        for node in ast.walk(tree):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                literals.add(node.value)
            if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) in SAYING:
                choices = node.args[0]
                options = [choices.body, choices.orelse] if isinstance(choices, ast.IfExp) else [choices]
                said |= {o.value for o in options if isinstance(o, ast.Constant) and isinstance(o.value, str)}
    stems = {re.sub(r"\.(one|other)$", "", key) for key in CATALOG}
    unnamed = {key for key in stems - literals if not key.startswith((*FAMILIES, "count."))}
    # Children, which import nothing of ours, say only the last part.
    by_children = {key for key in unnamed if key.startswith(("durable.", "validate.detail."))}
    assert unnamed - by_children == set()
    assert {key.rpartition(".")[2] for key in by_children} <= literals
    assert said - set(CATALOG) == set()


@pytest.mark.parametrize(
    ("environ", "lang"),
    [
        ({}, "en"),
        ({"LANG": "zh_CN.UTF-8"}, "zh"),
        ({"LANG": "zh_TW"}, "zh"),
        ({"LC_ALL": "C", "LANG": "zh_CN.UTF-8"}, "en"),
        ({"LC_ALL": "", "LC_MESSAGES": "zh_CN", "LANG": "en_US"}, "zh"),
        ({"LANG": "de_DE.UTF-8"}, "en"),
    ],
)
def test_locale(environ: dict[str, str], lang: str) -> None:
    assert locale_lang(environ) == lang


def test_counting() -> None:
    assert [Words("en").count("count.error", n) for n in (0, 1, 2)] == ["0 errors", "1 error", "2 errors"]
    assert Words("zh").count("count.error", 2) == "2 个错误"


def test_wide_punctuation_takes_no_space_in_chinese() -> None:
    assert Words("zh")("read.from", facts="1 条事实", sources="a.txt（x）") == "从 a.txt（x）读到 1 条事实"


def test_a_name_without_a_message_falls_back() -> None:
    assert Words("en").named("number.moons", "moons") == "moons"


def test_a_message_is_said_in_the_language_of_the_reader_with_all_that_is_in_it() -> None:
    told = Message("fault.field_one_of", name="vendor", values=("a", "b"), hint=did_you_mean("aa", ["a"]))
    assert str(told) == '"vendor" must be one of a, b; did you mean "a"?'
    assert told.said("zh") == "“vendor”必须是以下之一：a、b；是否指“a”？"


def test_an_error_is_english_to_programs_and_can_be_said_in_chinese() -> None:
    error = InputTooLarge("input.too_many_facts", n=3, limit=2)
    assert str(error) == "the input states 3 facts, the limit is 2"
    assert error.said("zh") == "输入包含 3 条事实，上限为 2 条"
    copy = pickle.loads(pickle.dumps(error))
    assert isinstance(copy, InputError)
    assert (str(copy), copy.said("zh")) == (str(error), error.said("zh"))


def test_several_faults_are_said_one_a_line() -> None:
    error = KnowledgeError(
        [Problem("b.yaml", 2, "x", Message("fault.missing")), Problem("a.yaml", 0, "", Message("fault.nul"))]
    )
    assert str(error).splitlines() == ["a.yaml: not text: it holds NUL characters", "b.yaml:2: x: is missing"]
    assert error.said("zh").splitlines() == ["a.yaml: 不是文本：含有 NUL 字符", "b.yaml:2: x: 缺失"]
    assert str(pickle.loads(pickle.dumps(error))) == str(error)


@pytest.mark.parametrize(
    ("error", "en", "zh"),
    [
        (FileNotFoundError(2, "No such file or directory"), "no such file or directory", "没有该文件或目录"),
        (OSError(9999, "Strange Thing"), "strange thing", "strange thing"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "not UTF-8 text", "不是 UTF-8 文本"),
        (ValueError("embedded null byte"), "the path holds a NUL character", "路径中含有 NUL 字符"),
    ],
)
def test_why_a_file_cannot_be_read(error: Exception, en: str, zh: str) -> None:
    assert (str(reason(error)), reason(error).said("zh")) == (en, zh)


def test_a_place_that_is_no_file_is_named_in_the_language_of_the_reader() -> None:
    assert [Words("zh").place(where) for where in ("question", "planning", "log.txt:3", None)] == [
        "提问",
        "规划计算",
        "log.txt:3",
        "",
    ]
