"""What a question is worth: known answers, answers that change nothing, and the deciding question of each symptom."""

from __future__ import annotations

import math

import pytest
from gpurules.facts import Fact, Provenance
from gpurules.knowledge.loader import Knowledge
from gpurules.reasoning.gain import MIN_GAIN, State, best, entropy, facts_of
from gpurules.reasoning.gaps import decided
from gpurules.reasoning.session import Session

HERE = (Provenance("user", "test"),)


def error(kind: str, text: str = "the message") -> Fact:
    return Fact("error", {"kind": kind, "text": text}, (Provenance("report", "issue.txt", 1, "errors"),))


def statement(kind: str, **fields: str) -> Fact:
    return Fact("statement", {"kind": kind, **fields}, (Provenance("user", "question"),))


def _state(knowledge: Knowledge, *facts: Fact) -> State:
    return State(Session(knowledge, facts))


def _asked(state: State) -> list[str]:
    return [w.slug for w in best(state)]


def test_entropy() -> None:
    assert entropy([0.5, 0.5]) == 1
    assert entropy([1.0, 0.0]) == 0
    assert entropy([0.25] * 4) == 2


@pytest.mark.parametrize(
    ("facts", "first"),
    [
        ((error("torch_cuda_unknown"),), "slept"),
        ((error("torch_no_driver"),), "driver_installed"),
        ((error("smi_communicate"),), "dkms_status"),
        ((error("nvml_unknown"),), "daemon_reload"),
        ((error("torch_no_gpus"),), "visible_devices"),
        ((error("cuda_209"),), "torch_alone"),
        ((error("cuda_802"),), "fabric_manager"),
        ((statement("hang", detail="hangs"),), "gpus_used p2p_disable"),
        ((), "collect_env"),
    ],
)
def test_each_symptom_has_a_deciding_question(knowledge: Knowledge, facts: tuple[Fact, ...], first: str) -> None:
    assert _asked(_state(knowledge, *facts))[0] in first.split()


def test_what_is_known_is_not_asked(knowledge: Knowledge) -> None:
    cuda = error("torch_cuda_unknown")
    for known, question in [
        (statement("after_suspend", detail="after suspend"), "slept"),
        (statement("not_suspended", detail="no suspend"), "slept"),
        (Fact("container", {"present": False}, HERE), "in_container"),
        (Fact("nvidia_smi", {"state": "failed", "scope": "host"}, HERE), "nvidia_smi"),
    ]:
        state = _state(knowledge, cuda, known)
        assert decided(state.session, knowledge.questions[question])
        assert question not in _asked(state)


def test_a_question_that_makes_no_sense_here_is_not_asked(knowledge: Knowledge) -> None:
    nvml = error("nvml_unknown")
    inside = _state(knowledge, nvml, Fact("container", {"present": True}, HERE))
    assert "host_smi" not in _asked(_state(knowledge, nvml))
    assert "host_smi" in _asked(inside) or inside.found


def test_every_question_asked_changes_something(knowledge: Knowledge) -> None:
    for kind in ("torch_cuda_unknown", "smi_communicate", "torch_no_driver", "cuda_209"):
        state = _state(knowledge, error(kind))
        questions = best(state)
        assert questions
        for weighed in questions:
            assert weighed.gain >= MIN_GAIN
            assert any(o.after.standing != state.standing for o in weighed.outlooks)
            total = sum(o.weight for o in weighed.outlooks)
            assert math.isclose(total, 1) or (total < 1 and not all(o.answer["gives"] for o in weighed.outlooks))


def test_answers_follow_the_causes(knowledge: Knowledge) -> None:
    """With the machine asleep likelier than before, the answer that it slept is likelier too."""
    weighed = next(w for w in best(_state(knowledge, error("torch_cuda_unknown"))) if w.slug == "slept")
    assert {o.answer["id"]: round(o.weight, 2) for o in weighed.outlooks} == {"yes": 0.28, "no": 0.72}


def test_once_a_cause_is_found_only_what_could_overturn_it_or_its_fix_is_asked(knowledge: Knowledge) -> None:
    state = _state(knowledge, error("nvml_mismatch", "Failed to initialize NVML: Driver/library version mismatch"))
    assert state.found == {"driver_library_mismatch"}
    assert _asked(state) == ["in_container"]  # the fix in a container is another


def test_every_answer_gives_facts_of_the_vocabulary(knowledge: Knowledge) -> None:
    session = Session(knowledge, ())
    for slug, data in knowledge.questions.items():
        assert data["answers"], slug
        names: list[str] = []
        for answer in data["answers"]:
            given = facts_of(session, answer, whole=True)
            assert given, (slug, answer["id"])
            assert all(knowledge.vocabulary.types[f.type].kind == "observed" for f in given)
            names += {answer["id"].replace("_", " "), *answer["text"].values(), *answer["words"]}
        assert len(names) == len(set(names)), slug


@pytest.mark.parametrize(
    ("facts", "command"),
    [
        ((), "lspci -nnk"),
        ((Fact("wsl", {"version": 2}, HERE),), "nvidia-smi -L"),
        ((Fact("os", {"family": "macos"}, HERE),), "system_profiler SPDisplaysDataType"),
    ],
)
def test_a_question_has_the_command_of_the_system(knowledge: Knowledge, facts: tuple[Fact, ...], command: str) -> None:
    assert Session(knowledge, facts).command(knowledge.questions["which_gpu"]) == command
