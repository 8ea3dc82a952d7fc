"""collect_env: layouts of many releases, whole, cut and squeezed onto one line."""

from __future__ import annotations

import pytest
from gpurules.facts import Fact, Provenance
from gpurules.probes.readers.collect_env import read

from .support import facts_of, fields_of

LINUX = """
Collecting environment information...
PyTorch version: 2.8.0+cu129
Is debug build: False
CUDA used to build PyTorch: 12.9
ROCM used to build PyTorch: N/A

OS: Ubuntu 24.04.2 LTS (x86_64)
GCC version: (Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0
Clang version: Could not collect
CMake version: version 3.28.3
Libc version: glibc-2.39

Python version: 3.12.3 (main, Jun 18 2025, 17:59:45) [GCC 13.3.0] (64-bit runtime)
Python platform: Linux-6.11.0-26-generic-x86_64-with-glibc2.39
Is CUDA available: True
CUDA runtime version: 12.6.85
CUDA_MODULE_LOADING set to: LAZY
GPU models and configuration:
GPU 0: NVIDIA A100-SXM4-40GB
  MIG 1g.5gb      Device  0:
  MIG 2g.10gb     Device  1:
GPU 1: NVIDIA A100-SXM4-40GB

Nvidia driver version: 575.57.08
cuDNN version: Probably one of the following:
/usr/lib/x86_64-linux-gnu/libcudnn.so.9.10.1
/usr/lib/x86_64-linux-gnu/libcudnn_adv.so.9.10.1
Is XPU available: False
HIP runtime version: N/A
MIOpen runtime version: N/A
Is XNNPACK available: True

CPU:
Architecture:                         x86_64
CPU(s):                               48
Model name:                           AMD EPYC 7402 24-Core Processor
Core(s) per socket:                   24
Socket(s):                            1

Versions of relevant libraries:
[pip3] numpy==2.2.6
[pip3] torch==2.8.0+cu129
[conda] numpy                     2.2.6           py312h72c5963_0    conda-forge
[conda] torch                     2.8.0+cu129              pypi_0    pypi
"""


def merged(facts: list[Fact], kind: str) -> dict[str, object]:
    return {name: value for fields in fields_of(facts, kind) for name, value in fields.items()}


def test_linux_report() -> None:
    facts = facts_of(read, LINUX)
    assert merged(facts, "torch") == {
        "version": "2.8.0+cu129", "debug": False, "cuda": "12.9", "cuda_built": True, "hip_built": False,
        "cuda_available": True, "xpu_available": False,
    }  # fmt: skip
    assert merged(facts, "os") == {
        "name": "Ubuntu 24.04.2 LTS (x86_64)", "family": "linux", "machine": "x86_64", "distro": "ubuntu",
        "distro_version": "24.04", "wsl": False, "jetson": False,
    }  # fmt: skip
    assert fields_of(facts, "kernel") == [{"release": "6.11.0-26-generic", "version": "6.11.0"}]
    assert fields_of(facts, "libc") == [{"text": "glibc-2.39", "version": "2.39"}]
    assert fields_of(facts, "compiler") == [
        {"name": "gcc", "text": "(Ubuntu 13.3.0-6ubuntu2~24.04) 13.3.0", "version": "13.3.0"}
    ]
    assert fields_of(facts, "python") == [{"version": "3.12.3", "bits": 64}]
    assert fields_of(facts, "driver") == [{"vendor": "nvidia", "version": "575.57.08"}]
    assert fields_of(facts, "cuda_toolkit") == [{"version": "12.6.85", "release": "12.6"}]
    assert fields_of(facts, "gpu") == [
        {"index": 0, "vendor": "nvidia", "name": "NVIDIA A100-SXM4-40GB"},
        {"index": 1, "vendor": "nvidia", "name": "NVIDIA A100-SXM4-40GB"},
    ]
    assert fields_of(facts, "mig_device") == [
        {"gpu": 0, "dev": 0, "name": "1g.5gb"},
        {"gpu": 0, "dev": 1, "name": "2g.10gb"},
    ]
    assert fields_of(facts, "coverage") == [{"domain": "gpus", "complete": True}]
    assert [fields["path"] for fields in fields_of(facts, "cudnn_file")] == [
        "/usr/lib/x86_64-linux-gnu/libcudnn.so.9.10.1",
        "/usr/lib/x86_64-linux-gnu/libcudnn_adv.so.9.10.1",
    ]
    assert merged(facts, "cpu") == {"name": "AMD EPYC 7402 24-Core Processor", "threads": 48, "cores": 24}
    assert fields_of(facts, "package") == [
        {"name": "numpy", "version": "2.2.6", "manager": "pip"},
        {"name": "torch", "version": "2.8.0+cu129", "manager": "pip"},
        {"name": "numpy", "version": "2.2.6", "manager": "conda", "build": "py312h72c5963_0", "channel": "conda-forge"},
        {"name": "torch", "version": "2.8.0+cu129", "manager": "conda", "build": "pypi_0", "channel": "pypi"},
    ]
    assert not fields_of(facts, "rocm")


