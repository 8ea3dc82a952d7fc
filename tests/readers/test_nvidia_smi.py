"""nvidia-smi: tables of every layout, lists, queries and failure lines."""

from __future__ import annotations

import pytest
from gpurules.facts import Provenance
from gpurules.probes.readers.nvidia_smi import read

from .support import facts_of, fields_of

R470 = """
Tue Mar  5 09:10:11 2024
+-----------------------------------------------------------------------------+
| NVIDIA-SMI 470.141.03   Driver Version: 470.141.03   CUDA Version: 11.4     |
|-------------------------------+----------------------+----------------------+
| GPU  Name        Persistence-M| Bus-Id        Disp.A | Volatile Uncorr. ECC |
| Fan  Temp  Perf  Pwr:Usage/Cap|         Memory-Usage | GPU-Util  Compute M. |
|                               |                      |               MIG M. |
|===============================+======================+======================|
|   0  Tesla T4            On   | 00000000:00:1E.0 Off |                    3 |
| N/A   35C    P8     9W /  70W |    112MiB / 15109MiB |      7%      Default |
|                               |                      |                  N/A |
+-------------------------------+----------------------+----------------------+
|   1  NVIDIA A100-SXM...  Off  | 00000000:07:00.0 Off |                  Off |
|ERR!   61C    P0   ERR! / 400W |      0MiB / 40536MiB |     N/A      Default |
|                               |                      |             Disabled |
+-------------------------------+----------------------+----------------------+

+-----------------------------------------------------------------------------+
| Processes:                                                                  |
|  GPU   GI   CI        PID   Type   Process name                  GPU Memory |
|        ID   ID                                                   Usage      |
|=============================================================================|
|    0   N/A  N/A      3021      C   python train.py                    99MiB |
|    1   N/A  N/A      3022    C+G   ...some/very/long                    N/A |
+-----------------------------------------------------------------------------+
"""

R550_WINDOWS = """
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 551.61                 Driver Version: 551.61         CUDA Version: 12.4     |
|-----------------------------------------+------------------------+----------------------+
| GPU  Name                     TCC/WDDM  | Bus-Id          Disp.A | Volatile Uncorr. ECC |
| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |
|                                         |                        |               MIG M. |
|=========================================+========================+======================|
|   0  NVIDIA GeForce RTX 3060 Ti   WDDM  |   00000000:0A:00.0  On |                  N/A |
|  0%   44C    P5             21W /  200W |    1810MiB /   8192MiB |     11%      Default |
|                                         |                        |                  N/A |
+-----------------------------------------+------------------------+----------------------+
"""

R600 = """
+-----------------------------------------------------------------------------------------+
| NVIDIA-SMI 610.20                 KMD Version: 610.18            CUDA UMD Version: 13.3 |
+-----------------------------------------+------------------------+----------------------+
| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |
|=========================================+========================+======================|
|   0  NVIDIA B200                    On  |   00000000:1B:00.0 Off |                    0 |
| N/A   28C    P0            142W / 1000W |       0MiB / 183359MiB |      0%      Default |
|                                         |                        |              Enabled |
+-----------------------------------------+------------------------+----------------------+

+-----------------------------------------------------------------------------------------+
| MIG devices:                                                                            |
+------------------+----------------------------------+-----------+-----------------------+
| GPU  GI  CI  MIG |                     Memory-Usage |        Vol|        Shared         |
|      ID  ID  Dev |                       BAR1-Usage | SM     Unc| CE ENC  DEC  OFA  JPG |
|==================+==================================+===========+=======================|
|  0    9   0   0  |              37MiB / 22272MiB    | 18      0 |  1   0    1    0    1 |
|                  |               0MiB / 32767MiB    |           |                       |
+------------------+----------------------------------+-----------+-----------------------+
"""


