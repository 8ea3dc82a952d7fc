"""Reader of package lists: `pip list`, `pip freeze`, `pip show`, uv, `conda list` (also --explicit), environment.yml.

May live here: the layouts of those lists. Must not: the package lines of collect_env, what a version means.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal
from urllib.parse import unquote

from ...facts import Fact, Scalar
from .common import FactList, package_name
from .line import Line

READER = "packages"
_MIN_COMPLETE = 9
# Beyond name and version: build, channel or a location with blanks.
_MAX_COLUMNS = 4

_NAME = r"[A-Za-z0-9_][A-Za-z0-9._-]{0,80}"
_PEP440 = r"[0-9][0-9A-Za-z.+!_*-]{0,80}"
_PIP_HEADER = re.compile(r"[ \t]{0,8}Package[ \t]+Version(?P<more>(?:[ \t]+[A-Za-z]+){0,6})$")
_RULE = re.compile(r"[ \t]{0,8}-{3,}(?:[ \t]+-{3,}){0,5}$")
_CONDA_HEADER = re.compile(r"# (?:packages in environment at |Name[ \t]+Version[ \t]+Build)")
_ROW = re.compile(
    r"[ \t]{0,8}(?P<name>" + _NAME + r")(?P<gap>[ \t]+)(?P<version>" + _PEP440 + r")(?P<rest>(?:[ \t].*)?)$",
    re.ASCII,
)
_FREEZE = re.compile(
    r"[ \t]{0,8}(?P<name>"
    + _NAME
    + r")(?:\[[A-Za-z0-9,_-]{1,80}\])?===?(?P<version>"
    + _PEP440
    + r")(?:[ \t]*;.{0,200}|[ \t]+--hash=.{0,200}|[ \t]*\\)?$",
    re.ASCII,
)
_DIRECT = re.compile(r"(?P<name>" + _NAME + r") @ (?P<url>[a-z+]{2,12}:[^ \t]{1,600})$", re.ASCII)
_WHEEL = re.compile(
    r"/"
    + _NAME
    + r"-(?P<version>[0-9][0-9A-Za-z.+!_]{0,80})-[A-Za-z0-9._]{2,40}-[A-Za-z0-9._]{2,60}-[A-Za-z0-9._]{2,120}\.whl",
    re.ASCII,
)
_CONDA_URL = re.compile(
    r"https?://[^ \t]{1,200}/(?:noarch|linux-[a-z0-9]+|win-[a-z0-9]+|osx-[a-z0-9]+)/"
    r"(?P<file>[A-Za-z0-9_][A-Za-z0-9._+!-]{1,200})\.(?:tar\.bz2|conda)(?:#[0-9a-f:]{1,80})?$",
    re.ASCII,
)
_CHANNEL = re.compile(
    r"https?://(?:conda\.anaconda\.org|[^/ \t]{1,80}/pkgs|[^/ \t]{1,80})/(?P<channel>[A-Za-z0-9_.-]{1,60})/", re.ASCII
)
_YAML_CONDA = re.compile(
    r"[ \t]{0,8}- (?P<name>" + _NAME + r")=(?P<version>" + _PEP440 + r")=(?P<build>[A-Za-z0-9_.]{1,80})$", re.ASCII
)
_YAML_PIP = re.compile(r"[ \t]{1,12}- (?P<name>" + _NAME + r")==(?P<version>" + _PEP440 + r")$", re.ASCII)
_SHOW_NAME = re.compile(r"Name: (?P<name>" + _NAME + r")$", re.ASCII)
_SHOW_VERSION = re.compile(r"Version: (?P<version>" + _PEP440 + r")$", re.ASCII)
# A conda build string, as against a word that follows a version in prose.
_BUILD = re.compile(
    r"(?:[A-Za-z0-9_.]{1,80}_[0-9]{1,6}|py[0-9]{2,3}|[0-9]{1,6}|<pip>|mkl|cuda|cpu|openblas)$", re.ASCII
)
_STRONG_BUILD = re.compile(r"(?:[A-Za-z0-9_.]{1,80}_[0-9]{1,6}|<pip>)$", re.ASCII)
_DOTTED = re.compile(r"[0-9]{1,8}\.[0-9]", re.ASCII)
_PIP_BUILD = re.compile(r"[0-9]{1,4}[A-Za-z0-9_]{0,20}$", re.ASCII)

# Without a header a run of rows counts only when it names one of these: tables of other programs look alike.
_WELL_KNOWN = frozenset(
    {
"torch", "torchvision", "torchaudio", "torchtext", "torchdata", "pytorch", "pytorch-cuda", "pytorch-gpu",
        "libtorch", "pytorch-triton", "pytorch-triton-rocm", "triton", "triton-windows", "triton-rocm", "numpy",
        "transformers", "accelerate", "diffusers", "flash-attn", "flash-attn-3", "xformers", "vllm", "bitsandbytes",
        "deepspeed", "peft", "safetensors", "sglang", "flashinfer-python", "tensorflow", "jax", "jaxlib",
        "cudatoolkit", "cuda-version", "cuda-toolkit", "cudnn", "nccl", "pip", "setuptools", "lightning",
        "pytorch-lightning", "apex", "auto-gptq", "cupy-cuda12x", "onnxruntime-gpu", "tokenizers", "datasets",
        "python", "mkl", "magma-cuda121", "fbgemm-gpu", "torchao", "torchmetrics", "ray", "unsloth", "llvm-openmp",
        "causal-conv1d", "mamba-ssm", "natten", "nvidia-ml-py", "pynvml", "ultralytics", "openai-whisper",
    }
)  # fmt: skip
_SHORTENED = frozenset({"torch", "torchvision", "torchaudio"})
_RELEASE = re.compile(r"[0-9]\.[0-9]{1,2}\.[0-9]{1,2}(?P<local>\+[a-z0-9.]{2,12})?$", re.ASCII)
_ASKED = re.compile(r"(?:pip3?|conda|mamba) (?:list|freeze)\b")
_WELL_KNOWN_PREFIXES = ("nvidia-", "torch-", "pytorch-", "cuda-")

Manager = Literal["pip", "conda"]


@dataclass(frozen=True, slots=True)
class _Row:
    """A row of a list in columns."""

    line: Line
    name: str
    gap: str
    version: str
    rest: tuple[str, ...]


@dataclass(slots=True)
class _Run:
    """Consecutive rows and the header above them, if there was one."""

    manager: Manager | None = None
    columns: tuple[str, ...] = ()
    header: Line | None = None
    rows: list[_Row] = field(default_factory=list)
    broken: bool = False


def read(lines: Sequence[Line], source: str) -> list[Fact]:
    """Facts of every package list in the text."""
    out = FactList(source, READER)
    run = _Run()
    singles: list[Line] = []
    pending: str | None = None
    asked = False
    for line in lines:
        text = line.text
        if not text or len(text) > 700:
            _finish(run, out)
            run, pending = _Run(), None
            continue
        if header := _header(line):
            _finish(run, out)
            run = header
            continue
        if run.header is not None and not run.rows and (_RULE.match(text) or text.startswith("#")):
            continue
        row = _row(line)
        if row is not None and _fits(run, row, asked):
            run.rows.append(row)
            continue
        asked = bool(_ASKED.search(text))
        run.broken = text.strip() in ("...", "…", "[...]", ":")
        _finish(run, out)
        run = _Run()
        if match := _SHOW_NAME.match(text):
            pending = match.group("name")
        elif pending and (match := _SHOW_VERSION.match(text)):
            out.add(
                "package", {"name": package_name(pending), "version": match.group("version"), "manager": "pip"}, line
            )
            singles.append(line)
            pending = None
        else:
            pending = None
            if _conda_url(line, out) or _single(line, out):
                singles.append(line)
    _finish(run, out)
    if singles:
        out.coverage("packages", False, singles[0])
    return out.facts


def _header(line: Line) -> _Run | None:
    text = line.text
    if match := _PIP_HEADER.match(text):
        columns = tuple(match.group("more").lower().replace("editable project location", "location").split())
        return _Run("pip", columns, line)
    if _CONDA_HEADER.match(text):
        return _Run("conda", ("build", "channel"), line)
    return None


def _row(line: Line) -> _Row | None:
    match = _ROW.match(line.text)
    if match is None:
        return None
    rest = tuple(match.group("rest").split())
    if len(rest) > _MAX_COLUMNS:
        return None
    return _Row(line, match.group("name"), match.group("gap"), match.group("version"), rest)


def _shortened(row: _Row, asked: bool) -> bool:
    """`torch 2.8.0+cu128`, or without a suffix right below `pip list`: what people leave of a list."""
    release = _RELEASE.match(row.version) if row.name in _SHORTENED and not row.rest else None
    return release is not None and (asked or release.group("local") is not None)


def _fits(run: _Run, row: _Row, asked: bool) -> bool:
    """Whether the row may stand in this run; without a header the gap and the version must look like a list's."""
    if run.header is not None:
        return True
    wide = len(row.gap) > 1 or "\t" in row.gap or _shortened(row, asked)
    if not wide or not _DOTTED.match(row.version) or len(row.rest) > 2:
        return False
    if not row.rest:
        return True
    first = row.rest[0]
    return bool(_BUILD.match(first) or first.startswith(("/", "~", "file:", "pypi")) or _is_windows_path(first))


