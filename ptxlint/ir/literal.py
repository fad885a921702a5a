"""Reading PTX literals (PTX ISA, "Integer Constants" and "Floating-Point Constants")."""

from __future__ import annotations

import struct

from ptxlint.ir.operand import Immediate


def parse_literal(text: str) -> Immediate:
    """The immediate that a number's text denotes.

    The text must match the grammar's NUMBER. Integers are not wrapped to 64 bits.
    """
    lead = text[:2].lower()
    if lead == "0f":
        return Immediate(text, "f32", int(text[2:], 16))
    if lead == "0d":
        return Immediate(text, "f64", int(text[2:], 16))
    if lead == "0x":
        return Immediate(text, "int", int(text[2:].rstrip("U"), 16))
    if lead == "0b":
        return Immediate(text, "int", int(text[2:].rstrip("U"), 2))
    if "." in text or "e" in text or "E" in text:
        bits: int = struct.unpack("<Q", struct.pack("<d", float(text)))[0]
        return Immediate(text, "dec", bits)
    digits = text.rstrip("U")
    octal = len(digits) > 1 and digits[0] == "0" and not set(digits) & {"8", "9"}
    return Immediate(text, "int", int(digits, 8 if octal else 10))
