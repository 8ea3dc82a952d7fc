"""The planning formulas against published figures."""

from __future__ import annotations

import pytest
from gpurules.knowledge import formulas
from gpurules.knowledge.formulas import GIB, MIB, Shape, Widths
from gpurules.knowledge.loader import load_knowledge
from gpurules.reasoning.plantables import Tables, tables

LLAMA_2_7B = Shape(6_738_000_000, 32, 4096, 32, 32, 128, 11008, 32000)
LLAMA_3_8B = Shape(8_030_000_000, 32, 4096, 32, 8, 128, 14336, 128256)

PURE16, AMP = Widths(2, 2), Widths(2, 4)


@pytest.fixture(scope="module")
def known() -> Tables:
    return tables(load_knowledge())


def test_adamw_in_float32_takes_16_bytes_a_parameter() -> None:
    # weights, gradients and two moments of 4 bytes each; a published count of 6.44 billion parameters
    assert round(formulas.state(6.442e9, 4 + 4 + 8) / GIB, 1) == 96.0


@pytest.mark.parametrize(
    ("precision", "optimizer", "low", "value", "high"),
    [
        ("mixed", "adamw", 16, 18, 18),
        ("fp32", "adamw", 16, 16, 16),
        ("pure16", "adamw", 8, 8, 8),
        ("mixed", "adamw8bit", 10, 12, 13),
        ("pure16", "sgd", 6, 6, 6),
    ],
)
def test_bytes_per_parameter(
    known: Tables, precision: str, optimizer: str, low: float, value: float, high: float
) -> None:
    parts = [known.figure(f"{part}_{precision}") for part in ("weights", "copies", "gradients")]
    parts.append(known.special(f"optimizer_{optimizer}", precision))
    sums = [sum(part.of(end) for part in parts) for end in ("low", "value", "high")]
    assert sums == pytest.approx([low, value, high])


def test_kv_cache_of_a_token() -> None:
    assert formulas.kv_cache(LLAMA_2_7B, 1, 2) == 0.5 * MIB  # PagedAttention gives 800 KB for OPT-13B likewise
    assert formulas.kv_cache(LLAMA_3_8B, 1, 2) == 0.125 * MIB  # a quarter of the key and value heads
    opt_13b = Shape(12_853_000_000, 40, 5120, 40, 40, 128, 20480, 50272, gated=False, tied=True)
    assert formulas.kv_cache(opt_13b, 1, 2) / 1024 == 800


def test_kv_cache_of_a_latent(known: Tables) -> None:
    shape = known.model("DeepSeek-V3").shape
    assert shape is not None
    assert round(formulas.kv_cache(shape, 1, 2) / 1024, 1) == 68.6  # 70 KB in the DeepSeek-V3 report


def test_lora_parameters() -> None:
    # r = 8 on all linear layers of a 7B model: 19,988,480 trainable parameters, as peft prints them
    assert formulas.lora_params(LLAMA_2_7B, 8) == 19_988_480
    assert formulas.lora_params(LLAMA_3_8B, 16) == 41_943_040


def test_quantized_weights_keep_the_embeddings() -> None:
    size = formulas.quantized_weights(LLAMA_2_7B, 0.5, 2)
    kept = 2 * 32000 * 4096
    assert size == (6_738_000_000 - kept) * 0.5 + kept * 2


def test_layer_activations_match_the_paper() -> None:
    # A layer of GPT-3: 34 sbh + 5 as²b with dropout, of which 2 sbh + 3 as²b are masks and what dropout kept; here the
    # scores are the softmax's result in float32 and its copy in 16 bits instead of 2 as²b.
    gpt3 = Shape(0, 96, 12288, 96, 96, 128, 49152, 51200, gated=False)
    plain = formulas.layer_activations(gpt3, 2048, 2048, PURE16, fused=False)
    fused = formulas.layer_activations(gpt3, 2048, 2048, PURE16, fused=True)
    assert fused == 32 * 2048 * 12288 + 4 * 2048 * 96
    assert plain - fused == 6 * 96 * 2048 * 2048


def test_autocast_keeps_the_stream_in_float32_and_copies_for_each_matrix() -> None:
    layer = formulas.layer_activations(LLAMA_2_7B, 1, 1, AMP, fused=True)
    pure = formulas.layer_activations(LLAMA_2_7B, 1, 1, PURE16, fused=True)
    assert layer - pure == 2 * 4096 * 2 + (3 - 1 + 2 - 1) * 4096 * 2


def test_checkpointing_keeps_the_input_of_each_layer() -> None:
    layer = formulas.layer_activations(LLAMA_2_7B, 2048, 2048, PURE16, fused=True)
    kept = [formulas.kept_activations(LLAMA_2_7B, 2048, 2048, PURE16, checkpointing=c) for c in (False, True)]
    assert kept == [32 * layer, 32 * 2048 * 4096 * 2]
    wide = 2048 * 2 * 11008 * 2
    again = [formulas.working_activations(LLAMA_2_7B, 2048, 2048, PURE16, checkpointing=c) for c in (False, True)]
    assert again == [wide, layer + wide]


def test_what_sharding_holds_whole() -> None:
    embeddings = 2 * 32000 * 4096
    assert formulas.gathered(LLAMA_2_7B, 2, 2) == ((6_738_000_000 - embeddings) / 16 + embeddings) * 2


def test_sharding() -> None:
    assert formulas.sharded(96.0, 4) == 24.0
    assert formulas.sharded(96.0, 0) == 96.0


def test_power_supply() -> None:
    assert formulas.power_supply(1000, 250, 1.3) == 1650  # four GTX 1080 Ti, where 1500 to 1600 W were found to do
    assert formulas.power_supply(350, 250, 1.3) == 800
    limit = formulas.power_limit(1000, 2, 250, 1.3)
    assert limit == 250
    assert formulas.power_supply(2 * limit, 250, 1.3) <= 1000
    assert formulas.power_limit(200, 2, 250, 1.3) == 0


@pytest.mark.parametrize(("cores", "processes", "expected"), [(16, 1, 15), (32, 8, 3), (4, 8, 1), (1, 1, 1)])
def test_workers(cores: int, processes: int, expected: int) -> None:
    assert formulas.workers(cores, processes, 1) == expected


def test_the_catalog_has_the_common_models(known: Tables) -> None:
    assert len(known.models) >= 80
    for text, model in {
        "Meta-Llama-3-8B-Instruct": "Llama-3-8B",
        "meta-llama/Llama-2-70b-chat-hf": "Llama-2-70B",
        "llama2-7b": "Llama-2-7B",
        "qwen2.5 7b instruct": "Qwen2.5-7B",
        "DeepSeek-R1-Distill-Qwen-7B": "Qwen2.5-7B",
        "DeepSeek R1": "DeepSeek-V3",
        "bert-base-uncased": "BERT-base",
        "resnet50": "ResNet-50",
        "gpt2-xl": "GPT-2-XL",
        "stable diffusion XL": "SDXL",
    }.items():
        assert [name for name, _ in known.names.find_all(text)] == [model], text


def test_a_model_of_unknown_name_gets_a_usual_shape(known: Tables) -> None:
    model = known.of_size(34)
    assert model.typical
    assert model.params == 34e9
    assert model.shape is not None
    assert model.shape.hidden == 8192
