"""The reader of what macOS says of itself."""

from __future__ import annotations

from gpurules.facts import Scalar
from gpurules.probes.readers import macos

from .support import facts_of, fields_of

APPLE = """\
ProductName:\t\tmacOS
ProductVersion:\t\t14.5
BuildVersion:\t\t23F79
Hardware:

    Hardware Overview:

      Model Name: MacBook Pro
      Chip: Apple M2 Max
      Total Number of Cores: 12 (8 performance and 4 efficiency)
      Memory: 64 GB

Graphics/Displays:

    Apple M2 Max:

      Chipset Model: Apple M2 Max
      Type: GPU
      Bus: Built-In
      Total Number of Cores: 38
      Vendor: Apple (0x106b)
      Metal Support: Metal 3
"""
INTEL = """\
hw.memsize: 34359738368
hw.physicalcpu: 8
hw.logicalcpu: 16
machdep.cpu.brand_string: Intel(R) Core(TM) i9 CPU @ 2.30GHz
Graphics/Displays:

    Intel UHD Graphics 630:

      Chipset Model: Intel UHD Graphics 630
      VRAM (Dynamic, Max): 1536 MB
      Vendor: Intel
      Device ID: 0x3e9b

    AMD Radeon Pro 5500M:

      Chipset Model: AMD Radeon Pro 5500M
      VRAM (Total): 8 GB
      Vendor: AMD (0x1002)
      Device ID: 0x7340
"""


def read(text: str, kind: str) -> list[dict[str, Scalar]]:
    return fields_of(facts_of(macos.read, text), kind)


def test_apple_silicon() -> None:
    assert read(APPLE, "os") == [
        {"family": "macos", "name": "macOS 14.5 (arm64)", "machine": "arm64", "distro_version": "14.5", "wsl": False,
         "jetson": False}
    ]  # fmt: skip
    assert read(APPLE, "cpu") == [{"name": "Apple M2 Max", "cores": 12}]
    assert read(APPLE, "memory") == [{"total_mib": 65536}]
    assert read(APPLE, "gpu") == [{"index": 0, "name": "Apple M2 Max", "vendor": "apple"}]


def test_intel_mac() -> None:
    assert read(INTEL, "cpu") == [{"name": "Intel(R) Core(TM) i9 CPU @ 2.30GHz", "cores": 8, "threads": 16}]
    assert read(INTEL, "memory") == [{"total_mib": 32768}]
    assert read(INTEL, "gpu") == [
        {"index": 0, "name": "Intel UHD Graphics 630", "vendor": "intel"},
        {"index": 1, "name": "AMD Radeon Pro 5500M", "vendor": "amd", "device_id": "1002:7340", "vram_mib": 8192},
    ]


def test_uname_tells_what_programs_see() -> None:
    text = "Darwin mac.example 23.5.0 Darwin Kernel Version 23.5.0: Wed May  1; root:xnu/RELEASE_ARM64_T6020 x86_64"
    assert [fact["machine"] for fact in read(f"{text}\n{APPLE}", "os")] == ["x86_64"]
    assert read(text, "os") == [{"family": "macos", "machine": "x86_64", "wsl": False, "jetson": False}]


def test_words_of_other_reports_are_no_mac() -> None:
    assert facts_of(macos.read, "Memory: 64 GB\nType: GPU\nVendor: NVIDIA\nChip: AD102") == []
