"""A stand-in for nvidia-smi that prints what the profile named by FAKE_NVML says: the table, `-q`, `topo -m`, `-L`.

`fail.nvmlInit` makes it print the text of that code and end with it, `hang.nvmlInit` and `smi_hang` make it hang, and
`smi_works` lets it work although NVML does not; a GPU whose `fail.nvmlDeviceGetHandleByIndex` is set is refused as the
real program does.
"""

from __future__ import annotations

import os
import re
import sys
import time

TEXTS = {
    4: "Insufficient Permissions",
    9: "Driver Not Loaded",
    17: "GPU access blocked by the operating system",
    18: "Driver/library version mismatch",
    999: "Unknown Error",
}
REASONS = (
    (0x1, "Idle"),
    (0x2, "Applications Clocks Setting"),
    (0x4, "SW Power Cap"),
    (0x8, "HW Slowdown"),
    (0x40, "    HW Thermal Slowdown"),
    (0x80, "    HW Power Brake Slowdown"),
    (0x10, "Sync Boost"),
    (0x20, "SW Thermal Slowdown"),
    (0x100, "Display Clock Setting"),
)
MODES = ("Default", "Exclusive_Thread", "Prohibited", "Exclusive_Process")
FABRIC = ("N/A", "Not Started", "In Progress", "Completed")
LEVELS = {"0": "PSB", "10": "PIX", "20": "PXB", "30": "PHB", "40": "NODE", "50": "SYS"}

profile: dict[str, str] = {}
with open(os.environ["FAKE_NVML"], encoding="utf-8", errors="replace") as file:
    for line in file:
        key, _, value = line.rstrip("\n").partition("=")
        profile.setdefault(key, value)
COUNT = int(profile.get("gpus", "0"))


def of(gpu: int, key: str) -> str | None:
    return profile.get(f"{gpu}.{key}", profile.get(key))


def numbers(gpu: int, key: str) -> list[int] | None:
    found = of(gpu, key)
    return None if found is None else [int(part, 0) for part in re.split("[, ]", found)]


def first(gpu: int, key: str, unit: str = "", scale: int = 1) -> str:
    found = numbers(gpu, key)
    if found is None:
        return "N/A"
    amount = f"{found[0] / scale:.2f}" if scale > 1 else str(found[0])
    return f"{amount} {unit}".strip()


def last(gpu: int, key: str, unit: str = "", scale: int = 1) -> str:
    found = numbers(gpu, key)
    if found is None:
        return "N/A"
    amount = f"{found[-1] / scale:.2f}" if scale > 1 else str(found[-1])
    return f"{amount} {unit}".strip()


def named(gpu: int, key: str, names: tuple[str, ...]) -> str:
    found = numbers(gpu, key)
    return "N/A" if found is None else names[found[0]]


def pair(indent: int, name: str, value: object) -> None:
    print(f"{' ' * indent}{name:<{42 - indent}}: {value}")


def title(indent: int, name: str) -> None:
    print(" " * indent + name)


def processes(gpu: int) -> list[tuple[str, str, str, str]]:
    rows = []
    for key, kind in (("procs", "C"), ("gprocs", "G")):
        for item in filter(None, (of(gpu, key) or "").split(",")):
            pid, _, mib = item.partition(":")
            rows.append(
                (pid, kind, profile.get(f"name.{pid}", "[Not Found]"), f"{mib} MiB" if mib.isdigit() else "N/A")
            )
    return rows


def log_head() -> None:
    print("\n==============NVSMI LOG==============\n")
    pair(0, "Timestamp", "Mon Nov 30 10:00:00 2026")
    pair(0, "Driver Version", profile["driver"])
    pair(0, "CUDA Version", f"{int(profile['cuda']) // 1000}.{int(profile['cuda']) % 1000 // 10}")
    print()
    pair(0, "Attached GPUs", COUNT)


