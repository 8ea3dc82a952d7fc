"""One plan for several findings: order, choice for the machine as it will be, conflicts, what is left."""

from __future__ import annotations

from gpurules.knowledge.loader import load_knowledge
from gpurules.reasoning.plan import stage_of
from gpurules.report.model import FixPlan
from gpurules.report.text import render_text

from .support import fact, machine, plan, report


def steps(found: FixPlan) -> list[tuple[str, tuple[str, ...]]]:
    return [(step.fix, step.clears) for step in found.steps]


def test_a_healthy_machine_has_no_plan() -> None:
    facts = machine("NVIDIA GeForce RTX 4090", driver="580.95.05", torch="2.13.0+cu129")
    assert report(facts).fix_plan is None


def test_one_finding_is_cleared_by_its_first_fix() -> None:
    facts = machine("NVIDIA GeForce RTX 5090", driver="570.124.06", torch="2.6.0+cu124")
    found = report(facts)
    assert found.fix_plan is not None
    assert steps(found.fix_plan) == [(found.fixes[0].id, ("1",))]
    assert found.fix_plan.steps[0].instance == found.fixes[0]
    assert "in this order" not in render_text(found)


def test_the_driver_comes_first_and_the_build_is_chosen_for_it() -> None:
    found = report(machine("NVIDIA GeForce RTX 5090", driver="550.54.15", torch="2.6.0+cu124"))
    assert found.fix_plan is not None
    assert steps(found.fix_plan) == [("upgrade-driver-for-gpu", ("2",)), ("install-torch-build", ("1",))]
    assert found.fix_plan.verified == "simulated"
    assert found.fix_plan.left == ()
    driver, build = (step.instance for step in found.fix_plan.steps)
    assert driver.effects[-1].fields == {"vendor": "nvidia", "version": "620"}
    assert build.packages == {"torch": "==2.15.0+cu132"}
    # The finding that no fix cures alone gets the step that does, and says so.
    assert found.findings[0].fixes == ("install-torch-build",)
    assert found.fixes[0].verified_note == "as step 2 of the plan"


def test_the_text_says_what_to_do_in_which_order() -> None:
    found = report(machine("NVIDIA GeForce RTX 5090", driver="550.54.15", torch="2.6.0+cu124"))
    text = render_text(found)
    assert "Do this, in this" in text
    assert text.index("1. Install driver branch 620") < text.index("2. Install torch 2.15.0+cu132")
    assert "fix       step 2 above" in text


def test_the_order_is_said_in_chinese_too() -> None:
    found = report(machine("NVIDIA GeForce RTX 5090", driver="550.54.15", torch="2.6.0+cu124"), "zh")
    assert "按以下顺序操作" in render_text(found, lang="zh")


def test_one_build_for_two_findings_beats_a_fix_for_each() -> None:
    found = plan(machine("Tesla K80", driver="470.256.02", torch="2.6.0+cu124"))
    assert steps(found) == [("install-torch-build", ("1", "2"))]
    assert found.steps[0].instance.packages == {"torch": "==2.7.1+cu118"}


def test_a_driver_that_is_too_new_goes_back_before_the_build_that_still_serves_the_card() -> None:
    found = plan(machine("Tesla K80", driver="550.54.15", torch="2.6.0+cu124"))
    assert [step.fix for step in found.steps] == ["pin-legacy-driver-branch", "install-torch-build"]
    assert found.steps[0].instance.driver_at_least == "470"
    assert found.left == ()


def test_driver_python_and_build_in_that_order() -> None:
    found = plan(machine("NVIDIA GeForce RTX 5090", driver="550.54.15", torch="2.0.1+cu118", python="3.8.18"))
    assert [step.stage for step in found.steps] == ["driver", "python", "torch"]
    assert found.steps[1].instance.python == "3.15"
    assert found.left == ()


def test_two_gpus_that_want_different_branches_get_the_older_one() -> None:
    """Both name a last branch; the newer of them would still lose the older card."""
    found = plan(machine("NVIDIA GeForce GTX 1080", "Tesla K80", driver="595.71.05", torch="2.7.1+cu118"))
    assert [step.stage for step in found.steps].count("driver") == 1
    assert found.steps[0].instance.driver_at_least == "470"


def test_what_no_fix_clears_is_said() -> None:
    found = plan(machine("NVIDIA GeForce RTX 5090", "Tesla P100-PCIE-16GB", driver="570.124.06", torch="2.6.0+cu124"))
    assert found.steps == ()
    assert [(item.finding, "all of these GPUs together" in item.reason) for item in found.left] == [("1", True)]


def test_a_fix_beyond_simulation_is_a_step_that_says_so() -> None:
    found = plan([fact("error", kind="cuda_804"), fact("os", family="linux", machine="x86_64")])
    assert [step.verified for step in found.steps] == ["not_simulable"]
    assert found.verified == "not_simulable"


def test_every_fix_has_a_stage_and_one_stage_takes_the_rest() -> None:
    knowledge = load_knowledge()
    assert [s for s, data in knowledge.stages.items() if data["default"]] == ["settings"]
    orders = [data["order"] for data in knowledge.stages.values()]
    assert orders == sorted(set(orders))
    named = [a for data in knowledge.stages.values() for a in data["actions"]]
    assert len(named) == len(set(named))
    assert {stage_of(fix, knowledge)[0] for fix in knowledge.fixes} <= set(knowledge.stages)
