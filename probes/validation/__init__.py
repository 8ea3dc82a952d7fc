"""The validation probe: small computations that show whether torch really works on a device, each in a child.

May live here: which checks there are, running each within limits of time and memory, facts of what came of them. Must
not: what is expected of a check (rules predict that), comparing, output.
"""

from __future__ import annotations

from .checks import CHECKS, Check, Device, planned
from .running import Budget, Outcome, run_checks

__all__ = ["CHECKS", "Budget", "Check", "Device", "Outcome", "planned", "run_checks"]
