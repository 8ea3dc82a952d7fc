"""The list in which an author describes the machine: items by their key, and bare ones where the line is a list."""

from __future__ import annotations

import pytest
from gpurules.probes.readers.listed import items


def is_gpu(text: str) -> bool:
    return text.strip().lower().endswith(("3060", "4090"))


def read(text: str) -> dict[str, str]:
    return {item.key: item.value for item in items(text, is_gpu)}


@pytest.mark.parametrize(
    ("line", "key", "value"),
    [
        ("- GPU: RTX 3060", "gpu", "RTX 3060"),
        ("显卡：RTX 3060", "gpu", "RTX 3060"),
        ("**Driver Version:** 551.61", "driver", "551.61"),
        ("* [x] PyTorch version: 2.5.1+cu121", "torch", "2.5.1+cu121"),
        ("OS = Ubuntu 22.04", "os", "Ubuntu 22.04"),
        ("RTX 4090", "gpu", "RTX 4090"),
        ("RTX 4090 显卡*4", "gpu", "RTX 4090"),
        ("### Operating System\n\nUbuntu 22.04", "os", "Ubuntu 22.04"),
        ("## GPU model?\n- RTX 4090", "gpu", "RTX 4090"),
        ("Python 3.11.4", "python", "3.11.4"),
    ],
)
def test_one_item(line: str, key: str, value: str) -> None:
    assert read(line) == {key: value}


def test_a_line_that_is_a_list_from_end_to_end() -> None:
    assert read("Ubuntu 22.04, RTX 4090, torch 2.5.1, driver 550.54") == {
        "os": "Ubuntu 22.04",
        "gpu": "RTX 4090",
        "torch": "2.5.1",
        "driver": "550.54",
    }


def test_after_a_lead_the_rest_need_not_be_known() -> None:
    assert read("My environment: RTX 4090, a lot of patience, torch 2.5.1") == {"gpu": "RTX 4090", "torch": "2.5.1"}


@pytest.mark.parametrize(
    "line",
    [
        "I wonder whether an RTX 4090, torch 2.5.1 would help",
        "CUDA: 12.4",  # the driver's, the toolkit's or torch's
        "GPU: yes",
        "Driver: the newest",
        "torch: nightly of last week",
        "### GPU\n\nI do not know\nsee below",
        "### GPU\n### What happened",
    ],
)
def test_what_tells_nothing_of_the_machine(line: str) -> None:
    assert read(line) == {}


def test_the_first_of_a_key_counts_and_lines_of_others_are_left_alone() -> None:
    text = "GPU: RTX 3060\nGPU: RTX 4090\n"
    assert [(i.line, i.value) for i in items(text, is_gpu)] == [(1, "RTX 3060")]
    assert [(i.line, i.value) for i in items(text, is_gpu, {1})] == [(2, "RTX 4090")]
