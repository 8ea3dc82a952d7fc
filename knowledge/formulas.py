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


def layer_activations(shape: Shape, tokens: int, sequence: int, width: int, *, flash: bool) -> float:
    """What the backward pass of one layer needs, without dropout. tokens: batch x sequence; width: bytes an element.

    Per token: the inputs of both norms and both blocks, query, key, value, the attention's output, and the inputs of
    the feed-forward matrices; without a fused attention also two matrices of heads x sequence. Korthikanti et al. 2022,
    section 4.1, https://arxiv.org/abs/2205.05198 (34 sbh + 5 as²b with dropout and a feed-forward part of 4h)
    """
    query, kv = shape.heads * shape.head_dim, shape.kv_heads * shape.head_dim
    attention = shape.hidden * 2 + query * 2 + kv * 2
    feed_forward = shape.hidden * 2 + shape.intermediate * (4 if shape.gated else 2)
    scores = 0 if flash else 2 * shape.heads * sequence
    return float(tokens * width * (attention + feed_forward + scores))


def activations(
    shape: Shape, tokens: int, sequence: int, width: int, *, flash: bool = True, checkpointing: bool = True
) -> float:
    """Activations of a training step without the logits.

    With full checkpointing each layer keeps its input, and one layer at a time is recomputed. Chen et al. 2016,
    https://arxiv.org/abs/1604.06174; Korthikanti et al. 2022, section 5, https://arxiv.org/abs/2205.05198
    """
    layer = layer_activations(shape, tokens, sequence, width, flash=flash)
    if not checkpointing:
        return shape.layers * layer
    return shape.layers * tokens * shape.hidden * width + layer


def logits(shape: Shape, tokens: int, bytes_per_logit: float) -> float:
    """The output layer's scores and what the loss keeps of them. The same paper, section 4.3."""
    return tokens * shape.vocab * bytes_per_logit


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
