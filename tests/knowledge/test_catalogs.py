"""The shipped catalogs say what their sources say, and a wrong figure is reported with file, line and field."""

from __future__ import annotations

import re
import shutil
from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path

import pytest
from gpurules.facts import Scalar
from gpurules.knowledge import catalogs as module
from gpurules.knowledge.catalogs import CatalogRow, Catalogs, load_catalogs
from gpurules.knowledge.problems import Problem, Problems
from gpurules.knowledge.vocabulary import Vocabulary, load_vocabulary

KNOWLEDGE = Path(module.__file__).parent
FILES = (
    *("architectures", "cuda_releases", "distros", "driver_branches", "extensions", "gfx_targets", "gpus", "images"),
    *("methods", "mirrors", "model_kinds", "models", "nvml_codes", "pci_chips", "planning", "prices", "torch_builds"),
)


def _vocabulary() -> Vocabulary:
    problems = Problems()
    vocabulary = load_vocabulary(KNOWLEDGE / "vocabulary.yaml", problems)
    assert problems.found == []
    return vocabulary


VOCABULARY = _vocabulary()


@pytest.fixture(scope="module")
def shipped() -> Catalogs:
    problems = Problems()
    found = load_catalogs(KNOWLEDGE / "facts", VOCABULARY, problems)
    assert problems.found == []
    return found


def row(catalogs: Catalogs, type_name: str, **identity: Scalar) -> CatalogRow:
    found = [r for r in catalogs.rows if r.type == type_name and identity.items() <= dict(r.fields).items()]
    assert len(found) == 1, (type_name, identity, len(found))
    return found[0]


def targets(catalogs: Catalogs, build: str) -> tuple[list[Scalar], list[Scalar]]:
    of_build = [r for r in catalogs.tables()["build_target"] if r["build"] == build]
    return [r["sm"] for r in of_build if r["code"] == "sass"], [r["sm"] for r in of_build if r["code"] == "ptx"]


# --- what the shipped catalogs hold -----------------------------------------------------------------------------------


def test_every_file_is_read_and_dated(shipped: Catalogs) -> None:
    assert dict(shipped.retrieved) == dict.fromkeys(FILES, "2026-11-30")
    assert {r.file for r in shipped.rows} == {f"{name}.yaml" for name in FILES}


def test_every_row_is_sourced_and_fits_the_vocabulary(shipped: Catalogs) -> None:
    for r in shipped.rows:
        assert r.source.url.startswith("https://")
        assert r.source.title
        assert r.confidence in ("verified", "secondary", "inferred")
        assert r.line > 0
        for name, value in r.fields.items():
            assert VOCABULARY.check(r.type, name, value) is None, (r.file, r.line, name, value)


def test_how_many_builds_of_each_accelerator(shipped: Catalogs) -> None:
    counts = Counter(r["accelerator"] for r in shipped.tables()["torch_build"])
    assert counts == {"cuda": 221, "rocm": 66, "xpu": 30, "cpu": 108, "mps": 32}


def test_the_default_build_of_2_15(shipped: Catalogs) -> None:
    found = row(shipped, "torch_build", build="2.15.0+cu132@linux-x86_64")
    assert found.fields == {
        "build": "2.15.0+cu132@linux-x86_64",
        "torch": "2.15.0",
        "glibc_min": "2.28",
        "variant": "cu132",
        "accelerator": "cuda",
        "cuda": "13.2",
        "cuda_major": 13,
        "platform": "linux-x86_64",
        "python_min": "3.11",
        "python_max": "3.15",
        "torchvision": "0.29.2",
        "torchaudio": "2.11.1",
        "triton": "3.9.x",
        "cudnn": "9.26.0.51",
        "nccl": "2.30.7",
        "index_url": "https://download.pytorch.org/whl/cu132",
        "pypi_default": True,
        "targets": "sm_75 sm_80 sm_86 sm_90 sm_100 sm_120",
        "targets_known": True,
        "confirmed": True,
        "rank": found.fields["rank"],
    }
    assert found.confidence == "verified"
    assert targets(shipped, "2.15.0+cu132@linux-x86_64") == ([75, 80, 86, 90, 100, 120], [])


