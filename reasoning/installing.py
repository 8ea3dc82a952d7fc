"""The command that installs a build, with the companions of torch that are there already.

May live here: the packages of a build and the pip and uv command lines for them. Must not: which build is chosen, why.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..report.quoting import quoted
from .session import Session

Fields = Mapping[str, Any]


def packages(session: Session, build: Fields) -> dict[str, str]:
    """The pinned torch of a `torch_build` row and the companions that are installed, which have to follow it."""
    installed = {str(session.fields(i)["name"]) for i in session.memory.of_type("package")}
    found = {"torch": f"=={version(build, 'torch')}"}
    if "torchvision" in installed and "torchvision" in build:
        found["torchvision"] = f"=={version(build, 'torchvision')}"
    if "torchaudio" in installed and "torchaudio" in build:
        found["torchaudio"] = f"=={build['torchaudio']}"
    return found


def version(build: Fields, name: str) -> str:
    """The version with the variant's local part, where the index's wheels carry one."""
    local = _local(build)
    return f"{build[name]}" if local is None else f"{build[name]}+{local}"


def commands(session: Session, build: Fields) -> dict[str, str]:
    """The pip and uv command lines."""
    specs = [f"{name}{spec}" for name, spec in packages(session, build).items()]
    index = ["--index-url", str(build["index_url"])]
    force = _same_public(session, build)
    return {
        "pip": quoted(["pip", "install", *(["--force-reinstall"] if force else []), *specs, *index], "any"),
        "uv": quoted(["uv", "pip", "install", *(["--reinstall"] if force else []), *specs, *index], "any"),
    }


def _local(build: Fields) -> str | None:
    """The local version of the wheels: on macOS they carry none."""
    return None if str(build["build"]).endswith("@macos-arm64") else str(build["variant"])


def _same_public(session: Session, build: Fields) -> bool:
    """Whether that release is installed as another build, which pip would leave alone."""
    installs = [session.fields(i) for i in session.memory.of_type("torch_install")]
    local = _local(build) or ""
    return any(f.get("version__public") == build["torch"] and f.get("version__local") != local for f in installs)