def test_facts_name_their_line() -> None:
    driver = next(fact for fact in facts_of(read, LINUX) if fact.type == "driver")
    assert driver.provenance == (Provenance("report", "paste.txt", 24, "collect_env"),)


def test_one_line_report_says_the_same() -> None:
    squeezed = " ".join(line for line in LINUX.strip().split("\n")[:30] if line)
    assert merged(facts_of(read, squeezed), "torch") == merged(facts_of(read, LINUX), "torch")
    assert fields_of(facts_of(read, squeezed), "driver") == fields_of(facts_of(read, LINUX), "driver")
    assert fields_of(facts_of(read, squeezed), "cudnn_file") == fields_of(facts_of(read, LINUX), "cudnn_file")


def test_nothing_is_read_from_absent_values() -> None:
    facts = facts_of(
        read,
        """
        PyTorch version: N/A
        CUDA used to build PyTorch: Could not collect
        OS: Could not collect
        GCC version: Could not collect
        Libc version: N/A
        Python version: Could not collect
        Is CUDA available: N/A
        CUDA runtime version: No CUDA
        GPU models and configuration: Could not collect
        Nvidia driver version: No CUDA
        cuDNN version: Could not collect
        HIP runtime version: N/A
        """,
    )
    assert facts == []


def test_cpu_build() -> None:
    facts = facts_of(read, "PyTorch version: 2.7.1+cpu\nCUDA used to build PyTorch: None\nIs CUDA available: False\n")
    assert merged(facts, "torch") == {"version": "2.7.1+cpu", "cuda_built": False, "cuda_available": False}


def test_rocm_report() -> None:
    facts = facts_of(
        read,
        """
        PyTorch version: 2.8.0+rocm6.4
        CUDA used to build PyTorch: N/A
        ROCM used to build PyTorch: 6.4.43482-0f2d60242
        Is CUDA available: True
        GPU models and configuration: AMD Instinct MI250X (gfx90a:sramecc+:xnack-)
        Nvidia driver version: Could not collect
        HIP runtime version: 6.4.43482
        MIOpen runtime version: 3.4.0
        """,
    )
    assert merged(facts, "torch") == {
        "version": "2.8.0+rocm6.4", "cuda_built": False, "hip": "6.4.43482-0f2d60242", "hip_built": True,
        "cuda_available": True,
    }  # fmt: skip
    assert fields_of(facts, "gpu") == [{"index": 0, "vendor": "amd", "gfx": "gfx90a", "name": "AMD Instinct MI250X"}]
    assert merged(facts, "rocm") == {"hip_runtime": "6.4.43482", "miopen": "3.4.0"}
    assert not fields_of(facts, "coverage")


def test_xpu_report() -> None:
    facts = facts_of(
        read,
        """
        PyTorch version: 2.9.0+xpu
        Is XPU available: True
        Intel GPU driver version:
        * intel-opencl-icd:	25.18.33578.15
        Intel GPU models onboard:
        * Intel(R) Arc(TM) B580 Graphics
        Intel GPU models detected:
        * [0] _XpuDeviceProperties(name='Intel(R) Arc(TM) B580 Graphics', platform_name='Intel(R) oneAPI Unified Runtime over Level-Zero', type='gpu', device_id=0xE20B, driver_version='1.6.33578+15', total_memory=11605MB, max_compute_units=160)
        Is XNNPACK available: True
        """,  # noqa: E501
    )
    assert fields_of(facts, "gpu") == [
        {"index": 0, "vendor": "intel", "name": "Intel(R) Arc(TM) B580 Graphics", "vram_mib": 11605}
    ]
    assert fields_of(facts, "driver") == [{"vendor": "intel", "version": "1.6.33578+15"}]
    assert merged(facts, "torch")["xpu_available"] is True


@pytest.mark.parametrize(
    ("lines", "expected"),
    [
        ("Python platform: Linux-5.15.167.4-microsoft-standard-WSL2-x86_64-with-glibc2.35",
         {"wsl": True, "jetson": False}),
        ("Python platform: Linux-5.15.148-tegra-aarch64-with-glibc2.35", {"wsl": False, "jetson": True}),
        ("Python platform: Windows-10-10.0.22631-SP0", {"family": "windows", "windows_build": "10.0.22631"}),
        ("Python platform: macOS-14.5-arm64-arm-64bit", {"family": "macos", "machine": "arm64"}),
        ("OS: Microsoft Windows 11 专业版\nIs CUDA available: True", {"family": "windows"}),
        ("OS: Red Hat Enterprise Linux 9.4 (Plow) (ppc64le)\nIs CUDA available: True",
         {"family": "linux", "machine": "ppc64le", "distro": "rhel", "distro_version": "9.4"}),
        ("OS: Debian GNU/Linux 12 (bookworm) (aarch64)\nIs CUDA available: True",
         {"distro": "debian", "distro_version": "12", "machine": "aarch64"}),
    ],
)  # fmt: skip
def test_systems(lines: str, expected: dict[str, object]) -> None:
    found = merged(facts_of(read, lines), "os")
    assert {name: found.get(name) for name in expected} == expected


