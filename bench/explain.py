"""How long explanations take, as shares of a diagnosis of the same machine (facts to report), in one run.

    python bench/explain.py [--rounds N]

Targets: why 1/10, why-not 1/2, what-if 1.2, how-to for builds 50. The session is rebuilt from the report each time, as
the command line does; `why` reads the report's own derivations.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial

from gpurules import pipeline

MACHINES = {
    "new GPU, old torch": ("NVIDIA GeForce RTX 5090", "570.124.06", "2.6.0+cu124", "3.12.3"),
    "old driver and Python": ("NVIDIA GeForce RTX 3090", "470.82.01", "2.14.1+cu126", "3.9.3"),
    "old GPU, new torch": ("NVIDIA GeForce GTX 1080", "580.95", "2.15.0+cu132", "3.12.3"),
    "all well": ("NVIDIA GeForce RTX 4090", "580.95", "2.13.0+cu129", "3.12.3"),
}
TARGETS = {"why": 0.1, "why-not": 0.5, "what-if": 1.2, "how-to": 50.0}


def facts_of(gpu: str, driver: str, torch: str, python: str) -> bytes:
    """A facts file of a Linux machine."""
    return (
        "facts:\n- os: {family: linux, machine: x86_64}\n"
        f"- gpu: {{index: 0, name: {gpu}}}\n- driver: {{vendor: nvidia, version: '{driver}'}}\n"
        f"- torch: {{version: {torch}}}\n- python: {{version: {python}}}\n"
    ).encode()


def seconds(work: Callable[[], object], rounds: int) -> float:
    """The median processor time of the rounds, after one that does not count."""
    work()
    times = []
    for _ in range(rounds):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return statistics.median(times)


def main() -> None:
    """Print the ratios of every machine and the worst of each kind."""
    parser = argparse.ArgumentParser(description="time explanations against a diagnosis")
    parser.add_argument("--rounds", type=int, default=7)
    rounds = parser.parse_args().rounds
    worst = dict.fromkeys(TARGETS, 0.0)
    for name, told in MACHINES.items():
        inputs = pipeline.Inputs(facts=[("machine.yaml", facts_of(*told))])
        report = pipeline.diagnose(inputs)
        session = seconds(partial(pipeline.diagnose, inputs), rounds)
        asked: dict[str, list[Callable[[], object]]] = {
            "why": [partial(pipeline.why, report, t, "en") for t in ("1", "recommendation")],
            "why-not": [
                partial(pipeline.why_not, report, target, "en")
                for target in ("torch==2.15.0", "torch>=2.15", "driver_too_old_for_wheel", "dkms_not_built_for_kernel")
            ],
            "what-if": [partial(pipeline.what_if, report, ["driver=620", "torch=2.15.0+cu132"], "en")],
            "how-to": [
                partial(pipeline.how_to, report, goal, "en")
                for goal in ("torch>=2.15", "torch==2.15.0+cu132", "torch==2.13.0+cu126")
            ],
        }
        print(f"{name}: session {session * 1000:.1f} ms")
        for kind, questions in asked.items():
            ratios = [seconds(q, rounds) / session for q in questions]
            worst[kind] = max(worst[kind], *ratios)
            print(f"  {kind:8} " + "  ".join(f"{r:.2f}" for r in ratios))
    print("worst:   " + ", ".join(f"{k} {v:.2f} (target {TARGETS[k]:g})" for k, v in worst.items()))


if __name__ == "__main__":
    main()
