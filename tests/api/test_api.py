"""The Python API: arguments, limits, errors of one family, JSON in and out."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from datetime import date
from pathlib import Path
from typing import Any

import gpurules
import jsonschema
import pytest
from gpurules.knowledge import facts_schema
from gpurules.report.schema import json_schema
from gpurules.schemas import schema_text

from .inputs import ISSUE, report

SCHEMAS = Path(__file__).resolve().parents[2] / "docs" / "schema"
GPU = gpurules.Fact("gpu", {"index": 0, "name": "NVIDIA GeForce RTX 5090"})


def test_a_pasted_text() -> None:
    found = gpurules.diagnose(ISSUE)
    assert (found.verdict, found.findings[0].cause) == ("problems", "wheel_missing_new_arch")
    assert found.fixes[0].packages == {"torch": "==2.13.0+cu129"}
    assert gpurules.diagnose(ISSUE.encode()) == found


def test_places_carry_the_name_that_the_caller_gave() -> None:
    found = gpurules.diagnose(reports={"issue-12": ISSUE})
    assert {r.source for r in found.recognised} == {"issue-12"}
    assert any(r.where == "issue-12:9" for r in found.findings[0].because or ())


@pytest.mark.parametrize(
    "facts",
    [
        [GPU, gpurules.Fact("torch", {"version": "2.6.0+cu124"}), gpurules.Fact("driver", {"version": "570.124"})],
        [{"gpu": {"name": "RTX 5090"}}, {"torch": {"version": "2.6.0+cu124"}}, {"driver": {"version": "570.124"}}],
        {"gpus": "RTX 5090", "torch": "2.6.0+cu124", "driver": "570.124"},
        "gpus: RTX 5090\ntorch: 2.6.0+cu124\ndriver: '570.124'\n",
        b'{"facts": [{"gpu": {"name": "RTX 5090"}}, {"torch": {"version": "2.6.0+cu124"}}]}',
    ],
)
def test_facts_in_every_form(facts: Any) -> None:
    assert gpurules.diagnose(facts=facts).findings[0].cause == "wheel_missing_new_arch"


def test_typed_fields_of_a_fact_are_brought_into_their_own_type() -> None:
    (fact,) = gpurules.read_facts(facts=[gpurules.Fact("torch_target", {"sm": "8.9", "code": "sass"})])
    assert fact.fields == {"sm": 89, "code": "sass"}
    assert [str(p) for p in fact.provenance] == ["facts"]


def test_recommend() -> None:
    found = gpurules.recommend(ISSUE)
    assert (found.torch, found.index) == ("2.13.0", "cu129")
    other = gpurules.recommend(ISSUE, os="windows", python="3.11")
    assert other.platform == "windows"
    assert gpurules.Recommendation.from_json(found.to_json()) == found


def test_recommend_for_cards_that_are_only_named() -> None:
    cards = gpurules.recommend(gpus=["RTX 3060", "RTX 4090"], driver="535.183", os="linux", python="3.12")
    assert cards.packages == {"torch": "==2.14.1+cu126"}
    assert {reason.where for reason in cards.reasons if reason.where} == {"--gpu=RTX 3060", "--gpu=RTX 4090"}
    with pytest.raises(gpurules.InputError, match=r"RTX 9999.*no such product"):
        gpurules.recommend(gpus=["RTX 9999"])


def test_language_and_question() -> None:
    assert (
        gpurules.diagnose(question="my training hangs", lang="zh").summary == "输入中出现程序卡住，但不足以判断原因。"
    )


def test_an_empty_text_is_a_text_and_no_reason_to_look_at_this_machine() -> None:
    found = gpurules.diagnose("")
    assert (found.verdict, found.facts) == ("unknown", ())
    assert gpurules.diagnose(facts=[]).facts == ()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"probe": False}, "nothing to look at: no text, facts, reports or question is given, and probe is False"),
        ({"text": 5}, "text: must be str or bytes, not int"),
        ({"text": "x", "lang": "fr"}, "lang: 'fr' is none of en, zh"),
        ({"question": b"x"}, "question: must be str, not bytes"),
        ({"text": b"\x7fELF\0\0"}, "text: binary data"),
        ({"facts": [gpurules.Fact("gpuu", {})]}, 'facts: no observed type "gpuu"; did you mean "gpu"?'),
        ({"facts": [gpurules.Fact("pick", {})]}, 'facts: no observed type "pick"'),
        (
            {"facts": [gpurules.Fact("gpu", {"nam": "x"})]},
            'facts: gpu: unknown field "nam" of gpu; did you mean "name"?',
        ),
        ({"facts": [{"gpu": {"nam": "x"}}]}, 'facts:1: gpu.nam: unknown field; did you mean "name"?'),
        ({"facts": [5]}, "facts:1: a fact is written `- {type: {field: value}}`"),
        ({"facts": [{"gpu": object()}]}, "facts: Object of type object is not JSON serializable"),
        ({"facts": "gpus: ["}, "facts:"),
        ({"text": "x", "goals": {"torch": 2}}, "goals: must be str, not int"),
        ({"text": "x", "knowledge": "no-such-folder"}, "no-such-folder: is not a folder"),
    ],
)
def test_what_cannot_be_used_is_an_input_error(arguments: dict[str, Any], message: str) -> None:
    with pytest.raises(gpurules.InputError) as caught:
        gpurules.diagnose(**arguments)
    assert str(caught.value).startswith(message)


def test_a_faulty_knowledge_folder_names_every_fault(tmp_path: Path) -> None:
    (tmp_path / "rules" / "area").mkdir(parents=True)
    (tmp_path / "rules" / "area" / "x.yaml").write_text("id: x\n", encoding="utf-8")
    with pytest.raises(gpurules.KnowledgeError) as caught:
        gpurules.diagnose("x", knowledge=tmp_path)
    assert len(caught.value.problems) > 1
    assert issubclass(gpurules.KnowledgeError, gpurules.InputError)


def test_the_limit_on_the_size_counts_all_inputs_together() -> None:
    size = len(ISSUE.encode())
    assert gpurules.diagnose(ISSUE, max_bytes=size).verdict == "problems"
    with pytest.raises(gpurules.InputTooLarge, match=f"the input has {size + 1} bytes, the limit is {size}"):
        gpurules.diagnose(ISSUE, question="?", max_bytes=size)


def test_the_limit_on_the_number_of_facts() -> None:
    flood = "\n".join(f"export NCCL_X{i}={i}" for i in range(20_001))
    with pytest.raises(gpurules.InputTooLarge, match="the limit is 20000"):
        gpurules.diagnose(flood)


def test_the_time_limit() -> None:
    with pytest.raises(gpurules.TimeLimit, match=r"not done within 0 s"):
        gpurules.diagnose(ISSUE, max_seconds=0)
    with pytest.raises(gpurules.TimeLimit):
        gpurules.recommend(ISSUE, max_seconds=0)
    assert gpurules.diagnose(ISSUE, max_seconds=None).verdict == "problems"


@pytest.mark.parametrize("seed", range(20))
def test_json_in_and_out(seed: int) -> None:
    for lang in ("en", "zh"):
        found = gpurules.diagnose(report(seed), lang=lang)
        jsonschema.validate(json.loads(found.to_json()), json_schema(), cls=jsonschema.Draft202012Validator)
        assert gpurules.Report.from_json(found.to_json()) == found
        assert gpurules.Report.from_json(found.to_json(ascii_only=True).encode()) == found


@pytest.mark.parametrize("text", ["", "{", "[]", "{}", '{"schema": "gpurules.report/2"}', '"\\ud800"', "[" * 100_000])
def test_other_json_is_no_report(text: str) -> None:
    with pytest.raises(gpurules.InputError, match=r"no gpurules\.report/1"):
        gpurules.Report.from_json(text)


@pytest.mark.parametrize("seed", range(10))
def test_facts_in_and_out(seed: int) -> None:
    facts = gpurules.read_facts(report(seed))
    written = gpurules.facts_to_json(facts)
    jsonschema.validate(json.loads(written), facts_schema.json_schema(), cls=jsonschema.Draft202012Validator)
    assert [f.key() for f in gpurules.read_facts(facts=written)] == [f.key() for f in facts]


def test_the_published_facts_schema_is_that_of_the_vocabulary() -> None:
    """`python -m gpurules.knowledge.facts_schema docs/schema` writes the file anew."""
    assert (SCHEMAS / facts_schema.NAME).read_text(encoding="utf-8") == schema_text(facts_schema.json_schema())


def test_a_report_explains_itself_also_after_json() -> None:
    found = gpurules.Report.from_json(gpurules.diagnose(ISSUE).to_json())
    assert found.why("1")[0].text.startswith("the build holds code for sm_50")
    assert found.why("1", lang="zh")[0].text.startswith("该版本")
    refused = found.why_not("torch==2.15.0")
    assert not refused.holds
    assert refused.reasons
    changed = found.what_if({"torch": "2.13.0+cu129"})
    assert (changed.verdict_before, [d.subject for d in changed.gone]) == ("problems", ["wheel_missing_new_arch"])
    assert found.what_if(["torch=2.13.0+cu129"]) == changed
    assert found.how_to("torch>=2.15").ways
    for ask in (found.why, found.why_not, found.how_to):
        with pytest.raises(gpurules.InputError):
            ask("no-such-thing")
    with pytest.raises(gpurules.InputError):
        found.what_if(["nothing"])


def test_a_report_of_another_version_may_hold_facts_that_are_not_known_here() -> None:
    content = gpurules.diagnose(ISSUE).to_dict()
    strange = [{"id": "f99990", "type": "quantum_link", "fields": {"x": 1.5}}]
    strange += [{"id": "f99991", "type": "torch_target", "fields": {"sm": "many", "code": "sass"}}]
    strange += [{"id": "f99992", "type": "gpu", "fields": {"index": "one", "colour": "red"}}]
    used = next(step for step in content["derivations"] if step["fact"] in content["findings"][0]["evidence"])
    used["premises"].append("f99990")
    found = gpurules.Report.from_json(json.dumps({**content, "facts": [*content["facts"], *strange]}))
    assert found.why("1")
    assert found.why("1", lang="zh")
    assert found.why_not("torch==2.15.0").reasons
    assert [d.subject for d in found.what_if({"torch": "2.13.0+cu129"}).gone] == ["wheel_missing_new_arch"]
    assert "quantum_link" in found.to_json()


def test_redaction() -> None:
    private = (
        'File "/home/zoe/x.py"\nzoe@gpu-box-7:~$ export HF_TOKEN=hf_abcdefghijklmnopqrstuv\nexport MASTER_ADDR=node7\n'
    )
    found = gpurules.diagnose(ISSUE + private).redacted()
    assert isinstance(found, gpurules.Report)
    assert not {w for w in ("zoe", "gpu-box-7", "hf_abc", "node7") if w in found.to_json()}
    assert found.findings == gpurules.diagnose(ISSUE + private).findings


def test_the_age_of_the_knowledge_is_reckoned_from_today() -> None:
    assert gpurules.diagnose(ISSUE, today=date(2020, 1, 1)).notes is None
    assert "days old" in (gpurules.diagnose(ISSUE, today=date(2039, 1, 1)).notes or ("",))[0]


def test_a_dialogue() -> None:
    session = gpurules.Session(question="my training hangs")
    first = session.ask()
    assert first is not None
    assert session.why() is not None
    assert session.answer("1").kind == "choice"
    saved = session.to_json()
    again = gpurules.Session.from_json(saved)
    assert (again.to_json(), again.report(), again.ask()) == (saved, session.report(), session.ask())
    assert session.undo()
    assert session.ask() == first
    assert not session.undo()
    assert sum(b.share for b in session.beliefs()) == pytest.approx(1)
    with pytest.raises(gpurules.InputError):
        gpurules.Session.from_json("{}")
    with pytest.raises(gpurules.InputTooLarge):
        gpurules.Session(max_bytes=10).answer("x" * 11)


def test_the_module_lists_its_names_and_loads_them_late() -> None:
    assert set(gpurules.__all__) <= set(dir(gpurules))
    for name in gpurules.__all__:
        assert getattr(gpurules, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = gpurules.nothing
    code = (
        "import sys, gpurules; print(sorted(m for m in sys.modules if m.startswith(('gpurules.', 'yaml', 'pydantic'))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ast.literal_eval(done.stdout) == []


WATCHED = """
import os, sys, threading
import gpurules
seen = []
def watch(event, arguments):
    if event == "open" and isinstance(arguments[1], str) and set(arguments[1]) & set("wax+"):
        seen.append((event, str(arguments[0])))
    elif event.startswith(("socket.", "subprocess.", "signal.", "shutil.", "tempfile.", "urllib.")) or event in {
        "os.chdir", "os.putenv", "os.unsetenv", "os.mkdir", "os.remove", "os.rename", "os.system", "os.fork"}:
        seen.append((event, str(arguments)))
sys.addaudithook(watch)
import locale, signal
def state():
    handlers = [signal.getsignal(number) for number in signal.valid_signals()]
    return os.getcwd(), dict(os.environ), locale.setlocale(locale.LC_ALL), handlers, threading.active_count()
before = state()
text = sys.stdin.read()
report = gpurules.diagnose(text)
gpurules.recommend(text)
report.to_markdown(), report.to_text(), report.why(), report.why_not("torch==2.15.0"), report.what_if(["driver=580"])
gpurules.Session(question="it hangs").ask()
assert before == state(), (before, state())
assert not seen, seen
"""


def test_nothing_is_printed_written_started_or_changed(tmp_path: Path) -> None:
    environ = {"PATH": "/usr/bin", "GPURULES_NO_CACHE": "1", "HOME": str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, "-c", WATCHED], input=ISSUE, capture_output=True, text=True, env=environ, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert list(tmp_path.iterdir()) == []
