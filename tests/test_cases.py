"""Triage cases: texts as people paste them, through the command line, and the whole answer judged.

May live here: the runner of tests/cases. A case is a YAML file: id (the file's name), source_url (a public report or
page on which its situation rests; the texts are our own), about, input (texts by name; question, facts), expect:
verdict; causes (of the findings, all, in order) or, for an unknown verdict, first_candidate (absent: no finding at
all); fixes (each is met by one fix, in this order; every field given must be equal, of packages those named);
never_actions, never_indexes (of no fix whatever).
"""

from __future__ import annotations

import json
import re
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from gpurules.cli import cli

CASES = sorted((Path(__file__).parent / "cases").glob("*.yaml"))
INDEX = "https://download.pytorch.org/whl/"
CHINESE = re.compile(r"[\u4e00-\u9fff]")
KEYS = {"id", "source_url", "about", "input", "expect"}
EXPECT = {"verdict", "causes", "first_candidate", "fixes", "never_actions", "never_indexes"}
# Causes that the foundation must tell; each has at least three cases from different reports.
COVERED = (
    "wheel_missing_new_arch", "wheel_dropped_old_arch", "driver_too_old_for_wheel", "driver_too_old_for_gpu",
    "driver_branch_dropped_gpu", "driver_not_installed", "driver_library_mismatch", "dkms_not_built_for_kernel",
    "secure_boot_blocks_module", "wrong_kernel_module_flavour", "forward_compat_on_geforce",
    "cuda_compat_older_than_driver", "cpu_only_wheel", "container_lost_gpu_cgroup", "container_gpu_not_passed",
    "wsl_host_too_old", "wsl_linux_driver_shadowing", "none_healthy", "none_benign_warning", "none_user_code",
    "oom_single_allocation_too_big", "oom_fragmentation", "oom_working_set_too_big", "oom_optimizer_states",
    "oom_graph_retained", "oom_other_process", "oom_kv_cache", "ld_library_path_pollution", "torch_companion_mismatch",
    "extension_abi_mismatch", "extension_binary_missing", "triton_ptxas_too_old", "gpu_too_old_for_triton",
    "triton_missing_on_windows", "build_toolchain_mismatch", "dtype_unsupported_on_gpu", "pip_no_matching_wheel",
    "jetson_needs_vendor_wheel", "gpu_off_bus_link", "psu_transient", "throttled_power_or_heat", "pcie_link_degraded",
    "dataloader_bottleneck", "fp32_without_tensor_cores",
    "nccl_p2p_consumer_gpu", "nccl_p2p_acs_iommu", "nccl_shm_too_small", "nccl_duplicate_gpu", "nccl_roce_gid",
    "nccl_wrong_interface", "nccl_too_old_for_gpu", "fabric_not_ready", "uvm_broken_after_suspend",
    "ecc_hardware_fault", "visible_devices_wrong", "mig_configuration", "rocm_arch_unsupported", "rocm_permission",
    "cuda_wheel_on_amd", "rocm_igpu_first", "rocm_wsl",
    "planning_capacity", "planning_hardware_choice", "planning_power",
)  # fmt: skip


@cache
def case(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(path.read_text(encoding="utf-8"))
    return loaded


def answer(given: dict[str, Any], folder: Path, lang: str) -> tuple[int, dict[str, Any]]:
    """Exit status and report of `gpurules diagnose` on the texts of a case."""
    args = ["diagnose", "--json", "--no-save", "--no-probe", "--lang", lang, "--today", "2026-11-30"]
    for name, content in given.items():
        if name == "question":
            args += ["--question", content]
        elif name.startswith("facts"):
            path = folder / f"{name}.yaml"
            path.write_text(yaml.safe_dump(content, allow_unicode=True), encoding="utf-8")
            args += ["--facts", str(path)]
        else:
            path = folder / f"{name}.txt"
            path.write_text(content, encoding="utf-8")
            args += ["--report", str(path)]
    done = CliRunner().invoke(cli, args)
    return done.exit_code, json.loads(done.stdout)


def meets(fix: dict[str, Any], wanted: dict[str, Any]) -> bool:
    packages = fix.get("packages") or {}
    rest = {k: v for k, v in wanted.items() if k != "packages"}
    return all(fix.get(k) == v for k, v in rest.items()) and all(
        packages.get(name) == spec for name, spec in wanted.get("packages", {}).items()
    )


def sentences(report: dict[str, Any]) -> list[str]:
    """Every text of a report that people read and that is no command, name or line of their own."""
    found = [report["summary"], *report.get("assumptions", ())]
    for finding in report["findings"]:
        found += [finding["title"], finding["message"], *(reason["text"] for reason in finding.get("because") or ())]
    for fix in report["fixes"]:
        found += [fix["title"], *(step["text"] for step in fix["steps"] if step.get("text"))]
        found += [*(fix.get("risks") or ()), *(fix[k] for k in ("undo", "verified_note") if fix.get(k))]
    found += [question["text"] for question in report["questions"]]
    return [text for text in found if text]


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case(path: Path, tmp_path: Path) -> None:
    expect = case(path)["expect"]
    code, report = answer(case(path)["input"], tmp_path, "en")
    causes = [finding["cause"] for finding in report["findings"]]
    assert report["verdict"] == expect["verdict"]
    if expect["verdict"] == "unknown":
        assert causes[:1] == ([expect["first_candidate"]] if "first_candidate" in expect else [])
    else:
        assert causes == expect["causes"]
    grave = any(finding["severity"] == "error" for finding in report["findings"])
    assert code == (1 if grave else 0)
    places = []
    for wanted in expect.get("fixes", ()):
        fitting = [i for i, fix in enumerate(report["fixes"]) if meets(fix, wanted)]
        assert fitting, f"no fix {wanted} among {[(f['id'], f['action']) for f in report['fixes']]}"
        places.append(fitting[0])
    assert places == sorted(places)
    assert {fix["action"] for fix in report["fixes"]}.isdisjoint(expect.get("never_actions", ()))
    assert {fix.get("index_url") for fix in report["fixes"]}.isdisjoint(
        {INDEX + name for name in expect.get("never_indexes", ())}
    )


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_case_in_chinese(path: Path, tmp_path: Path) -> None:
    _code, english = answer(case(path)["input"], tmp_path, "en")
    _code, chinese = answer(case(path)["input"], tmp_path, "zh")
    assert chinese["verdict"] == english["verdict"]
    assert [f["cause"] for f in chinese["findings"]] == [f["cause"] for f in english["findings"]]
    assert [f["id"] for f in chinese["fixes"]] == [f["id"] for f in english["fixes"]]
    assert [text for text in sentences(chinese) if not CHINESE.search(text)] == []
    assert [text for text in sentences(english) if CHINESE.search(text)] == []


def test_cases_are_well_formed() -> None:
    for path in CASES:
        loaded = case(path)
        assert set(loaded) == KEYS, path.name
        assert loaded["id"] == path.stem, path.name
        assert loaded["source_url"].startswith("https://"), path.name
        assert set(loaded["expect"]) <= EXPECT, path.name
        assert ("causes" in loaded["expect"]) == (loaded["expect"]["verdict"] != "unknown"), path.name


def test_each_cause_has_three_cases() -> None:
    counted = Counter(cause for path in CASES for cause in case(path)["expect"].get("causes", ()))
    assert {cause: counted[cause] for cause in COVERED if counted[cause] < 3} == {}
