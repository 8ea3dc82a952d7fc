"""gpurules: an expert system for GPU, driver and PyTorch compatibility.

May live here: the names of the public Python API; nothing else. `gpurules.diagnose(...)` returns a typed report,
`gpurules.recommend(...)` the torch build to install; `docs/api.md` describes all of it. Everything is stateless and
thread-safe, prints nothing, needs no network and raises errors of one family, `GpurulesError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from .api import Recommendation, Report, Session, diagnose, facts_to_json, probe_facts, read_facts, recommend
    from .errors import GpurulesError, InputError, InputTooLarge, TimeLimit
    from .facts import Fact, Provenance
    from .knowledge.problems import KnowledgeError
    from .report.model import ProofNode

_HOMES = {
    "Fact": "facts",
    "GpurulesError": "errors",
    "InputError": "errors",
    "InputTooLarge": "errors",
    "KnowledgeError": "knowledge.problems",
    "ProofNode": "report.model",
    "Provenance": "facts",
    "Recommendation": "api",
    "Report": "api",
    "Session": "api",
    "TimeLimit": "errors",
    "diagnose": "api",
    "facts_to_json": "api",
    "probe_facts": "api",
    "read_facts": "api",
    "recommend": "api",
}
__all__ = [
    "Fact",
    "GpurulesError",
    "InputError",
    "InputTooLarge",
    "KnowledgeError",
    "ProofNode",
    "Provenance",
    "Recommendation",
    "Report",
    "Session",
    "TimeLimit",
    "__version__",
    "diagnose",
    "facts_to_json",
    "probe_facts",
    "read_facts",
    "recommend",
]


def __getattr__(name: str) -> Any:
    """Load the working parts only when they are used: `import gpurules` stays cheap."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
