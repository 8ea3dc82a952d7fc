"""Native against a naive evaluator, CLIPS and durable-rules on random stratified rule bases."""

from __future__ import annotations

from collections import defaultdict

import pytest
from gpurules.engine.durable import DurableEngine
from gpurules.engine.native import RuleBase
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from . import clips_oracle, generate, reference
from .harness import unnumbered, view, worker

SEEDS = st.integers(0, 2**40)
QUIET = settings(deadline=None, suppress_health_check=list(HealthCheck), database=None)


def check_reference(seed: int) -> None:
    rules, static, rows = generate.case(seed)
    assert unnumbered(RuleBase(rules, static).run(rows)) == reference.evaluate(rules, [*static, *rows])


def check_clips(seed: int) -> None:
    rules, static, rows = generate.case(seed)
    expected = clips_oracle.evaluate(rules, [*static, *rows], defaultdict(lambda: tuple(generate.FIELDS)))
    assert unnumbered(RuleBase(rules, static).run(rows)) == expected


def check_durable(seed: int) -> None:
    shared = worker()
    if shared is None:
        pytest.skip("durable-rules is not available here")
    rules, static, rows = generate.case(seed)
    durable = DurableEngine(rules, static, worker=shared)
    assert view(durable.run(rows)) == view(RuleBase(rules, static).run(rows))


@settings(QUIET, max_examples=300)
@given(SEEDS)
def test_native_agrees_with_the_naive_evaluator(seed: int) -> None:
    check_reference(seed)


@settings(QUIET, max_examples=300)
@given(SEEDS)
def test_native_agrees_with_clips(seed: int) -> None:
    check_clips(seed)


@settings(QUIET, max_examples=300)
@given(SEEDS)
def test_durable_agrees_with_native(seed: int) -> None:
    check_durable(seed)


@pytest.mark.slow
@pytest.mark.parametrize("check", [check_reference, check_clips, check_durable])
def test_engines_agree_on_5000_rule_bases(check) -> None:  # type: ignore[no-untyped-def]
    for seed in range(5000):
        check(seed)


@settings(QUIET, max_examples=60)
@given(SEEDS, st.randoms(use_true_random=False))
def test_nothing_depends_on_the_order_of_rules_or_rows(seed: int, random) -> None:  # type: ignore[no-untyped-def]
    rules, static, rows = generate.case(seed)
    expected = view(RuleBase(rules, static).run(rows))
    for listed in (rules, static, rows):
        random.shuffle(listed)
    assert view(RuleBase(rules, static).run(rows)) == expected


@settings(QUIET, max_examples=60)
@given(SEEDS, SEEDS)
def test_one_rule_base_serves_many_sessions(seed: int, other: int) -> None:
    rules, static, rows = generate.case(seed)
    others = generate.case(other)[2]
    base = RuleBase(rules, static)
    first = view(base.run(rows))
    base.run(others)
    assert view(base.run(rows)) == first
