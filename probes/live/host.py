"""Live probe of the host: operating system, kernel, C library, processor, memory, container, WSL.

May live here: reading os-release, procfs and the platform module. Must not: GPUs, packages.
"""

from __future__ import annotations

import os
import platform
import re
from collections.abc import Iterator

from ...facts import Fact
from .source import Machine, ProbeError, Stating, number

_OS = Stating("host")
_CPU = Stating("cpu")
_CONTAINER = Stating("container")

_MAX_THREADS = 8192
_LEADING_VERSION = re.compile(r"^[0-9]+(?:\.[0-9]+)*")
_MACHINES = {"amd64": "x86_64", "x64": "x86_64", "i386": "i686"}
_KNOWN_MACHINES = frozenset({"x86_64", "aarch64", "arm64", "ppc64le", "i686"})
# Paths that only a runtime writes, and that a program started by the runtime's daemon on the host does not have.
_CGROUPS = (
    ("kubernetes", re.compile(r"/kubepods")),
    ("podman", re.compile(r"/libpod-[0-9a-f]{12}")),
    ("docker", re.compile(r"/docker[-/][0-9a-f]{12}")),
    ("lxc", re.compile(r"/lxc(?:\.payload|/)")),
)
_OVERLAYS = (
    ("docker", "/var/lib/docker/"),
    ("podman", "/containers/storage/"),
    ("kubernetes", "/io.containerd."),
)
_MARKS = (
    ("kubernetes", "/var/run/secrets/kubernetes.io"),
    ("apptainer", "/.singularity.d"),
    ("podman", "/run/.containerenv"),
    ("docker", "/.dockerenv"),
)
# systemd and runtimes name themselves in the variable `container`; "oci" says nothing of which one.
_NAMED = {name: name for name in ("docker", "podman", "lxc", "systemd-nspawn", "apptainer")}
_NAMED |= {"singularity": "apptainer", "lxc-libvirt": "lxc", "oci": "unknown"}
_SYSTEMD = "/run/systemd/container"


def probe_os(machine: Machine) -> list[Fact]:
    """The operating system, kernel, C library and WSL."""
    if machine.system != "linux":
        return _other_system(machine)
    release = _first_word(machine.text("/proc/sys/kernel/osrelease"))
    values = _os_release(machine)
    if release is None and not values:
        raise ProbeError("missing", "/proc/sys/kernel/osrelease and /etc/os-release")
    arch = _machine(machine.text("/proc/sys/kernel/arch") or (platform.machine() if machine.live else None))
    wsl = _wsl_version(machine, release or "")
    pretty = values.get("PRETTY_NAME")
    facts = [
        _OS.fact(
            "os",
            "/etc/os-release",
            family="linux",
            # The form of torch's collect_env, so that a pasted report and a probe agree.
            name=f"{pretty} ({arch})" if pretty and arch else pretty,
            machine=arch,
            distro=values.get("ID"),
            distro_version=values.get("VERSION_ID"),
            wsl=wsl is not None,
            jetson=(release or "").endswith("-tegra") or machine.path("/etc/nv_tegra_release").exists(),
        )
    ]
    if release is not None:
        version = _LEADING_VERSION.match(release)
        facts.append(
            _OS.fact(
                "kernel",
                "/proc/sys/kernel/osrelease",
                release=release,
                version=version.group() if version else None,
                page_size=os.sysconf("SC_PAGE_SIZE") if machine.live else None,
            )
        )
        if wsl is not None:
            dxg = machine.path("/dev/dxg").exists()
            kernel = version.group() if version else None
            facts.append(_OS.fact("wsl", "/proc/sys/kernel/osrelease", version=wsl, kernel=kernel, dxg=dxg))
    facts += _libc(machine)
    return [*facts, _OS.coverage("os", "/etc/os-release")]


