"""Planning questions in both languages: what they are about, and the answer; and questions that are none."""

from __future__ import annotations

from typing import Any

import pytest
from gpurules import pipeline
from gpurules.pipeline import Inputs

CAPACITY, CHOICE, POWER = "planning_capacity", "planning_hardware_choice", "planning_power"
QUESTIONS: list[tuple[str, str, str, dict[str, Any]]] = [
    ("Can I fine-tune Llama-3-8B on one RTX 4090?", CAPACITY, "conditional", {"full_ft_vram_gib": (135, 160)}),
    ("Can I fine-tune Llama-2-7B on a single RTX 3090?", CAPACITY, "conditional", {"lora_vram_gib": (13, 20)}),
    ("Is one A100 80GB enough for full fine-tuning of Qwen2.5-7B?", CAPACITY, "conditional", {}),
    ("Can eight H100 80GB fully fine-tune Llama-3-8B? Full fine-tuning of all weights.", CAPACITY, "yes", {}),
    ("Does Mixtral-8x7B fit on two RTX 3090?", CAPACITY, "conditional", {"vram_needed_gib": (87, 100)}),
    ("How much VRAM do I need to run Llama 3.1 70B in 4-bit?", CAPACITY, "conditional", {"vram_needed_gib": (36, 48)}),
    ("Can I QLoRA Llama-30B on 4x RTX 4090?", CAPACITY, "yes", {"qlora_vram_gib": (25, 45)}),
    ("Can I pretrain GPT-2 from scratch on a GTX 1080 Ti?", CAPACITY, "yes", {"full_ft_vram_gib": (2, 4)}),
    ("Will Qwen3-32B fit on an RTX 5090 with 32k context?", CAPACITY, "conditional", {"vram_needed_gib": (68, 80)}),
    ("Can I train BERT-base on an RTX 3060 12GB?", CAPACITY, "yes", {}),
    ("Will DeepSeek-R1 fit on 8x H100?", CAPACITY, "conditional", {}),
    ("Can I run Llama-3.1-8B on an RTX 4090?", CAPACITY, "yes", {"vram_needed_gib": (15, 19)}),
    ("Can I run Qwen2.5-72B on one RTX 3060 12GB?", CAPACITY, "no", {}),
    (
        "How many workers should I use with 4x A100 and a 64-core CPU?",
        CAPACITY,
        "conditional",
        {"num_workers": (15, 15)},
    ),
    ("Should I buy a used RTX 3090 or a new RTX 5070 Ti for a 13B model?", CHOICE, "conditional", {}),
    ("Which GPU for a 7B model under $600?", CHOICE, "conditional", {}),
    ("Which is better for fine-tuning a 13B model, two RTX 3090 or one RTX 4090?", CHOICE, "conditional", {}),
    (
        "Can I combine an RTX 3090 and an RTX 4090 in one machine?",
        CHOICE,
        "conditional",
        {"gpu_power_sum_w": (800, 800)},
    ),
    ("Should I train locally or in the cloud?", CHOICE, "conditional", {}),
    ("Is an 850 W PSU enough for one RTX 3090?", POWER, "yes", {"psu_w_min": (800, 800)}),
    ("Is a 1300 W power supply enough for four GTX 1080 Ti?", POWER, "no", {"gpu_power_sum_w": (1000, 1000)}),
    ("Is 1000W PSU enough for dual RTX 3090?", POWER, "conditional", {"power_limit_w": (250, 250)}),
    ("What power supply do I need for an RTX 5090?", POWER, "conditional", {"psu_w_min": (1000, 1200)}),
    ("我有两张 3090，能全参数微调 Llama-2-7B 吗？", CAPACITY, "conditional", {"full_ft_vram_gib": (100, 130)}),
    ("单张 4090 能跑 Qwen2.5-32B 吗", CAPACITY, "conditional", {"vram_needed_gib": (60, 72)}),
    ("24G 显存够不够跑 14B 模型", CAPACITY, "conditional", {}),
    ("微调 ChatGLM3-6B 需要多少显存", CAPACITY, "conditional", {"full_ft_vram_gib": (90, 115)}),
    ("5090 能推理 DeepSeek-V3 吗", CAPACITY, "no", {}),
    ("num_workers 设多少合适，16 核 CPU，两张 3090", CAPACITY, "conditional", {"num_workers": (7, 7)}),
    ("预算 8000 元，跑 14B 模型买哪张卡", CHOICE, "conditional", {}),
    ("RTX 4060 Ti 16GB 和 RTX 3090 选哪个跑 13B", CHOICE, "conditional", {}),
    ("3090 和 4090 可以混插吗", CHOICE, "conditional", {}),
    ("本地训练还是租云服务器", CHOICE, "conditional", {}),
    ("两张 4090 需要多大的电源", POWER, "conditional", {"gpu_power_sum_w": (900, 900)}),
    ("1000W 电源够两张 4090 用吗", POWER, "no", {}),
    ("How many H100 for 70B full fine-tuning?", CAPACITY, "yes", {"cards_needed": (16, 24)}),
    ("How many RTX 3090 do I need to run Llama-3-70B in 4-bit?", CAPACITY, "yes", {"cards_needed": (4, 4)}),
    ("几张 4090 能全参微调 Llama-3 8B", CAPACITY, "yes", {"cards_needed": (8, 10)}),
    ("需要多少张 A100 80GB 才能微调 Qwen2.5-72B", CAPACITY, "yes", {"cards_needed": (18, 24)}),
    ("How many GT 1030 for full fine-tuning of Llama-3-70B?", CAPACITY, "no", {}),
    ("单卡 4090 用 CPU offload 能全参微调 Llama-2-7B 吗", CAPACITY, "yes", {"cpu_ram_gib": (140, 160)}),
    ("Can I train ResNet-50 with batch size 128 on an RTX 3060?", CAPACITY, "yes", {"full_ft_vram_gib": (6, 8)}),
    ("Can I train ResNet-50 in fp32 with batch size 512 on an RTX 4090?", CAPACITY, "no", {}),
    ("is a 750w psu ok for rtx 4080?", POWER, "yes", {"psu_w_min": (750, 750)}),
    ("dual 3090 on 850w?", POWER, "no", {"gpu_power_sum_w": (700, 700)}),
    ("how much vram does gpt-oss-20b need", CAPACITY, "conditional", {"vram_needed_gib": (12, 16)}),
    ("2080ti 22g 能跑 qwen2.5-14b int4 吗", CAPACITY, "yes", {"vram_needed_gib": (9, 13)}),
    ("can 2x 4060ti 16gb run a 32b q4?", CAPACITY, "yes", {"vram_needed_gib": (18, 26)}),
    ("how many 4090s to full fine tune qwen2.5-7b?", CAPACITY, "yes", {"cards_needed": (7, 10)}),
    (
        "can I do QLoRA on llama 3.1 70B with single a6000 48gb?",
        CAPACITY,
        "conditional",
        {"qlora_vram_gib": (40, 52)},
    ),
    ("how much vram for qwen3-30b-a3b int4", CAPACITY, "conditional", {"vram_needed_gib": (15, 20)}),
    ("will llama 3.3 70b q4_k_m fit on 2x rtx 3090?", CAPACITY, "conditional", {"vram_needed_gib": (38, 46)}),
    ("can i lora finetune mistral 7b on a 3060 12gb?", CAPACITY, "conditional", {"qlora_vram_gib": (5, 8)}),
    ("显存8G可以微调7B吗 qlora", CAPACITY, "conditional", {"qlora_vram_gib": (6, 8)}),
    ("两张 5060ti 16g 能跑 qwen3-32b awq 吗", CAPACITY, "yes", {"vram_needed_gib": (18, 26)}),
    ("should i get 5060 ti 16gb or used 3090 for llm", CHOICE, "conditional", {}),
    ("4090 和 4090D 训练差别大吗", CHOICE, "conditional", {}),
    ("3060 12gb vs 4060 ti 16gb for stable diffusion?", CHOICE, "conditional", {}),
    ("3060 12gb 和 4060ti 16gb 哪个适合 stable diffusion", CHOICE, "conditional", {}),
    ("Should I rent an H100 or buy a 4090?", CHOICE, "conditional", {}),
    ("P40 和 3090 可以一起用吗 跑大模型", CHOICE, "conditional", {}),
    ("3090 涡轮卡 8 卡机器需要多少瓦电源", POWER, "conditional", {"gpu_power_sum_w": (2800, 2800)}),
    ("Can I run flux dev on 12gb?", CAPACITY, "conditional", {"vram_needed_gib": (33, 42)}),
    ("would a 4060 8gb be enough for running mistral 7b q4", CAPACITY, "yes", {"vram_needed_gib": (4, 7)}),
    ("How many gpus do I need to fine-tune llama 3 8b with lora? I have 4080s", CAPACITY, "yes", {}),
    ("rtx a4000 vs 4070 ti super for training cnn", CHOICE, "conditional", {}),
    ("4090 24g 部署 deepseek-r1-32b 4bit 可以吗", CAPACITY, "conditional", {"vram_needed_gib": (18, 23)}),
    ("is a 3060ti good enough for llama3 8b fp16", CAPACITY, "conditional", {"vram_needed_gib": (15, 19)}),
    ("qwen3 8b 微调 lora 16g 显存够吗", CAPACITY, "conditional", {"qlora_vram_gib": (7, 13)}),
    ("双卡 4080 需要多大电源", POWER, "conditional", {"gpu_power_sum_w": (640, 640)}),
]
NO_PLANS = [
    "Which torch do I need for an RTX 5090?",
    "Torch says CUDA is not available. What now?",
    "Training Llama-3-8B hangs on two RTX 3090. Is one card enough?",
    "My PC switches off when I train on an RTX 3090 with an 850 W PSU.",
    "Do I need to install the CUDA toolkit?",
    "为什么 torch.cuda.is_available() 返回 False",
]


