"""The Markdown form of a report, safe to post where strangers read it: an issue, a merge request, a forum.

May live here: the order of what a report holds in Markdown, and writing texts so that a forge does not act on them.
Must not: wording (knowledge/messages.yaml), reasoning, redaction (the caller hands over a redacted report).

Any text of a report may come from a pasted text. In prose, a run of ASCII characters that a forge could read as markup,
mention, link, reference or HTML stands in a code span, where nothing is read; commands stand in fences longer than any
run of back quotes in them; characters that control or reorder a display are dropped.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from urllib.parse import quote, urlsplit

from .citing import remark
from .drawing import advised, steps_here, verdict_key
from .layout import clean, clean_lines
from .messages import Words
from .model import Finding, Fix, Lang, NotChecked, Question, Reason, Report, Step

MAX_LENGTH = 60_000  # characters; forges refuse comments of more than 65,536
_MAX_PROSE = 600
_MAX_COMMAND = 4_000
_MAX_PLACE = 120
_FINDINGS = 5
_FIXES = 3
_NOT_CHECKED = 6
_SHELLS = {"linux": "bash", "macos": "bash", "wsl": "bash", "container": "bash", "windows": "powershell"}

_RUN = re.compile(r"[!-~]+")
_PLAIN = re.compile(r"[A-Za-z0-9.,;:'\"()/+=?!%-]+")
# Plain characters that forges link or replace all the same: addresses, references to issues, merge requests and
# commits, emoji names, and two hyphens.
_ACTIVE = re.compile(
    r"://|--|(?:mailto|xmpp):|:[a-z0-9+-]+:|[!%][0-9\"]"
    r"|(?<![a-z0-9])(?:www\.|[a-z][a-z0-9]*-[0-9]|(?=[a-f]*[0-9])[0-9a-f]{7,64}(?![a-z0-9]))",
    re.IGNORECASE,
)
_OPENING, _CLOSING = "('\"", ".,;:'\")?!"
_BLOCK_START = re.compile(r"(?:[-+=]|[0-9]{1,9}[.)])(?= |$)")


def render_markdown(report: Report, *, lang: Lang = "en", limit: int = MAX_LENGTH) -> str:
    """The report as Markdown that ends in a newline, of at most `limit` characters."""
    kept = ""
    for block in _Document(report, Words(lang)).blocks():
        if len(kept) + len(block) + 2 > limit:
            break
        kept += ("\n" if kept else "") + block + "\n"
    return kept


def prose(text: str) -> str:
    """A text on one line that a forge shows as it is: no markup, mentions, links, references or HTML."""
    line = _visible(clean(text))
    if len(line) > _MAX_PROSE:
        line = line[: _MAX_PROSE - 1] + "…"
    start = _BLOCK_START.match(line)
    shown = _RUN.sub(lambda match: _word(match.group()), line[start.end() :] if start else line)
    return (_code(start.group()) if start else "") + shown


def fence(text: str, language: str = "") -> str:
    """A code block that nothing in the text can end."""
    lines = [_visible(line) for line in clean_lines(text)]
    marks = "`" * max(3, 1 + max((len(run) for line in lines for run in re.findall("`+", line)), default=0))
    return "\n".join([marks + language, *lines, marks])


def _visible(text: str) -> str:
    """Without the characters that show nothing but act: controls, formats, surrogates, private use."""
    return "".join(char for char in text if unicodedata.category(char) not in {"Cc", "Cf", "Cs", "Co"})


def _word(run: str) -> str:
    """A run of ASCII characters: as it is, or its core in a code span between its punctuation."""
    if _PLAIN.fullmatch(run) and not _ACTIVE.search(run):
        return run
    core = run.lstrip(_OPENING).rstrip(_CLOSING)
    if not core or core.count("(") != core.count(")"):
        return _code(run)
    before, _, after = run.partition(core)
    return before + _code(core) + after


def _code(text: str) -> str:
    marks = "`" * (1 + max((len(run) for run in re.findall("`+", text)), default=0))
    space = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{marks}{space}{text}{space}{marks}"


def _link(title: str, url: str) -> str:
    """A link to a source; what is no plain web address is shown as text."""
    try:
        parts = urlsplit(url)
        fine = parts.scheme == "https" and bool(parts.hostname) and "@" not in parts.netloc
    except ValueError:
        fine = False
    text = prose(title) or prose(url)
    if not fine or any(unicodedata.category(char)[0] in "CZ" for char in url):
        return text
    return f"[{text}]({quote(url, safe=':/?#=&%+,;~._-')})"


class _Document:
    def __init__(self, report: Report, words: Words) -> None:
        self.report = report
        self.words = words
        self.fixes = {fix.id: fix for fix in reversed(report.fixes)}
        self.order = report.fix_plan.steps if report.fix_plan and len(report.fix_plan.steps) > 1 else ()

    def blocks(self) -> Iterator[str]:
        """The parts of the document, the most needed first."""
        yield self.verdict()
        if self.order:
            yield self.in_order()
        settled = [f for f in self.report.findings if f.severity != "warning" or f.confidence >= 0.5]
        shown = settled[:_FINDINGS]
        for number, finding in enumerate(shown, 1):
            yield self.finding(finding, number if len(shown) > 1 else 0)
        candidates = [f for f in self.report.findings if f not in settled]
        if candidates:
            yield self.candidates(candidates)
        if self.report.questions:
            yield self.questions(self.report.questions[: 1 if self.report.verdict == "unknown" else 2])
        if self.report.recommendations:
            yield self.listing("recommendations", advised(self.report, self.words))
        if self.report.not_checked:
            yield self.not_checked(self.report.not_checked[:_NOT_CHECKED])
        if self.report.notes:
            yield self.listing("note", self.report.notes)
        if self.report.sources:
            yield self.sources()

    def verdict(self) -> str:
        """The answer in one paragraph."""
        plan = self.report.plan
        lines = [f"**{self.words(verdict_key(self.report))}** {prose(self.report.summary)}"]
        if plan and plan.choices:
            lines += ["", f"- {self.label('choice')}{prose(self.words('list.and').join(plan.choices))}"]
        for reason in plan.reasons if plan else ():
            lines.append(f"- {self.reason(reason)}")
        return "\n".join(lines)

    def in_order(self) -> str:
        """The fixes that clear everything together, in the order in which they have to be done."""
        lines = [f"**{self.words('fix_plan.order')}**{self.words('fix.colon')}"]
        for number, step in enumerate(self.order, 1):
            lead = f"{number}. "
            title, *rest = "\n".join(self.fix(step.instance, label=lead)).splitlines()
            lines += ["", title, *(" " * len(lead) + line if line else "" for line in rest)]
        return "\n".join(lines)

    def finding(self, finding: Finding, number: int) -> str:
        """A finding with its argument and its fixes."""
        lead = f"{number}. " if number else ""
        lines = [f"### {lead}{prose(finding.title)}"]
        reasons = finding.because or ([Reason(text=finding.message)] if finding.message else [])
        lines += self.argument("because", reasons) + self.argument("ruled_out", finding.ruled_out or ())
        own = [self.fixes[i] for i in finding.fixes if i in self.fixes] or [
            fix for fix in self.report.fixes if fix.finding == finding.id
        ]
        planned = [n for n, step in enumerate(self.order, 1) if finding.id in (step.finding, *step.clears)]
        if planned:
            number_of = self.words("list.and").join(map(str, planned))
            lines += ["", self.label("cure") + self.words("fix_plan.step", number=number_of)]
        for fix in [fix for fix in own if fix.id not in {step.fix for step in self.order}][:_FIXES]:
            lines += ["", *self.fix(fix)]
        return "\n".join(lines).rstrip()

    def candidates(self, findings: Sequence[Finding]) -> str:
        """Causes that compete, with their shares."""
        lines = [f"- {prose(f.title)}{self.words('paren', text=f'{f.confidence * 100:.0f} %')}" for f in findings]
        return "\n".join([f"**{self.words('candidates.possible')}**{self.words('fix.colon')}", "", *lines])

    def argument(self, label: str, reasons: Iterable[Reason]) -> list[str]:
        """A label and the reasons as points."""
        points = [f"- {self.reason(reason)}" for reason in reasons]
        return ["", self.label(label).rstrip(), "", *points] if points else []

    def fix(self, fix: Fix, label: str = "") -> list[str]:
        """A fix with everything to copy."""
        steps = steps_here(fix.steps, self.report.platform)
        tool = next((step.tool for step in steps if step.tool), None)
        steps = [step for step in steps if step.tool in (None, tool)]
        flags = [self.words("fix.needs_root")] if any(step.command and step.needs_root for step in steps) else []
        if any(step.command and not step.reversible for step in steps):
            flags.append(self.words("fix.no_undo"))
        title = prose(fix.title) + (self.words("paren", text=self.words("list.and").join(flags)) if flags else "")
        lines = [(label or self.label(fix.kind)) + title]
        for step in steps:
            lines += self.step(step)
        lines += self.points("note", fix.notes or ()) + self.points("risk", fix.risks or ())
        if fix.verify:
            lines += ["", self.label("verify").rstrip(), *self.command(fix.verify, self.report.platform)]
        return lines

    def step(self, step: Step) -> list[str]:
        """What to do, as a sentence or as something to copy."""
        lines = ["", f"- {prose(step.text)}"] if step.text else []
        if step.command:
            platform = self.report.platform if step.platform == "any" else step.platform
            lines += self.command(step.command, platform)
        return lines

    def command(self, command: str, platform: str | None) -> list[str]:
        """A code block with an empty line before it; a monstrous command, which nobody would copy, is left out."""
        if len(command) > _MAX_COMMAND:
            return []
        return ["", fence(command, _SHELLS.get(platform or "", ""))]

    def questions(self, questions: Sequence[Question]) -> str:
        """What to tell next, each with the command that answers it as well."""
        lines = []
        for question in questions:
            answers = self.words("paren", text=" / ".join(map(prose, question.answers))) if question.answers else ""
            lines += ["", self.label("ask") + prose(question.text) + answers]
            if question.command:
                lines += ["", self.label("obtain").rstrip(), *self.command(question.command, self.report.platform)]
            if question.look_for:
                lines += ["", self.label("look_for") + prose(question.look_for)]
            if question.why:
                lines += ["", self.label("why") + prose(question.why)]
        return "\n".join(lines[1:])

    def not_checked(self, items: Sequence[NotChecked]) -> str:
        """What nobody looked at, in one line."""
        titles = self.words("list.stop").join(prose(item.title) for item in items)
        return f"{self.words('not_checked')}{self.words('fix.colon.inner')}{titles}{self.words('fix.stop')}"

    def sources(self) -> str:
        """The public sources, as links."""
        lines = []
        for source in self.report.sources:
            told, line = remark(source, self.words), _link(source.title, source.url)
            lines.append("- " + (self.words("source.with", text=line, remark=prose(told)) if told else line))
        return "\n".join([self.words("sources") + self.words("fix.colon"), "", *lines])

    def listing(self, key: str, items: Iterable[str]) -> str:
        """A heading line and points."""
        return "\n".join([self.words(key) + self.words("fix.colon"), "", *(f"- {prose(item)}" for item in items)])

    def points(self, label: str, items: Iterable[str]) -> list[str]:
        """Labelled points after an empty line."""
        lines = [f"- {self.label(label)}{prose(item)}" for item in items]
        return ["", *lines] if lines else []

    def reason(self, reason: Reason) -> str:
        """A sentence with the place where it was read."""
        where = _visible(clean(self.words.place(reason.where)))[-_MAX_PLACE:]
        return prose(reason.text) + (self.words("paren", text=_code(where)) if where else "")

    def label(self, name: str) -> str:
        """A label in bold with the colon behind it."""
        word = self.words(f"label.{name}")
        return f"**{word[:1].upper()}{word[1:]}**{self.words('fix.colon.inner')}"
