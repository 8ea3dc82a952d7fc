"""A plan of fixes as text, and as a script for a POSIX shell or PowerShell.

May live here: the form of both. Must not: wording (knowledge/messages.yaml), choice and order of fixes, running them.

A command stands in a script only as an argument list that is quoted here; every other text becomes a comment of one
line or a quoted argument. What needs a hand (a sentence, a placeholder, no way back, no list of arguments) is shown as
a comment, and the script waits until it is done.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from . import quoting
from .drawing import Drawing, actions, mirror_steps, shown_in
from .layout import Look, clean, fit, hang, joined, wrap
from .messages import Words
from .model import Fix, PlanStep, Report, Step

Shell = Literal["bash", "powershell"]


def by_hand(step: Step) -> bool:
    """Whether a step cannot be left to a script: a sentence belongs to it, or it cannot be undone."""
    return not step.argv or step.text is not None or not step.reversible or step.argv[0] == "export"


def titles(report: Report) -> dict[str, str]:
    """What each finding says, by id."""
    return {finding.id: clean(finding.title) for finding in report.findings}


def fix_document(report: Report) -> dict[str, Any]:
    """The plan of a report as JSON values, `gpurules.fix_plan/1`."""
    plan = report.fix_plan.to_dict() if report.fix_plan else {"steps": [], "left": []}
    return {
        "schema": "gpurules.fix_plan/1",
        "lang": report.lang,
        "verdict": report.verdict,
        **({"platform": report.platform} if report.platform else {}),
        **plan,
    }


# --- text ---------------------------------------------------------------------------------------------------------


def render_fix(report: Report, *, look: Look | None = None, verbose: bool = False) -> str:
    """The plan of a report as text that ends in a newline, in the report's language."""
    look = look or Look()
    shown = shown_in(report, look.encoding)
    return fit(joined(_FixDrawing(shown, look, verbose=verbose).lines()), look.encoding)


class _FixDrawing(Drawing):
    def __init__(self, report: Report, look: Look, *, verbose: bool) -> None:
        super().__init__(Words(report.lang), look, report.platform, verbose=verbose)
        self.report = report
        self.plan = report.fix_plan

    def lines(self) -> list[str]:
        words = self.words
        steps = self.plan.steps if self.plan else ()
        if not steps:
            return [*wrap(words("fix_plan.none"), self.width), *self.left()]
        whole = self.plan is not None and self.plan.verified == "simulated"
        said = words("fix_plan.head.simulated" if whole else "fix_plan.head.not_simulable") + words("fix.stop")
        lines = wrap(words.count("fix_plan.steps", len(steps)) + words("fix.colon.inner") + said, self.width)
        for number, step in enumerate(steps, 1):
            lines += ["", *self.step(step, number)]
        verify = steps[-1].instance.verify
        lines += ["", *self.commands("verify", verify)] if verify else []
        return lines + self.left()

    def step(self, step: PlanStep, number: int) -> list[str]:
        fix = step.instance
        lead = f"{number}. "
        lines = hang(wrap(clean(fix.title), self.width - len(lead)), lead, len(lead))
        lines += self.labelled("because", [titles(self.report).get(step.finding, step.because)])
        for action in actions(fix, self.platform):
            lines += self.labelled("by_hand", [action.text]) if action.text else []
            if action.command:
                root = action.needs_root
                lines += self.commands("as_root" if root else "run", action.command)
        for other in mirror_steps(fix):
            lines += self.commands("mirror", other.command or "")
        lines += self.labelled("risk", fix.risks or ())
        return lines + (self.labelled("undo", [fix.undo]) if fix.undo else [])

    def left(self) -> list[str]:
        known = titles(self.report)
        left = self.plan.left if self.plan else ()
        items = [known.get(i.finding, i.finding) + self.words("paren", text=clean(i.reason)) for i in left]
        return ["", *self.paragraph("fix_plan.left", items)] if items else []


# --- scripts ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Dialect:
    """How a shell says what a script needs. ask: waits for a person, with the text as its argument."""

    head: tuple[str, ...]
    quote: Callable[[Sequence[str]], str]
    takes: Callable[[Sequence[str]], bool]
    check: str
    ask: str


