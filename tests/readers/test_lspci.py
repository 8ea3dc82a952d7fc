"""lspci listings."""

from __future__ import annotations

import pytest
from gpurules.probes.readers.lspci import read

from .support import facts_of, fields_of


def test_named_ids_and_drivers_from_the_host_bridge_on():
    facts = facts_of(
        read,
        """
        00:00.0 Host bridge [0600]: Intel Corporation Device [8086:a740] (rev 01)
        00:02.0 VGA compatible controller [0300]: Intel Corporation UHD GT1 [UHD Graphics 770] [8086:a780] (rev 04)
        \tKernel driver in use: i915
        01:00.0 VGA compatible controller [0300]: NVIDIA Corporation AD103 [GeForce RTX 4080] [10de:2704] (rev a1)
        \tSubsystem: Micro-Star International Co., Ltd. [MSI] Device [1462:5110]
        \tKernel modules: nvidiafb, nouveau, nvidia_drm, nvidia
        01:00.1 Audio device [0403]: NVIDIA Corporation AD103 High Definition Audio Controller [10de:22bb] (rev a1)
        """,
    )
    assert fields_of(facts, "pci_device") == [
        {
            "bus_id": "00:00.0",
            "class": "Host bridge",
            "class_code": "0600",
            "display": False,
            "vendor": "intel",
            "device_id": "8086:a740",
        },
        {
            "bus_id": "00:02.0",
            "class": "VGA compatible controller",
            "class_code": "0300",
            "display": True,
            "vendor": "intel",
            "device_id": "8086:a780",
            "name": "UHD Graphics 770",
            "chip": "UHD GT1",
            "driver_in_use": "i915",
        },
        {
            "bus_id": "01:00.0",
            "class": "VGA compatible controller",
            "class_code": "0300",
            "display": True,
            "vendor": "nvidia",
            "device_id": "10de:2704",
            "name": "GeForce RTX 4080",
            "chip": "AD103",
            "kernel_modules": "nvidiafb, nouveau, nvidia_drm, nvidia",
        },
        {
            "bus_id": "01:00.1",
            "class": "Audio device",
            "class_code": "0403",
            "display": False,
            "vendor": "nvidia",
            "device_id": "10de:22bb",
            "name": "AD103 High Definition Audio Controller",
        },
    ]
    assert fields_of(facts, "coverage") == [{"domain": "pci", "complete": True}]


def test_very_verbose_states_the_link():
    facts = facts_of(
        read,
        """
        0a:00.0 3D controller: NVIDIA Corporation GA100GL [A30 PCIe] (rev a1) (prog-if 00 [VGA controller])
        \t\tLnkCap:\tPort #1, Speed 16GT/s, Width x16, ASPM not supported
        \t\tLnkSta:\tSpeed 8GT/s (downgraded), Width x8 (downgraded)
        \t\tLnkCap2: Supported Link Speeds: 2.5-16GT/s
        \tKernel driver in use: vfio-pci
        """,
    )
    assert fields_of(facts, "pci_device") == [
        {
            "bus_id": "0a:00.0",
            "class": "3D controller",
            "display": True,
            "vendor": "nvidia",
            "name": "A30 PCIe",
            "chip": "GA100GL",
            "link_cap": "Speed 16GT/s, Width x16",
            "link_now": "Speed 8GT/s (downgraded), Width x8 (downgraded)",
            "driver_in_use": "vfio-pci",
        }
    ]
    assert fields_of(facts, "coverage") == []


def test_numeric_rows_domains_and_unknown_devices():
    facts = facts_of(
        read,
        """
        $ lspci -n | grep 10de
        0002:03:00.0 0302: 10de:2331 (rev a1)
        c1:00.0 VGA compatible controller: NVIDIA Corporation Device 2b85 (rev a1)
        c2:00.0 Display controller: Advanced Micro Devices, Inc. [AMD/ATI] Navi 21 [Radeon RX 6800/6800 XT] (rev c1)
        """,
    )
    assert fields_of(facts, "pci_device") == [
        {
            "bus_id": "0002:03:00.0",
            "class_code": "0302",
            "display": True,
            "vendor": "nvidia",
            "device_id": "10de:2331",
        },
        {
            "bus_id": "c1:00.0",
            "class": "VGA compatible controller",
            "display": True,
            "vendor": "nvidia",
            "device_id": "10de:2b85",
        },
        {
            "bus_id": "c2:00.0",
            "class": "Display controller",
            "display": True,
            "vendor": "amd",
            "name": "Radeon RX 6800/6800 XT",
            "chip": "Navi 21",
        },
    ]


def test_a_cut_listing_covers_nothing():
    facts = facts_of(
        read,
        """
        00:00.0 Host bridge: Intel Corporation Device 4660
        00:01.0 PCI bridge: Intel Corporation Device 460d
        00:02.0 VGA compatible controller: Intel Corporation Device 4680
        00:14.0 USB controller: Intel Corporation Device 7ae0
        00:17.0 SATA cont
        """,
    )
    assert len(fields_of(facts, "pci_device")) == 4
    assert fields_of(facts, "coverage") == []


@pytest.mark.parametrize("text", ["12:30:00.5 something: happened", "01:00.0 ", "Kernel driver in use: nvidia"])
def test_no_listing(text):
    assert facts_of(read, text) == []
