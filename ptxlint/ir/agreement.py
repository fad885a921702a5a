"""Which register or literal fits which instruction type.

Measured with ptxas 12.9 and 13.4; see `docs/opcodes.md`. What is not known fits.
"""

from __future__ import annotations

from typing import Final

from ptxlint.ir.types import BITS

_EXTRA_BITS: Final = {"i16": 16, "i32": 32, "i64": 64, "s2f6x2": 16, "b1024": 1024}
_ABSTRACT: Final = frozenset({"b8", "b16", "b32", "b64", "b128", "f16x2"})
"""Register types that hold any kind of value; `.f16x2` registers behave like `.b32` ones."""


def width(type_name: str) -> int:
    """Width in bits; 0 when the type is not known."""
    return BITS.get(type_name) or _EXTRA_BITS.get(type_name, 0)


def _is_integer(type_name: str) -> bool:
    return type_name[0] in "usi" and "x" not in type_name and "f" not in type_name


def register_fits(need: str, have: str, wider: bool = False) -> bool:
    """Whether a register of type `have` may stand where `need` is called for.

    `need` is an instruction type or `i16`, `i32`, `i64`: an integer, but no float. `wider`
    allows a register that has more bits than the type, as loads, stores and conversions do.
    """
    if need == "pred" or have == "pred":
        return need == have or have == "f16x2"
    needed, had = width(need), width(have)
    if not needed or not had:
        return True
    if needed != had and not (wider and had > needed):
        return False
    if have == "f16x2" and (need == "i32" or need in ("f32", "tf32", "bf16x2")):
        return False
    if have in _ABSTRACT or need in ("b8", "b16", "b32", "b64", "b128"):
        # A narrow float type has no register type of its own: `.bf16` lives in `.b16`.
        return True
    if _is_integer(need):
        return _is_integer(have)
    return need == have


def literal_fits(need: str, kind: str) -> bool:
    """Whether a literal of this kind (`int`, `f32`, `f64`, `dec`) fits the instruction type.

    Integers fit integer and bit types, floats `.f32` and `.f64`, and a pattern `0f…` or `0d…`
    also the bit type of its size. The packed and the narrow float types take no literal.
    """
    if kind == "int":
        return need == "pred" or _is_integer(need) or (need[0] == "b" and need[1:].isdigit())
    if need in ("f32", "f64") or not width(need):
        return True
    if need[0] == "b" and need[1:].isdigit():
        return need == ("b32" if kind == "f32" else "b64")
    return False
