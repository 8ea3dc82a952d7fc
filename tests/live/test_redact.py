"""What may not leave the machine, and what must stay for a diagnosis."""

from __future__ import annotations

import pytest
from gpurules.facts import Fact, Provenance
from gpurules.probes.redact import redact, redact_text

PRIVATE = [
    ("File /home/alice/train.py", "File /home/<user>/train.py"),
    ("/Users/bob/venv/bin/python", "/Users/<user>/venv/bin/python"),
    (r"C:\Users\Carol\AppData\Local", r"C:\Users\<user>\AppData\Local"),
    ("dave@node17:~$ nvidia-smi", "<user>@<host>:~$ nvidia-smi"),
    ("(base) dave@node17:~/x$ echo dave node17", "(base) <user>@<host>:~/x$ echo <user> <host>"),
    ("[erin@cluster01 ~]# ls", "[<user>@<host> ~]# ls"),
    ("root@3f2a9c0d1e5b:/workspace# ls", "root@<host>:/workspace# ls"),
    ("Nov 30 09:12:44 gpubox kernel: NVRM: Xid", "Nov 30 09:12:44 <host> kernel: NVRM: Xid"),
    ("2026-11-30T09:12:44+0800 gpubox kernel: NVRM", "2026-11-30T09:12:44+0800 <host> kernel: NVRM"),
    ("worker3:412:430 [0] NCCL INFO Bootstrap", "<host>:412:430 [0] NCCL INFO Bootstrap"),
    ("NET/Socket : Using [0]eth0:10.12.3.4<0>", "NET/Socket : Using [0]eth0:<ip><0>"),
    ("NCCL_COMM_ID=192.168.7.9:1234", "NCCL_COMM_ID=<ip>:1234"),
    ("inet6 fe80::1ff:fe23:4567:890a/64", "inet6 <ip>/64"),
    ("link/ether 52:54:00:ab:cd:ef brd", "link/ether <mac> brd"),
    ("mail frank.g@example.org now", "mail <email> now"),
    ("https://me:pw@mirror.example.org/simple", "https://<credentials>@mirror.example.org/simple"),
    ("export HF_TOKEN=hf_abcdefghijklmnopqrstuvwx", "export HF_TOKEN=<secret>"),
    ("WANDB_API_KEY: 0123456789abcdef", "WANDB_API_KEY: <secret>"),
    ("login ghp_0123456789abcdefghijABCDEFGHIJ", "login <secret>"),
    ("Authorization: Bearer abc.def-ghi_jkl", "Authorization: Bearer <secret>"),
    ("Serial Number                    : 1323721012345", "Serial Number                    : <serial-1>"),
    ("host db.corp, node.internal", "host <host>, <host>"),
    ("ssh ip-172-31-4-9", "ssh <host>"),
    (
        "GPU-8d1f0c1a-0000-4000-8000-0000000000aa MIG-8d1f0c1a-0000-4000-8000-0000000000ab",
        "GPU-<uuid-1> MIG-<uuid-2>",
    ),
]

KEPT = [
    "nvidia-curand-cu12        10.3.5.147",
    "nvidia-cudnn-cu12==9.1.0.70",
    "cuDNN version: 9.1.0.70",
    "nvidia_cusolver_cu12-11.6.1.9-py3-none-manylinux2014_x86_64.whl",
    "VBIOS 95.02.18.80.5F driver 550.144.03 kernel 5.15.167.4-microsoft-standard-WSL2",
    "Bus-Id 00000000:01:00.0 at 12:30:45",
    "[Thu Nov 30 09:12:44 2026] NVRM: Xid (PCI:0000:01:00): 79",
    "tcp://127.0.0.1:29500 and [::1]:8000 and 0.0.0.0",
    "max_tokens=4096, num_tokens: 128, use_token: true",
    "terminate called after throwing c10::Error at ::std::abs",
    "git clone git@github.com:pytorch/pytorch",
    "/home/ubuntu/x and /root/y",
    "--index-url https://download.pytorch.org/whl/cu128",
    "Serial Number : N/A",
    "torch @ git+https://github.com/pytorch/pytorch@v2.9.0",
]


@pytest.mark.parametrize(("text", "expected"), PRIVATE)
def test_private_things_go(text: str, expected: str) -> None:
    assert redact_text(text) == expected


@pytest.mark.parametrize("text", KEPT)
def test_the_rest_stays(text: str) -> None:
    assert redact_text(text) == text


@pytest.mark.parametrize("text", [text for text, _ in PRIVATE])
def test_twice_is_once(text: str) -> None:
    assert redact_text(redact_text(text)) == redact_text(text)


def test_one_placeholder_for_one_thing_over_all_facts() -> None:
    uuid = "GPU-8d1f0c1a-0000-4000-8000-0000000000a{}"
    place = (Provenance("probe", "nvml", reader="pynvml"),)
    facts = [
        Fact("gpu", {"index": 0, "uuid": uuid.format(1)}, place),
        Fact("gpu", {"index": 1, "uuid": uuid.format(2)}, place),
        Fact("env_var", {"name": "CUDA_VISIBLE_DEVICES", "value": f"{uuid.format(2)},{uuid.format(1)}"}, place),
        Fact("env_var", {"name": "MASTER_ADDR", "value": "node17"}, place),
        Fact("env_var", {"name": "MASTER_PORT", "value": "29500"}, place),
        Fact("package", {"name": "nvidia-cudnn-cu12", "version": "9.1.0.70", "location": "/home/alice/env"}, place),
        Fact("torch", {"version": "2.9.0"}, (Provenance("report", "/home/alice/issue.txt", 3),)),
        Fact("stated", {"key": "who", "value": "alice asks"}, place),
    ]
    redacted = redact(facts)
    assert [dict(fact.fields) for fact in redacted] == [
        {"index": 0, "uuid": "GPU-<uuid-1>"},
        {"index": 1, "uuid": "GPU-<uuid-2>"},
        {"name": "CUDA_VISIBLE_DEVICES", "value": "GPU-<uuid-2>,GPU-<uuid-1>"},
        {"name": "MASTER_ADDR", "value": "<host>"},
        {"name": "MASTER_PORT", "value": "29500"},
        {"name": "nvidia-cudnn-cu12", "version": "9.1.0.70", "location": "/home/<user>/env"},
        {"version": "2.9.0"},
        {"key": "who", "value": "<user> asks"},
    ]
    assert redacted[6].provenance == (Provenance("report", "/home/<user>/issue.txt", 3),)
    assert [fact.key() for fact in redact(redacted)] == [fact.key() for fact in redacted]
