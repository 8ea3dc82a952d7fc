"""nvidia-smi -q: whole, in sections, and as XML."""

from __future__ import annotations

import pytest
from gpurules.probes.readers.nvidia_smi_q import read

from .support import facts_of, fields_of

WHOLE = """
==============NVSMI LOG==============

Timestamp                                 : Mon Jan  5 10:00:00 2026
Driver Version                            : 565.77
CUDA Version                              : 12.7

Attached GPUs                             : 2
GPU 00000000:17:00.0
    Product Name                          : NVIDIA L4
    Product Architecture                  : Ada Lovelace
    Display Active                        : Disabled
    Persistence Mode                      : Enabled
    MIG Mode
        Current                           : N/A
        Pending                           : N/A
    GPU UUID                              : GPU-00000000-1111-2222-3333-000000000001
    VBIOS Version                         : 95.04.29.00.06
    PCI
        Device Id                         : 0x27B810DE
        Bus Id                            : 00000000:17:00.0
        GPU Link Info
            PCIe Generation
                Max                       : 4
                Current                   : 1
                Host Max                  : 5
            Link Width
                Max                       : 16x
                Current                   : 4x
    Clocks Event Reasons
        Idle                              : Not Active
        HW Slowdown                       : Active
            HW Power Brake Slowdown       : Active
        Sync Boost                        : Not Active
    FB Memory Usage
        Total                             : 23034 MiB
        Used                              : 512 MiB
    BAR1 Memory Usage
        Total                             : 32768 MiB
        Used                              : 2 MiB
    Utilization
        Gpu                               : 98 %
        Memory                            : 40 %
    ECC Mode
        Current                           : Enabled
        Pending                           : Disabled
    ECC Errors
        Volatile
            SRAM Correctable              : 4
            SRAM Uncorrectable Parity     : 1
            DRAM Uncorrectable            : 2
        Aggregate
            SRAM Uncorrectable Parity     : 70
    Temperature
        GPU Current Temp                  : 55 C
        GPU Shutdown Temp                 : 98 C
    GPU Power Readings
        Average Power Draw                : 70.61 W
        Current Power Limit               : 72.00 W
    Module Power Readings
        Power Draw                        : N/A
    Processes
        GPU instance ID                   : N/A
        Process ID                        : 4711
            Type                          : C
            Name                          : python3
            Used GPU Memory               : 480 MiB
GPU 00000000:18:00.0
    Product Name                          : NVIDIA L4
    Processes                             : None
"""

XML = """
<?xml version="1.0" ?>
<nvidia_smi_log>
	<driver_version>550.90.07</driver_version>
	<cuda_version>12.4</cuda_version>
	<attached_gpus>1</attached_gpus>
	<gpu id="00000000:65:00.0">
		<product_name>Tesla V100-SXM2-32GB</product_name>
		<mig_mode><current_mig>N/A</current_mig></mig_mode>
		<pcie_gen><max_link_gen>3</max_link_gen><current_link_gen>3</current_link_gen></pcie_gen>
		<fb_memory_usage>
			<total>32768 MiB</total>
			<used>5 MiB</used>
		</fb_memory_usage>
		<bar1_memory_usage>
			<total>65536 MiB</total>
		</bar1_memory_usage>
		<gpu_temp>41 C</gpu_temp>
		<processes>
			<process_info>
				<pid>812</pid>
				<type>C</type>
				<process_name>/opt/app/server</process_name>
				<used_memory>300 MiB</used_memory>
			</process_info>
		</processes>
	</gpu>
</nvidia_smi_log>
"""


def test_whole_output():
    facts = facts_of(read, WHOLE)
    assert fields_of(facts, "driver") == [{"vendor": "nvidia", "version": "565.77", "cuda_max": "12.7"}]
    first, second = fields_of(facts, "gpu")
    assert first == {
        "index": 0,
        "bus_id": "00000000:17:00.0",
        "vendor": "nvidia",
        "name": "NVIDIA L4",
        "architecture": "Ada Lovelace",
        "display_active": False,
        "persistence": "enabled",
        "uuid": "GPU-00000000-1111-2222-3333-000000000001",
        "vbios": "95.04.29.00.06",
        "device_id": "10de:27b8",
        "pcie_gen_max": 4,
        "pcie_gen_current": 1,
        "pcie_width_max": 16,
        "pcie_width_current": 4,
        "vram_mib": 23034,
        "vram_used_mib": 512,
        "utilization_pct": 98,
        "ecc": "enabled",
        "ecc_uncorrected": 3,
        "ecc_corrected": 4,
        "bar1_mib": 32768,
        "bar1_used_mib": 2,
        "temperature_c": 55,
        "power_w": 70,
        "power_limit_w": 72,
    }
    assert second == {"index": 1, "bus_id": "00000000:18:00.0", "vendor": "nvidia", "name": "NVIDIA L4"}
    assert fields_of(facts, "process") == [
        {"gpu": 0, "pid": 4711, "type": "C", "name": "python3", "mem_mib": 480},
    ]
    assert fields_of(facts, "throttle_reason") == [
        {"gpu": 0, "name": "Idle", "active": False},
        {"gpu": 0, "name": "HW Slowdown", "active": True},
        {"gpu": 0, "name": "HW Power Brake Slowdown", "active": True},
        {"gpu": 0, "name": "Sync Boost", "active": False},
    ]
    assert fields_of(facts, "coverage") == [{"domain": "gpus", "complete": True}]


