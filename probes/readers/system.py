"""Reader of what shells print about the system: uname, nv_tegra_release, wsl --version, dkms, python -V, df, mokutil.

May live here: these layouts, and what a prompt says of the system. Must not: which kernels or releases fit what.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from ...facts import Fact, Scalar
from .common import MACHINES, FactList, leading_number
from .line import Line

READER = "system"

_RELEASE = r"[0-9]{1,2}\.[0-9]{1,3}\.[0-9]{1,4}[0-9A-Za-z.+~_-]{0,80}"
_PROMPT = r"(?:[^$#%\n]{0,80}[$#%] )"
_ASKS_RELEASE = re.compile(_PROMPT + r"?uname -r[ \t]*$")
_ONLY_RELEASE = re.compile(r"[ \t]{0,8}(?P<release>" + _RELEASE + r")[ \t]*$", re.ASCII)
_UNAME = re.compile(
    r"[ \t]{0,8}Linux [^ \t]{1,80} (?P<release>" + _RELEASE + r") #.{1,160}? (?P<machine>[a-z0-9_]{4,8}) "
    r"(?:[^ \t]{1,40} ){0,2}GNU/Linux[ \t]*$",
    re.ASCII,
)
_TEGRA = re.compile(
    r"[ \t]{0,8}#? ?R(?P<major>[0-9]{2}) \(release\), REVISION: (?P<minor>[0-9]{1,2}(?:\.[0-9]{1,2})?),"
)
_DKMS = re.compile(
    r"[ \t]{0,8}nvidia(?:-[a-z0-9-]{1,30})?(?:/|, )[0-9]{2,4}\.[0-9.]{1,12}"
    r"(?:, (?P<release>" + _RELEASE + r"), (?:[a-z0-9_]{4,8}))?: (?P<state>added|built|installed)\b",
    re.ASCII,
)
_PYTHON = re.compile(r"[ \t]{0,8}Python (?P<version>[23]\.[0-9]{1,2}\.[0-9]{1,2}(?:(?:a|b|rc)[0-9]{1,2})?\+?)[ \t]*$")
_BANNER = re.compile(
    r"[ \t]{0,8}Python (?P<version>[23]\.[0-9]{1,2}\.[0-9]{1,2})[^ \t]{0,8} .{1,160}\] on "
    r"(?P<system>win32|linux|darwin)[ \t]*$"
)
_WSL_LINE = re.compile(r"[ \t]{0,8}(?P<label>[^:：\n]{2,24}?)[ \t]{0,4}[:：][ \t]{0,4}(?P<value>[0-9][0-9.]{2,20})")
_WSL_KERNEL = frozenset({"kernel version", "内核版本", "核心版本"})
_WSL_HOST = frozenset({"windows version", "windows", "windows 版本", "windows版本"})
_WSL_OWN = frozenset({"wsl version", "wsl 版本", "wsl版本"})
_WINDOWS_PROMPT = re.compile(r"[ \t]{0,4}(?:\([^()\n]{1,40}\) )?(?:PS )?[A-Z]:\\[^<>|\"?*\n]{0,200}>")
# The head of nvidia-smi's table names the driver model on Windows only; inside WSL it is Linux's.
_DRIVER_MODEL = re.compile(r"\| {1,3}GPU  Name {1,30}(?:Driver-Model|TCC/WDDM)\b")
# `df` of /dev/shm, with -h or in blocks of 1 KiB.
_SHM = re.compile(
    r"[ \t]{0,8}(?:shm|tmpfs|none)[ \t]{1,40}(?P<size>[0-9]{1,12}(?:\.[0-9])?)(?P<unit>[KMGT])?i?[ \t]{1,40}"
    r"[0-9.]{1,12}[KMGT]?i?[ \t]{1,40}[0-9.]{1,12}[KMGT]?i?[ \t]{1,40}[0-9]{1,3}%[ \t]{1,40}/dev/shm[ \t]*$"
)
_SECURE_BOOT = re.compile(r"[ \t]{0,8}SecureBoot (?P<state>enabled|disabled)[ \t]*$")
_MIB = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024 * 1024}
_FAMILIES = {"win32": "windows", "linux": "linux", "darwin": "macos"}


def read(lines: Sequence[Line], source: str) -> list[Fact]:
    """Facts of every such output in the text."""
    out = FactList(source, READER)
    release = _kernel(lines, out)
    _built_modules(lines, release, out)
    inside = _wsl(lines, out)
    for line in lines:
        text = line.text
        if match := _TEGRA.match(text):
            version = f"{match.group('major')}.{match.group('minor')}"
            out.add("os", {"family": "linux", "machine": "aarch64", "jetson": True, "l4t": version}, line)
        elif match := _PYTHON.match(text):
            out.add("python", {"version": match.group("version").rstrip("+")}, line)
        elif match := _BANNER.match(text):
            out.add("python", {"version": match.group("version")}, line)
            if not inside:
                out.add("os", {"family": _FAMILIES[match.group("system")]}, line)
        elif match := _SHM.match(text):
            out.add("memory", {"shm_mib": int(float(match.group("size")) * _MIB[match.group("unit") or "K"])}, line)
        elif match := _SECURE_BOOT.match(text):
            out.add("firmware", {"uefi": True, "secure_boot": match.group("state") == "enabled"}, line)
    prompt = next((i for i in lines if _WINDOWS_PROMPT.match(i.text) or _DRIVER_MODEL.match(i.text)), None)
    if prompt is not None and not inside and not any(fact.type in ("os", "kernel") for fact in out.facts):
        out.add("os", {"family": "windows"}, prompt)
    return out.facts


def _kernel(lines: Sequence[Line], out: FactList) -> str | None:
    """The running kernel as uname tells it; the last word counts."""
    found: tuple[str, Line, str | None] | None = None
    asked = False
    for line in lines:
        if match := _UNAME.match(line.text):
            found = match.group("release"), line, MACHINES.get(match.group("machine"))
        elif asked and (match := _ONLY_RELEASE.match(line.text)):
            found = match.group("release"), line, None
        asked = bool(_ASKS_RELEASE.match(line.text))
    if found is None:
        return None
    release, line, machine = found
    lowered = release.lower()
    wsl = "microsoft" in lowered
    out.add("kernel", {"release": release, "version": leading_number(release)}, line)
    fields: dict[str, Scalar | None] = {"family": "linux", "machine": machine, "wsl": wsl, "jetson": "tegra" in lowered}
    out.add("os", fields, line)
    if "wsl2" in lowered:
        out.add("wsl", {"version": 2, "kernel": leading_number(release)}, line)
    return release


def _built_modules(lines: Sequence[Line], release: str | None, out: FactList) -> None:
    """Whether dkms has the NVIDIA module for the running kernel; without that kernel's name nothing is said."""
    rows = [(line, match) for line in lines if (match := _DKMS.match(line.text))]
    if not rows or release is None:
        return
    here = [(line, match) for line, match in rows if match.group("release") == release]
    built = any(match.group("state") == "installed" for _, match in here)
    line = (here or rows)[0][0]
    out.add("module", {"name": "nvidia", "built_for_kernel": built}, line)


def _wsl(lines: Sequence[Line], out: FactList) -> bool:
    """`wsl --version`, in English and Chinese: the kernel it starts and the Windows below it."""
    seen = {}
    for line in lines:
        if match := _WSL_LINE.match(line.text):
            label = match.group("label").strip().lower()
            for name, labels in (("own", _WSL_OWN), ("kernel", _WSL_KERNEL), ("windows", _WSL_HOST)):
                if label in labels:
                    seen[name] = match.group("value"), line
    if "own" not in seen:
        return False
    if "kernel" in seen:
        kernel, line = seen["kernel"]
        out.add("wsl", {"version": 2, "kernel": kernel}, line)
    if "windows" in seen:
        build, line = seen["windows"]
        out.add("os", {"family": "linux", "wsl": True, "windows_build": build}, line)
    return True