@pytest.mark.parametrize(("question", "cause", "verdict", "numbers"), QUESTIONS, ids=[q for q, *_ in QUESTIONS])
def test_question(question: str, cause: str, verdict: str, numbers: dict[str, tuple[float, float]]) -> None:
    report = pipeline.diagnose(Inputs(question=question))
    assert report.verdict == "ok"
    assert [f.cause for f in report.findings] == [cause]
    assert [f.severity for f in report.findings] == ["info"]
    assert report.plan is not None
    assert report.plan.verdict == verdict
    for name, (low, high) in numbers.items():
        assert low <= report.plan.numbers[name] <= high, (name, report.plan.numbers[name])
    for name, (low, high) in report.plan.ranges.items():
        assert low <= report.plan.numbers[name] <= high


@pytest.mark.parametrize("question", NO_PLANS)
def test_other_questions_are_not_planned(question: str) -> None:
    report = pipeline.diagnose(Inputs(question=question))
    assert report.plan is None


def choices(question: str) -> tuple[str, ...]:
    plan = pipeline.diagnose(Inputs(question=question)).plan
    assert plan is not None
    return plan.choices


def test_choices_are_ordered() -> None:
    assert choices("Should I buy a used RTX 3090 or a new RTX 4060 Ti 16GB for 13B models?") == (
        "GeForce RTX 3090",
        "GeForce RTX 4060 Ti 16GB",
    )
    assert choices("Which is better for a 13B model, one RTX 4090 or two RTX 3090?")[0] == "2x GeForce RTX 3090"
    assert choices("预算 8000 元，跑 14B 模型买哪张卡")[0] == "GeForce RTX 5070 Ti"
    assert "GeForce RTX 4090" not in choices("Which GPU for a 7B model under $600?")


