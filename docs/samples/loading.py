"""A DataLoader that keeps the GPU busy: workers by cores, pinned memory, copies beside the computation.

让 GPU 不空等的 DataLoader：按核心数设进程，锁页内存，拷贝与计算重叠。

    python loading.py
"""

from __future__ import annotations

import os

import torch
from torch.utils.data import DataLoader, Dataset


class Squares(Dataset[tuple[torch.Tensor, torch.Tensor]]):
    """Numbers and their squares, in place of files to decode."""

    def __len__(self) -> int:
        return 256

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor]:
        number = torch.tensor([float(index)])
        return number, number.square()


def workers(processes: int = 1) -> int:
    """The cores that this process may use, shared by the training processes, less one for each of them."""
    # 容器与作业系统可能限制核心 / containers and job systems may allow fewer cores than the machine has
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, cores // processes - 1)


def loader(processes: int = 1, most: int = 8) -> DataLoader[tuple[torch.Tensor, torch.Tensor]]:
    """A loader for training."""
    return DataLoader(
        Squares(),
        batch_size=32,
        shuffle=True,  # DDP 下改用 DistributedSampler / with DDP a DistributedSampler shuffles instead
        num_workers=min(most, workers(processes)),
        pin_memory=torch.cuda.is_available(),
        persistent_workers=True,  # 各轮之间不重启进程 / workers live on between epochs
        prefetch_factor=2,
        drop_last=True,
    )


def epoch(batches: DataLoader[tuple[torch.Tensor, torch.Tensor]]) -> float:
    """Goes through the data once; returns the sum of the squares."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    total = 0.0
    for x, y in batches:
        # 锁页内存上的异步拷贝 / does not wait, because the memory is pinned
        x_there, y_there = x.to(device, non_blocking=True), y.to(device, non_blocking=True)
        assert torch.equal(x_there.square(), y_there)
        total += y_there.sum().item()
    return total


# 非 Linux 系统的进程会重新导入本文件 / outside Linux, workers import this file again
if __name__ == "__main__":
    batches = loader()
    print(f"workers: {batches.num_workers}, sums of two epochs: {epoch(batches):.0f} {epoch(batches):.0f}")
