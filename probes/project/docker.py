"""Readers of Dockerfiles and compose files: base images, what pip installs, which services get GPUs.

May live here: those layouts, and the versions that names of images state. Must not: what an image holds beyond that.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from ...facts import Fact, Scalar
from .facts import Asked, Read, items, line_of, mapping, texts, yaml_of
from .requirements import INDEX, joined

_PIP_INSTALL = re.compile(r"\b(?P<uv>uv )?pip3? install (?P<rest>.*)")
_COMMANDS = re.compile(r"&&|;|\|")
_FROM = re.compile(r"^FROM\s+(?:--platform=\S+\s+)?(?P<image>\S+)(?:\s+AS\s+(?P<stage>\S+))?", re.IGNORECASE)
_ARG = re.compile(r"^ARG\s+(?P<name>[A-Za-z_][A-Za-z0-9_]*)=[\"']?(?P<value>[^\s\"']*)", re.IGNORECASE)
_USE = re.compile(
    r"\$(?:\{(?P<braced>[A-Za-z_][A-Za-z0-9_]*)(?::?-(?P<default>[^}]{0,200}))?\}|(?P<plain>[A-Za-z_][A-Za-z0-9_]*))"
)
_IMAGE_CUDA = re.compile(r"cuda-?(?P<cuda>[0-9]+\.[0-9]+)")
_TAG_CUDA = re.compile(r"^(?P<cuda>[0-9]+\.[0-9]+)(?:\.[0-9]+)?-")
_TAG_TORCH = re.compile(r"^(?P<torch>[0-9]+\.[0-9]+\.[0-9]+)-")
_TAG_RELEASE = re.compile(r"^(?P<release>[0-9]{2}\.[0-9]{2})-")
_SIZE = re.compile(r"^(?P<number>[0-9]{1,7}(?:\.[0-9]{1,3})?) ?(?P<unit>[bkmgBKMG])?[bB]?$")
_SCALES = {"b": 1 / 1048576, "k": 1 / 1024, "m": 1.0, "g": 1024.0}


def read_dockerfile(text: str, name: str, target: Read, _before: tuple[Fact, ...]) -> Asked:
    """The facts of a Dockerfile."""
    asked = Asked(name, target)
    values: dict[str, str] = {}
    stages: set[str] = set()
    for number, line in joined(text):
        argument = _ARG.match(line.strip())
        if argument is not None:
            values[argument["name"]] = argument["value"]
        start = _FROM.match(line.strip())
        if start is not None:
            image = _filled(start["image"], values)
            if image.lower() not in stages:
                asked.add("base_image", number, file=name, line=number, image=image, **_stated(image))
            stages.add((start["stage"] or "").lower())
        for installed in filter(None, map(_PIP_INSTALL.search, _COMMANDS.split(_filled(line, values)))):
            _installed(installed["rest"], number, asked, by_uv=bool(installed["uv"]))
    return asked


def _installed(command: str, number: int, asked: Asked, *, by_uv: bool) -> None:
    named = [*INDEX.finditer(command)]
    # pip takes the newest of all indexes; uv asks the default one last, and only for what no other has.
    beside = not by_uv and all(found["beside"] for found in named)
    indexes = [asked.index(found["url"], number, beside=beside) for found in named]
    variant = indexes[0] if len(indexes) == 1 else None
    for word in INDEX.sub("", command).split():
        package = word.strip("\"'")
        if package[:1].isalpha() and "/" not in package and not package.endswith((".txt", ".whl")):
            asked.requirement(package, number, variant, beside=beside)


def _filled(text: str, values: Mapping[str, str]) -> str:
    """The text with the build arguments that have a default."""

    def value(found: re.Match[str]) -> str:
        name = found["braced"] or found["plain"]
        return values.get(name) or found["default"] or found.group()

    return _USE.sub(value, text)


def _stated(image: str) -> dict[str, Scalar | None]:
    """What the name of an image states: CUDA and torch, or the release of NVIDIA's own."""
    path, _, tag = image.partition("@")[0].rpartition(":")
    cuda = _IMAGE_CUDA.search(tag) or (_TAG_CUDA.match(tag) if path.endswith("nvidia/cuda") else None)
    torch = _TAG_TORCH.match(tag) if path.endswith("pytorch/pytorch") else None
    release = _TAG_RELEASE.match(tag) if path.startswith("nvcr.io/") else None
    return {
        "repository": path or None, "cuda": cuda["cuda"] if cuda else None, "torch": torch["torch"] if torch else None,
        "release": release["release"] if release else None,
    }  # fmt: skip


def read_compose(text: str, name: str, target: Read, before: tuple[Fact, ...]) -> Asked | None:
    """The facts of a compose file; its services build from the Dockerfiles that were read before."""
    document = yaml_of(text)
    if document is None or not isinstance(document.get("services"), dict):
        return None
    asked, lines = Asked(name, target), text.splitlines()
    builds_cuda = any(fact.type == "base_image" and _is_cuda(fact.fields) for fact in before)
    for key, value in document["services"].items():
        service = mapping(value)
        image = service.get("image") if isinstance(service.get("image"), str) else None
        stated = _stated(image) if image else {}
        wants = _is_cuda(stated) or ("build" in service and builds_cuda)
        ipc = service.get("ipc")
        asked.add("compose_service", line_of(lines, f"{key}:"), file=name, line=line_of(lines, f"{key}:"),
                  name=str(key), gpu=_has_gpu(service), wants_gpu=wants, shm_mib=_mib(service.get("shm_size")),
                  shared_ipc=isinstance(ipc, str) and ipc in ("host", "shareable"))  # fmt: skip
        if image and _is_cuda(stated):
            line = line_of(lines, image)
            asked.add("base_image", line, file=name, line=line, image=image, **stated)
    return asked


def _is_cuda(stated: Mapping[str, Scalar | None]) -> bool:
    return bool(stated.get("cuda") or stated.get("release"))


def _mib(size: Any) -> int:
    """The size of /dev/shm in MiB; what is not said is Docker's 64."""
    found = _SIZE.match(str(size)) if isinstance(size, str | int) else None
    if found is None:
        return 64
    return int(float(found["number"]) * _SCALES[(found["unit"] or "b").lower()])


def _has_gpu(service: Mapping[str, Any]) -> bool:
    if service.get("gpus") or service.get("runtime") == "nvidia":
        return True
    if any("nvidia" in device for device in texts(service.get("devices"))):
        return True
    reserved = mapping(mapping(mapping(service.get("deploy")).get("resources")).get("reservations"))
    return any("gpu" in items(mapping(device).get("capabilities")) for device in items(reserved.get("devices")))