def _is_windows_path(text: str) -> bool:
    return text[1:3] == ":\\"


def _finish(run: _Run, out: FactList) -> None:
    """Emit the packages of a finished run and how complete it is."""
    if not run.rows:
        return
    if run.header is None and not any(_well_known(row.name) for row in run.rows):
        return
    manager = run.manager or _guess_manager(run.rows)
    for row in run.rows:
        out.add("package", _fields(row, manager, run), row.line)
    out.coverage("packages", _complete(run), run.header or run.rows[0].line)


def _well_known(name: str) -> bool:
    name = package_name(name)
    return name in _WELL_KNOWN or name.startswith(_WELL_KNOWN_PREFIXES)


def _guess_manager(rows: Sequence[_Row]) -> Manager:
    conda = any(len(row.rest) == 2 or (row.rest and _STRONG_BUILD.match(row.rest[0])) for row in rows)
    return "conda" if conda else "pip"


def _fields(row: _Row, manager: Manager, run: _Run) -> dict[str, Scalar | None]:
    fields: dict[str, Scalar | None] = {"name": package_name(row.name), "version": row.version, "manager": manager}
    if manager == "conda":
        build = row.rest[0] if row.rest else None
        channel = row.rest[1] if len(row.rest) > 1 else None
        if build == "<pip>" or channel == "pypi" or (build or "").startswith("pypi_"):
            return {**fields, "manager": "pip"}
        return {**fields, "build": build, "channel": channel}
    rest = list(row.rest)
    if rest and _PIP_BUILD.match(rest[0]) and (run.header is None or "build" in run.columns):
        fields["build"] = rest.pop(0)
    if rest:
        fields["location"] = " ".join(rest)
    return fields


