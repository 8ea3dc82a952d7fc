"""Live probes of what this account may do and where it works: groups, limits, the storage of the current folder.

May live here: procfs of this process, the group file, mounts. Must not: names of accounts, addresses, other processes.
"""

from __future__ import annotations

import os
import re

from ...facts import Fact
from .source import Machine, Stating, number

_ACCOUNT = Stating("account")
_GROUPS = ("render", "video")
_STATUS = "/proc/self/status"
_LIMITS = "/proc/self/limits"
_MOUNTS = "/proc/self/mountinfo"
_LOCKED = re.compile(r"^Max locked memory +(?P<soft>[0-9]+|unlimited) ", re.MULTILINE)
_FILES = re.compile(r"^Max open files +(?P<soft>[0-9]+|unlimited) ", re.MULTILINE)
_NETWORK = frozenset(
    {"9p", "beegfs", "ceph", "cifs", "fuse.sshfs", "glusterfs", "gpfs", "lustre", "nfs", "nfs4", "smb3"}
)
_IN_MEMORY = frozenset({"tmpfs", "ramfs"})
_OCTAL = re.compile(r"\\([0-7]{3})")


def probe_account(machine: Machine) -> list[Fact]:
    """The groups that own GPU device files, how much memory may be locked (for RDMA), how many files may be open."""
    facts: list[Fact] = []
    status, listed = machine.text(_STATUS), machine.text("/etc/group")
    if status is not None and listed is not None:
        # The effective group is the second number of its line, and need not be among the supplementary ones.
        rows = {row.split(":")[0]: row.split()[1:] for row in status.splitlines()}
        mine = {*rows.get("Groups", []), *rows.get("Gid", [])[1:2]}
        known = {row.split(":")[0]: row.split(":")[2] for row in listed.splitlines() if row.count(":") >= 3}
        facts += [
            _ACCOUNT.fact("user_group", _STATUS, name=name, exists=name in known, member=known.get(name) in mine)
            for name in _GROUPS
        ]
        facts.append(_ACCOUNT.coverage("groups", "/etc/group"))
    return facts + _limits(machine.text(_LIMITS) or "")


def _limits(text: str) -> list[Fact]:
    facts = []
    if locked := _LOCKED.search(text):
        limit = number(locked["soft"])
        kib = None if limit is None else limit >> 10
        facts.append(_ACCOUNT.fact("limit", _LIMITS, name="memlock", soft_kib=kib, unlimited=limit is None))
    if files := _FILES.search(text):
        limit = number(files["soft"])
        facts.append(_ACCOUNT.fact("limit", _LIMITS, name="nofile", soft=limit, unlimited=limit is None))
    return [*facts, _ACCOUNT.coverage("limits", _LIMITS)] if facts else []


def probe_storage(machine: Machine) -> list[Fact]:
    """What the current folder is stored on."""
    mounts = machine.text(_MOUNTS)
    if mounts is None:
        return []
    folder = os.getcwd() if machine.live else machine.environ.get("PWD", "/")
    best, device, kind = "", "", ""
    for line in mounts.splitlines():
        left, _, right = line.partition(" - ")
        fields, types = left.split(), right.split()
        if len(fields) < 5 or not types:
            continue
        point = _OCTAL.sub(lambda found: chr(int(found[1], 8)), fields[4])
        inside = folder == point or folder.startswith(point.rstrip("/") + "/")
        # A later mount on the same folder covers the earlier one.
        if inside and len(point) >= len(best):
            best, device, kind = point, fields[2], types[0]
    if not best:
        return []
    medium = _medium(machine, device, kind)
    return [_ACCOUNT.fact("storage", _MOUNTS, filesystem=kind, medium=medium), _ACCOUNT.coverage("storage", _MOUNTS)]


def _medium(machine: Machine, device: str, kind: str) -> str | None:
    if kind in _NETWORK:
        return "network"
    if kind in _IN_MEMORY:
        return "memory"
    place = machine.path(f"/sys/dev/block/{device}")
    if not place.exists():
        return None
    # A partition has no queue of its own; that of its disk stands one folder up.
    folder = place.resolve()
    for candidate in (folder, folder.parent):
        turning = machine.text("/" + os.path.relpath(candidate / "queue/rotational", machine.root))
        if turning is not None:
            return "nvme" if candidate.name.startswith("nvme") else "disk" if turning == "1" else "ssd"
    return None
