"""Loading a benchmark of bench/, which belongs to the checkout and not to the package.

May live here: that alone. Must not: any measurement or bar.
"""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

FOLDER = Path(__file__).resolve().parents[1] / "bench"


def bench(name: str) -> ModuleType:
    """The module bench/NAME.py, run anew."""
    spec = importlib.util.spec_from_file_location(f"bench_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module
