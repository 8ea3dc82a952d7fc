"""The reader of prose: what the author wrote is told from what programs print."""

from __future__ import annotations

import pytest
from gpurules.probes.readers.prose import MAX_CHARS, passages


def texts(text: str, taken: frozenset[int] = frozenset()) -> list[str]:
    return [passage.text for passage in passages(text, taken)]


def test_a_paragraph_is_one_passage_with_its_first_line() -> None:
    text = "\n\nHi, we have a server with 8x H100\nand the training hangs at the first step.\n\nNCCL version 2.21.5\n"
    (passage,) = passages(text)
    assert passage.line == 3
    assert passage.text == "Hi, we have a server with 8x H100 and the training hangs at the first step."


def test_outside_of_fences_all_sentences_are_the_authors() -> None:
    text = "The run hangs on both of the cards.\n```\nWe are taking the entire process down, my friend.\n```\n"
    assert texts(text) == ["The run hangs on both of the cards."]


def test_markdown_is_taken_off() -> None:
    text = "> - **I set `NCCL_P2P_DISABLE=1`** and then it works for me.\n"
    assert texts(text) == ["I set NCCL_P2P_DISABLE=1 and then it works for me."]


def test_chinese_is_prose() -> None:
    assert texts("我有两张 RTX 4090，训练时卡住不动。\n") == ["我有两张 RTX 4090，训练时卡住不动。"]


@pytest.mark.parametrize(
    "line",
    [
        "[rank0]:[E626 06:24:44] To avoid data inconsistency, we are taking the entire process down.",
        "2026-11-03 10:12:01 we have started with the first of the steps",
        "WARNING we are not able to find any GPU in this machine",
        "RuntimeError: we expected all of the tensors to be on the same device",
        '  File "/home/me/train.py", line 3, in my_function',
        "(env) me@host:~$ python train.py --with the --model my_model",
        "| my GPU is the first of these | and it is not the last |",
        "- [x] I have searched the existing issues and this is not in them",
        "### What happened to my machine and when did it happen",
        "OS: Ubuntu 22.04.5 LTS (x86_64) my host",
        "loss 0.123 lr 0.001 step 12 of 400 grad norm 1.20",
    ],
)
def test_output_is_no_prose(line: str) -> None:
    assert texts(line) == []


def test_sentences_of_programs_are_no_prose_without_a_person() -> None:
    assert texts("The model weights are not tied and the output of it is not used.\n") == []


def test_lines_that_a_reader_took_are_left_out() -> None:
    assert texts("I think that the driver is too old for it.\n", frozenset({1})) == []


def test_length_is_limited() -> None:
    text = "I think that the driver is too old for it.\n\n" * 5_000
    assert sum(map(len, texts(text))) <= MAX_CHARS + 2_000
