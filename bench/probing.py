"""Times `gpurules diagnose` on machines that are not there: a compiled fake NVML and a stand-in for nvidia-smi.

    python bench/probing.py [--runs N] [--json]

Wall and processor seconds of whole processes: with eight GPUs, and where NVML, nvidia-smi or both never answer. Median
of N runs (default 3) after one that fills the caches. Exit status 1 when a bar is missed. Needs a C compiler on Linux.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

FAKES = Path(__file__).resolve().parents[1] / "tests" / "fakes"
# machine: lines that go before those of the profile of eight GPUs, the most seconds, what the answer must say
MACHINES: dict[str, tuple[tuple[str, ...], float, tuple[str, ...]]] = {
    "eight_gpus": ((), 1.5, ()),
    "nvml_hangs": (("hang.nvmlInit=1", "smi_works=1"), 8.0, ("driver_not_answering",)),
    "smi_hangs": (("fail.nvmlInit=10", "smi_hang=1"), 8.0, ("driver_not_answering", "nvml_fails")),
    "both_hang": (("hang.nvmlInit=1", "smi_hang=1"), 8.0, ("driver_not_answering",)),
}


@dataclass(frozen=True)
class Measured:
    """One machine: median wall and least processor seconds, and the causes that were named."""

    machine: str
    seconds: float
    cpu_s: float
    bar_s: float
    causes: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return self.seconds <= self.bar_s and set(MACHINES[self.machine][2]) <= set(self.causes)


def prepare(folder: Path, compiler: str = "cc") -> None:
    """Compile the library, put the program and the profiles into the folder."""
    library = folder / "libnvidia-ml.so.1"
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, FAKES / "nvml.c"], check=True)
    program = folder / "bin" / "nvidia-smi"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -S -E {FAKES / "nvidia_smi.py"} "$@"\n')
    program.chmod(0o755)
    profile = (FAKES / "profiles" / "eight_h100.env").read_text()
    for name, (lines, _, _) in MACHINES.items():
        (folder / f"{name}.env").write_text("".join(f"{line}\n" for line in lines) + profile)


def start(name: str, folder: Path) -> tuple[float, float, tuple[str, ...]]:
    """Wall and processor seconds of one run and the causes that it names."""
    environ = {
        **os.environ,
        "LD_LIBRARY_PATH": str(folder),
        "FAKE_NVML": str(folder / f"{name}.env"),
        "PATH": f"{folder / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "XDG_CACHE_HOME": str(folder / "cache"),
        "LC_ALL": "C.UTF-8",
    }
    command = [sys.executable, "-m", "gpurules", "diagnose", "--no-save", "--json", "--python", sys.executable]
    with open(folder / "stdout", "w+b") as stdout:
        began = time.perf_counter()
        process = subprocess.Popen(command, env=environ, cwd=folder, stdout=stdout)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        stdout.seek(0)
        report = json.loads(stdout.read())
    return seconds, usage.ru_utime + usage.ru_stime, tuple(finding["cause"] for finding in report["findings"])


def measure(name: str, runs: int, folder: Path) -> Measured:
    start(name, folder)
    results = [start(name, folder) for _ in range(runs)]
    return Measured(
        machine=name,
        seconds=statistics.median(seconds for seconds, _, _ in results),
        cpu_s=min(cpu for _, cpu, _ in results),
        bar_s=MACHINES[name][1],
        causes=results[0][2],
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        prepare(Path(name))
        results = [measure(machine, options.runs, Path(name)) for machine in MACHINES]
    if options.json:
        print(json.dumps([asdict(m) for m in results], indent=1))
    else:
        for m in results:
            verdict = "ok" if m.ok else "MISSED"
            print(f"{m.machine:11} {m.seconds:6.3f} s (bar {m.bar_s} s)  {m.cpu_s:5.2f} s processor  {verdict}")
    return 0 if all(m.ok for m in results) else 1


if __name__ == "__main__":
    sys.exit(main())
