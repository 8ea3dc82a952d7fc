"""Data parallel training with torchrun: one process a GPU.

用 torchrun 进行数据并行训练：每个 GPU 一个进程。

    torchrun --standalone --nproc_per_node=2 ddp.py                                          one machine, 2 GPUs
    torchrun --nnodes=2 --nproc_per_node=8 --rdzv-backend=c10d --rdzv-endpoint=HOST:29500 ddp.py   on each of two
"""

from __future__ import annotations

import gc
import os
from contextlib import nullcontext

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

PARTS = 2  # 累积步数 / small batches of one update


def main() -> None:
    """Trains, and checks that all processes end with the same weights."""
    # 本机内的序号；rank 是全局的 / the number on this machine; the rank counts over all machines
    local = int(os.environ["LOCAL_RANK"])
    gpu = torch.cuda.is_available()
    if gpu:
        torch.cuda.set_device(local)
    device = torch.device("cuda", local) if gpu else torch.device("cpu")
    # NCCL 只用于 Linux 上的 GPU / NCCL is for GPUs on Linux; elsewhere gloo
    dist.init_process_group("nccl" if gpu and dist.is_nccl_available() else "gloo")
    try:
        train(device, local)
        # 模型有循环引用并持有进程组，先回收它 / the model is part of a cycle and holds the group: let it go first
        gc.collect()
    finally:
        dist.destroy_process_group()


def train(device: torch.device, local: int) -> None:
    """Two epochs of accumulated updates."""
    torch.manual_seed(0)
    inputs = torch.randn(128, 8)
    data = TensorDataset(inputs, inputs.sum(1, keepdim=True))
    # 各进程的数据不同 / each process gets a share of its own
    sampler = DistributedSampler(data, shuffle=True, drop_last=True)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = DistributedDataParallel(nn.Linear(8, 1).to(device), device_ids=[local] if device.type == "cuda" else None)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(2):
        # 否则每轮顺序相同 / without it every epoch has the same order
        sampler.set_epoch(epoch)
        for number, (x, y) in enumerate(loader, 1):
            last = number % PARTS == 0 or number == len(loader)
            # 只在更新前同步梯度 / gradients are exchanged only before an update
            with nullcontext() if last else model.no_sync():
                loss = nn.functional.mse_loss(model(x.to(device)), y.to(device))
                (loss / PARTS).backward()
            if last:
                optimizer.step()
                optimizer.zero_grad(set_to_none=True)
    weights = torch.cat([p.detach().flatten() for p in model.parameters()])
    found = [torch.empty_like(weights) for _ in range(dist.get_world_size())]
    dist.all_gather(found, weights)
    if dist.get_rank() == 0:
        same = all(torch.equal(found[0], other) for other in found)
        print(f"processes: {len(found)}, same weights: {same}, loss: {loss.item():.3f}")


if __name__ == "__main__":
    main()
