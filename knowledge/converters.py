"""Converters: what a loose value of a facts file means, by the kind of value that its key announces.

May live here: the closed set of converters that `aliases.yaml` may name. Must not: any key (they are data) and any
conclusion. A converter takes the text of one value and gives named outputs (one group a fact), or None where it does
not understand the value; it never guesses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from ..facts import Scalar
from .phrases import GpuFinder, with_lines
from .vocabulary import parse_sm

Outputs = dict[str, Scalar]
MAX_COUNT = 128
MAX_LISTED = 64

_TRUE = frozenset(("true", "yes", "y", "on", "1", "enabled", "enable", "是", "有", "开", "开启", "已启用"))
_FALSE = frozenset(("false", "no", "n", "off", "0", "disabled", "disable", "否", "无", "没有", "关", "关闭", "未启用"))
_VERSION = re.compile(
    r"(?:\A(?:[A-Za-z]{2,12}-)?|[\s=(vV])(\d{1,9}(?:\.\d{1,9}){0,3}(?:[.\-_]?(?:dev|alpha|beta|a|b|rc|post|u)[.\-_]?\d{1,9})?"
    r"(?:\+[A-Za-z0-9.]{1,40})?)(?:[\s,;)/]|\Z)"
)
_TWO_VERSIONS = re.compile(r"\d\s*(?:\bor\b|\bvs\b|->|→|\bto\b|\band\b|/|,|或|和)\s*v?\d", re.IGNORECASE)
_RANGE = re.compile(r"[<>~!^]|\b(?:not|no|without)\b|没|未|不", re.IGNORECASE)
_WHOLE = re.compile(r"(?:\A|[^\w.])(\d{1,9})(?=\s?[A-Za-z%]{0,5}(?:[^\w.]|\Z))")
_WATTS = re.compile(r"(\d{2,5})\s?(?:W|watts?|瓦)(?:[^\w]|\Z)", re.IGNORECASE)
_DECIMAL = re.compile(r"\A\s*(\d{1,9}(?:\.\d{1,6})?)\s*(?:b|billion)?\s*(?:params|parameters)?\s*\Z", re.IGNORECASE)
_SIZE = re.compile(r"\A\s*(\d{1,9})(?:\.(\d{1,3}))?\s*([KMGT]?)(i?)(?:B|b)?(?:ytes?)?(?:\s.*)?\Z", re.DOTALL)
_MODEL_SIZE = re.compile(r"(?:\A|[^0-9.])(\d{1,4}(?:\.\d{1,2})?)\s?[bB](?:[^A-Za-z]|\Z)")
_WINDOWS_DRIVER = re.compile(r"\d{2}\.\d{1,2}\.\d?(\d)\.(\d{2})(\d{2})\Z")
_NAME_AND_VERSION = re.compile(r"\A\s*([A-Za-z][A-Za-z0-9._\-]{0,60})(?:\s*={1,3}\s*|\s+v?|@)(\d[^\s]{0,40})\s*\Z")
_NAME_ONLY = re.compile(r"\s*[A-Za-z][-_.A-Za-z0-9]{1,60}\s*\Z")
_ASSIGNMENT = re.compile(
    r"(?:os\.environ\[\s*|os\.putenv\(\s*|os\.environ\.setdefault\(\s*"
    r"|setenv\s+|export\s+|declare\s+-x\s+|set\s+|-e\s+|--env[ =]|\$env:|\A|[\s;])"
    r"[\"']?([A-Z][A-Z0-9_]{1,60})[\"']?\s*(?:\]\s*)?[=:,]\s*(\"[^\"]{0,500}\"|'[^']{0,500}'|[^\s\"';,&)]{0,500})"
)
_TARGET = re.compile(r"\b(sm|compute)_(\d{2,3})[af]?\b")
_VIRTUAL = re.compile(r"\A__([a-z]+)(?:=([^=]+))?(?:=(.+))?\Z")
_VERSION_AFTER = r"[^A-Za-z0-9\n]{0,3}(?:linux\s)?v?(\d{1,3}(?:\.\d{1,3}){0,2})"

_MAKERS = {
    "nvidia": ("nvidia", "geforce", "英伟达"),
    "amd": ("amd", "radeon"),
    "intel": ("intel",),
    "apple": ("apple",),
}
_FAMILIES = {
    "windows": re.compile(r"\bwin(?:dows|32|64|1[01])?\b"),
    "macos": re.compile(r"\bmac ?os\b|\bos ?x\b|\bdarwin\b"),
    "linux": re.compile(r"linux|\bl4t\b"),
}
_COUNT_WORDS = {
    "one": 1, "a": 1, "two": 2, "dual": 2, "three": 3, "four": 4, "quad": 4, "six": 6, "eight": 8, "sixteen": 16,
    "单": 1, "双": 2, "两": 2, "四": 4, "八": 8,
}  # fmt: skip
_COUNT_FIRST = re.compile(
    r"\A\s*(?:(\d{1,4})\s*(?:[x×*]\s*|[张块个片卡]\s*|\s)"
    r"|(one|a|two|dual|three|four|quad|six|eight|sixteen)\s|([单双两四八])[张块卡]*\s*)(?=\S)",
    re.IGNORECASE,
)
_COUNT_LAST = re.compile(r"\s*(?:\(\s*)?(?:[x×*]\s*(\d{1,4})|(\d{1,4})\s*[x×张块])(?:\s*\))?\s*\Z", re.IGNORECASE)
_COUNT_ONLY = re.compile(r"\A\s*(\d{1,4})\s*(?:gpus?|cards?|[张块个]?(?:显?卡)?)?\s*\Z", re.IGNORECASE)
_ATTRIBUTE = re.compile(
    r"[\s,(]+(?:(?:sm_|compute_|cc\s?)(?P<sm>\d{1,3}(?:\.\d)?)[af]?|(?P<gfx>gfx[0-9a-f]{3,5})"
    r"|(?P<size>\d{1,4})\s?Gi?B?|(?P<watts>\d{2,4})\s?W|\d{2,5}\s?GB/s|each|GDDR\dX?)\)?\Z",
    re.IGNORECASE,
)
_GFX = re.compile(r"gfx[0-9a-f]{3,5}\Z")
_BRAND = re.compile(
    r"\b(?:nvidia|geforce|[rg]tx|tesla|quadro|titan|radeon|rx|instinct|amd|arc|intel|apple|jetson"
    r"|[abhltvp]\d{1,4}|mi\d{2,3}x?|gb\d{2,3})\b",
    re.IGNORECASE,
)
_SPLIT = re.compile(r"\s*(?:[,;、，；]|\s\+\s|\s&\s|\band\b|\bund\b|和|与)\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Context:
    """What converters may look up: GPU names, and word lists that are data of the alias file."""

    names: GpuFinder
    env_prefixes: tuple[str, ...] = ()
    distros: Mapping[str, str] = field(default_factory=dict)


Converter = Callable[[str, Context], "list[Outputs] | None"]


def truth(text: str, _context: Context) -> list[Outputs] | None:
    """true/false, yes/no, on/off, enabled/disabled."""
    word = text.strip().casefold()
    return [{"value": word in _TRUE}] if word in _TRUE or word in _FALSE else None


def whole(text: str, _context: Context) -> list[Outputs] | None:
    """The one whole number of the text, with or without a unit: `850`, `850 W gold`, `32 cores`."""
    numbers = _WHOLE.findall(f" {text}")
    return [{"value": int(numbers[0])}] if len(numbers) == 1 else None


def watts(text: str, context: Context) -> list[Outputs] | None:
    """A power: the number before W, else the only number."""
    found = _WATTS.findall(text)
    if len(found) == 1:
        return [{"value": int(found[0])}]
    return None if found else whole(text, context)


def decimal(text: str, _context: Context) -> list[Outputs] | None:
    """A plain decimal number, kept as text: `6.7`, `70`, `7B`."""
    match = _DECIMAL.match(text)
    return [{"value": match.group(1)}] if match else None


def words(text: str, _context: Context) -> list[Outputs] | None:
    """The text as written."""
    return [{"value": " ".join(text.split())}] if text.strip() else None


def version(text: str, _context: Context) -> list[Outputs] | None:
    """The one version of the text; ranges, negations and alternatives are no version."""
    if _RANGE.search(text) or _TWO_VERSIONS.search(text):
        return None
    match = _VERSION.search(text.strip())
    return [{"value": match.group(1)}] if match else None


def model(text: str, _context: Context) -> list[Outputs] | None:
    """A model's name, and its billions of parameters where the name says them."""
    match = _MODEL_SIZE.search(text)
    found: Outputs = {"value": " ".join(text.split())}
    if match:
        found["params_b"] = match.group(1)
    return [found] if text.strip() else None