def _complete(run: _Run) -> bool:
    """A whole list has its header and many rows, goes on past `torch`, and shows torch with what it depends on.

    A list that was cut before `torch` or filtered proves no absence.
    """
    if run.header is None or run.broken or len(run.rows) < _MIN_COMPLETE:
        return False
    names = {package_name(row.name) for row in run.rows}
    filtered = not names.isdisjoint({"torch", "pytorch"}) and "typing-extensions" not in names
    return not filtered and package_name(run.rows[-1].name) >= "torch"


def _conda_url(line: Line, out: FactList) -> bool:
    match = _CONDA_URL.match(line.text)
    parts = match.group("file").rsplit("-", 2) if match else []
    if len(parts) != 3:
        return False
    name, version, build = parts
    channel = _CHANNEL.match(line.text)
    out.add(
        "package",
        {
            "name": package_name(name),
            "version": version,
            "manager": "conda",
            "build": build,
            "channel": channel.group("channel") if channel else None,
        },
        line,
    )
    return True


def _single(line: Line, out: FactList) -> bool:
    """A line that says by itself that it is a package: freeze and environment.yml."""
    text = line.text
    if match := _FREEZE.match(text) or _YAML_PIP.match(text):
        out.add(
            "package",
            {"name": package_name(match.group("name")), "version": match.group("version"), "manager": "pip"},
            line,
        )
        return True
    if match := _YAML_CONDA.match(text):
        name, version, build = match.group("name", "version", "build")
        out.add("package", {"name": package_name(name), "version": version, "manager": "conda", "build": build}, line)
        return True
    if match := _DIRECT.match(text):
        wheel = _WHEEL.search(unquote(match.group("url")))
        fields: dict[str, Scalar | None] = {"name": package_name(match.group("name")), "manager": "pip"}
        if wheel:
            fields["version"] = wheel.group("version")
        if match.group("url").startswith("file:"):
            fields["location"] = match.group("url")
        out.add("package", fields, line)
        return True
    return False
