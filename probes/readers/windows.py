"""Reader of what Windows says of itself: systeminfo, msinfo32, dxdiag, CIM and WMI classes, values of the registry.

May live here: these layouts, in English, Chinese and German. Must not: what a value means for GPUs.

All of them are lines of a label and a value. A record is what stands between two lines that begin anew: a blank one, a
rule of dashes, or a label that was there already.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from ...facts import Fact, Scalar
from .common import PCI_VENDORS, FactList, leading_number, vendor_of
from .line import Line

READER = "windows"

_PAIR = re.compile(
    r"[ \t]{0,20}(?P<label>[^:：=\t\n]{2,60}?) {0,60}(?P<mark>:|：|=|\t|  REG_(?:DWORD|SZ)  )(?P<value>.*)$"
)
_HEADS = re.compile(r"[ \t]{0,4}[A-Za-z]{4,30}(?: {1,80}[A-Za-z]{4,30}){1,7} {0,80}$")
_HEAD = re.compile(r"[A-Za-z]{4,30}")
_WIDEST = 400
_RULE = re.compile(r"[ \t]{0,8}-{3,}")
_SECTION = re.compile(r"[ \t]{0,4}(?:\[[^\]\n]{1,80}\]|HKEY_[A-Z_]{3,30}\\.{1,300})$")
_CAPTION = re.compile(r"(?:Microsoft )?(?P<name>Windows (?:1[01]|[78](?:\.1)?|Server [0-9]{4}(?: R2)?)\b[^(\n]{0,40})")
_BITS = re.compile(r" {0,4}(?:64|32)[- ]?(?:bit|Bit|位)?.{0,20}$")
_BUILD = re.compile(r"Build (?P<build>[0-9]{4,6})")
_NUMBER = re.compile("[0-9]{1,3}(?:[.,\u00a0\u202f ][0-9]{3}){1,4}|[0-9]{1,12}")
_SIZE = re.compile(r"(?P<number>[0-9]{1,6}(?:[.,][0-9]{1,3})?) ?(?P<unit>[MGT])B\b")
_PCI = re.compile(
    r"PCI\\VEN_(?P<vendor>[0-9A-Fa-f]{4})&DEV_(?P<device>[0-9A-Fa-f]{4})(?:&[^\\ ]{1,60})?"
    r"(?:\\(?P<place>[^ \t,;]{1,60}))?"
)
_DISPLAY = re.compile(r"CC_03(?:00|02|80)")
_NVIDIA = re.compile(r"[0-9]{1,2}\.[0-9]{1,2}\.[0-9]{0,2}(?P<major>[0-9])\.(?P<minor>[0-9]{1,4})$")
_PROBLEM = re.compile(r"(?:0x(?P<hex>[0-9A-Fa-f]{1,4})|(?:Code )?(?P<code>[0-9]{1,3}))\b")
_CORES = re.compile(r"\((?P<threads>[0-9]{1,4}) CPUs\)")
_MEMORY = re.compile(r"(?P<mib>[0-9]{3,9})MB RAM$")
_HARDWARE_SCHEDULING = re.compile(r"\bEnabled:(?P<on>True|False)")

_MACHINES = (("arm64", "arm64"), ("x64", "x86_64"), ("amd64", "x86_64"), ("x86", "i686"))

# What each label stands for. The programs translate their labels; properties of CIM classes keep their names.
_LABELS = {
    "os name": "os_name", "os 名称": "os_name", "betriebssystemname": "os_name", "caption": "os_name",
    "operating system": "os_name",
    "os version": "os_version", "os 版本": "os_version", "betriebssystemversion": "os_version",
    "system type": "system_type", "系统类型": "system_type", "systemtyp": "system_type",
    "total physical memory": "memory", "物理内存总量": "memory", "gesamter physischer speicher": "memory",
    "installed physical memory (ram)": "memory_size", "已安装的物理内存(ram)": "memory_size",
    "installierter physischer speicher (ram)": "memory_size",
    "totalvisiblememorysize": "memory_kib", "freephysicalmemory": "free_kib", "memory": "memory_ram",
    "osarchitecture": "bits", "buildnumber": "build", "version": "version", "版本": "version",
    "name": "name", "名称": "name", "card name": "name",
    "driverversion": "driver", "driver version": "driver", "驱动程序版本": "driver", "treiberversion": "driver",
    "pnpdeviceid": "device", "pnp device id": "device", "pnp 设备 id": "device", "pnp-geräte-id": "device",
    "device key": "device", "deviceid": "device", "compatibleid": "compatible",
    "configmanagererrorcode": "problem", "device problem code": "problem",
    "numberofcores": "cores", "numberoflogicalprocessors": "threads", "processor": "processor",
    "处理器": "processor", "prozessor": "processor",
    "hardware scheduling": "scheduling", "hwschmode": "hwschmode", "longpathsenabled": "longpaths",
}  # fmt: skip
_RUNTIME = re.compile(r"\\VC\\Runtimes\\[Xx]64$")
_RUNTIME_VERSION = re.compile(r"v?(?P<version>[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,6})")

_Record = dict[str, tuple[str, Line]]


def read(lines: Sequence[Line], source: str) -> list[Fact]:
    """Facts of every such output in the text."""
    out = FactList(source, READER)
    system: _Record = {}
    for record in (*_records(lines), *_rows(lines)):
        for name in ("os_name", "os_version", "build", "system_type", "bits"):
            if name in record and (name != "build" or "os_name" in record):
                system.setdefault(name, record[name])
        if "version" in record and "os_name" in record:
            system.setdefault("os_version", record["version"])
        _adapter(record, out)
        _processor(record, out)
        _memory(record, out)
        _settings(record, out)
    _os(system, out)
    return out.facts


def _records(lines: Sequence[Line]) -> Iterator[_Record]:
    record: _Record = {}
    for line in lines:
        text = line.text
        section = _SECTION.match(text)
        if section is not None or _RULE.match(text):
            if record:
                yield record
            record = {"runtime": ("", line)} if section is not None and _RUNTIME.search(text) else {}
            continue
        pair = _PAIR.match(text)
        name = _name(pair) if pair is not None else None
        if pair is None or name is None:
            # `wmic` prints blank lines between all lines; other lists end with one.
            if not text.strip() and record and not any(key == "equals" for key in record):
                yield record
                record = {}
            continue
        if name in record:
            yield record
            record = {}
        record[name] = (pair["value"].strip(), line)
        if pair["mark"] == "=":
            record["equals"] = ("", line)
    if record:
        yield record


def _rows(lines: Sequence[Line]) -> Iterator[_Record]:
    """The rows of tables whose head names properties of a class, as `wmic ... get` and Format-Table print them."""
    columns: list[tuple[str, int, int]] = []
    for line in lines:
        heads = list(_HEAD.finditer(line.text)) if _HEADS.match(line.text) else []
        names = [_LABELS.get(head.group().lower()) for head in heads]
        if len(heads) > 1 and all(names):
            ends = [*(head.start() for head in heads[1:]), _WIDEST]
            columns = [(str(name), head.start(), end) for name, head, end in zip(names, heads, ends, strict=True)]
            continue
        cells = {name: (line.text[start:end].strip(), line) for name, start, end in columns}
        filled = {name: cell for name, cell in cells.items() if cell[0].strip("-")}
        if len(filled) > 1:
            yield filled
        elif columns and line.text.strip(" -"):
            columns = []  # the table is over


def _name(pair: re.Match[str]) -> str | None:
    name = _LABELS.get(" ".join(pair["label"].split()).lower().replace("（", "(").replace("）", ")"))
    if name == "memory_ram" and not _MEMORY.search(pair["value"]):
        return None
    return name


def _os(record: Mapping[str, tuple[str, Line]], out: FactList) -> None:
    said = record.get("os_name")
    caption = _CAPTION.match(said[0]) if said is not None else None
    if said is None or caption is None:
        return
    numbers = re.search(r"\((10\.[0-9]), Build ([0-9]{4,6})\)", said[0])
    version = leading_number(record["os_version"][0]) if "os_version" in record else None
    if version is not None and version.count(".") < 2:
        version = None
    if version is None and numbers is not None:
        version = f"{numbers[1]}.0.{numbers[2]}" if numbers[1].count(".") == 0 else f"{numbers[1]}.{numbers[2]}"
    if version is None and "build" in record and record["build"][0].isdigit():
        version = f"10.0.{record['build'][0]}"
    name = _BITS.sub("", caption["name"]).strip()
    out.add(
        "os",
        {"family": "windows", "name": f"Microsoft {name}", "machine": _machine(record, said[0]), "wsl": False,
         "windows_build": version},
        said[1],
    )  # fmt: skip


def _machine(record: Mapping[str, tuple[str, Line]], caption: str) -> str | None:
    if "system_type" in record:
        said = record["system_type"][0].lower()
        return next((machine for word, machine in _MACHINES if word in said), None)
    bits = record["bits"][0] if "bits" in record else caption
    if "arm" in bits.lower():
        return "arm64"
    return "x86_64" if "64" in bits else None


def _adapter(record: _Record, out: FactList) -> None:
    """A display adapter: of Win32_VideoController, msinfo32 or dxdiag, or a PCI device that Windows calls one."""
    name, line = record.get("name", ("", None))
    found = _PCI.search(record["device"][0]) if "device" in record else None
    if found is None or line is None:
        vendor = vendor_of(name) if "driver" in record else None
        if vendor == "nvidia" and line is not None:
            _driver(record, line, out)
        return
    if "compatible" in record and not _DISPLAY.search(record["compatible"][0]):
        return
    if "driver" not in record and "compatible" not in record:
        return
    vendor = PCI_VENDORS.get(found["vendor"].lower(), "other")
    out.add(
        "pci_device",
        {"bus_id": found["place"], "display": True, "vendor": vendor, "name": name or None,
         "device_id": f"{found['vendor']}:{found['device']}".lower(), "problem_code": _problem(record)},
        line,
    )  # fmt: skip
    if vendor == "nvidia":
        _driver(record, line, out)


def _driver(record: _Record, line: Line, out: FactList) -> None:
    """Windows numbers the drivers of all makers alike; NVIDIA's own number is the last five digits of it."""
    found = _NVIDIA.match(record["driver"][0]) if "driver" in record else None
    # The driver that Windows itself brings counts like Windows.
    if found is not None and not record["driver"][0].startswith("10.0."):
        digits = found["major"] + found["minor"].zfill(4)
        out.add("driver", {"vendor": "nvidia", "version": f"{digits[:3]}.{digits[3:]}"}, line)