def test_wsl_fact() -> None:
    facts = facts_of(read, "Python platform: Linux-5.15.167.4-microsoft-standard-WSL2-x86_64-with-glibc2.35")
    assert fields_of(facts, "wsl") == [{"version": 2, "kernel": "5.15.167.4"}]


def test_windows_machine_is_that_of_the_interpreter() -> None:
    facts = facts_of(
        read,
        """
        Python version: 3.11.9 (tags/v3.11.9:de54cf5, Apr  2 2024, 10:12:12) [MSC v.1938 64 bit (AMD64)]
        Python platform: Windows-10-10.0.19045-SP0
        """,
    )
    assert merged(facts, "os") == {"machine": "x86_64", "family": "windows", "windows_build": "10.0.19045"}


def test_oldest_layout() -> None:
    facts = facts_of(
        read,
        """
        PyTorch version: 1.0.1.post2
        Is debug build: No
        CUDA used to build PyTorch: 9.0.176

        OS: Ubuntu 16.04.5 LTS
        GCC version: (Ubuntu 5.4.0-6ubuntu1~16.04.10) 5.4.0 20160609
        Python version: 3.6
        Is CUDA available: Yes
        GPU models and configuration: GPU 0: TITAN Xp
        Nvidia driver version: 396.44
        """,
    )
    assert merged(facts, "torch") == {
        "version": "1.0.1.post2", "debug": False, "cuda": "9.0", "cuda_built": True, "cuda_available": True,
    }  # fmt: skip
    assert fields_of(facts, "python") == [{"version": "3.6"}]
    assert merged(facts, "os")["family"] == "linux"


def test_sectioned_layout() -> None:
    facts = facts_of(
        read,
        """
        ==============================
               PyTorch Info
        ==============================
        PyTorch version              : 2.8.0+cu128
        Is debug build               : False
        ==============================
               CUDA / GPU Info
        ==============================
        GPU models and configuration : GPU 0: NVIDIA H100 PCIe
        Nvidia driver version        : 570.172.08
        ==============================
                 vLLM Info
        ==============================
        ROCM Version                 : Could not collect
        vLLM Version                 : 0.11.0rc2
        vLLM Build Flags:
          CUDA Archs: 8.0 9.0; ROCm: Disabled
        """,
    )
    assert merged(facts, "vllm") == {"version": "0.11.0rc2", "cuda_archs": "8.0 9.0"}
    assert fields_of(facts, "gpu") == [{"index": 0, "vendor": "nvidia", "name": "NVIDIA H100 PCIe"}]


def test_paste_that_begins_inside_a_label() -> None:
    facts = facts_of(read, "hon version: 3.10.4 (main)\nPython platform: Linux-5.4.0-1-x86_64-with-glibc2.31\n")
    assert fields_of(facts, "python") == [{"version": "3.10.4"}]


def test_list_that_the_paste_cuts_covers_nothing() -> None:
    facts = facts_of(
        read, "Is CUDA available: True\nGPU models and configuration:\nGPU 0: NVIDIA L4\nGPU 1: NVIDIA L4\n"
    )
    assert len(fields_of(facts, "gpu")) == 2
    assert not fields_of(facts, "coverage")


def test_list_with_a_gap_covers_nothing() -> None:
    facts = facts_of(
        read, "GPU models and configuration:\nGPU 0: NVIDIA L4\nGPU 2: NVIDIA L4\nNvidia driver version: 550.54.15\n"
    )
    assert not fields_of(facts, "coverage")


def test_cut_package_rows_are_left_out() -> None:
    facts = facts_of(read, "[pip3] torch==2.8.0\n[conda] pytorch-cuda              12.\n[conda] mkl   2023.1.0")
    assert fields_of(facts, "package") == [{"name": "torch", "version": "2.8.0", "manager": "pip"}]


def test_prose_is_no_report() -> None:
    assert facts_of(read, "OS: I use Windows\nPython version: 3.10\nName: torch\nCPU: Ryzen\nmy GPU: RTX 3060\n") == []


def test_two_reports_stay_two() -> None:
    facts = facts_of(read, "PyTorch version: 2.7.0+cu128\nIs CUDA available: True\n\nPyTorch version: 2.8.0+cpu\n")
    assert [fields["version"] for fields in fields_of(facts, "torch") if "version" in fields] == [
        "2.7.0+cu128",
        "2.8.0+cpu",
    ]
