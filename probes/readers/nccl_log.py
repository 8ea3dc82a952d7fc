"""Reader of NCCL logs (NCCL_DEBUG=INFO or WARN), of the head of nccl-tests, and of the launcher lines beside them.

May live here: what single log lines state. Must not: error signatures, and what a transport is good for.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from ...facts import Fact, Scalar
from .emit import make
from .line import Line

READER = "nccl_log"

_VERSION = re.compile(r"\bNCCL version (\d{1,3}(?:\.\d{1,3}){1,3})(?:\+cuda(\d{1,2}\.\d{1,2}))?")
_DRIVER = re.compile(r"\bcudaDriverVersion (\d{4,6})\b")
_ENVIRONMENT = re.compile(r"\b(NCCL_[A-Z0-9_]{1,60}) set (?:by environment )?to (\S.{0,400})$")
_TESTED_GPU = re.compile(
    r"\bRank\s{1,6}\d{1,6} (?:Group\s{1,6}\d{1,6} )?Pid\s{1,8}\d{1,10} on\s{1,40}(\S{1,80}) device\s{1,6}(\d{1,3}) "
    r"\[(0x[0-9a-fA-F]{1,4}|[0-9a-fA-F:.]{4,16})\] (\S.{0,100}?)\s*$"
)
_NET_DEVICES = re.compile(r"\bNET/IB : Using (\[\d.{0,900})$")
_NET_DEVICE = re.compile(r"\[\d{1,3}\]([\w.-]{1,60}:\d{1,3}/\w{1,12})")
_TASKS = re.compile(r"\((\d{1,5}) nodes?, \d{1,5} tasks? per node\)")
_SRUN = re.compile(r"^\s*srun: (?:job \d|error: |Terminating job)")

# Field of `nccl`, and the line that states it; the first line counts.
_FIRST: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("interface", re.compile(r"\bBootstrap ?: Using (?:\[0\])?([\w.-]{1,60}):")),
    ("interface", re.compile(r"\bNET/Socket ?: Using \[0\]([\w.-]{1,60}):")),
    ("transport", re.compile(r"\bNCCL INFO Using network (\S.{0,40}?)\s*$")),
    ("transport", re.compile(r"\bNET/(IB|Socket) ?: Using \[\d")),
    (
        "channel",
        re.compile(r"\bNCCL INFO (?:Channel|Ring) [\d/]{1,8} ?: .{0,80}\bvia ([A-Z]\w{1,8}(?:/[A-Za-z]{1,12})?)"),
    ),
    ("plugin", re.compile(r"\bNCCL Plugin:\s{1,20}(\S{1,60})")),
    ("plugin", re.compile(r"\bNET/OFI .{0,60}\b(aws-ofi-nccl)\b")),
    ("plugin", re.compile(r"\bNET/Plugin: Loaded net plugin (\S.{0,40}?) \(v\d")),
    ("gdr", re.compile(r"\b(GPU Direct RDMA (?:Enabled|Disabled))\b")),
    ("path_type", re.compile(r"\bNCCL INFO .{0,20}Pattern \d.{0,120}, type (\w{1,8}/\w{1,8})\b")),
)
_LARGEST: tuple[tuple[str, re.Pattern[str]], ...] = (
    ("ranks", re.compile(r"\bn[rR]anks (\d{1,6})\b")),
    ("nodes", re.compile(r"\bnNodes (\d{1,5})\b")),
)


@dataclass
class _Log:
    """What the lines so far state."""

    line: int | None = None
    fields: dict[str, Scalar | None] = field(default_factory=dict)
    level: tuple[int, int] | None = None
    environment: dict[str, tuple[int, str]] = field(default_factory=dict)
    devices: dict[str, int] = field(default_factory=dict)
    gpus: dict[tuple[int, str], tuple[int, str]] = field(default_factory=dict)
    host: str | None = None
    job: dict[str, Scalar | None] = field(default_factory=dict)
    job_line: int | None = None


def read(lines: Sequence[Line], source: str) -> list[Fact]:
    """Facts of every NCCL line in the text."""
    log = _Log()
    for line in lines:
        if "NCCL" in line.text or "Rank" in line.text:
            _nccl_line(log, line)
        _job_line(log, line)
    return list(_facts(log, source))


def _state(log: _Log, line: Line, name: str, value: Scalar) -> None:
    log.fields[name] = value
    log.line = log.line or line.number


def _nccl_line(log: _Log, line: Line) -> None:
    text = line.text
    version = _VERSION.search(text)
    if version and "version" not in log.fields:
        _state(log, line, "version", version.group(1))
        log.fields["cuda"] = version.group(2)
    for name, pattern in _FIRST:
        found = pattern.search(text) if name not in log.fields else None
        if found:
            _state(log, line, name, found.group(1))
    for name, pattern in _LARGEST:
        found = pattern.search(text)
        if found:
            _state(log, line, name, max(int(found.group(1)), int(log.fields.get(name) or 0)))
    _machine_line(log, line)


def _machine_line(log: _Log, line: Line) -> None:
    text = line.text
    level = _DRIVER.search(text)
    if level:
        log.level = log.level or (line.number, int(level.group(1)))
    variable = _ENVIRONMENT.search(text)
    if variable:
        log.environment.setdefault(variable.group(1), (line.number, variable.group(2).rstrip().removesuffix(".")))
    devices = _NET_DEVICES.search(text)
    for name in _NET_DEVICE.findall(devices.group(1)) if devices else ():
        log.devices.setdefault(name, line.number)
    gpu = _TESTED_GPU.search(text)
    if gpu and log.host in {None, gpu.group(1)}:
        # Ranks on other hosts list other machines' GPUs under the same numbers.
        log.host = gpu.group(1)
        log.gpus.setdefault((int(gpu.group(2)), gpu.group(3)), (line.number, gpu.group(4)))


def _job_line(log: _Log, line: Line) -> None:
    tasks = _TASKS.search(line.text)
    if tasks:
        log.job["nodes"] = int(tasks.group(1))
    if _SRUN.match(line.text):
        log.job["scheduler"] = "srun"
        log.job_line = log.job_line or line.number


def _facts(log: _Log, source: str) -> Iterator[Fact]:
    if log.line is not None:
        yield make("nccl", READER, source, log.line, log.fields)
    if log.level is not None:
        number, value = log.level
        yield make("driver", READER, source, number, {"vendor": "nvidia", "cuda_level": value})
    for name, number in log.devices.items():
        yield make("nccl_net_device", READER, source, number, {"name": name})
    for name, (number, text) in log.environment.items():
        yield make("env_var", READER, source, number, {"name": name, "value": text})
    for (index, bus_id), (number, name) in log.gpus.items():
        fields: dict[str, Scalar | None] = {"index": index, "name": name, "vendor": "nvidia", "bus_id": bus_id}
        yield make("gpu", READER, source, number, fields)
    if log.job_line is not None:
        yield make("job", READER, source, log.job_line, log.job)
