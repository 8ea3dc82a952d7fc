"""Catalogs: the YAML files of `knowledge/facts` expanded to flat rows of the vocabulary's catalog types.

May live here: how each catalog file is written, what it expands to, and the checks that its figures must pass. Must
not: any figure (those are data), any rule, any search or choice among the rows.

The files are grouped so that people can edit them (a torch release is one block, a GPU family shares its defaults);
the rows are flat so that rules can join on them. Every row keeps the source, confidence, file and line it came from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path

from ..facts import Scalar
from ..messages import Message
from .names import GpuName, GpuNames
from .problems import Problems, did_you_mean
from .publishers import KINDS
from .versions import parse_version
from .vocabulary import FieldSpec, Vocabulary, parse_sm
from .yamlnodes import Node, load

CONFIDENCES = ("verified", "secondary", "inferred")
_SHIPPED = Path(__file__).resolve().parent / "facts"
INDEX = "https://download.pytorch.org/whl/"
_VARIANT = re.compile(r"(?:cpu|xpu|cu(\d{1,2})(\d)|rocm(\d+(?:\.\d+){1,2}))\Z")
_INDEX_PAGE = re.compile(r"[a-z0-9][a-z0-9._-]*\Z")
_GFX = re.compile(r"gfx[0-9a-f]{3,4}\Z")
_PCI = re.compile(r"[0-9a-f]{4}\Z")
_INTEGER = re.compile(r"-?[0-9]{1,15}\Z")
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}\Z")
_PCI_VENDORS = {"nvidia": "10de", "amd": "1002", "intel": "8086"}
_SOURCED = ("source", "confidence", "note")
_TEXT_TYPES = ("str", "version", "enum", "gpu_name")


@dataclass(frozen=True, slots=True)
class Source:
    """Where knowledge was read. opened: false where the page is only named; kind: where publishers.yaml has none."""

    url: str
    title: str
    opened: bool = True
    kind: str | None = None


@dataclass(frozen=True, slots=True)
class CatalogRow:
    """One row: what it says, who says so, how sure, and where it is written down."""

    type: str
    fields: Mapping[str, Scalar]
    source: Source
    confidence: str
    file: str
    line: int


@dataclass(frozen=True, slots=True)
class Catalogs:
    """All rows of all catalogs, and the names by which people and programs call the GPUs.

    retrieved, sources: the day of each catalog, and its table of sources.
    """

    rows: tuple[CatalogRow, ...] = ()
    names: tuple[GpuName, ...] = ()
    retrieved: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, Mapping[str, Source]] = field(default_factory=dict)

    def tables(self) -> dict[str, list[Mapping[str, Scalar]]]:
        """The rows' fields by type, in file order."""
        tables: dict[str, list[Mapping[str, Scalar]]] = {}
        for row in self.rows:
            tables.setdefault(row.type, []).append(row.fields)
        return tables

    def gpu_names(self) -> GpuNames:
        """The recogniser of GPU names."""
        return GpuNames(self.names)


def load_catalogs(
    folder: Path, vocabulary: Vocabulary, problems: Problems, files: Mapping[str, Path] | None = None
) -> Catalogs:
    """Read every catalog of the folder; all faults go to `problems`, and what could be read comes back.

    files: where `facts/NAME.yaml` lies instead, for a folder that is laid over another.
    """
    rows: list[CatalogRow] = []
    names: list[GpuName] = []
    retrieved: dict[str, str] = {}
    sources: dict[str, Mapping[str, Source]] = {}
    for name, read in _READERS.items():
        path = (files or {}).get(f"facts/{name}.yaml", folder / f"{name}.yaml")
        sheet = _open_sheet(path, name, vocabulary, problems)
        if sheet is not None:
            read(sheet)
            if sheet.over_shipped:
                sheet = _laid_over(sheet, name, read, vocabulary, problems)
            retrieved[name] = sheet.retrieved
            sources[name] = sheet.sources
            rows += sheet.rows
            names += sheet.names
    _check_identities(rows, vocabulary, problems)
    _check_across(rows, problems)
    return Catalogs(tuple(rows), tuple(names), retrieved, sources)


