"""What an install puts on a machine: one name, all modules, all knowledge, and an entry point that starts."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
HOOKS = """
import sys, setuptools.build_meta as backend
print(getattr(backend, sys.argv[1])(sys.argv[2]))
"""

setuptools = pytest.importorskip("setuptools", minversion="77")


def build(hook: str, source: Path, target: Path) -> Path:
    """The wheel that pip would build, unpacked: pip calls the same hook."""
    done = subprocess.run(
        [sys.executable, "-c", HOOKS, hook, str(target)], cwd=source, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    unpacked = target / "site"
    with zipfile.ZipFile(target / done.stdout.splitlines()[-1]) as wheel:
        wheel.extractall(unpacked)
    return unpacked


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the checkout: a build leaves files behind, and tests run side by side."""
    copy = tmp_path_factory.mktemp("source") / "checkout"
    copy.mkdir()
    left_out = shutil.ignore_patterns(".*", "*.egg-info", "__pycache__")
    for entry in CHECKOUT.iterdir():
        if (entry / "__init__.py").is_file():  # a part of the package; not tests, docs or somebody's venv
            shutil.copytree(entry, copy / entry.name, ignore=left_out)
        elif entry.is_file():
            shutil.copy(entry, copy / entry.name)
    shutil.copytree(CHECKOUT / "docs" / "samples", copy / "docs" / "samples", ignore=left_out)
    return copy


@pytest.fixture(scope="module")
def wheel(source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("build_wheel", source, tmp_path_factory.mktemp("wheel"))


def test_a_wheel_holds_one_name(wheel: Path) -> None:
    names = {path.name for path in wheel.iterdir()}
    assert {name for name in names if not name.endswith(".dist-info")} == {"gpurules"}
    assert (wheel / "gpurules" / "py.typed").is_file()


def test_a_wheel_holds_every_module_and_all_knowledge_and_nothing_else(source: Path, wheel: Path) -> None:
    expected = {
        path.relative_to(source)
        for pattern in ("*.py", "knowledge/**/*.yaml", "py.typed")
        for path in source.rglob(pattern)
        if path.relative_to(source).parts[0] != "build"
    }
    package = wheel / "gpurules"
    assert {path.relative_to(package) for path in package.rglob("*") if path.is_file()} == expected


def test_a_wheel_carries_licence_and_entry_point(wheel: Path) -> None:
    (info,) = wheel.glob("*.dist-info")
    assert "Apache License" in (info / "licenses" / "LICENSE").read_text(encoding="utf-8")
    assert "gpurules = gpurules.cli:main" in (info / "entry_points.txt").read_text(encoding="utf-8")


def test_an_unpacked_wheel_starts_and_diagnoses(wheel: Path, tmp_path: Path) -> None:
    environ = {**os.environ, "PYTHONPATH": str(wheel), "XDG_CACHE_HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}

    def run(*args: str, stdin: str = "") -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "gpurules", *args]
        return subprocess.run(
            command, cwd=tmp_path, env=environ, input=stdin, capture_output=True, encoding="utf-8", timeout=60
        )

    assert run("--version").stdout == "gpurules 0.1.0\n"
    found = run("diagnose", "--report", "-", "--no-save", stdin="RuntimeError: No CUDA GPUs are available\n")
    assert (found.returncode, found.stderr) == (0, "")
    where = "import gpurules.knowledge.loader as loader; print(loader.FOLDER)"
    done = subprocess.run([sys.executable, "-c", where], cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert Path(done.stdout.strip()) == wheel / "gpurules" / "knowledge"


def test_an_editable_install_puts_one_name_on_the_path(source: Path, tmp_path: Path) -> None:
    """-S leaves out site-packages, where the package under test may be installed as well."""
    site_folder = build("build_editable", source, tmp_path)
    names = {path.name for path in site_folder.iterdir()}
    assert all(name.startswith("__editable__") or name.endswith(".dist-info") for name in names)
    look = (
        "import site, sys, importlib.util as u\n"
        f"site.addsitedir({str(site_folder)!r})\n"
        "import gpurules\n"
        "print(gpurules.__file__)\n"
        "print(*[n for n in ('cli', 'engine', 'facts', 'knowledge', 'probes', 'report') if u.find_spec(n)])"
    )
    done = subprocess.run([sys.executable, "-S", "-c", look], cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.stdout.splitlines() == [str(source / "__init__.py"), ""]


@pytest.mark.skipif(not (CHECKOUT / ".git").exists() or not shutil.which("git"), reason="not a git checkout")
def test_no_part_of_the_package_is_ignored_by_git() -> None:
    command = ["git", "ls-files", "--others", "--ignored", "--exclude-standard", "--", "*.yaml", "*.py"]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=True)
    parts = {path.parent.name for path in CHECKOUT.glob("*/__init__.py")}
    assert [name for name in done.stdout.splitlines() if name.split("/")[0] in parts] == []
