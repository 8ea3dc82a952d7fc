"""Times the Python API: sessions a second with one thread and with several, and the memory that sessions leave behind.

    python bench/api.py [--sessions N] [--threads N] [--dialogues N]

A session is `diagnose` of one of a thousand pasted texts, from text to report. The texts are those of the tests.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import statistics
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import gpurules
import psutil

INPUTS = Path(__file__).resolve().parents[1] / "tests" / "api" / "inputs.py"


def generator() -> Callable[[int], str]:
    """The function that writes the text of a number."""
    spec = importlib.util.spec_from_file_location("inputs", INPUTS)
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    sys.modules["inputs"] = module
    spec.loader.exec_module(module)
    made: Callable[[int], str] = module.report
    return made


def memory() -> float:
    """Resident memory in MiB."""
    gc.collect()
    return float(psutil.Process().memory_info().rss) / 2**20


def dialogue() -> int:
    """One whole dialogue by a user who always takes the first answer; the number of questions."""
    session = gpurules.Session(question="my training hangs")
    asked = 0
    while session.ask() is not None and asked < 8:
        session.answer("1")
        asked += 1
    session.report()
    return asked


def main() -> None:
    """Run and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--dialogues", type=int, default=10)
    options = parser.parse_args()
    report = generator()
    texts = [report(seed) for seed in range(1000)]

    started = time.perf_counter()
    gpurules.diagnose(texts[0])
    print(f"first session        {1e3 * (time.perf_counter() - started):8.1f} ms, with loading")
    for text in texts[1:400]:
        gpurules.diagnose(text)

    before = memory()
    times = []
    for number in range(options.sessions):
        started = time.perf_counter()
        gpurules.diagnose(texts[number % len(texts)])
        times.append(1e3 * (time.perf_counter() - started))
    after = memory()
    middle, late = statistics.median(times), sorted(times)[int(0.95 * len(times))]
    print(
        f"one thread           {1e3 * len(times) / sum(times):8.1f} sessions/s, {middle:.1f} ms, 95 % in {late:.1f} ms"
    )
    print(
        f"memory               {after:8.1f} MiB, {1024 * (after - before) / len(times):.2f} KiB a session left behind"
    )

    started = time.perf_counter()
    with ThreadPoolExecutor(options.threads) as pool:
        list(pool.map(lambda n: gpurules.diagnose(texts[n % len(texts)]).verdict, range(options.sessions)))
    print(f"{options.threads} threads            {options.sessions / (time.perf_counter() - started):8.1f} sessions/s")

    started = time.perf_counter()
    questions = sum(dialogue() for _ in range(options.dialogues))
    spent = 1e3 * (time.perf_counter() - started)
    print(f"dialogue             {spent / max(1, questions):8.1f} ms a question, {questions} questions")


if __name__ == "__main__":
    main()
