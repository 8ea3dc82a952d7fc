"""Any input, whole, cut, shuffled or foreign: no exception, only valid facts, time linear in its size."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from gpurules.probes.readers import Reading, read_text
from gpurules.probes.readers.signatures import Signatures
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from .test_collect_env import LINUX
from .test_nvidia_smi import R470
from .test_packages import PIP_LIST

ROOT = Path(__file__).resolve().parents[2]
CATALOG: dict[str, Any] = yaml.safe_load((ROOT / "knowledge" / "facts" / "errors.yaml").read_text("utf-8"))
VOCABULARY: dict[str, Any] = yaml.safe_load((ROOT / "knowledge" / "vocabulary.yaml").read_text("utf-8"))["types"]
SAMPLES = "\n".join(entry["sample"] for entry in CATALOG["signatures"])
MATERIAL = [text.encode() for text in (LINUX, R470, PIP_LIST, SAMPLES)]
PUNCTUATION = "0123456789:.[](){}|+-=<>/\\ \t\nGPUaA_"
TYPES = {"int": int, "sm": int, "bool": bool}

relaxed = settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))


@cache
def signatures() -> Signatures:
    return Signatures.compile(CATALOG["signatures"])


def read(data: bytes | str) -> Reading:
    reading = read_text(data, "fuzz", signatures())
    for fact in reading.facts:
        known = VOCABULARY[fact.type]["fields"]
        assert fact.fields, fact
        assert fact.provenance, fact
        for name, value in fact.fields.items():
            assert name in known, (fact.type, name)
            assert type(value) is TYPES.get(known[name]["type"], str), fact
            assert not (known[name]["type"] == "enum" and value not in known[name]["values"]), fact
            assert not (type(value) is int and abs(value) >= 2**53), fact
    return reading


@relaxed
@given(st.sampled_from(MATERIAL), st.integers(0, 4000), st.integers(0, 4000))
def test_cut_at_both_ends(text: bytes, start: int, length: int) -> None:
    read(text[start : start + length])


@relaxed
@given(
    st.sampled_from(MATERIAL), st.lists(st.tuples(st.integers(0, 4000), st.binary(min_size=1, max_size=6)), max_size=12)
)
def test_damaged(text: bytes, changes: list[tuple[int, bytes]]) -> None:
    data = bytearray(text)
    for position, junk in changes:
        data[position : position + len(junk)] = junk
    read(bytes(data))


@relaxed
@given(
    st.lists(st.sampled_from([line for text in MATERIAL for line in text.decode().split("\n")]), max_size=60),
    st.randoms(),
)
def test_shuffled_lines(lines: list[str], random: Any) -> None:
    random.shuffle(lines)
    read(random.choice(["\n", "\r\n", "\r", " ", "\n> ", "\n(rank1) "]).join(lines))


@relaxed
@given(
    st.one_of(
        st.binary(max_size=600), st.text(max_size=600), st.text("0123456789:.[](){}|+-=<>/\\ \t\nGPUaA_", max_size=600)
    )
)
def test_anything(data: bytes | str) -> None:
    read(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\n",
        b"\0",
        b"\xff\xfe",
        b"\xef\xbb\xbf",
        b"\r" * 99,
        b"9" * 30_000,
        b"GPU 0: " * 9000,
        b"99999999999999999999 MiB",
    ],
)
def test_odd_inputs(data: bytes) -> None:
    read(data)


LONG_LINES = {
    "letters": b"a" * 20_000, "blanks": b" " * 20_000, "quotes": b"> " * 10_000, "digits": b"1" * 20_000,
    "brackets": b"[1]" * 6600, "equals": b"A=" * 10_000, "colons": b"a: " * 6600, "versions": b"1.2.3 " * 3300,
    "dashes": b"---- " * 4000, "labels": b"GPU 0: x GCC version: y OS: z " * 650,
    "oom": b"CUDA out of memory. Tried to allocate 1 GiB. " * 440, "pipes": b"| 0 GPU " * 2500,
    "paths": b"/lib/python3.1" * 1400,
}  # fmt: skip


@pytest.mark.parametrize("name", LONG_LINES)
def test_time_grows_with_the_size_only(name: str) -> None:
    def seconds(count: int) -> float:
        data = (LONG_LINES[name] + b"\n") * count
        start = time.process_time()
        read_text(data, "fuzz", signatures())
        return time.process_time() - start

    once, four_times = min(seconds(8) for _ in range(2)), min(seconds(32) for _ in range(2))
    assert four_times < 12 * once + 0.1
    assert once < 1.5


def test_fifty_megabytes_end_soon() -> None:
    data = b"step 100: loss 0.123 lr 1e-4 grad_norm 0.4 tokens/s 1234.5 some more text here\n" * 650_000
    start = time.process_time()
    reading = read_text(data, "log", signatures())
    assert (reading.truncated, reading.facts) == (True, ())
    assert time.process_time() - start < 6.0  # about 1.5 s; the rest is for slow machines
