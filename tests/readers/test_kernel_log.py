"""Kernel messages of dmesg and journalctl."""

from __future__ import annotations

import pytest
from gpurules.probes.readers.kernel_log import read

from .support import facts_of, fields_of


def test_xid_and_sxid_are_counted_by_code_and_device():
    facts = facts_of(
        read,
        """
        [Mon Mar  3 10:00:00 2025] NVRM: Xid (PCI:0000:3b:00): 31, pid=4242, name=python3, Ch 00000008, intr 00000000.
        [Mon Mar  3 10:00:01 2025] NVRM: Xid (PCI:0000:3b:00): 31, pid='<unknown>', name=<unknown>, Ch 00000009
        [Mon Mar  3 10:00:02 2025] NVRM: Xid (PCI:0000:3b:00): 31, pid=4243, name=tritonserver, Ch 0000000a
        [12345.678901] NVRM: Xid (PCI:0000:5e:00): 79, GPU has fallen off the bus.
        kern  :warn  : 2025-03-03T10:00:03,000001+00:00 NVRM: Xid (PCI:0000:5e:00): 43, pid=77, name=app, Ch 00000018
        [12345.679] nvidia-nvswitch3: SXid (PCI:0000:85:00.0): 12028, Non-fatal, Link 32 egress
        [12345.680] nvidia-nvswitch3: SXid (PCI:0000:85:00.0): 12028, Data {0x00000000}
        """,
    )
    assert fields_of(facts, "xid") == [
        {"code": 31, "bus_id": "0000:3b:00", "count": 3, "processes": "python3,tritonserver"},
        {"code": 79, "bus_id": "0000:5e:00", "count": 1},
        {"code": 43, "bus_id": "0000:5e:00", "count": 1, "pid": 77, "process": "app", "processes": "app"},
    ]
    assert fields_of(facts, "sxid") == [{"code": 12028, "bus_id": "0000:85:00.0", "count": 2}]
    assert str(facts[1].provenance[0]) == "paste.txt:4"


def test_boot_messages_of_a_journal_in_another_language():
    facts = facts_of(
        read,
        """
        März 04 08:00:00 box kernel: Linux version 6.8.0-45-generic (buildd@x) (x86_64-linux-gnu-gcc-13) #45-Ubuntu
        März 04 08:00:00 box kernel: DMI: ASUS System Product Name/PRIME B550-PLUS, BIOS 2803 04/27/2022
        März 04 08:00:01 box kernel: pci 0000:09:00.0: [10de:2504] type 00 class 0x030000
        März 04 08:00:02 box kernel: nvidia: module license 'NVIDIA' taints kernel.
        März 04 08:00:02 box kernel: nvidia-nvlink: Nvlink Core is being initialized, major device number 236
        März 04 08:00:02 box kernel: nvidia 0000:09:00.0: vgaarb: VGA decodes changed: olddecodes=io+mem,decodes=none
        März 04 08:00:02 box kernel: NVRM: loading NVIDIA UNIX Open Kernel Module for x86_64  570.124.06  Release Build
        März 04 08:00:03 box kernel: [drm] [nvidia-drm] [GPU ID 0x00000900] Loading driver
        """,
    )
    assert fields_of(facts, "kernel") == [{"release": "6.8.0-45-generic", "version": "6.8.0"}]
    assert fields_of(facts, "board") == [{"name": "PRIME B550-PLUS"}]
    assert fields_of(facts, "driver_part") == [{"part": "kernel_module", "version": "570.124.06", "flavour": "open"}]
    assert fields_of(facts, "module") == [
        {"name": "nvidia", "loaded": True, "version": "570.124.06", "flavour": "open"},
        {"name": "nvidia_nvlink", "loaded": True},
        {"name": "nvidia_drm", "loaded": True},
    ]
    assert fields_of(facts, "pci_device") == [
        {
            "bus_id": "0000:09:00.0",
            "device_id": "10de:2504",
            "vendor": "nvidia",
            "class_code": "0300",
            "display": True,
            "driver_in_use": "nvidia",
        }
    ]
    assert fields_of(facts, "xid") == []


def test_mismatch_wrapped_over_lines_names_both_sides():
    facts = facts_of(
        read,
        """
        [   50.1] NVRM: API mismatch: the client has the version 550.120, but
                  NVRM: this kernel module has the version 550.107.02.  Please
                  NVRM: make sure that this kernel module and all NVIDIA driver
                  NVRM: components have the same version.
        """,
    )
    assert fields_of(facts, "driver_part") == [
        {"part": "userspace", "version": "550.120"},
        {"part": "kernel_module", "version": "550.107.02"},
    ]


def test_trace_lines_state_kernel_and_board():
    facts = facts_of(
        read,
        """
        CPU: 3 PID: 901 Comm: nvidia-modprobe Tainted: P           OE      6.5.0-26-generic #26-Ubuntu
        Hardware name: Supermicro Corporation SYS-420GP-TNR/X12DPG-OA6, BIOS 1.4 07/11/2022
        """,
    )
    assert fields_of(facts, "kernel") == [{"release": "6.5.0-26-generic", "version": "6.5.0"}]
    assert fields_of(facts, "board") == [{"name": "SYS-420GP-TNR"}]


def test_modules_that_did_not_load():
    facts = facts_of(
        read,
        """
        modprobe: FATAL: Module nvidia not found in directory /lib/modules/6.12.1-zen1-1-zen
        modprobe: ERROR: could not insert 'nvidia_uvm': Key was rejected by service
        nouveau 0000:01:00.0: NVIDIA GP104 (134000a1)
        NVRM: The NVIDIA GPU 0000:02:00.0 (PCI ID: 10de:1b80)
        """,
    )
    assert fields_of(facts, "module") == [
        {"name": "nvidia", "loaded": False, "built_for_kernel": False},
        {"name": "nvidia_uvm", "loaded": False},
        {"name": "nouveau", "loaded": True},
    ]
    assert fields_of(facts, "kernel") == [{"release": "6.12.1-zen1-1-zen", "version": "6.12.1"}]
    assert fields_of(facts, "pci_device") == [
        {"bus_id": "0000:01:00.0", "vendor": "nvidia", "driver_in_use": "nouveau"},
        {"bus_id": "0000:02:00.0", "device_id": "10de:1b80", "vendor": "nvidia"},
    ]


def test_module_that_found_no_device_is_not_loaded():
    facts = facts_of(
        read,
        """
        nvidia-nvlink: Nvlink Core is being initialized, major device number 509
        nvidia: probe of 0000:01:00.0 failed with error -1
        NVRM: None of the NVIDIA devices were initialized.
        """,
    )
    assert {"name": "nvidia", "loaded": False} in fields_of(facts, "module")


@pytest.mark.parametrize(
    "text",
    [
        "NVRM: Xid (PCI:0000:3b",
        "GSP RPC buffer contains function 103",
        "I bought nvidia: a great card",
        "this kernel module has the version 550.54",
        "audit: type=1400 comm=x",
    ],
)
def test_lines_that_state_nothing(text):
    assert facts_of(read, text) == []