@pytest.mark.parametrize(
    ("build", "sass", "ptx"),
    [
        ("2.14.1+cu126@linux-x86_64", [50, 60, 70, 75, 80, 86, 90], []),
        ("2.14.1+cu126@linux-aarch64", [80, 90], []),
        ("2.13.0+cu129@linux-x86_64", [75, 80, 86, 90, 100, 120], []),
        ("2.12.1+cu130@linux-aarch64", [80, 90, 100, 110, 120], []),
        ("2.10.0+cu130@linux-x86_64", [75, 80, 86, 90, 100, 120], [120]),
        ("2.7.1+cu128@linux-x86_64", [75, 80, 86, 90, 100, 120], [120]),
        ("2.7.1+cu128@windows-x86_64", [], []),
        ("2.5.1+cu118@windows-x86_64", [37, 50, 60, 61, 70, 75, 80, 86, 90], [37]),
        ("1.10.0+cu102@linux-x86_64", [37, 50, 60, 70], []),
    ],
)
def test_targets(shipped: Catalogs, build: str, sass: list[int], ptx: list[int]) -> None:
    assert targets(shipped, build) == (sass, ptx)


@pytest.mark.parametrize(
    ("build", "confirmed", "known", "default"),
    [
        ("2.15.0+cu130@linux-x86_64", False, True, False),
        ("2.15.0+cu134@linux-x86_64", False, True, False),
        ("2.15.0+rocm7.14@linux-x86_64", False, False, False),
        ("2.14.1+rocm7.14@linux-x86_64", True, False, False),
        ("2.14.1+cu130@linux-x86_64", True, True, True),
        ("2.14.1+cu130@linux-aarch64", True, True, True),
        ("2.13.0+cu129@linux-x86_64", True, True, False),
        ("2.13.0+cu129@linux-aarch64", False, True, False),
        ("2.7.1+cu128@windows-x86_64", False, False, False),
        ("2.10.0+cu128@linux-x86_64", True, True, True),
        ("2.15.0+cpu@windows-x86_64", True, True, True),
        ("2.14.1+xpu@windows-x86_64", True, False, False),
    ],
)
def test_confirmed_known_default(shipped: Catalogs, build: str, confirmed: bool, known: bool, default: bool) -> None:
    fields = row(shipped, "torch_build", build=build).fields
    assert (fields["confirmed"], fields["targets_known"], fields["pypi_default"]) == (confirmed, known, default)


def test_builds_without_cuda(shipped: Catalogs) -> None:
    mac = row(shipped, "torch_build", build="2.15.0+cpu@macos-arm64").fields
    assert (mac["accelerator"], mac["index_url"]) == ("mps", "https://download.pytorch.org/whl/cpu")
    assert "cuda" not in mac
    assert row(shipped, "torch_build", build="1.11.0+cpu@macos-arm64").fields["accelerator"] == "cpu"
    rocm = row(shipped, "torch_build", build="2.13.0+rocm7.2@linux-x86_64").fields
    assert str(rocm["targets"]).split()[-1] == "gfx1103"
    of_build = [t["gfx"] for t in shipped.tables()["build_gfx"] if t["build"] == rocm["build"]]
    assert " ".join(map(str, of_build)) == rocm["targets"]
    old = row(shipped, "torch_build", build="1.10.0+rocm4.2@linux-x86_64").fields
    assert old["index_url"] == "https://download.pytorch.org/whl/torch_stable.html"
    assert row(shipped, "torch_build", build="2.11.0+cu129@linux-x86_64").fields["torchaudio"] == "2.11.0"


def test_facts_that_decide_which_build_old_and_new_cards_get(shipped: Catalogs) -> None:
    builds = shipped.tables()["torch_build"]
    assert {b["build"] for b in builds if b["torch"] == "2.15.0" and b["variant"] == "cu126"} == set()
    assert {b["build"] for b in builds if b["variant"] == "cu129" and b["torch"] in ("2.12.0", "2.14.0")} == set()
    volta = {t["build"] for t in shipped.tables()["build_target"] if t["sm"] == 70}
    at_linux = [f"{torch}+cu128@linux-x86_64" for torch in ("2.7.1", "2.8.0", "2.9.1", "2.10.0", "2.11.0")]
    assert [build in volta for build in at_linux] == [False, True, True, True, False]
    blackwell = {t["build"] for t in shipped.tables()["build_target"] if t["sm"] in (100, 120)}
    assert not any("+cu126@" in str(build) for build in blackwell)


