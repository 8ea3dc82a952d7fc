"""The checks as data: what each is called, what it rests on, how long it may take.

May live here: the table of checks and what is planned for a device. Must not: the computations (`_child.py`),
running them, predictions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from ...facts import Fact, Provenance, Scalar

# What a check rests on, and so which facts its prediction follows from: the build's list of targets, a device that
# answers, compiled code for it, a number format, a second device, NCCL, a compiler.
Needs = Literal["build", "device", "kernel", "bf16", "fp8", "peers", "nccl", "compiler"]
PROBE = "validation"


@dataclass(frozen=True, slots=True)
class Check:
    """One check: `work` names the computation in the child, `dtype` what it is done in.

    tensors_mib: the tensors that it makes, where that is known beforehand.
    """

    name: str
    needs: Needs
    work: str
    limit_s: float = 20.0
    dtype: str = ""
    tensors_mib: int | None = None


@dataclass(frozen=True, slots=True)
class Device:
    """Where the checks run: `cpu` or `cuda` (torch's name for AMD GPUs too), and which one of several."""

    kind: Literal["cpu", "cuda"]
    index: int = 0

    def __str__(self) -> str:
        return self.kind if self.kind == "cpu" else f"{self.kind}:{self.index}"


# In the order in which they run: what most others rest on comes first.
CHECKS: tuple[Check, ...] = (
    Check("available", "device", "available"),
    Check("arch_list", "build", "arch_list"),
    Check("kernel", "kernel", "kernel", tensors_mib=1),
    Check("copy", "kernel", "copy", tensors_mib=16),
    Check("matmul_float64", "kernel", "matmul", dtype="float64", tensors_mib=4),
    Check("matmul_float32", "kernel", "matmul", dtype="float32", tensors_mib=4),
    Check("matmul_float16", "kernel", "matmul", dtype="float16", tensors_mib=4),
    Check("matmul_bfloat16", "bf16", "matmul", dtype="bfloat16", tensors_mib=4),
    Check("matmul_float8", "fp8", "matmul", dtype="float8_e4m3fn", tensors_mib=4),
    Check("matmul_int8", "kernel", "matmul", dtype="int8", tensors_mib=4),
    Check("convolution", "kernel", "convolution", tensors_mib=1),
    Check("autocast", "bf16", "autocast", tensors_mib=1),
    Check("memory", "kernel", "memory"),
    Check("peer_copy", "peers", "peer_copy"),
    Check("topology", "peers", "topology"),
    Check("all_reduce", "nccl", "all_reduce"),
    Check("compile", "compiler", "compiled", limit_s=45.0),
)


def planned(checks: Sequence[Check], device: Device) -> list[Fact]:
    """That these checks are going to run on the device, so that rules can predict what comes of them."""
    origin = (Provenance("probe", PROBE),)
    return [Fact("validation_planned", _plan(check, device), origin) for check in checks]


def _plan(check: Check, device: Device) -> dict[str, Scalar]:
    plan: dict[str, Scalar] = {
        "check": check.name,
        "needs": check.needs,
        "device": device.kind,
        "index": device.index,
    }
    return plan if check.tensors_mib is None else {**plan, "tensors_mib": check.tensors_mib}
