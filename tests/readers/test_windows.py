"""The reader of what Windows says of itself, in the languages and encodings that people paste."""

from __future__ import annotations

import pytest
from gpurules.facts import Scalar
from gpurules.gathering import knowledge_in
from gpurules.probes.decoding import decode
from gpurules.probes.readers import read_text, windows
from gpurules.probes.readers.signatures import Signatures

from .support import facts_of, fields_of

Fields = dict[str, Scalar]

CIM = """\
Caption                : Microsoft Windows 11 Home
Version                : 10.0.22631
BuildNumber            : 22631
OSArchitecture         : 64-Bit
TotalVisibleMemorySize : 33256632
FreePhysicalMemory     : 20971520

Name                      : 13th Gen Example i7
NumberOfCores             : 14
NumberOfLogicalProcessors : 20

Name                   : NVIDIA GeForce RTX 4070 Laptop GPU
DriverVersion          : 32.0.15.6094
PNPDeviceID            : PCI\\VEN_10DE&DEV_2820&SUBSYS_1A2B1043&REV_A1\\4&1C3D25BB&0&0008
ConfigManagerErrorCode : 43

Name                   : Intel(R) Iris(R) Xe Graphics
DriverVersion          : 31.0.101.5590
PNPDeviceID            : PCI\\VEN_8086&DEV_A7A0&SUBSYS_1A2B1043&REV_04\\3&11583659&0&10
ConfigManagerErrorCode : 0

Name                   : 3D Video Controller
CompatibleID           : PCI\\VEN_10DE&CC_030200 PCI\\CC_0302
PNPDeviceID            : PCI\\VEN_10DE&DEV_2230&SUBSYS_145910DE&REV_A1\\4&AA&0&0010
ConfigManagerErrorCode : 28

Name                   : High Definition Audio Controller
CompatibleID           : PCI\\VEN_10DE&CC_040300 PCI\\CC_0403
PNPDeviceID            : PCI\\VEN_10DE&DEV_1AEF&SUBSYS_145910DE&REV_A1\\4&AA&0&0110
ConfigManagerErrorCode : 0
"""


def read(text: str, kind: str) -> list[Fields]:
    return fields_of(facts_of(windows.read, text), kind)


def test_cim_classes() -> None:
    assert read(CIM, "os") == [
        {"family": "windows", "name": "Microsoft Windows 11 Home", "machine": "x86_64", "wsl": False,
         "windows_build": "10.0.22631"}
    ]  # fmt: skip
    assert read(CIM, "memory") == [{"total_mib": 32477, "available_mib": 20480}]
    assert read(CIM, "cpu") == [{"name": "13th Gen Example i7", "cores": 14, "threads": 20}]
    assert read(CIM, "driver") == [{"vendor": "nvidia", "version": "560.94"}]
    assert read(CIM, "pci_device") == [
        {"bus_id": "4&1C3D25BB&0&0008", "display": True, "vendor": "nvidia", "device_id": "10de:2820",
         "name": "NVIDIA GeForce RTX 4070 Laptop GPU", "problem_code": 43},
        {"bus_id": "3&11583659&0&10", "display": True, "vendor": "intel", "device_id": "8086:a7a0",
         "name": "Intel(R) Iris(R) Xe Graphics", "problem_code": 0},
        {"bus_id": "4&AA&0&0010", "display": True, "vendor": "nvidia", "device_id": "10de:2230",
         "name": "3D Video Controller", "problem_code": 28},
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "name", "machine", "build", "memory"),
    [
        ("OS Name: Microsoft Windows Server 2022 Datacenter\nOS Version: 10.0.20348 N/A Build 20348\n"
         "System Type: x64-based PC\nTotal Physical Memory: 261,738 MB",
         "Microsoft Windows Server 2022 Datacenter", "x86_64", "10.0.20348", 261738),
        ("OS 名称:          Microsoft Windows 11 专业版\nOS 版本:          10.0.22631 暂缺 Build 22631\n"
         "系统类型:         x64-based PC\n物理内存总量:     32,518 MB",
         "Microsoft Windows 11 专业版", "x86_64", "10.0.22631", 32518),
        ("Betriebssystemname:            Microsoft Windows 10 Pro\n"
         "Betriebssystemversion:         10.0.19045 Nicht zutreffend Build 19045\n"
         "Systemtyp:                     x64-basierter PC\nGesamter physischer Speicher:  16.310 MB",
         "Microsoft Windows 10 Pro", "x86_64", "10.0.19045", 16310),
        ("OS Name: Microsoft Windows 11 Pro\nOS Version: 10.0.26100 N/A Build 26100\nSystem Type: ARM64-based PC\n"
         "Total Physical Memory: 15 992 MB", "Microsoft Windows 11 Pro", "arm64", "10.0.26100", 15992),
    ],
)  # fmt: skip
def test_systeminfo(text: str, name: str, machine: str, build: str, memory: int) -> None:
    (system,) = read(text, "os")
    assert (system["name"], system["machine"], system["windows_build"]) == (name, machine, build)
    assert read(text, "memory") == [{"total_mib": memory}]


DXDIAG = """\
------------------
System Information
------------------
         Operating System: Windows 11 Pro 64-bit (10.0, Build 22631) (22621.ni_release.220506-1250)
                Processor: Example 9 16-Core Processor             (32 CPUs), ~4.5GHz
                   Memory: 65536MB RAM
---------------
Display Devices
---------------
           Card name: NVIDIA GeForce RTX 5090
          Device Key: Enum\\PCI\\VEN_10DE&DEV_2B85&SUBSYS_205710DE&REV_A1
 Device Problem Code: No Problem
      Driver Version: 32.0.15.7652
 Hardware Scheduling: DriverSupportState:Stable Enabled:True
-------------
Sound Devices
-------------
         Driver Version: 10.0.22621.3672 (English)
"""


