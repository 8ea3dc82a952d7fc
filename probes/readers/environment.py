"""Reader of environment variables: env, export, docker -e, Dockerfiles, os.environ, mpirun -x.

May live here: the ways in which a variable is written as set. Must not: what a variable means; NCCL's own lines.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from ...facts import Fact
from .common import FactList
from .line import Line

READER = "environment"

# Only variables that say something of GPUs and distributed runs; everything else in a paste is none of our business.
PREFIXES = (
    "CUDA_", "NVIDIA_", "NCCL_", "TORCH", "PYTORCH_", "HIP_", "ROCR_", "ROCM_", "HSA_", "GPU_DEVICE_ORDINAL",
    "LD_LIBRARY_PATH", "LD_PRELOAD", "OMP_", "MKL_", "GLOO_", "TRITON_", "VLLM_", "MASTER_", "RANK", "WORLD_SIZE",
    "LOCAL_RANK",
    "LOCAL_WORLD_SIZE", "XLA_", "UCX_", "FI_", "MIOPEN_", "AMD_", "ONEAPI_", "ZE_", "MAX_JOBS", "FLASH_ATTENTION_",
    "SLURM_", "DS_", "BNB_",
)  # fmt: skip

_NAME = r"[A-Z][A-Z0-9_]{2,60}"
_QUOTED = r"(?:\"[^\"]*\"|'[^']*'|[^ \t\"';&|)]*)"
_SET = re.compile(
    r"(?:^|[ \t$#>;(&])(?:export|declare -x|setx|SET|set|ENV|setenv)[ \t]+(?P<rest>" + _NAME + r"[= \t].*)$"
)
_POWERSHELL = re.compile(r"\$[Ee][Nn][Vv]:(?P<name>" + _NAME + r")[ \t]{0,4}=[ \t]{0,4}(?P<value>" + _QUOTED + ")")
_PAIR = re.compile(r"[ \t]{0,4}(?P<name>" + _NAME + r")=(?P<value>" + _QUOTED + r")(?P<end>$|[ \t;&|])")
_SPACED = re.compile(r"(?P<name>" + _NAME + r")[ \t]+(?P<value>" + _QUOTED + r")$")
_WHOLE = re.compile(r"[ \t]{0,8}(?:- )?(?P<name>" + _NAME + r")=(?P<value>.*)$")
_PYTHON = re.compile(
    r"os\.(?:environ\[[\"'](?P<name>"
    + _NAME
    + r")[\"']\][ \t]{0,4}=[ \t]{0,4}|(?:environ\.setdefault|putenv)\([\"'](?P<call>"
    + _NAME
    + r")[\"'],[ \t]{0,4})(?:str\()?(?P<value>\"[^\"]*\"|'[^']*'|[0-9]{1,12})"
)
_OPTION = re.compile(
    r"[ \t](?:-e|--env|-x|-genv)(?:[ \t]+|=)(?P<quote>[\"']?)(?P<name>" + _NAME + r")=(?P<value>" + _QUOTED + ")"
)
_ECHO = re.compile(r"(?:^|[$#>%][ \t]{0,4})(?:echo|printenv)[ \t]+\"?\$?\{?(?P<name>" + _NAME + r")\}?\"?$")
_COMMANDS = frozenset(
    {
        "python", "python3", "torchrun", "accelerate", "deepspeed", "mpirun", "mpiexec", "srun", "vllm", "bash", "sh",
        "sudo", "nohup", "uv", "uvx", "poetry", "pip", "conda", "docker", "numactl", "time", "env", "exec", "make",
        "cmake", "ninja", "llamafactory-cli", "axolotl", "ollama", "gdb", "nsys", "ncu", "lm_eval", "swift", "trl",
        "xtuner", "colossalai", "horovodrun", "timeout",
    }
)  # fmt: skip
_MARKS = ("=", "ENV ", "echo", "env ", "environ", "putenv")
# A hint that was wrapped before the variable says what to try, not what is set.
_HINT_ENDS = ("passing", "setting", "set", "with", "or", "try", "use", "using", "export")


def read(lines: Sequence[Line], source: str) -> list[Fact]:
    """Facts of every variable that the text shows as set."""
    out = FactList(source, READER)
    previous = ""
    echoed: str | None = None
    for line in lines:
        text = line.text
        value = text.strip()
        # An empty variable prints an empty line, which pastes lose; what follows then is no value.
        if echoed is not None and value and " " not in value:
            out.add("env_var", {"name": echoed, "value": value}, line)
            echoed = None
        elif any(mark in text for mark in _MARKS):
            for name, given in _assignments(text, previous):
                if name.startswith(PREFIXES):
                    out.add("env_var", {"name": name, "value": given}, line)
            match = _ECHO.search(text)
            echoed = match.group("name") if match and match.group("name").startswith(PREFIXES) else None
        else:
            echoed = None
        previous = text
    return out.facts


def _assignments(text: str, previous: str) -> Iterator[tuple[str, str]]:
    for pattern in (_POWERSHELL, _OPTION):
        # `declare -x` is no option of a launcher.
        for found in pattern.finditer(text) if "declare" not in text else ():
            yield found.group("name"), _unquote(found.group("value"))
    for found in _PYTHON.finditer(text):
        yield found.group("name") or found.group("call"), _unquote(found.group("value"))
    if match := _SET.search(text):
        yield from _after_set(match.group("rest"))
    elif (match := _WHOLE.match(text)) and not previous.endswith(_HINT_ENDS):
        yield from _bare(match.group("name"), match.group("value"), text)


def _after_set(rest: str) -> Iterator[tuple[str, str]]:
    """`A=b C=d`, `A="b c"`, or Dockerfile's and csh's `A b`."""
    pairs = list(_pairs(rest)[0])
    if pairs:
        yield from pairs
    elif match := _SPACED.match(rest):
        yield match.group("name"), _unquote(match.group("value"))


def _bare(name: str, value: str, text: str) -> Iterator[tuple[str, str]]:
    """A line of `env` (the value is the whole rest), or assignments before a command (each ends at a blank)."""
    pairs, rest = _pairs(text.strip().removeprefix("- "))
    words = rest.split(None, 1)
    command = words[0] if words else ""
    if command.rpartition("/")[2] in _COMMANDS or command.startswith("./"):
        yield from pairs
    else:
        yield name, _unquote(value.strip())


def _pairs(text: str) -> tuple[list[tuple[str, str]], str]:
    """Leading `NAME=value` words, and what follows them."""
    pairs: list[tuple[str, str]] = []
    position = 0
    while match := _PAIR.match(text, position):
        pairs.append((match.group("name"), _unquote(match.group("value"))))
        position = match.end()
    return pairs, text[position:].strip()


def _unquote(value: str) -> str:
    value = value.strip()
    if len(value) > 1 and value[0] == value[-1] and value[0] in "\"'":
        return value[1:-1]
    return value
