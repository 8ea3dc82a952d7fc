"""Versions as ordered integers: order, parts, limits."""

from __future__ import annotations

import itertools

import pytest
from gpurules.knowledge.versions import parse_version, version_text
from hypothesis import given
from hypothesis import strategies as st
from packaging.version import Version

# Rising; each pair is checked.
LADDER = [
    "0.4.1",
    "1.13.0",
    "1.13.1",
    "2.0.0.dev20230101",
    "2.0.0a0",
    "2.0.0b1",
    "2.0.0rc1",
    "2.0.0",
    "2.0.0.post1",
    "2.0.1",
    "2.7.0",
    "2.10.0",
    "12.8",
    "12.9",
    "12.9u1",
    "12.9.1",
    "12.10",
    "535.104.05",
    "535.104.12",
    "570.86.10",
    "570.133.07",
]


def order(text: str) -> int:
    parts = parse_version(text)
    assert parts is not None, text
    return parts.order


@pytest.mark.parametrize(("low", "high"), list(itertools.combinations(LADDER, 2)))
def test_the_ladder_rises(low: str, high: str) -> None:
    assert order(low) < order(high)


@pytest.mark.parametrize(
    ("text", "public", "local", "release", "major"),
    [
        ("2.7.0.dev20250310+cu124", "2.7.0.dev20250310", "cu124", "2.7", 2),
        ("2.6.0+cu124", "2.6.0", "cu124", "2.6", 2),
        ("580.95.05", "580.95.05", "", "580.95", 580),
        ("12", "12", "", "12.0", 12),
        ("v3.12.1", "3.12.1", "", "3.12", 3),
        (" ==2.4 ", "2.4", "", "2.4", 2),
        ("10.0.26200.1", "10.0.26200.1", "", "10.0", 10),
        ("6.8.0-49-generic", "6.8.0-49-generic", "", "6.8", 6),
        ("2.6.0+rocm6.2.4", "2.6.0", "rocm6.2.4", "2.6", 2),
    ],
)
def test_parts(text: str, public: str, local: str, release: str, major: int) -> None:
    parts = parse_version(text)
    assert parts is not None
    assert (parts.public, parts.local, parts.release, parts.major) == (public, local, release, major)
    assert parts.release_order == order(release)


@pytest.mark.parametrize("text", ["", "abc", "cu124", "-1.2", "+cu118", ".5", "None", "N/A"])
def test_no_version(text: str) -> None:
    assert parse_version(text) is None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("2.6.0+cu124", "2.6.0+cpu"),
        ("12.4", "12.4.0"),
        ("12", "12.0.0.0"),
        ("v1.2", "1.2"),
        ("535.104.05", "535.104.5"),
    ],
)
def test_what_does_not_count(one: str, other: str) -> None:
    assert order(one) == order(other)


def test_large_numbers_stay_exact_in_every_engine() -> None:
    assert order("999999999.999999999.999999999.999999999") < 2**53
    assert order("10.0.26200") > order("10.0.19045")
    assert order("20250310") > order("4000")


NUMBERS = st.lists(st.integers(0, 500), min_size=1, max_size=4).map(lambda n: ".".join(map(str, n)))


@given(NUMBERS, NUMBERS)
def test_as_python_packaging_orders_releases(one: str, other: str) -> None:
    assert (order(one) < order(other)) == (Version(one) < Version(other))
    assert (order(one) == order(other)) == (Version(one) == Version(other))


@given(NUMBERS)
def test_the_text_of_an_order(text: str) -> None:
    assert order(version_text(order(text))) == order(text)
    assert Version(version_text(order(text))) == Version(text)