def test_dxdiag() -> None:
    assert [f["windows_build"] for f in read(DXDIAG, "os")] == ["10.0.22631"]
    assert read(DXDIAG, "cpu") == [{"name": "Example 9 16-Core Processor", "threads": 32}]
    assert read(DXDIAG, "memory") == [{"total_mib": 65536}]
    assert read(DXDIAG, "driver") == [{"vendor": "nvidia", "version": "576.52"}]
    assert read(DXDIAG, "pci_device") == [
        {"display": True, "vendor": "nvidia", "device_id": "10de:2b85", "name": "NVIDIA GeForce RTX 5090",
         "problem_code": 0}
    ]  # fmt: skip
    assert read(DXDIAG, "windows_setting") == [{"name": "gpu_scheduling", "enabled": True}]


MSINFO = (
    "Betriebssystemname\tMicrosoft Windows 11 Pro\r\nVersion\t10.0.26100 Build 26100\r\nSystemtyp\tx64-basierter PC\r\n"
    "Installierter physischer Speicher (RAM)\t64,0 GB\r\n\r\n[Anzeige]\r\n\r\nElement\tWert\r\n"
    "Name\tNVIDIA GeForce RTX 4090\r\n"
    "PNP-Geräte-ID\tPCI\\VEN_10DE&DEV_2684&SUBSYS_16F110DE&REV_A1\\4&2283F625&0&0019\r\n"
    "Treiberversion\t32.0.15.6636\r\n"
)


def test_msinfo_in_the_encoding_of_its_file() -> None:
    signatures = Signatures.compile(knowledge_in(None).signatures)
    reading = read_text(MSINFO.encode("utf-16"), "msinfo.txt", signatures)
    assert reading.layouts == ("windows",)
    assert fields_of(reading.facts, "driver") == [{"vendor": "nvidia", "version": "566.36"}]
    assert [f["device_id"] for f in fields_of(reading.facts, "pci_device")] == ["10de:2684"]
    assert fields_of(reading.facts, "memory") == [{"total_mib": 65536}]
    assert [f["name"] for f in fields_of(reading.facts, "os")] == ["Microsoft Windows 11 Pro"]


def test_wmic_list_with_its_doubled_returns() -> None:
    text = "\r\r\n".join(
        [
            "",
            "DriverVersion=31.0.15.5222",
            "Name=NVIDIA GeForce GTX 1650",
            "PNPDeviceID=PCI\\VEN_10DE&DEV_1F82\\4&1D",
            "",
        ]
    )
    reading = read_text(text.encode(), "wmic.txt", Signatures.compile(knowledge_in(None).signatures))
    assert fields_of(reading.facts, "driver") == [{"vendor": "nvidia", "version": "552.22"}]
    assert [f["device_id"] for f in fields_of(reading.facts, "pci_device")] == ["10de:1f82"]


def test_tables() -> None:
    text = """\
    DriverVersion  Name
    31.0.101.5590  Intel(R) Iris(R) Xe Graphics
    32.0.15.6094   NVIDIA GeForce RTX 4070 Laptop GPU

    PS C:\\> done here
    """
    assert read(text, "driver") == [{"vendor": "nvidia", "version": "560.94"}]
    text = """\
    Name                     DriverVersion ConfigManagerErrorCode PNPDeviceID
    ----                     ------------- ---------------------- -----------
    NVIDIA GeForce RTX 3060  32.0.15.6094                      43 PCI\\VEN_10DE&DEV_2504\\4&1D
    """
    assert [f["problem_code"] for f in read(text, "pci_device")] == [43]


def test_registry() -> None:
    text = """\
    HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Control\\FileSystem
        LongPathsEnabled    REG_DWORD    0x0

    HKEY_LOCAL_MACHINE\\SYSTEM\\CurrentControlSet\\Control\\GraphicsDrivers
        HwSchMode    REG_DWORD    0x2

    HKEY_LOCAL_MACHINE\\SOFTWARE\\Microsoft\\VisualStudio\\14.0\\VC\\Runtimes\\X64
        Version    REG_SZ    v14.40.33810.00
    """
    assert read(text, "windows_setting") == [
        {"name": "long_paths", "enabled": False}, {"name": "gpu_scheduling", "enabled": True}
    ]  # fmt: skip
    assert read(text, "vc_runtime") == [{"present": True, "version": "14.40.33810"}]


@pytest.mark.parametrize(
    "text",
    [
        "Driver Version                        : 560.94",  # nvidia-smi -q
        "Name: torch\nVersion: 2.6.0\nSummary: Tensors",  # pip show
        "DriverVersion : 10.0.22621.1\nName : Microsoft Basic Display Adapter",
        "OS Name: Ubuntu 24.04",
    ],
)
def test_what_is_no_statement_of_windows(text: str) -> None:
    assert facts_of(windows.read, text) == []


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "gbk"])
def test_encodings(encoding: str) -> None:
    text = "OS 名称: Microsoft Windows 11 专业版\n" + "plain text of the same file " * 4
    assert decode(text.encode(encoding)) == text


def test_western_letters_are_no_chinese_ones() -> None:
    assert decode("Gerätename: Grün".encode("cp1252")) == "Ger\ufffdtename: Gr\ufffdn"
