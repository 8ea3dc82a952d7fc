"""The text form of a report: the verdict and the one thing to do, then findings, then what was not looked at.

May live here: the order and layout of what a report holds. Must not: wording (knowledge/messages.yaml), reasoning.
Every string of the report goes through `clean` before it is shown: it may come from a pasted text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal

from .citing import with_remark
from .drawing import LABEL, Drawing, actions, advised, is_answer, is_posix, mirror_steps, shown_in, verdict_key
from .layout import Look, clean, command_lines, display_width, fit, hang, joined, pad, paint, wrap
from .messages import Words
from .model import (
    Checked,
    FactView,
    Finding,
    Fix,
    Lang,
    NotChecked,
    Plan,
    Question,
    Reason,
    Recognised,
    Report,
    Source,
    Step,
)

Detail = Literal["verdict", "normal", "all"]

_MARKS = {"error": "✗", "warning": "!", "info": "·"}
_VERDICT_STYLES = {"ok": "ok", "problems": "error", "unknown": "warning"}
_FIXES = 3  # fixes shown of one finding without -v
_NOT_CHECKED = 4  # lines of what was not checked, without -v


def render_text(report: Report, *, lang: Lang = "en", look: Look | None = None, detail: Detail = "normal") -> str:
    """The report as text that ends in a newline. detail: only the verdict block, the usual, or all evidence."""
    look = look or Look()
    drawing = _ReportDrawing(shown_in(report, look.encoding), Words(lang), look, detail)
    return fit(joined(drawing.lines()), look.encoding)


class _ReportDrawing(Drawing):
    def __init__(self, report: Report, words: Words, look: Look, detail: Detail) -> None:
        super().__init__(words, look, report.platform, verbose=detail == "all")
        self.report = report
        self.detail = detail
        self.first_fix = _headline_fix(report)
        self.order = report.fix_plan.steps if report.fix_plan and len(report.fix_plan.steps) > 1 else ()
        self.candidates = [f for f in report.findings if f.severity == "warning" and f.confidence < 0.5]
        self.settled = [f for f in report.findings if f not in self.candidates]
        self.full = list(report.findings) if self.verbose else self.settled

    def lines(self) -> list[str]:
        blocks = [self.verdict()]
        if self.detail != "verdict":
            number = {id(f): i for i, f in enumerate(self.report.findings, 1)} if len(self.full) > 1 else {}
            blocks += [
                self.plan(self.report.plan) if self.report.plan else [],
                self.counts(),
                *(self.finding(f, number.get(id(f), 0)) for f in self.full),
                self.unsettled(),
                self.listing("recommendations", advised(self.report, self.words)),
                self.questions(),
                self.footer(),
            ]
            if self.verbose:
                blocks += [self.passed(), self.sources()]
        return [line for i, block in enumerate(b for b in blocks if b) for line in ([""] if i else []) + block]

    # --- the verdict block ---

    def verdict(self) -> list[str]:
        words, report, fix = self.words, self.report, self.first_fix
        label = self.verdict_label()
        commands = self.headline_commands(fix)
        sentence = clean(report.summary)
        if self.order:
            sentence = words.joined(sentence, words("fix_plan.order") + words("fix.colon"))
        elif fix and (report.verdict == "problems" or commands):
            ending = words("fix.colon" if commands else "fix.stop")
            sentence = words.joined(sentence, clean(fix.title).rstrip(".:。：") + ending)
        more: list[str] = []
        if report.verdict == "ok" and report.checked and not report.findings:
            more += wrap(self.checked_line(report.checked), self.width - self.indent(label))
        more += self.in_order(self.width - self.indent(label)) if self.order else map(self.command, commands)
        if report.verdict == "unknown":
            more += self.candidate_lines(self.indent(label))
        return self.headline(label, _VERDICT_STYLES[report.verdict], sentence, more)

    def in_order(self, room: int) -> list[str]:
        """The steps that clear everything together, each with its command."""
        lines: list[str] = []
        for number, step in enumerate(self.order, 1):
            lead = f"{number}. "
            lines += hang(wrap(clean(step.instance.title), room - len(lead)), lead, len(lead))
            how = self.steps(step.instance)
            lines += [" " * len(lead) + line for s in how for line in self.how(s, room - len(lead))]
        return lines

    def how(self, step: Step, room: int) -> list[str]:
        """The command of a step made to stand out, or the sentence where it has none."""
        lines = self.step_lines(step, room, plain=True)
        return [self.command(line) for line in lines] if step.command else lines

    def verdict_label(self) -> str:
        return self.words(verdict_key(self.report))

    def headline_commands(self, fix: Fix | None) -> list[str]:
        if not fix or self.order or not (self.report.verdict == "problems" or is_answer(self.report)):
            return []
        room = self.width - self.indent(self.verdict_label())
        steps = [step for step in self.steps(fix) if step.command]
        return [line for step in steps for line in self.step_lines(step, room, plain=True)]

    def checked_line(self, checked: Checked) -> str:
        rules = self.words.count("count.rule", checked.rules)
        domains = self.words.count("headline.domain", len(checked.domains))
        return self.words("headline.checked", rules=rules, domains=domains)

    def candidate_lines(self, outer: int) -> list[str]:
        """The competing causes, and what would tell them apart."""
        words = self.words
        labels = [words(f"label.{name}") for name in ("ask", "obtain", "look_for", "why", "check")]
        labels += [words("candidates.likely"), words("candidates.then")]
        indent = max(map(display_width, labels)) + 2
        room = self.width - outer - indent
        lines: list[str] = []
        best, others = self.candidates[:1], self.candidates[1:]
        for finding in best:
            said = self.share(finding)
            if finding.because:
                said += words("fix.colon.inner") + clean(finding.because[0].text)
            lines += hang(wrap(said, room), words("candidates.likely"), indent)
        if others:
            shown = words("list.dot").join(self.share(f) for f in others[: 8 if self.verbose else 4])
            lines += hang(wrap(shown, room), words("candidates.then"), indent)
        asked = self.report.questions[:1]
        for question in asked:
            lines += self.question(question, room, indent)
        return lines + self.candidate_checks(room, indent, {question.command for question in asked})

    def candidate_checks(self, room: int, indent: int, named: set[str | None]) -> list[str]:
        """Checks that would settle the causes, beyond those commands already named."""
        fixes = [fix for finding in self.candidates for fix in _fixes_of(finding, self.report)]
        checks = {step.command: step for fix in fixes if fix.kind == "check" for step in self.steps(fix)}
        lines: list[str] = []
        for step in [step for command, step in checks.items() if command not in named][:2]:
            lines += hang(self.step_lines(step, room), self.words("label.check"), indent)
        return lines

    def unsettled(self) -> list[str]:
        """Beside a settled problem: causes that are merely possible."""
        return self.listing("candidates.possible", map(self.share, self.candidates if self.settled else []))

    def share(self, finding: Finding) -> str:
        return clean(finding.title) + self.words("paren", text=f"{finding.confidence * 100:.0f} %")

    def question(self, question: Question, room: int, indent: int) -> list[str]:
        words = self.words
        text = clean(question.text)
        if question.answers:
            text += words("paren", text=" / ".join(map(clean, question.answers)))
        lines = hang(wrap(text, room), words("label.ask"), indent)
        if question.command:
            shown = command_lines(question.command, room, posix=is_posix(self.platform))
            lines += hang([self.command(line) for line in shown], words("label.obtain"), indent)
        if question.look_for:
            lines += hang(wrap(clean(question.look_for), room), words("label.look_for"), indent)
        if question.why:
            lines += hang(wrap(clean(question.why), room), words("label.why"), indent)
        return lines

    # --- what was read ---

    def counts(self) -> list[str]:
        words = self.words
        parts = []
        if self.report.verdict == "problems":
            tally = {level: sum(f.severity == level for f in self.settled) for level in ("error", "warning")}
            parts = [words.count(f"count.{level}", number) for level, number in tally.items()]
        if self.report.recognised:
            total = words.count("count.fact", sum(r.facts for r in self.report.recognised))
            sources = words("list.and").join(self.origin(r) for r in self.report.recognised)
            parts.append(words("read.from", facts=total, sources=sources))
        text = words("list.dot").join(parts)
        return wrap(text[:1].upper() + text[1:], self.width)

    def origin(self, source: Recognised) -> str:
        words = self.words
        name = words("read.this_machine") if source.source == "probe" else clean(source.source)
        seen = [clean(layout) for layout in source.layouts]
        if not seen and not source.facts:
            seen = [words("read.nothing")]
        if source.truncated:
            seen.append(words("read.truncated"))
        return name + (words("paren", text=words("list.and").join(seen)) if seen else "")

    # --- findings and fixes ---

    def finding(self, finding: Finding, number: int) -> list[str]:
        mark = "✓" if finding.severity == "info" and finding.cause.startswith("none_") else _MARKS[finding.severity]
        style = "ok" if mark == "✓" else finding.severity
        lead = f"{mark} {number}. " if number else f"{mark} "
        indent = display_width(lead)
        rule = f"[{clean(finding.rule)}]" if finding.rule else ""
        title = wrap(clean(finding.title), self.width - indent)
        last = title[-1] if title else ""
        if rule and indent + display_width(last) + 3 + display_width(rule) <= self.width:
            title = [*title[:-1], last + "   " + paint(rule, "dim", self.look)]
        elif rule:
            title.append(paint(rule, "dim", self.look))
        first, *rest = title
        lines = [paint(lead.rstrip(), style, self.look) + " " + first, *(" " * indent + line for line in rest)]
        return lines + self.argument(finding) + self.fixes(finding)

    def argument(self, finding: Finding) -> list[str]:
        lines: list[str] = []
        if finding.because:
            lines += self.reasons("because", finding.because)
            if self.verbose and finding.message:
                lines += self.labelled("message", [finding.message])
        elif finding.message and finding.message != finding.title:
            lines += self.labelled("because", [finding.message])
        if self.verbose:
            facts = {fact.id: fact for fact in self.report.facts}
            shown = [_fact_reason(facts[i]) for i in finding.evidence if i in facts]
            lines += self.reasons("evidence", shown)
        return lines

    def fixes(self, finding: Finding) -> list[str]:
        mine = _fixes_of(finding, self.report)
        lines = self.in_plan(finding)
        if lines and not self.verbose:
            planned = {step.fix for step in self.order}
            mine = [fix for fix in mine if fix.id not in planned]
        shown = mine if self.verbose else mine[:_FIXES]
        lines += [line for fix in shown for line in self.fix(fix)]
        if len(mine) > len(shown):
            lines += self.body([self.words.count("count.more", len(mine) - len(shown))])
        if finding.ruled_out:
            lines += self.reasons("ruled_out", finding.ruled_out)
        if self.verbose:
            lines += self.labelled("false_alarm", finding.false_alarms or ())
            lines += self.labelled("source", self.cited(finding.sources or ()))
        return lines

    def in_plan(self, finding: Finding) -> list[str]:
        """Which steps of the plan are for a finding."""
        words = self.words
        mine = [str(n) for n, step in enumerate(self.order, 1) if finding.id in (step.finding, *step.clears)]
        said = words("fix_plan.step", number=words("list.and").join(mine))
        return self.labelled("cure", [said]) if mine else []

    def fix(self, fix: Fix) -> list[str]:
        words = self.words
        title = clean(fix.title)
        above = fix is self.first_fix and bool(self.headline_commands(fix))
        if above:
            title = words("fix.above")
        flags = self.flags(fix)
        if flags:
            title += words("paren", text=words("list.and").join(flags))
        lines = self.labelled(fix.kind, [title])
        steps = self.steps(fix)
        many = len(steps) > 1
        for i, step in enumerate(steps, 1):
            if above and step.command and not step.text:
                continue
            bare = step.model_copy(update={"command": None}) if above else step
            lines += self.body(self.step_lines(bare, self.width - 2 - LABEL, number=i if many else 0))
        if self.verbose:
            lines += self.other_tools(fix)
        if fix.mirror_url:
            lines += self.labelled("mirror", [fix.mirror_url])
            lines += [
                line for step in mirror_steps(fix) for line in self.body(self.step_lines(step, self.width - 2 - LABEL))
            ]
        lines += self.labelled("note", fix.notes or ())
        lines += self.labelled("risk", fix.risks or ())
        lines += self.checked(fix)
        if fix.verify:
            lines += self.commands("verify", fix.verify)
        if fix.undo and self.verbose:
            lines += self.commands("undo", fix.undo)
        return lines

    def flags(self, fix: Fix) -> list[str]:
        steps = [step for step in self.steps(fix) if step.command]
        flags = [self.words("fix.needs_root")] if any(step.needs_root for step in steps) else []
        if any(not step.reversible for step in steps):
            flags.append(self.words("fix.no_undo"))
        return flags

    def checked(self, fix: Fix) -> list[str]:
        if fix.verified == "not_applicable":
            return []
        said = self.words(f"fix.checked.{fix.verified}")
        if fix.verified_note:
            said += self.words("fix.colon.inner") + clean(fix.verified_note)
        return self.labelled("checked", [said])

    def steps(self, fix: Fix) -> list[Step]:
        return actions(fix, self.platform)

    def other_tools(self, fix: Fix) -> list[str]:
        used = self.steps(fix)
        used += mirror_steps(fix)
        others = [step for step in fix.steps if self.platform in (None, step.platform) or step.platform == "any"]
        room = self.width - 2 - LABEL
        lines = [line for step in others if step not in used for line in self.step_lines(step, room)]
        return self.labelled_raw(self.words("answer.also"), lines) if lines else []

    def step_lines(self, step: Step, room: int, number: int = 0, plain: bool = False) -> list[str]:
        lead = f"{number}. " if number and not plain else ""
        space = " " * display_width(lead)
        lines = wrap(clean(step.text), room - len(lead)) if step.text and not (plain and step.command) else []
        if step.command:
            posix = is_posix(self.platform, step.platform)
            shown = command_lines(step.command, room - len(lead), posix=posix)
            lines += shown if plain else [self.command(line) for line in shown]
        return [(lead if i == 0 else space) + line for i, line in enumerate(lines)]

    # --- the rest ---

    def plan(self, plan: Plan) -> list[str]:
        words = self.words
        lines: list[str] = []
        if plan.choices:
            lines += self.labelled("choice", [words("list.and").join(plan.choices)])
        names = list(dict.fromkeys([*plan.numbers, *plan.ranges]))
        room = self.width - 2 - LABEL
        table = [(_quantity(words, name), _value(plan, name, words)) for name in names]
        widest = max((display_width(label) for label, _ in table), default=0)
        rows = [f"{pad(label, widest)}  {value}" for label, value in table]
        if any(display_width(row) > room for row in rows):
            rows = [line for label, value in table for line in wrap(label + words("fix.colon.inner") + value, room)]
        if rows:
            lines += self.labelled_raw(words("label.numbers"), rows)
        return lines + self.reasons("because", plan.reasons)

    def questions(self) -> list[str]:
        asked = self.report.questions[1:] if self.report.verdict == "unknown" else self.report.questions
        shown = asked if self.verbose else asked[:2]
        lines: list[str] = []
        for question in shown:
            text = clean(question.text)
            if question.answers:
                text += self.words("paren", text=" / ".join(map(clean, question.answers)))
            lines += hang(wrap(text, self.width - 4), "  - ", 4)
            if question.command:
                commands = command_lines(question.command, self.width - 6, posix=is_posix(self.platform))
                lines += ["      " + self.command(line) for line in commands]
            if question.why:
                lines += hang(wrap(clean(question.why), self.width - 6), "      ", 6)
        return [self.words("questions") + self.words("fix.colon"), *lines] if lines else []

    def footer(self) -> list[str]:
        words = self.words
        lines = self.paragraph("fix_plan.left", self.unfixed())
        lines += self.paragraph("assumed", self.report.assumptions)
        lines += self.not_checked(self.report.not_checked)
        left = [item for r in self.report.recognised for item in r.not_understood or ()]
        lines += self.paragraph("not_understood", left)
        for note in self.report.notes or ():
            lines += self.paragraph("note", [note])
        if self.report.findings:
            lines += wrap(words("details", target=1), self.width)
        return lines

    def unfixed(self) -> list[str]:
        """The findings that no fix clears, each with the reason."""
        plan = self.report.fix_plan
        titles = {f.id: f.title for f in self.report.findings}
        return [
            clean(titles.get(item.finding, item.finding)) + self.words("paren", text=clean(item.reason))
            for item in (plan.left if plan else ())
        ]

    def not_checked(self, items: Sequence[NotChecked]) -> list[str]:
        """One sentence that names all, and a line for each that can be obtained."""
        words = self.words
        if not items:
            return []
        by_reason: dict[str, list[str]] = {}
        for item in items:
            by_reason.setdefault(clean(item.reason or ""), []).append(clean(item.title))
        groups = [
            words("list.and").join(titles) + (words("paren", text=reason) if reason else "")
            for reason, titles in by_reason.items()
        ]
        lines = self.paragraph("not_checked", [words("list.stop").join(groups)])
        obtainable = [item for item in items if item.obtain]
        # Where the cause is found, how to look further is for those who ask for it.
        usual = obtainable[:_NOT_CHECKED] if self.report.verdict == "unknown" else []
        shown = obtainable if self.verbose else usual
        indent = min(max((display_width(clean(i.title)) for i in shown), default=0), 28) + 4
        for item in shown:
            lines += self.obtain(item, indent)
        if shown and len(obtainable) > len(shown):
            lines.append("  " + words.count("count.more", len(obtainable) - len(shown)))
        return lines

    def obtain(self, item: NotChecked, indent: int) -> list[str]:
        title = clean(item.title)
        said = clean(item.obtain or "")
        if display_width(title) + 4 > indent or self.width - indent < 30:
            return ["  " + title, *("    " + line for line in wrap(said, self.width - 4))]
        return hang(wrap(said, self.width - indent), "  " + title, indent)

    def passed(self) -> list[str]:
        lines = [
            line
            for passed in self.report.passed or ()
            for line in hang(wrap(clean(passed.text), self.width - 4), "  ✓ ", 4)
        ]
        return [self.words("passed") + self.words("fix.colon"), *lines] if lines else []

    def sources(self) -> list[str]:
        lines = [
            line
            for source in self.report.sources
            for line in hang(wrap(clean(self.told(source)), self.width - 4), "  - ", 4)
        ]
        return [self.words("sources") + self.words("fix.colon"), *lines] if lines else []

    def told(self, source: Source) -> str:
        return with_remark(f"{source.title} {source.url}", source, self.words)

    def cited(self, urls: Iterable[str]) -> list[str]:
        titles = {source.url: source.title for source in self.report.sources}
        return [titles.get(url, url) for url in urls]


def _headline_fix(report: Report) -> Fix | None:
    """The best fix of the first finding: the one thing to do."""
    if not report.findings:
        return None
    return next(iter(_fixes_of(report.findings[0], report)), None)


def _fixes_of(finding: Finding, report: Report) -> list[Fix]:
    # Two findings may have fixes of one id that differ in their values.
    by_id = {fix.id: fix for fix in sorted(report.fixes, key=lambda fix: fix.finding == finding.id)}
    listed = [by_id[i] for i in finding.fixes if i in by_id]
    return listed or [fix for fix in report.fixes if fix.finding == finding.id]


def _fact_reason(fact: FactView) -> Reason:
    values = ", ".join(f"{name}={value}" for name, value in fact.fields.items())
    first = fact.provenance[0] if fact.provenance else None
    where = f"{first.source}:{first.line}" if first and first.line is not None else (first.source if first else None)
    return Reason(text=f"{fact.type}({values})", where=where)


_UNITS = {"gib": "GiB", "mib": "MiB", "w": "W", "pct": "%", "gbs": "GB/s"}


def _quantity(words: Words, name: str) -> str:
    stem = "_".join(part for part in name.split("_") if part not in _UNITS)
    return words.named(f"number.{name}", clean(stem.replace("_", " ")))


def _value(plan: Plan, name: str, words: Words) -> str:
    unit = next((_UNITS[part] for part in reversed(name.split("_")) if part in _UNITS), "")
    low_high = plan.ranges.get(name)
    span = f"{_number(low_high[0])}–{_number(low_high[1])}" if low_high else ""
    if name not in plan.numbers:
        return f"{span} {unit}".rstrip()
    value = f"{_number(plan.numbers[name])} {unit}".rstrip()
    return value + (words("paren", text=span) if span else "")


def _number(value: float) -> str:
    return f"{value:g}" if isinstance(value, int) or float(value).is_integer() else f"{value:.1f}"