def log_gpu(gpu: int) -> None:
    title(0, f"GPU {of(gpu, 'bus_id')}")
    pair(4, "Product Name", of(gpu, "name"))
    pair(4, "Display Active", named(gpu, "display", ("Disabled", "Enabled")))
    pair(4, "Persistence Mode", named(gpu, "persistence", ("Disabled", "Enabled")))
    title(4, "MIG Mode")
    pair(8, "Current", named(gpu, "mig", ("Disabled", "Enabled")))
    pair(4, "GPU UUID", of(gpu, "uuid") or "N/A")
    pair(4, "VBIOS Version", of(gpu, "vbios") or "N/A")
    title(4, "GPU Reset Status")
    pair(8, "Reset Required", "No")
    title(4, "PCI")
    pair(8, "Device Id", f"0x{(numbers(gpu, 'pci_id') or [0])[0]:08X}")
    pair(8, "Bus Id", of(gpu, "bus_id"))
    title(8, "GPU Link Info")
    title(12, "PCIe Generation")
    pair(16, "Max", first(gpu, "gen_max"))
    pair(16, "Current", first(gpu, "gen"))
    title(12, "Link Width")
    for name, key in (("Max", "width_max"), ("Current", "width")):
        pair(16, name, first(gpu, key) if first(gpu, key) == "N/A" else first(gpu, key) + "x")
    pair(8, "Replays Since Reset", first(gpu, "replays"))
    pair(4, "Performance State", "N/A" if of(gpu, "pstate") is None else f"P{of(gpu, 'pstate')}")
    log_figures(gpu)
    log_memory(gpu)
    log_processes(gpu)


def log_figures(gpu: int) -> None:
    title(4, "Clocks Event Reasons")
    mask = (numbers(gpu, "throttle") or [0])[0]
    for bit, name in REASONS:
        pair(8 + name.count("    ") * 4, name.strip(), "Active" if mask & bit else "Not Active")
    pair(4, "Compute Mode", named(gpu, "compute_mode", MODES))
    title(4, "Utilization")
    pair(8, "Gpu", first(gpu, "load", "%"))
    title(4, "Temperature")
    pair(8, "GPU Current Temp", first(gpu, "temperature", "C"))
    pair(8, "GPU Slowdown Temp", first(gpu, "slowdown", "C"))
    title(4, "GPU Power Readings")
    pair(8, "Power Draw", first(gpu, "power_mw", "W", 1000))
    pair(8, "Current Power Limit", first(gpu, "limit_mw", "W", 1000))
    pair(8, "Default Power Limit", first(gpu, "default_mw", "W", 1000))
    pair(8, "Min Power Limit", first(gpu, "limits_mw", "W", 1000))
    pair(8, "Max Power Limit", last(gpu, "limits_mw", "W", 1000))
    title(4, "Clocks")
    pair(8, "Graphics", first(gpu, "clock", "MHz"))
    title(4, "Max Clocks")
    pair(8, "Graphics", first(gpu, "clock_max", "MHz"))
    title(4, "Fabric")
    pair(8, "State", named(gpu, "fabric", FABRIC))


def log_memory(gpu: int) -> None:
    for name, key in (("FB Memory Usage", "memory_mib"), ("BAR1 Memory Usage", "bar1_mib")):
        title(4, name)
        pair(8, "Total", first(gpu, key, "MiB"))
        pair(8, "Used", last(gpu, key, "MiB"))
    title(4, "ECC Mode")
    pair(8, "Current", named(gpu, "ecc", ("Disabled", "Enabled")))
    title(4, "ECC Errors")
    title(8, "Volatile")
    pair(12, "DRAM Correctable", first(gpu, "ecc_corrected"))
    pair(12, "DRAM Uncorrectable", first(gpu, "ecc_errors"))
    title(4, "Retired Pages")
    pair(8, "Pending Page Blacklist", named(gpu, "retirement_pending", ("No", "Yes")))
    rows = numbers(gpu, "remapped")
    title(4, "Remapped Rows")
    pair(8, "Correctable Error", rows[0] if rows else "N/A")
    pair(8, "Uncorrectable Error", rows[1] if rows else "N/A")
    pair(8, "Pending", ("No", "Yes")[rows[2]] if rows else "N/A")
    pair(8, "Remapping Failure Occurred", ("No", "Yes")[rows[3]] if rows else "N/A")


def log_processes(gpu: int) -> None:
    rows = processes(gpu)
    if not rows:
        pair(4, "Processes", "None")
        return
    title(4, "Processes")
    for pid, kind, name, used in rows:
        pair(8, "GPU instance ID", "N/A")
        pair(8, "Process ID", pid)
        pair(12, "Type", kind)
        pair(12, "Name", name)
        pair(12, "Used GPU Memory", used)