def test_rank_orders_confirmed_then_torch_then_default_then_cuda(shipped: Catalogs) -> None:
    rank = {str(b["build"]): int(b["rank"]) for b in shipped.tables()["torch_build"]}
    best_first = [
        "2.15.0+cu132@linux-x86_64",
        "2.14.1+cu130@linux-x86_64",  # the default goes before the newer CUDA
        "2.14.1+cu132@linux-x86_64",
        "2.14.1+cu126@linux-x86_64",
        "2.14.0+cu130@linux-x86_64",
        "2.13.0+cu129@linux-x86_64",
        "2.9.1+cu128@linux-x86_64",
        "1.10.0+cu102@linux-x86_64",
        "2.15.0+cu134@linux-x86_64",  # only inferred: after every confirmed one
        "2.15.0+cu130@linux-x86_64",
    ]
    assert [b for b in best_first if b in rank] == best_first
    assert all(rank[a] > rank[b] for a, b in pairwise(best_first))
    assert rank["2.14.1+rocm7.14@linux-x86_64"] > rank["2.14.1+rocm7.2@linux-x86_64"]
    assert max(rank.values()) < 2**53


@pytest.mark.parametrize(
    ("cuda", "level", "toolkit", "minimum", "sms"),
    [
        ("13.5", 13050, (None, None), ("580", "580"), (75, 121)),
        ("13.2", 13020, ("595.45.04", None), ("580", "580"), (75, 121)),
        ("13.0", 13000, ("580.65.06", None), ("580", "580"), (75, 121)),
        ("12.9", 12090, ("575.51.03", "576.02"), ("525.60.13", "528.33"), (50, 121)),
        ("12.8", 12080, ("570.26", "570.65"), ("525.60.13", "528.33"), (50, 120)),
        ("12.6", 12060, ("560.28.03", "560.76"), ("525.60.13", "528.33"), (50, 90)),
        ("11.8", 11080, ("520.61.05", "520.06"), ("450.80.02", "452.39"), (35, 90)),
        ("11.0", 11000, ("450.51.05", "451.48"), ("450.80.02", "452.39"), (35, 80)),
        ("10.2", 10020, ("440.33", "441.22"), ("440.33", "441.22"), (30, 75)),
        ("10.1", 10010, ("418.39", "418.96"), ("418.39", "418.96"), (30, 75)),
        ("9.0", 9000, ("384.81", "385.54"), ("384.81", "385.54"), (30, 70)),
        ("8.0", 8000, ("367.48", "369.30"), ("367.48", "369.30"), (20, 62)),
    ],
)
def test_cuda_releases(
    *,
    shipped: Catalogs,
    cuda: str,
    level: int,
    toolkit: tuple[str | None, str | None],
    minimum: tuple[str, str],
    sms: tuple[int, int],
) -> None:
    found = row(shipped, "cuda_release", cuda=cuda).fields
    assert found["level"] == level
    assert found["cuda_major"] == int(cuda.partition(".")[0])
    assert (found.get("toolkit_driver_linux"), found.get("toolkit_driver_windows")) == toolkit
    assert (found["min_driver_linux"], found["min_driver_windows"]) == minimum
    assert (found["first_sm"], found["last_sm"]) == sms


@pytest.mark.parametrize(
    ("branch", "supported", "cuda_max", "end"),
    [
        (620, True, "13.5", "2029-09"),
        (610, False, "13.3", "2026-08"),
        (595, True, "13.2", "2027-03"),
        (590, False, "13.1", None),
        (580, True, "13.0", "2028-06"),
        (575, False, "12.9", None),
        (570, False, "12.8", "2026-02"),
        (550, False, "12.4", None),
        (535, False, "12.2", "2026-06"),
        (525, False, "12.0", None),
        (470, False, "11.4", None),
        (435, False, "10.1", None),
        (390, False, "9.1", None),
    ],
)
def test_driver_branches(shipped: Catalogs, branch: int, supported: bool, cuda_max: str, end: str | None) -> None:
    found = row(shipped, "driver_branch", branch=branch).fields
    assert (found["supported"], found["cuda_max"], found.get("end_of_life")) == (supported, cuda_max, end)