def _laid_over(
    own: _Sheet, name: str, read: Callable[[_Sheet], None], vocabulary: Vocabulary, problems: Problems
) -> _Sheet:
    """The shipped catalog with the rows of another: added, or in place of those of the same identity."""
    shipped = _open_sheet(_SHIPPED / f"{name}.yaml", name, vocabulary, problems)
    if shipped is None:
        return own
    read(shipped)
    replaced = {_identity(row, vocabulary) for row in own.rows}
    builds = {row.fields["build"] for row in own.rows if "build" in row.fields}  # their code goes with them
    kept = [
        row
        for row in shipped.rows
        if _identity(row, vocabulary) not in replaced and row.fields.get("build") not in builds
    ]
    shipped.rows = kept + own.rows
    products = {known.product for known in own.names}
    shipped.names = [known for known in shipped.names if known.product not in products] + own.names
    return shipped


def _identity(row: CatalogRow, vocabulary: Vocabulary) -> tuple[Scalar | None, ...]:
    return (row.type, *(row.fields.get(name) for name in vocabulary.types[row.type].identity))


# --- one file ---------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Origin:
    """What a row says of its source; a group's origin holds for its members unless they say otherwise."""

    source: Source = Source("", "")
    confidence: str = ""


@dataclass(slots=True)
class _Sheet:
    """A catalog file being read."""

    file: str
    retrieved: str
    sources: Mapping[str, Source]
    elements: Sequence[Node]
    vocabulary: Vocabulary
    problems: Problems
    rows: list[CatalogRow] = field(default_factory=list)
    names: list[GpuName] = field(default_factory=list)
    over_shipped: bool = False

    def fault(self, node: Node, name: str, message: Message) -> None:
        self.problems.add(self.file, node.line, name, message)

    def add(self, type_name: str, fields: Mapping[str, Scalar], origin: _Origin, node: Node) -> None:
        self.rows.append(CatalogRow(type_name, fields, origin.source, origin.confidence, self.file, node.line))

    def keys(self, node: Node, allowed: Iterable[str], required: Iterable[str]) -> bool:
        """Whether the node is a mapping with all required keys; unknown ones are faults too."""
        if node.kind != "map":
            self.fault(node, "rows", Message("fault.row_shape"))
            return False
        known = (*allowed, *_SOURCED)
        given = {key.text for key, _ in node.pairs()}
        for key, _ in node.pairs():
            if key.text not in known:
                self.fault(
                    key,
                    key.text,
                    Message("fault.unknown_field_named", name=key.text, hint=did_you_mean(key.text, known)),
                )
        missing = [name for name in required if name not in given]
        for name in missing:
            self.fault(node, name, Message("fault.missing"))
        return not missing

    def origin(self, node: Node, inherited: _Origin, prefix: str = "") -> _Origin:
        """The source and confidence under `<prefix>source` and `<prefix>confidence`, else the inherited ones."""
        found = _Origin(inherited.source, inherited.confidence)
        source = node.get(f"{prefix}source")
        if source is not None:
            if source.text in self.sources:
                found.source = self.sources[source.text]
            else:
                hint = did_you_mean(source.text, self.sources)
                self.fault(source, f"{prefix}source", Message("fault.unknown_source", name=source.text, hint=hint))
        confidence = node.get(f"{prefix}confidence")
        if confidence is not None:
            found.confidence = confidence.text
            if confidence.text not in CONFIDENCES:
                hint = did_you_mean(confidence.text, CONFIDENCES)
                self.fault(confidence, f"{prefix}confidence", Message("fault.one_of", values=CONFIDENCES, hint=hint))
        return found

    def sourced(self, node: Node, inherited: _Origin | None = None) -> _Origin:
        """The origin of a row that must have one."""
        origin = self.origin(node, inherited or _Origin())
        for name, value in (("source", origin.source.url), ("confidence", origin.confidence)):
            if not value and node.get(name) is None:
                self.fault(node, name, Message("fault.missing"))
        return origin

    def typed(self, type_name: str, name: str, node: Node | None) -> Scalar | None:
        """The scalar of a vocabulary field, None where it is absent or of the wrong type (then a fault)."""
        if node is None:
            return None
        if node.kind != "scalar":
            self.fault(node, name, Message("fault.field_one_value", name=name))
            return None
        spec: FieldSpec = self.vocabulary.types[type_name].fields[name]
        value: Scalar = node.text if spec.type in _TEXT_TYPES else _plain_value(node.text)
        wrong = self.vocabulary.check(type_name, name, value)
        if wrong:
            self.fault(node, name, wrong)
            return None
        return self.vocabulary.coerce(type_name, name, value)

    def take(self, type_name: str, names: Iterable[str], *nodes: Node) -> dict[str, Scalar]:
        """The named fields, each from the first of the nodes that has it."""
        found: dict[str, Scalar] = {}
        for name in names:
            value = self.typed(type_name, name, next((n for node in nodes if (n := node.get(name)) is not None), None))
            if value is not None:
                found[name] = value
        return found

    def words(self, node: Node | None, name: str) -> list[Node]:
        """The scalars of a list; anything else is a fault."""
        if node is None:
            return []
        if node.kind != "list" or any(item.kind != "scalar" for item in node.elements()):
            self.fault(node, name, Message("fault.plain_list", name=name))
            return []
        return node.elements()


