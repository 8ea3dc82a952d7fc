"""Mixed precision by torch.amp: bfloat16 without a scaler where the card has it, else float16 with one.

用 torch.amp 做混合精度：显卡支持时用 bfloat16（无需缩放器），否则用 float16 加缩放器。

    python amp.py
"""

from __future__ import annotations

import torch
from torch import nn


def train(steps: int = 20) -> list[float]:
    """Trains a small network; returns the losses."""
    torch.manual_seed(0)
    kind = "cuda" if torch.cuda.is_available() else "cpu"
    # bfloat16 需要计算能力 8.0；否则会被模拟 / below compute capability 8.0 bfloat16 is emulated
    native = kind == "cpu" or torch.cuda.is_bf16_supported(including_emulation=False)
    dtype = torch.bfloat16 if native else torch.float16
    model = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 1)).to(kind)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
    # 只有 float16 需要缩放 / only float16 needs scaling
    scaler = torch.amp.GradScaler(kind, enabled=dtype == torch.float16)
    inputs = torch.randn(256, 32, device=kind)
    wanted = inputs.sum(1, keepdim=True)
    losses = []
    for _ in range(steps):
        # 反向传播放在 autocast 之外 / backward stays outside autocast
        with torch.amp.autocast(kind, dtype=dtype):
            loss = nn.functional.mse_loss(model(inputs), wanted)
        scaler.scale(loss).backward()
        # 裁剪前必须先还原梯度 / gradients must be unscaled before they are clipped
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        # 遇到 inf/NaN 时 step() 自动跳过 / step() skips where gradients are inf or NaN
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
    return losses


if __name__ == "__main__":
    found = train()
    print(f"loss: {found[0]:.3f} to {found[-1]:.3f}")