def test_table_before_r530_with_processes():
    facts = facts_of(read, R470)
    assert fields_of(facts, "nvidia_smi") == [{"state": "ok"}]
    assert fields_of(facts, "driver") == [{"vendor": "nvidia", "version": "470.141.03", "cuda_max": "11.4"}]
    assert fields_of(facts, "gpu") == [
        {
            "index": 0,
            "name": "Tesla T4",
            "vendor": "nvidia",
            "bus_id": "00000000:00:1E.0",
            "persistence": "enabled",
            "display_active": False,
            "ecc": "enabled",
            "ecc_uncorrected": 3,
            "temperature_c": 35,
            "power_w": 9,
            "power_limit_w": 70,
            "utilization_pct": 7,
            "compute_mode": "default",
            "vram_used_mib": 112,
            "vram_mib": 15109,
        },
        {
            "index": 1,
            "name": "NVIDIA A100-SXM...",
            "vendor": "nvidia",
            "bus_id": "00000000:07:00.0",
            "persistence": "disabled",
            "display_active": False,
            "ecc": "disabled",
            "temperature_c": 61,
            "power_limit_w": 400,
            "compute_mode": "default",
            "vram_used_mib": 0,
            "vram_mib": 40536,
            "mig": "disabled",
        },
    ]
    assert fields_of(facts, "process") == [
        {"gpu": 0, "pid": 3021, "type": "C", "name": "python train.py", "mem_mib": 99},
        {"gpu": 1, "pid": 3022, "type": "C+G", "name": "...some/very/long"},
    ]
    assert fields_of(facts, "coverage") == [
        {"domain": "gpus", "complete": True},
        {"domain": "processes", "complete": True},
    ]
    driver = next(fact for fact in facts if fact.type == "driver")
    assert driver.provenance == (Provenance("report", "paste.txt", 3, "nvidia_smi"),)


@pytest.mark.parametrize(
    ("printed", "mode"),
    [("E. Process", "exclusive_process"), (" E. Thread", "exclusive_thread"), ("Prohibited", "prohibited")],
)
def test_the_table_tells_the_compute_mode(printed, mode):
    facts = facts_of(read, R470.replace("    7%      Default", f"    7%   {printed}"))
    assert [gpu["compute_mode"] for gpu in fields_of(facts, "gpu")] == [mode, "default"]


def test_a_query_tells_the_compute_mode():
    facts = facts_of(read, "index, name, compute_mode\n0, Tesla V100-SXM2-16GB, Exclusive_Process\n")
    assert fields_of(facts, "gpu") == [
        {"index": 0, "name": "Tesla V100-SXM2-16GB", "vendor": "nvidia", "compute_mode": "exclusive_process"}
    ]


def test_windows_table_states_the_driver_model():
    facts = facts_of(read, R550_WINDOWS)
    assert fields_of(facts, "driver") == [
        {"vendor": "nvidia", "version": "551.61", "cuda_max": "12.4", "model": "WDDM"},
    ]
    (gpu,) = fields_of(facts, "gpu")
    assert (gpu["name"], gpu["display_active"]) == ("NVIDIA GeForce RTX 3060 Ti", True)
    assert "persistence" not in gpu


def test_r600_header_names_the_kernel_mode_driver_and_mig_devices_are_no_gpus():
    facts = facts_of(read, R600)
    assert fields_of(facts, "driver") == [{"vendor": "nvidia", "version": "610.18", "cuda_max": "13.3"}]
    (gpu,) = fields_of(facts, "gpu")
    assert (gpu["vram_mib"], gpu["power_limit_w"], gpu["mig"]) == (183359, 1000, "enabled")
    assert fields_of(facts, "mig_device") == [{"gpu": 0, "gi": 9, "ci": 0, "dev": 0, "mem_total_mib": 22272}]
    assert fields_of(facts, "coverage") == [{"domain": "gpus", "complete": True}]


def test_the_newest_table_counts_and_a_whole_name_replaces_a_cut_one():
    older = R470.replace("470.141.03", "465.19.01").replace("2024", "2025")
    text = older.replace("NVIDIA A100-SXM...", "NVIDIA A100-SXM4-40GB") + R470
    facts = facts_of(read, text)
    assert [row["version"] for row in fields_of(facts, "driver")] == ["465.19.01"]
    text = R470.replace("NVIDIA A100-SXM...", "NVIDIA A100-SXM4-40GB") + older
    facts = facts_of(read, text)
    assert [row["version"] for row in fields_of(facts, "driver")] == ["465.19.01"]
    assert [row["name"] for row in fields_of(facts, "gpu")] == ["Tesla T4", "NVIDIA A100-SXM4-40GB"]
    cut = [fact for fact in facts if fact.get("index") == 1 and fact.type == "gpu"]
    assert [str(place) for place in cut[0].provenance] == ["paste.txt:39", "paste.txt:13"]