def table() -> None:
    cuda = f"{int(profile['cuda']) // 1000}.{int(profile['cuda']) % 1000 // 10}"
    print("Mon Nov 30 10:00:00 2026")
    rule = "-" * 89
    print(f"+{rule}+")
    print(f"| NVIDIA-SMI {profile['driver']:<23} Driver Version: {profile['driver']:<15} CUDA Version: {cuda:<8} |")
    columns = ("-" * 41, "-" * 24, "-" * 22)
    print(f"|{'+'.join(columns)}+")
    print("| GPU  Name                 Persistence-M | Bus-Id          Disp.A | Volatile Uncorr. ECC |")
    print("| Fan  Temp   Perf          Pwr:Usage/Cap |           Memory-Usage | GPU-Util  Compute M. |")
    print("|                                         |                        |               MIG M. |")
    print(f"|{'+'.join('=' * len(part) for part in columns)}|")
    for gpu in range(COUNT):
        name = of(gpu, "name") or ""
        name = name if len(name) <= 26 else name[:23] + "..."
        switch = named(gpu, "persistence", ("Off", "On"))
        ecc = first(gpu, "ecc_errors") if of(gpu, "ecc") else "N/A"
        print(f"| {gpu:>3}  {name:<30} {switch:>4} | {of(gpu, 'bus_id'):>16} {'Off':>5} | {ecc:>20} |")
        power, limit = (first(gpu, key, "", 1000).split(".")[0] for key in ("power_mw", "limit_mw"))
        temperature = first(gpu, "temperature", "C").replace(" ", "")
        draw = f"{power}W / {limit}W" if limit != "N/A" else f"{power}W / N/A"
        used, total = last(gpu, "memory_mib"), first(gpu, "memory_mib")
        memory = "Not Supported" if total == "N/A" else f"{used}MiB / {total}MiB"
        load = first(gpu, "load", "").replace(" ", "") + "%"
        first_cell = f"N/A  {temperature:>4}    P{of(gpu, 'pstate') or 0} {draw:>24}"
        print(f"| {first_cell} | {memory:>22} | {load:>8}  {'Default':>10} |")
        mig = named(gpu, "mig", ("Disabled", "Enabled"))
        print(f"| {'':39} | {'':22} | {mig:>20} |")
        print(f"+{'+'.join(columns)}+")


def matrix() -> None:
    names = [f"GPU{gpu}" for gpu in range(COUNT)]
    print("\t" + "\t".join(names) + "\tCPU Affinity\tNUMA Affinity\tGPU NUMA ID")
    for row in range(COUNT):
        cells = []
        for column in range(COUNT):
            low, high = sorted((row, column))
            level = LEVELS[profile.get(f"topo.{low}.{high}", profile.get("topo", "50"))]
            up = sum(of(row, f"nvlink.{link}") != "0" for link in range(int(of(row, "nvlinks") or 0)))
            cells.append(" X " if row == column else f"NV{up}" if up else level)
        print(f"GPU{row}\t" + "\t".join(cells) + "\t0-31\t0\t\tN/A")


def main() -> int:
    works = "smi_works" in profile
    if "smi_hang" in profile or ("hang.nvmlInit" in profile and not works):
        time.sleep(60)
    failure = None if works else profile.get("fail.nvmlInit")
    if failure is not None:
        print(f"Failed to initialize NVML: {TEXTS.get(int(failure), 'Unknown Error')}")
        return min(int(failure), 255)
    for gpu in range(COUNT):
        code = profile.get(f"fail.nvmlDeviceGetHandleByIndex.{gpu}", profile.get("fail.nvmlDeviceGetHandleByIndex"))
        if code is not None:
            print(f"Unable to determine the device handle for GPU{of(gpu, 'bus_id')}: GPU is lost.  Reboot the system")
            return 15
    if COUNT == 0:
        print("No devices were found")
        return 6
    if "-q" in sys.argv:
        log_head()
        for gpu in range(COUNT):
            log_gpu(gpu)
    elif "topo" in sys.argv:
        matrix()
    elif "-L" in sys.argv or "--list-gpus" in sys.argv:
        for gpu in range(COUNT):
            print(f"GPU {gpu}: {of(gpu, 'name')} (UUID: {of(gpu, 'uuid') or 'GPU-0'})")
    else:
        table()
    return 0


if __name__ == "__main__":
    sys.exit(main())
