"""Facts files: typed ones with exact errors, loose ones with exact facts, hostile ones with one clear error."""

from __future__ import annotations

import json
import time
from pathlib import Path

import gpurules
import pytest
from gpurules.facts import Fact, Provenance
from gpurules.knowledge.aliases import Aliases, load_aliases
from gpurules.knowledge.factsfile import FactsReading, Passage, read_facts
from gpurules.knowledge.names import GpuName, GpuNames
from gpurules.knowledge.phrases import Phrases, load_phrases
from gpurules.knowledge.problems import KnowledgeError, Problems
from gpurules.knowledge.vocabulary import Vocabulary, load_vocabulary

KNOWLEDGE = Path(gpurules.__file__).parent / "knowledge"
NAMES = GpuNames(
    GpuName(text)
    for text in (
        "GeForce RTX 5090",
        "GeForce RTX 4090",
        "GeForce RTX 3090",
        "GeForce RTX 3090 Ti",
        "GeForce RTX 3050 8GB",
        "GeForce RTX 3050 6GB",
        "Radeon RX 6700 XT",
        "A10",
        "H800",
        "Tesla T4",
    )
)


def _load() -> tuple[Vocabulary, Aliases, Phrases]:
    problems = Problems()
    vocabulary = load_vocabulary(KNOWLEDGE / "vocabulary.yaml", problems)
    aliases = load_aliases(KNOWLEDGE / "aliases.yaml", vocabulary, problems)
    phrases = load_phrases(KNOWLEDGE / "facts" / "phrases.yaml", problems)
    problems.raise_if_any()
    assert aliases is not None
    return vocabulary, aliases, phrases


VOCABULARY, ALIASES, PHRASES = _load()


def read(text: str | bytes, name: str = "facts.yaml") -> FactsReading:
    data = text.encode() if isinstance(text, str) else text
    return read_facts(data, name, VOCABULARY, ALIASES, PHRASES, NAMES)


def plain(facts: list[Fact]) -> list[tuple[str, dict[str, object]]]:
    return [(fact.type, dict(fact.fields)) for fact in facts]


def error(text: str | bytes) -> str:
    with pytest.raises(KnowledgeError) as caught:
        read(text)
    return str(caught.value)


# --- typed -----------------------------------------------------------------------------------------------------------


def test_typed_list() -> None:
    reading = read(
        "- {gpu: {index: 0, name: GeForce RTX 4090, sm: '8.9'}}\n- driver:\n    version: 570.10\n    vendor: nvidia\n"
    )
    assert plain(reading.facts) == [
        ("gpu", {"index": 0, "name": "GeForce RTX 4090", "sm": 89}),
        ("driver", {"version": "570.10", "vendor": "nvidia"}),
    ]
    assert reading.facts[1].provenance == (Provenance("user", "facts.yaml", 2, "facts file"),)
    assert reading.not_understood == []


def test_typed_mapping_as_the_probe_prints_it() -> None:
    document = {
        "schema": "gpurules.facts/1",
        "version": "0.1.0",
        "facts": [
            {"torch": {"version": "2.10"}, "_from": "python"},
            {"board": {"name": "机架 \U0001f600"}, "_from": "sysfs"},
        ],
    }
    reading = read(json.dumps(document, indent=1))
    assert plain(reading.facts) == [("torch", {"version": "2.10"}), ("board", {"name": "机架 \U0001f600"})]
    assert [f.provenance[0].reader for f in reading.facts] == ["python", "sysfs"]


