"""`gpurules plan`: its options, its text and JSON forms, its exit status, and that explanations work on its report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from gpurules.cli import cli


def run(*args: str) -> tuple[int, str]:
    done = CliRunner().invoke(cli, ["plan", "--no-save", "--lang", "en", *args])
    return done.exit_code, done.output


def plan(*args: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(run("--json", *args)[1])["plan"]
    return found


def test_text() -> None:
    code, text = run("-q", "--model", "Llama-3.1-8B", "--method", "full", "--gpu", "2x RTX 3090")
    assert code == 1
    assert text == (
        "DEPENDS  full fine-tuning of Llama-3.1-8B does not fit on 2x GeForce RTX 3090,\n         LoRA does.\n"
    )
    code, text = run("-q", "--lang", "zh", "--model", "Llama-3.1-8B", "--method", "inference", "--gpu", "RTX 4090")
    assert code == 0
    assert text == "可行  Llama-3.1-8B 在 GeForce RTX 4090 上放得下。\n"


def test_parts_and_assumptions_are_told() -> None:
    found = plan("--model", "Llama-2-7B", "--method", "qlora", "--gpu", "RTX 3090", "--seq", "1024", "--batch", "2")
    texts = [reason["text"] for reason in found["reasons"]]
    assert texts[0].startswith("QLoRA, a card: weights 3.7 GiB, gradients 0.1 GiB, optimizer 0.3 GiB, activations")
    assert "assumed: the optimizer is AdamW" in texts
    assert not any("batch" in text or "tokens" in text for text in texts)
    low, high = found["ranges"]["qlora_vram_gib"]
    assert low < found["numbers"]["qlora_vram_gib"] < high


def test_options_change_the_estimate() -> None:
    usual = ("--model", "Llama-2-7B", "--method", "full", "--gpu", "8x A100 80GB")
    sizes = {
        name: plan(*usual, *more)["numbers"]["full_ft_vram_gib"]
        for name, more in {
            "usual": (),
            "adamw8bit": ("--optimizer", "adamw8bit"),
            "pure": ("--precision", "pure-bf16"),
            "long": ("--seq", "16384"),
            "none": ("--shard", "none"),
        }.items()
    }
    assert sizes["pure"] < sizes["adamw8bit"] < sizes["usual"] < sizes["long"] < sizes["none"]


def test_offload_checkpointing_and_sharding() -> None:
    usual = ("--model", "Llama-2-7B", "--method", "full", "--gpu", "2x RTX 4090")
    whole, offloaded = plan(*usual), plan(*usual, "--offload", "cpu")
    assert whole["verdict"] == "conditional"
    assert whole["numbers"]["cards_needed"] == 7
    assert offloaded["verdict"] == "yes"
    assert 85 < offloaded["numbers"]["cpu_ram_gib"] < 160
    assert "cards_needed" not in offloaded["numbers"]
    small = ("--model", "GPT-2", "--method", "full", "--gpu", "RTX 4090", "--batch", "8")
    sizes = [plan(*small, *more)["numbers"]["full_ft_vram_gib"] for more in ((), ("--checkpointing", "no"))]
    assert sizes[0] < sizes[1]
    texts = [r["text"] for r in plan(*usual, "--shard", "full", "--checkpointing", "yes")["reasons"]]
    assert not any("checkpointing" in text or "divided" in text for text in texts if text.startswith("assumed"))


def test_advice_where_it_does_not_fit() -> None:
    text = run("--model", "Llama-3-8B", "--method", "full", "--gpu", "RTX 3090")[1]
    told = [line.removeprefix("  advice    ") for line in text.splitlines() if line.startswith("  advice")]
    assert [line.partition(":")[0] for line in told] == [
        "Train adapters", "Keep the optimizer on the CPU", "full fine-tuning fits on 10x GeForce RTX 3090",
    ]  # fmt: skip


def test_choices_power_workers() -> None:
    found = plan("--params-b", "13", "--method", "inference", "--option", "RTX 3090", "--option", "RTX 4060 Ti 16GB")
    assert found["choices"] == ["GeForce RTX 3090", "GeForce RTX 4060 Ti 16GB"]
    assert plan("--gpu", "2x RTX 4090", "--psu-w", "1000")["verdict"] == "no"
    assert plan("--gpu", "2x H100", "--cores", "64")["numbers"]["num_workers"] == 31
    bought = plan("--params-b", "7", "--budget", "4000", "--currency", "CNY")["choices"]
    assert "GeForce RTX 4060 Ti 16GB" in bought
    assert "GeForce RTX 4090" not in bought


@pytest.mark.parametrize("args", [(), ("--gpu", "Some Card 1"), ("--params-b", "0"), ("--batch", "none")])
def test_faults(args: tuple[str, ...]) -> None:
    assert run(*args)[0] == 2


def test_why_and_what_if_follow(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    report.write_text(
        run("--json", "--model", "Llama-2-7B", "--method", "full", "--gpu", "RTX 3090")[1], encoding="utf-8"
    )
    done = CliRunner().invoke(cli, ["why", "planning_capacity", "--in", str(report), "--lang", "en"])
    assert done.exit_code == 0
    assert "full fine-tuning" in done.output


def test_figures_of_the_probed_machine_serve_where_nobody_states_them(tmp_path: Path) -> None:
    facts = tmp_path / "machine.yaml"
    facts.write_text(
        "facts:\n"
        "  - gpu: {index: 0, name: NVIDIA GeForce RTX 4090}\n"
        "  - cpu: {cores: 32, threads: 64, usable: 8}\n"
        "  - power_supply: {index: 0, max_w: 600, present: true}\n"
    )
    found = plan("--facts", str(facts), "--model", "Llama-3.1-8B", "--method", "qlora")
    assert found["numbers"]["num_workers"] <= 8
    assert 200 < found["numbers"]["power_limit_w"] < 450  # a 4090 on 600 W has to be limited
