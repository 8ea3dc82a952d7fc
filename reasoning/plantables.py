"""The catalogs that planning reads: models, cards, prices, methods and figures, as typed rows.

May live here: looking rows up, and what follows from one row. Must not: any figure, model, card or phrase (data in
`knowledge/facts`), what was asked (planrequest.py), any arithmetic (knowledge/formulas.py).
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ..facts import Scalar
from ..knowledge.formulas import Shape
from ..knowledge.loader import Knowledge

if TYPE_CHECKING:
    from ..knowledge.names import GpuNames

ENDS = ("low", "value", "high")
_TYPES = ("model_spec", "model_kind", "plan_figure", "plan_method", "gpu_model", "gpu_price")
_CARD = ("sm", "vram_mib", "bandwidth_gbs", "tdp_w", "psu_w", "cuda_cores", "nvlink")
# `A100 80GB`, `H100 SXM5 80GB`: of one line, told apart by memory; a laptop's GPU is another product.
_SIZED = re.compile(r" (?:[\w.]+ )?\d+GB\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Spread:
    """A figure with its range."""

    low: float
    value: float
    high: float

    def of(self, end: str) -> float:
        """The figure at one end of the range, or in the middle."""
        return float(getattr(self, end))


@dataclass(frozen=True, slots=True)
class Card:
    """Cards of one product; vram_mib None where nobody knows it. assumed: the member of a line that it is taken for."""

    product: str
    count: int
    fields: Mapping[str, Scalar]
    assumed: str = ""

    @property
    def label(self) -> str:
        """`2x GeForce RTX 3090`."""
        return self.product if self.count == 1 else f"{self.count}x {self.product}"

    def number(self, name: str) -> int | None:
        """A figure of the product."""
        value = self.fields.get(name)
        return int(value) if value is not None else None


@dataclass(frozen=True, slots=True)
class Kind:
    """What training a kind of model usually means."""

    images: bool
    every_token: bool
    checkpointed: bool
    adapters: bool


@dataclass(frozen=True, slots=True)
class Model:
    """The model of the question; shape None where it is no transformer or nobody wrote the shape down.

    tokens: of one image, for a transformer that reads images. saved: elements that a training step keeps of one image,
    for a network of which they were counted.
    """

    name: str
    params: float
    shape: Shape | None
    kind: Kind
    context: int = 0
    tokens: int = 0
    saved: int = 0
    published: str = ""
    typical: bool = False  # the shape is that of a model of like size


@dataclass(frozen=True, slots=True)
class Method:
    """A way to use a model. instead: lighter ones, best first. weights: the figure of frozen or served weights.

    offloaded: the method that is the same with the optimizer in the machine's own memory; host: this is one of those.
    """

    name: str
    training: bool
    said: str = ""
    weights: str = ""
    instead: tuple[str, ...] = ()
    offloaded: str = ""
    host: bool = False
    adapters: bool = False


class Tables:
    """The catalogs that planning reads, by name."""

    def __init__(self, knowledge: Knowledge) -> None:
        rows: dict[str, list[Mapping[str, Scalar]]] = {name: [] for name in _TYPES}
        for type_name, fields in knowledge.static:
            if type_name in rows:
                rows[type_name].append(fields)
        self.models = {str(r["model"]): r for r in rows["model_spec"]}
        self.gpus = {str(r["product"]): r for r in rows["gpu_model"]}
        self.prices = {str(r["product"]): r for r in rows["gpu_price"]}
        self.kinds = {str(r["kind"]): _kind(r) for r in rows["model_kind"]}
        self.methods = {str(r["method"]): _method(r) for r in rows["plan_method"]}
        self._figures = {
            str(r["name"]): Spread(*(int(r[end]) / 1000 for end in ENDS)) for r in rows["plan_figure"]
        }  # fmt: skip

    def figure(self, name: str) -> Spread:
        """A figure of the planning formulas."""
        return self._figures[name]

    def whole(self, name: str) -> int:
        """A figure that is a whole number without a range."""
        return int(self._figures[name].value)

    def special(self, name: str, form: str) -> Spread:
        """The figure of a name in a form of its own, where there is one."""
        return self._figures.get(f"{name}_{form}") or self._figures[name]

    @functools.cached_property
    def names(self) -> GpuNames:
        """The recogniser of model names; they are compared like those of GPUs."""
        from ..knowledge.names import GpuName, GpuNames

        return GpuNames(
            GpuName(name, tuple(a for a in str(r.get("aliases", "")).split("|") if a))
            for name, r in self.models.items()
        )

    def model(self, name: str) -> Model:
        """A model of the catalog."""
        row = self.models[name]
        return Model(
            name,
            int(row["params_m"]) * 1e6,
            _shape(row),
            self.kinds[str(row["kind"])],
            context=int(row.get("context", 0)),
            tokens=int(row.get("tokens", 0)),
            saved=int(row.get("saved_k", 0)) * 1000,
            published=str(row.get("published", "")),
        )

    def of_size(self, billions: float) -> Model:
        """A model of which only the size is known, with the shape of the nearest dense decoder."""
        dense = [r for r in self.models.values() if r["kind"] == "decoder" and "active_m" not in r]
        nearest = min(dense, key=lambda r: abs(int(r["params_m"]) - billions * 1000))
        shape = _shape(nearest)
        params = billions * 1e9
        typical = replace(shape, params=int(params)) if shape else None
        name = f"{billions:g}B"
        kind = self.kinds[str(nearest["kind"])]
        return Model(name, params, typical, kind, int(nearest.get("context", 0)), typical=True)

    def card(self, product: str, count: int = 1, own: Mapping[str, Scalar] | None = None) -> Card:
        """Cards of a product with its figures; own: what is known of these very cards.

        A name that several memory sizes share means the usual one, where the catalog tells it, else the smallest.
        """
        row = self.gpus.get(product, {})
        known = {name: row[name] for name in _CARD if name in row} | dict(own or {})
        if "vram_mib" in known:
            return Card(product, count, known)
        member = self._member(product, row)
        taken = self.gpus.get(member, {})
        more = {name: taken[name] for name in _CARD if name in taken and name not in known}
        return Card(product, count, known | more, assumed=member)

    def members(self, line: str) -> list[tuple[str, int]]:
        """The products that a name stands for which several memory sizes share, with their MiB."""
        sized = ((p, r) for p, r in self.gpus.items() if p.startswith(line) and _SIZED.match(p[len(line) :]))
        return [(p, int(r["vram_mib"])) for p, r in sized if "vram_mib" in r]

    def _member(self, product: str, row: Mapping[str, Scalar]) -> str:
        members = dict(self.members(product))
        usual = str(row.get("usual", ""))
        return usual if usual in members else min(members, key=lambda p: (members[p], p), default="")


@functools.lru_cache(maxsize=4)
def tables(knowledge: Knowledge) -> Tables:
    """The planning tables of this knowledge, made once."""
    return Tables(knowledge)


def _shape(row: Mapping[str, Scalar]) -> Shape | None:
    names = ("layers", "hidden", "heads", "kv_heads", "head_dim", "intermediate", "vocab")
    if any(name not in row for name in names):
        return None
    layers, hidden, heads, kv_heads, head_dim, intermediate, vocab = (int(row[name]) for name in names)
    return Shape(
        params=int(row["params_m"]) * 10**6,
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate=intermediate,
        vocab=vocab,
        gated=bool(row.get("gated")),
        tied=bool(row.get("tied")),
        kv_width=int(row.get("kv_width", 0)),
    )


def _kind(row: Mapping[str, Scalar]) -> Kind:
    return Kind(*(bool(row[name]) for name in ("images", "every_token", "checkpointed", "adapters")))


def _method(row: Mapping[str, Scalar]) -> Method:
    return Method(
        str(row["method"]),
        bool(row["training"]),
        said=str(row.get("said", "")),
        weights=str(row.get("weights", "")),
        instead=tuple(name for name in str(row.get("instead", "")).split("|") if name),
        offloaded=str(row.get("offloaded", "")),
        host=bool(row.get("host")),
        adapters=bool(row.get("adapters")),
    )
