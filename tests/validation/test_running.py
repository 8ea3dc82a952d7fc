"""Checks that hang, crash, are killed or take too much are reported as such, and cost no other check anything."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable

import psutil
import pytest
from gpurules.probes.validation import CHECKS, Budget, Check, Device, Outcome, planned, run_checks
from gpurules.probes.validation._child import transports

from .conftest import PASSING

CPU = Device("cpu")
KERNEL = Check("kernel", "kernel", "kernel", limit_s=30.0)
AVAILABLE = CHECKS[0]

Stub = Callable[[str], dict[str, str]]

posix = pytest.mark.skipif(os.name != "posix", reason="signals")


def one(environ: dict[str, str], check: Check = KERNEL, budget: Budget | None = None) -> Outcome:
    (outcome,) = run_checks([check], CPU, sys.executable, budget, environ)
    return outcome


@pytest.mark.parametrize(
    ("body", "state", "detail"),
    [
        ("raise MemoryError", "out_of_memory", "MemoryError: "),
        ("raise RuntimeError('CUDA out of\\n memory')", "out_of_memory", "RuntimeError: CUDA out of memory"),
        ("raise ImportError('libcudart.so.12: no such file')", "failed", "ImportError: libcudart.so.12: no such file"),
        ("print('broken', file=sys.stderr); os._exit(3)", "crashed", "exit status 3 broken"),
        ("while True: print('x' * 9999)", "crashed", "prints without end"),
        pytest.param("os.kill(os.getpid(), signal.SIGKILL)", "killed", "SIGKILL", marks=posix),
        pytest.param("os.kill(os.getpid(), signal.SIGTERM)", "killed", "SIGTERM", marks=posix),
        pytest.param("os.kill(os.getpid(), signal.SIGSEGV)", "crashed", "SIGSEGV", marks=posix),
        pytest.param("os.abort()", "crashed", "SIGABRT", marks=posix),
    ],
)
def test_how_a_check_ended(stub: Stub, body: str, state: str, detail: str) -> None:
    outcome = one(stub(body))
    assert (outcome.state, str(outcome.detail)) == (state, detail)


def test_a_check_that_hangs_is_stopped_with_all_that_it_started(stub: Stub) -> None:
    body = "import subprocess\nsubprocess.Popen([sys.executable, '-c', 'import time; time.sleep(77.25)'])"
    begun = time.monotonic()
    outcome = one(stub(body + "\ntime.sleep(60)"), Check("kernel", "kernel", "kernel", limit_s=2.0))
    assert (outcome.state, str(outcome.detail)) == ("timeout", "no end after 2 s")
    assert time.monotonic() - begun < 10
    time.sleep(0.2)
    left = [p for p in psutil.process_iter(["cmdline"]) if any("sleep(77.25)" in a for a in p.info["cmdline"] or ())]
    assert left == []


def test_a_check_stays_below_its_share_of_the_memory(stub: Stub) -> None:
    share = 2 * 200 / (psutil.virtual_memory().available >> 20)  # two run at once, each with 200 MiB
    greedy = stub("held = []\nwhile True: held.append(bytearray(20 << 20)); time.sleep(0.02)")
    outcome = one(greedy, KERNEL, Budget(55, share))
    assert outcome.state == "out_of_memory"
    assert str(outcome.detail).startswith("stopped at ")


def test_a_result_counts_among_the_noise_of_libraries(stub: Stub) -> None:
    noise = "print('{\"a\": 1}'); print('[1]'); import atexit; atexit.register(print, 'bye')\n"
    assert one(stub(noise + PASSING), AVAILABLE).state == "passed"


def test_the_targets_of_a_build_are_read_in_the_order_of_the_catalog(stub: Stub) -> None:
    flags = "class _C:\n    _cuda_getArchFlags = lambda: 'sm_120 sm_75 compute_120 sm_90'\n"
    outcome = one(stub(flags + "class version:\n    cuda = '13.0'"), CHECKS[1])
    assert (outcome.state, outcome.value) == ("passed", "sm_75 sm_90 sm_120")
    assert outcome.measured == {"ptx": "compute_120"}


@pytest.mark.parametrize(
    ("reaches", "value", "direct"),
    [("True", "all", 6), ("False", "none", 0), ("a + b < 3", "some", 4)],
)
def test_how_many_devices_reach_one_another(stub: Stub, reaches: str, value: str, direct: int) -> None:
    cuda = f"class cuda:\n    device_count = lambda: 3\n    can_device_access_peer = lambda a, b: {reaches}\n"
    topology = next(check for check in CHECKS if check.name == "topology")
    (outcome,) = run_checks([topology], Device("cuda"), sys.executable, environ=stub(cuda))
    assert (outcome.state, outcome.value, outcome.measured) == ("passed", value, {"pairs": 6, "direct": direct})


def test_the_transports_that_nccl_names() -> None:
    logs = [
        "h:1:2 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P/CUMEM\nh:1:2 [0] NCCL INFO Connected all rings",
        "h:1:3 [1] NCCL INFO Channel 00 : 1[1] -> 0[0] via SHM/direct/direct\nvia P2P",
    ]
    assert (transports(logs[:1]), transports(logs), transports(["via NETWORK/x"])) == ("P2P", "P2P SHM", "")


def test_no_check_begins_without_time(stub: Stub) -> None:
    outcome = one(stub("time.sleep(60)"), KERNEL, Budget(0.5))
    assert (outcome.state, str(outcome.detail)) == ("skipped", "no time was left")


def test_a_check_that_had_less_time_than_it_may_take_has_not_failed(stub: Stub) -> None:
    outcome = one(stub("time.sleep(60)"), KERNEL, Budget(1.5))
    assert (outcome.state, str(outcome.detail)) == ("skipped", "no time was left")


def test_where_the_device_does_not_answer_only_the_build_is_read_on(stub: Stub) -> None:
    told: list[tuple[str, str]] = []
    outcomes = run_checks(
        [KERNEL, *CHECKS[:2]], CPU, sys.executable, None, stub("raise OSError('broken')"),
        progress=lambda check, outcome: told.append((check.name, outcome.state if outcome else "begins")),
    )  # fmt: skip
    assert [(o.check.name, o.state, str(o.detail)) for o in outcomes] == [
        ("kernel", "skipped", "the device does not answer"),
        ("available", "failed", "OSError: broken"),
        ("arch_list", "failed", "OSError: broken"),
    ]
    assert told[:2] == [("available", "begins"), ("available", "failed")]
    assert sorted(told[2:]) == [
        ("arch_list", "begins"), ("arch_list", "failed"), ("kernel", "begins"), ("kernel", "skipped"),
    ]  # fmt: skip


def test_an_interpreter_that_is_not_there(tmp_path: object) -> None:
    (outcome,) = run_checks([KERNEL], CPU, f"{tmp_path}/python")
    assert (outcome.state, str(outcome.detail)) == ("failed", f"{tmp_path}/python: no such file or directory")


def test_the_facts_of_a_check() -> None:
    (fact,) = planned([KERNEL], Device("cuda", 1))
    assert fact.fields == {"check": "kernel", "needs": "kernel", "device": "cuda", "index": 1}
    assert planned([Check("copy", "kernel", "copy", tensors_mib=16)], CPU)[0].fields["tensors_mib"] == 16
    took = Outcome(KERNEL, CPU, "passed", measured={"peak_mib": 9, "error": 0.1}).fact()
    assert took.fields == {"check": "kernel", "device": "cpu", "index": 0, "state": "passed", "peak_mib": 9}
    outcome = Outcome(KERNEL, Device("cuda", 1), "crashed", "SIGSEGV", 1.0, None, {"mib": 1})
    assert outcome.fact().fields == {
        "check": "kernel", "device": "cuda", "index": 1, "state": "crashed", "detail": "SIGSEGV",
    }  # fmt: skip
    assert len({check.name for check in CHECKS}) == len(CHECKS)
