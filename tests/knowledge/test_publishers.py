"""The kind of a source follows from the longest beginning of its address that somebody named."""

from __future__ import annotations

import pytest
from gpurules.knowledge.loader import load_knowledge
from gpurules.knowledge.publishers import PRIMARY, Publishers

PUBLISHERS = Publishers(
    {
        "maker": {"kind": "vendor", "at": ["https://maker.example/"]},
        "code": {"kind": "source_code", "at": ["https://maker.example/code/blob/"]},
        "threads": {"kind": "report", "at": ["https://maker.example/code/issues/88", "https://hub.example/code"]},
    }
)


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("https://maker.example/", "vendor"),
        ("https://maker.example/docs/page.html", "vendor"),
        ("https://maker.example/code/blob/main/a.py", "source_code"),
        ("https://maker.example/code/issues/88", "report"),
        ("https://maker.example/code/issues/88#comment", "report"),
        ("https://maker.example/code/issues/889", "vendor"),
        ("https://hub.example/code#installation", "report"),
        ("https://hub.example/codes", None),
        ("https://maker.example.org/", None),
        ("https://maker.example", None),
    ],
)
def test_kind(url: str, kind: str | None) -> None:
    assert PUBLISHERS.kind(url) == kind


def test_every_cited_page_has_a_kind_and_every_finding_a_primary_page() -> None:
    knowledge = load_knowledge()
    assert [url for url, page in knowledge.pages.items() if "kind" not in page] == []
    resting = {
        name: [s for s in rule["sources"] if s["kind"] in PRIMARY and s["opened"]]
        for name, rule in knowledge.rules.items()
        if any(c.get("evidence") in ("decisive", "strong", "weak") for c in rule["conclude"])
    }
    assert [name for name, pages in resting.items() if not pages] == []
