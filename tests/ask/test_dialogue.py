"""The dialogue as an object: asking, answering, taking back, explaining, saving."""

from __future__ import annotations

import json

import pytest
from gpurules.errors import InputError
from gpurules.facts import Fact, Provenance
from gpurules.knowledge.loader import Knowledge
from gpurules.reasoning.dialogue import OPENING, Dialogue
from gpurules.report.messages import Words


def error(kind: str, text: str = "the message") -> Fact:
    return Fact("error", {"kind": kind, "text": text}, (Provenance("report", "issue.txt", 1, "errors"),))


def _after_suspend(knowledge: Knowledge, lang: str = "en") -> Dialogue:
    return Dialogue(knowledge, [error("torch_cuda_unknown", "CUDA unknown error")], lang)


def _question(dialogue: Dialogue) -> str | None:
    asked = dialogue.ask()
    return asked.id if asked else None


def test_from_nothing_it_asks_what_goes_wrong(knowledge: Knowledge) -> None:
    dialogue = Dialogue(knowledge)
    assert _question(dialogue) == OPENING
    assert dialogue.answer("my training hangs").kind == "text"
    assert _question(dialogue) in ("gpus_used", "p2p_disable")


def test_a_message_may_be_named_instead_of_pasted(knowledge: Knowledge) -> None:
    understood = Dialogue(knowledge).answer("it says CUDA unknown error")
    assert [f.fields["kind"] for f in understood.facts if f.type == "error"] == ["torch_cuda_unknown"]


def test_a_machine_with_nothing_wrong_is_asked_about_too(knowledge: Knowledge) -> None:
    told = (Provenance("probe", "pci"),)
    facts = [Fact("coverage", {"domain": domain, "complete": True}, told) for domain in ("pci", "gpus")]
    assert _question(Dialogue(knowledge, facts)) == OPENING


def test_an_answer_is_a_number_an_id_a_text_or_a_word_of_either_language(knowledge: Knowledge) -> None:
    for reply in ("1", "yes", "YES.", "y", "slept", "是", "yes, twice", "是，两次"):
        understood = _after_suspend(knowledge).answer(reply)
        assert (understood.kind, understood.choice.id if understood.choice else "") == ("choice", "yes"), reply
    understood = _after_suspend(knowledge).answer("2")
    assert [(f.type, dict(f.fields)) for f in understood.facts] == [("statement", {"kind": "not_suspended"})]
    assert [str(f.provenance[0]) for f in understood.facts] == ["ask slept"]


def test_what_an_answer_says_besides_counts_too(knowledge: Knowledge) -> None:
    understood = _after_suspend(knowledge).answer("no, but CUDA_VISIBLE_DEVICES is not set")
    assert understood.choice is not None
    kinds = {f.fields["kind"] for f in understood.facts}
    assert (understood.choice.id, kinds) == ("no", {"not_suspended", "visible_devices_unset"})


def test_a_cause_becomes_a_finding(knowledge: Knowledge) -> None:
    dialogue = _after_suspend(knowledge)
    dialogue.answer("yes")
    first = dialogue.report().findings[0]
    assert (first.cause, first.fixes[0]) == ("uvm_broken_after_suspend", "reload-nvidia-uvm")
    assert first.confidence == pytest.approx(0.66, abs=0.01)


@pytest.mark.parametrize("reply", ["d", "?", "don't know", "I don’t know.", "no idea", "不知道", "不清楚"])
def test_not_known_is_an_answer_and_is_not_asked_again(knowledge: Knowledge, reply: str) -> None:
    dialogue = _after_suspend(knowledge)
    assert dialogue.answer(reply).kind == "unknown"
    assert _question(dialogue) != "slept"
    assert dialogue.facts == dialogue.given


def test_what_is_not_understood_changes_nothing(knowledge: Knowledge) -> None:
    dialogue = _after_suspend(knowledge)
    for reply in ("maybe", "7", "-1", "0", "", "\x1b[31m\x07", "x" * 50_000, "99999999999999999999"):
        assert dialogue.answer(reply).kind == "nothing", reply
    assert (dialogue.turns, _question(dialogue)) == ([], "slept")


def test_undo_takes_back_turn_by_turn(knowledge: Knowledge) -> None:
    dialogue = _after_suspend(knowledge)
    before = dialogue.beliefs()
    dialogue.answer("yes")
    second = _question(dialogue)
    dialogue.answer("d")
    assert dialogue.undo() is not None
    assert _question(dialogue) == second
    assert dialogue.undo() is not None
    assert (_question(dialogue), dialogue.beliefs()) == ("slept", before)
    assert dialogue.undo() is None