def probe_hardware(machine: Machine) -> list[Fact]:
    """The processor and main memory."""
    if machine.system != "linux":
        import psutil

        total = psutil.virtual_memory()
        return [
            _CPU.fact("cpu", "psutil", cores=psutil.cpu_count(logical=False), threads=psutil.cpu_count()),
            _CPU.fact("memory", "psutil", total_mib=total.total >> 20, available_mib=total.available >> 20),
        ]  # fmt: skip
    cpuinfo, meminfo = machine.text("/proc/cpuinfo"), machine.text("/proc/meminfo")
    if cpuinfo is None and meminfo is None:
        raise ProbeError("missing", "/proc/cpuinfo and /proc/meminfo")
    facts = [] if cpuinfo is None else [_cpu(machine, cpuinfo), _CPU.coverage("cpu", "/proc/cpuinfo")]
    if meminfo is not None:
        facts += [_memory(machine, meminfo), _CPU.coverage("memory", "/proc/meminfo")]
    return facts


def probe_container(machine: Machine) -> list[Fact]:
    """Whether the scope is a container, and of which runtime."""
    if machine.system != "linux":
        reader = "platform"
        return [_CONTAINER.fact("container", reader, present=False), _CONTAINER.coverage("container", reader)]
    if machine.text("/proc/self/mountinfo") is None and machine.text("/proc/1/cgroup") is None:
        raise ProbeError("missing", "/proc/self/mountinfo and /proc/1/cgroup")
    runtime, reader = next(_container(machine), (None, "/proc/self/mountinfo"))
    named = runtime if runtime != "unknown" else None
    fact = _CONTAINER.fact("container", reader, runtime=named, present=runtime is not None)
    return [fact, _CONTAINER.coverage("container", reader)]


def in_container(machine: Machine) -> bool | None:
    """Whether the scope is a container; None where nothing tells."""
    try:
        facts = probe_container(machine)
    except ProbeError:
        return None
    return any(fact.get("present") is True for fact in facts)


def is_wsl(machine: Machine) -> bool:
    """Whether this is a distribution (or container) inside WSL, where GPUs do not appear as PCI devices."""
    return _wsl_version(machine, machine.text("/proc/sys/kernel/osrelease") or "") is not None


def _first_word(text: str | None) -> str | None:
    """A name that stands alone in its file: the kernel's release."""
    words = (text or "").split(maxsplit=1)
    return words[0] if words else None


def _wsl_version(machine: Machine, release: str) -> int | None:
    lowered = release.lower()
    if "microsoft" in lowered:
        # WSL 1 reports the Windows build as its kernel: 4.4.0-19041-Microsoft.
        return 1 if release.endswith("-Microsoft") else 2
    # A kernel that the user built himself does not name Microsoft.
    return 2 if machine.path("/run/WSL").is_dir() and machine.path("/dev/dxg").exists() else None


def _machine(name: str | None) -> str | None:
    if name is None:
        return None
    lowered = _MACHINES.get(name.lower(), name.lower())
    return lowered if lowered in _KNOWN_MACHINES else None


def _other_system(machine: Machine) -> list[Fact]:
    """Windows and macOS have no procfs: the platform module says what they are."""
    arch = _machine(platform.machine())
    # The full name is what the system's own commands tell (windows.py, macos.py).
    if machine.system == "macos":
        version, build = platform.mac_ver()[0] or None, None
    else:
        version, build = None, platform.version()
    os_fact = _OS.fact(
        "os", "platform", family=machine.system, machine=arch, distro_version=version, wsl=False, jetson=False,
        windows_build=build,
    )  # fmt: skip
    return [os_fact, _OS.coverage("os", "platform")]


def _os_release(machine: Machine) -> dict[str, str]:
    text = machine.text("/etc/os-release") or machine.text("/usr/lib/os-release") or ""
    pairs = (line.split("=", 1) for line in text.splitlines() if "=" in line and not line.startswith("#"))
    return {key.strip(): value.strip().strip("\"'") for key, value in pairs if value.strip().strip("\"'")}


def _libc(machine: Machine) -> list[Fact]:
    if machine.live and "CS_GNU_LIBC_VERSION" in os.confstr_names:
        name, _, version = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        if name == "glibc" and version:
            return [_OS.fact("libc", "confstr", text=f"glibc-{version}", version=version)]
    if any(machine.path("/lib").glob("ld-musl-*.so.1")):
        return [_OS.fact("libc", "/lib", text="musl")]
    return []