def test_typed_faults_are_all_reported_at_once() -> None:
    text = """\
- {gpu: {indx: 0, vram_mib: much}}
- {drivr: {version: "570"}}
- {driver: {vendor: nvida}}
- {torch: {cuda_available: 3, version: nightly}}
- {os: {family: }}
- {gpu: {sm: fast, name: [a, b]}}
- {candidate: {build: x}}
- gpu
- {gpu: {index: 0}, driver: {}}
- {torch: {version.local: cu126}}
"""
    assert error(text).splitlines() == [
        'facts.yaml:1: gpu.indx: unknown field; did you mean "index"?',
        'facts.yaml:1: gpu.vram_mib: "vram_mib" must be a whole number',
        'facts.yaml:2: drivr: unknown type; did you mean "driver"?',
        'facts.yaml:3: driver.vendor: "vendor" must be one of nvidia, amd, intel; did you mean "nvidia"?',
        'facts.yaml:4: torch.cuda_available: "cuda_available" must be true or false',
        'facts.yaml:4: torch.version: "version" must be a version',
        "facts.yaml:5: os.family: is empty; leave out what is not known",
        "facts.yaml:6: gpu.name: must be one value",
        'facts.yaml:6: gpu.sm: "sm" must be a compute capability such as 8.9',
        "facts.yaml:7: candidate: is concluded, not observed; state what it follows from",
        "facts.yaml:8: a fact is written `- {type: {field: value}}`",
        "facts.yaml:9: a fact is written `- {type: {field: value}}`",
        'facts.yaml:10: torch.version.local: unknown field; did you mean "version"?',
    ]


def test_typed_mapping_with_a_stray_key() -> None:
    assert error("facts: []\nshema: x\n") == 'facts.yaml:2: shema: unknown key beside `facts`; did you mean "schema"?'


def test_empty_files_say_nothing() -> None:
    for text in ("", "---\n", "facts: []", "{}", "[]"):
        assert read(text) == FactsReading([], [])


# --- loose -----------------------------------------------------------------------------------------------------------

GPU = ("gpu", {"name": "GeForce RTX 4090", "index": 0})
LINUX = {"family": "linux"}


def gpu(name: str, index: int = 0, **more: object) -> tuple[str, dict[str, object]]:
    return "gpu", {"name": name, "index": index, **more}


def said(kind: str, detail: str | None = None, number: int | None = None) -> tuple[str, dict[str, object]]:
    fields: dict[str, object] = {"kind": kind}
    if detail is not None:
        fields["detail"] = detail
    if number is not None:
        fields["number"] = number
    return "statement", fields


