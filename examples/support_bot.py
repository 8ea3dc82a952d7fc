"""A support bot: reads an issue, answers in Markdown with the finding, the fix, why, and what to tell next.

    python support_bot.py issue.json
    gh issue view 12 --json title,body | python support_bot.py -

The issue is JSON with `title` and `body`, as forges send it; `lang` (en or zh) chooses the language of the answer, else
a "Language" section of an issue form, else English. The answer goes to stdout and is safe to post: what the issue says
comes back without private details and cannot mention anybody, link to other issues or carry HTML.

Needs gpurules and the standard library only. Status: 0 answered, 2 the issue cannot be read.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import gpurules

MAX_BODY = 256 * 1024
_FENCE = re.compile(r"^\s{0,3}(?:`{3,}|~{3,})")
_LANGUAGE_SECTION = re.compile(r"^#{1,4} *(?:language|语言)[^\n]*\n+([^\n]+)", re.IGNORECASE | re.MULTILINE)
_NOTE = {
    "en": "This answer was worked out by rules from what the issue says; it may be incomplete where the issue is.",
    "zh": "此答复由规则根据本问题的内容推断得出；内容不全时，答复也可能不全。",
}
_REFUSED = {
    "en": "The issue could not be read; please paste the output as text.",
    "zh": "无法读取此问题的内容，请以文本形式粘贴输出。",
}


def answer(issue: Mapping[str, Any]) -> str:
    """The Markdown to post under an issue."""
    title, body = str(issue.get("title") or ""), str(issue.get("body") or "")[:MAX_BODY]
    lang = language(issue, body)
    try:
        report = gpurules.diagnose(reports={"issue": body}, question=f"{title}\n{prose(body)}", lang=lang)
    except gpurules.GpurulesError:
        return _REFUSED[lang] + "\n"
    return f"{report.to_markdown()}\n---\n\n{_NOTE[lang]}\n"


def language(issue: Mapping[str, Any], body: str) -> Any:
    """The language to answer in: the issue's option, the form's section, or English."""
    section = _LANGUAGE_SECTION.search(body)
    chosen = str(issue.get("lang") or (section[1] if section else "en")).strip().lower()
    return "zh" if chosen.startswith(("zh", "中", "简", "chinese")) else "en"


def prose(body: str) -> str:
    """What the author wrote, without what was pasted in code blocks."""
    kept: list[str] = []
    inside = False
    for line in body.splitlines():
        if _FENCE.match(line):
            inside = not inside
        elif not inside:
            kept.append(line)
    return "\n".join(kept)[:4000]


def main() -> int:
    """Read the issue, print the answer."""
    parser = argparse.ArgumentParser(description="Answer an issue about GPUs and PyTorch.")
    parser.add_argument("issue", help="a JSON file with title and body; - is stdin")
    parser.add_argument("--lang", choices=["en", "zh"], help="the language of the answer")
    options = parser.parse_args()
    try:
        data = sys.stdin.buffer.read() if options.issue == "-" else Path(options.issue).read_bytes()
        issue = json.loads(data)
        if not isinstance(issue, dict):
            raise ValueError("not an object")
    except (OSError, ValueError, RecursionError) as error:
        print(f"support_bot: {options.issue}: {error}", file=sys.stderr)
        return 2
    sys.stdout.buffer.write(answer({**issue, **({"lang": options.lang} if options.lang else {})}).encode("utf-8"))
    return 0


if __name__ == "__main__":
    sys.exit(main())
