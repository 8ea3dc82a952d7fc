"""The command that started a container: whether it handed over a GPU."""

from __future__ import annotations

import pytest
from gpurules.probes.readers.container_run import read

from .support import facts_of, fields_of

HANDED = "gpu_passed_to_container"
WITHOUT = "gpu_not_passed_to_container"


def kinds(text: str) -> list[object]:
    return [fields["kind"] for fields in fields_of(facts_of(read, text), "statement")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("docker run --gpus all -it pytorch/pytorch:2.5.1-cuda12.4-cudnn9-runtime", [HANDED]),
        ("docker run --runtime=nvidia -it app:1 bash", [HANDED]),
        ("podman run --device nvidia.com/gpu=all -it app:1", [HANDED]),
        ("nvidia-docker run -it app:1 bash", [HANDED]),
        ("docker run -d -p 9997:9997 -v /data:/data app:1 serve", [WITHOUT]),
        ("docker run -d \\\n  -p 80:80 \\\n  --gpus all \\\n  app:1", [HANDED]),
        ("docker run -d \\\n  -p 80:80 \\\n  app:1", [WITHOUT]),
        ("docker run --rm --gpus all ubuntu nvidia-smi", []),  # a trial
        ("docker run -d -p 6379:6379 redis:7", []),  # another program
        ("docker run --device /dev/kfd --device /dev/dri app:1", []),
        ("docker run -d -p 1:1 app:1\ndocker run --gpus all -p 1:1 app:1", []),  # they differ
        ("I start it by docker run and it fails", []),
    ],
)
def test_what_a_command_says(text: str, expected: list[str]) -> None:
    assert kinds(text) == expected
