"""Activation checkpointing: layers keep their input only and are computed again in the backward pass.

激活检查点：每层只保存输入，反向传播时重新计算。

    python checkpointing.py
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint


class Net(nn.Module):
    """A stack of wide blocks."""

    def __init__(self, width: int = 64, depth: int = 8) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(depth)
        )
        self.checkpointing = True

    def forward(self, x: Tensor) -> Tensor:
        """Each block around a shortcut."""
        for block in self.blocks:
            # 需明确 use_reentrant=False / state use_reentrant=False
            again = self.checkpointing and self.training
            x = x + (checkpoint(block, x, use_reentrant=False) if again else block(x))
        return x


def saved_bytes(net: Net, x: Tensor) -> int:
    """What the forward pass keeps for the backward pass, parameters aside."""
    sizes: dict[int, int] = {}
    own = {p.untyped_storage().data_ptr() for p in net.parameters()}

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            sizes[storage.data_ptr()] = storage.nbytes()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(note, lambda t: t):
        kept = net(x)  # 输出存活期间统计 / counted while the output lives
    assert kept.requires_grad
    return sum(sizes.values())


def gradients(net: Net, x: Tensor) -> list[Tensor]:
    """The gradients of one step."""
    net.zero_grad(set_to_none=True)
    net(x).square().mean().backward()
    return [p.grad for p in net.parameters() if p.grad is not None]


if __name__ == "__main__":
    torch.manual_seed(0)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net, x = Net().to(device), torch.randn(512, 64, device=device)
    small, with_it = saved_bytes(net, x), gradients(net, x)
    net.checkpointing = False
    large, without = saved_bytes(net, x), gradients(net, x)
    assert all(torch.allclose(a, b, atol=1e-6) for a, b in zip(with_it, without, strict=True))
    print(f"kept for the backward pass: {large / 2**20:.1f} MiB, with checkpointing {small / 2**20:.1f} MiB")
