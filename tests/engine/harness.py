"""What the engine tests share: comparable views of a working memory, and one long-lived durable-rules worker."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

from gpurules.engine.durable import DurableEngine, DurableUnavailable, DurableWorker
from gpurules.engine.ir import Row, Rule
from gpurules.engine.memory import WorkingMemory
from gpurules.engine.native import RuleBase

from . import reference


def view(memory: WorkingMemory) -> list[Any]:
    """Everything a working memory says, with its ids."""
    return [
        (i, reference.content(row), memory.given(i), memory.static(i), memory.justifications(i))
        for i, row in enumerate(memory.rows)
    ]


def unnumbered(memory: WorkingMemory) -> tuple[set[reference.Content], set[reference.Firing]]:
    """What a working memory says without ids, as the reference evaluator says it."""
    contents = [reference.content(row) for row in memory.rows]
    firings = {
        (j.rule, tuple(contents[p] for p in j.premises), contents[i])
        for i in range(len(contents))
        for j in memory.justifications(i)
    }
    assert len(set(contents)) == len(contents)
    return set(contents), firings


@lru_cache(maxsize=1)
def worker() -> DurableWorker | None:
    """The worker, or None where durable-rules cannot be used."""
    made = DurableWorker()
    try:
        made.start()
    except DurableUnavailable:
        return None
    return made


def run(rules: Sequence[Rule], rows: Sequence[Row], static: Sequence[Row] = ()) -> WorkingMemory:
    """The native result, after every other engine at hand has agreed to it."""
    memory = RuleBase(rules, static).run(rows)
    assert unnumbered(memory) == reference.evaluate(rules, [*static, *rows])
    shared = worker()
    if shared is not None:
        assert view(DurableEngine(rules, static, worker=shared).run(rows)) == view(memory)
    return memory
