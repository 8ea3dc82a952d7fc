"""What people write to name builds: `torch==2.15.0+cu130`, `torch==2.15`, `torch>=2.15`, `2.13.0+cu129@linux-x86_64`.

May live here: reading such texts and matching them with builds of the catalog. Must not: any build, choices.
"""

from __future__ import annotations

import functools
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from ..facts import Scalar
from ..knowledge.versions import parse_version

_TEXT = re.compile(
    r"\s*(?:(?P<name>[A-Za-z][A-Za-z0-9_.\-]*?)\s*)?(?P<op>==|>=|<=|>|<|=)?\s*"
    r"(?P<version>\d+(?:\.\d+)*)(?:\+(?P<local>[A-Za-z0-9.]+))?(?:@(?P<platform>[a-z0-9_\-]+))?\s*\Z"
)
_PACKAGE = "torch"
_COMPARE: Mapping[str, Callable[[int, int], bool]] = {
    ">=": operator.ge,
    "<=": operator.le,
    ">": operator.gt,
    "<": operator.lt,
}


@dataclass(frozen=True, slots=True)
class BuildSpec:
    """Which builds are meant: a version, whole or its beginning, or a bound; perhaps a variant and a platform."""

    text: str
    op: str
    version: str
    local: str | None
    platform: str | None

    @classmethod
    def read(cls, text: str) -> BuildSpec | None:
        """The builds that a text names, or None where it names none."""
        match = _TEXT.match(text)
        if match is None or match["name"] not in (None, _PACKAGE):
            return None
        if match["name"] is None and match["op"] is None and "." not in match["version"]:
            return None
        op = match["op"] or "=="
        return cls(text.strip(), "==" if op == "=" else op, match["version"], match["local"], match["platform"])

    def names(self, build: str) -> bool:
        """Whether a build of the catalog, by its id, is meant."""
        if self.op == "==" and not build.startswith(self.version):
            return False
        version, _, rest = build.partition("+")
        local, _, platform = rest.partition("@")
        return (
            self.local in (None, local) and self.platform in (None, platform) and bool(version) and self.covers(version)
        )

    def covers(self, version: str) -> bool:
        """Whether a version without its local part is meant."""
        if self.op == "==":
            wanted, given = self.version.split("."), version.split(".")
            return given[: len(wanted)] == wanted
        told, asked = _order(version), _order(self.version)
        return told is not None and asked is not None and _COMPARE[self.op](told, asked)

    @property
    def bare(self) -> str:
        """The specifier without the package's name, as people say it."""
        version = self.version + (f"+{self.local}" if self.local else "")
        return version if self.op == "==" else f"{self.op}{version}"


@functools.lru_cache(maxsize=1024)
def _order(version: str) -> int | None:
    parts = parse_version(version)
    return parts.order if parts else None


def order_of(fields: Mapping[str, Scalar]) -> int:
    """The order of a build's torch version."""
    return _order(str(fields["torch"])) or 0
