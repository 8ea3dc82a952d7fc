"""Live probes of kernel modules and device files.

May live here: procfs and sysfs of modules, module files of the running kernel, /dev. Must not: judgement of versions.
"""

from __future__ import annotations

import contextlib
import os
import re
from pathlib import Path

from ...facts import Fact
from .source import Machine, ProbeError, Stating

_MODULES = Stating("modules")
_NODES = Stating("device_nodes")

_RELEVANT = re.compile(
    r"^(?:nvidia(?:_[a-z]+)?|nvgpu|nouveau|nova_core|amdgpu|radeon|amdkfd|i915|xe|gdrdrv|nv_peer_mem|vfio_pci"
    r"|mlx[45]_[a-z]+)$"
)
# Distributions rename the module file: Debian's nvidia-current.ko, nvidia-legacy-390xx.ko.
_MODULE_FILE = re.compile(
    r"^nvidia(?:-(?:current|open|legacy-[0-9a-z]+|tesla(?:-[0-9a-z]+)?))?\.ko(?:\.(?:xz|zst|gz))?$"
)
_RUNNING = re.compile(r"(?P<open>Open )?Kernel Module(?: for [^ ]+)? +(?P<version>[0-9]+(?:\.[0-9]+)+)")
# A cut file must not look like another driver.
_WHOLE_VERSION = re.compile(r"^[0-9]{2,4}(?:\.[0-9]{1,4}){1,3}$")
_NODE_NAMES = re.compile(
    r"^(?:nvidia[0-9]+|nvidiactl|nvidia-uvm|nvidia-uvm-tools|nvidia-modeset|nvidia-nvswitch[0-9]*|kfd|dxg)$"
)
# Asked for even where they are not, because a missing one is a finding.
_EXPECTED_NODES = ("/dev/nvidiactl", "/dev/nvidia-uvm", "/dev/kfd", "/dev/dxg")
# Where distributions, DKMS and Ubuntu's signed packages put the module; the whole tree has tens of thousands of files.
_FOLDERS = ("updates", "extra", "extramodules", "weak-updates", "dkms", "kernel/drivers/video", "misc")
_MAX_ENTRIES = 5000


def probe_modules(machine: Machine) -> list[Fact]:
    """The GPU's kernel modules, and the kernel side of NVIDIA's driver."""
    text = machine.text("/proc/modules")
    if text is None:
        if not machine.path("/proc/modules").exists():
            raise ProbeError("missing", "/proc/modules")
        text = ""
    loaded = sorted({line.split(maxsplit=1)[0] for line in text.splitlines()})
    version, flavour = _running_driver(machine)
    facts = [
        _MODULES.fact("module", "/proc/modules", name=name, loaded=True,
                      version=machine.text(f"/sys/module/{name}/version"))
        for name in loaded if _RELEVANT.match(name) and name != "nvidia"
    ]  # fmt: skip
    facts.append(
        _MODULES.fact(
            "module",
            "/proc/modules",
            name="nvidia",
            loaded="nvidia" in loaded,
            version=version,
            flavour=flavour,
            built_for_kernel=_built_for_kernel(machine),
        )
    )
    if version is not None:
        reader = "/proc/driver/nvidia/version"
        facts.append(_MODULES.fact("driver_part", reader, part="kernel_module", version=version, flavour=flavour))
    return [*facts, _MODULES.coverage("modules", "/proc/modules")]


def probe_device_nodes(machine: Machine) -> list[Fact]:
    """The device files of GPUs, and whether this user may open them."""
    folder = machine.path("/dev")
    try:
        names = sorted(os.listdir(folder))
    except OSError as error:
        raise ProbeError("permission" if isinstance(error, PermissionError) else "missing", "/dev") from None
    paths = [f"/dev/{name}" for name in names if _NODE_NAMES.match(name)]
    with contextlib.suppress(OSError):
        paths += [f"/dev/dri/{name}" for name in sorted(os.listdir(folder / "dri")) if name.startswith("renderD")]
    # A link that leads nowhere is no device.
    paths = [path for path in paths if machine.path(path).exists()]
    facts = [
        _NODES.fact("device_node", path, path=path, present=True,
                    accessible=os.access(machine.path(path), os.R_OK | os.W_OK))
        for path in paths
    ]  # fmt: skip
    absent = [path for path in _EXPECTED_NODES if path not in paths]
    facts += [_NODES.fact("device_node", path, path=path, present=False) for path in absent]
    return [*facts, _NODES.coverage("device_nodes", "/dev")]


def _running_driver(machine: Machine) -> tuple[str | None, str | None]:
    """Version and flavour of the nvidia module that runs."""
    text = machine.text("/proc/driver/nvidia/version") or ""
    running = _RUNNING.search(text.split("\n", 1)[0])
    version = machine.text("/sys/module/nvidia/version")
    if version is not None and not _WHOLE_VERSION.match(version):
        version = None
    if running is None:
        return version, None
    return version or running["version"], "open" if running["open"] else "proprietary"


def module_file(machine: Machine) -> Path | None:
    """The file of the nvidia module for the running kernel, if one is found."""
    found, _ = _find(machine)
    return found


def _built_for_kernel(machine: Machine) -> bool | None:
    """Whether a module file exists for the running kernel; None where the search could not be complete."""
    found, complete = _find(machine)
    return True if found is not None else False if complete else None


def _find(machine: Machine) -> tuple[Path | None, bool]:
    """The module file of the running kernel, and whether the search was complete."""
    release = machine.text("/proc/sys/kernel/osrelease")
    if release is None or "/" in release:
        return None, False
    tree = machine.path(f"/lib/modules/{release}")
    if not tree.is_dir():
        # Containers do not carry the host's modules.
        return None, False
    listed = (machine.text(f"/lib/modules/{release}/modules.dep") or "").splitlines()
    for line in listed:
        name = line.split(":", 1)[0]
        if _MODULE_FILE.match(name.rsplit("/", 1)[-1]):
            return tree / name, True
    budget = _MAX_ENTRIES
    for folder in [*(tree / name for name in _FOLDERS), *sorted(tree.glob("kernel/nvidia*"))]:
        found, budget = _search(folder, budget)
        if found is not None:
            return found, True
    return None, budget > 0


def _search(folder: Path, budget: int) -> tuple[Path | None, int]:
    for place, _, files in os.walk(folder):
        budget -= 1 + len(files)
        for name in files:
            if _MODULE_FILE.match(name):
                return Path(place, name), budget
        if budget <= 0:
            break
    return None, budget
