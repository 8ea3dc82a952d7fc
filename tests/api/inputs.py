"""Reports of machines that never were: every layout is written here, every value is drawn."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

GPUS = [
    "GeForce RTX 5090",
    "GeForce RTX 4090",
    "GeForce GTX 1080 Ti",
    "Tesla V100-SXM2-16GB",
    "H100 80GB HBM3",
    "Tesla K80",
]
DRIVERS = ["390.157", "470.256.02", "535.183.01", "550.120", "570.124.06", "580.95.05"]
TORCHES = ["1.13.1+cu117", "2.3.1+cu121", "2.6.0+cu124", "2.7.1+cu128", "2.9.0+cu130", "2.8.0+cpu"]
SYSTEMS = [
    "Ubuntu 22.04.5 LTS (x86_64)",
    "Ubuntu 24.04.1 LTS (x86_64)",
    "Microsoft Windows 11 Pro (64-bit)",
    "Debian 12",
]
ERRORS = [
    "RuntimeError: CUDA error: no kernel image is available for execution on the device",
    "RuntimeError: CUDA unknown error - this may be due to an incorrectly set up environment",
    "RuntimeError: The NVIDIA driver on your system is too old (found version 11040).",
    "RuntimeError: Found no NVIDIA driver on your system.",
    "AssertionError: Torch not compiled with CUDA enabled",
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.",
    "RuntimeError: CUDA error: device-side assert triggered",
    "Failed to initialize NVML: Driver/library version mismatch",
]


def collect_env(r: random.Random) -> str:
    """What `python -m torch.utils.collect_env` prints."""
    torch = r.choice(TORCHES)
    return f"""\
Collecting environment information...
PyTorch version: {torch}
Is debug build: False
CUDA used to build PyTorch: {r.choice(["11.7", "12.1", "12.4", "12.8", "Could not collect"])}

OS: {r.choice(SYSTEMS)}
Python version: 3.{r.randrange(8, 14)}.{r.randrange(1, 9)} (main) [GCC 11.4.0] (64-bit runtime)
Is CUDA available: {r.choice(["True", "False"])}
GPU models and configuration: GPU 0: NVIDIA {r.choice(GPUS)}
Nvidia driver version: {r.choice(DRIVERS)}

Versions of relevant libraries:
[pip3] torch=={torch}
"""


def nvidia_smi(r: random.Random) -> str:
    """The table of `nvidia-smi`, cut to what matters."""
    return f"""\
| NVIDIA-SMI {r.choice(DRIVERS)}    Driver Version: {r.choice(DRIVERS)}    CUDA Version: 12.{r.randrange(9)} |
|   0  NVIDIA {r.choice(GPUS)}        Off | 00000000:01:00.0 Off |                  N/A |
| 30%   40C    P8    20W / 350W |    {r.randrange(9000)}MiB / 24576MiB |      0%      Default |
"""


def traceback(r: random.Random) -> str:
    """A traceback with its error line."""
    return f"""\
Traceback (most recent call last):
  File "/home/alice/venv/lib/python3.{r.randrange(8, 14)}/site-packages/torch/cuda/__init__.py", line {r.randrange(400)}
{r.choice(ERRORS)}
"""


def kernel_log(r: random.Random) -> str:
    """Lines of dmesg."""
    code = r.choice([13, 31, 48, 79, 119])
    return f"[{r.randrange(9999)}.5] NVRM: Xid (PCI:0000:{r.randrange(1, 200):02x}:00): {code}, pid=1\n"


LAYOUTS: list[Callable[[random.Random], str]] = [collect_env, nvidia_smi, traceback, kernel_log]


def report(seed: int) -> str:
    """A pasted text: one to three outputs."""
    r = random.Random(seed)
    return "\n".join(layout(r) for layout in r.sample(LAYOUTS, r.randrange(1, 4)))


ISSUE = (Path(__file__).parents[1] / "samples" / "issue.txt").read_text(encoding="utf-8")
