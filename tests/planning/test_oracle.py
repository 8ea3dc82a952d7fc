"""The memory formulas against counts: torch's MemTracker follows training steps of fake tensors, which hold nothing.

State (weights, gradients, optimizer) must agree within 5 %, activations within 20 %, at the middle of the range.
Counted is a step as torch takes it on one card: fused attention unless a row says otherwise, fused norms, no dropout,
the loss in float32. The CPU build of torch counts; sizes do not depend on the device.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from gpurules.knowledge import formulas
from gpurules.knowledge.formulas import MIB, Widths
from gpurules.knowledge.loader import load_knowledge
from gpurules.reasoning.planestimates import estimate
from gpurules.reasoning.planrequest import Request
from gpurules.reasoning.plantables import Tables, tables

pytestmark = pytest.mark.torch_needed

# Published parameter counts.
PARAMETERS = {
    "GPT-2": 124_439_808,
    "GPT-2-medium": 354_823_168,
    "GPT-2-large": 774_030_080,
    "GPT-2-XL": 1_557_611_200,
    "BERT-base": 109_482_240 + 1538,  # with the classes' matrix
    "ViT-B/16": 86_567_656,
    "ResNet-18": 11_689_512,
    "ResNet-50": 25_557_032,
    "ResNet-101": 44_549_160,
    "VGG-16": 138_357_544,
    "Llama-3.2-1B": 1_235_814_400,
    "Llama-2-7B": 6_738_415_616,
}


def network(name: str, **options: Any) -> Any:
    """A network of the catalog, of fake tensors where those are on."""
    from . import networks as made

    makers: dict[str, Callable[..., Any]] = {
        "GPT-2": lambda **o: made.Gpt2(12, 768, 12, **o),
        "GPT-2-medium": lambda **o: made.Gpt2(24, 1024, 16, **o),
        "GPT-2-large": lambda **o: made.Gpt2(36, 1280, 20, **o),
        "GPT-2-XL": lambda **o: made.Gpt2(48, 1600, 25, **o),
        "BERT-base": made.Bert,
        "ViT-B/16": made.Vit,
        "ResNet-18": lambda: made.ResNet((2, 2, 2, 2), bottleneck=False),
        "ResNet-50": lambda: made.ResNet((3, 4, 6, 3)),
        "ResNet-101": lambda: made.ResNet((3, 4, 23, 3)),
        "VGG-16": made.Vgg,
        "Llama-3.2-1B": lambda **o: made.Llama(16, 2048, 32, 8, 8192, 128256, tied=True, **o),
        "Llama-2-7B": lambda **o: made.Llama(32, 4096, 32, 32, 11008, 32000, **o),
    }
    return makers[name](**options)


@dataclass(frozen=True)
class Row:
    """A training to count. sequence 0: of images."""

    model: str
    precision: str = "mixed"
    batch: int = 1
    sequence: int = 0
    again: bool = False
    optimizer: str = "adamw"
    method: str = "full"
    options: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        more = ["checkpointing"] if self.again else []
        more += [f"{name}={value}" for name, value in self.options]
        return " ".join([self.model, self.method, self.precision, f"{self.batch}x{self.sequence}", *more])


@dataclass(frozen=True)
class Count:
    """Bytes: of the state, of autocast's copies of the weights, and the most that activations came to."""

    parameters: int
    weights: int
    gradients: int
    optimizer: int
    copies: int
    activations: int


ROWS = [
    Row("GPT-2", "fp32", 8, 1024),
    Row("GPT-2", "mixed", 8, 1024),
    Row("GPT-2", "mixed", 16, 256, again=True),
    Row("GPT-2", "pure16", 4, 512, optimizer="sgd"),
    Row("GPT-2-medium", "mixed", 4, 1024),
    Row("GPT-2-large", "fp32", 2, 1024, again=True),
    Row("GPT-2-XL", "pure16", 1, 1024, again=True),
    Row("BERT-base", "fp32", 32, 128, optimizer="sgd"),
    Row("BERT-base", "mixed", 16, 512),
    Row("ViT-B/16", "fp32", 16),
    Row("ViT-B/16", "mixed", 64),
    Row("ResNet-50", "fp32", 8, optimizer="sgd"),
    Row("ResNet-50", "mixed", 64),
    Row("ResNet-18", "mixed", 32),
    Row("ResNet-101", "fp32", 16, optimizer="sgd"),
    Row("VGG-16", "fp32", 64, optimizer="sgd"),
    Row("Llama-3.2-1B", "mixed", 1, 2048),
    Row("Llama-3.2-1B", "mixed", 4, 1024, again=True),
    Row("Llama-3.2-1B", "pure16", 2, 1024, options=(("fused", False),)),
    Row("Llama-3.2-1B", "mixed", 2, 1024, again=True, method="lora", options=(("rank", 16),)),
    Row("Llama-3.2-1B", "mixed", 1, 2048, method="lora", options=(("rank", 16),)),
    Row("Llama-2-7B", "pure16", 1, 2048),
    Row("Llama-2-7B", "mixed", 1, 4096, again=True),
]


