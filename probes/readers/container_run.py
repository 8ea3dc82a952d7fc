"""Reader of the command that started a container: whether it handed over a GPU.

May live here: `docker run` and its like, over continued lines. Must not: compose files, what follows from the answer.

Commands that only try the GPU (`... nvidia-smi`) or start something else (a database) say nothing of the program's own
container; where the commands of a text differ, nothing is said.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...facts import Fact
from .common import FactList
from .line import Line

READER = "container_run"
_MAX_LINES = 60

_RUN = re.compile(
    r"\b(?P<engine>nvidia-docker|docker|podman|nerdctl)(?: container)? (?:run|create)\s{1,8}(?:-|\S{1,80}[/:])"
)
_GPU = re.compile(
    r"(?:--gpus\b|--runtime[= ]nvidia\b|--device[= ]\S{0,20}(?:nvidia\.com/gpu|/dev/nvidia|/dev/dxg)"
    r"|NVIDIA_VISIBLE_DEVICES)"
)
_OTHER_VENDOR = re.compile(r"--device[= ]\S{0,20}/dev/(?:kfd|dri)\b")
_TRIAL = re.compile(r"\bnvidia-smi\b|\bhello-world\b|\s--help\b")
_ELSEWHERE = re.compile(
    r"(?:^|[ /])(?:redis|postgres|mysql|mariadb|mongo|nginx|traefik|grafana|prom|portainer|open-webui)"
    r"[/:\w.-]{0,40}(?:\s|$)"
)
_CONTINUED = ("\\", "^", "`")


def read(lines: Sequence[Line], source: str) -> list[Fact]:
    """Whether the containers that the text starts were handed a GPU, where that is clear."""
    out = FactList(source, READER)
    found = [(line, _handed(command)) for line, command in _commands(lines)]
    told = [(line, handed) for line, handed in found if handed is not None]
    if told and len({handed for _, handed in told}) == 1:
        line, handed = told[0]
        kind = "gpu_passed_to_container" if handed else "gpu_not_passed_to_container"
        out.add("statement", {"kind": kind, "detail": "docker run"}, line)
    return out.facts


def _commands(lines: Sequence[Line]) -> Iterator[tuple[Line, str]]:
    for place, line in enumerate(lines):
        match = _RUN.search(line.text)
        if match is None:
            continue
        parts = [line.text[match.start() :]]
        for later in lines[place + 1 : place + _MAX_LINES]:
            if not parts[-1].rstrip().endswith(_CONTINUED):
                break
            parts.append(later.text)
        yield line, " ".join(part.rstrip().rstrip("\\^`") for part in parts)


def _handed(command: str) -> bool | None:
    """Whether a command hands over a GPU; None where it says nothing of the program's container."""
    if _GPU.search(command) or command.startswith("nvidia-docker"):
        return None if _TRIAL.search(command) else True
    if len(command.split()) < 3 or any(form.search(command) for form in (_TRIAL, _ELSEWHERE, _OTHER_VENDOR)):
        return None
    return False