def _open_sheet(path: Path, name: str, vocabulary: Vocabulary, problems: Problems) -> _Sheet | None:
    shown = path.name
    root = load(path, problems, shown)
    if root is None:
        return None
    known = ("catalog", "retrieved", "sources", "rows", "over")
    for key, _ in root.pairs():
        if key.text not in known:
            problems.add(
                shown,
                key.line,
                key.text,
                Message("fault.unknown_field_named", name=key.text, hint=did_you_mean(key.text, known)),
            )
    title = root.get("catalog")
    if title is None or title.text != name:
        problems.add(shown, (title or root).line, "catalog", Message("fault.catalog_name", name=name))
    date = root.get("retrieved")
    if date is None or not _DATE.match(date.text):
        problems.add(shown, (date or root).line, "retrieved", Message("fault.date_form"))
    rows = root.get("rows")
    if rows is None or rows.kind != "list":
        problems.add(shown, (rows or root).line, "rows", Message("fault.list"))
        return None
    over = root.get("over")
    if over is not None and (over.text != "shipped" or path.parent == _SHIPPED):
        problems.add(shown, over.line, "over", Message("fault.over"))
    sources = read_table(root, shown, problems)
    sheet = _Sheet(shown, date.text if date else "", sources, rows.elements(), vocabulary, problems)
    sheet.over_shipped = over is not None and path.parent != _SHIPPED
    return sheet


def read_table(root: Node, file: str, problems: Problems) -> dict[str, Source]:
    """The table of sources of a catalog, by key."""
    sources: dict[str, Source] = {}
    listed = root.get("sources")
    for key, value in listed.pairs() if listed else ():
        url, title = value.get("url"), value.get("title")
        if url is None or not url.text.startswith("https://"):
            problems.add(file, value.line, f"sources.{key.text}.url", Message("fault.https"))
        if title is None or not title.text:
            problems.add(file, value.line, f"sources.{key.text}.title", Message("fault.missing"))
        opened, kind = value.get("opened"), value.get("kind")
        for name, node, allowed in (("opened", opened, ("true", "false")), ("kind", kind, KINDS)):
            if node is not None and node.text not in allowed:
                what = Message("shape.literal_error", expected=", ".join(allowed))
                problems.add(file, node.line, f"sources.{key.text}.{name}", what)
        sources[key.text] = Source(
            url.text if url else "",
            title.text if title else "",
            opened is None or opened.text == "true",
            kind.text if kind else None,
        )
    if not sources:
        problems.add(file, root.line, "sources", Message("fault.one_source"))
    return sources


# --- plain catalogs: one row, one fact --------------------------------------------------------------------------------


def _read_cuda_releases(sheet: _Sheet) -> None:
    names = tuple(n for n in sheet.vocabulary.types["cuda_release"].fields if n not in ("cuda_major", "level"))
    for node in sheet.elements:
        if not sheet.keys(node, names, ("cuda", "min_driver_linux", "min_driver_windows", "first_sm", "last_sm")):
            continue
        fields = sheet.take("cuda_release", names, node)
        if "cuda" in fields:
            fields["cuda_major"] = _numbers(fields["cuda"])[0]
            fields["level"] = _cuda_level(fields["cuda"])
        sheet.add("cuda_release", fields, sheet.sourced(node), node)


def _plain(type_name: str, required: Sequence[str]) -> Callable[[_Sheet], None]:
    def read(sheet: _Sheet) -> None:
        names = tuple(sheet.vocabulary.types[type_name].fields)
        for node in sheet.elements:
            if sheet.keys(node, names, required):
                sheet.add(type_name, sheet.take(type_name, names, node), sheet.sourced(node), node)

    return read


# --- torch builds: one block a release --------------------------------------------------------------------------------

_RELEASE = ("torch", "python", "torchvision", "torchaudio", "builds")
_BUILD = ("variant", "on", "default", "accelerator", "index", "targets", "ptx", "targets_source", "targets_confidence")
_COMPANIONS = ("torchvision", "torchaudio", "triton", "cudnn", "nccl")


