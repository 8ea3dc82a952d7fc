from __future__ import annotations

from itertools import combinations

import pytest
from gpurules import pipeline
from gpurules.errors import InputError
from gpurules.reasoning.changes import ChangeError, changed, read_change
from gpurules.reasoning.session import Session
from gpurules.report.explain_text import render_how_to, render_what_if
from gpurules.report.explanations import HowTo
from gpurules.report.model import Report

from .machines import CASES, described, knowledge, machine, report_of, session

# --- what if ----------------------------------------------------------------------------------------------------------


def test_a_driver_and_a_torch_that_fit() -> None:
    answer = pipeline.what_if(machine(), ["driver=580.95", "torch=2.15.0+cu130"], "en")
    assert (answer.verdict_before, answer.verdict_after) == ("problems", "ok")
    assert (answer.recommendation_before, answer.recommendation_after) == ("2.13.0+cu129", "2.15.0+cu132")
    assert [d.subject for d in answer.gone] == ["wheel_missing_new_arch"]
    assert [d.subject for d in answer.new] == ["none_healthy"]
    assert answer.gone[0].reasons[0].kind == "blocked"
    assert all(d.reasons for d in (*answer.gone, *answer.new))
    assert answer.choice


def test_a_change_for_the_worse() -> None:
    answer = pipeline.what_if(machine(), ["driver=470.82"], "en")
    assert [d.subject for d in answer.new] == ["driver_too_old_for_gpu", "driver_too_old_for_wheel"] or {
        d.subject for d in answer.new
    } >= {"driver_too_old_for_gpu"}
    assert answer.recommendation_after == ""
    assert [n.kind for n in answer.choice] == ["struck"]


def test_nothing_that_matters_changes() -> None:
    answer = pipeline.what_if(machine(), ["env:OMP_NUM_THREADS=4"], "en")
    assert not (answer.gone)
    assert not (answer.new)
    assert not (answer.choice)
    assert [d.subject for d in answer.stays] == ["wheel_missing_new_arch"]
    assert "The findings stay the same." in render_what_if(answer)


def test_every_kind_of_change_is_read() -> None:
    texts = ["driver=580.95", "torch=2.15.0+cu130", "python=3.12", "gpu=RTX 4090", "os=windows", "env:A=b", "unset:A"]
    changes = [read_change(t, knowledge()) for t in texts]
    assert [str(c) for c in changes] == texts
    facts = {f.type: f for f in changed(session(machine()).facts, changes, knowledge())}
    assert facts["gpu"].fields == {"index": 0, "name": "RTX 4090"}
    assert facts["os"].fields["family"] == "windows"
    assert facts["python"].provenance[0].source == "what-if python=3.12"
    assert "env_var" not in facts


def test_two_cards_stand_together() -> None:
    changes = [read_change(t, knowledge()) for t in ("gpu=RTX 4090", "gpu=RTX 3090")]
    cards = [f.fields for f in changed(session(machine()).facts, changes, knowledge()) if f.type == "gpu"]
    assert cards == [{"index": 0, "name": "RTX 4090"}, {"index": 1, "name": "RTX 3090"}]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("drivr=580", 'unknown change "drivr"; did you mean "driver"'),
        ("driver", "write driver=VALUE"),
        ("driver=new", "must be a version"),
        ("driver:x=580", 'takes no ":x"'),
        ("env=1", "write env:NAME"),
        ("os=beos", "must be one of linux, wsl, aarch64, windows, macos"),
        ("gpu=RTX 4099", "the catalog has no such product"),
    ],
)
def test_changes_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(ChangeError) as error:
        read_change(text, knowledge())
    assert message in str(error.value)
    with pytest.raises(InputError):
        pipeline.what_if(machine(), [text], "en")


