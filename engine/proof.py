"""The proof of a row: why it holds, as the tree of least height.

May live here: the search for one proof in a working memory. Must not: text for people, rules' evaluation.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from .memory import Justification, WorkingMemory


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Proof:
    """A row and what it follows from; an input has no rule and height 0.

    Equal parts are one object, so a tree of many nodes may be small; compare and print it node by node, not whole.
    """

    row: int
    rule: str | None
    premises: tuple[Proof, ...]
    height: int

    def __repr__(self) -> str:
        return f"Proof(row={self.row}, rule={self.rule!r}, height={self.height})"


def proof(memory: WorkingMemory, row_id: int) -> Proof:
    """The proof of least height; among equals the first by rule id and then by premises."""
    heights = _heights(memory, row_id)
    made: dict[int, Proof] = {}
    chosen = _chosen(memory, row_id, heights)
    # lowest first, so that premises are there: no recursion, however deep the proof
    for current in sorted(chosen, key=lambda i: (heights[i], i)):
        firing = chosen[current]
        if firing is None:
            made[current] = Proof(current, None, (), 0)
        else:
            made[current] = Proof(current, firing.rule, tuple(made[p] for p in firing.premises), heights[current])
    return made[row_id]


def _chosen(memory: WorkingMemory, row_id: int, heights: dict[int, int]) -> dict[int, Justification | None]:
    """The justification used for each row of the proof; None for an input."""
    chosen: dict[int, Justification | None] = {}
    waiting = [row_id]
    while waiting:
        current = waiting.pop()
        if current in chosen:
            continue
        if heights[current] == 0:
            chosen[current] = None
            continue
        chosen[current] = firing = next(
            j for j in memory.justifications(current) if _height(j, heights) == heights[current]
        )
        waiting.extend(firing.premises)
    return chosen


def _height(firing: Justification, heights: dict[int, int]) -> int:
    return 1 + max((heights[p] for p in firing.premises), default=0)


def _heights(memory: WorkingMemory, row_id: int) -> dict[int, int]:
    """The least height of every row below this one; rows on a cycle get theirs from outside the cycle."""
    below = _below(memory, row_id)
    readers: defaultdict[int, list[int]] = defaultdict(list)
    firings: list[tuple[int, int]] = []
    missing: list[int] = []
    heights: dict[int, int] = {}
    ready: list[int] = []
    for current in sorted(below):
        if memory.given(current):
            ready.append(current)
            continue
        for firing in memory.justifications(current):
            premises = set(firing.premises)
            for premise in premises:
                readers[premise].append(len(firings))
            firings.append((current, len(premises)))
            missing.append(len(premises))
    height = 0
    bare = [current for current, count in firings if not count]
    while ready or (height <= 1 and bare):
        found: list[int] = []
        for current in ready:
            heights[current] = height
        for current in ready:
            found.extend(_completed(readers[current], firings, missing))
        height += 1
        if height == 1:
            found.extend(bare)
        ready = [i for i in dict.fromkeys(found) if i not in heights]
        if height > 1:
            bare = []
    return heights


def _completed(waiting: Iterable[int], firings: list[tuple[int, int]], missing: list[int]) -> list[int]:
    done = []
    for number in waiting:
        missing[number] -= 1
        if not missing[number]:
            done.append(firings[number][0])
    return done


def _below(memory: WorkingMemory, row_id: int) -> set[int]:
    """The row and all rows that some proof of it may use."""
    below = {row_id}
    waiting = [row_id]
    while waiting:
        current = waiting.pop()
        if memory.given(current):
            continue
        for firing in memory.justifications(current):
            for premise in firing.premises:
                if premise not in below:
                    below.add(premise)
                    waiting.append(premise)
    return below