LOOSE = [
    ("gpu: GeForce RTX 4090", [GPU]),
    ("GPU-Name: GeForce RTX 4090", [GPU]),
    ("graphics card: GeForce RTX 4090", [GPU]),
    ("显卡: GeForce RTX 4090", [GPU]),
    ("gpu: 4090", [gpu("RTX 4090")]),
    ("gpu: NVIDIA Future 9000", [gpu("NVIDIA Future 9000")]),
    ("gpus: 2x GeForce RTX 4090", [gpu("GeForce RTX 4090"), gpu("GeForce RTX 4090", 1), said("gpu_count", number=2)]),
    ("gpus: RTX 3090 Ti x2", [gpu("RTX 3090 Ti"), gpu("RTX 3090 Ti", 1), said("gpu_count", number=2)]),
    ("gpus: 两张 3090", [gpu("RTX 3090"), gpu("RTX 3090", 1), said("gpu_count", number=2)]),
    ("gpus: RTX 5090 and RTX 4090", [gpu("RTX 5090"), gpu("RTX 4090", 1)]),
    ("gpus: [RTX 5090 32GB sm_120, RTX 4090 24GB]",
     [gpu("RTX 5090", sm=120, vram_mib=32768), gpu("RTX 4090", 1, vram_mib=24576)]),
    ("gpus: [RTX 3050 6GB, RTX 3050 8GB]", [gpu("RTX 3050 6GB"), gpu("RTX 3050 8GB", 1)]),
    ("gpus: [gfx908, gfx1030]",
     [("gpu", {"vendor": "amd", "gfx": "gfx908", "index": 0}),
      ("gpu", {"vendor": "amd", "gfx": "gfx1030", "index": 1})]),
    ("gpus: 8", [said("gpu_count", number=8)]),
    ("num_gpus: 4", [said("gpu_count", number=4)]),
    ("gpus: 3\ngpu: A10", [gpu("A10", i) for i in range(3)] + [said("gpu_count", number=3)]),
    ("gpu: {name: A10, vram_gib: 23}", [gpu("A10", vram_mib=23552)]),
    ("gpus: [{name: A10, memory: 23 GB}, {model: T4}]", [gpu("A10", vram_mib=23552), gpu("T4", 1)]),
    ("gpu0: A10\ngpu 1: T4", [gpu("A10"), gpu("T4", 1)]),
    ("gpu: A10\ncompute_capability: '8.6'\nvram: 24", [gpu("A10", sm=86, vram_mib=24576)]),
    ("gpu: Radeon RX 6700 XT\ngfx: gfx1031", [gpu("Radeon RX 6700 XT", gfx="gfx1031", vendor="amd")]),
    ("gpu_vendor: NVIDIA", [("gpu", {"vendor": "nvidia", "index": 0})]),
    ("mig_mode: Enabled\nmig_instances: 2",
     [("gpu", {"mig": "enabled", "index": 0}), said("mig_instances", number=2)]),
    ("power_limit_w: 400", [("gpu", {"power_limit_w": 400, "index": 0})]),
    ("driver: '435.21'", [("driver", {"vendor": "nvidia", "version": "435.21"})]),
    ("Host driver: 535.104.05", [("driver", {"vendor": "nvidia", "version": "535.104.05"})]),
    ("windows_driver: 31.0.15.3623", [("driver", {"vendor": "nvidia", "version": "536.23"})]),
    ("driver: AMD Adrenalin 24.12.1", [("driver", {"vendor": "amd", "version": "24.12.1"})]),
    ("驱动版本: 535.104.05", [("driver", {"vendor": "nvidia", "version": "535.104.05"})]),
    ("driver: 525", [said("driver_branch", "525", 525)]),
    ("driver: 570.x branch", [said("driver_branch", "570.x branch", 570)]),
    ("driver: {version: 570.86.10, cuda: '12.8'}",
     [("driver", {"vendor": "nvidia", "version": "570.86.10", "cuda_max": "12.8"})]),
    ("nvidia_smi_cuda: 12.10", [("driver", {"vendor": "nvidia", "cuda_max": "12.10"})]),
    ("open_kernel_modules: yes", [("driver_part", {"part": "kernel_module", "flavour": "open"})]),
    ("nvidia_smi_works: true", [("nvidia_smi", {"scope": "host", "state": "ok"})]),
    ("secure boot: disabled", [said("secure_boot_off", "secure boot: disabled")]),
    ("torch: 2.0.1", [("torch", {"version": "2.0.1"})]),
    ("PyTorch version: v1.8.1+cu111", [("torch", {"version": "1.8.1+cu111"})]),
    ("torch: 2.8.0.dev20250610+cu128 (nightly)", [("torch", {"version": "2.8.0.dev20250610+cu128"})]),
    ("torch_cuda: '11.8'", [("torch", {"cuda": "11.8", "cuda_built": True})]),
    ("torch.cuda.is_available(): False", [("torch", {"cuda_available": False})]),
    ("torch_arch_list: [sm_80, compute_90]",
     [("arch_list", {"text": "sm_80 compute_90"}), ("torch_target", {"sm": 80, "code": "sass"}),
      ("torch_target", {"sm": 90, "code": "ptx"})]),
    ("os: Windows 10", [("os", {"family": "windows", "name": "Windows 10"})]),
    ("os: Ubuntu 22.04 LTS",
     [("os", {**LINUX, "name": "Ubuntu 22.04 LTS", "distro": "ubuntu", "distro_version": "22.04"})]),
    ("distro: CachyOS/Arch", [("os", {**LINUX, "name": "CachyOS/Arch", "distro": "cachyos"})]),
    ("platform: Jetson L4T R38.4",
     [("os", {**LINUX, "name": "Jetson L4T R38.4", "machine": "aarch64", "jetson": True})]),
    ("platform: linux-x86_64", [("os", {**LINUX, "name": "linux-x86_64", "machine": "x86_64"})]),
    ("arch: amd64", [("os", {"machine": "x86_64"})]),
    ("os: Windows 11\nwsl: 2", [("os", {"name": "Windows 11", "wsl": True, **LINUX}), ("wsl", {"version": 2})]),
    ("windows_build: 10.0.19042.1052", [("os", {"windows_build": "10.0.19042.1052"})]),
    ("kernel: 5.15.0-25-generic", [("kernel", {"release": "5.15.0-25-generic", "version": "5.15.0"})]),
    ("wsl_kernel: 5.4.72", [("wsl", {"kernel": "5.4.72"}), ("kernel", {"release": "5.4.72", "version": "5.4.72"})]),
    ("python: 3.10", [("python", {"version": "3.10"})]),
    ("glibc: '2.35'", [("libc", {"version": "2.35", "text": "2.35"})]),
    ("cpu_cores: 32", [("cpu", {"cores": 32})]),
    ("ram: 64 GB", [("memory", {"total_mib": 65536})]),
    ("shm_size: 64M", [("memory", {"shm_mib": 64})]),
    ("psu_w: 850", [said("psu_w", "850", 850)]),
    ("psu: single 1400 W", [said("psu_w", "single 1400 W", 1400)]),
    ("chassis: Dell tower", [("board", {"name": "Dell tower"})]),
    ("iommu: enabled", [said("iommu_on", "iommu: enabled")]),
    ("in_container: true", [("container", {"present": True})]),
    ("docker_install: snap", [said("docker_snap", "snap")]),
    ("service_nvidia_fabricmanager: not installed",
     [("service", {"name": "nvidia-fabricmanager", "state": "missing"})]),
    ("service docker: active (running)", [("service", {"name": "docker", "state": "running"})]),
    ("cuda_toolkit: 12.2.79", [("cuda_toolkit", {"version": "12.2.79", "text": "12.2.79"})]),
    ("conda_cudatoolkit: 10.1.168",
     [("package", {"name": "cudatoolkit", "manager": "conda", "version": "10.1.168"})]),
    ("nccl: 2.7.3", [("nccl", {"version": "2.7.3"}), ("package", {"name": "nccl", "version": "2.7.3"})]),
    ("bitsandbytes: 0.43", [("package", {"name": "bitsandbytes", "version": "0.43"})]),
    ("Flash_Attn: 2.8.0", [("package", {"name": "flash-attn", "version": "2.8.0"})]),
    ("packages: [numpy==1.26.4, xformers 0.0.27]",
     [("package", {"name": "numpy", "version": "1.26.4"}), ("package", {"name": "xformers", "version": "0.0.27"})]),
    ("pip: {numpy: 1.26.4}", [("package", {"name": "numpy", "version": "1.26.4"})]),
    ("installer: conda 25.3", [("package", {"name": "conda", "version": "25.3"})]),
    ("virtual_packages: [__cuda=12.4, __linux=6.8, __glibc=2.35]",
     [("driver", {"vendor": "nvidia", "cuda_max": "12.4"}), ("os", LINUX), ("kernel", {"version": "6.8"}),
      ("libc", {"version": "2.35", "text": "glibc 2.35"})]),
    ("rocm: 6.1.0", [("rocm", {"version": "6.1.0"})]),
    ("source_line: os.environ['CUDA_VISIBLE_DEVICES'] = '7'",
     [("env_var", {"name": "CUDA_VISIBLE_DEVICES", "value": "7"})]),
    ("NCCL_P2P_DISABLE: '1'", [("env_var", {"name": "NCCL_P2P_DISABLE", "value": "1"})]),
    ("env: {NCCL_DEBUG: INFO, OMP_NUM_THREADS: 4}",
     [("env_var", {"name": "NCCL_DEBUG", "value": "INFO"}), ("env_var", {"name": "OMP_NUM_THREADS", "value": "4"})]),
    ("works_with: {NCCL_P2P_DISABLE: 1}", [said("works_with_env", "NCCL_P2P_DISABLE=1")]),
    ("num_processes: 4", [said("num_processes", number=4)]),
    ("model_params_b: 6.7", [("goal", {"name": "model_params_b", "value": "6.7"})]),
    ("model: Llama-2-70B-hf",
     [("goal", {"name": "model_params_b", "value": "70"}), said("model_name", "Llama-2-70B-hf")]),
    ("method: full fine-tune", [("goal", {"name": "method", "value": "full fine-tune"})]),
    ("ops_succeed: true", [said("runs_fine", "ops_succeed: true")]),
    ("ops_succeed: false", []),
    ("trigger: systemctl daemon-reload",
     [("stated", {"key": "trigger", "value": "systemctl daemon-reload"}), said("daemon_reload", "daemon-reload")]),
    ("device_1_state: idle", [("stated", {"key": "device_1_state", "value": "idle"}), said("idle_device", "idle")]),
    ("logs: none, instant power-off",
     [("stated", {"key": "logs", "value": "none, instant power-off"}), said("power_off", "power-off")]),
    ("host: {os: Windows 10, driver: '551.23'}",
     [("os", {"family": "windows", "name": "Windows 10"}), ("driver", {"vendor": "nvidia", "version": "551.23"})]),
    ("driver: unknown\ngpu: null\ntorch:", []),
]  # fmt: skip