def test_a_message_goes_only_with_what_could_cure_it() -> None:
    report = described(
        {"gpu": {"index": 0, "name": "NVIDIA A100-SXM4-80GB"}},
        {"driver": {"vendor": "nvidia", "version": "535.104"}},
        {"torch": {"version": "2.6.0+cu124"}},
        {"error": {"kind": "cuda_802", "text": "system not yet initialized"}},
        {"error": {"kind": "cuda_35", "text": "CUDA driver version is insufficient"}},
    )
    facts = changed(session(report).facts, [read_change("driver=580", knowledge())], knowledge())
    assert [f.fields["kind"] for f in facts if f.type == "error"] == ["cuda_802"]
    assert not [f for f in changed(facts, [read_change("gpu=H100", knowledge())], knowledge()) if f.type == "error"]


# --- how to -----------------------------------------------------------------------------------------------------------


def ways(report: Report, goal: str) -> list[list[str]]:
    return [[c.change for c in w.changes] for w in pipeline.how_to(report, goal, "en").ways]


def test_a_newer_torch_needs_a_newer_driver() -> None:
    answer = pipeline.how_to(machine(), "torch>=2.15", "en")
    assert [[c.change for c in w.changes] for w in answer.ways] == [["driver=580"]]
    assert answer.ways[0].then == ("pip install torch==2.15.0+cu132 --index-url https://download.pytorch.org/whl/cu132")
    assert answer.ways[0].changes[0].risk
    assert answer.ways[0].proof


def test_driver_and_python_together() -> None:
    report = machine(gpu="NVIDIA GeForce RTX 3090", driver="470.82", python="3.9.3")
    assert ways(report, "torch==2.15.0+cu132") == [["python=3.11", "driver=580"]]


def test_the_cheaper_way_comes_first() -> None:
    report = machine(gpu="NVIDIA GeForce RTX 3090", driver="470.82")
    assert ways(report, "driver_too_old_for_wheel") == [["torch=2.7.1+cu118"], ["driver=525.60.13"]]
    assert ways(report, "no-errors") == ways(report, "driver_too_old_for_wheel")


def test_the_companions_are_installed_along() -> None:
    report = described(
        {"os": {"family": "linux", "machine": "x86_64"}},
        {"gpu": {"index": 0, "name": "NVIDIA GeForce GTX 1050"}},
        {"driver": {"vendor": "nvidia", "version": "550.163.01"}},
        {"python": {"version": "3.11.9"}},
        {"package": {"name": "torch", "version": "2.8.0+cu128", "manager": "pip"}},
        {"package": {"name": "torchvision", "version": "0.23.0+cu128", "manager": "pip"}},
    )
    for goal in ("no-errors", "wheel_dropped_old_arch"):
        answer = pipeline.how_to(report, goal, "en")
        assert [[c.change for c in w.changes] for w in answer.ways] == [["torch=2.14.1+cu126"]]
        assert answer.ways[0].then.startswith("pip install torch==2.14.1+cu126 torchvision==0.29.1+cu126 ")


def test_what_this_gpu_can_never_run() -> None:
    answer = pipeline.how_to(machine(gpu="NVIDIA GeForce GTX 1080", driver="580.95"), "torch==2.15.0+cu132", "en")
    assert "impossible on this GPU" in answer.summary
    assert answer.impossible[0].text.endswith("GeForce GTX 1080 is sm_61")
    assert all(any(c.change.startswith("gpu=") for c in w.changes) for w in answer.ways)


def test_what_was_never_published() -> None:
    answer = pipeline.how_to(machine(), "torch==2.15.0+cu126", "en")
    assert not answer.ways
    assert answer.impossible[0].kind == "unpublished"


def test_what_holds_already() -> None:
    answer = pipeline.how_to(machine(), "cuda", "en")
    assert answer.holds
    assert answer.tried == 0


def test_a_variable_that_hides_the_gpu() -> None:
    hidden = [p for p in CASES if "visible" in p.stem]
    for path in hidden:
        report = report_of(path)
        if any(f.cause == "visible_devices_wrong" and f.confidence >= 0.5 for f in report.findings):
            assert any(c[0].startswith("unset:") for c in ways(report, "visible_devices_wrong"))


