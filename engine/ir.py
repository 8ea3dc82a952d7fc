"""The rule intermediate representation (IR): the one specified semantics that every engine implements.

May live here: the data classes of the IR and their documentation. Must not: YAML, GPUs, evaluation.

Rows.    A row is (type, {field: str | int | bool}). A missing field is *unknown*. Types and fields are plain
         identifiers; integers stay below 2**53; `True`, `1` and "1" are three different values.
Tests.   A positive pattern matches a row when every test and join is definitely true. A test on an unknown field is
         never true, and its negation is not true either (`ne` and `not_in` need the field).
         Operators: eq ne lt le gt ge (ordering on integers only), in / not_in (value is a tuple), known (the field is
         there; value ignored).
Joins.   `Join(field, op, alias, other)`: this row's `field` against field `other` of the row bound to an *earlier
         positive* pattern. Only eq ne lt le gt ge.
Not.     A negated pattern holds when every row of its type is *definitely* excluded, that is when at least one of its
         tests or joins is definitely false for it. A row that matches, or that could match if its unknown fields were
         known, blocks it (Kleene's three-valued logic). Negated patterns bind nothing and may be joined to any positive
         pattern of the rule. Negation is stratified.
Distinct Two positive patterns of the same type in one rule match two different rows.
Result.  Forward chaining to the fixpoint, semi-naive; every (rule, rows of the positive patterns in order) that
         matches is kept as a justification of each of its conclusions, also when the row was known before.
Identity A row is its content: deriving an existing row adds a justification, not a row.
Order.   Nothing depends on the order of rules, rows or patterns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from ..facts import Scalar

Row = tuple[str, Mapping[str, Scalar]]


@dataclass(frozen=True, slots=True)
class Test:
    """`field op value`; value is a tuple for in / not_in and ignored for known."""

    field: str
    op: str
    value: Scalar | tuple[Scalar, ...] = True


@dataclass(frozen=True, slots=True)
class Join:
    """`field op alias.other`, alias naming an earlier positive pattern (any positive one where this is negated)."""

    field: str
    op: str
    alias: str
    other: str


@dataclass(frozen=True, slots=True)
class Pattern:
    """A condition on one row type."""

    alias: str
    type: str
    tests: tuple[Test, ...] = ()
    joins: tuple[Join, ...] = ()
    negated: bool = False


@dataclass(frozen=True, slots=True)
class Ref:
    """The value of a field of the row bound to an alias; an unknown field leaves the concluded field unknown."""

    alias: str
    field: str


@dataclass(frozen=True, slots=True)
class Conclusion:
    """The row that a firing derives."""

    type: str
    fields: Mapping[str, Scalar | Ref]


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule; `id` is unique in a rule base. Alternatives (any-of) are separate rules that share `group`."""

    id: str
    patterns: tuple[Pattern, ...]
    conclusions: tuple[Conclusion, ...]
    group: str = ""