def _mebibytes(text: str, default: str) -> list[Outputs] | None:
    match = _SIZE.match(text)
    if not match:
        return None
    number, fraction, unit, _ = match.groups()
    thousandths = int(number) * 1000 + (int(fraction.ljust(3, "0")) if fraction else 0)
    scale = {"K": 1 / 1024, "M": 1, "G": 1024, "T": 1024 * 1024}[(unit or default).upper()]
    return [{"value": int(thousandths * scale) // 1000}]


def gib(text: str, _context: Context) -> list[Outputs] | None:
    """A size in MiB; a bare number is GiB."""
    return _mebibytes(text, "G")


def mib(text: str, _context: Context) -> list[Outputs] | None:
    """A size in MiB; a bare number is MiB."""
    return _mebibytes(text, "M")


def compute_capability(text: str, _context: Context) -> list[Outputs] | None:
    """`8.9`, `sm_89` or `89` as 89."""
    number = parse_sm(text)
    return [{"value": number}] if number else None


def gfx(text: str, _context: Context) -> list[Outputs] | None:
    """An AMD target such as gfx1100."""
    word = text.strip().lower()
    return [{"value": word, "vendor": "amd"}] if _GFX.match(word) else None


def vendor(text: str, _context: Context) -> list[Outputs] | None:
    """The GPU's maker."""
    lower = text.casefold()
    found = [maker for maker, marks in _MAKERS.items() if any(mark in lower for mark in marks)]
    return [{"value": found[0]}] if len(found) == 1 else None


def driver(text: str, context: Context) -> list[Outputs] | None:
    """A driver: its version, or only its branch (`525` is no version: 525.60 and 525.147 differ)."""
    found = version(text, context)
    if not found:
        match = re.search(r"(?:\A|[^\d.])([3-6]\d\d)(?:\.?x+)?(?:\s+(?:branch|series))?\s*\Z", text, re.IGNORECASE)
        return [{"branch": int(match.group(1))}] if match and not _RANGE.search(text) else None
    number = str(found[0]["value"])
    maker = vendor(text, context)
    kind = maker[0]["value"] if maker else "nvidia"
    windows = _WINDOWS_DRIVER.match(number)
    if windows and kind == "nvidia":
        return [{"vendor": kind, "version": f"{windows.group(1)}{windows.group(2)}.{windows.group(3)}"}]
    if "." not in number:
        return [{"branch": int(number)}] if re.match(r"[3-6]\d\d\Z", number) else None
    # AMD and Intel number their drivers otherwise; without their name only an NVIDIA number is believed.
    return [{"vendor": kind, "version": number}] if maker or re.match(r"[1-6]\d\d\.", number) else None


def kernel(text: str, _context: Context) -> list[Outputs] | None:
    """`uname -r` or `Linux 6.8`."""
    match = re.match(r"\s*(?:linux\s+)?((\d{1,2}\.\d{1,3}(?:\.\d{1,4})?)\S*)\s*\Z", text, re.IGNORECASE)
    return [{"release": match.group(1), "version": match.group(2)}] if match else None


def operating_system(text: str, context: Context) -> list[Outputs] | None:
    """The system that a text names: family, distribution, version, machine, WSL, Jetson."""
    lower = " ".join(text.split()).casefold()
    found: Outputs = {}
    if re.search(r"\bjetson\b|\bl4t\b|\btegra\b|jetpack", lower):
        found.update(family="linux", jetson=True, machine="aarch64")
    if re.search(r"\bwsl ?-?[12]?\b|microsoft-standard|subsystem for linux", lower):
        found.update(family="linux", wsl=True)
    for name, distro in context.distros.items():
        match = re.search(rf"(?:\A|[^a-z]){re.escape(name)}(?![a-z])(?:{_VERSION_AFTER})?", lower)
        if match:
            found.update(family="linux", distro=distro)
            if match.group(1):
                found["distro_version"] = match.group(1)
            break
    if "family" not in found:
        families = [family for family, pattern in _FAMILIES.items() if pattern.search(lower)]
        if len(families) != 1:
            return None
        found["family"] = families[0]
    machine = re.search(r"x86[_-]64|amd64|\bx64\b|aarch64|arm64|ppc64le|i686", lower)
    if machine:
        word = machine.group(0).replace("-", "_")
        found["machine"] = "x86_64" if word in ("x86_64", "amd64", "x64") else word
    return [{"name": " ".join(text.split()), **found}]


def wsl(text: str, context: Context) -> list[Outputs] | None:
    """`2`, `WSL2`, `true`: the version of WSL, or only that it is WSL."""
    answer = truth(text, context)
    match = re.search(r"(?:\A|wsl ?)([12])(?:\.\d+)*\s*\Z", text.strip().casefold())
    if match:
        return [{"present": True, "family": "linux", "version": int(match.group(1))}]
    if answer and answer[0]["value"]:
        return [{"present": True, "family": "linux"}]
    return [{"present": False}] if answer else None


def targets(text: str, _context: Context) -> list[Outputs] | None:
    """The compute targets of a build: `sm_80 sm_90 compute_90`, `8.0;9.0+PTX`."""
    named = _TARGET.findall(text)
    found: list[Outputs] = [{"sm": int(n), "code": "sass" if kind == "sm" else "ptx"} for kind, n in named]
    if not found:
        for number, ptx in re.findall(r"(?:\A|[\s;,])(\d{1,2}\.\d)(\+PTX)?(?=[\s;,]|\Z)", text):
            sm = parse_sm(number)
            found += [{"sm": sm, "code": code} for code in (("sass", "ptx") if ptx else ("sass",)) if sm]
    return found[:MAX_LISTED] or None


def package(text: str, _context: Context) -> list[Outputs] | None:
    """`conda 25.3`, `xformers==0.0.28`: a package with its version."""
    match = _NAME_AND_VERSION.match(text)
    if not match and _NAME_ONLY.match(text) and truth(text, _context) is None:
        return [{"name": normal_name(text)}]
    return [{"name": normal_name(match.group(1)), "version": match.group(2)}] if match else None


def virtual_packages(text: str, context: Context) -> list[Outputs] | None:
    """conda's `__cuda=12.4 __linux=6.8 __glibc=2.35`."""
    found: Outputs = {}
    for word in re.split(r"[\s,;\[\]'\"]+", text):
        match = _VIRTUAL.match(word)
        name, value = (match.group(1), match.group(2)) if match else ("", None)
        if name == "cuda" and value:
            found.update(cuda_max=value, vendor="nvidia")
        elif name == "linux":
            found["family"] = "linux"
            release = kernel(value or "", context)
            found.update({"kernel_version": release[0]["version"]} if release else {})
        elif name in ("win", "osx"):
            found["family"] = "windows" if name == "win" else "macos"
        elif name == "glibc" and value:
            found.update(glibc=value, glibc_text=f"glibc {value}")
    return [found] if found else None


def environment(text: str, context: Context) -> list[Outputs] | None:
    """Assignments of environment variables on the allow-list, in shell, Python, Docker or PowerShell form."""
    found: list[Outputs] = []
    for name, value in _ASSIGNMENT.findall(text):
        if name.startswith(context.env_prefixes):
            plain = value.strip("\"'")
            found.append({"name": name, "value": plain, "assignment": f"{name}={plain}"})
    return found[:MAX_LISTED] or None


def gpus(text: str, context: Context) -> list[Outputs] | None:
    """`2x RTX 4090`, `RTX 5090 32GB sm_120`, `A100, T4`, `8`: the GPUs, or only their count."""
    only = _COUNT_ONLY.match(text)
    if only and int(only.group(1)) <= MAX_COUNT:
        return [{"count": int(only.group(1))}]
    whole_text = _gpu(text, context)
    parts = [p for p in _SPLIT.split(text) if p]
    if len(parts) > 1 and not (whole_text and context.names.identify(str(whole_text.get("name", "")))):
        listed = [_gpu(p, context) for p in parts[:MAX_LISTED]]
        known = [g for g in listed if g and ("gfx" in g or context.names.identify(str(g.get("name", ""))))]
        if len(known) == len(parts):
            return known
    return [whole_text] if whole_text else None


def _gpu(text: str, context: Context) -> Outputs | None:
    """One entry of a GPU list: how many, the name as written, and the attributes behind it."""
    text = re.sub(r",\s*(?=\d{1,4}\s?Gi?B)", " ", " ".join(text.split())).strip(" .'\"")
    count, text = _count(text)
    text = with_lines(text.replace("显卡", " ").strip(), context.names)
    if _GFX.match(text.lower()):
        return {"gfx": text.lower(), "vendor": "amd", **count}
    found: Outputs = {}
    name = text
    while match := _ATTRIBUTE.search(name):
        _add_attribute(found, match)
        name = name[: match.start()]
    if "vram_mib" in found and context.names.identify(name) != context.names.identify(text):
        # The size belongs to the name where it tells two products apart (RTX 3050 6GB); it is then no attribute.
        sized = re.search(r"\A.*?\d{1,4}\s?Gi?B?(?![\w/])", text, re.IGNORECASE)
        name = sized.group(0) if sized else name
        del found["vram_mib"]
    name = name.strip(" ,()")
    # A name that the catalog lacks is believed where it carries a maker's or a product line's name.
    if len(name) > 120 or not (_BRAND.search(name) or context.names.identify(name)):
        return None
    return {"name": name, **found, **count}


def _count(text: str) -> tuple[Outputs, str]:
    first = _COUNT_FIRST.match(text)
    if first:
        number, word, chinese = first.groups()
        count = int(number) if number else _COUNT_WORDS[(word or chinese).lower()]
        # "3090 Ti" begins with a model number, not with a count.
        if 0 < count <= MAX_COUNT:
            return {"count": count}, text[first.end() :].strip()
    last = _COUNT_LAST.search(text)
    if last and last.start() > 0 and int(last.group(1) or last.group(2)) <= MAX_COUNT:
        return {"count": int(last.group(1) or last.group(2))}, text[: last.start()].strip()
    return {}, text


def _add_attribute(found: Outputs, match: re.Match[str]) -> None:
    if match["sm"]:
        number = parse_sm(match["sm"])
        if number:
            found["sm"] = number
    elif match["gfx"]:
        found.update(gfx=match["gfx"].lower(), vendor="amd")
    elif match["size"]:
        found["vram_mib"] = int(match["size"]) * 1024


def normal_name(text: str) -> str:
    """A package name in its normal form: lower case, runs of - _ . become one -."""
    return re.sub(r"[-_.\s]+", "-", text.strip()).lower()


CONVERTERS: Mapping[str, tuple[Converter, Sequence[str]]] = {
    "bool": (truth, ("value",)),
    "int": (whole, ("value",)),
    "watts": (watts, ("value",)),
    "decimal": (decimal, ("value",)),
    "text": (words, ("value",)),
    "version": (version, ("value",)),
    "model": (model, ("value", "params_b")),
    "gib": (gib, ("value",)),
    "mib": (mib, ("value",)),
    "sm": (compute_capability, ("value",)),
    "gfx": (gfx, ("value", "vendor")),
    "vendor": (vendor, ("value",)),
    "driver": (driver, ("vendor", "version", "branch")),
    "kernel": (kernel, ("release", "version")),
    "os": (operating_system, ("name", "family", "distro", "distro_version", "machine", "wsl", "jetson")),
    "wsl": (wsl, ("present", "family", "version")),
    "targets": (targets, ("sm", "code")),
    "package": (package, ("name", "version")),
    "virtual_packages": (virtual_packages, ("cuda_max", "vendor", "family", "kernel_version", "glibc", "glibc_text")),
    "environment": (environment, ("name", "value", "assignment")),
    "gpus": (gpus, ("name", "vendor", "gfx", "sm", "vram_mib", "count")),
    "choice": (words, ("value",)),
}
"""Every converter that an alias may name, with the outputs that its templates may use."""
