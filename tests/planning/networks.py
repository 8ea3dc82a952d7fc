"""Networks of published shapes in plain torch.nn, for counting what a training step of them holds.

May live here: the networks, written from their papers and configurations. Must not: counting, anything of gpurules.
torch is imported with this module, so only tests that need it import this one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.checkpoint import checkpoint


def _split(x: Tensor, heads: int) -> Tensor:
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def plain_attention(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """The scores as a matrix, their softmax in float32: attention as it is without a fused kernel."""
    scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
    return functional.softmax(scores, -1, dtype=torch.float32).to(q.dtype) @ v


class Stack(nn.Module):
    """Layers one after the other, each computed again in the backward pass where that is wanted."""

    def __init__(self, layers: list[nn.Module]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.again = False

    def forward(self, x: Tensor, *more: Tensor) -> Tensor:
        for layer in self.layers:
            x = checkpoint(layer, x, *more, use_reentrant=False) if self.again else layer(x, *more)
        return x


# --- encoders and GPT-2 -----------------------------------------------------------------------------------------------


class Layer(nn.Module):
    """A layer with LayerNorm and GELU: norms before the blocks (GPT-2, ViT) or behind them (BERT)."""

    def __init__(self, hidden: int, heads: int, *, causal: bool, after: bool, joined: bool, fused: bool = True) -> None:
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(hidden) for _ in range(2))
        sizes = [3 * hidden] if joined else [hidden] * 3
        self.inputs = nn.ModuleList(nn.Linear(hidden, size) for size in sizes)
        self.output = nn.Linear(hidden, hidden)
        self.up, self.down = nn.Linear(hidden, 4 * hidden), nn.Linear(4 * hidden, hidden)
        self.heads, self.causal, self.after, self.fused = heads, causal, after, fused

    def attend(self, x: Tensor) -> Tensor:
        made = [matrix(x) for matrix in self.inputs]
        q, k, v = (_split(y, self.heads) for y in (made[0].chunk(3, -1) if len(made) == 1 else made))
        if self.fused:
            seen = functional.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        else:
            seen = plain_attention(q, k, v)
        return self.output(seen.transpose(1, 2).flatten(2))

    def widen(self, x: Tensor) -> Tensor:
        return self.down(functional.gelu(self.up(x)))

    def forward(self, x: Tensor) -> Tensor:
        first, second = self.norms
        if self.after:
            x = first(x + self.attend(x))
            return second(x + self.widen(x))
        x = x + self.attend(first(x))
        return x + self.widen(second(x))


class Gpt2(nn.Module):
    """GPT-2: Radford et al. 2019; vocabulary 50257, context 1024, query, key and value in one matrix, tied output."""

    def __init__(self, layers: int, hidden: int, heads: int, *, fused: bool = True) -> None:
        super().__init__()
        self.words, self.places = nn.Embedding(50257, hidden), nn.Embedding(1024, hidden)
        made = [Layer(hidden, heads, causal=True, after=False, joined=True, fused=fused) for _ in range(layers)]
        self.stack = Stack(list(made))
        self.norm, self.head = nn.LayerNorm(hidden), nn.Linear(hidden, 50257, bias=False)
        self.head.weight = self.words.weight

    def forward(self, ids: Tensor, wanted: Tensor) -> Tensor:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1]))
        return loss(self.head(self.norm(self.stack(x))), wanted)


class Bert(nn.Module):
    """BERT-base: Devlin et al. 2018; with pooler, and two classes to tell apart."""

    def __init__(self) -> None:
        super().__init__()
        self.words, self.places, self.kinds = nn.Embedding(30522, 768), nn.Embedding(512, 768), nn.Embedding(2, 768)
        self.norm = nn.LayerNorm(768)
        self.stack = Stack([Layer(768, 12, causal=False, after=True, joined=False) for _ in range(12)])
        self.pool, self.head = nn.Linear(768, 768), nn.Linear(768, 2)

    def forward(self, ids: Tensor, wanted: Tensor) -> Tensor:
        x = self.words(ids) + self.places(torch.arange(ids.shape[1])) + self.kinds(torch.zeros_like(ids))
        x = self.stack(self.norm(x))
        return loss(self.head(torch.tanh(self.pool(x[:, 0]))), wanted[:, 0])


class Vit(nn.Module):
    """ViT-B/16: Dosovitskiy et al. 2020; 196 patches of an image of 224 pixels and a class token."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = nn.Conv2d(3, 768, 16, 16)
        self.token, self.places = nn.Parameter(torch.zeros(1, 1, 768)), nn.Parameter(torch.zeros(1, 197, 768))
        self.stack = Stack([Layer(768, 12, causal=False, after=False, joined=True) for _ in range(12)])
        self.norm, self.head = nn.LayerNorm(768), nn.Linear(768, 1000)

    def forward(self, images: Tensor, wanted: Tensor) -> Tensor:
        x = self.patches(images).flatten(2).transpose(1, 2)
        x = torch.cat((self.token.expand(len(x), -1, -1), x), 1) + self.places
        return loss(self.head(self.norm(self.stack(x))[:, 0]), wanted)


