"""Reader of lock files (uv.lock, poetry.lock): the versions that will be installed, of the packages that matter here.

May live here: those layouts, and which packages of the hundreds are told. Must not: other kinds of files.
"""

from __future__ import annotations

from typing import Any

from ...facts import Fact
from .facts import Asked, Read, items, line_of, mapping, toml_of
from .specs import Range, normalised

# A lock holds hundreds of packages; these depend on the machine, or torch on them.
_TOLD = ("torch", "torchvision", "torchaudio", "triton", "xformers", "flash-attn", "bitsandbytes", "vllm", "numpy")
_DEFAULT = ("https://pypi.org/simple",)


def read(text: str, name: str, target: Read, _before: tuple[Fact, ...]) -> Asked | None:
    """The facts of one file; None where it cannot be read."""
    document = toml_of(text)
    if document is None:
        return None
    asked, lines = Asked(name, target), text.splitlines()
    after = 0
    for package in map(mapping, items(document.get("package"))):
        wanted, version = package.get("name"), package.get("version")
        if not isinstance(wanted, str) or not isinstance(version, str):
            continue
        if normalised(wanted) not in _TOLD:
            continue
        line = line_of(lines, f'name = "{wanted}"', after)
        after = line or after
        holds = _applies(package, target)
        if holds is not False:
            _told(asked, package, wanted, version, line, conditional=holds is None)
    return asked


def _applies(package: dict[str, Any], target: Read) -> bool | None:
    """Whether one of the conditions under which this version was chosen holds."""
    markers = [marker for marker in items(package.get("resolution-markers")) if isinstance(marker, str)]
    markers += [package["markers"]] if isinstance(package.get("markers"), str) else []
    found = [target.holds(marker) for marker in markers] or [True]
    return True if True in found else None if None in found else False


def _told(
    asked: Asked, package: dict[str, Any], name: str, version: str, line: int | None, *, conditional: bool
) -> None:
    source = mapping(package.get("source"))
    url = next((str(source[key]) for key in ("registry", "url") if isinstance(source.get(key), str)), "")
    public, _, local = version.partition("+")
    variant = local or (asked.index(url, line, for_all=False) if url and not url.startswith(_DEFAULT) else None)
    asked.package(name, Range(f"=={version}", public), line, f"{name} {version}", role="locked", variant=variant,
                  default_index=None if variant else True, conditional=conditional or None)  # fmt: skip
