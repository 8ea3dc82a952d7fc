"""Error signatures and tracebacks: every sample of the catalog, both pattern engines, and what must not fire."""

from __future__ import annotations

import re
import time
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import re2
import yaml
from gpurules.facts import Fact
from gpurules.probes.readers import read_text
from gpurules.probes.readers.errors import read
from gpurules.probes.readers.line import Line
from gpurules.probes.readers.signatures import (
    SignatureError,
    Signatures,
    literals_of,
    mib_difference,
    to_int,
    to_mib,
    to_sm,
)

from .support import fields_of, lines_of

CATALOG: dict[str, Any] = yaml.safe_load(
    (Path(__file__).resolve().parents[2] / "knowledge" / "facts" / "errors.yaml").read_text("utf-8")
)
ENTRIES: list[dict[str, Any]] = CATALOG["signatures"]


@cache
def signatures(engine: bool = True) -> Signatures:
    return Signatures.compile(ENTRIES, re2=engine)


def kind_of(entry: dict[str, Any]) -> str | None:
    """The kind of the error that an entry gives, None where it gives other facts only."""
    gives = entry.get("gives", {"error": {}})
    return gives["error"].get("kind", entry["id"]) if "error" in gives else None


def facts_of(text: str) -> list[Fact]:
    return read(lines_of(text), "paste.txt", signatures())


def errors(text: str) -> list[dict[str, Any]]:
    return [dict(fields) for fields in fields_of(facts_of(text), "error")]


# --- the catalog ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["id"])
def test_sample_gives_its_kind(entry: dict[str, Any]) -> None:
    by_id = {other["id"]: other for other in ENTRIES}
    expected = {kind_of(entry), *(kind_of(by_id[other]) for other in entry.get("companions", ()))} - {None}
    reading = read_text(entry["sample"], "sample.txt", signatures())
    assert {fact.fields["kind"] for fact in reading.facts if fact.type == "error"} == expected
    if not expected:
        assert {fact.type for fact in reading.facts} & set(entry["gives"] | _each(entry))


def _each(entry: dict[str, Any]) -> dict[str, Any]:
    return {kind: {} for each in entry.get("gives_each", ()) for kind in each["gives"]}


def test_catalog_is_well_formed() -> None:
    identifiers = [entry["id"] for entry in ENTRIES]
    assert len(set(identifiers)) == len(identifiers)
    for entry in ENTRIES:
        assert re.fullmatch(r"[a-z][a-z0-9_]*", entry["id"])
        assert entry["source"] in CATALOG["sources"], entry["id"]
        assert entry["confidence"] in ("verified", "secondary"), entry["id"]
        assert set(entry) <= {
            "id", "about", "pattern", "convert", "gives", "gives_each", "text", "in", "companions", "sample", "source",
            "confidence", "background",
        }, entry["id"]  # fmt: skip