def test_newest_driver_belongs_to_its_branch(shipped: Catalogs) -> None:
    newest = {r["branch"]: str(r["newest"]) for r in shipped.tables()["driver_branch"] if "newest" in r}
    assert all(text.partition(".")[0] == str(branch) for branch, text in newest.items())
    assert (newest[470], newest[390]) == ("470.256.02", "390.157")


@pytest.mark.parametrize(
    ("sm", "cuda", "driver", "flavour", "integrated"),
    [
        (37, ("6.5", "11.8"), (340, 470), "proprietary", None),
        (50, ("6.0", "12.9"), (334, 580), "proprietary", None),
        (61, ("8.0", "12.9"), (367, 580), "proprietary", None),
        (70, ("9.0", "12.9"), (384, 580), "proprietary", None),
        (72, ("9.2", "12.9"), (None, None), None, True),
        (75, ("10.0", None), (410, None), "either", None),
        (80, ("11.0", None), (450, None), "either", None),
        (86, ("11.1", None), (455, None), "either", None),
        (87, ("11.4", None), (None, None), None, True),
        (89, ("11.8", None), (520, None), "either", None),
        (90, ("11.8", None), (520, None), "either", None),
        (100, ("12.8", None), (570, None), "open", None),
        (103, ("12.9", None), (580, None), "open", None),
        (110, ("13.0", None), (580, None), "open", True),
        (120, ("12.8", None), (570, None), "open", None),
        (121, ("12.9", None), (580, None), "open", None),
    ],
)
def test_architectures(
    *,
    shipped: Catalogs,
    sm: int,
    cuda: tuple[str, str | None],
    driver: tuple[int | None, int | None],
    flavour: str | None,
    integrated: bool | None,
) -> None:
    found = row(shipped, "architecture", sm=sm).fields
    assert (found["first_cuda"], found.get("last_cuda")) == cuda
    assert (found.get("first_driver"), found.get("last_driver")) == driver
    assert (found.get("module_flavour"), found.get("integrated")) == (flavour, integrated)


def test_features_come_with_the_architecture(shipped: Catalogs) -> None:
    rows = {int(r["sm"]): r for r in shipped.tables()["architecture"]}
    first = {
        name: min(sm for sm, r in rows.items() if r.get(name))
        for name in ("fp16_tensor_cores", "bf16", "tf32", "fp8", "fp4")
    }
    assert first == {"fp16_tensor_cores": 70, "bf16": 80, "tf32": 80, "fp8": 89, "fp4": 100}


