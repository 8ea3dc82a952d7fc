"""Whole dialogues through the command line: what is shown, in both languages, and what is kept."""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

UNKNOWN = "CUDA unknown error - this may be due to an incorrectly set up environment"
HELP = """\
Answer with a number or in words. To paste several lines, end them with a line
that holds only a dot; after a single line, an empty line does. Commands: d
don't know, u take back, b what it believes, w why it asks, q end with the
report.
"""
ENGLISH = f"""\
{HELP}
Question 1  What goes wrong? Describe it, or paste the error, a log or the
            output of a command.
> {UNKNOWN}
Read 1 fact: the message “CUDA unknown error - this may be due to an incorrectly
set up environment” (torch_cuda_unknown)

Question 2  Did the machine sleep or hibernate since CUDA last worked?
  1  yes
  2  no
> yes
Noted: yes

Question 3  Does this happen inside a container, and how was it started?
  1  no container
  2  a container started with GPU access (--gpus, nvidia.com/gpu)
  3  a container started without GPU access
  4  a container, started I do not know how
> u
Taken back: Did the machine sleep or hibernate since CUDA last worked?

Question 2  Did the machine sleep or hibernate since CUDA last worked?
  1  yes
  2  no
> w
The answer narrows the causes down by 0.46 bits.
yes (28 %):
  CUDA broke when the machine slept: 19 % -> 66 %
    the machine slept since CUDA last worked; the driver's memory module often
    does not survive that [cuda-unknown-after-suspend]
  A *_VISIBLE_DEVICES variable hides the GPU: 11 % -> 1 %
    the machine slept since CUDA last worked; the driver's memory module often
    does not survive that [cuda-unknown-after-suspend]
  Kernel module and driver libraries are of different versions: 11 % -> 5 %
  The container was not given the GPU: 7 % -> 3 %
no (72 %):
  CUDA broke when the machine slept: 19 % -> 0 %
    the machine did not sleep since CUDA last worked
    [cuda-unknown-without-suspend]
  Kernel module and driver libraries are of different versions: 11 % -> 14 %
  A *_VISIBLE_DEVICES variable hides the GPU: 11 % -> 14 %
> 1
Noted: yes

Question 3  Does this happen inside a container, and how was it started?
  1  no container
  2  a container started with GPU access (--gpus, nvidia.com/gpu)
  3  a container started without GPU access
  4  a container, started I do not know how
> q

PROBLEM  CUDA broke when the machine slept. End the programs that use CUDA and
         reload the nvidia_uvm module:
         sudo modprobe -r nvidia_uvm
         sudo modprobe nvidia_uvm
"""
CHINESE = """\
用序号或文字回答。粘贴多行内容时，以仅含一个点的行结束；只有一行时，空行即可。命
令：d 不知道，u 撤销，b 当前判断，w 为何提问，q 结束并给出报告。

问题 1  出了什么问题？请描述，或粘贴报错、日志或命令输出。
> 报错 CUDA unknown error
读到 1 条事实：信息“CUDA unknown error”（torch_cuda_unknown）

问题 2  上次 CUDA 正常之后，机器是否睡眠或休眠过？
  1  是
  2  否
> 否
已记录：否

问题 3  shell 或程序中如何设置 CUDA_VISIBLE_DEVICES？
  运行  env
        并粘贴输出
  1     没有设置
  2     程序在导入 torch 之后设置
  3     为空、-1，或指向不存在的 GPU
  4     指向 nvidia-smi 列出的 GPU
> 判断
“CUDA unknown error”的可能原因：
  14 %   内核模块与驱动库版本不一致
  14 %   *_VISIBLE_DEVICES 变量隐藏了 GPU
  9 %    容器没有得到 GPU
  63 %   其他原因
> 撤销
已撤销：上次 CUDA 正常之后，机器是否睡眠或休眠过？

问题 2  上次 CUDA 正常之后，机器是否睡眠或休眠过？
  1  是
  2  否
> 不知道
已记录：不知道

问题 3  shell 或程序中如何设置 CUDA_VISIBLE_DEVICES？
  运行  env
        并粘贴输出
  1     没有设置
  2     程序在导入 torch 之后设置
  3     为空、-1，或指向不存在的 GPU
  4     指向 nvidia-smi 列出的 GPU
> 4
已记录：指向 nvidia-smi 列出的 GPU

问题 4  是否发生在容器内？容器如何启动？
  1  不在容器内
  2  容器启动时传入了 GPU（--gpus、nvidia.com/gpu）
  3  容器启动时没有传入 GPU
  4  在容器内，不知道如何启动的

无法确定  输入中出现“CUDA unknown error”，但不足以判断原因。
          最可能  机器休眠后 CUDA 失效（21 %）
          其次    内核模块与驱动库版本不一致（13 %） · 容器没有得到 GPU（8 %） ·
                  *_VISIBLE_DEVICES 变量隐藏了 GPU（3 %）
          下一问  是否发生在容器内？容器如何启动？（不在容器内 / 容器启动时传入
                  了 GPU（--gpus、nvidia.com/gpu）/ 容器启动时没有传入 GPU / 在
                  容器内，不知道如何启动的）
"""


