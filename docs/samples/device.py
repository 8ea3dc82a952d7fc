"""Choose the device, and make sure that this build of torch has code for the card.

选择设备，并确认当前 torch 构建包含该显卡的代码。

    python device.py
"""

from __future__ import annotations

import torch


def has_code(targets: list[str], major: int, minor: int) -> bool:
    """Whether one of the build's targets runs on a card: same major and no higher minor, or PTX of an older card."""
    for target in targets:
        kind, _, number = target.partition("_")
        digits = number.rstrip("af")
        found = (int(digits[:-1]), int(digits[-1]))
        if kind == "sm" and found[0] == major and found[1] <= minor:
            return True
        # PTX 会在更新的卡上即时编译 / PTX is compiled on newer cards when it is first used
        if kind == "compute" and found <= (major, minor):
            return True
    return False


def choose() -> torch.device:
    """The GPU where there is one that this build serves, else the CPU."""
    # is_available() 为真不代表构建含有该卡的代码 / is_available() says nothing of the build's code for the card
    if torch.cuda.is_available() and torch.version.cuda:
        major, minor = torch.cuda.get_device_capability()
        if has_code(torch.cuda.get_arch_list(), major, minor):
            return torch.device("cuda", 0)
        print(f"this build has no code for compute capability {major}.{minor}")
    elif torch.cuda.is_available():  # ROCm
        return torch.device("cuda", 0)
    return torch.device("cpu")


if __name__ == "__main__":
    device = choose()
    print(f"device: {device}, sum: {torch.ones(1000, device=device).sum().item():.0f}")