@pytest.fixture(scope="module")
def known() -> Tables:
    return tables(load_knowledge())


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_the_estimate_is_what_a_training_step_holds(row: Row, known: Tables) -> None:
    count = counted(row)
    adapters = count.parameters - PARAMETERS[row.model]
    assert adapters == (11_272_192 if row.method == "lora" else 0)
    model = known.model(row.model)
    request = Request(
        wanted=(row.method,), model=model, batch=row.batch, sequence=row.sequence or model.tokens,
        precision=row.precision, optimizer=row.optimizer, checkpointing=row.again,
    )  # fmt: skip
    found = {key: value * MIB for key, value in estimate(request, model, (), row.method, known).items() if "mib" in key}
    state = found["weights_mib"] + found["gradients_mib"] + found["optimizer_mib"]
    assert state == pytest.approx(count.weights + count.copies + count.gradients + count.optimizer, rel=0.05)
    assert found["activations_mib"] == pytest.approx(count.activations, rel=0.2)


def test_an_attention_that_is_not_fused_keeps_its_scores(known: Tables) -> None:
    shape = known.model("GPT-2").shape
    assert shape is not None
    for precision, widths in (("fp32", Widths(4, 4)), ("pure16", Widths(2, 2))):
        size = (shape, 4 * 1024, 1024, widths)
        fused, plain = (
            counted(Row("GPT-2", precision, 4, 1024, options=(("fused", fused),))).activations
            for fused in (True, False)
        )
        more = [formulas.layer_activations(*size, fused=fused) for fused in (False, True)]
        assert plain - fused == pytest.approx(12 * (more[0] - more[1]), rel=0.05)


def test_the_foreach_form_of_the_optimizer_needs_one_more_copy_while_it_steps(known: Tables) -> None:
    import torch

    with fakes():
        net = network("GPT-2")
        optimizer = torch.optim.AdamW(net.parameters(), foreach=True)
        tracker = watching(net, optimizer)
        with tracker:
            step(net, Row("GPT-2", "fp32", 1, 8), optimizer)
        parameters = sum(p.numel() for p in net.parameters())
    assert tracker.stepping / parameters == pytest.approx(8 + known.figure("step_bytes_adamw").high, rel=0.05)


# --- counting ---------------------------------------------------------------------------------------------------------


@contextmanager
def fakes() -> Iterator[None]:
    from torch._subclasses.fake_tensor import FakeTensorMode

    with FakeTensorMode():
        yield


def watching(net: Any, optimizer: Any) -> Any:
    """A MemTracker that notes the most of what is neither weights, gradients nor optimizer state."""
    from torch.distributed._tools.mem_tracker import MemTracker

    class Peaks(MemTracker):
        activations = 0
        stepping = 0

        def _update_peak_stats(self, _state: Any) -> None:  # instead of going through every module at every operation
            for parts in self._curr_mem_snap.values():
                sizes = named(parts)
                if self._in_opt:
                    self.stepping = max(self.stepping, sizes["Optstate"])
                else:
                    self.activations = max(self.activations, sizes["Activation"] + sizes["Temp"])

        def _track_module_params_and_buffers(self, module: Any, install_grad_hooks: bool = True) -> Any:
            trained = all(p.requires_grad for p in module.parameters())  # a frozen parameter takes no hook
            return super()._track_module_params_and_buffers(module, install_grad_hooks and trained)

    tracker = Peaks()
    tracker.track_external(net, optimizer)
    return tracker


def named(parts: dict[Any, int]) -> dict[str, int]:
    return {str(getattr(key, "value", key)): size for key, size in parts.items()}


def step(net: Any, row: Row, optimizer: Any) -> None:
    import torch

    with torch.autocast("cpu", torch.bfloat16, enabled=row.precision == "mixed"):
        loss = net(*inputs(row))
    loss.backward()
    optimizer.step()


def inputs(row: Row) -> tuple[Any, Any]:
    import torch

    if not row.sequence:
        return torch.zeros(row.batch, 3, 224, 224), torch.zeros(row.batch, dtype=torch.long)
    ids = torch.zeros(row.batch, row.sequence, dtype=torch.long)
    return ids, ids


def counted(row: Row) -> Count:
    """One step from fresh state. Activations are counted apart from the gradients that come to be in it."""
    import torch

    with fakes():
        torch.set_default_dtype(torch.float32 if row.precision == "fp32" or full_mixed(row) else torch.bfloat16)
        try:
            net = network(row.model, **dict(row.options))
        finally:
            torch.set_default_dtype(torch.float32)
        net.stack.again = row.again
        trained = [p for p in net.parameters() if p.requires_grad]
        optimizer = (
            torch.optim.AdamW(trained) if row.optimizer == "adamw" else torch.optim.SGD(trained, momentum=0.9, lr=0.1)
        )
        copies = copied(net) if full_mixed(row) else 0
        tracker = watching(net, optimizer)
        with tracker:
            step(net, row, optimizer)
        (left,) = (named(parts) for parts in tracker.get_tracker_snapshot("current").values())
    return Count(
        parameters=sum(p.numel() for p in net.parameters()),
        weights=left["Parameter"],
        gradients=left["Gradient"],
        optimizer=left["Optstate"],
        copies=copies,
        activations=tracker.activations - copies,
    )


def full_mixed(row: Row) -> bool:
    return row.precision == "mixed" and row.method == "full"


def copied(net: Any) -> int:
    """What autocast caches of the weights: bfloat16 copies of all that take part in matrix products."""
    from torch import nn

    matrices = {m.weight for m in net.modules() if isinstance(m, nn.Linear | nn.Conv2d)}
    return sum(2 * weight.numel() for weight in matrices)
