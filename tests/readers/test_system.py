"""The reader of what shells print about the system."""

from __future__ import annotations

import pytest
from gpurules.probes.readers import system
from gpurules.probes.readers.line import Line

UNAME = "Linux desk 5.15.167.4-microsoft-standard-WSL2 #1 SMP Tue Nov 5 2024 x86_64 x86_64 x86_64 GNU/Linux"


def read(text: str) -> dict[str, dict[str, object]]:
    lines = [Line(number, line) for number, line in enumerate(text.splitlines(), 1)]
    return {fact.type: dict(fact.fields) for fact in system.read(lines, "x")}


@pytest.mark.parametrize(
    ("text", "kind", "fields"),
    [
        ("$ uname -r\n6.8.0-60-generic", "kernel", {"release": "6.8.0-60-generic", "version": "6.8.0"}),
        (UNAME, "wsl", {"version": 2, "kernel": "5.15.167.4"}),
        ("# R36 (release), REVISION: 4.3, GCID: 1, BOARD: generic, EABI: aarch64,", "os",
         {"family": "linux", "machine": "aarch64", "jetson": True, "l4t": "36.4.3"}),
        ("Python 3.14.0", "python", {"version": "3.14.0"}),
        ("Python 3.12.4 (tags/v3.12.4:8e8a4ba, Jun  6 2024) [MSC v.1940 64 bit (AMD64)] on win32", "os",
         {"family": "windows"}),
        ("PS C:\\Users\\li> nvidia-smi", "os", {"family": "windows"}),
        ("| GPU  Name                  Driver-Model | Bus-Id          Disp.A |", "os", {"family": "windows"}),
        ("$ df -h /dev/shm\nFilesystem  Size  Used Avail Use% Mounted on\nshm          64M     0   64M   0% /dev/shm",
         "memory", {"shm_mib": 64}),
        ("tmpfs          16384000   2048  16381952   1% /dev/shm", "memory", {"shm_mib": 16000}),
        ("$ mokutil --sb-state\nSecureBoot disabled", "firmware", {"uefi": True, "secure_boot": False}),
        ("WSL 版本： 2.4.13.0\n内核版本： 5.15.167.4-1\nWindows 版本： 10.0.26100.4061", "os",
         {"family": "linux", "wsl": True, "windows_build": "10.0.26100.4061"}),
    ],
)  # fmt: skip
def test_what_shells_print(text: str, kind: str, fields: dict[str, object]) -> None:
    assert read(text)[kind] == fields


@pytest.mark.parametrize(
    ("state", "built"), [("6.8.0-60-generic, x86_64: installed", True), ("6.8.0-59-generic, x86_64: installed", False)]
)
def test_dkms_speaks_of_the_running_kernel(state: str, built: bool) -> None:
    text = f"$ uname -r\n6.8.0-60-generic\n$ dkms status\nnvidia/535.230.02, {state}"
    assert read(text)["module"] == {"name": "nvidia", "built_for_kernel": built}


@pytest.mark.parametrize(
    "text",
    ["nvidia/535.230.02, 6.8.0-59-generic, x86_64: installed", "Python 3.14 is out", "6.8.0-60-generic", "see C:\\x"],
)
def test_says_nothing(text: str) -> None:
    assert read(text) == {}