@pytest.mark.parametrize(("text", "facts"), LOOSE, ids=[text for text, _ in LOOSE])
def test_loose_lines(text: str, facts: list[tuple[str, dict[str, object]]]) -> None:
    reading = read(text)
    assert plain(reading.facts) == facts
    assert reading.not_understood == []


NOT_UNDERSTOOD = [
    ("driver: none", "driver: none"),
    ('driver: ">=570"', "driver: >=570"),
    ("driver: 12.4", "driver: 12.4"),
    ("gpu: cuda:0", "gpu: cuda:0"),
    ("gpu: yes", "gpu: yes"),
    ("python: two or three", "python: two or three"),
    ("hangs: no", "hangs: no"),
    ("favourite colour: blue", "favourite colour: blue"),
    ("cpu_cores: 4 or 8", "cpu_cores: 4 or 8"),
    ("arch: sparc", "arch: sparc"),
]


@pytest.mark.parametrize(("text", "listed"), NOT_UNDERSTOOD, ids=[text for text, _ in NOT_UNDERSTOOD])
def test_what_is_not_understood_is_kept_and_listed(text: str, listed: str) -> None:
    reading = read(text)
    assert reading.not_understood == [f"facts.yaml:1: {listed}"]
    assert [f.type for f in reading.facts] == ["stated"]


