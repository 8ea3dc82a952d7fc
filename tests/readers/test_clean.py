"""clean: what surrounds machine output in a paste goes, the values stay."""

from __future__ import annotations

import pytest
from gpurules.probes.readers.clean import MAX_LINE, MAX_TEXT, Cleaned, clean


def texts(data: bytes | str) -> list[str]:
    return [line.text for line in clean(data).lines]


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("> > NVRM: a", "NVRM: a"),
        (">> torch  2.1.0", "torch  2.1.0"),
        ("\x1b[1;32mNVRM:\x1b[0m Xid", "NVRM: Xid"),
        ("\x1b]0;title\x07GPU 0", "GPU 0"),
        ("^[[31mGPU 0^[[0m", "GPU 0"),
        ("[4mGPU0 GPU1[0m", "GPU0 GPU1"),
        ("2031-02-03T04:05:06.1234567Z Traceback", "Traceback"),
        ("2031-02-03 04:05:06,789 error", "error"),
        ("kern  :err   : 2031-02-03T04:05:06,789012+01:00 NVRM: b", "NVRM: b"),
        ("Feb  3 04:05:06 node7 kernel: NVRM: c", "kernel: NVRM: c"),
        ("[1,3]<stderr>:RuntimeError: d", "RuntimeError: d"),
        ("(RayWorkerWrapper pid=77, ip=192.0.2.4) RuntimeError: e", "RuntimeError: e"),
        ("(rank3) f", "f"),
        ("[rank2]: g", "g"),
        ("[rank2]:[E204 h", "[E204 h"),
        ("worker-1  | RuntimeError: i", "RuntimeError: i"),
        ("ERROR 02-03 04:05:06 [core.py:700] ValueError: j", "ValueError: j"),
        ("INFO 02-03 04:05:06 llm_engine.py:275] k", "k"),
        ("ERROR:root:CUDA error", "CUDA error"),
        ("[W 2031-02-03 04:05:06,789] Trial 0", "Trial 0"),
        ("##[error]Process", "Process"),
        ("```Collecting environment information...", "Collecting environment information..."),
        ("OS: Ubuntu 24.04 (x86_64)```", "OS: Ubuntu 24.04 (x86_64)"),
        ("NVIDIA-SMI couldn&#39;t &lt;unknown&gt; &amp; &quot;x&quot;", 'NVIDIA-SMI couldn\'t <unknown> & "x"'),
        ("NVIDIA-SMI couldn\u2019t", "NVIDIA-SMI couldn't"),
        ("<details><summary>log</summary>", "log"),
        ("[conda] mkl  2019.0  <pip>", "[conda] mkl  2019.0  <pip>"),
        ("    indented stays", "    indented stays"),
        ("|   0  Tesla T4   Off |", "|   0  Tesla T4   Off |"),
        ("node0:21:21 [0] NCCL INFO x", "node0:21:21 [0] NCCL INFO x"),
        ("a\u00a0b\u00a0\u00a0c", "a\u00a0b  c"),
        ("zero\u200bwidth\ufeff", "zerowidth"),
        ("nul\x00byte", "nulbyte"),
    ],
)
def test_one_line(raw: str, expected: str) -> None:
    assert texts(raw) == [expected]


def test_prefixes_nest() -> None:
    assert texts("> 2031-02-03T04:05:06Z [1,0]<stdout>:(rank0) torch  2.1.0") == ["torch  2.1.0"]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends(end: str) -> None:
    assert [(line.number, line.text) for line in clean(f"a{end}b{end}").lines] == [(1, "a"), (2, "b")]


def test_progress_bar_parts_share_their_line() -> None:
    lines = clean("10%|x\r20%|y RuntimeError: z\nnext").lines
    assert [(line.number, line.text) for line in lines] == [(1, "10%|x"), (1, "20%|y RuntimeError: z"), (2, "next")]


def test_fences_keep_the_numbers() -> None:
    lines = clean("```text\nGPU 0\n```\nafter\n").lines
    assert [(line.number, line.text) for line in lines] == [(2, "GPU 0"), (4, "after")]


@pytest.mark.parametrize("codec", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be"])
def test_encodings(codec: str) -> None:
    assert texts("OS: Ubuntu\nGPU 0: é".encode(codec)) == ["OS: Ubuntu", "GPU 0: é"]


def test_other_encodings_lose_letters_only() -> None:
    assert texts("OS: 专业版 Windows 11".encode("gbk"))[0].endswith("Windows 11")


def test_srun_labels_go_only_when_most_lines_have_them() -> None:
    assert texts("0: a\n1: b\n0: c\n") == ["a", "b", "c"]
    assert texts("0: a\nb\nc\nd\n") == ["0: a", "b", "c", "d"]


def test_bus_ids_are_no_labels() -> None:
    assert texts("0001:00:00.0 3D\n0002:00:00.0 3D\n0003:00:00.0 3D\n")[0] == "0001:00:00.0 3D"


@pytest.mark.parametrize("data", [b"\x7fELF\x02\x01", b"PK\x03\x04rest", bytes(range(256)) * 40, b"\x00" * 999])
def test_binary_is_refused(data: bytes) -> None:
    assert clean(data) == Cleaned((), False, "binary")


def test_empty() -> None:
    assert clean(b"") == Cleaned(())
    assert clean("\n\n") == Cleaned(())


def test_limits() -> None:
    long_line = clean("x" * (MAX_LINE + 5))
    assert (len(long_line.lines[0].text), long_line.truncated) == (MAX_LINE, True)
    long_text = clean(b"0123456789\n" * (MAX_TEXT // 11 + 9))
    assert (len(long_text.lines), long_text.truncated) == (MAX_TEXT // 11 + 1, True)


def test_lone_surrogates_are_replaced() -> None:
    assert texts("a\ud800b") == ["a?b"]
