"""The errors that gpurules raises on purpose: one family, so that a program that embeds it can catch one class.

May live here: exception classes, the way from the system's errors to messages. Must not: any words
(knowledge/messages.yaml), anything else.
"""

from __future__ import annotations

import errno

from .messages import Lang, Message, known


class GpurulesError(Exception):
    """Base of every error that gpurules raises: the id of a message and its values. Its text is meant for people and
    may hold several lines; `str` gives it in English, `said` in a language."""

    def __init__(self, id: str, /, **values: object) -> None:
        super().__init__(id)
        self.message = Message(id, **values)

    def said(self, lang: Lang) -> str:
        """The text in a language."""
        return self.message.said(lang)

    def __str__(self) -> str:
        return self.said("en")


class InputError(GpurulesError):
    """The input cannot be used; the message names the file, line and field, one fault a line."""


class InputTooLarge(InputError):
    """The input is larger than the caller allowed."""


class TimeLimit(GpurulesError):
    """The work was not done within the time that the caller allowed."""


def reason(error: Exception) -> Message:
    """Why a file could not be read or written."""
    if isinstance(error, UnicodeError):
        return Message("reason.encoding")
    if isinstance(error, ValueError):  # what `open` says of such a path
        return Message("reason.nul")
    code = errno.errorcode.get(getattr(error, "errno", None) or 0, "").lower()
    if known(f"reason.{code}"):
        return Message(f"reason.{code}")
    return Message(
        "reason.other", text=(getattr(error, "strerror", None) or str(error) or type(error).__name__).lower()
    )
