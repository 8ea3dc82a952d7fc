"""What is private never leaves: twelve kinds of private things, planted where an input may hold them, in every output.

The texts are the samples of the error catalog, each with a private thing behind it, since the whole line of an error
becomes a fact; outputs of programs; a question; a facts file; and this machine, with a fake NVML and odd variables.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import CliRunner
from gpurules.cli import cli
from gpurules.facts import Fact, Provenance
from gpurules.gathering import knowledge_in
from gpurules.knowledge.loader import FOLDER
from gpurules.probes.redact import redact, redact_text

# kind: how it stands in a text, and what of it may never be seen
PRIVATE: dict[str, tuple[str, tuple[str, ...]]] = {
    "user": ("alicew@gpubox77:~/proj$ python train.py", ("alicew",)),
    "host": ("gpubox77:4100:4155 [0] NCCL INFO x", ("gpubox77",)),
    "home": ("/home/alicew/secretproj/train.py", ("/home/alicew",)),
    "serial": ("Serial Number : 1323721099887", ("1323721099887",)),
    "uuid": (
        "GPU-8d1f0c1a-5b6c-4d7e-8f90-a1b2c3d4e5f6 MIG-8d1f0c1a-5b6c-4d7e-8f90-a1b2c3d4e5f7",
        ("8d1f0c1a-5b6c", "a1b2c3d4e5f6", "a1b2c3d4e5f7"),
    ),
    "ipv4": ("peer 10.77.66.55<4711> 172.31.99.88", ("10.77.66.55", "172.31.99.88")),
    "ipv6": ("peer [fd12:3456:789a::77]:4711 fe80::1ff:fe23:4567:890a", ("fd12:3456:789a", "fe23:4567")),
    "mac": ("link/ether 52:54:00:ab:cd:ef 52-54-00-AB-CD-EE", ("52:54:00:ab", "52-54-00-AB")),
    "email": ("mail alice.walker@lab.example.org", ("alice.walker", "lab.example.org")),
    "tokens": (
        "HF_TOKEN=hf_abcdefghijKLMNOPQRSTUV1234 sk-proj-abcDEF0123456789ghijkl AKIAIOSFODNN7EXAMPLE "
        "aws_secret_access_key = wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEY",
        ("hf_abcdefghij", "sk-proj-abcDEF", "AKIAIOSFODNN7", "wJalrXUtnFEMI"),
    ),
    "network": (
        'ESSID:"LabWifi5" container 4f1c2d3e5a6b7c8d9e0f1a2b3c4d5e6f708192a3b4c5d6e7f8091a2b3c4d5e6f',
        ("LabWifi5", "4f1c2d3e5a6b"),
    ),
    "proxy": ("https_proxy=http://alicew:S3cretPw@proxy.corp:3128/", ("S3cretPw", "alicew")),
}
SECRETS = {kind: values for kind, (_, values) in PRIVATE.items()}
PLANTED = [text for text, _ in PRIVATE.values()]
SAMPLES = [
    entry["sample"].rstrip()
    for entry in yaml.safe_load((FOLDER / "facts" / "errors.yaml").read_text(encoding="utf-8"))["signatures"]
]


def leaks(output: str) -> set[str]:
    """The kinds of which something is seen."""
    lowered = output.lower()
    return {kind for kind, values in SECRETS.items() if any(value.lower() in lowered for value in values)}


def report_text() -> str:
    """Some error lines with private things behind them, and outputs of programs that are full of them."""
    some = SAMPLES[::7]  # each of them is taken by itself below
    lines = [f"{sample} {PLANTED[number % len(PLANTED)]}" for number, sample in enumerate(some)]
    return "\n".join([*OUTPUTS, *PLANTED, *lines, *OUTPUTS])


OUTPUTS = """\
Collecting environment information...
PyTorch version: 2.6.0+cu124
OS: Ubuntu 24.04.2 LTS (x86_64)
Python version: 3.12.3 (main, Feb  4 2025, 14:48:35) [GCC 13.3.0] (64-bit runtime)
GPU models and configuration: GPU 0: NVIDIA GeForce RTX 5080
Nvidia driver version: 570.124.06
alicew@gpubox77:~/secretproj$ nvidia-smi -L
GPU 0: NVIDIA GeForce RTX 5080 (UUID: GPU-8d1f0c1a-5b6c-4d7e-8f90-a1b2c3d4e5f6)
alicew@gpubox77:~/secretproj$ env
HOME=/home/alicew
HTTPS_PROXY=http://alicew:S3cretPw@proxy.corp:3128
HF_TOKEN=hf_abcdefghijKLMNOPQRSTUV1234
MASTER_ADDR=gpubox77
NCCL_SOCKET_IFNAME=eth0
LD_LIBRARY_PATH=/home/alicew/cuda/lib64:/usr/lib
PIP_INDEX_URL=https://alicew:S3cretPw@pypi.corp/simple
VIRTUAL_ENV=/home/alicew/venv
alicew@gpubox77:~/secretproj$ pip list
Package    Version  Editable project location
---------- -------- -------------------------
torch      2.6.0    /home/alicew/secretproj
==============NVSMI LOG==============
Driver Version                            : 570.124.06
Attached GPUs                             : 1
GPU 00000000:01:00.0
    Product Name                          : NVIDIA GeForce RTX 5080
    Serial Number                         : 1323721099887
    GPU UUID                              : GPU-8d1f0c1a-5b6c-4d7e-8f90-a1b2c3d4e5f6
    Processes
        Process ID                        : 4711
            Type                          : C
            Name                          : /home/alicew/venv/bin/python
            Used GPU Memory               : 480 MiB