@dataclass(frozen=True, slots=True)
class _Targets:
    """The code in a build: targets as written, the compute capabilities of device code and PTX."""

    known: bool
    text: str = ""
    sass: tuple[int, ...] = ()
    ptx: tuple[int, ...] = ()
    gfx: tuple[str, ...] = ()


def _read_torch_builds(sheet: _Sheet) -> None:
    for node in sheet.elements:
        if not sheet.keys(node, _RELEASE, ("torch", "python", "builds")):
            continue
        origin = sheet.sourced(node)
        shared = sheet.take("torch_build", ("torch",), node) | _python_range(sheet, node)
        builds = node.get("builds")
        if builds is None or builds.kind != "list":
            sheet.fault(builds or node, "builds", Message("fault.list"))
            continue
        if "torch" in shared:
            for build in builds.elements():
                _read_build(sheet, node, build, shared, origin)


def _python_range(sheet: _Sheet, release: Node) -> dict[str, Scalar]:
    node = release.get("python")
    ends = sheet.words(node, "python")
    if node is None or len(ends) != 2:
        sheet.fault(node or release, "python", Message("fault.python_range"))
        return {}
    low, high = sheet.typed("torch_build", "python_min", ends[0]), sheet.typed("torch_build", "python_max", ends[1])
    if low is None or high is None:
        return {}
    if _numbers(low) > _numbers(high):
        sheet.fault(node, "python", Message("fault.python_order", low=low, high=high))
    return {"python_min": low, "python_max": high}


def _read_build(sheet: _Sheet, release: Node, node: Node, shared: Mapping[str, Scalar], inherited: _Origin) -> None:
    if not sheet.keys(node, (*_BUILD, *_COMPANIONS), ("variant", "on")):
        return
    variant = node.get("variant")
    match = _VARIANT.match(variant.text) if variant is not None else None
    if variant is None or match is None:
        sheet.fault(variant or node, "variant", Message("fault.variant"))
        return
    origin = sheet.origin(node, inherited)
    fields: dict[str, Scalar] = dict(shared) | {"variant": variant.text} | _accelerator(sheet, node, variant.text)
    if match.group(1):
        fields |= {"cuda": f"{match.group(1)}.{match.group(2)}", "cuda_major": int(match.group(1))}
    fields |= sheet.take("torch_build", _COMPANIONS, node, release)
    index = node.get("index")
    if index is not None and not _INDEX_PAGE.match(index.text):
        sheet.fault(index, "index", Message("fault.index_page", index=INDEX))
    fields["index_url"] = INDEX + (index.text if index is not None else variant.text)
    targets = _read_targets(sheet, node, str(fields["accelerator"]))
    if targets.text:
        fields["targets"] = targets.text
    fields["targets_known"] = targets.known
    fields["confirmed"] = _confirmed(sheet, node, origin, targets, str(fields["accelerator"]))
    default = {item.text for item in sheet.words(node.get("default"), "default")}
    platforms = sheet.words(node.get("on"), "on")
    for name in sorted(default - {item.text for item in platforms}):
        sheet.fault(
            node,
            "default",
            Message("fault.default_platform", name=name, hint=did_you_mean(name, (p.text for p in platforms))),
        )
    for item in platforms:
        platform = sheet.typed("torch_build", "platform", item)
        if platform is not None:
            of_platform: dict[str, Scalar] = {"platform": platform, "pypi_default": platform in default}
            _add_build(sheet, fields | of_platform, targets, origin, node)


def _accelerator(sheet: _Sheet, node: Node, variant: str) -> dict[str, Scalar]:
    written = sheet.take("torch_build", ("accelerator",), node)
    implied = "cuda" if variant.startswith("cu") else re.sub(r"[\d.]+\Z", "", variant)
    if written and (implied, written["accelerator"]) != ("cpu", "mps"):
        sheet.fault(node, "accelerator", Message("fault.accelerator", variant=variant, implied=implied))
    return written or {"accelerator": implied}


