"""The rules as pages for people; `python -m gpurules.knowledge.pages docs/rules` writes them anew.

May live here: turning rule files into Markdown, a page an area and one that lists them. Must not: anything that the
rules do not say.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from .loader import Knowledge, load_knowledge

INDEX_PAGE = "README.md"
_HEAD = "<!-- Made from the rule files by `python -m gpurules.knowledge.pages docs/rules`; do not edit. -->"


def pages(knowledge: Knowledge) -> dict[str, str]:
    """The content of every page by file name."""
    areas: dict[str, list[Mapping[str, Any]]] = {}
    for rule in sorted(knowledge.rules.values(), key=lambda r: (r["area"], r["id"])):
        areas.setdefault(rule["area"], []).append(rule)
    made = {f"{area}.md": _joined(_area(area, rules)) for area, rules in areas.items()}
    return {INDEX_PAGE: _joined(_index(areas)), **made}


def stale(knowledge: Knowledge, folder: Path) -> list[str]:
    """The names of pages in a folder that are not as the rules are: changed, missing or left over."""
    wanted = pages(knowledge)
    there = {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.md")}
    return sorted(name for name in {*wanted, *there} if wanted.get(name) != there.get(name))


def _joined(lines: Iterator[str]) -> str:
    return "\n".join(lines) + "\n"


def _index(areas: Mapping[str, list[Mapping[str, Any]]]) -> Iterator[str]:
    yield from (_HEAD, "", "# Rules", "")
    yield f"{sum(map(len, areas.values()))} rules in {len(areas)} areas; one shows with `gpurules rules show ID`."
    yield from ("", "| area | rules |", "| --- | --- |")
    yield from (f"| [{area}]({area}.md) | {len(rules)} |" for area, rules in areas.items())


def _area(area: str, rules: list[Mapping[str, Any]]) -> Iterator[str]:
    yield from (_HEAD, "", f"# Rules: {area}")
    for rule in rules:
        yield from ("", f"## {rule['id']}", "", _text(rule["title"]["en"]), "", _text(rule["title"]["zh"]), "")
        marks = [rule.get("severity"), rule["status"] if rule["status"] != "stable" else None]
        marks.append("assumed until something is known" if rule.get("assume") else None)
        told = ", ".join(m for m in marks if m)
        yield f"- concludes: {'; '.join(_conclusion(c) for c in rule['conclude'])}" + (f" ({told})" if told else "")
        yield f"- when: `{_inline(rule['when'])}`"
        yield f"- because: {_text(rule['because']['en'])} / {_text(rule['because']['zh'])}"
        yield from (f"- false alarm: {_text(a['en'])} / {_text(a['zh'])}" for a in rule.get("false_alarms", ()))
        if rule.get("guidance"):
            yield f"- guidance: {', '.join(rule['guidance'])}"
        yield from (f"- source: [{_text(s['title'])}](<{s['url']}>), {_standing(s)}" for s in rule["sources"])


def _standing(source: Mapping[str, Any]) -> str:
    """What kind of source it is and when it was opened, or that it was only named."""
    return f"{source.get('kind', 'unknown')}, {source['retrieved'] if source['opened'] else 'not opened'}"


def _conclusion(conclusion: Mapping[str, Any]) -> str:
    if "cause" in conclusion:
        return f"`{conclusion['cause']}` ({conclusion['evidence']})"
    return f"`{_inline(conclusion['fact'])}`"


def _inline(value: Any) -> str:
    """A condition on one line, near to how the file has it."""
    return json.dumps(value, ensure_ascii=False).replace("`", "'")


def _text(text: str) -> str:
    """Text in which Markdown sees no tags or emphasis of its own."""
    for mark in ("\\", "<", "_", "*", "[", "]", "|"):
        text = text.replace(mark, "\\" + mark)
    return " ".join(text.split())


def main(folder: str) -> None:
    """Write the pages into a folder and remove those of areas that are gone."""
    target = Path(folder)
    target.mkdir(parents=True, exist_ok=True)
    made = pages(load_knowledge())
    for name, text in made.items():
        (target / name).write_text(text, encoding="utf-8")
    for path in target.glob("*.md"):
        if path.name not in made:
            path.unlink()


if __name__ == "__main__":
    main(sys.argv[1])
