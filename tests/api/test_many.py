"""Many sessions in one process: threads agree with one thread, and memory stays flat."""

from __future__ import annotations

import gc
import hashlib
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import gpurules
import pytest

from . import inputs

THREADS = 8
KIB_A_SESSION = 0.5  # less than any fact that would be kept: nothing may grow with the number of sessions
psutil = pytest.importorskip("psutil")


def answer(seed: int) -> str:
    """Everything that one report gives, as one digest."""
    lang = "zh" if seed % 2 else "en"
    text = inputs.report(seed)
    report = gpurules.diagnose(text, lang=lang)  # type: ignore[arg-type]
    everything = (report.to_json(), report.to_text(), report.to_markdown(), gpurules.recommend(text).to_json())
    return hashlib.sha256("\0".join(everything).encode()).hexdigest()


def agree(count: int) -> None:
    with ThreadPoolExecutor(THREADS) as pool:
        together = list(pool.map(answer, range(count)))
    assert together == [answer(seed) for seed in range(count)]
    assert len(set(together)) > count // 2


def test_threads_give_the_same_bytes_as_one_thread() -> None:
    agree(100)


@pytest.mark.slow
def test_a_thousand_reports_by_threads() -> None:
    agree(1000)


def test_threads_that_come_first_together_agree() -> None:
    """In a new process, where nothing is loaded and nothing compiled yet."""
    code = (
        "import sys; from concurrent.futures import ThreadPoolExecutor; import gpurules\n"
        "sys.setswitchinterval(1e-5)\n"
        "text = sys.stdin.read()\n"
        f"with ThreadPoolExecutor({THREADS}) as pool:\n"
        f"    found = set(pool.map(lambda _: gpurules.diagnose(text).to_json(), range({THREADS})))\n"
        "print(len(found), next(iter(found)))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], input=inputs.ISSUE, capture_output=True, text=True, check=True, timeout=120
    )
    number, _, report = done.stdout.partition(" ")
    assert number == "1"
    assert gpurules.Report.from_json(report) == gpurules.diagnose(inputs.ISSUE)


def growth(warm_up: range, sessions: range) -> float:
    """KiB of resident memory that each of the sessions leaves behind, after others that load and compile on demand."""
    process = psutil.Process()

    def run(numbers: range) -> int:
        for seed in numbers:
            gpurules.diagnose(inputs.report(seed)).to_json()
        gc.collect()
        return int(process.memory_info().rss)

    before = run(warm_up)
    return (run(sessions) - before) / 1024 / len(sessions)


def test_memory_stays_flat() -> None:
    # the allocator takes memory in steps, which weigh more over few sessions
    assert growth(range(250), range(250)) < 8 * KIB_A_SESSION


@pytest.mark.slow
def test_memory_stays_flat_over_ten_thousand_sessions() -> None:
    assert growth(range(1000), range(1000, 11_000)) < KIB_A_SESSION