def _read_targets(sheet: _Sheet, node: Node, accelerator: str) -> _Targets:
    listed, ptx = node.get("targets"), node.get("ptx")
    if accelerator not in ("cuda", "rocm"):
        if listed is not None or ptx is not None:
            sheet.fault(listed or ptx or node, "targets", Message("fault.no_targets"))
        return _Targets(known=accelerator in ("cpu", "mps"))
    if listed is None:
        return _Targets(known=False)
    if accelerator == "rocm":
        for item in sheet.words(listed, "targets"):
            if not _GFX.match(item.text):
                sheet.fault(item, "targets", Message("fault.gfx_name", name=item.text))
        names = tuple(item.text for item in sheet.words(listed, "targets"))
        return _Targets(True, " ".join(names), gfx=names)
    sass = _capabilities(sheet, listed, "targets")
    return _Targets(True, " ".join(f"sm_{sm}" for sm in sass), sass, _capabilities(sheet, ptx, "ptx"))


def _capabilities(sheet: _Sheet, node: Node | None, name: str) -> tuple[int, ...]:
    found: list[int] = []
    for item in sheet.words(node, name):
        sm = parse_sm(item.text)
        if sm is None or item.text != str(sm):
            sheet.fault(item, name, Message("fault.capability", value=item.text))
        elif sm in found:
            sheet.fault(item, name, Message("fault.value_twice", value=sm))
        else:
            found.append(sm)
    return tuple(found)


def _confirmed(sheet: _Sheet, node: Node, origin: _Origin, targets: _Targets, accelerator: str) -> bool:
    """Neither the build nor, for CUDA, its targets are merely inferred."""
    of_targets = sheet.origin(node, origin, "targets_")
    if accelerator != "cuda":
        return origin.confidence != "inferred"
    return targets.known and "inferred" not in (origin.confidence, of_targets.confidence)


def _add_build(sheet: _Sheet, fields: dict[str, Scalar], targets: _Targets, origin: _Origin, node: Node) -> None:
    build = f"{fields['torch']}+{fields['variant']}@{fields['platform']}"
    sheet.add("torch_build", {"build": build} | fields | {"rank": _rank(fields)}, origin, node)
    of_targets = sheet.origin(node, origin, "targets_")
    for code, list_of in (("sass", targets.sass), ("ptx", targets.ptx)):
        for sm in list_of:
            sheet.add("build_target", {"build": build, "sm": sm, "code": code}, of_targets, node)
    for gfx in targets.gfx:
        sheet.add("build_gfx", {"build": build, "gfx": gfx}, of_targets, node)


def _rank(fields: Mapping[str, Scalar]) -> int:
    """One number for the order: confirmed, torch, the package index's default, the accelerator's version."""
    major, minor, micro = (*_numbers(fields["torch"]), 0, 0)[:3]
    variant = [int(n) for n in re.findall(r"\d+", str(fields.get("cuda", fields["variant"])))][:3]
    level = sum(n * scale for n, scale in zip(variant, (10_000, 100, 1), strict=False))
    rank = int(bool(fields["confirmed"])) * 10**6 + major * 10_000 + minor * 100 + micro
    return (rank * 2 + int(bool(fields["pypi_default"]))) * 10**7 + level


# --- GPUs: groups that share their defaults ---------------------------------------------------------------------------

_GPU_ONLY = ("aliases", "line", "pci", "vram_options")


def _read_gpus(sheet: _Sheet) -> None:
    names = tuple(n for n in sheet.vocabulary.types["gpu_model"].fields if n not in ("product", "vram_mib"))
    for group in sheet.elements:
        if not sheet.keys(group, (*names, "models"), ("vendor", "family", "models")):
            continue
        origin = sheet.origin(group, _Origin())
        models = group.get("models")
        if models is None or models.kind != "list":
            sheet.fault(models or group, "models", Message("fault.list"))
            continue
        for node in models.elements():
            if sheet.keys(node, ("product", *names, *_GPU_ONLY), ("product",)):
                _read_model(sheet, group, node, names, origin)


