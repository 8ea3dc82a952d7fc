"""Conditions on requirements (`; sys_platform == "linux"`): whether they hold for a target.

May live here: reading and evaluating such conditions, with unknown as a third answer. Must not: requirements.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

_TOKEN = re.compile(
    r"\s*(?:(?P<open>\()|(?P<close>\))|(?P<text>'[^']*'|\"[^\"]*\")|(?P<op>===|==|!=|<=|>=|~=|<|>)|(?P<word>[A-Za-z_][A-Za-z_.]*))"
)
_SYSTEMS = {
    "linux": ("linux", "Linux", "posix"), "windows": ("win32", "Windows", "nt"), "macos": ("darwin", "Darwin", "posix"),
}  # fmt: skip
_MACHINES = {"windows": {"x86_64": "AMD64", "arm64": "ARM64"}}
_MAX_TOKENS = 200
_MAX_DEPTH = 20


def applies(marker: str | None, system: str, machine: str, python: str | None) -> bool | None:
    """Whether the condition holds: no condition always does; None where it rests on what is not known."""
    if marker is None or not marker.strip():
        return True
    platform, name, os_name = _SYSTEMS.get(system, ("", "", ""))
    values: dict[str, str | None] = {
        "sys_platform": platform, "platform_system": name, "os_name": os_name,
        "platform_machine": _MACHINES.get(system, {}).get(machine, machine),
        "platform_python_implementation": "CPython", "implementation_name": "cpython",
        "python_version": ".".join(python.split(".")[:2]) if python else None, "python_full_version": python,
    }  # fmt: skip
    try:
        tokens = list(_tokens(marker))
        parser = _Parser(tokens, values)
        found = parser.either(0)
        return found if parser.at == len(tokens) else None
    except _Unreadable:
        return None


class _Unreadable(Exception):
    pass


def _tokens(marker: str) -> Iterator[tuple[str, str]]:
    position, count = 0, 0
    text = marker.strip()
    while position < len(text):
        found = _TOKEN.match(text, position)
        count += 1
        if found is None or found.lastgroup is None or count > _MAX_TOKENS:
            raise _Unreadable
        yield found.lastgroup, found[found.lastgroup]
        position = found.end()


class _Parser:
    """Recursive descent over the tokens; `at` is the next one."""

    def __init__(self, tokens: list[tuple[str, str]], values: Mapping[str, str | None]) -> None:
        self._tokens = tokens
        self._values = values
        self.at = 0

    def either(self, depth: int) -> bool | None:
        """One or more conditions joined by `or`."""
        found = self.both(depth)
        while self._word("or"):
            other = self.both(depth)
            found = True if found or other else None if None in (found, other) else False
        return found

    def both(self, depth: int) -> bool | None:
        """One or more conditions joined by `and`."""
        found = self._one(depth)
        while self._word("and"):
            other = self._one(depth)
            found = False if False in (found, other) else None if None in (found, other) else True
        return found

    def _one(self, depth: int) -> bool | None:
        if depth > _MAX_DEPTH:
            raise _Unreadable
        kind, text = self._next()
        if kind == "open":
            found = self.either(depth + 1)
            if self._next()[0] != "close":
                raise _Unreadable
            return found
        operator = self._operator()
        return self._compare(kind, text, operator, *self._next())

    def _compare(self, kind: str, text: str, operator: str, other_kind: str, other: str) -> bool | None:
        names = [kind == "word", other_kind == "word"]
        first = self._values.get(text) if names[0] else text[1:-1]
        second = self._values.get(other) if names[1] else other[1:-1]
        if first is None or second is None:
            return None
        if operator in ("in", "not in"):
            return (first in second) == (operator == "in")
        versions = {"python_version", "python_full_version"} & {text, other}
        return _holds(_numbers(first), operator, _numbers(second)) if versions else _holds(first, operator, second)

    def _operator(self) -> str:
        kind, text = self._next()
        if kind == "op":
            return text
        if text == "in":
            return "in"
        if text == "not" and self._next()[1] == "in":
            return "not in"
        raise _Unreadable

    def _word(self, word: str) -> bool:
        if self.at < len(self._tokens) and self._tokens[self.at] == ("word", word):
            self.at += 1
            return True
        return False

    def _next(self) -> tuple[str, str]:
        if self.at >= len(self._tokens):
            raise _Unreadable
        self.at += 1
        return self._tokens[self.at - 1]


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in re.findall(r"[0-9]{1,6}", text)[:4])


def _holds(first: object, operator: str, second: object) -> bool | None:
    if operator in ("==", "==="):
        return first == second
    if operator == "!=":
        return first != second
    if not isinstance(first, tuple) or not isinstance(second, tuple):
        return None
    if operator == "~=":
        return first >= second and first[: len(second) - 1] == second[:-1]
    return {"<": first < second, "<=": first <= second, ">": first > second, ">=": first >= second}[operator]