def test_an_attribute_of_unequal_gpus_belongs_to_none_of_them() -> None:
    reading = read("gpus: [RTX 5090, RTX 4090]\ncc: 8.9\n")
    assert plain(reading.facts) == [
        gpu("RTX 5090"),
        gpu("RTX 4090", 1),
        ("stated", {"key": "cc", "value": "8.9"}),
    ]
    assert reading.not_understood == ["facts.yaml:2: cc: 8.9"]


def test_provenance_names_the_lines_that_add_fields() -> None:
    (fact,) = read("driver: '470.76'\nnvidia_smi_cuda: '11.3'\n").facts
    assert fact.provenance == (
        Provenance("user", "facts.yaml", 1, "facts file"),
        Provenance("user", "facts.yaml", 2, "facts file", ("cuda_max",)),
    )


def test_what_contradicts_itself_stays_apart() -> None:
    assert plain(read("driver: '470.76'\nhost driver: '535.54'\n").facts) == [
        ("driver", {"vendor": "nvidia", "version": "470.76"}),
        ("driver", {"vendor": "nvidia", "version": "535.54"}),
    ]


def test_free_text_is_handed_on() -> None:
    reading = read("error: 'RuntimeError: something odd'\n")
    assert reading.passages == (Passage(1, "RuntimeError: something odd"),)


def test_sentences_without_keys() -> None:
    reading = read("- After suspend it fails for every program\n- export NCCL_DEBUG=INFO\n- hello\n")
    assert plain(reading.facts) == [
        ("env_var", {"name": "NCCL_DEBUG", "value": "INFO"}),
        said("after_suspend", "After suspend"),
        said("all_programs_fail", "fails for every program"),
    ]
    assert reading.not_understood == ["facts.yaml:3: hello"]


def test_secrets_are_not_kept() -> None:
    reading = read("hf_token: hf_abc\nenv: {AWS_SECRET: s3cret, NCCL_DEBUG: INFO}\nlogin password: x y z\n")
    assert plain(reading.facts) == [("env_var", {"name": "NCCL_DEBUG", "value": "INFO"})]
    assert reading.not_understood == [
        "facts.yaml:1: hf_token: (not kept)",
        "facts.yaml:2: env: AWS_SECRET (not kept)",
        "facts.yaml:3: login password: (not kept)",
    ]
    assert reading.passages == ()