def _read_model(sheet: _Sheet, group: Node, node: Node, names: Sequence[str], inherited: _Origin) -> None:
    fields = sheet.take("gpu_model", ("product",), node) | sheet.take("gpu_model", names, node, group)
    if "product" not in fields or "vendor" not in fields:
        return
    needed = {"nvidia": "sm", "amd": "gfx"}.get(str(fields["vendor"]))
    if needed and needed not in fields:
        sheet.fault(
            node, needed, Message("fault.missing_for_vendor", product=fields["product"], vendor=fields["vendor"])
        )
    origin = sheet.sourced(node, inherited)
    product = str(fields["product"])
    aliases = tuple(item.text for item in sheet.words(node.get("aliases"), "aliases"))
    line = node.get("line")
    sheet.names.append(GpuName(product, aliases, line is not None and line.text == "true"))
    sheet.add("gpu_model", _with_mib(fields), origin, node)
    for option in sheet.words(node.get("vram_options"), "vram_options"):
        size = sheet.typed("gpu_model", "vram_gib", option)
        if size is not None:
            variant = f"{product} {size}GB"
            sheet.names.append(GpuName(variant, tuple(f"{alias} {size}GB" for alias in aliases)))
            own = {name: value for name, value in fields.items() if name != "usual"}
            sheet.add("gpu_model", _with_mib(own | {"product": variant, "vram_gib": size}), origin, option)
    for item in sheet.words(node.get("pci"), "pci"):
        vendor = _PCI_VENDORS.get(str(fields["vendor"]))
        if vendor is None or not _PCI.match(item.text):
            sheet.fault(item, "pci", Message("fault.pci", value=item.text))
        else:
            sheet.add("gpu_pci_id", {"device_id": f"{vendor}:{item.text}", "product": product}, origin, item)


def _with_mib(fields: Mapping[str, Scalar]) -> dict[str, Scalar]:
    vram = fields.get("vram_gib")
    return dict(fields) | ({"vram_mib": int(vram) * 1024} if vram is not None else {})


# --- add-on packages: one block a package --------------------------------------------------------------------------

_PACKAGE = ("package", "module", "instead", "binds", "needs", "builds")
_NEEDS = ("since", "before", "torch_min", "sm_min", "linux_only", "install")
_BUILT = ("torch", "versions", "since", "before", "install")
# Of a span without an end: below and above every version.
_FIRST, _LAST = "0", "4000"


def _read_extensions(sheet: _Sheet) -> None:
    for node in sheet.elements:
        if not sheet.keys(node, _PACKAGE, ("package", "module")):
            continue
        shared = sheet.take("extension", ("package", "module"), node)
        inherited = sheet.origin(node, _Origin())
        needs, builds = node.get("needs"), node.get("builds")
        for need in needs.elements() if needs else ():
            _read_need(sheet, node, need, shared, inherited)
        binds = sheet.typed("extension_build", "binds", node.get("binds"))
        if builds is not None and binds is None:
            sheet.fault(node, "binds", Message("fault.binds"))
        if binds is not None:
            shared["binds"] = binds
        for build in builds.elements() if builds else ():
            _read_extension_build(sheet, build, shared, inherited)


def _read_need(sheet: _Sheet, package: Node, node: Node, shared: Mapping[str, Scalar], inherited: _Origin) -> None:
    if not sheet.keys(node, _NEEDS, ()):
        return
    fields: dict[str, Scalar] = {"since": _FIRST, "before": _LAST, **shared}
    instead = package.get("instead")
    if instead is not None:
        fields |= {f"instead_{lang}": text.text for lang in ("en", "zh") if (text := instead.get(lang)) is not None}
    fields |= sheet.take("extension", _NEEDS, node)
    sheet.add("extension", fields, sheet.sourced(node, inherited), node)


def _read_extension_build(sheet: _Sheet, node: Node, shared: dict[str, Scalar], inherited: _Origin) -> None:
    """One row a version, the first of which is the one to install; or one for a span of them."""
    if not sheet.keys(node, _BUILT, ("torch",)):
        return
    origin = sheet.sourced(node, inherited)
    fields = shared | sheet.take("extension_build", ("torch", "since", "before", "install"), node)
    versions = sheet.words(node.get("versions"), "versions")
    if bool(versions) == ("since" in fields):
        sheet.fault(node, "versions", Message("fault.versions_or_span"))
    for index, item in enumerate(versions):
        version = sheet.typed("extension_build", "version", item)
        if version is not None:
            own: dict[str, Scalar] = {"version": version, **({"install": version} if index == 0 else {})}
            sheet.add("extension_build", fields | own, origin, item)
    if not versions:
        sheet.add("extension_build", {"before": _LAST, **fields}, origin, node)


# --- planning ---------------------------------------------------------------------------------------------------------

_FIGURE = ("low", "value", "high")
_DECIMAL = re.compile(r"[0-9]{1,9}(?:\.[0-9]{1,3})?\Z")