def _cpu(machine: Machine, cpuinfo: str) -> Fact:
    name: str | None = None
    threads = 0
    cores: set[tuple[str, str]] = set()
    package = ""
    for line in cpuinfo.splitlines():
        key, _, value = (part.strip() for part in line.partition(":"))
        if key == "processor":
            threads += 1
        elif key == "model name":
            name = name or value or None
        elif key == "physical id":
            package = value
        elif key == "core id":
            cores.add((package, value))
    return _CPU.fact("cpu", "/proc/cpuinfo", name=name, cores=len(cores) or None, threads=threads or None,
                     usable=_usable(machine))  # fmt: skip


def allowed(text: str | None) -> set[int]:
    """The numbers of a list such as `0-3,8`, as the kernel writes sets of processors."""
    found: set[int] = set()
    for part in (text or "").split(","):
        first, _, last = part.strip().partition("-")
        low, high = number(first), number(last or first)
        if low is not None and high is not None and high - low < _MAX_THREADS:
            found.update(range(low, high + 1))
    return found


def allowed_processors(machine: Machine) -> set[int]:
    """The processors that this process may run on; empty where nothing tells."""
    status = (machine.text("/proc/self/status") or "").splitlines()
    return allowed(next((line.partition(":")[2] for line in status if line.startswith("Cpus_allowed_list:")), None))


def _usable(machine: Machine) -> int | None:
    """Hardware threads that this process may use; containers and batch systems give fewer than there are."""
    least = [len(allowed_processors(machine))]
    words = (machine.text("/sys/fs/cgroup/cpu.max") or "").split()
    if not words:  # the first version of control groups
        words = [machine.text(f"/sys/fs/cgroup/cpu/cpu.cfs_{name}_us") or "" for name in ("quota", "period")]
    share, whole = number(words[0]), number(words[-1])
    if share and whole:
        least.append(max(1, share // whole))
    return min((n for n in least if n), default=None)


def _memory(machine: Machine, meminfo: str) -> Fact:
    values = {}
    for line in meminfo.splitlines():
        key, _, rest = line.partition(":")
        kib = number(rest.split()[0]) if rest.split() else None
        if kib is not None:
            values[key] = kib >> 10
    return _CPU.fact(
        "memory",
        "/proc/meminfo",
        total_mib=values.get("MemTotal"),
        available_mib=values.get("MemAvailable"),
        shm_mib=_shm_mib(machine),
    )


def _shm_mib(machine: Machine) -> int | None:
    """The size of /dev/shm, which containers cut to 64 MiB."""
    if machine.live:
        try:
            status = os.statvfs("/dev/shm")
        except OSError:
            return None
        return status.f_blocks * status.f_frsize >> 20
    for line in (machine.text("/proc/mounts") or "").splitlines():
        fields = line.split()
        if len(fields) >= 4 and fields[1] == "/dev/shm":
            sizes = [number(option[5:].rstrip("k")) for option in fields[3].split(",") if option.startswith("size=")]
            return sizes[0] >> 10 if sizes and sizes[0] is not None else None
    return None


def _container(machine: Machine) -> Iterator[tuple[str, str]]:
    """Each sign of a container: its runtime ("unknown" for one that does not say) and where it was seen; best first."""
    environ = machine.environ
    if "KUBERNETES_SERVICE_HOST" in environ:
        yield "kubernetes", "environment"
    if "APPTAINER_CONTAINER" in environ or "SINGULARITY_CONTAINER" in environ:
        yield "apptainer", "environment"
    for runtime, name in _MARKS:
        if machine.path(name).exists():
            yield runtime, name
    for name in ("/proc/1/cgroup", "/proc/self/cgroup"):
        for runtime, pattern in _CGROUPS:
            if pattern.search(machine.text(name) or ""):
                yield runtime, name
    mounts = (machine.text("/proc/self/mountinfo") or "").splitlines()
    root = next((line for line in mounts if line.split()[4:5] == ["/"]), "")
    for runtime, part in _OVERLAYS:
        if " overlay " in root and part in root:
            yield runtime, "/proc/self/mountinfo"
    for named, name in ((environ.get("container"), "environment"), (machine.text(_SYSTEMD), _SYSTEMD)):
        if named in _NAMED:
            yield _NAMED[named], name
