"""Mirrors of the PyTorch index: the same build from another place, offered beside the original.

May live here: rewriting commands from the canonical index to a mirror's. Must not: any mirror (catalog), any build.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..knowledge.catalogs import INDEX
from ..knowledge.loader import Knowledge
from ..report.messages import Words
from ..report.model import Fix, RecommendResult, Report, Step
from ..report.quoting import quoted

_OPTIONS = {"index": "--index-url", "find_links": "--find-links"}


@dataclass(frozen=True, slots=True)
class Mirror:
    """A mirror by name; `base` holds `{index}`, `how` is index or find_links."""

    name: str
    title: str
    base: str
    how: str

    def url(self, canonical: str) -> str | None:
        """Where the mirror keeps what the canonical address names, None for an address of another place."""
        return self.base.replace("{index}", canonical[len(INDEX) :].strip("/")) if canonical.startswith(INDEX) else None

    def argv(self, argv: Sequence[str]) -> list[str] | None:
        """The command with the mirror in place of the index, None where it uses none."""
        for at, word in enumerate(argv[:-1]):
            if word == "--index-url" and (url := self.url(argv[at + 1])) is not None:
                return [*argv[:at], _OPTIONS[self.how], url, *argv[at + 2 :]]
        return None


def mirrors(knowledge: Knowledge) -> dict[str, Mirror]:
    """The mirrors of the catalog by name."""
    return {
        str(f["name"]): Mirror(str(f["name"]), str(f["title"]), str(f["base"]), str(f["how"]))
        for type_name, f in knowledge.static
        if type_name == "mirror"
    }


def with_mirror(report: Report, mirror: Mirror) -> Report:
    """The report with the mirror's address and command beside those of every fix that installs from the index."""
    words = Words(report.lang)
    plan = report.fix_plan
    if plan is not None:
        steps = (s.model_copy(update={"instance": _mirrored(s.instance, mirror, words)}) for s in plan.steps)
        plan = plan.model_copy(update={"steps": tuple(steps)})
    fixes = tuple(_mirrored(f, mirror, words) for f in report.fixes)
    return report.model_copy(update={"fixes": fixes, "fix_plan": plan})


def _mirrored(fix: Fix, mirror: Mirror, words: Words) -> Fix:
    url = mirror.url(fix.index_url) if fix.index_url else None
    if url is None:
        return fix
    extra = [
        Step(
            platform=step.platform,
            command=quoted(argv, step.platform),
            text=words("mirror.step", title=mirror.title),
            tool=f"{step.tool}, {mirror.name}",
            argv=tuple(argv),
            needs_root=step.needs_root,
            reversible=step.reversible,
        )
        for step in fix.steps
        if step.argv and step.tool == "pip" and (argv := mirror.argv(step.argv)) is not None
    ]
    return fix.model_copy(update={"mirror_url": url, "steps": (*fix.steps, *extra)})


def recommend_with_mirror(result: RecommendResult, mirror: Mirror, specs: Mapping[str, str]) -> RecommendResult:
    """The recommendation with the mirror's address and pip command; `specs`: the packages to install."""
    url = mirror.url(result.index_url) if result.index_url else None
    if url is None or result.index_url is None:
        return result
    force = ["--force-reinstall"] if "--force-reinstall" in (result.commands or {}).get("pip", "") else []
    argv = mirror.argv(["pip", "install", *force, *(n + s for n, s in specs.items()), "--index-url", result.index_url])
    commands = {**(result.commands or {}), f"pip, {mirror.name}": quoted(argv or [], "any")}
    return result.model_copy(update={"mirror_url": url, "commands": commands})