@pytest.mark.parametrize(
    ("product", "expected"),
    [
        (
            "GeForce RTX 5090",
            {
                "vendor": "nvidia",
                "family": "geforce",
                "sm": 120,
                "vram_gib": 32,
                "vram_mib": 32768,
                "tdp_w": 575,
                "psu_w": 1000,
            },
        ),
        (
            "GeForce RTX 4090",
            {"sm": 89, "vram_gib": 24, "cuda_cores": 16384, "tdp_w": 450, "psu_w": 850, "nvlink": "none"},
        ),
        (
            "GeForce RTX 3090",
            {"sm": 86, "bandwidth_gbs": 936, "tdp_w": 350, "nvlink": "112.5 GB/s", "pcie": "PCIe 4.0 x16"},
        ),
        ("GeForce GTX 1050", {"sm": 61, "architecture": "Pascal"}),
        ("GeForce RTX 3050 Laptop GPU", {"sm": 86, "vram_gib": 4, "cuda_cores": 2048}),
        ("Tesla K80", {"sm": 37, "family": "datacenter"}),
        ("Tesla V100 PCIe 16GB", {"sm": 70, "tdp_w": 250, "memory_type": "HBM2"}),
        ("A100 SXM4 80GB", {"sm": 80, "mig": 7, "vram_gib": 80}),
        ("H100 SXM5 80GB", {"sm": 90, "nvlink": "900 GB/s", "bandwidth_gbs": 3360}),
        ("Quadro RTX 6000", {"sm": 75, "vram_gib": 24}),
        ("RTX 6000 Ada Generation", {"sm": 89, "vram_gib": 48}),
        ("RTX PRO 6000 Blackwell Workstation Edition", {"sm": 120, "vram_gib": 96, "mig": 4}),
        ("GB10", {"sm": 121, "platform": "linux-aarch64", "family": "other"}),
        ("GB200", {"sm": 100, "platform": "linux-aarch64"}),
        ("GH200", {"sm": 90, "platform": "linux-aarch64"}),
        ("GB300", {"sm": 103, "platform": "linux-aarch64"}),
        ("Jetson AGX Thor", {"sm": 110, "platform": "linux-aarch64", "family": "jetson"}),
        ("Radeon RX 6700 XT", {"vendor": "amd", "gfx": "gfx1031", "vram_gib": 12}),
        ("Radeon 8060S", {"gfx": "gfx1151"}),
        ("Instinct MI300X", {"gfx": "gfx942", "vram_gib": 192, "family": "instinct"}),
        ("Arc A770 16GB", {"vendor": "intel", "vram_gib": 16}),
        ("Apple M1", {"vendor": "apple", "family": "apple"}),
    ],
)
def test_gpus(shipped: Catalogs, product: str, expected: Mapping[str, Scalar]) -> None:
    assert expected.items() <= dict(row(shipped, "gpu_model", product=product).fields).items()


def test_memory_options_are_products_of_their_own(shipped: Catalogs) -> None:
    sizes = {r["product"]: r.get("vram_gib") for r in shipped.tables()["gpu_model"]}
    names = ("GeForce RTX 4060 Ti", "GeForce RTX 4060 Ti 8GB", "GeForce RTX 4060 Ti 16GB", "A100", "A100 40GB")
    assert [sizes[name] for name in names] == [None, 8, 16, None, 40]


def test_pci_ids(shipped: Catalogs) -> None:
    products: dict[Scalar, set[Scalar]] = {}
    for r in shipped.tables()["gpu_pci_id"]:
        products.setdefault(r["device_id"], set()).add(r["product"])
    assert products["10de:2684"] == {"GeForce RTX 4090"}
    assert products["10de:2b85"] == {"GeForce RTX 5090"}
    assert products["10de:25b6"] == {"A2", "A16"}
    assert products["1002:73df"] >= {"Radeon RX 6700 XT"}
    assert {r["product"] for r in shipped.tables()["gpu_pci_id"]} <= {
        r["product"] for r in shipped.tables()["gpu_model"]
    }


@pytest.mark.parametrize(
    ("package", "torch", "install", "binds"),
    [
        ("xformers", "2.6.0", "0.0.29.post3", "patch"),
        ("xformers", "2.0.1", "0.0.22", "patch"),
        ("vllm", "2.7.0", "0.9.2", "patch"),
        ("flash-attn", "2.3.0", "2.7.4.post1", "none"),
        ("auto-gptq", "2.2.1", "0.7.1", "patch"),
    ],
)
def test_one_release_of_a_package_is_the_one_to_install_for_a_torch(
    *, shipped: Catalogs, package: str, torch: str, install: str, binds: str
) -> None:
    rows = [r for r in shipped.tables()["extension_build"] if (r["package"], r["torch"]) == (package, torch)]
    assert [(r["install"], r["binds"]) for r in rows if "install" in r] == [(install, binds)]


def test_what_releases_of_packages_need(shipped: Catalogs) -> None:
    needs = [r for r in shipped.tables()["extension"] if r["package"] == "vllm"]
    assert [(r["since"], r["before"], r["sm_min"]) for r in needs] == [("0.2", "0.23", 70), ("0.23", "4000", 75)]
    assert row(shipped, "extension", package="flash-attn", since="2.0").fields["sm_min"] == 80