def test_utf16_as_powershell_writes_it() -> None:
    assert plain(read("torch: 2.1.0\r\n".encode("utf-16")).facts) == [("torch", {"version": "2.1.0"})]


# --- hostile ---------------------------------------------------------------------------------------------------------


def _laughs() -> str:
    lines = ["a0: &a0 [x, x]"] + [f"a{i}: &a{i} [*a{i - 1}, *a{i - 1}]" for i in range(1, 30)]
    return "\n".join(lines)


HOSTILE = [
    ("aliases", _laughs().encode(), "facts.yaml:2: YAML aliases (*name) are not read in facts files"),
    ("too large", b"a: " + b"x" * (10 * 1024 * 1024), "facts.yaml: larger than 4 MiB"),
    ("nul", b"gpu: a\n\0\1\2", "facts.yaml:2: not text: it holds NUL characters"),
    ("binary", bytes(range(128, 256)) * 20, "facts.yaml: neither UTF-8 nor UTF-16 text"),
    ("many values", b"- a\n" * 200_000, "facts.yaml:99999: more than 50000 values"),
    (
        "deep blocks",
        b"".join(b" " * i + b"a:\n" for i in range(60)),
        "facts.yaml:41: nested deeper than 40 levels\nfacts.yaml:42: nested deeper than 40 levels",
    ),
    (
        "no yaml",
        b"gpu: [1\ndriver: 2",
        'facts.yaml:2: not YAML: a "[" or "{" that is not closed, or a missing comma in it',
    ),
    ("twice", b"gpu: T4\ngpu: A10\n", "facts.yaml:2: gpu: given twice"),
]


@pytest.mark.parametrize(("data", "message"), [h[1:] for h in HOSTILE], ids=[h[0] for h in HOSTILE])
def test_hostile_files_give_one_clear_error_soon(data: bytes, message: str) -> None:
    begun = time.monotonic()
    assert error(data) == message
    assert time.monotonic() - begun < 5


def test_deep_flow_is_refused() -> None:
    assert error(b"[" * 100_000).startswith("facts.yaml:")


@pytest.mark.parametrize("filler", ["x", " ", "1 ", "a, ", "8x ", "=", "A_B="])
def test_long_values_cost_little(filler: str) -> None:
    long = filler * (600_000 // len(filler))
    begun = time.monotonic()
    read(json.dumps({"gpu": long, "driver": long, "os": long, "note": long, "env": [long]}))
    assert time.monotonic() - begun < 5


# --- the alias file --------------------------------------------------------------------------------------------------


def test_faults_of_an_alias_file(tmp_path: Path) -> None:
    path = tmp_path / "aliases.yaml"
    path.write_text(
        """\
env_prefixes: []
distros: {}
packages: []
sections: []
aliases:
  - {keys: [a], as: versoin, gives: {torch: {version: $value}}}
  - {keys: [b, A], as: version, gives: {torch: {verson: $value}}}
  - {keys: [c], as: version, gives: {torch: {version: $valu}}}
  - {keys: [d], as: version, gives: {driver: {vendor: nvida, version: $value}}}
  - {keys: [e], gives: {}, like: x}
  - {as: version, gives: {torch: {version: $value}}}
""",
        encoding="utf-8",
    )
    problems = Problems()
    assert load_aliases(path, VOCABULARY, problems) is None
    assert [str(p) for p in sorted(problems.found)] == [
        'aliases.yaml:6: as: unknown converter "versoin"; did you mean "version"?',
        "aliases.yaml:7: A: already stands in line 6",
        'aliases.yaml:7: torch.verson: unknown field "verson" of torch; did you mean "version"?',
        'aliases.yaml:8: torch.version: there is no output "valu"; did you mean "value"?',
        'aliases.yaml:9: driver.vendor: "vendor" must be one of nvidia, amd, intel; did you mean "nvidia"?',
        "aliases.yaml:10: an alias needs `keys`, `as` and `gives`",
        "aliases.yaml:10: like: unknown option",
        "aliases.yaml:11: keys: is missing",
    ]
