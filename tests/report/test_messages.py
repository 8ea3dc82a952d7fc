from __future__ import annotations

import re
from pathlib import Path

import pytest
import yaml
from gpurules.report.messages import Words, locale_lang

ROOT = Path(__file__).parents[2]
CATALOG = yaml.safe_load((ROOT / "knowledge" / "messages.yaml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("key", CATALOG)
def test_every_message_has_both_languages_with_the_same_values(key: str) -> None:
    entry = CATALOG[key]
    assert list(entry) == ["en", "zh"]
    names = [sorted(re.findall(r"\{(\w+)\}", entry[lang])) for lang in ("en", "zh")]
    assert names[0] == names[1]
    assert entry["en"].isascii() or entry["en"] == " · "


def test_ids_are_sorted() -> None:
    assert list(CATALOG) == sorted(CATALOG)


def test_every_message_that_the_renderers_name_exists_and_is_used() -> None:
    modules = [*ROOT.glob("*.py"), *(ROOT / "report").glob("*.py"), *(ROOT / "reasoning").glob("*.py")]
    code = "".join(path.read_text(encoding="utf-8") for path in modules)
    literals = set(re.findall(r'"([a-z_.]+)"', code))
    families = (
        "explain.op.",
        "label.",
        "number.",
        "plan.",
        "verdict.",
        "whynot.outranked.",
        "fix.checked.",
        "recommend.any_",
        "recommend.none_any_",
        "source.",
        "validate.check.",
        "validate.state.",
        "validate.verdict.",
    )  # completed with a value of the report
    stems = {re.sub(r"\.(one|other)$", "", key) for key in CATALOG}
    unused = {key for key in stems if key not in literals and not key.startswith((*families, "count."))}
    assert unused == set()


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
