"""gpurules: an expert system for GPU, driver and PyTorch compatibility.

The public Python API; nothing else may live here. `gpurules.diagnose(...)` returns a typed report, `gpurules.recommend(...)`
the torch build to install. Both are stateless, print nothing and need no network.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["__version__", "diagnose", "recommend"]

if TYPE_CHECKING:
    from .pipeline import diagnose_text as diagnose
    from .pipeline import recommend_for as recommend


def __getattr__(name: str) -> Any:
    """Load the working parts only when they are used: `import gpurules` stays cheap."""
    if name in ("diagnose", "recommend"):
        from . import pipeline

        return pipeline.diagnose_text if name == "diagnose" else pipeline.recommend_for
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
