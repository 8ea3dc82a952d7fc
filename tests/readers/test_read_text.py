"""The dispatcher: several outputs in one paste, equal facts merged, limits passed on."""

from __future__ import annotations

import pytest
from gpurules.facts import Provenance
from gpurules.probes.readers import Reading, read_text
from gpurules.probes.readers.signatures import Signatures

SIGNATURES = Signatures.compile([{"id": "no_gpu", "pattern": "No CUDA GPUs are available"}])


@pytest.mark.parametrize(
    ("layout", "text"),
    [
        ("collect_env", "PyTorch version: 2.8.0\n"),
        ("nvidia_smi", "GPU 0: Tesla T4 (UUID: GPU-00000000-0000-0000-0000-000000000007)\n"),
        ("nvidia_smi", "No devices were found\n"),
        ("nvidia_smi_q", "==============NVSMI LOG==============\nDriver Version : 550.54.15\nCUDA Version : 12.4\n"),
        ("topology", "\tGPU0\tGPU1\tCPU Affinity\nGPU0\t X \tPHB\t0-7\nGPU1\tPHB\t X \t0-7\n"),
        ("kernel_log", "NVRM: Xid (PCI:0000:0a:00): 79, pid=1, GPU has fallen off the bus.\n"),
        ("kernel_log", "Linux version 6.8.0-49-generic (buildd@x)\n"),
        ("lspci", "0a:00.0 VGA compatible controller [0300]: NVIDIA Corporation AD104 [RTX 4070] [10de:2786]\n"),
        ("lsmod", "Module                  Size  Used by\nnvidia_uvm           1720320  0\n"),
        ("nccl_log", "h:1:1 [0] NCCL INFO NCCL version 2.27.5+cuda12.9\n"),
        ("rocm", "ROCk module is loaded\n"),
        ("packages", "torch==2.8.0\n"),
        ("environment", "export CUDA_VISIBLE_DEVICES=1\n"),
        ("torch_shell", ">>> torch.cuda.is_available()\nFalse\n"),
        ("errors", "RuntimeError: No CUDA GPUs are available\n"),
    ],
)  # fmt: skip
def test_layouts_are_recognised_by_content(layout: str, text: str) -> None:
    assert layout in read_text(text, "paste", SIGNATURES).layouts
    quoted = "".join(f"> {line}\n" for line in text.split("\n"))
    assert layout in read_text(quoted, "paste", SIGNATURES).layouts


def test_one_text_may_hold_several() -> None:
    reading = read_text(
        b"I get this:\n```\nRuntimeError: No CUDA GPUs are available\n```\nand\n\n"
        b"PyTorch version: 2.8.0+cpu\nIs CUDA available: False\n\nexport CUDA_VISIBLE_DEVICES=4\n",
        "issue.txt",
        SIGNATURES,
    )
    assert reading.layouts == ("collect_env", "environment", "errors")
    assert [(fact.type, dict(fact.fields), str(fact.provenance[0])) for fact in reading.facts] == [
        ("torch", {"version": "2.8.0+cpu"}, "issue.txt:7"),
        ("torch", {"cuda_available": False}, "issue.txt:8"),
        ("env_var", {"name": "CUDA_VISIBLE_DEVICES", "value": "4"}, "issue.txt:10"),
        ("error", {"kind": "no_gpu", "text": "RuntimeError: No CUDA GPUs are available"}, "issue.txt:3"),
    ]


def test_equal_facts_name_all_places() -> None:
    reading = read_text("No CUDA GPUs are available\n\nNo CUDA GPUs are available\n", "x", SIGNATURES)
    (fact,) = reading.facts
    assert fact.provenance == (
        Provenance("report", "x", 1, "errors"),
        Provenance("report", "x", 3, "errors"),
    )


def test_nothing_recognised() -> None:
    assert read_text("Hello, my GPU does not work. Please help!", "x", SIGNATURES) == Reading((), ())


def test_refused_and_truncated() -> None:
    assert read_text(b"\x7fELF" + bytes(99), "x", SIGNATURES) == Reading((), (), False, "binary")
    assert read_text("y" * 30_000, "x", SIGNATURES) == Reading((), (), True)