def test_english(ask: Any) -> None:
    done = ask("-q", "--lang", "en", replies=f"{UNKNOWN}\n\nyes\nu\nw\n1\nq\n")
    assert done.stdout.decode() == ENGLISH
    assert (done.returncode, done.stderr) == (1, b"")


def test_chinese_until_the_input_ends(ask: Any) -> None:
    done = ask("-q", "--lang", "zh", replies="报错 CUDA unknown error\n\n否\n判断\n撤销\n不知道\n4\n")
    assert done.stdout.decode() == CHINESE
    assert done.returncode == 0


def test_a_question_of_what_fits_is_answered_at_once(ask: Any) -> None:
    done = ask("-q", replies="Which torch do I need?\n\nRTX 5090\n")
    lines = done.stdout.decode().splitlines()
    assert "Question 2  Which GPU is in the machine?" in lines
    assert any(
        line.startswith("ANSWER  torch 2.15.0+cu132 is the newest that runs on GeForce RTX 5090.") for line in lines
    )
    assert lines[-1].strip() == "pip install torch==2.15.0+cu132 --index-url https://download.pytorch.org/whl/cu132"
    assert (done.returncode, done.stderr) == (0, b"")


def test_no_reply_at_all_ends_with_the_report(ask: Any) -> None:
    done = ask("-q", replies="")
    assert done.stdout.decode().splitlines()[-4:] == [
        "UNKNOWN  The input does not say enough to judge: the GPU, the driver and torch",
        "         must be known.",
        "         ask next     What does torch report of itself and the machine?",
        "         or run       python -m torch.utils.collect_env",
    ]
    assert done.returncode == 0


def test_a_paste_ends_with_a_dot_and_answers_a_question(ask: Any) -> None:
    paste = "PyTorch version: 2.6.0+cu124\nCUDA used to build PyTorch: 12.4\n\nOS: Ubuntu 22.04.5 LTS (x86_64)\n"
    paste += "Python version: 3.12.8 (64-bit runtime)\nGPU models and configuration: GPU 0: NVIDIA GeForce RTX 5090\n"
    done = ask(
        "-q",
        "--question",
        "RuntimeError: CUDA error: no kernel image is available for execution on the device",
        replies=f"no\nCollecting environment information...\n{paste}Nvidia driver version: 570.124.06\n.\n",
    )
    shown = done.stdout.decode()
    assert "\n> Collecting environment information...\nRead " in shown
    assert "\nPROBLEM  The installed torch has no code for GeForce RTX 5090." in shown
    assert done.returncode == 1


def test_begun_from_the_last_report(ask: Any, tmp_path: Path) -> None:
    (tmp_path / "issue.txt").write_text(UNKNOWN, encoding="utf-8")
    first = ask("-q", "--report", "issue.txt", replies="")
    assert b"UNKNOWN" in first.stdout
    second = ask("-q", "--in", "last", replies="yes\n")
    assert second.stdout.decode().splitlines()[5:8] == [
        "Question 1  Did the machine sleep or hibernate since CUDA last worked?",
        "  1  yes",
        "  2  no",
    ]
    assert "PROBLEM" in second.stdout.decode()


