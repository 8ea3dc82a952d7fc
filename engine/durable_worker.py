"""The process in which durable-rules runs: JSON lines in, JSON lines out. Started by file name, not imported.

May live here: calls of durable-rules. Must not: anything of this package (the process has it not on its path), rules'
meaning: the other side (`durable.py`) makes the rulesets and concludes from what fired.

Requests:  {"op": "load", "shards": {name: {rule: [[alias, condition], ...]}}}
           {"op": "assert", "sid": s, "facts": [[[shard, ...], fact], ...]}  ->  {"fired": [[rule, [fid, ...]], ...]}
           {"op": "close", "sid": s}
Answers:   {"ok": true, ...} or {"error": text}; the first line, unasked, says whether durable-rules is there.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import sys
from typing import Any

# this folder holds `durable.py`, which would hide the package `durable`
_HERE = os.path.dirname(os.path.realpath(__file__))
sys.path[:] = [p for p in sys.path if os.path.realpath(p or ".") != _HERE]

Json = dict[str, Any]
MEMORY_LIMIT = 4 << 30


class Worker:
    """The rulesets loaded last and what fired since the last request."""

    def __init__(self, engine: Any, native: Any) -> None:
        self._engine, self._native = engine, native
        self._host: Any = None
        self._fired: list[tuple[str, Any]] = []
        self._opened: set[tuple[str, str]] = set()

    def answer(self, request: Json) -> Json:
        """Carries out one request."""
        if request["op"] == "load":
            return self._load(request["shards"])
        if request["op"] == "assert":
            return self._assert(request["sid"], request["facts"])
        return self._close(request["sid"])

    def _load(self, shards: dict[str, dict[str, list[tuple[str, Json]]]]) -> Json:
        if self._host is not None:
            for ruleset in self._host._ruleset_list:
                self._native.delete_ruleset(ruleset._handle)
        self._opened.clear()
        self._host = _quiet_host(self._engine)
        for name, rules in shards.items():
            # the sentinel fires first in every session: deleting one in which nothing fired frees a wild pointer
            definition: Json = {"open": {"all": [{"m": {"type": "open"}}], "run": _ignore}}
            for rule, patterns in rules.items():
                definition[rule] = {"all": [{alias: cond} for alias, cond in patterns], "run": self._recorder(rule)}
            self._host.register_rulesets({name: definition})
        return {"ok": True}

    def _recorder(self, rule: str) -> Any:
        # exactly one argument: with two, durable-rules would wait for a callback
        def record(closure: Any) -> None:
            self._fired.append((rule, closure._m))

        return record

    def _assert(self, sid: str, facts: list[tuple[list[str], Json]]) -> Json:
        self._fired.clear()
        for shards, fact in facts:
            for shard in shards:
                if (shard, sid) not in self._opened:
                    self._opened.add((shard, sid))
                    self._host.assert_fact(shard, {"type": "open", "sid": sid})
                try:
                    self._host.assert_fact(shard, {**fact, "sid": sid})
                except self._engine.MessageNotHandledException:
                    continue
        return {"ok": True, "fired": [[rule, _fids(match)] for rule, match in self._fired if rule != "open"]}

    def _close(self, sid: str) -> Json:
        for shard, opened in sorted(self._opened):
            if opened == sid:
                self._host.delete_state(shard, sid)
        self._opened = {key for key in self._opened if key[1] != sid}
        return {"ok": True}


def _ignore(closure: Any) -> None:
    """The sentinel's consequent."""


def _fids(match: Json) -> list[int]:
    """The numbers of the matched facts by alias; a rule of one pattern has its fact under "m"."""
    if "m" in match:
        return [match["m"]["fid"]]
    return [match[alias]["fid"] for alias in sorted(match, key=lambda a: int(a[1:]))]


def _quiet_host(engine: Any) -> Any:
    class QuietHost(engine.Host):  # type: ignore[misc]
        """A host without the two chains of timer threads; consequents run inside assert_fact only."""

        def _run(self) -> None:
            return

    return QuietHost()


def _limit() -> None:
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard == resource.RLIM_INFINITY or hard > MEMORY_LIMIT:
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, hard))


def _import() -> tuple[Any, Any] | dict[str, str]:
    """The two modules, or why there are none: the last part of a message's id, and what Python says."""
    if sys.version_info >= (3, 13):
        return {"unavailable": "python", "error": ""}
    try:
        engine = importlib.import_module("durable.engine")
        native = importlib.import_module("durable_rules_engine")
    except ImportError as error:
        return {"unavailable": "missing", "error": str(error)}
    logging.getLogger("durable").setLevel(logging.CRITICAL)
    return engine, native


def main() -> None:
    """Answers requests until the input ends."""
    out = os.fdopen(os.dup(1), "w", encoding="ascii", newline="\n")
    os.dup2(2, 1)  # whatever C code prints must not get between the answers
    _limit()
    found = _import()
    if isinstance(found, dict):
        print(json.dumps(found), file=out, flush=True)
        return
    print(json.dumps({"ok": True}), file=out, flush=True)
    worker = Worker(*found)
    for line in sys.stdin:
        try:
            answer = worker.answer(json.loads(line))
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=out, flush=True)


if __name__ == "__main__":
    main()
