"""torch asked by hand, at a prompt, in a notebook and with python -c."""

from __future__ import annotations

import pytest
from gpurules.probes.readers.torch_shell import read

from .support import facts_of


def said(text: str) -> list[tuple[str, dict[str, object]]]:
    return [(fact.type, dict(fact.fields)) for fact in facts_of(read, text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("torch.cuda.is_available()\nFalse", [("torch", {"cuda_available": False})]),
        ("In [3]: torch.__version__\nOut[3]: '2.8.0+cu128'", [("torch", {"version": "2.8.0+cu128"})]),
        ("print(torch.version.cuda)\nNone", [("torch", {"cuda_built": False})]),
        (
            "torch.cuda.get_device_name(1)\n'NVIDIA L4'",
            [("gpu", {"index": 1, "name": "NVIDIA L4", "vendor": "nvidia"})],
        ),
        ("torch.cuda.get_device_capability(0)\n(8, 9)", [("gpu", {"index": 0, "sm": 89})]),
        (
            "torch.cuda.get_arch_list()\n['sm_75', 'compute_90']",
            [
                ("arch_list", {"text": "sm_75 compute_90"}),
                ("coverage", {"domain": "arch_list", "complete": True}),
                ("torch_target", {"sm": 75, "code": "sass"}),
                ("torch_target", {"sm": 90, "code": "ptx"}),
            ],
        ),
        (
            '$ python -c "import torch; print(torch.__version__, torch.cuda.is_available())"\n2.7.1+cpu False',
            [("torch", {"version": "2.7.1+cpu"}), ("torch", {"cuda_available": False})],
        ),
        (
            '$ python3 -c "import torch;print(torch.__version__);print(torch.cuda.device_count())"\n2.7.1\n4',
            [("torch", {"version": "2.7.1"}), ("torch", {"device_count": 4})],
        ),
        ("CUDA available: False", [("torch", {"cuda_available": False})]),
        ("torch.version.cuda = 12.4", [("torch", {"cuda": "12.4", "cuda_built": True})]),
    ],
)
def test_answers(text: str, expected: list[tuple[str, dict[str, object]]]) -> None:
    assert said(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "torch.cuda.is_available()\nTraceback (most recent call last):",
        "torch.cuda.is_available()",
        "torch.cuda.device_count() returned\n1",
        "torch.__version__\nhello",
        "print(torch.__version__, torch.cuda.is_available())\nonly-one",
        "torch: see the documentation",
    ],
)
def test_no_answer(text: str) -> None:
    assert said(text) == []
