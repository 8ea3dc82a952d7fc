"""Times the command line as a user meets it: wall time and peak memory of whole processes, and what they import.

    python bench/cli.py [--runs N] [--json]

Median of N runs (default 7) after one that fills the caches; peak resident memory is that of one run, read
inside it. The last run of each command lists its modules, so that a stray import of torch is seen. Exit status 1 when
a bar is missed. Measure an installed wheel: the finder of an editable install costs some 40 ms a start.
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

REPORT = (Path(__file__).resolve().parents[1] / "tests" / "samples" / "issue.txt").read_text(encoding="utf-8")
FACTS = "gpus: 2x NVIDIA GeForce RTX 4090\ndriver: 570.133.07\nos: Ubuntu 24.04\npython: 3.12\n"
NEVER = ("torch", "durable", "clips", "rich")
# command: arguments, the most seconds, the modules it must not import besides NEVER
COMMANDS: dict[str, tuple[list[str], float, tuple[str, ...]]] = {
    "version": (["--version"], 0.15, ("pydantic", "yaml", "gpurules.pipeline")),
    "help": (["--help"], 0.15, ("pydantic", "yaml", "gpurules.pipeline")),
    "diagnose": (["diagnose", "--no-save", "--report", "report.txt"], 0.5, ()),
    "recommend": (["recommend", "--facts", "facts.yaml"], 0.5, ()),
}
MEMORY_MIB = 120
# Run inside the process: what the system tells of a child from outside includes the parent's memory at the fork.
PEAK = """
import atexit, re, resource, runpy, sys
def tell():
    try:
        kib = int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read()).group(1))
    except OSError:
        kib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**10 if sys.platform == "darwin" else 1)
    print("peak", kib, file=sys.stderr)
atexit.register(tell)
sys.argv[0] = "gpurules"
runpy.run_module("gpurules", run_name="__main__", alter_sys=True)
"""


@dataclass(frozen=True)
class Measured:
    """One command: median wall and least processor seconds, largest memory, modules that it should not import."""

    command: str
    seconds: float
    cpu_s: float
    bar_s: float
    peak_mib: float
    unwanted: tuple[str, ...]

    @property
    def ok(self) -> bool:
        return self.seconds <= self.bar_s and self.peak_mib <= MEMORY_MIB and not self.unwanted


@dataclass(frozen=True)
class Run:
    """One process."""

    seconds: float
    cpu_s: float
    stderr: str


def start(arguments: list[str], folder: Path, *options: str) -> Run:
    """Run gpurules; `options` are the interpreter's, `-m gpurules` unless they say what to run."""
    environ = {**os.environ, "XDG_CACHE_HOME": str(folder / "cache"), "LC_ALL": "C.UTF-8"}
    command = [sys.executable, *options, *([] if "-c" in options else ["-m", "gpurules"]), *arguments]
    with open(folder / "stderr", "w+b") as stderr:
        began = time.perf_counter()
        process = subprocess.Popen(command, cwd=folder, env=environ, stdout=subprocess.DEVNULL, stderr=stderr)
        _, status, usage = os.wait4(process.pid, 0)
        seconds = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        stderr.seek(0)
        text = stderr.read().decode(errors="replace")
    if process.returncode not in (0, 1) or "Traceback" in text:
        raise SystemExit(f"{' '.join(arguments)}: status {process.returncode}\n{text}")
    return Run(seconds, usage.ru_utime + usage.ru_stime, text)


def peak_mib(arguments: list[str], folder: Path) -> float:
    """The largest resident memory of one run."""
    said = start(arguments, folder, "-c", PEAK).stderr
    return float(said.rpartition("peak ")[2]) / 2**10


def measure(name: str, runs: int, folder: Path) -> Measured:
    arguments, bar, not_these = COMMANDS[name]
    start(arguments, folder)
    results = [start(arguments, folder) for _ in range(runs)]
    imports = start(arguments, folder, "-X", "importtime").stderr
    loaded = {line.rpartition("|")[2].strip() for line in imports.splitlines() if line.startswith("import time:")}
    return Measured(
        command=name,
        seconds=statistics.median(r.seconds for r in results),
        cpu_s=min(r.cpu_s for r in results),
        bar_s=bar,
        peak_mib=peak_mib(arguments, folder),
        unwanted=tuple(sorted(loaded & {*NEVER, *not_these})),
    )


def measure_all(runs: int) -> list[Measured]:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "report.txt").write_text(REPORT, encoding="utf-8")
        (folder / "facts.yaml").write_text(FACTS, encoding="utf-8")
        return [measure(command, runs, folder) for command in COMMANDS]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    results = measure_all(options.runs)
    if options.json:
        print(json.dumps([asdict(m) for m in results], indent=1))
    else:
        for m in results:
            extra = f"  imports {', '.join(m.unwanted)}" if m.unwanted else ""
            verdict = "ok" if m.ok else "MISSED"
            print(f"{m.command:10} {m.seconds:6.3f} s (bar {m.bar_s} s)  {m.peak_mib:6.1f} MiB  {verdict}{extra}")
    return 0 if all(m.ok for m in results) else 1


if __name__ == "__main__":
    sys.exit(main())