def test_what_was_not_understood_is_said() -> None:
    report = pipeline.diagnose(Inputs(question="Can I run a 7B model on a RTX 9999?"))
    assert [r.not_understood for r in report.recognised] == [("RTX 9999",)]
    report = pipeline.diagnose(Inputs(question="Can I fine-tune FooBar-9000 on an RTX 4090?"))
    assert [r.not_understood for r in report.recognised] == [("FooBar-9000",)]
    assert report.plan is None


def test_full_finetuning_is_claimed_only_where_it_fits() -> None:
    small = pipeline.diagnose(Inputs(question="Can I pretrain GPT-2 from scratch on a GTX 1080 Ti?"))
    assert small.plan is not None
    assert small.plan.claims == ()
    whole = pipeline.diagnose(Inputs(question="Full fine-tuning of Llama-3.2-1B on an RTX 5090: does it fit?"))
    assert whole.plan is not None
    assert whole.plan.claims == ("full_finetune_fits",)
    large = pipeline.diagnose(Inputs(question="Can I do a full fine-tuning of Llama-3-70B on an RTX 4090?"))
    assert large.plan is not None
    assert large.plan.claims == ()


def test_a_larger_batch_needs_more() -> None:
    sizes = []
    for batch in (1, 8):
        plan = pipeline.diagnose(Inputs(question=f"LoRA of Llama-3-8B with batch size {batch} on an RTX 4090?")).plan
        assert plan is not None
        sizes.append(plan.numbers["lora_vram_gib"])
    assert sizes[0] < sizes[1]


