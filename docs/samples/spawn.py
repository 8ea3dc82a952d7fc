"""Processes by torch.multiprocessing.spawn on one machine, where torchrun cannot be used.

在单机上用 torch.multiprocessing.spawn 启动进程，适用于不能使用 torchrun 的场合。

    python spawn.py
"""

from __future__ import annotations

import os
import socket

import torch
import torch.distributed as dist
import torch.multiprocessing as mp


def work(rank: int, processes: int, port: int) -> None:
    """What each process does: here a sum over all of them."""
    # spawn 不设置这两个变量，缺少时 init_process_group 失败 / spawn sets neither, and without them the call fails
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = "127.0.0.1", str(port)
    gpu = torch.cuda.is_available()
    if gpu:
        torch.cuda.set_device(rank)  # 单机上 rank 即设备号 / on one machine the rank is the device
    backend = "nccl" if gpu and dist.is_nccl_available() else "gloo"
    dist.init_process_group(backend, rank=rank, world_size=processes)
    try:
        total = torch.tensor([rank + 1.0], device="cuda" if gpu else "cpu")
        dist.all_reduce(total)
        if rank == 0:
            print(f"processes: {processes}, sum: {total.item():.0f}")
    finally:
        dist.destroy_process_group()


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


if __name__ == "__main__":
    count = torch.cuda.device_count() or 2
    mp.spawn(work, args=(count, free_port()), nprocs=count)
