"""Reading PTX literals (PTX ISA, "Integer Constants" and "Floating-Point Constants")."""

from __future__ import annotations

import struct

from ptxlint.ir.operand import Immediate


def parse_literal(text: str) -> Immediate:
    """The immediate that a number's text denotes.

    The text must match the grammar's NUMBER. Integers are not wrapped to 64 bits, but one of more
    than 256 digits stands for the largest that 64 bits hold: nobody writes it in earnest.
    """
    lead = text[:2].lower()
    if lead == "0f":
        return Immediate(text, "f32", int(text[2:], 16))
    if lead == "0d":
        return Immediate(text, "f64", int(text[2:], 16))
    if lead == "0x":
        return _integer(text, text[2:].rstrip("U"), 16)
    if lead == "0b":
        return _integer(text, text[2:].rstrip("U"), 2)
    if "." in text or "e" in text or "E" in text:
        bits: int = struct.unpack("<Q", struct.pack("<d", float(text)))[0]
        return Immediate(text, "dec", bits)
    digits = text.rstrip("U")
    octal = len(digits) > 1 and digits[0] == "0" and not set(digits) & {"8", "9"}
    return _integer(text, digits, 8 if octal else 10)


def _integer(text: str, digits: str, base: int) -> Immediate:
    # Python itself refuses to print a number of more than 4,300 digits.
    value = int(digits, base) if len(digits) <= 256 else 0xFFFFFFFFFFFFFFFF
    return Immediate(text, "int", value)
