"""Environment variables: every way in which a paste shows them as set."""

from __future__ import annotations

import pytest
from gpurules.probes.readers.environment import read

from .support import facts_of, fields_of


def variables(text: str) -> list[tuple[object, object]]:
    return [(fields["name"], fields["value"]) for fields in fields_of(facts_of(read, text), "env_var")]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("export CUDA_VISIBLE_DEVICES=0,1", [("CUDA_VISIBLE_DEVICES", "0,1")]),
        ("(base) me@box:~$ export NCCL_P2P_DISABLE=1 && python t.py", [("NCCL_P2P_DISABLE", "1")]),
        ('declare -x LD_LIBRARY_PATH="/opt/cuda/lib64:/x"', [("LD_LIBRARY_PATH", "/opt/cuda/lib64:/x")]),
        ("C:\\> set CUDA_VISIBLE_DEVICES=1", [("CUDA_VISIBLE_DEVICES", "1")]),
        ('$env:CUDA_VISIBLE_DEVICES = "2"', [("CUDA_VISIBLE_DEVICES", "2")]),
        ("setenv HSA_OVERRIDE_GFX_VERSION 10.3.0", [("HSA_OVERRIDE_GFX_VERSION", "10.3.0")]),
        ("ENV NVIDIA_VISIBLE_DEVICES all", [("NVIDIA_VISIBLE_DEVICES", "all")]),
        ("TORCH_CUDA_ARCH_LIST=8.0 9.0+PTX", [("TORCH_CUDA_ARCH_LIST", "8.0 9.0+PTX")]),
        ("NCCL_DEBUG=INFO CUDA_VISIBLE_DEVICES=3 python t.py --x=1",
         [("NCCL_DEBUG", "INFO"), ("CUDA_VISIBLE_DEVICES", "3")]),
        ("CUDA_VISIBLE_DEVICES='' python train.py", [("CUDA_VISIBLE_DEVICES", "")]),
        ("os.environ['CUDA_VISIBLE_DEVICES'] = '7'", [("CUDA_VISIBLE_DEVICES", "7")]),
        ('os.environ.setdefault("NCCL_DEBUG", "WARN")', [("NCCL_DEBUG", "WARN")]),
        ("docker run -e NCCL_DEBUG=INFO --env CUDA_VISIBLE_DEVICES=0 img",
         [("NCCL_DEBUG", "INFO"), ("CUDA_VISIBLE_DEVICES", "0")]),
        ("mpirun -np 2 -x NCCL_IB_HCA=mlx5_0 ./a.out", [("NCCL_IB_HCA", "mlx5_0")]),
        ("      - NVIDIA_VISIBLE_DEVICES=all", [("NVIDIA_VISIBLE_DEVICES", "all")]),
        ("$ echo $LD_LIBRARY_PATH\n/opt/a:/opt/b", [("LD_LIBRARY_PATH", "/opt/a:/opt/b")]),
    ],
)  # fmt: skip
def test_set_variables(text: str, expected: list[tuple[str, str]]) -> None:
    assert variables(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "PATH=/usr/bin",
        "AWS_SECRET_ACCESS_KEY=abc",
        "try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation",
        "For debugging consider passing CUDA_LAUNCH_BLOCKING=1",
        "For debugging consider passing\nCUDA_LAUNCH_BLOCKING=1.",
        "unset CUDA_VISIBLE_DEVICES",
        "if CUDA_VISIBLE_DEVICES == 1:",
        "echo $HOME\n/root",
        "",
    ],
)
def test_no_variable(text: str) -> None:
    assert variables(text) == []