MISMATCH = (
    {"os": {"family": "linux", "machine": "x86_64"}},
    {"gpu": {"index": 0, "name": "NVIDIA A10"}},
    {"error": {"kind": "nvml_mismatch", "text": "Driver/library version mismatch"}},
    {"statement": {"kind": "question_asked"}},
)


def test_a_cure_that_is_no_plain_change_is_a_way_too() -> None:
    report = described(*MISMATCH)
    assert ways(report, "driver_library_mismatch") == [
        ["fix:reboot-for-driver-mismatch"],
        ["fix:reload-nvidia-modules"],
    ]
    assert ways(report, "no-errors") == ways(report, "driver_library_mismatch")
    compared = pipeline.what_if(report, ["fix:reboot-for-driver-mismatch"], "en")
    assert [d.subject for d in compared.gone] == ["driver_library_mismatch"]
    assert compared.changes[0].title == "Reboot, so that the module of the installed driver is loaded"


def test_a_fix_that_is_not_offered_cannot_be_applied() -> None:
    with pytest.raises(InputError, match="this fix is not offered here; see: gpurules why-not"):
        pipeline.what_if(machine(), ["fix:reboot-for-driver-mismatch"], "en")
    with pytest.raises(InputError, match='did you mean "reboot-for-driver-mismatch"'):
        pipeline.what_if(machine(), ["fix:reboot-for-driver-mismatc"], "en")


def test_unknown_goals_name_the_nearest() -> None:
    with pytest.raises(InputError, match='did you mean "no-errors"'):
        pipeline.how_to(machine(), "no-error", "en")


MACHINES = [
    ("NVIDIA GeForce RTX 5090", "535.183.01", "2.6.0+cu124", "3.9.1"),
    ("NVIDIA GeForce RTX 3090", "470.82.01", "2.14.1+cu126", "3.12.1"),
    ("Tesla V100-SXM2-16GB", "550.54.15", "2.15.0+cu132", "3.11.2"),
    ("NVIDIA GeForce GTX 1080", "595.58", "2.8.0+cu128", "3.10.0"),
]


@pytest.mark.parametrize("goal", ["torch>=2.15", "torch==2.13+cu126", "no-errors", "cuda"])
@pytest.mark.parametrize("told", MACHINES, ids=lambda t: t[0])
def test_every_way_is_proven_and_minimal(told: tuple[str, ...], goal: str) -> None:
    gpu, driver, torch, python = told
    report = machine(gpu=gpu, driver=driver, torch=torch, python=python)
    answer = pipeline.how_to(report, goal, "en")
    one = session(report)
    assert answer.holds or answer.ways or answer.impossible
    for way in answer.ways if not answer.holds else ():
        assert 1 <= len(way.changes) <= 3
        assert holds(one, [c.change for c in way.changes], goal)
        for size in range(len(way.changes)):
            for part in combinations([c.change for c in way.changes], size):
                assert not holds(one, list(part), goal), (goal, part)
    costs = [w.cost for w in answer.ways]
    assert costs == sorted(costs)


def holds(one: Session, changes: list[str], goal: str) -> bool:
    """Whether the goal holds after the changes, asked of a fresh session."""
    from gpurules.reasoning.howto import how_to

    facts = changed(one.facts, [read_change(c, knowledge()) for c in changes], knowledge())
    answer: HowTo | None = how_to(Session(knowledge(), facts), goal, "en")
    assert answer is not None
    return answer.holds


def test_the_text_forms() -> None:
    assert render_how_to(pipeline.how_to(machine(), "torch>=2.15", "en")).splitlines()[:2] == [
        "Ways to torch>=2.15:",
        "1.  NVIDIA driver 580",
    ]
    text = render_what_if(pipeline.what_if(machine(), ["driver=580.95"], "zh"), lang="zh")
    assert text.splitlines()[:2] == ["若改为 NVIDIA 驱动 580.95：", "  有问题 → 有问题"]
