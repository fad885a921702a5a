"""Integers that padding may hold, and what leaves a reduction of integers unchanged."""

from __future__ import annotations

from typing import NamedTuple

from ptxlint.ir.types import BITS


class Span(NamedTuple):
    """Any integer from `low` to `high`, as an unsigned word."""

    low: int
    high: int
    kind: str = "span"
    """Keeps a span from being equal to a pair of numbers."""


def joined(a: int | Span, b: int | Span) -> int | Span:
    """What may be either."""
    low = min(a if isinstance(a, int) else a.low, b if isinstance(b, int) else b.low)
    high = max(a if isinstance(a, int) else a.high, b if isinstance(b, int) else b.high)
    return low if low == high else Span(low, high)


def bounds(word: object, kind: str) -> tuple[int, int]:
    """The least and greatest number that a word may be, read as a type such as `s32` or `u64`."""
    bits = BITS.get(kind, 32)
    signed = kind.startswith("s")
    least, most = (-(1 << bits - 1), (1 << bits - 1) - 1) if signed else (0, (1 << bits) - 1)
    if isinstance(word, int):
        number = word & (1 << bits) - 1
        if signed and number >> bits - 1:
            number -= 1 << bits
        return number, number
    if kind == "pred":
        return 0, 1
    while type(word) is tuple and bits > 1 and word[1] == 0:
        # Nothing but zeros above: the number is that of the lower half.
        word, bits = word[0], bits // 2
        most = (1 << bits) - 1
        if isinstance(word, int):
            return word, word
        least = 0
    # Unsigned words below the sign bit are the same number in both.
    if isinstance(word, Span) and word.high <= most:
        return word.low, word.high
    return least, most


def neutral(operator: str, kind: str, word: object, others: list[tuple[int, int]]) -> str:
    """Why an integer does not change the result of a reduction, "" if it may.

    `others` are the bounds of all that is combined, none if they are not known.
    """
    bits = BITS.get(kind, 32)
    low, high = bounds(word, kind)
    if operator in ("add", "or", "xor") and low == high == 0 and kind != "pred":
        return f"padding lanes hold 0 when they reach the {operator} of integers"
    if kind == "pred":
        wanted = operator in ("and", "min")
        return "padding lanes do not decide it" if low == high == wanted else ""
    if operator == "and" and low == high and low & (1 << bits) - 1 == (1 << bits) - 1:
        return "padding lanes hold all ones when they reach `and`"
    least, most = bounds(None, kind)
    if operator == "max" and (high == least or (others and all(high <= o[0] for o in others))):
        return "no lane of `max` can be below the padding"
    if operator == "min" and (low == most or (others and all(low >= o[1] for o in others))):
        return "no lane of `min` can be above the padding"
    return ""


def certainly_wrong(operator: str, kind: str, word: object, is_raw: bool) -> bool:
    """True if an integer changes the result for some data.

    `is_raw` says that what is combined otherwise may be any number of the type.
    """
    low, high = bounds(word, kind)
    if low != high:
        return False
    if operator in ("add", "xor"):
        return low != 0
    least, most = bounds(None, kind)
    if not is_raw:
        return False
    return (operator == "max" and low > least) or (operator == "min" and low < most)


__all__ = ["Span", "bounds", "certainly_wrong", "joined", "neutral"]