def _read_models(sheet: _Sheet) -> None:
    spec = sheet.vocabulary.types["model_spec"].fields
    names = tuple(n for n in spec if n != "aliases")
    for group in sheet.elements:
        models = group.get("models")
        if not sheet.keys(group, (*names, "models"), ("models",)) or models is None:
            continue
        inherited = sheet.origin(group, _Origin())
        for node in models.elements():
            if not sheet.keys(node, (*names, "aliases"), ("model", "params_m")):
                continue
            fields = sheet.take("model_spec", names, node, group)
            aliases = [item.text for item in sheet.words(node.get("aliases"), "aliases")]
            _check_model(sheet, node, fields)
            more: dict[str, Scalar] = {"aliases": "|".join(aliases)} if aliases else {}
            sheet.add("model_spec", fields | more, sheet.sourced(node, inherited), node)


def _check_model(sheet: _Sheet, node: Node, fields: Mapping[str, Scalar]) -> None:
    """A transformer needs its whole shape, and the shape must make about as many parameters as the model has."""
    shape = ("layers", "hidden", "heads", "kv_heads", "head_dim", "intermediate", "vocab")
    given = [name for name in shape if name in fields]
    if "kind" not in fields:
        sheet.fault(node, "kind", Message("fault.missing"))
    if fields.get("kind") == "vision" and len(given) == len(shape) and "tokens" not in fields:
        sheet.fault(node, "tokens", Message("fault.image_tokens"))
    if fields.get("kind") == "decoder" and len(given) < len(shape):
        sheet.fault(node, next(n for n in shape if n not in fields), Message("fault.decoder_shape"))
    elif len(given) == len(shape) and fields.get("kind") == "decoder" and "active_m" not in fields:
        layers, hidden, heads, kv_heads, size, wide, vocab = (int(fields[n]) for n in shape)
        matrices = 2 * hidden * size * (heads + kv_heads) + (3 if fields.get("gated") else 2) * hidden * wide
        total = layers * matrices + vocab * hidden * (1 if fields.get("tied") else 2)
        if not 0.93 < total / 1e6 / int(fields["params_m"]) < 1.07:
            sheet.fault(node, "params_m", Message("fault.parameters", n=total // 10**6))


def _read_planning(sheet: _Sheet) -> None:
    for node in sheet.elements:
        if not sheet.keys(node, ("name", *_FIGURE), ("name", "value")):
            continue
        fields = sheet.take("plan_figure", ("name",), node)
        texts = {n: found.text for n in _FIGURE if (found := node.get(n) or node.get("value")) is not None}
        wrong = [n for n in _FIGURE if not _DECIMAL.match(texts.get(n, ""))]
        for name in wrong:
            sheet.fault(node, name, Message("fault.decimal"))
        if not wrong:
            low, value, high = (round(float(texts[n]) * 1000) for n in _FIGURE)
            if not low <= value <= high:
                sheet.fault(node, "value", Message("fault.between"))
            sheet.add("plan_figure", fields | {"low": low, "value": value, "high": high}, sheet.sourced(node), node)


# --- checks -----------------------------------------------------------------------------------------------------------

_RISING = (
    ("cuda_release", "level", ("toolkit_driver_linux", "toolkit_driver_windows")),
    ("cuda_release", "level", ("min_driver_linux", "min_driver_windows", "first_sm", "last_sm", "max_gcc")),
    ("driver_branch", "branch", ("cuda_max",)),
)
_SPANS = (
    ("architecture", "first_cuda", "last_cuda"),
    ("architecture", "first_driver", "last_driver"),
    ("cuda_release", "first_sm", "last_sm"),
)


def _check_identities(rows: Iterable[CatalogRow], vocabulary: Vocabulary, problems: Problems) -> None:
    seen: dict[tuple[Scalar | None, ...], CatalogRow] = {}
    for row in rows:
        names = vocabulary.types[row.type].identity
        key = (row.type, *(row.fields.get(name) for name in names))
        first = seen.setdefault(key, row)
        # One build listed twice repeats its targets: one report, at the build.
        if first is not row and row.type not in ("build_target", "build_gfx"):
            shown = " ".join(str(row.fields.get(name)) for name in names)
            problems.add(
                row.file, row.line, ".".join(names), Message("fault.given_at_line", value=shown, line=first.line)
            )


def _check_across(rows: Sequence[CatalogRow], problems: Problems) -> None:
    _check_rising(rows, problems)
    _check_spans(rows, problems)
    _check_targets(rows, problems)
    products = {row.fields["product"] for row in _of(rows, "gpu_model") if "product" in row.fields}
    for row in _of(rows, "gpu_price"):
        if products and row.fields.get("product") not in products:
            problems.add(row.file, row.line, "product", Message("fault.not_among_gpus", name=row.fields.get("product")))
    known = {row.fields.get("sm") for row in _of(rows, "architecture")}
    for row in _of(rows, "gpu_model"):
        if known and "sm" in row.fields and row.fields["sm"] not in known:
            problems.add(row.file, row.line, "sm", Message("fault.not_among_architectures", sm=row.fields["sm"]))


def _check_rising(rows: Sequence[CatalogRow], problems: Problems) -> None:
    """Newer releases never need older drivers, nor newer branches support less."""
    for type_name, key, names in _RISING:
        ordered = sorted((int(row.fields[key]), row.line, row) for row in _of(rows, type_name) if key in row.fields)
        for name in names:
            having = [row for _, _, row in ordered if name in row.fields]
            for older, newer in pairwise(having):
                low, high = older.fields[name], newer.fields[name]
                if _numbers(high) < _numbers(low):
                    message = Message("fault.falls", high=high, low=low, line=older.line)
                    problems.add(newer.file, newer.line, name, message)


def _check_spans(rows: Sequence[CatalogRow], problems: Problems) -> None:
    for type_name, low, high in _SPANS:
        for row in _of(rows, type_name):
            if low in row.fields and high in row.fields and _numbers(row.fields[low]) > _numbers(row.fields[high]):
                problems.add(
                    row.file,
                    row.line,
                    low,
                    Message("fault.above", value=row.fields[low], name=high, limit=row.fields[high]),
                )


def _check_targets(rows: Sequence[CatalogRow], problems: Problems) -> None:
    """A build holds code only for what its CUDA release compiles for."""
    releases = {row.fields.get("cuda"): row.fields for row in _of(rows, "cuda_release")}
    cuda_of: dict[Scalar, Scalar] = {}
    for row in _of(rows, "torch_build"):
        if "cuda" in row.fields:
            cuda_of[row.fields["build"]] = row.fields["cuda"]
            if releases and row.fields["cuda"] not in releases:
                problems.add(row.file, row.line, "variant", Message("fault.not_among_cuda", cuda=row.fields["cuda"]))
    for row in _of(rows, "build_target"):
        release = releases.get(cuda_of.get(row.fields["build"]))
        low, high = (release.get("first_sm"), release.get("last_sm")) if release else (None, None)
        sm = int(row.fields["sm"])
        if low is not None and high is not None and not int(low) <= sm <= int(high):
            name = "ptx" if row.fields["code"] == "ptx" else "targets"
            message = Message("fault.target_range", sm=sm, low=low, high=high, cuda=cuda_of[row.fields["build"]])
            problems.add(row.file, row.line, name, message)


def _plain_value(text: str) -> Scalar:
    """The whole number or truth value that a text is, else the text."""
    if text in ("true", "false"):
        return text == "true"
    return int(text) if _INTEGER.match(text) else text


def _of(rows: Iterable[CatalogRow], type_name: str) -> Iterator[CatalogRow]:
    return (row for row in rows if row.type == type_name)


def _numbers(value: Scalar) -> tuple[int, ...]:
    """The leading dotted number: 525.60.13 as (525, 60, 13)."""
    parts = parse_version(str(value))
    return tuple(int(n) for n in re.findall(r"\d+", parts.public)) if parts else ()


def _cuda_level(cuda: Scalar) -> int:
    """CUDA's own numbering: 12.8 is 12080."""
    major, minor = (*_numbers(cuda), 0)[:2]
    return major * 1000 + minor * 10


_READERS: dict[str, Callable[[_Sheet], None]] = {
    "cuda_releases": _read_cuda_releases,
    "driver_branches": _plain("driver_branch", ("branch", "supported", "cuda_max")),
    "architectures": _plain("architecture", ("sm", "first_cuda")),
    "gfx_targets": _plain("gfx_target", ("gfx", "integrated")),
    "pci_chips": _plain("pci_chip", ("chip",)),
    "torch_builds": _read_torch_builds,
    "gpus": _read_gpus,
    "model_kinds": _plain("model_kind", ("kind", "images", "every_token", "checkpointed", "adapters")),
    "methods": _plain("plan_method", ("method", "training")),
    "images": _plain("image_release", ("repository", "release", "torch", "cuda")),
    "mirrors": _plain("mirror", ("name", "title", "base", "how")),
    "models": _read_models,
    "nvml_codes": _plain("nvml_code", ("code", "name", "meaning_en", "meaning_zh", "at_start", "on_call")),
    "planning": _read_planning,
    "extensions": _read_extensions,
    "prices": _plain("gpu_price", ("product", "usd")),
}
