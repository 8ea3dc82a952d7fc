"""Measure what training needs: the peak over whole steps, not the size of a loaded model.

测量训练所需显存：看完整训练步的峰值，而不是加载后的模型大小。

    python memory.py
"""

from __future__ import annotations

import torch
from torch import nn

MIB = 2**20


def step(model: nn.Module, optimizer: torch.optim.Optimizer, inputs: torch.Tensor) -> None:
    """One whole training step."""
    model(inputs).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)


def main() -> None:
    """Prints weights, and on a GPU the peak of three steps."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)).to(device)
    optimizer = torch.optim.AdamW(model.parameters())
    weights = sum(p.numel() * p.element_size() for p in model.parameters())
    print(f"weights: {weights / MIB:.1f} MiB")
    if device == "cuda":
        torch.cuda.reset_peak_memory_stats()
    # 第一步才建立优化器状态，所以多跑几步 / the first step makes the optimizer's state, so there are more
    for _ in range(3):
        step(model, optimizer, torch.randn(256, 1024, device=device))
    if device == "cuda":
        # allocated 是存活张量，reserved 是缓存分配器占用 / live tensors, and what the allocator holds
        peak, held = torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved()
        free, total = torch.cuda.mem_get_info()
        print(
            f"peak: {peak / MIB:.1f} MiB, held: {held / MIB:.1f} MiB, free: {free / MIB:.0f} of {total / MIB:.0f} MiB"
        )
    else:
        state = sum(t.numel() * t.element_size() for s in optimizer.state.values() for t in s.values())
        print(f"optimizer state: {state / MIB:.1f} MiB")


if __name__ == "__main__":
    main()