def test_beliefs_are_shares_with_something_else_last(knowledge: Knowledge) -> None:
    beliefs = _after_suspend(knowledge, "zh").beliefs()
    assert [b.cause for b in beliefs] == [
        "uvm_broken_after_suspend",
        "driver_library_mismatch",
        "visible_devices_wrong",
        "container_gpu_not_passed",
        None,
    ]
    assert sum(b.share for b in beliefs) == pytest.approx(1)
    assert (beliefs[0].title, beliefs[-1].title) == ("机器休眠后 CUDA 失效", "其他原因")


def test_why_names_the_causes_and_the_rules(knowledge: Knowledge) -> None:
    why = _after_suspend(knowledge).why()
    assert why is not None
    yes, no = why.prospects
    assert (yes.answer, yes.shifts[0].cause) == ("yes", "uvm_broken_after_suspend")
    assert (round(yes.shifts[0].before, 2), round(yes.shifts[0].after, 2)) == (0.19, 0.66)
    assert [rule for rule, _ in yes.shifts[0].rules] == ["cuda-unknown-after-suspend"]
    assert (no.shifts[0].cause, no.shifts[0].after) == ("uvm_broken_after_suspend", 0)


def test_it_ends_when_nothing_is_worth_asking(knowledge: Knowledge) -> None:
    dialogue = _after_suspend(knowledge)
    asked: list[str] = []
    while (question := dialogue.ask()) is not None:
        asked.append(question.id)
        dialogue.answer("d")
    assert len(asked) == len(set(asked))
    assert dialogue.report().verdict == "unknown"


def test_json_round_trip(knowledge: Knowledge) -> None:
    dialogue = _after_suspend(knowledge)
    dialogue.answer("yes")
    dialogue.answer("d")
    text = json.dumps(dialogue.to_json())
    again = Dialogue.from_json(knowledge, json.loads(text))
    assert again.ask() == dialogue.ask()
    assert again.beliefs() == dialogue.beliefs()
    assert again.report() == dialogue.report()
    assert json.dumps(again.to_json()) == text
    again.undo()
    again.undo()
    assert _question(again) == "slept"


@pytest.mark.parametrize(
    "data",
    [
        None,
        [],
        {},
        {"schema": "gpurules.report/1"},
        {"schema": "gpurules.dialogue/1"},
        {"schema": "gpurules.dialogue/1", "lang": "fr", "facts": [], "turns": []},
        {"schema": "gpurules.dialogue/1", "lang": "en", "facts": {}, "turns": []},
        {"schema": "gpurules.dialogue/1", "lang": "en", "facts": [1], "turns": []},
        {"schema": "gpurules.dialogue/1", "lang": "en", "facts": [], "turns": [{"question": "slept"}]},
    ],
)
def test_what_is_no_dialogue_is_refused(knowledge: Knowledge, data: object) -> None:
    with pytest.raises(InputError, match="no saved dialogue of gpurules"):
        Dialogue.from_json(knowledge, data)


def test_facts_that_the_vocabulary_does_not_know_are_left_out(knowledge: Knowledge) -> None:
    saved = Dialogue(knowledge, [Fact("os", {"family": "linux"}, (Provenance("user", "x"),))]).to_json()
    saved["facts"].append({"type": "evidence", "fields": {"cause": "driver_not_installed"}, "from": []})
    saved["facts"][0]["fields"]["family"] = 7
    again = Dialogue.from_json(knowledge, saved)
    assert [(f.type, dict(f.fields)) for f in again.given] == [("os", {})]


def test_no_answer_is_a_command(knowledge: Knowledge) -> None:
    words = Words("en")
    commands = {
        word
        for key in (
            "ask.word.beliefs",
            "ask.word.help",
            "ask.word.quit",
            "ask.word.undo",
            "ask.word.unknown",
            "ask.word.why",
        )
        for lang in ("en", "zh")
        for word in words.of(key, lang).split("|")
    }
    for slug, data in knowledge.questions.items():
        for answer in data["answers"]:
            said = {w.casefold() for w in (answer["id"], *answer["words"], *answer["text"].values()) if answer["gives"]}
            assert not said & commands, slug
