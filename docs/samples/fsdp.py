"""Training with the state divided among the GPUs (FSDP2), in mixed precision with activation checkpointing.

用 FSDP2 把权重、梯度与优化器状态切分到各 GPU，配合混合精度与激活检查点。

    torchrun --standalone --nproc_per_node=2 fsdp.py
"""

from __future__ import annotations

import gc
import os

import torch
import torch.distributed as dist
from torch import Tensor, nn
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.utils.checkpoint import checkpoint


class Net(nn.Module):
    """A stack of blocks between two matrices."""

    def __init__(self, width: int = 32, depth: int = 4) -> None:
        super().__init__()
        self.first = nn.Linear(8, width)
        self.blocks = nn.ModuleList(
            nn.Sequential(nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))
            for _ in range(depth)
        )
        self.last = nn.Linear(width, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Each block is computed again in the backward pass."""
        x = self.first(x)
        for block in self.blocks:
            x = x + checkpoint(block, x, use_reentrant=False)
        return self.last(x)


def main() -> None:
    """Trains, and shows what one process holds of the whole."""
    local = int(os.environ["LOCAL_RANK"])
    gpu = torch.cuda.is_available()
    if gpu:
        torch.cuda.set_device(local)
    dist.init_process_group("nccl" if gpu and dist.is_nccl_available() else "gloo")
    try:
        train(torch.device("cuda", local) if gpu else torch.device("cpu"))
        # 模型有循环引用并持有进程组，先回收它 / the model is part of a cycle and holds the group: let it go first
        gc.collect()
    finally:
        dist.destroy_process_group()


def train(device: torch.device) -> None:
    """A few steps on each process's own data."""
    torch.manual_seed(0)
    net = Net().to(device)
    whole = sum(p.numel() for p in net.parameters())
    # 计算用 bfloat16，分片保持 float32 / computes in bfloat16, keeps its shards in float32
    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
    # 先逐块，再整体：一次只还原一块 / each block, then the rest, so that one block at a time is whole
    for block in net.blocks:
        fully_shard(block, mp_policy=policy)
    fully_shard(net, mp_policy=policy)
    # 优化器在切分之后建立 / the optimizer comes after the division
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
    torch.manual_seed(dist.get_rank() + 1)
    inputs = torch.randn(64, 8, device=device)
    wanted = inputs.sum(1, keepdim=True)
    losses = []
    for _ in range(10):
        loss = nn.functional.mse_loss(net(inputs).float(), wanted)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
    own = sum(p.to_local().numel() for p in net.parameters())  # type: ignore[attr-defined]
    if dist.get_rank() == 0:
        share = f"{own} of {whole} parameters here"
        print(f"processes: {dist.get_world_size()}, {share}, loss: {losses[0]:.3f} to {losses[-1]:.3f}")


if __name__ == "__main__":
    main()
