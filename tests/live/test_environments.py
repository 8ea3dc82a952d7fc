"""Which Python environments are found and which is judged, over real environment folders; none of them is started."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
import sys
import venv
from collections.abc import Mapping
from pathlib import Path

import gpurules
import pytest
from gpurules import pipeline
from gpurules.facts import Fact, Provenance, Scalar
from gpurules.probes.live.env_files import contents, python_in
from gpurules.probes.live.env_places import of_conda, of_kernels, of_projects
from gpurules.probes.live.interpreters import probe_environments, target
from gpurules.probes.live.source import Machine, ProbeError
from gpurules.probes.runner import SystemRunner
from gpurules.report.environments_text import render_environments

pytestmark = pytest.mark.skipif(os.name != "posix", reason="the environments are made of symbolic links")

PACKAGES = Path("lib", "python{}.{}".format(*sys.version_info[:2]), "site-packages")
TORCH = "__version__ = '{}'\ncuda: Optional[str] = {}\n"
# gpurules as uvx runs it: in an environment that is never judged.
NOTHING = "/nonexistent/uv/archive-v0/x/bin/python"


def made(prefix: Path, torch: str | None = None, cuda: str | None = None) -> str:
    """A virtual environment as `python -m venv` makes it; its interpreter."""
    venv.create(prefix, symlinks=True, with_pip=False)
    if torch is not None:
        (prefix / PACKAGES / "torch").mkdir(parents=True)
        (prefix / PACKAGES / "torch" / "version.py").write_text(TORCH.format(torch, repr(cuda)))
    return os.fspath(prefix / "bin" / "python")


def conda(prefix: Path, python: str = "3.11.9") -> str:
    (prefix / "conda-meta").mkdir(parents=True)
    (prefix / "conda-meta" / f"python-{python}-h955ad1f_0.json").write_text("{}")
    (prefix / "bin").mkdir()
    (prefix / "bin" / "python").symlink_to(sys.executable)
    return os.fspath(prefix / "bin" / "python")


def kernel(folder: Path, name: str, argv: list[str], shown: str = "Lab", language: str = "python") -> None:
    (folder / name).mkdir(parents=True)
    spec = {"argv": [*argv, "-m", "ipykernel_launcher"], "display_name": shown, "language": language}
    (folder / name / "kernel.json").write_text(json.dumps(spec))


def machine(
    environ: Mapping[str, str],
    cwd: Path | None = None,
    *,
    python: str | None = None,
    own: str | None = None,
    system: str = "linux",
) -> Machine:
    executable = own or NOTHING
    prefix = os.fspath(Path(executable).parent.parent)
    return Machine(
        Path("/"), SystemRunner(environ), environ, system, python, cwd=cwd, prefix=prefix, executable=executable
    )


def listed(machine: Machine) -> dict[Scalar, Scalar]:
    facts = [fact.fields for fact in probe_environments(machine) if fact.type == "python_environment"]
    return {fact["executable"]: fact["found_by"] for fact in facts}


# --- the choice ------------------------------------------------------------------------------------------------------


def test_named_before_active_before_the_rest(tmp_path: Path) -> None:
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / "pyproject.toml").write_text("")
    project = made(tmp_path / "p" / ".venv", "2.8.0+cu128", "12.8")
    active, named = made(tmp_path / "active"), made(tmp_path / "named")
    environ = {"VIRTUAL_ENV": os.fspath(tmp_path / "active")}
    assert target(machine(environ, tmp_path / "p", python=named)) == named
    assert target(machine(environ, tmp_path / "p", python=os.fspath(tmp_path / "named"))) == named
    assert target(machine(environ, tmp_path / "p")) == active
    assert target(machine({}, tmp_path / "p")) == project


def test_of_two_active_ones_the_first_on_the_path(tmp_path: Path) -> None:
    first, second = made(tmp_path / "venv"), conda(tmp_path / "conda")
    environ = {"VIRTUAL_ENV": os.fspath(tmp_path / "venv"), "CONDA_PREFIX": os.fspath(tmp_path / "conda")}
    assert target(machine({**environ, "PATH": f"{Path(second).parent}:{Path(first).parent}"})) == second
    assert target(machine({**environ, "PATH": f"{Path(first).parent}:{Path(second).parent}"})) == first


def test_conda_base_is_in_every_shell_and_so_no_choice(tmp_path: Path) -> None:
    base = conda(tmp_path / "conda")
    project = made(tmp_path / "p" / ".venv", "2.8.0+cu128", "12.8")
    environ = {"CONDA_PREFIX": os.fspath(tmp_path / "conda"), "PATH": os.fspath(Path(base).parent)}
    assert target(machine(environ, tmp_path / "p")) == base
    assert target(machine({**environ, "CONDA_DEFAULT_ENV": "base"}, tmp_path / "p")) == project
    assert target(machine({**environ, "CONDA_DEFAULT_ENV": "base"}, tmp_path)) == base


def test_the_one_with_torch_where_the_shell_names_none(tmp_path: Path) -> None:
    empty = made(tmp_path / "p" / ".venv")
    own = made(tmp_path / "own", "2.8.0+cpu")
    on_path = made(tmp_path / "path", "2.8.0+cu128", "12.8")
    environ = {"PATH": os.fspath(Path(on_path).parent)}
    assert target(machine(environ, tmp_path / "p", own=own)) == own
    assert target(machine(environ, tmp_path / "p", own=made(tmp_path / "bare"))) == on_path
    assert target(machine({}, tmp_path / "p", own=made(tmp_path / "bare2"))) == empty


@pytest.mark.parametrize(
    ("folder", "mark"),
    [
        (".local/share/pipx/venvs/gpurules", "pipx_metadata.json"),
        (".local/share/uv/tools/gpurules", "uv-receipt.toml"),
        (".cache/uv/archive-v0/Zq3xkT", None),
    ],
)
def test_what_a_tool_made_for_gpurules_is_no_target(tmp_path: Path, folder: str, mark: str | None) -> None:
    own = made(tmp_path / folder)
    if mark:
        (tmp_path / folder / mark).write_text("{}" if mark.endswith("json") else "[tool]\n")
    on_path = made(tmp_path / "path")
    # uvx puts its own folder first on PATH and may name it as active.
    environ = {"PATH": f"{Path(own).parent}:{Path(on_path).parent}", "VIRTUAL_ENV": os.fspath(tmp_path / folder)}
    found = machine(environ, tmp_path, own=own)
    assert listed(found) == {on_path: "path"}
    assert target(found) == on_path
    with pytest.raises(ProbeError, match="--python PATH names one"):
        target(machine({"PATH": os.fspath(Path(own).parent)}, tmp_path, own=own))


def test_installed_by_a_tool_it_judges_the_project(tmp_path: Path) -> None:
    """gpurules run as pipx lays it out: the whole command in a process of that environment."""
    prefix = tmp_path / "pipx" / "venvs" / "gpurules"
    made(prefix)
    (prefix / "pipx_metadata.json").write_text("{}")
    (prefix / PACKAGES / "gpurules").symlink_to(Path(gpurules.__file__).parent)
    paths = [p for p in sys.path if p.endswith("site-packages")]
    (prefix / PACKAGES / "gpurules.pth").write_text("\n".join(paths) + "\n")
    project = made(tmp_path / "p" / ".venv", "2.8.0+cu128", "12.8")
    script = "import sys\nfrom gpurules.cli import main\nmain()\n"
    done = subprocess.run(
        [os.fspath(prefix / "bin" / "python"), "-c", script, "probe", "--environments", "--json", "--no-redact"],
        cwd=tmp_path / "p", env={"PATH": "/nonexistent"}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    facts = [fact["python_environment"] for fact in json.loads(done.stdout)["facts"]]
    assert [(fact["executable"], fact["chosen"], fact["torch"]) for fact in facts] == [(project, True, "2.8.0+cu128")]


# --- the places ------------------------------------------------------------------------------------------------------


def test_folders_of_a_project_up_to_its_root(tmp_path: Path) -> None:
    (tmp_path / ".venv").mkdir()
    root, inside = tmp_path / "p", tmp_path / "p" / "src" / "deep"
    inside.mkdir(parents=True)
    (root / "uv.lock").write_text("")
    wanted = made(root / ".venv")
    made(tmp_path / ".venv")
    assert list(of_projects(machine({}, inside))) == [wanted]


def test_uv_project_environment(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text("")
    wanted = made(tmp_path / "elsewhere")
    assert list(of_projects(machine({"UV_PROJECT_ENVIRONMENT": "elsewhere"}, tmp_path))) == [wanted]
    assert list(of_projects(machine({"UV_PROJECT_ENVIRONMENT": os.path.dirname(os.path.dirname(wanted))}, tmp_path))) \
        == [wanted]  # fmt: skip


@pytest.mark.parametrize(
    ("system", "cache", "environ"),
    [
        ("linux", "home/.cache/pypoetry/virtualenvs", {}),
        ("macos", "home/Library/Caches/pypoetry/virtualenvs", {}),
        ("linux", "cache/virtualenvs", {"POETRY_CACHE_DIR": "{}/cache"}),
        ("linux", "envs", {"POETRY_VIRTUALENVS_PATH": "{}/envs"}),
    ],
)
def test_poetry(tmp_path: Path, system: str, cache: str, environ: dict[str, str]) -> None:
    project = tmp_path / "p"
    project.mkdir()
    (project / "pyproject.toml").write_text('[tool.poetry]\nname = "my-app"\n')
    digest = base64.urlsafe_b64encode(hashlib.sha256(os.fsencode(project.resolve())).digest()).decode()[:8]
    wanted = made(tmp_path / cache / f"my-app-{digest}-py3.11")
    made(tmp_path / cache / "my-app-AAAAAAAA-py3.11")
    variables = {"HOME": f"{tmp_path}/home", **{k: v.format(tmp_path) for k, v in environ.items()}}
    assert list(of_projects(machine(variables, project, system=system))) == [wanted]


def test_pipenv(tmp_path: Path) -> None:
    project = tmp_path / "p"
    project.mkdir()
    (project / "Pipfile").write_text("")
    home = tmp_path / ".local" / "share" / "virtualenvs"
    wanted, other = made(home / "p-Xy12Ab_c"), made(home / "q-Xy12Ab_d")
    (home / "p-Xy12Ab_c" / ".project").write_text(f"{project}\n")
    (home / "q-Xy12Ab_d" / ".project").write_text(f"{tmp_path}\n")
    assert list(of_projects(machine({"HOME": os.fspath(tmp_path)}, project))) == [wanted]
    (project / ".venv").write_text("q-Xy12Ab_d\n")
    assert list(of_projects(machine({"HOME": os.fspath(tmp_path)}, project))) == [other, wanted]
    (kind,) = {
        fact.get("kind")
        for fact in probe_environments(machine({"HOME": os.fspath(tmp_path)}, project))
        if fact.get("executable") == wanted
    }
    assert kind == "pipenv"


def test_environments_of_others_are_not_started(tmp_path: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("needs an administrator to give a folder away")
    made(tmp_path / ".venv")
    os.chown(tmp_path / ".venv", 4242, 4242)
    assert list(of_projects(machine({}, tmp_path))) == []


def test_conda_and_mamba(tmp_path: Path) -> None:
    first, second = conda(tmp_path / "one"), conda(tmp_path / "mamba" / "envs" / "two")
    (tmp_path / ".conda").mkdir()
    (tmp_path / ".conda" / "environments.txt").write_text(f"{tmp_path}/one\n{tmp_path}/gone\n")
    environ = {"HOME": os.fspath(tmp_path), "MAMBA_ROOT_PREFIX": os.fspath(tmp_path / "mamba")}
    assert list(of_conda(machine(environ))) == [(first, "one"), (second, "two")]


@pytest.mark.parametrize(
    ("system", "folder", "variable"),
    [
        ("linux", ".local/share/jupyter/kernels", "HOME"),
        ("macos", "Library/Jupyter/kernels", "HOME"),
        ("windows", "jupyter/kernels", "APPDATA"),
        ("linux", "kernels", "JUPYTER_DATA_DIR"),
        ("linux", "kernels", "JUPYTER_PATH"),
    ],
)
def test_kernels(tmp_path: Path, system: str, folder: str, variable: str) -> None:
    kernel(tmp_path / folder, "lab", ["/opt/lab/bin/python"])
    kernel(tmp_path / folder, "r", ["/usr/bin/R"], language="R")
    kernel(tmp_path / folder, "bare", ["python3"])
    (tmp_path / folder / "broken").mkdir()
    (tmp_path / folder / "broken" / "kernel.json").write_text("[" * 100_000)
    assert list(of_kernels(machine({variable: os.fspath(tmp_path)}, system=system))) == [("/opt/lab/bin/python", "Lab")]


def test_the_kernel_that_names_no_interpreter_is_that_of_jupyter(tmp_path: Path) -> None:
    lab = made(tmp_path / "lab")
    (tmp_path / "lab" / "bin" / "jupyter").write_text("")
    kernel(tmp_path / "lab" / "share" / "jupyter" / "kernels", "python3", ["python"], "Python 3 (ipykernel)")
    found = list(of_kernels(machine({"PATH": os.fspath(tmp_path / "lab" / "bin")})))
    assert found == [(lab, "Python 3 (ipykernel)")]


# --- the files -------------------------------------------------------------------------------------------------------


def test_layout_of_windows(tmp_path: Path) -> None:
    (tmp_path / "Scripts").mkdir()
    (tmp_path / "Scripts" / "python.exe").write_text("")
    (tmp_path / "pyvenv.cfg").write_text("home = C:\\Python312\nversion_info = 3.12.4.final.0\nuv = 0.9.5\n")
    (tmp_path / "Lib" / "site-packages" / "torch").mkdir(parents=True)
    (tmp_path / "Lib" / "site-packages" / "torch" / "version.py").write_text(TORCH.format("2.8.0+cu128", "'12.8'"))
    executable = python_in(tmp_path, "windows")
    assert executable == os.fspath(tmp_path / "Scripts" / "python.exe")
    read = contents(executable, "windows", None)
    assert (read.kind, read.version, read.torch_present, read.torch["cuda"]) == ("uv", "3.12.4", True, "12.8")


def test_layout_of_conda_and_of_an_environment_that_borrows(tmp_path: Path) -> None:
    read = contents(conda(tmp_path / "conda"), "linux", None)
    assert (read.kind, read.version, read.torch_present) == ("conda", "3.11.9", False)
    borrowing = made(tmp_path / "borrows")
    config = tmp_path / "borrows" / "pyvenv.cfg"
    config.write_text(config.read_text().replace("packages = false", "packages = true"))
    assert contents(borrowing, "linux", None).torch_present is None


def test_interpreter_of_the_system_and_a_script_that_stands_for_one(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3.11").write_text("")
    (tmp_path / "bin" / "python").symlink_to("python3.11")
    (tmp_path / "bin" / "shim").write_text("")
    packages = tmp_path / "home" / ".local" / "lib" / "python3.11" / "site-packages" / "torch"
    packages.mkdir(parents=True)
    (packages / "version.py").write_text(TORCH.format("2.5.1+cpu", None))
    read = contents(os.fspath(tmp_path / "bin" / "python"), "linux", tmp_path / "home")
    assert (read.kind, read.version, read.torch["version"]) == ("unknown", "3.11", "2.5.1+cpu")
    assert contents(os.fspath(tmp_path / "bin" / "shim"), "linux", None).torch_present is None


# --- what is said ----------------------------------------------------------------------------------------------------


def test_facts_of_an_environment_found_twice(tmp_path: Path) -> None:
    active = made(tmp_path / "env", "2.8.0+cu128", "12.8")
    kernel(tmp_path / ".local/share/jupyter/kernels", "lab", [f"{tmp_path}/env/bin/python3"])
    environ = {"HOME": os.fspath(tmp_path), "VIRTUAL_ENV": os.fspath(tmp_path / "env")}
    facts = [f for f in probe_environments(machine(environ, own=active)) if f.type == "python_environment"]
    assert [dict(fact.fields) for fact in facts] == [
        {
            "executable": active, "kind": "venv", "kernel": "Lab", "found_by": "active", "chosen": True,
            "version": "{}.{}.{}".format(*sys.version_info[:3]), "torch_present": True, "torch": "2.8.0+cu128",
            "cuda": "12.8", "cuda_built": True,
        }
    ]  # fmt: skip


def environment(executable: str, **fields: Scalar) -> Fact:
    known = {"executable": executable, "kind": "venv", "found_by": "active", "chosen": False, **fields}
    return Fact("python_environment", known, (Provenance("probe", "python_environments"),))


def test_the_list() -> None:
    facts = [
        environment("/a/python", chosen=True, version="3.11.9", torch_present=False),
        environment("/b/python", kind="conda", name="ml", found_by="kernel", kernel="L\x1b[31m", torch="2.8.0+cu128"),
    ]
    assert render_environments(facts) == (
        "* /a/python\n    venv 3.11.9 · no torch · active in this shell\n"
        '  /b/python\n    conda ml · torch 2.8.0+cu128 · of a notebook kernel · notebook kernel "L"\n'
        "\n* is judged; --python PATH chooses another.\n"
    )
    assert render_environments([], lang="zh") == "未找到 Python 环境；用 --python 路径 指定。\n"


def test_the_report_says_where_the_fitting_torch_is() -> None:
    probe = (Provenance("probe", "python"),)
    given = [
        environment("/usr/bin/python3", found_by="path", chosen=True, torch_present=False),
        environment("/srv/lab/bin/python", found_by="kernel", kernel="Lab", torch_present=True, torch="2.8.0+cu128",
                    cuda="12.8", cuda_built=True),
        Fact("gpu", {"index": 0, "name": "NVIDIA GeForce RTX 4090"}, probe),
        Fact("driver", {"vendor": "nvidia", "version": "580.95.05"}, probe),
        Fact("os", {"family": "linux", "machine": "x86_64"}, probe),
        *(Fact("coverage", {"domain": domain, "complete": True}, probe) for domain in ("packages", "torch")),
    ]  # fmt: skip
    report = pipeline.diagnose(pipeline.Inputs(given=given))
    assert [(f.cause, f.subject) for f in report.findings] == [("torch_in_another_environment", "/srv/lab/bin/python")]
    cure = next(fix for fix in report.fixes if fix.kind == "cure")
    assert report.findings[0].title == (
        'Your notebook kernel "Lab" uses /srv/lab/bin/python, your shell /usr/bin/python3'
    )
    assert (cure.title, cure.verified) == ("Run the program with /srv/lab/bin/python", "simulated")
    assert [step.command for step in cure.steps] == [None]
    assert report.notes == (
        "Judged was /usr/bin/python3 (first on PATH); 1 more: gpurules probe --environments lists them, "
        "--python PATH chooses",
    )
