"""The errors that gpurules raises on purpose: one family, so that a program that embeds it can catch one class.

May live here: exception classes. Must not: anything else.
"""

from __future__ import annotations


class GpurulesError(Exception):
    """Base of every error that gpurules raises; its text is meant for people and may hold several lines."""


class InputError(GpurulesError):
    """The input cannot be used; the message names the file, line and field, one fault a line."""


class InputTooLarge(InputError):
    """The input is larger than the caller allowed."""


class TimeLimit(GpurulesError):
    """The work was not done within the time that the caller allowed."""