def test_saved_and_resumed(ask: Any, tmp_path: Path) -> None:
    done = ask("--save", "case.json", replies=f"{UNKNOWN}\n\nd\n")
    assert done.stderr == b"Saved in case.json\n"
    saved = json.loads((tmp_path / "case.json").read_text(encoding="utf-8"))
    assert [t["question"] for t in saved["turns"]] == ["opening", "slept"]
    assert (tmp_path / "case.json").stat().st_mode & 0o077 == 0
    again = ask("-q", "--resume", "case.json", replies="u\nyes\n").stdout.decode()
    assert "Question 3  How is CUDA_VISIBLE_DEVICES set" in again
    assert "Taken back: Did the machine sleep" in again
    assert "PROBLEM  CUDA broke when the machine slept" in again


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b'{"schema": "gpurules.dialogue/1"}', b"\xff\xfe", b"[" * 20_000]
)
def test_a_file_that_is_no_dialogue(ask: Any, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "bad.json").write_bytes(content)
    done = ask("--resume", "bad.json")
    assert (done.returncode, done.stdout) == (2, b"")
    assert len(done.stderr.decode().splitlines()) == 1


def test_one_json_object_a_turn(ask: Any) -> None:
    replies = [json.dumps({"answer": f"{UNKNOWN}\nTraceback"}), "why", "2", "undo", "yes", "what?", "q"]
    done = ask("--json", replies="\n".join(replies) + "\n")
    turns = [json.loads(line) for line in done.stdout.decode().splitlines()]
    assert [t["question"]["id"] for t in turns[:-1]] == [
        "opening",
        "slept",
        "slept",
        "visible_devices",
        "slept",
        "in_container",
        "in_container",
    ]
    assert {t["schema"] for t in turns} == {"gpurules.ask/1"}
    assert turns[1]["understood"]["kind"] == "text"
    assert turns[2]["why"]["prospects"][0]["answer"] == "yes"
    assert turns[3]["understood"]["choice"] == "no"
    assert turns[4]["taken_back"] == "slept"
    assert turns[6]["understood"]["kind"] == "nothing"
    assert turns[-1]["report"]["findings"][0]["cause"] == "uvm_broken_after_suspend"
    assert all("report" not in t for t in turns[:-1])


@pytest.mark.parametrize(
    "paste",
    [
        b"\x00" * 5_000,
        b"\xff\xfe\x00\x01binary",
        b"\x1b]0;title\x07\x1b[2J\x1b[31mred\x1b[0m",
        b"A" * 200_000,
        b"{" * 30_000,
        "\u202e\u200b\u2066".encode() * 500,
        b"a: &x [*x, *x]\nb: !!python/object/apply:os.system ['true']",
        b"- " * 20_000,
    ],
)
def test_hostile_paste(ask: Any, paste: bytes) -> None:
    done = ask("-q", replies=paste + b"\n.\nq\n")
    assert done.returncode == 0
    assert b"\x1b" not in done.stdout
    assert b"Nothing in that was recognised." in done.stdout
    assert done.stderr == b""


def test_in_and_resume_exclude_each_other(ask: Any) -> None:
    done = ask("--in", "last", "--resume", "x.json")
    assert done.returncode == 2
    assert b"--in and --resume" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="a terminal of POSIX")
def test_at_a_terminal_an_interrupt_asks_once_more(tmp_path: Path) -> None:
    environ = {**os.environ, "XDG_STATE_HOME": str(tmp_path), "LC_ALL": "C.UTF-8", "TERM": "dumb", "COLUMNS": "80"}
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "gpurules", "ask"], stdin=follower, stdout=follower, stderr=follower, env=environ
    )
    os.close(follower)
    try:
        _until(leader, b"> ")
        process.send_signal(signal.SIGINT)
        assert b"Interrupt once more" in _until(leader, b"report.\r\n> ")
        os.write(leader, b"my training hangs\r\r")
        assert b"Question 2" in _until(leader, b"\r\n> ")
        process.send_signal(signal.SIGINT)
        _until(leader, b"report.\r\n> ")
        process.send_signal(signal.SIGINT)
        assert process.wait(20) == 130
    finally:
        process.kill()
        os.close(leader)


def _until(leader: int, mark: bytes) -> bytes:
    """What the terminal shows up to a mark."""
    seen, deadline = b"", time.monotonic() + 20
    while mark not in seen and time.monotonic() < deadline:
        if select.select([leader], [], [], 0.5)[0]:
            seen += os.read(leader, 4096)
    assert mark in seen, seen
    time.sleep(1.0)  # the prompt is shown a moment before an interrupt can end the wait behind it
    return seen