def test_one_section_without_its_gpu():
    facts = facts_of(
        read,
        """
            Clocks Throttle Reasons
                Idle                        : Not Active
                SW Power Cap                : Active
        """,
    )
    assert fields_of(facts, "throttle_reason") == [
        {"name": "Idle", "active": False},
        {"name": "SW Power Cap", "active": True},
    ]
    assert len(facts) == 2


def test_cut_output_numbers_no_gpu():
    facts = facts_of(read, WHOLE[: WHOLE.index("GPU 00000000:18:00.0")])
    (gpu,) = fields_of(facts, "gpu")
    assert "index" not in gpu
    assert fields_of(facts, "coverage") == []


def test_xml():
    facts = facts_of(read, XML)
    assert fields_of(facts, "driver") == [{"vendor": "nvidia", "version": "550.90.07", "cuda_max": "12.4"}]
    assert fields_of(facts, "gpu") == [
        {
            "index": 0,
            "bus_id": "00000000:65:00.0",
            "vendor": "nvidia",
            "name": "Tesla V100-SXM2-32GB",
            "pcie_gen_max": 3,
            "pcie_gen_current": 3,
            "vram_mib": 32768,
            "vram_used_mib": 5,
            "temperature_c": 41,
        }
    ]
    assert fields_of(facts, "process") == [
        {"gpu": 0, "pid": 812, "type": "C", "name": "/opt/app/server", "mem_mib": 300},
    ]


@pytest.mark.parametrize(
    "text",
    ["    Product Name    : NVIDIA L4", "GPU 0000:zz:00.0", "<gpu><product_name>x</product_name>", "Driver Version : "],
)
def test_fragments_without_a_head_say_nothing(text):
    assert facts_of(read, text) == []


STATES = """
==============NVSMI LOG==============

Driver Version                            : 580.95.05
Attached GPUs                             : 1
GPU 00000000:18:00.0
    Product Name                          : NVIDIA H100 80GB HBM3
    GPU Reset Status
        Reset Required                    : Yes
        Drain and Reset Recommended       : No
    PCI
        Replays Since Reset               : 12
    Performance State                     : P0
    Compute Mode                          : Exclusive_Process
    Retired Pages
        Pending Page Blacklist            : N/A
    Remapped Rows
        Correctable Error                 : 1
        Uncorrectable Error               : 2
        Pending                           : Yes
        Remapping Failure Occurred        : No
    Temperature
        GPU Slowdown Temp                 : 87 C
    GPU Power Readings
        Average Power Draw                : 301.50 W
        Current Power Limit               : 500.00 W
        Default Power Limit               : 700.00 W
        Min Power Limit                   : 200.00 W
        Max Power Limit                   : 700.00 W
    Clocks
        Graphics                          : 1410 MHz
        SM                                : 1410 MHz
    Max Clocks
        Graphics                          : 1980 MHz
    Max Customer Boost Clocks
        Graphics                          : 1995 MHz
    Fabric
        State                             : In Progress
        Status                            : N/A
"""


def test_states_that_call_for_a_reset_or_hold_back():
    (gpu,) = fields_of(facts_of(read, STATES), "gpu")
    assert gpu == {
        "index": 0,
        "bus_id": "00000000:18:00.0",
        "vendor": "nvidia",
        "name": "NVIDIA H100 80GB HBM3",
        "reset_required": True,
        "pcie_replays": 12,
        "performance_state": 0,
        "compute_mode": "exclusive_process",
        "remapped_rows": 3,
        "remap_pending": True,
        "remap_failed": False,
        "temperature_slowdown_c": 87,
        "power_w": 301,
        "power_limit_w": 500,
        "power_default_w": 700,
        "power_min_w": 200,
        "power_max_w": 700,
        "clock_mhz": 1410,
        "clock_max_mhz": 1980,
        "fabric": "in_progress",
    }


def test_a_word_that_is_no_known_state():
    text = STATES.replace("Exclusive_Process", "Whatever").replace("In Progress", "\u8fdb\u884c\u4e2d")
    (gpu,) = fields_of(facts_of(read, text), "gpu")
    assert {"compute_mode", "fabric"} & set(gpu) == set()