# --- Llama ------------------------------------------------------------------------------------------------------------


class _FusedRms(torch.autograd.Function):
    """What torch's fused RMSNorm keeps: its input and one number a row. On the CPU torch makes it of small steps."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor) -> Tensor:
        ctx.save_for_backward(x, weight, torch.empty(x.shape[:-1], dtype=torch.float32))
        return torch.empty_like(x)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[override]
        x, weight, _ = ctx.saved_tensors
        return torch.empty_like(x), torch.empty_like(weight)


class RmsNorm(nn.Module):
    """RMSNorm by one kernel, or written out in steps as model code often has it."""

    def __init__(self, hidden: int, *, fused: bool = True) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))
        self.fused = fused

    def forward(self, x: Tensor) -> Tensor:
        if self.fused:
            made: Tensor = _FusedRms.apply(x, self.weight)  # type: ignore[no-untyped-call]
            return made
        wide = x.float()
        wide = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * wide.to(x.dtype)


class Adapted(nn.Module):
    """A frozen matrix with a LoRA adapter in float32."""

    def __init__(self, inputs: int, outputs: int, rank: int) -> None:
        super().__init__()
        self.base = nn.Linear(inputs, outputs, bias=False).requires_grad_(False)
        self.first = nn.Linear(inputs, rank, bias=False, dtype=torch.float32)
        self.second = nn.Linear(rank, outputs, bias=False, dtype=torch.float32)

    def forward(self, x: Tensor) -> Tensor:
        return self.base(x) + self.second(self.first(x))


class LlamaLayer(nn.Module):
    """RMSNorm, rotated grouped attention, gated feed-forward part: Touvron et al. 2023."""

    def __init__(
        self, hidden: int, heads: int, kv_heads: int, wide: int, make: Callable[[int, int], nn.Module], *, fused: bool
    ) -> None:
        super().__init__()
        size = hidden // heads
        self.norms = nn.ModuleList(RmsNorm(hidden, fused=fused) for _ in range(2))
        self.q, self.k, self.v = (make(hidden, n * size) for n in (heads, kv_heads, kv_heads))
        self.output, self.gate, self.up, self.down = (
            make(*sizes) for sizes in ((heads * size, hidden), (hidden, wide), (hidden, wide), (wide, hidden))
        )
        self.heads, self.kv_heads = heads, kv_heads

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        first, second = self.norms
        y = first(x)
        q, k = (_rotated(_split(m(y), n), cos, sin) for m, n in ((self.q, self.heads), (self.k, self.kv_heads)))
        v = _split(self.v(y), self.kv_heads)
        grouped = self.heads != self.kv_heads
        seen = functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=grouped)
        x = x + self.output(seen.transpose(1, 2).flatten(2))
        y = second(x)
        return x + self.down(functional.silu(self.gate(y)) * self.up(y))


def _rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return x * cos.to(x.dtype) + torch.cat((-second, first), -1) * sin.to(x.dtype)


class Llama(nn.Module):
    """A decoder of the Llama family; with a rank, its matrices are frozen and have adapters."""

    def __init__(
        self, layers: int, hidden: int, heads: int, kv_heads: int, wide: int, vocab: int, *,
        tied: bool = False, rank: int = 0, fused: bool = True,
    ) -> None:  # fmt: skip
        super().__init__()

        def make(inputs: int, outputs: int) -> nn.Module:
            return Adapted(inputs, outputs, rank) if rank else nn.Linear(inputs, outputs, bias=False)

        self.words = nn.Embedding(vocab, hidden)
        self.stack = Stack([LlamaLayer(hidden, heads, kv_heads, wide, make, fused=fused) for _ in range(layers)])
        self.norm, self.head = RmsNorm(hidden, fused=fused), nn.Linear(hidden, vocab, bias=False)
        if tied:
            self.head.weight = self.words.weight
        if rank:
            norms = [m for m in self.modules() if isinstance(m, RmsNorm)]
            for frozen in (self.words, self.head, *norms):
                frozen.requires_grad_(False)
        self.size = hidden // heads

    def forward(self, ids: Tensor, wanted: Tensor) -> Tensor:
        x = self.words(ids)
        if not x.requires_grad:  # as trainers do, so that gradients pass through frozen layers
            x.requires_grad_(True)
        turn = torch.ones(ids.shape[1], self.size)
        return loss(self.head(self.norm(self.stack(x, turn, turn))), wanted)


# --- networks of convolutions -----------------------------------------------------------------------------------------


def _convolution(inputs: int, outputs: int, size: int, stride: int = 1) -> list[nn.Module]:
    return [nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs)]


class Block(nn.Module):
    """Convolutions around a shortcut, two of them or, as a bottleneck, three: He et al. 2015."""

    def __init__(self, inputs: int, width: int, stride: int, *, bottleneck: bool) -> None:
        super().__init__()
        relu = nn.ReLU(inplace=True)
        if bottleneck:
            outputs = 4 * width
            steps = [*_convolution(inputs, width, 1), relu, *_convolution(width, width, 3, stride), relu]
            steps += _convolution(width, outputs, 1)
        else:
            outputs = width
            steps = [*_convolution(inputs, width, 3, stride), relu, *_convolution(width, width, 3)]
        self.steps = nn.Sequential(*steps)
        same = stride == 1 and inputs == outputs
        self.shortcut = nn.Identity() if same else nn.Sequential(*_convolution(inputs, outputs, 1, stride))
        self.relu = relu

    def forward(self, x: Tensor) -> Tensor:
        y = self.steps(x)
        y += self.shortcut(x)
        return self.relu(y)


class ResNet(nn.Module):
    """ResNet for images of 224 pixels and 1000 classes."""

    def __init__(self, depths: tuple[int, ...], *, bottleneck: bool = True) -> None:
        super().__init__()
        self.stem = nn.Sequential(*_convolution(3, 64, 7, 2), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1))
        layers: list[nn.Module] = []
        inputs = 64
        for stage, depth in enumerate(depths):
            width = 64 * 2**stage
            for place in range(depth):
                layers.append(Block(inputs, width, 2 if stage and not place else 1, bottleneck=bottleneck))
                inputs = width * (4 if bottleneck else 1)
        self.stack = Stack(layers)
        self.head = nn.Linear(inputs, 1000)

    def forward(self, images: Tensor, wanted: Tensor) -> Tensor:
        return loss(self.head(self.stack(self.stem(images)).mean((2, 3))), wanted)


class Vgg(nn.Module):
    """VGG-16: Simonyan and Zisserman 2014, with dropout between the last matrices."""

    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        inputs = 3
        for width, depth in ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3)):
            for _ in range(depth):
                layers += [nn.Conv2d(inputs, width, 3, padding=1), nn.ReLU(inplace=True)]
                inputs = width
            layers.append(nn.MaxPool2d(2))
        self.stack = Stack(layers)
        self.head = nn.Sequential(
            nn.Linear(512 * 7 * 7, 4096), nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, 4096),
            nn.ReLU(inplace=True), nn.Dropout(), nn.Linear(4096, 1000),
        )  # fmt: skip

    def forward(self, images: Tensor, wanted: Tensor) -> Tensor:
        return loss(self.head(self.stack(images).flatten(1)), wanted)


def loss(scores: Tensor, wanted: Tensor) -> Tensor:
    """Cross-entropy in float32."""
    return functional.cross_entropy(scores.float().flatten(0, -2), wanted.flatten())