def test_a_number_of_cards_is_the_least_that_fits() -> None:
    for question in ("How many RTX 4090 for full fine-tuning of Llama-3-8B?", "How many A10 to run Llama-3-70B?"):
        report = pipeline.diagnose(Inputs(question=question))
        assert report.plan is not None
        (label,) = report.plan.choices
        count = int(report.plan.numbers["cards_needed"])
        assert label.startswith(f"{count}x ")
        method = "full" if "full" in question else "inference"
        fewer = count - 1 if method == "full" else count // 2
        verdicts = [verdict_of(method, label.replace(f"{count}x", f"{n}x")) for n in (count, fewer)]
        assert verdicts[0] == "yes"
        assert verdicts[1] != "yes"


def verdict_of(method: str, cards: str) -> str:
    model = "Llama-3-8B" if method == "full" else "Llama-3-70B"
    plan = pipeline.plan(Inputs(), {"model": model, "method": method}, [cards]).plan
    assert plan is not None
    return plan.verdict


def test_tensor_parallelism_divides_the_heads() -> None:
    for model, verdict, count in (("Falcon-40B", "yes", 8), ("Falcon-7B", "no", None)):  # 128 heads and 71
        plan = pipeline.diagnose(Inputs(question=f"How many RTX 3060 to run {model} in 16 bit?")).plan
        assert plan is not None
        assert (plan.verdict, plan.numbers.get("cards_needed")) == (verdict, count)


def test_what_a_bare_name_is_taken_for_is_said() -> None:
    said = {}
    for name in ("H100", "A100", "RTX 3060", "RTX 4060 Ti", "RTX 4090", "A100 80GB"):
        plan = pipeline.plan(Inputs(lang="en"), {"model": "Llama-3-8B", "method": "qlora"}, [name]).plan
        assert plan is not None
        said[name] = [r.text for r in plan.reasons if "it exists with other memory sizes" in r.text]
    more = "; it exists with other memory sizes too"
    assert said == {
        "H100": [f"assumed: H100 is H100 SXM5 80GB (80.0 GiB){more}"],
        "A100": [f"assumed: A100 is A100 40GB (40.0 GiB){more}"],
        "RTX 3060": [f"assumed: GeForce RTX 3060 is GeForce RTX 3060 12GB (12.0 GiB){more}"],
        "RTX 4060 Ti": [f"assumed: GeForce RTX 4060 Ti is GeForce RTX 4060 Ti 8GB (8.0 GiB){more}"],
        "RTX 4090": [],
        "A100 80GB": [],
    }


@pytest.mark.parametrize(
    ("question", "choices_", "title"),
    [
        (
            "We have 10,000 USD for 4 students who fine-tune 8B models. What should we buy?",
            ("GeForce RTX 5090", "GeForce RTX 4090"),
            "GeForce RTX 5090 is the best choice of the 12",
        ),
        (
            "two 3090 with NVLink or one 4090 for training?",
            ("2x GeForce RTX 3090", "GeForce RTX 4090"),
            "2x GeForce RTX 3090 is the better choice over GeForce RTX 4090",
        ),
        (
            "4090 还是 4090D",
            ("GeForce RTX 4090", "GeForce RTX 4090 D"),
            "GeForce RTX 4090 is the better choice over GeForce RTX 4090 D",
        ),
        (
            "3060 12gb vs 4060 ti 16gb for stable diffusion?",
            ("GeForce RTX 4060 Ti 16GB", "GeForce RTX 3060 12GB"),
            "GeForce RTX 4060 Ti 16GB is the better choice over GeForce RTX 3060 12GB",
        ),
        ("A800 和 A100 怎么选？", ("A100 PCIe 80GB", "A800"), "A800 and A100 PCIe 80GB compute alike"),
        (
            "V100 32G 现在还值得买吗？",
            ("Tesla V100 32GB",),
            "Tesla V100 32GB is served by older builds of torch only",
        ),
    ],
)
def test_what_a_buyer_asks_is_answered_first(question: str, choices_: tuple[str, ...], title: str) -> None:
    report = pipeline.diagnose(Inputs(question=question, goals={"plan": "yes"}))
    assert report.plan is not None
    assert report.plan.choices[: len(choices_)] == choices_
    assert report.findings[0].title == title


def test_renting_or_buying_is_no_choice_of_cards() -> None:
    report = pipeline.diagnose(Inputs(question="Should I rent an H100 or buy a 4090?"))
    assert report.findings[0].title == "Own card or cloud depends on the hours"


def test_a_budget_says_how_many_cards_it_buys() -> None:
    report = pipeline.diagnose(Inputs(question="预算 60,000 元，微调 8B 模型买什么显卡？"))
    assert report.plan is not None
    assert (report.plan.choices[0], report.plan.numbers["cards_affordable"]) == ("GeForce RTX 4090", 4)
