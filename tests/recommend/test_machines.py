"""Every recommendation against the oracle: samples in each run, all machines with `-m slow`."""

from __future__ import annotations

import itertools
import multiprocessing
import random
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

import pytest

from . import judge, machines
from .oracle import Machine

FAMILIES: dict[str, tuple[Callable[[], Iterator[Machine]], int]] = {
    "grid": (machines.grid, 300),
    "unknowns": (machines.unknowns, 60),
    "pairs": (machines.pairs, 60),
    "pinned": (machines.pinned, 60),
}
CHUNK = 200
SHOWN = 20


def wrong(some: Sequence[Machine]) -> list[tuple[str, Machine]]:
    """What is wrong with the recommendations, each with its machine."""
    return [(fault, m) for m in some for fault in judge.faults(m, judge.recommended(m))]


def shown(found: Iterable[tuple[str, Machine]]) -> str:
    """The faults by number, each with its first machine."""
    first: dict[str, Machine] = {}
    counts: Counter[str] = Counter()
    for fault, machine in found:
        counts[fault] += 1
        first.setdefault(fault, machine)
    return "\n".join(f"{n} x {fault}: {first[fault]}" for fault, n in counts.most_common(SHOWN))


@pytest.mark.parametrize("family", FAMILIES)
def test_a_sample_is_right(family: str) -> None:
    make, size = FAMILIES[family]
    # Drawn from a fixed seed, so that a failure can be run again.
    assert shown(wrong(random.Random(620).sample(list(make()), size))) == ""


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_every_machine_is_right(family: str) -> None:
    everything = list(FAMILIES[family][0]())
    started = time.monotonic()
    found = list(itertools.chain.from_iterable(in_processes(everything)))
    print(f"{family}: {len(everything)} machines, {len(found)} faults, {time.monotonic() - started:.0f} s")
    assert shown(found) == ""


def in_processes(everything: Sequence[Machine]) -> Iterator[list[tuple[str, Machine]]]:
    """The faults of each chunk, two chunks at a time where processes can be forked."""
    chunks = [everything[i : i + CHUNK] for i in range(0, len(everything), CHUNK)]
    if "fork" not in multiprocessing.get_all_start_methods():
        yield from map(wrong, chunks)
        return
    with multiprocessing.get_context("fork").Pool(2) as pool:
        yield from pool.imap(wrong, chunks)
