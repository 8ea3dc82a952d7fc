"""Gradient accumulation: the update of a large batch with the memory of a small one.

梯度累积：用小批量的显存完成大批量的一次更新。

    python accumulate.py
"""

from __future__ import annotations

import torch
from torch import nn

PARTS = 4


def train(parts: int = PARTS) -> list[torch.Tensor]:
    """One epoch in groups of `parts` small batches; returns the weights. With parts=1 every batch is its own group."""
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Linear(16, 1).to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    inputs = torch.randn(80, 16, device=device)
    wanted = inputs.mean(1, keepdim=True)
    # 10 个小批量：4 + 4 + 2，最后一组不满 / ten small batches in groups of 4, 4 and 2: the last group is short
    size = 32 // parts
    batches = list(zip(inputs.split(size), wanted.split(size), strict=True))
    for start in range(0, len(batches), parts):
        group = batches[start : start + parts]
        examples = sum(len(x) for x, _ in group)
        for x, y in group:
            loss = nn.functional.mse_loss(model(x), y)
            # 每个小批量前向后立即反向，计算图随即释放 / backward after each forward frees its graph at once
            # 按实际样本数加权，不满的组也正确 / weighted by examples, so a short group counts right too
            (loss * len(x) / examples).backward()
        optimizer.step()
        # 每次更新后都要清零，而不是只在循环前 / after every update, not once before the loop
        optimizer.zero_grad(set_to_none=True)
    return [p.detach().cpu() for p in model.parameters()]


if __name__ == "__main__":
    difference = max((a - b).abs().max().item() for a, b in zip(train(PARTS), train(1), strict=True))
    print(f"difference from the large batch: {difference:.1e}")
