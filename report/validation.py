"""What `validate` found, as a model: predicted, observed and whether they agree, check by check.

May live here: what the answer holds and what follows from its numbers. Must not: wording, layout, reasoning.
"""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from .model import Finding, Fix, Lang, Scalar, _Model

VALIDATION_SCHEMA = "gpurules.validation/1"

Observed = Literal["passed", "failed", "skipped", "timeout", "killed", "crashed", "out_of_memory"]


class CheckRow(_Model):
    """One check. predicted: what the rules expect, with the rule and its sentence; observed: how it ended.

    agrees: absent where nothing was predicted, or the check was skipped. value: what it read, such as targets.
    predicted_mib: the memory of the device that it needs at most; measured.peak_mib is what it took.
    """

    check: str
    title: str
    predicted: Literal["passed", "failed", "unknown"]
    observed: Observed
    agrees: bool | None = None
    detail: str | None = None
    because: str | None = None
    rule: str | None = None
    predicted_value: str | None = None
    value: str | None = None
    predicted_mib: int | None = None
    seconds: float = 0.0
    measured: dict[str, Scalar] | None = Field(default=None, description="figures: error, mib, ranks ...")


class Validation(_Model):
    """The checks of one device, `gpurules.validation/1`.

    verdict: agrees (every check that was predicted came out so, and one at least was), disagrees, unknown.
    """

    schema_id: Literal["gpurules.validation/1"] = Field(default="gpurules.validation/1", alias="schema")
    version: str
    knowledge_version: str
    lang: Lang = "en"
    device: str
    python: str
    torch: str | None = None
    verdict: Literal["agrees", "disagrees", "unknown"]
    share: float = Field(description="of the free memory of host and device, which the checks stay below")
    seconds: float
    checks: tuple[CheckRow, ...] = ()
    findings: tuple[Finding, ...] = ()
    fixes: tuple[Fix, ...] = ()

    def exit_status(self) -> int:
        """0 when checks passed, none ended otherwise, and none disagrees; else 1."""
        ends = {row.observed for row in self.checks} - {"skipped"}
        return int(ends != {"passed"} or self.verdict == "disagrees")