def test_no_registry_hosts_and_no_long_lines() -> None:
    for name in FILES:
        text = (KNOWLEDGE / "facts" / f"{name}.yaml").read_text(encoding="utf-8")
        assert not re.search(r"pypi\.org|pythonhosted", text)
        assert max(len(line) for line in text.splitlines()) <= 120


# --- faults -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(KNOWLEDGE / "facts", tmp_path / "facts")
    return tmp_path / "facts"


def faults(folder: Path) -> list[Problem]:
    problems = Problems()
    load_catalogs(folder, VOCABULARY, problems)
    return sorted(set(problems.found))


def edit(folder: Path, name: str, old: str, new: str) -> int:
    """Replace the first occurrence; the number of the line where it stands."""
    path = folder / f"{name}.yaml"
    text = path.read_text(encoding="utf-8")
    assert old in text, old
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return text[: text.index(old)].count("\n") + 1


@pytest.mark.parametrize(
    ("name", "old", "new", "field", "message", "offset"),
    [
        (
            "cuda_releases",
            'cuda: "12.8", toolkit',
            'cuda: "12.8", tolkit',
            "tolkit_driver_linux",
            'did you mean "toolkit_driver_linux"?',
            0,
        ),
        ("cuda_releases", "max_gcc: 16", "max_gcc: sixteen", "max_gcc", '"max_gcc" must be a whole number', 0),
        ("cuda_releases", "source: notes", "source: note", "source", 'unknown source "note"; did you mean "notes"?', 0),
        (
            "cuda_releases",
            "confidence: secondary",
            "confidence: sure",
            "confidence",
            "must be one of verified, secondary, inferred",
            0,
        ),
        ("cuda_releases", 'cuda: "12.6"', 'cuda: "12.5"', "cuda", '"12.5" is already given at line', 2),
        ("driver_branches", "supported: true", "supported: yes", "supported", '"supported" must be true or false', 0),
        (
            "driver_branches",
            "designation: Production",
            "end_of_lif: Production",
            "end_of_lif",
            'did you mean "end_of_life"?',
            0,
        ),
        (
            "driver_branches",
            'cuda_max: "13.0"',
            'cuda_max: "12.0"',
            "cuda_max",
            "12.0 is below the 12.9 of the older row at line",
            0,
        ),
        (
            "architectures",
            "module_flavour: either",
            "module_flavour: eiter",
            "module_flavour",
            'did you mean "either"?',
            0,
        ),
        ("architectures", 'first_cuda: "4.2"', 'first_cuda: "11.2"', "first_cuda", "11.2 is above last_cuda 10.2", 0),
        ("architectures", "sm: 86,", "sm: abc,", "sm", "must be a compute capability such as 8.9", 0),
        (
            "torch_builds",
            'python: ["3.11", "3.15"]',
            'python: ["3.15", "3.11"]',
            "python",
            "the oldest version 3.15 is newer than the newest 3.11",
            0,
        ),
        (
            "torch_builds",
            'python: ["3.11", "3.15"]',
            'python: "3.11"',
            "python",
            '"python" must be a list of plain values',
            0,
        ),
        ("torch_builds", "variant: cu130", "variant: cuda130", "variant", "must be cpu, xpu, cu126 or rocm7.2", 0),
        ("torch_builds", "variant: cu134", "variant: cu149", "variant", "CUDA 14.9 is not among the CUDA releases", 0),
        (
            "torch_builds",
            "on: [windows-x86_64]",
            "on: [windows]",
            "platform",
            "must be one of linux-x86_64, linux-aarch64",
            0,
        ),
        (
            "torch_builds",
            "default: [linux-x86_64]",
            "default: [linux-x86-64]",
            "default",
            '"linux-x86-64" is not in "on"; did you mean "linux-x86_64"?',
            0,
        ),
        (
            "torch_builds",
            "targets: [75, 80, 86",
            "targets: [70, 75, 80, 86",
            "targets",
            "70 is outside 75 to 121, what CUDA 13.0 compiles for",
            0,
        ),
        ("torch_builds", "targets: [75, 80, 86", "targets: [75, 75, 80, 86", "targets", "75 is given twice", 0),
        (
            "torch_builds",
            "targets: [75, 80, 86",
            "targets: [sm_75, 80, 86",
            "targets",
            '"sm_75" is no compute capability such as 89',
            0,
        ),
        ("torch_builds", "targets: [gfx900", "targets: [gfx900x", "targets", '"gfx900x" is no gfx name', 0),
        ("torch_builds", "triton: 3.9.x", "tritn: 3.9.x", "tritn", 'did you mean "triton"?', 0),
        ("torch_builds", "targets_source: wheel", "targets_source: weel", "targets_source", 'did you mean "wheel"?', 0),
        (
            "torch_builds",
            "index: torch_stable.html",
            'index: "../x"',
            "index",
            "must be a page below https://download.pytorch.org/whl/",
            0,
        ),
        ("extensions", "binds: none", "binds: nothing", "binds", "must be one of patch, release, none", 0),
        ("extensions", "torch: 2.9.1, versions: [0.0.33.post2]", "torch: 2.9.1", "versions", "needs either", 0),
        ("extensions", "sm_min: 80", "sm_mim: 80", "sm_mim", 'did you mean "sm_min"?', 0),
        ("extensions", "    module: flash_attn_2_cuda\n", "", "module", "is missing", -1),
        ("gpus", "family: geforce", "family: gforce", "family", 'did you mean "geforce"?', 0),
        ("gpus", "sm: 89", "sm: 84", "sm", "84 is not among the architectures", 6),
        ("gpus", "pci: [2684]", "pci: [10de:2684]", "pci", "must be four lower-case hex digits", 0),
        ("gpus", "vram_options: [8, 16]", "vram_options: [8, big]", "vram_gib", '"vram_gib" must be a whole number', 0),
    ],
)
def test_a_fault_is_reported_where_it_stands(
    *, folder: Path, name: str, old: str, new: str, field: str, message: str, offset: int
) -> None:
    line = edit(folder, name, old, new)
    hits = [p for p in faults(folder) if p.field == field and message in str(p.message)]
    assert hits, [str(p) for p in faults(folder)]
    assert {p.file for p in hits} == {f"{name}.yaml"}
    # The offset: a build or model that spans lines, or takes the field from its group, is named where it begins.
    assert hits[0].line == line + offset


