"""The engine that a user asks for by name, and a session that runs on it.

May live here: choosing among the engines, comparing two. Must not: inference, what follows from a session.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from ..errors import InputError
from ..facts import Fact, Scalar
from ..knowledge.loader import Knowledge
from ..messages import Message
from .session import Engine, Session, native_engine

if TYPE_CHECKING:
    from ..engine.durable import DurableError


def open_session(
    knowledge: Knowledge, facts: Iterable[Fact], engine: str, tick: Callable[[], None] = lambda: None
) -> tuple[Session, list[Message]]:
    """The session with the engine asked for; `both` runs two and reports a difference as a defect."""
    given = tuple(facts)
    tick()
    if engine == "native":
        return Session(knowledge, given, _Ticking(native_engine(knowledge), tick)), []
    other = _durable(knowledge)
    if engine == "durable":
        return Session(knowledge, given, other), []
    native, durable = Session(knowledge, given, native_engine(knowledge)), Session(knowledge, given, other)
    return native, [_compare(native, durable)]


def _durable(knowledge: Knowledge) -> Engine:
    from ..engine.durable import DurableEngine, DurableError, DurableUnavailable

    try:
        return _Guarded(DurableEngine(knowledge.ir, knowledge.static), DurableError)
    except (DurableUnavailable, DurableError) as error:
        raise InputError("input.durable", reason=error.message) from error


class _Ticking:
    """An engine that calls `tick` before every run: simulating fixes runs it many times."""

    def __init__(self, engine: Engine, tick: Callable[[], None]) -> None:
        self.engine = engine
        self.tick = tick

    def run(self, rows: Iterable[tuple[str, Mapping[str, Scalar]]]) -> Any:
        self.tick()
        return self.engine.run(rows)


class _Guarded:
    """An engine whose own errors become input errors with one clear message."""

    def __init__(self, engine: Any, error: type[DurableError]) -> None:
        self.engine = engine
        self.error = error

    def run(self, rows: Iterable[tuple[str, Mapping[str, Scalar]]]) -> Any:
        try:
            return self.engine.run(rows)
        except self.error as error:
            raise InputError("input.durable", reason=error.message) from error


def _compare(native: Session, durable: Session) -> Message:
    first, second = (_content(s) for s in (native, durable))
    if first == second:
        return Message("note.engines_agree", rows=len(first[0]), justifications=first[1])
    return Message("note.engines_differ", rows=len(first[0] ^ second[0]))


def _content(session: Session) -> tuple[frozenset[tuple[str, tuple[tuple[str, Scalar], ...]]], int]:
    memory = session.memory
    rows = frozenset((t, tuple(sorted(f.items()))) for t, f in memory.rows)
    return rows, sum(len(memory.justifications(i)) for i in range(len(memory.rows)))
