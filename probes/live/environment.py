"""Live probe of environment variables: an allow-list, so that nothing private is ever read.

May live here: which variables may be told. Must not: what a value means.
"""

from __future__ import annotations

import re

from ...facts import Fact
from .source import Machine, Stating

_ENVIRONMENT = Stating("environment")

_NAMES = frozenset(
    {
        "CONDA_DEFAULT_ENV", "CONDA_PREFIX", "GLOO_SOCKET_IFNAME", "GPU_DEVICE_ORDINAL", "HCC_AMDGPU_TARGET",
        "LD_LIBRARY_PATH", "LD_PRELOAD", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "MAX_JOBS", "PIP_EXTRA_INDEX_URL",
        "PIP_FIND_LINKS", "PIP_INDEX_URL", "PYTHONHOME", "PYTHONNOUSERSITE", "PYTHONPATH", "RANK", "ROCM_HOME",
        "ROCM_PATH", "SLURM_GPUS_ON_NODE", "SLURM_JOB_GPUS", "SLURM_JOB_NUM_NODES", "SLURM_NTASKS", "TP_SOCKET_IFNAME",
        "UV_DEFAULT_INDEX", "UV_EXTRA_INDEX_URL", "UV_INDEX", "UV_INDEX_URL", "UV_TORCH_BACKEND", "VIRTUAL_ENV",
        "WORLD_SIZE", "WSL_DISTRO_NAME", "ZE_AFFINITY_MASK",
    }
)  # fmt: skip
_PREFIXES = (
    "AMD_", "CUBLAS", "CUDA_", "CUDNN_", "HIP_", "HSA_", "KMP_", "MIOPEN_", "MKL_", "NCCL_", "NUMEXPR_", "NVIDIA_",
    "OMP_", "ONEAPI_", "OPENBLAS_", "PYTORCH_", "RCCL_", "ROCR_", "SYCL_", "TORCHINDUCTOR_", "TORCH_", "TRITON_",
    "UCX_", "VLLM_", "XFORMERS_",
)  # fmt: skip
# Never told, even under a prefix that may be told.
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH")
_URL_CREDENTIALS = re.compile(r"://[^/@ ]+@")
_MAX_VALUE = 4096


def probe_environment(machine: Machine) -> list[Fact]:
    """The variables of the allow-list that are set."""
    facts = [
        _ENVIRONMENT.fact("env_var", "environment", name=name, value=_shown(machine.environ[name]))
        for name in sorted(machine.environ)
        if (name in _NAMES or name.startswith(_PREFIXES)) and not _SECRET.search(name)
    ]
    return [*facts, _ENVIRONMENT.coverage("environment", "environment")]


def _shown(value: str) -> str:
    """A value without passwords of package indexes, and of bounded length."""
    return _URL_CREDENTIALS.sub("://<credentials>@", value)[:_MAX_VALUE]
