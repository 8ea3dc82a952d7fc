"""Whatever is pasted: an answer or an error of the family, and `ok` only with a reason."""

from __future__ import annotations

import contextlib
from typing import Any

import gpurules
from gpurules.report.model import Lang
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from . import inputs

TEXTS = st.text(alphabet=st.characters(), max_size=300)
SCRAPS = st.integers(0, 10_000).flatmap(
    lambda seed: st.tuples(st.integers(0, 900), st.integers(1, 600)).map(
        lambda cut: inputs.report(seed)[cut[0] : cut[0] + cut[1]]
    )
)
PASTED = st.lists(TEXTS | SCRAPS, max_size=5).map("".join)
SCALARS = st.text(max_size=40) | st.integers() | st.booleans() | st.floats() | st.none()
LOOSE = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=12), inner, max_size=4)
)
LANGUAGES: st.SearchStrategy[Lang] = st.sampled_from(["en", "zh"])
QUICK = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def judge(report: gpurules.Report) -> None:
    """What holds of every report."""
    severities = [f.severity for f in report.findings]
    if report.verdict == "ok":
        assert severities
        assert set(severities) == {"info"}
    if report.verdict == "problems":
        assert set(severities) & {"error", "warning"}
    assert gpurules.Report.from_json(report.to_json()) == report
    assert report.to_text()
    assert report.to_markdown()


@QUICK
@given(text=PASTED, question=st.none() | PASTED, lang=LANGUAGES)
def test_any_text_gets_an_answer(text: str, question: str | None, lang: Lang) -> None:
    with contextlib.suppress(gpurules.InputError):
        judge(gpurules.diagnose(text, question=question, lang=lang))


@QUICK
@given(data=st.binary(max_size=400))
def test_any_bytes_get_an_answer(data: bytes) -> None:
    with contextlib.suppress(gpurules.InputError):
        judge(gpurules.diagnose(data))


@QUICK
@given(document=PASTED | st.dictionaries(st.text(max_size=12), LOOSE, max_size=5), goals=st.dictionaries(TEXTS, TEXTS))
def test_any_facts_get_an_answer_or_an_error_of_the_family(document: Any, goals: dict[str, str]) -> None:
    with contextlib.suppress(gpurules.GpurulesError):
        judge(gpurules.diagnose(facts=document, goals=goals))
        gpurules.recommend(facts=document, goals=goals)


KINDS = st.sampled_from(
    ["gpu", "torch", "driver", "python", "os", "error", "torch_target", "package", "env_var", "pick"]
)
FIELDS = st.sampled_from(
    ["name", "version", "sm", "index", "vendor", "kind", "text", "value", "family", "code", "cuda"]
)
FACTS = st.builds(gpurules.Fact, KINDS, st.dictionaries(FIELDS, st.text(max_size=20) | st.integers() | st.booleans()))


@QUICK
@given(facts=st.lists(FACTS, max_size=6))
def test_any_facts_of_a_caller_get_an_answer_or_an_error_of_the_family(facts: list[gpurules.Fact]) -> None:
    with contextlib.suppress(gpurules.GpurulesError):
        judge(gpurules.diagnose(facts=facts))


@settings(QUICK, max_examples=20)
@given(replies=st.lists(PASTED | st.sampled_from(["1", "2", "yes", "no", "?", "不知道"]), max_size=4), lang=LANGUAGES)
def test_any_reply_is_taken(replies: list[str], lang: Lang) -> None:
    session = gpurules.Session(question="it hangs", lang=lang)
    for reply in replies:
        if session.ask() is None:
            break
        session.answer(reply)
    judge(session.report())
    assert gpurules.Session.from_json(session.to_json()).report() == session.report()