def _problem(record: _Record) -> int | None:
    if "problem" not in record:
        return None
    said = record["problem"][0]
    found = _PROBLEM.match(said)
    if found is None:
        return 0 if said.lower() == "no problem" else None
    return int(found["hex"], 16) if found["hex"] else int(found["code"])


def _processor(record: _Record, out: FactList) -> None:
    if "cores" in record:
        name, line = record.get("name", record["cores"])
        fields: dict[str, Scalar | None] = {"name": name if "name" in record else None}
        for field in ("cores", "threads"):
            said = record.get(field, ("", line))[0]
            fields[field] = int(said) if said.isdigit() and len(said) < 6 else None
        out.add("cpu", fields, line)
    elif "processor" in record and (found := _CORES.search(record["processor"][0])):
        said, line = record["processor"]
        out.add("cpu", {"name": said[: found.start()].strip() or None, "threads": int(found["threads"])}, line)


def _memory(record: _Record, out: FactList) -> None:
    for name, mib in (("memory", 1.0), ("memory_kib", 1 / 1024), ("memory_ram", 1.0)):
        if name not in record:
            continue
        said, line = record[name]
        found = _NUMBER.match(said)
        if found is not None:
            total = int(int(re.sub(r"[^0-9]", "", found.group())) * mib)
            free = record.get("free_kib", ("", line))[0]
            left = int(free) >> 10 if name == "memory_kib" and free.isdigit() and len(free) < 14 else None
            out.add("memory", {"total_mib": total, "available_mib": left}, line)
            return
    if "memory_size" in record and (size := _SIZE.match(record["memory_size"][0])):
        scale = {"M": 1, "G": 1024, "T": 1 << 20}[size["unit"]]
        total = int(float(size["number"].replace(",", ".")) * scale)
        out.add("memory", {"total_mib": total}, record["memory_size"][1])


def _settings(record: _Record, out: FactList) -> None:
    if "hwschmode" in record:
        said, line = record["hwschmode"]
        out.add("windows_setting", {"name": "gpu_scheduling", "enabled": said.removeprefix("0x") == "2"}, line)
    elif "scheduling" in record and (found := _HARDWARE_SCHEDULING.search(record["scheduling"][0])):
        out.add(
            "windows_setting", {"name": "gpu_scheduling", "enabled": found["on"] == "True"}, record["scheduling"][1]
        )
    if "longpaths" in record:
        said, line = record["longpaths"]
        out.add("windows_setting", {"name": "long_paths", "enabled": said.removeprefix("0x") == "1"}, line)
    if "runtime" in record and "version" in record:
        said, line = record["version"]
        version = _RUNTIME_VERSION.match(said)
        out.add("vc_runtime", {"present": True, "version": version["version"] if version else None}, line)