_DIALECTS: dict[Shell, _Dialect] = {
    "bash": _Dialect(
        head=("#!/usr/bin/env bash", "set -eu", 'by_hand() { printf "%s\\n" "$1" >&2; read -r _ </dev/tty; }'),
        quote=quoting.posix,
        takes=quoting.one_line,
        check="",
        ask="by_hand",
    ),
    "powershell": _Dialect(
        head=(
            "$ErrorActionPreference = 'Stop'",
            "function Wait-ByHand([string]$What) { Write-Host $What; [void](Read-Host) }",
        ),
        quote=quoting.powershell,
        takes=lambda words: quoting.one_line(words) and quoting.passes_powershell(words),
        check="if ($LASTEXITCODE -ne 0) { throw $LASTEXITCODE }",
        ask="Wait-ByHand",
    ),
}
_USUAL: dict[Shell, str] = {"bash": "linux", "powershell": "windows"}


def render_script(report: Report, shell: Shell) -> str:
    """The plan of a report as a script that ends in a newline."""
    text = "\n".join([*_Script(report, shell).lines(), ""])
    # Without the mark Windows PowerShell 5 takes the bytes for the local code page, in which some are quotes.
    return "\ufeff" + text if shell == "powershell" and not text.isascii() else text


class _Script:
    def __init__(self, report: Report, shell: Shell) -> None:
        self.report = report
        self.words = Words(report.lang)
        self.dialect = _DIALECTS[shell]
        self.platform = report.platform or _USUAL[shell]

    def lines(self) -> Iterator[str]:
        plan = self.report.fix_plan
        steps = plan.steps if plan else ()
        yield from self.dialect.head
        yield from self.comments([self.words("fix_plan.script"), self.report.summary])
        if not steps:
            yield from self.comments([self.words("fix_plan.none")])
        for number, step in enumerate(steps, 1):
            yield ""
            yield from self.step(step, number)
        for item in plan.left if plan else ():
            yield from self.comments([f"{self.words('fix_plan.left')}: {titles(self.report).get(item.finding, '')}"])
        if steps:
            yield ""
            yield from self.verify(steps[-1].instance)

    def step(self, step: PlanStep, number: int) -> Iterator[str]:
        fix = step.instance
        yield from self.comments([f"{number}. {fix.title}"])
        yield from self.labelled("because", [titles(self.report).get(step.finding, step.because)])
        yield from self.labelled("risk", fix.risks or ())
        yield from self.labelled("undo", [fix.undo] if fix.undo else [])
        for action in actions(fix, self.platform):
            yield from self.action(action, f"{number}. {fix.title}")
        yield from self.labelled("mirror", [step.command or "" for step in mirror_steps(fix)])

    def action(self, action: Step, title: str) -> Iterator[str]:
        """The command itself, or what a person has to do and a line that waits for it."""
        if action.needs_root:
            yield from self.comments([self.words("fix.needs_root")])
        if action.argv and not self.by_hand(action) and self.dialect.takes(action.argv):
            yield from self.run(action.argv)
            return
        yield from self.labelled("by_hand", [action.text] if action.text else [])
        if action.command:
            yield from self.comments([action.command])
        yield self.dialect.quote([self.dialect.ask, self.words("fix_plan.wait", title=clean(title))])

    def by_hand(self, action: Step) -> bool:
        """Whether a person has to do it; so too what belongs into the Windows around WSL."""
        return by_hand(action) or (action.platform == "windows" and self.platform != "windows")

    def verify(self, fix: Fix) -> Iterator[str]:
        yield from self.labelled("verify", [fix.verify] if fix.verify else [])
        if fix.verify_argv and not self.placeholders(fix) and self.dialect.takes(fix.verify_argv):
            yield from self.run(fix.verify_argv)

    def placeholders(self, fix: Fix) -> bool:
        """Whether the verifying command names something that a step asks a person to fill in."""
        asked = {w.strip(".,;:。，；：") for s in fix.steps for w in (s.text or "").split()}
        return any(word.isupper() and word in asked for word in fix.verify_argv or ())

    def run(self, argv: Sequence[str]) -> Iterator[str]:
        yield self.dialect.quote(argv)
        if self.dialect.check:
            yield self.dialect.check

    def labelled(self, label: str, texts: Iterable[str]) -> Iterator[str]:
        for text in texts:
            yield from self.comments([self.words(f"label.{label}") + self.words("fix.colon.inner") + text])

    def comments(self, texts: Iterable[str]) -> Iterator[str]:
        """Each text as one line that no shell runs: `clean` leaves neither line ends nor control characters."""
        return (f"# {clean(text)}" for text in texts)
