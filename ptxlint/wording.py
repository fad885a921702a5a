"""Phrases for messages to people, for rules and reports alike."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """`1 error`, `2 errors`: the number with the noun, which takes an s unless it is one, or has
    the plural that is given."""
    return f"{number} {noun}" if number == 1 else f"{number} {plural or noun + 's'}"