def test_fields_are_those_of_the_vocabulary() -> None:
    vocabulary = yaml.safe_load(
        (Path(__file__).resolve().parents[2] / "knowledge" / "vocabulary.yaml").read_text("utf-8")
    )
    for entry in ENTRIES:
        for statement in signatures().match(entry["sample"]):
            known = vocabulary["types"][statement.type]["fields"]
            assert set(statement.fields) <= set(known), (entry["id"], statement)
            types = {"int": int, "sm": int, "bool": bool}
            for name, value in statement.fields.items():
                assert type(value) is types.get(known[name]["type"], str), (entry["id"], name, value)


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry["id"])
def test_both_engines_agree(entry: dict[str, Any]) -> None:
    for line in (entry["sample"], entry["sample"] + " and more", entry["sample"][: len(entry["sample"]) // 2], "x"):
        assert signatures(True).match(line) == signatures(False).match(line)


def test_every_pattern_of_the_readers_is_linear() -> None:
    folder = Path(__file__).resolve().parents[2] / "probes" / "readers"
    checked = 0
    for path in folder.glob("*.py"):
        module = __import__(f"gpurules.probes.readers.{path.stem}", fromlist=["x"])
        for value in list(vars(module).values()):
            if isinstance(value, re.Pattern):
                re2.compile(value.pattern)
                checked += 1
    assert checked > 60


def test_twenty_thousand_lines_are_read_quickly() -> None:
    lines = [Line(n, f"step {n}: loss 0.25 CUDA NVRM: torch NCCL INFO error none so far") for n in range(20_000)]
    start = time.process_time()
    assert read(lines, "log", signatures()) == []
    assert time.process_time() - start < 1.0  # about 0.1 s; the rest is for slow machines


# --- messages with fields ---------------------------------------------------------------------------------------


def test_out_of_memory() -> None:
    (error,) = errors(
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 3 has a total capacity of 79.10 "
        "GiB of which 512.00 MiB is free. Including non-PyTorch memory, this process has 78.50 GiB memory in use. Of "
        "the allocated memory 70.25 GiB is allocated by PyTorch, and 7.00 GiB is reserved by PyTorch but unallocated."
    )
    assert {name: error[name] for name in error if name not in ("text",)} == {
        "kind": "torch_oom", "gpu": 3, "requested": "2.00 GiB", "requested_mib": 2048, "total": "79.10 GiB",
        "total_mib": 80998, "free": "512.00 MiB", "free_mib": 512, "process_in_use": "78.50 GiB", "in_use_mib": 80384,
        "allocated": "70.25 GiB", "allocated_mib": 71936, "reserved_unallocated": "7.00 GiB", "reserved_mib": 7168,
    }  # fmt: skip


def test_out_of_memory_before_2_1() -> None:
    (error,) = errors(
        "RuntimeError: CUDA out of memory. Tried to allocate 512.00 MiB (GPU 1; 11.00 GiB total capacity; 8.00 GiB "
        "already allocated; 256.00 MiB free; 9.50 GiB reserved in total by PyTorch)"
    )
    assert {name: error[name] for name in error if name.endswith("_mib") or name in ("kind", "gpu")} == {
        "kind": "torch_oom", "gpu": 1, "requested_mib": 512, "total_mib": 11264, "allocated_mib": 8192, "free_mib": 256,
        "reserved_mib": 1536,
    }  # fmt: skip


def test_architecture_warning_gives_card_and_targets() -> None:
    facts = facts_of(
        """
        site-packages/torch/cuda/__init__.py:230: UserWarning:
        NVIDIA GeForce RTX 5060 Ti with CUDA capability sm_120 is not compatible with the current PyTorch installation.
        The current PyTorch install supports CUDA capabilities sm_80 sm_90 compute_90.
        """
    )
    assert fields_of(facts, "gpu") == [{"name": "NVIDIA GeForce RTX 5060 Ti", "sm": 120, "vendor": "nvidia"}]
    assert fields_of(facts, "arch_list") == [{"text": "sm_80 sm_90 compute_90"}]
    assert fields_of(facts, "torch_target") == [
        {"sm": 80, "code": "sass"},
        {"sm": 90, "code": "sass"},
        {"sm": 90, "code": "ptx"},
    ]


def test_card_name_after_the_place_of_the_warning() -> None:
    facts = facts_of(
        "__init__.py:230: UserWarning: Tesla K40c with CUDA capability sm_35 is not compatible with the current "
        "PyTorch installation."
    )
    assert fields_of(facts, "gpu") == [{"name": "Tesla K40c", "sm": 35, "vendor": "nvidia"}]


def test_capability_range() -> None:
    (found, limits) = errors(
        "Found GPU2 NVIDIA GB10 which is of cuda capability 12.1.\n"
        "Minimum and Maximum cuda capability supported by this version of PyTorch is (7.5) - (12.0)\n"
    )
    assert (found["gpu"], found["gpu_name"], found["sm"]) == (2, "NVIDIA GB10", 121)
    assert (limits["sm_min"], limits["sm_max"]) == (75, 120)


def test_xformers_names_the_installed_torch_and_python() -> None:
    facts = facts_of(
        """
        WARNING[XFORMERS]: xFormers can't load C++/CUDA extensions. xFormers was built for:
            PyTorch 2.4.0+cu121 with CUDA 1201 (you have 2.5.0+cpu)
            Python  3.11.9 (you have 3.12.1)
        """
    )
    assert fields_of(facts, "torch") == [{"version": "2.5.0+cpu"}]
    assert fields_of(facts, "python") == [{"version": "3.12.1"}]
    assert {error["kind"] for error in fields_of(facts, "error")} == {"xformers_extension", "xformers_built_for"}


def test_wrapped_toolkit_mismatch() -> None:
    facts = facts_of(
        "RuntimeError:\nThe detected CUDA version (12.1) mismatches the version that was used to compile\n"
        "PyTorch (11.8). Please make sure to use the same CUDA versions."
    )
    assert fields_of(facts, "cuda_toolkit") == [{"release": "12.1"}]
    assert fields_of(facts, "torch") == [{"cuda": "11.8", "cuda_built": True}]


# --- tracebacks -------------------------------------------------------------------------------------------------


def test_the_quoted_source_line_is_not_the_message() -> None:
    found = errors(
        """
          File "x.py", line 3, in _lazy_init
            raise AssertionError("Torch not compiled with CUDA enabled")
        AssertionError: Torch not compiled with CUDA enabled
        """
    )
    assert [error["text"] for error in found] == ["AssertionError: Torch not compiled with CUDA enabled"]


def test_assertions_of_a_kernel_are_one_error() -> None:
    line = "/src/aten/src/ATen/native/cuda/Indexing.cu:99: f: block: [{0},0,0], thread: [1,0,0] Assertion `srcIndex < srcSelectDimSize` failed."  # noqa: E501
    reading = read_text("\n".join(line.format(n) for n in range(40)), "log", signatures())
    (fact,) = (fact for fact in reading.facts if fact.type == "error")
    assert fact.fields == {
        "kind": "assert_src_index", "text": "Assertion `srcIndex < srcSelectDimSize` failed",
        "detail": "srcIndex < srcSelectDimSize", "source_file": "Indexing.cu:99",
    }  # fmt: skip
    assert [place.line for place in fact.provenance] == list(range(1, 21))


def test_frames_name_the_interpreter_and_nothing_else() -> None:
    facts = facts_of(
        '  File "/opt/conda/conda-bld/pytorch_1695392020201/lib/python3.10/site-packages/torch/x.py", line 1'
    )
    assert [(fact.type, dict(fact.fields)) for fact in facts] == [("python", {"version": "3.10"})]


def test_native_backtrace_names_the_trees() -> None:
    facts = facts_of(
        "0  /sw/openmpi/4.1.2-x/gnu-9-cuda-11.7.1/lib/libucs.so.0(+0x22) [0x2aab]\n"
        "1  /sw/pytorch/v2.0.1-gpu/lib/python3.9/site-packages/torch/lib/libtorch_python.so(+0x8) [0x2aac]"
    )
    assert [(fact.type, fact.fields["version"]) for fact in facts] == [
        ("mpi", "4.1.2"),
        ("cuda_toolkit", "11.7.1"),
        ("python", "3.9"),
        ("torch", "2.0.1"),
    ]


def test_a_library_path_names_no_toolkit() -> None:
    assert facts_of("LD_LIBRARY_PATH=/usr/local/cuda-12.1/lib64\n/usr/local/cuda-10.0/lib/libcudnn.so.7") == []


def test_python_of_a_path_gives_way_to_the_full_version() -> None:
    text = (
        'Python version: 3.10.12 (main)\nIs CUDA available: True\n  File "/lib/python3.10/site-packages/a.py", line 1'
    )
    reading = read_text(text, "x", signatures())
    assert [fact.fields["version"] for fact in reading.facts if fact.type == "python"] == ["3.10.12"]
    other = read_text(text.replace("3.10/", "3.9/"), "x", signatures())
    assert [fact.fields["version"] for fact in other.facts if fact.type == "python"] == ["3.10.12", "3.9"]


@pytest.mark.parametrize(
    "text",
    [
        "module license 'NVIDIA' taints kernel.",
        "node0:1:1 [0] NCCL INFO dlvsym failed on x - libmlx5.so: undefined symbol: x, version MLX5_1.25",
        "node0:1:1 [0] NCCL INFO Connected all rings",
        "We talked about out of memory problems and invalid arguments.",
        "I found no devices were found in the box",
        "RuntimeError: mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)",
        "YOLOv5 torch",
        "(7.5) - (12.0) is the range of my marks",
    ],
)
def test_no_error(text: str) -> None:
    assert facts_of(text) == []


def test_a_flood_stays_bounded() -> None:
    lines = [Line(n, f"{n} RuntimeError: CUDA error: misaligned address") for n in range(5000)]
    assert len(read(lines, "log", signatures())) == 2000


# --- compiling --------------------------------------------------------------------------------------------------


def test_where_and_constants() -> None:
    compiled = Signatures.compile(
        [
            {"id": "a", "pattern": "(?P<name>[a-z]+) wants", "in": ["question"],
             "gives": {"goal": {"name": "$name", "x": 1}}},
            {"id": "b", "pattern": "(?P<_n>[0-9]+) cards(?: (?P<x>y))?", "convert": {"number": "int _n"},
             "gives": {"statement": {"kind": "cards", "number": "$number", "detail": "$x"}}},
        ]
    )  # fmt: skip
    assert compiled.match("he wants 4 cards", "question")[0].fields == {"name": "he", "x": 1}
    assert compiled.match("he wants 4 cards", "log")[0].fields == {"kind": "cards", "number": 4}


@pytest.mark.parametrize("engine", [True, False])
def test_a_bad_pattern_names_its_entry(engine: bool) -> None:
    with pytest.raises(SignatureError, match="broken"):
        Signatures.compile([{"id": "broken", "pattern": "(unclosed"}], re2=engine)


@pytest.mark.parametrize(
    ("pattern", "literals"),
    [
        ("no kernel image", (("no kernel image",),)),
        (r"a\(b\)c+ (?:x|y)tail", (("a(b)c", "tail"),)),
        ("first half.{0,9}and second", (("first half", "and second"),)),
        ("left|right", (("left",), ("right",))),
        ("optional?", (("optiona",),)),
        ("[abc]*", (("",),)),
        ("(?i)any case", (("",),)),
    ],
)
def test_literals(pattern: str, literals: tuple[tuple[str, ...], ...]) -> None:
    assert literals_of(pattern) == literals


def test_conversions() -> None:
    assert [to_mib(text) for text in ("1.50 GiB", "512.00 MiB", "2 TiB", "1048576 bytes", "x", "3 apples")] == [
        1536, 512, 2097152, 1, None, None,
    ]  # fmt: skip
    assert [to_sm(text) for text in ("8.9", "12.0", "sm_90a", "compute_120", "75", "x")] == [89, 120, 90, 120, 75, None]
    assert [to_int(text) for text in ("12", "0x10", "x")] == [12, 16, None]
    assert [mib_difference(*pair) for pair in (("2 GiB", "1 GiB"), ("1 GiB", "2 GiB"), ("x", "1 GiB"))] == [
        1024,
        0,
        None,
    ]
