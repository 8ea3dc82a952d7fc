"""The formulas of planning: memory, power and workers, as a few pure functions.

May live here: arithmetic with its source. Must not: any figure of a product or model (those are data in
`facts/models.yaml`, `facts/gpus.yaml` and `facts/planning.yaml`) and any decision.

Sizes are in bytes unless a name says otherwise; a `Shape` is what a model's config.json says.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

GIB = 1024**3
MIB = 1024**2


@dataclass(frozen=True, slots=True)
class Shape:
    """What the formulas need of a transformer. kv_width: cached elements per token and layer, 0 for the usual ones."""

    params: int
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate: int
    vocab: int
    gated: bool = True
    tied: bool = False
    kv_width: int = 0


def state(params: float, bytes_per_param: float) -> float:
    """Weights, gradients or optimizer state: parameters times bytes per parameter.

    Mixed precision with Adam: 2 + 2 bytes for weights and gradients, 4 + 4 + 4 for the float32 copy and two moments, 16
    together. Rajbhandari et al. 2020, ZeRO, section 3.1, https://arxiv.org/abs/1910.02054
    """
    return params * bytes_per_param


def sharded(size: float, cards: int) -> float:
    """The share of one card when state is divided evenly (ZeRO stage 3, FSDP full shard, tensor parallelism).

    Rajbhandari et al. 2020, ZeRO, section 5.3, https://arxiv.org/abs/1910.02054
    """
    return size / max(1, cards)


def embedding_params(shape: Shape) -> int:
    """Parameters of the input embedding and, where it is its own matrix, of the output layer."""
    return shape.vocab * shape.hidden * (1 if shape.tied else 2)


def lora_params(shape: Shape, rank: int) -> int:
    """Trainable parameters of LoRA on every linear layer: rank x (inputs + outputs) for each matrix.

    Hu et al. 2021, LoRA, section 4.1, https://arxiv.org/abs/2106.09685; all linear layers as in QLoRA, section 4,
    https://arxiv.org/abs/2305.14314
    """
    query, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    attention = 2 * (shape.hidden + query) + 2 * (shape.hidden + kv)
    feed_forward = (3 if shape.gated else 2) * (shape.hidden + shape.intermediate)
    return shape.layers * rank * (attention + feed_forward)


def quantized_weights(shape: Shape, bytes_per_param: float, other_bytes: float) -> float:
    """Weights whose linear layers are quantized; the embeddings and the output layer keep their precision.

    Dettmers et al. 2023, QLoRA, section 3, https://arxiv.org/abs/2305.14314
    """
    kept = min(embedding_params(shape), shape.params)
    return (shape.params - kept) * bytes_per_param + kept * other_bytes


@dataclass(frozen=True, slots=True)
class Widths:
    """Bytes of an element in the matrix products and in the residual stream, which autocast keeps in float32."""

    element: int
    stream: int

    @property
    def cast(self) -> bool:
        """Whether every matrix gets its own copy of its input in fewer bits, as autocast makes it."""
        return self.stream > self.element


def layer_activations(shape: Shape, tokens: int, sequence: int, widths: Widths, *, fused: bool) -> float:
    """What the backward pass of one layer needs, without dropout. tokens: batch x sequence.

    Per token: the input of both norms (residual stream); the input of the matrices behind them, once, or under autocast
    once for each matrix (query, key and value; gate and up); query, key, value and the attention's output with four
    bytes a head (the softmax's sum); in the feed-forward part what goes into and comes out of the activation function,
    twice where it is gated. An attention that is not fused keeps heads x sequence more: the softmax's result in float32
    and, with fewer bits, its copy. Korthikanti et al. 2022, section 4.1, https://arxiv.org/abs/2205.05198; Dao et al.
    2022, FlashAttention, section 3, https://arxiv.org/abs/2205.14135; PyTorch, autocast,
    https://docs.pytorch.org/docs/stable/amp.html. tests/planning/test_oracle.py counts the same.
    """
    query, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    inputs = (3, 2 if shape.gated else 1) if widths.cast else (1, 1)
    stream = 2 * shape.hidden * widths.stream
    elements = sum(inputs) * shape.hidden + 2 * query + 2 * kv + shape.intermediate * (4 if shape.gated else 2)
    scores = 0 if fused else shape.heads * sequence * (4 + (widths.element if widths.element < 4 else 0))
    return float(tokens * (stream + elements * widths.element + 4 * shape.heads + scores))


def kept_activations(
    shape: Shape, tokens: int, sequence: int, widths: Widths, *, fused: bool = True, checkpointing: bool = True
) -> float:
    """What waits for the backward pass, without the output layer: every layer whole, or with checkpointing its input.

    Chen et al. 2016, https://arxiv.org/abs/1604.06174; Korthikanti et al. 2022, section 5,
    https://arxiv.org/abs/2205.05198
    """
    if checkpointing:
        return float(shape.layers * tokens * shape.hidden * widths.stream)
    return shape.layers * layer_activations(shape, tokens, sequence, widths, fused=fused)


def working_activations(
    shape: Shape, tokens: int, sequence: int, widths: Widths, *, fused: bool = True, checkpointing: bool = True
) -> float:
    """What the busiest layer of the backward pass needs besides: with checkpointing its activations once more.

    On top come the gradients of what the widest step keeps: of gate and up, or of the one matrix without a gate; of an
    attention that is not fused, the scores in float32 before and behind the softmax.
    """
    wide = shape.intermediate * (2 if shape.gated else 1) * widths.element
    scores = 0 if fused else 2 * shape.heads * sequence * 4
    again = layer_activations(shape, tokens, sequence, widths, fused=fused) if checkpointing else 0
    return again + tokens * max(wide, scores)


def output_activations(shape: Shape, tokens: int, widths: Widths, bytes_per_logit: float) -> float:
    """The last norm's input and result, the output layer's scores and what the loss makes of them.

    The loss is at its highest when the layers' own work has not begun, so the larger of the two counts. Korthikanti et
    al. 2022, section 4.3, https://arxiv.org/abs/2205.05198
    """
    return tokens * (shape.hidden * (widths.stream + widths.element) + shape.vocab * bytes_per_logit)


def gathered(shape: Shape, layers: float, width: int) -> float:
    """Weights that sharding holds whole at a time: some layers, and embeddings and output layer all the while.

    PyTorch: FSDP keeps the root's parameters between forward and backward pass,
    https://docs.pytorch.org/docs/stable/distributed.fsdp.fully_shard.html
    """
    root = min(embedding_params(shape), shape.params)
    return (layers * (shape.params - root) / shape.layers + root) * width


def kv_cache(shape: Shape, tokens: int, width: float) -> float:
    """Keys and values of all layers: 2 x layers x kv heads x head size x bytes, for each token.

    Kwon et al. 2023, PagedAttention, section 3, https://arxiv.org/abs/2309.06180; grouped heads: Ainslie et al. 2023,
    https://arxiv.org/abs/2305.13245; a latent instead (kv_width): DeepSeek-V2, https://arxiv.org/abs/2405.04434
    """
    return tokens * shape.layers * (shape.kv_width or 2 * shape.kv_heads * shape.head_dim) * width


def power_supply(gpu_watts: int, rest_watts: float, headroom: float) -> int:
    """The supply for the GPUs' board power and the rest of the machine, rounded up to the next 50 W.

    headroom covers load transients, which exceed board power for less than a millisecond. Intel, ATX version 3.0
    design guide: power excursions of PCIe cards.
    """
    return math.ceil((gpu_watts + rest_watts) * headroom / 50) * 50


def power_limit(supply: int, cards: int, rest_watts: float, headroom: float) -> int:
    """The power limit per card with which a supply suffices, rounded down to 10 W."""
    return max(0, math.floor((supply / headroom - rest_watts) / max(1, cards) / 10) * 10)


def workers(cores: int, processes: int, reserve: int) -> int:
    """DataLoader workers of one process: the cores, less one for each training process, shared evenly.

    PyTorch: DataLoader warns above the number of cores, https://docs.pytorch.org/docs/stable/data.html
    """
    return max(1, (cores - reserve * processes) // max(1, processes))
