"""Package lists of pip, uv and conda; prose and other tables give nothing."""

from __future__ import annotations

import pytest
from gpurules.probes.readers.packages import read

from .support import facts_of, fields_of

PIP_LIST = """
Package            Version      Build Editable project location
------------------ ------------ ----- -------------------------
filelock           3.18.0
Jinja2             3.1.6
mpmath             1.3.0
my_tool            0.1.dev3           /srv/my tool
networkx           3.4.2
nvidia-nccl-cu12   2.27.3
sympy              1.14.0
torch              2.8.0+cu128
triton             3.4.0        1
typing_extensions  4.14.1
"""


def packages(text: str) -> list[dict[str, object]]:
    return [dict(fields) for fields in fields_of(facts_of(read, text), "package")]


def complete(text: str) -> list[object]:
    return [fields["complete"] for fields in fields_of(facts_of(read, text), "coverage")]


def test_pip_list() -> None:
    found = packages(PIP_LIST)
    assert len(found) == 10
    assert found[1] == {"name": "jinja2", "version": "3.1.6", "manager": "pip"}
    assert found[3] == {"name": "my-tool", "version": "0.1.dev3", "manager": "pip", "location": "/srv/my tool"}
    assert found[8] == {"name": "triton", "version": "3.4.0", "manager": "pip", "build": "1"}
    assert complete(PIP_LIST) == [True]


@pytest.mark.parametrize(
    "cut",
    [
        "\n".join(PIP_LIST.split("\n")[:7]),  # the tail is missing
        "\n".join(PIP_LIST.split("\n")[3:]),  # the header is missing
        PIP_LIST.replace("typing_extensions  4.14.1", "..."),
        PIP_LIST.replace("typing_extensions  4.14.1", "urllib3            2.5.0"),  # torch without what it needs
    ],
)
def test_partial_lists_cover_nothing(cut: str) -> None:
    assert complete(cut) == [False]


def test_freeze() -> None:
    assert packages(
        """
        torch==2.8.0+cu128
        xformers @ https://download.example.org/cu128/xformers-0.0.32.post1%2Bcu128-cp39-abi3-linux_x86_64.whl
        mytool @ file:///srv/mytool
        numpy==2.2.6 ; python_version >= "3.10"
        """
    ) == [
        {"name": "torch", "version": "2.8.0+cu128", "manager": "pip"},
        {"name": "xformers", "manager": "pip", "version": "0.0.32.post1+cu128"},
        {"name": "mytool", "manager": "pip", "location": "file:///srv/mytool"},
        {"name": "numpy", "version": "2.2.6", "manager": "pip"},
    ]


def test_conda_list() -> None:
    assert packages(
        """
        # packages in environment at /srv/x:
        #
        # Name                    Version                   Build  Channel
        numpy                     1.26.4          py311h64a7726_0    conda-forge
        pytorch                   2.5.1           py3.11_cuda12.4_cudnn9.1.0_0    pytorch
        flash-attn                2.6.3                    pypi_0    pypi
        wheel                     0.44.0                    <pip>
        _libgcc_mutex             0.1                        main
        """
    ) == [
        {"name": "numpy", "version": "1.26.4", "manager": "conda", "build": "py311h64a7726_0",
         "channel": "conda-forge"},
        {"name": "pytorch", "version": "2.5.1", "manager": "conda", "build": "py3.11_cuda12.4_cudnn9.1.0_0",
         "channel": "pytorch"},
        {"name": "flash-attn", "version": "2.6.3", "manager": "pip"},
        {"name": "wheel", "version": "0.44.0", "manager": "pip"},
        {"name": "-libgcc-mutex", "version": "0.1", "manager": "conda", "build": "main"},
    ]  # fmt: skip


def test_rows_without_a_header() -> None:
    assert packages("pytorch    2.6.0    cuda126_py312h1234567_201    conda-forge\n") == [
        {"name": "pytorch", "version": "2.6.0", "manager": "conda", "build": "cuda126_py312h1234567_201",
         "channel": "conda-forge"}
    ]  # fmt: skip
    assert packages("torch\t2.6.0\nunknown-thing  1.2\n") == [
        {"name": "torch", "version": "2.6.0", "manager": "pip"},
        {"name": "unknown-thing", "version": "1.2", "manager": "pip"},
    ]


def test_explicit_and_environment_files() -> None:
    assert packages(
        """
        https://conda.anaconda.org/conda-forge/linux-64/cuda-version-12.6-h7480c83_3.conda#abc123
        https://repo.anaconda.com/pkgs/main/linux-64/mkl_fft-1.3.8-py310h5eee18b_0.tar.bz2
        - pytorch=2.5.1=py3.11_cuda12.4_cudnn9.1.0_0
            - torchmetrics==1.4.0
        """
    ) == [
        {
            "name": "cuda-version",
            "version": "12.6",
            "manager": "conda",
            "build": "h7480c83_3",
            "channel": "conda-forge",
        },
        {"name": "mkl-fft", "version": "1.3.8", "manager": "conda", "build": "py310h5eee18b_0", "channel": "main"},
        {"name": "pytorch", "version": "2.5.1", "manager": "conda", "build": "py3.11_cuda12.4_cudnn9.1.0_0"},
        {"name": "torchmetrics", "version": "1.4.0", "manager": "pip"},
    ]


def test_pip_show() -> None:
    assert packages("Name: torch\nVersion: 2.8.0+cu128\nSummary: Tensors\n") == [
        {"name": "torch", "version": "2.8.0+cu128", "manager": "pip"}
    ]


@pytest.mark.parametrize(
    "text",
    [
        "I installed torch 2.8.0 yesterday and numpy 1.26.4 too.",
        "torch 2.8.0",  # one blank: a sentence begins like that
        "Python  3.10.11 (you have 3.10.8)",
        "ERROR: Could not find a version that satisfies the requirement torch==2.8.0+cu130",
        "pip install torch==2.8.0",
        "nvidia_uvm           1720320  0",
        "epoch    1.5    loss    0.3",
        "Model name:   Intel",
        "",
        "Package",
        "# packages in environment at /x:",
    ],
)
def test_no_package(text: str) -> None:
    assert facts_of(read, text) == []
