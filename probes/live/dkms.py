"""Live probe of DKMS and of the NVIDIA module's file: what was built for which kernel, and whether it is signed.

May live here: the folders of DKMS, the trailer and the description of module files. Must not: judgement of versions.
"""

from __future__ import annotations

import gzip
import lzma
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...facts import Fact
from .modules import module_file
from .source import Machine, Stating

_DKMS = Stating("dkms")
_TREE = "/var/lib/dkms"
_SIGNED = b"~Module signature appended~\n"
_LICENSE = b"\0license="
_FLAVOURS = {b"Dual MIT/GPL": "open", b"NVIDIA": "proprietary"}
_OPENERS: dict[str, Any] = {".ko": open, ".gz": gzip.open, ".xz": lzma.open}
_MAX_MODULE = 256 << 20
_MAX_FOLDERS = 200


def probe_dkms(machine: Machine) -> list[Fact]:
    """The nvidia modules that DKMS knows, and the module file of the running kernel."""
    facts = _file(machine)
    release = machine.text("/proc/sys/kernel/osrelease")
    facts += _states(machine, release)
    # A container has the kernel of its host and neither its modules nor its DKMS.
    own_kernel = bool(release) and machine.path(f"/lib/modules/{release}").is_dir()
    return [*facts, _DKMS.coverage("dkms", _TREE, complete=own_kernel)]


def _states(machine: Machine, running: str | None) -> Iterator[Fact]:
    """One fact for each version and kernel, or for the version alone where it was built for no kernel."""
    for name in _folders(machine.path(_TREE)):
        if not name.startswith("nvidia"):
            continue
        for version in _folders(machine.path(f"{_TREE}/{name}")):
            place = f"{_TREE}/{name}/{version}"
            kernels = [k for k in _folders(machine.path(place)) if k not in ("build", "source")]
            built = [k for k in kernels if any(machine.path(f"{place}/{k}").glob("*/module/*.ko*"))]
            failed = machine.path(f"{place}/build/make.log").is_file()
            for kernel in built:
                yield _DKMS.fact("dkms_module", place, name=name, version=version, kernel=kernel, state="built",
                                 for_running=kernel == running if running else None)  # fmt: skip
            if running is not None and running not in built:
                yield _DKMS.fact("dkms_module", place, name=name, version=version, kernel=running,
                                 state="failed" if failed else "added", for_running=True)  # fmt: skip


def _folders(folder: Path) -> list[str]:
    """The names of the real folders in a folder: DKMS links `kernel-*` to what is installed."""
    try:
        entries = sorted(os.scandir(folder), key=lambda entry: entry.name)[:_MAX_FOLDERS]
    except OSError:
        return []
    return [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]


def _file(machine: Machine) -> list[Fact]:
    """The file of the nvidia module for the running kernel, where its compression can be read."""
    path = module_file(machine)
    if path is None:
        return []
    data = _content(path)
    flavour = next((v for k, v in _FLAVOURS.items() if data is not None and _LICENSE + k + b"\0" in data), None)
    signed = data.endswith(_SIGNED) if data is not None else None
    reader = "/" + path.relative_to(machine.root).as_posix()
    return [_DKMS.fact("module_file", reader, name="nvidia", flavour=flavour, signed=signed)]


def _content(path: Path) -> bytes | None:
    opener = _OPENERS.get(path.suffix)
    if opener is None:
        return None
    try:
        with opener(path, "rb") as file:
            data: bytes = file.read(_MAX_MODULE)
    except (OSError, EOFError, lzma.LZMAError):
        return None
    return b"\0" + data
