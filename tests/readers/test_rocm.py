"""ROCm tools."""

from __future__ import annotations

import pytest
from gpurules.probes.readers.rocm import read

from .support import facts_of, fields_of

ROCMINFO = """
\x1b[37mROCk module version 6.10.5 is loaded\x1b[0m
=====================
HSA System Attributes
=====================
Runtime Version:         1.14
==========
HSA Agents
==========
*******
Agent 1
*******
  Name:                    AMD Ryzen 9 7900X 12-Core Processor
  Marketing Name:          AMD Ryzen 9 7900X 12-Core Processor
  Vendor Name:             CPU
  Device Type:             CPU
  Pool Info:
    Pool 1
      Segment:                 GLOBAL; FLAGS: FINE GRAINED
      Size:                    65000000(0x3dfd240) KB
*******
Agent 2
*******
  Name:                    gfx1100
  Marketing Name:          Radeon RX 7900 XTX
  Vendor Name:             AMD
  Device Type:             GPU
  Chip ID:                 29772(0x744c)
  Pool Info:
    Pool 1
      Segment:                 GLOBAL; FLAGS: COARSE GRAINED
      Size:                    25149440(0x17fc000) KB
    Pool 2
      Segment:                 GROUP
      Size:                    64(0x40) KB
  ISA Info:
    ISA 1
      Name:                    amdgcn-amd-amdhsa--gfx1100
"""


def test_rocminfo():
    facts = facts_of(read, ROCMINFO + "*** Done ***\n")
    assert fields_of(facts, "rocm") == [
        {"module": "ROCk module version 6.10.5 is loaded", "hsa_runtime": "1.14", "gpu_agents": 1, "cpu_agents": 1},
    ]
    assert fields_of(facts, "cpu") == [{"name": "AMD Ryzen 9 7900X 12-Core Processor"}]
    assert fields_of(facts, "gpu") == [
        {
            "agent": 2,
            "index": 0,
            "vendor": "amd",
            "name": "Radeon RX 7900 XTX",
            "gfx": "gfx1100",
            "device_id": "0x744c",
            "vram_mib": 24560,
        }
    ]
    assert fields_of(facts, "coverage") == [{"domain": "gpus", "complete": True}]
    assert fields_of(facts_of(read, ROCMINFO), "coverage") == []


def test_rocm_smi_with_the_name_below_the_row():
    facts = facts_of(
        read,
        """
        ============================ ROCm System Management Interface ============================
        Device  [Model : Revision]    Temp        Power     Partitions      SCLK    MCLK    Fan Perf PwrCap VRAM% GPU%
                Name (20 chars)       (Junction)  (Socket)  (Mem, Compute)
        ==========================================================================================
        0       [0x740f : 0x02]       39.0°C      41.0W     N/A             800Mhz  1600Mhz 0%  auto 300.0W   3%  12%
                AMD Instinct MI210
        ==========================================================================================
        ================================== End of ROCm SMI Log ===================================
        """,
    )
    assert fields_of(facts, "gpu") == [
        {
            "index": 0,
            "vendor": "amd",
            "device_id": "0x740f",
            "name": "AMD Instinct MI210",
            "temperature_c": 39,
            "power_w": 41,
            "power_limit_w": 300,
            "utilization_pct": 12,
        }
    ]
    assert fields_of(facts, "rocm") == [{"power_cap_w": "300.0"}]
    assert fields_of(facts, "coverage") == [{"domain": "gpus", "complete": True}]


def test_rocm_smi_older_and_newer_rows():
    facts = facts_of(
        read,
        """
        GPU  Temp (DieEdge)  AvgPwr  SCLK    MCLK    Fan   Perf  PwrCap  VRAM%  GPU%
        0    31.0c           9.0W    852Mhz  167Mhz  0.0%  auto  220.0W    0%   7%
        Device  Node  IDs              Temp    Power     Partitions          SCLK   MCLK   Fan  Perf PwrCap VRAM% GPU%
                      (DID,     GUID)  (Edge)  (Socket)  (Mem, Compute, ID)
        1       2     0x73bf,   12345  36.0°C  22.0W     N/A, N/A, 0         41Mhz  96Mhz  0%   auto 303.0W 7%    1%
        """,
    )
    assert fields_of(facts, "gpu") == [
        {
            "index": 0,
            "vendor": "amd",
            "temperature_c": 31,
            "power_w": 9,
            "power_limit_w": 220,
            "utilization_pct": 7,
        },
        {
            "index": 1,
            "vendor": "amd",
            "device_id": "0x73bf",
            "temperature_c": 36,
            "power_w": 22,
            "power_limit_w": 303,
            "utilization_pct": 1,
        },
    ]


def test_values_by_gpu_amd_smi_and_versions():
    facts = facts_of(
        read,
        """
        GPU[0]\t\t: Card Series: \t\tRadeon RX 7800 XT
        GPU[0]\t\t: Card Model: \t\t0x747e
        GPU[0]\t\t: GFX Version: \t\tgfx1101
        GPU[0]\t\t: VRAM Total Memory (B): 17163091968
        GPU: 1
            BDF: 0000:83:00.0
            UUID: 00ff74a1-0000-1000-8000-000000000001
        AMDSMI Tool: 24.6.2 | AMDSMI Library version: 24.6.2.0 | ROCm version: 6.2.1 | amdgpu version: 6.8.5
        HIP version: 6.2.41133-dd7f95766
        """,
    )
    assert fields_of(facts, "gpu") == [
        {
            "index": 0,
            "vendor": "amd",
            "name": "Radeon RX 7800 XT",
            "device_id": "0x747e",
            "gfx": "gfx1101",
            "vram_mib": 16368,
        },
        {"index": 1, "vendor": "amd", "bus_id": "0000:83:00.0", "uuid": "00ff74a1-0000-1000-8000-000000000001"},
    ]
    assert fields_of(facts, "rocm") == [{"version": "6.2.1", "hip_runtime": "6.2.41133-dd7f95766"}]
    assert fields_of(facts, "driver") == [{"vendor": "amd", "version": "6.8.5"}]
    facts = facts_of(read, "$ cat /opt/rocm/.info/version\n6.3.0-39\n")
    assert fields_of(facts, "rocm") == [{"version": "6.3.0-39"}]


@pytest.mark.parametrize("text", ["GPU: 0", "Agent 7", "  Name:    gfx906", "6.3.0-39", "0 [0x74a1 : 0x00] 45.0°C"])
def test_nothing_stated(text):
    assert facts_of(read, text) == []