Nov 30 09:12:44 gpubox77 kernel: NVRM: Xid (PCI:0000:01:00): 31, pid=4711, name=/home/alicew/venv/bin/python, Ch 0
gpubox77:4711:4712 [0] NCCL INFO Bootstrap : Using eth0:10.77.66.55<0>
gpubox77:4711:4712 [0] NCCL INFO NET/Socket : Using [0]eth0:10.77.66.55<0> [1]wlan0:fe80::1ff:fe23:4567:890a%wlan0<0>
Traceback (most recent call last):
  File "/home/alicew/secretproj/train.py", line 3, in <module>
RuntimeError: CUDA error: no kernel image is available for execution on the device
""".splitlines()
FACTS = {
    "gpus": "2x NVIDIA GeForce RTX 4090",
    "driver": "570.124.06",
    "os": "Ubuntu 24.04",
    "contact": PRIVATE["email"][0],
    "where": " ".join(PLANTED),
    **{f"note {number}": text for number, text in enumerate(PLANTED)},
}
QUESTION = "torch 2.6 on an RTX 5080 is slow. " + " ; ".join(PLANTED)


@pytest.fixture
def inputs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "issue.txt").write_text(report_text(), encoding="utf-8")
    (tmp_path / "facts.yaml").write_text(yaml.safe_dump(FACTS), encoding="utf-8")
    return [
        *("--report", str(tmp_path / "issue.txt"), "--facts", str(tmp_path / "facts.yaml")),
        *("--question", QUESTION),
    ]


def run(*arguments: str) -> str:
    done = CliRunner().invoke(cli, list(arguments))
    assert done.exit_code in (0, 1), (arguments, done.output[-2000:], done.exception)
    return done.stdout + done.stderr


def outputs(given: list[str], folder: Path) -> Iterator[tuple[str, str]]:
    """Every form of an answer about one input, and what is asked of it afterwards."""
    asked = given.index("--question") if "--question" in given else len(given)
    described = [] if "--python" in given else given[:asked]
    yield "json", run("diagnose", "--json", *given)
    state = folder / "state" / "gpurules" / "last.json"
    yield "state file", state.read_text(encoding="utf-8")
    report = json.loads(state.read_text(encoding="utf-8"))
    for lang in ("en", "zh"):
        yield f"text {lang}", run("diagnose", "-v", "--no-save", "--lang", lang, *given)
        yield f"markdown {lang}", run("diagnose", "--format", "markdown", "--no-save", "--lang", lang, *given)
        yield f"recommend {lang}", run("recommend", "-v", "--lang", lang, *described)
        yield f"fix {lang}", run("fix", "--lang", lang)
        for form in ("bash", "powershell"):
            yield f"fix {form} {lang}", run("fix", "--lang", lang, "--format", form)
    yield "quiet", run("diagnose", "-q", "--no-save", *given)
    yield "recommend json", run("recommend", "--json", *described)
    yield "fix json", run("fix", "--json")
    targets = ["1", *(fact["id"] for fact in report["facts"] if fact["type"] in ("error", "stated", "env_var", "gpu"))]
    for target in targets[:12]:
        yield f"why {target}", run("why", target, "--json")
        yield f"why {target}", run("why", target)
    yield "why-not", run("why-not", "torch==2.15.0", "--json") + run("why-not", "torch==2.15.0")
    yield "what-if", run("what-if", "driver=580", "--json") + run("what-if", "driver=580")
    yield "how-to", run("how-to", "torch>=2.15", "--json") + run("how-to", "torch>=2.15")


def test_no_private_thing_of_an_input_is_in_any_output(inputs: list[str], tmp_path: Path) -> None:
    found = {name: leaks(text) for name, text in outputs(inputs, tmp_path)}
    assert {name: kinds for name, kinds in found.items() if kinds} == {}
    assert len(found) > 25


@pytest.mark.parametrize("kind", PRIVATE)
def test_each_kind_in_the_middle_of_any_line(kind: str) -> None:
    """Before, behind and between the words of every known error line."""
    text, values = PRIVATE[kind]
    for sample in SAMPLES:
        for line in (f"{sample} {text}", f"{text} {sample}", f'{sample}: "{text}"'):
            cleaned = redact_text(line).lower()
            assert not any(value.lower() in cleaned for value in values), line


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, nvml_folder: Path, smi_folder: Path) -> Path:
    """This machine as the probes find it: a fake NVML, and variables full of private things."""
    profile = (Path(__file__).parents[1] / "fakes" / "profiles" / "rtx3060.env").read_text()
    lines = [
        "uuid=GPU-8d1f0c1a-5b6c-4d7e-8f90-a1b2c3d4e5f6",
        "gprocs=1520:118,1702:41",
        "name.1520=/home/alicew/secretproj/venv/bin/python",
        "name.1702=python --token=hf_abcdefghijKLMNOPQRSTUV1234",
    ]
    (tmp_path / "nvml.env").write_text("".join(f"{line}\n" for line in lines) + profile)
    variables = {
        "LD_LIBRARY_PATH": f"{nvml_folder}:/home/alicew/cuda/lib64",
        "FAKE_NVML": str(tmp_path / "nvml.env"),
        "PATH": f"{smi_folder}:/usr/bin:/bin",
        "XDG_STATE_HOME": str(tmp_path / "state"),
        "MASTER_ADDR": "gpubox77",
        "NCCL_COMM_ID": "10.77.66.55:4711",
        "NCCL_HOSTID": "gpubox77",
        "CUDA_VISIBLE_DEVICES": "GPU-8d1f0c1a-5b6c-4d7e-8f90-a1b2c3d4e5f6",
        "PIP_INDEX_URL": "https://alicew:S3cretPw@pypi.corp/simple",
        "VIRTUAL_ENV": "/home/alicew/secretproj/venv",
        "CONDA_PREFIX": "/home/alicew/miniconda3",
        "PYTHONPATH": "/home/alicew/lib",
        "TORCH_HOME": "/home/alicew/.cache/torch",
        "VLLM_API_KEY": "sk-proj-abcDEF0123456789ghijkl",
        "NCCL_DEBUG_FILE": "/home/alicew/nccl.%h.log",
        "TORCH_NOTE": " ".join(PLANTED),
        "CUDA_NOTE": " ".join(reversed(PLANTED)),
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    return tmp_path


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="a compiled library for Linux")
def test_no_private_thing_of_a_machine_is_in_any_output(machine: Path) -> None:
    given = ["--python", sys.executable]
    seen: dict[str, Any] = {}
    for name, text in outputs(given, machine):
        seen[name] = leaks(text)
    seen["probe"] = leaks(run("probe", *given))
    seen["probe json"] = leaks(run("probe", "--json", *given))
    for form in ("yaml", "json"):
        target = machine / f"snapshot.{form}"
        run("probe", *(["--json"] if form == "json" else []), "--save", str(target), *given)
        seen[f"snapshot {form}"] = leaks(target.read_text(encoding="utf-8"))
    seen["redactions"] = leaks(run("probe", "--show-redactions", *given))
    assert {name: kinds for name, kinds in seen.items() if kinds} == {}


def test_versions_are_no_addresses() -> None:
    """Every field that holds a version keeps four numbers, which read as an address anywhere else."""
    facts = [
        Fact(name, {field: "10.3.5.147"}, (Provenance("report", "issue.txt"),))
        for name, spec in knowledge_in(None).vocabulary.types.items()
        if spec.kind == "observed"
        for field, kind in spec.fields.items()
        if kind.type == "version"
    ]
    assert redact(facts) == facts