def test_truncated_table_covers_nothing():
    head = "\n".join(R470.split("\n")[:12])
    facts = facts_of(read, head)
    assert [row["index"] for row in fields_of(facts, "gpu")] == [0]
    assert fields_of(facts, "coverage") == []
    tail = "\n".join(R470.split("\n")[13:])
    facts = facts_of(read, tail)
    assert [row["index"] for row in fields_of(facts, "gpu")] == [1]
    assert fields_of(facts, "driver") == []
    assert fields_of(facts, "coverage") == []


def test_a_selected_gpu_is_not_all_of_them():
    facts = facts_of(read, "$ nvidia-smi -i 0\n" + R550_WINDOWS)
    assert len(fields_of(facts, "gpu")) == 1
    assert fields_of(facts, "coverage") == []


def test_list_with_mig_and_scopes():
    facts = facts_of(
        read,
        """
        (container) $ nvidia-smi -L
        Failed to initialize NVML: Unknown Error

        (host) # nvidia-smi -L
        GPU 0: NVIDIA A30 (UUID: GPU-00000000-1111-2222-3333-000000000001)
          MIG 1g.6gb      Device  0: (UUID: MIG-00000000-1111-2222-3333-000000000009)
        GPU 1: Tesla T4 (UUID: GPU-xxxx)
        """,
    )
    assert fields_of(facts, "nvidia_smi") == [
        {"state": "failed", "scope": "container"},
        {"state": "ok", "scope": "host"},
    ]
    assert fields_of(facts, "nvml") == [{"state": "failed", "code": 999, "name": "NVML_ERROR_UNKNOWN"}]
    assert fields_of(facts, "gpu") == [
        {"index": 0, "name": "NVIDIA A30", "vendor": "nvidia", "uuid": "GPU-00000000-1111-2222-3333-000000000001"},
        {"index": 1, "name": "Tesla T4", "vendor": "nvidia"},
    ]
    assert fields_of(facts, "mig_device") == [{"gpu": 0, "dev": 0, "name": "1g.6gb"}]
    assert fields_of(facts, "coverage") == [{"domain": "gpus", "complete": True}]


def test_query_with_header_and_with_the_command_alone():
    facts = facts_of(
        read,
        """
        index, name, compute_cap, driver_version, memory.total [MiB], pci.device_id, power.draw [W], ecc.mode.current
        0, NVIDIA RTX A5000, 8.6, 535.216.01, 24564 MiB, 0x223110DE, 61.74 W, [N/A]
        1, NVIDIA GeForce RTX 5090, 12.0, 535.216.01, 32607 MiB, 0x2B8510DE, [N/A], Enabled

        $ nvidia-smi --query-gpu=pcie.link.gen.max,uuid --format=csv,noheader
        4, GPU-00000000-1111-2222-3333-000000000001
        """,
    )
    assert fields_of(facts, "gpu") == [
        {
            "index": 0,
            "name": "NVIDIA RTX A5000",
            "sm": 86,
            "vram_mib": 24564,
            "device_id": "10de:2231",
            "power_w": 61,
            "vendor": "nvidia",
        },
        {
            "index": 1,
            "name": "NVIDIA GeForce RTX 5090",
            "sm": 120,
            "vram_mib": 32607,
            "device_id": "10de:2b85",
            "ecc": "enabled",
            "vendor": "nvidia",
        },
        {"index": 0, "pcie_gen_max": 4, "uuid": "GPU-00000000-1111-2222-3333-000000000001", "vendor": "nvidia"},
    ]
    assert fields_of(facts, "driver") == [{"vendor": "nvidia", "version": "535.216.01"}]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.", {"state": "failed"}),
        ("No devices were found", {"state": "failed"}),
        ("bash: nvidia-smi: command not found", {"state": "missing"}),
        ("FileNotFoundError: [Errno 2] No such file or directory: 'nvidia-smi'", {"state": "missing"}),
        (
            "subprocess.CalledProcessError: Command '['nvidia-smi']' returned non-zero exit status 9.",
            {"state": "failed", "return_code": 9},
        ),
        ("nvidia-smi finished with exit code 14", {"state": "failed", "return_code": 14}),
        ("Command '['nvidia-smi', '-q']' timed out after 30 seconds", {"state": "timeout"}),
        ("root@0a1b2c3d4e5f:/# nvidia-smi\nNVIDIA-SMI has failed", {"state": "failed", "scope": "container"}),
        ("Failed to initialize NVML: Insufficient Permissions\n$ echo $?\n4", {"state": "failed", "return_code": 4}),
    ],
)
def test_failure_lines(text, expected):
    assert fields_of(facts_of(read, text), "nvidia_smi") == [expected]


