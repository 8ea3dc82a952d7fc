"""The reader of blocks that programs print: figures below an allocation error, devices of an error report."""

from __future__ import annotations

from gpurules.probes.readers.programs import read

from .support import facts_of, fields_of

REFUSED = "torch.OutOfMemoryError: Allocation on device 1 would exceed allowed memory. (out of memory)"


def test_figures_below_an_error_belong_to_it() -> None:
    text = (
        f"{REFUSED}\nCurrently allocated     : 14.81 GiB\nRequested               : 320.00 MiB\n"
        "Device limit            : 15.92 GiB\nFree (according to CUDA): 0 bytes\n"
    )
    assert fields_of(facts_of(read, text), "error") == [
        {
            "kind": "torch_oom", "text": "Allocation on device", "gpu": 1, "allocated": "14.81 GiB",
            "allocated_mib": 15165, "requested": "320.00 MiB", "requested_mib": 320, "total": "15.92 GiB",
            "total_mib": 16302, "free": "0 bytes", "free_mib": 0,
        }
    ]  # fmt: skip


def test_an_error_without_figures_is_left_to_its_signature() -> None:
    assert facts_of(read, f"{REFUSED}\nPrompt executed in 3.2 seconds\n") == []


def test_figures_far_below_belong_to_something_else() -> None:
    text = REFUSED + "\nstep\n" * 20 + "Requested               : 320.00 MiB\n"
    assert facts_of(read, text) == []


def test_devices_of_a_report() -> None:
    text = (
        "- **Name:** cuda:0 NVIDIA GeForce RTX 2060 : cudaMallocAsync\n  - **Type:** cuda\n"
        "  - **VRAM Total:** 12884443136\n  - **VRAM Free:** 107276219\n  - **Torch VRAM Free:** 192578858\n"
    )
    assert fields_of(facts_of(read, text), "gpu") == [{"index": 0, "vram_mib": 12287, "vram_used_mib": 12185}]
