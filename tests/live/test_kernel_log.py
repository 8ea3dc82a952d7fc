"""The kernel's messages about GPUs, through stand-ins for dmesg and journalctl."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from gpurules.facts import Fact, Scalar
from gpurules.gathering import knowledge_in, signatures_of
from gpurules.probes.live.kernel_log import probe_kernel_log
from gpurules.probes.live.source import Machine, ProbeError
from gpurules.probes.runner import SystemRunner

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="the stand-ins are shell scripts")

Program = Callable[[str, str], Path]
Build = Callable[..., Path]

START = "[    0.000000] Linux version 6.8.0-51-generic (buildd@host1) (gcc 13)"
LOADED = "[    9.100000] nvidia-nvlink: Nvlink Core is being initialized, major device number 236"
DRIVER = "[    9.200000] NVRM: loading NVIDIA UNIX x86_64 Kernel Module  550.163.01  Tue Apr  8 12:41:17 UTC 2025"
OFF_BUS = "[90000.000000] NVRM: Xid (PCI:0000:41:00): 79, pid=4100, name=python3, GPU has fallen off the bus."
PAGE_FAULT = "NVRM: Xid (PCI:0000:41:00): 31, pid=4100, name=python3, Ch 00000010, intr 00000000. MMU Fault"
NOT_OURS = "[    1.500000] systemd[1]: Hostname set to <secret-host>."
SIGNATURES = signatures_of(knowledge_in(None))


@pytest.fixture
def probed(program: Program, build: Build, tmp_path: Path) -> Callable[..., list[Fact]]:
    """What the probe says where dmesg prints these lines."""

    def run(*lines: str, uptime: float = 90_100.0, limit_s: float = 3.0) -> list[Fact]:
        log = tmp_path / "log"
        log.write_text("".join(f"{line}\n" for line in lines))
        return _probe(program("dmesg", f"exec cat {log}"), build({"proc/uptime": f"{uptime} 1.0\n"}), limit_s)

    return run


def _probe(folder: Path, root: Path, limit_s: float = 3.0) -> list[Fact]:
    environ = {"PATH": f"{folder}:/usr/bin:/bin"}
    machine = Machine(root, SystemRunner(environ), environ, "linux", signatures=SIGNATURES)
    return probe_kernel_log(machine, limit_s)


def said(facts: list[Fact]) -> list[tuple[str, dict[str, Scalar]]]:
    return [(fact.type, {k: v for k, v in fact.fields.items() if k != "text"}) for fact in facts]


COMPLETE = ("coverage", {"domain": "kernel_log", "complete": True})
CUT = ("coverage", {"domain": "kernel_log", "complete": False})


def test_an_event_and_its_error(probed: Callable[..., list[Fact]]) -> None:
    xid = {"code": 79, "bus_id": "0000:41:00", "count": 1, "pid": 4100, "process": "python3", "processes": "python3"}
    error = {"kind": "xid_79", "code": 79, "bus_id": "0000:41:00"}
    facts = probed(START, NOT_OURS, LOADED, DRIVER, OFF_BUS)
    assert said(facts) == [("xid", xid), ("error", error), COMPLETE]
    assert "secret-host" not in str(facts)
    assert {place.source for fact in facts for place in fact.provenance} == {"kernel_log"}


def test_a_quiet_log_was_looked_at(probed: Callable[..., list[Fact]]) -> None:
    assert said(probed(START, LOADED, DRIVER)) == [COMPLETE]


def test_a_log_whose_start_is_gone_is_not_complete(probed: Callable[..., list[Fact]]) -> None:
    assert said(probed(DRIVER)) == [CUT]


@pytest.mark.parametrize(("age_s", "counts"), [(60, True), (3599, True), (3700, False)])
def test_what_a_program_did_is_past_after_an_hour(probed: Callable[..., list[Fact]], age_s: int, counts: bool) -> None:
    facts = probed(START, f"[{90_000 - age_s}.000000] {PAGE_FAULT}", uptime=90_000.0)
    assert [fact.get("code") for fact in facts if fact.type == "xid"] == [31]
    assert [fact.get("kind") for fact in facts if fact.type == "error"] == (["xid_31"] if counts else [])


def test_a_refusal_at_start_counts_as_long_as_the_driver_is_loaded(probed: Callable[..., list[Fact]]) -> None:
    refusal = "[    9.150000] NVRM: installed in this system is not supported by the"
    assert [f.get("kind") for f in probed(START, LOADED, refusal, DRIVER) if f.type == "error"] == [
        "nvrm_not_supported"
    ]


def test_what_was_before_the_driver_was_loaded_again_is_past(probed: Callable[..., list[Fact]]) -> None:
    mismatch = "[ 5000.000000] NVRM: API mismatch: the client has the version 550.54.14, but"
    again = LOADED.replace("9.100000", "6000.000000")
    assert said(probed(START, LOADED, DRIVER, mismatch, again, DRIVER)) == [COMPLETE]


def test_the_journal_where_dmesg_is_refused(program: Program, build: Build) -> None:
    program("dmesg", "echo 'dmesg: read kernel buffer failed: Operation not permitted' >&2; exit 1")
    folder = program("journalctl", f"echo '{OFF_BUS}'")
    facts = _probe(folder, build({"proc/uptime": "90100.0 1.0"}))
    assert [fact.get("code") for fact in facts if fact.type == "xid"] == [79]
    assert {place.reader for fact in facts for place in fact.provenance} == {"journalctl"}


@pytest.mark.parametrize(
    ("dmesg", "reason"),
    [
        ("echo 'dmesg: read kernel buffer failed: Operation not permitted' >&2; exit 1", "permission"),
        ("exit 0", "missing"),
        ("exec sleep 30", "timeout"),
    ],
)
def test_no_log_is_a_failure_with_its_reason(program: Program, build: Build, dmesg: str, reason: str) -> None:
    program("journalctl", "exit 0")
    folder = program("dmesg", dmesg)
    with pytest.raises(ProbeError) as caught:
        _probe(folder, build({"proc/uptime": "1.0 1.0"}), 0.5)
    assert caught.value.reason == reason


def test_a_log_without_end_is_cut(program: Program, build: Build) -> None:
    folder = program("dmesg", f"exec yes '{OFF_BUS}'")
    facts = _probe(folder, build({"proc/uptime": "90100.0 1.0"}), 5.0)
    # The last lines are read.
    assert [fact.get("count") for fact in facts if fact.type == "xid"] == [5000]
    assert said(facts)[-1] == CUT


def test_bytes_that_are_no_text(program: Program, build: Build, tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"\xff\xfe\x00NVRM: \x1b[2J Xid (PCI:0000:41:00): 79, pid=1\n" + OFF_BUS.encode() + b"\n\x00\xff")
    facts = _probe(program("dmesg", f"exec cat {log}"), build({"proc/uptime": "x"}))
    assert [fact.get("code") for fact in facts if fact.type == "xid"] == [79]