def test_no_devices_covers_the_gpus():
    assert fields_of(facts_of(read, "No devices found"), "coverage") == [{"domain": "gpus", "complete": True}]


def test_library_mismatch_names_the_userspace_side():
    facts = facts_of(
        read,
        """
        Failed to initialize NVML: Driver/library version mismatch
        NVML library version: 535.183
        """,
    )
    assert fields_of(facts, "nvml") == [{"state": "failed", "code": 18, "name": "NVML_ERROR_LIB_RM_VERSION_MISMATCH"}]
    assert fields_of(facts, "driver_part") == [{"part": "userspace", "version": "535.183"}]


def test_version_option_and_nvtop():
    facts = facts_of(
        read,
        """
        NVIDIA-SMI version  : 575.57.08
        NVML version        : 575.57
        DRIVER version      : 575.57.08
        CUDA Version        : 12.9
        Device 1 [GeForce GTX 1070] PCIe GEN 2@ 8x  GPU  64%
        """,
    )
    assert fields_of(facts, "driver") == [{"vendor": "nvidia", "version": "575.57.08", "cuda_max": "12.9"}]
    assert fields_of(facts, "gpu") == [
        {
            "index": 1,
            "name": "GeForce GTX 1070",
            "pcie_gen_current": 2,
            "pcie_width_current": 8,
            "utilization_pct": 64,
        }
    ]


@pytest.mark.parametrize(
    "text",
    [
        "| 0 | one | two |\n| a | b | c |",
        "node0:2101:2101 [0] NCCL INFO NET/IB : No device found.",
        "name\nvalue",
        "|   0  Tesla T4  On   | 00000000:00:1E.0",
        "| NVIDIA-SMI ",
        "Run nvidia-smi and paste the output",
        "CUDA Version: 12.1",
    ],
)
def test_what_is_no_output_of_nvidia_smi(text):
    assert facts_of(read, text) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Inside the LXD container:\nuser@node-4:~$ nvidia-smi\nFailed to initialize NVML: Unknown Error", "container"),
        ("容器内：\nFailed to initialize NVML: Unknown Error", "container"),
        ("在宿主机上执行：\nFailed to initialize NVML: Unknown Error", "host"),
    ],
)
def test_a_heading_tells_where_a_run_was(text: str, expected: str) -> None:
    assert [f.fields["scope"] for f in facts_of(read, text) if f.type == "nvidia_smi"] == [expected]


def test_beside_a_run_in_a_container_one_without_a_mark_is_the_hosts() -> None:
    text = """
        me@box:~$ nvidia-smi
        | NVIDIA-SMI 470.199.02   Driver Version: 470.199.02   CUDA Version: 11.4     |
        me@box:~$ docker exec -it app nvidia-smi
        Failed to initialize NVML: Driver/library version mismatch
    """
    runs = {f.fields["scope"]: f.fields["state"] for f in facts_of(read, text) if f.type == "nvidia_smi"}
    assert runs == {"host": "ok", "container": "failed"}