def test_all_faults_at_once(folder: Path) -> None:
    edit(folder, "gpus", "catalog: gpus", "catalog: gpu")
    edit(folder, "gpus", "retrieved: 2026-11-30", "retrieved: today")
    edit(folder, "gpus", 'url: "https://developer.nvidia.com/cuda-gpus"', 'url: "developer.nvidia.com"')
    edit(folder, "cuda_releases", "first_sm: 75, last_sm: 121, max_gcc: 16,", "last_sm: 121, max_gcc: 16,")
    edit(folder, "architectures", "rows:", "rowz:")
    (folder / "driver_branches.yaml").unlink()
    found = {(p.file, p.field) for p in faults(folder)}
    assert found >= {
        ("gpus.yaml", "catalog"),
        ("gpus.yaml", "retrieved"),
        ("gpus.yaml", "sources.cuda-gpus.url"),
        ("cuda_releases.yaml", "first_sm"),
        ("architectures.yaml", "rowz"),
        ("architectures.yaml", "rows"),
        ("driver_branches.yaml", ""),
    }


def test_a_new_release_is_one_block(folder: Path) -> None:
    block = """rows:
  - torch: 2.16.0
    python: ["3.11", "3.15"]
    torchvision: 0.30.0
    torchaudio: 2.11.1
    source: wheel
    confidence: verified
    builds:
      - {variant: cu134, on: [linux-x86_64], default: [linux-x86_64], targets: [75, 80, 120], ptx: [120]}
"""
    edit(folder, "torch_builds", "rows:\n", block)
    problems = Problems()
    found = load_catalogs(folder, VOCABULARY, problems)
    assert problems.found == []
    assert max(found.tables()["torch_build"], key=lambda b: int(b["rank"]))["build"] == "2.16.0+cu134@linux-x86_64"
    assert targets(found, "2.16.0+cu134@linux-x86_64") == ([75, 80, 120], [120])
