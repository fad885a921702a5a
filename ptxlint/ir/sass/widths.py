"""How many 32-bit registers an operand of SASS has, where its modifiers say so."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

Modifiers = tuple[str, ...]

_LONG: Final = frozenset(("64", "U64", "S64", "F64"))
_TYPES: Final = re.compile(r"(?:[USF]|BF|TF|E\dM)(?:8|16|32|64|\d)(?:_V2|x2)?")
_SPACE: Final = re.compile(r"(ARRAY_)?([123]D|CUBE)(_ARRAY)?")
_BY: Final = re.compile(r"(\d+)x(\d+)x(\d+)")
_SHAPE: Final = re.compile(r"(8|16)(8)(4|8|16|32|64|128|256)")


def of(rule: str, opcode: str, modifiers: Modifiers, selectors: tuple[str, ...]) -> int:
    """The registers of an operand with these words behind it. `rule` is a number or a letter of
    `ptxlint.ir.sass.rows`."""
    if rule.isdigit():
        return int(rule)
    if rule == "f":
        return 1 if "F32" in selectors else 2
    return _RULES[rule](opcode, modifiers)


def _memory(opcode: str, modifiers: Modifiers) -> int:
    if "ENL2" in modifiers or "128" in modifiers:
        return 4
    if "256" in modifiers:
        return 8
    if "96" in modifiers:
        return 3
    return 2 if _LONG.intersection(modifiers) else 1


def _long(opcode: str, modifiers: Modifiers) -> int:
    return 2 if _LONG.intersection(modifiers) else 1


def _wide(opcode: str, modifiers: Modifiers) -> int:
    return 2 if "WIDE" in modifiers else _long(opcode, modifiers)


def _added(opcode: str, modifiers: Modifiers) -> int:
    return 2 if "HI" in modifiers else _wide(opcode, modifiers)


def _copied(opcode: str, modifiers: Modifiers) -> int:
    """What a tensor copy takes: an address in shared memory, that of an mbarrier if it loads, and
    a coordinate for each dimension."""
    dimensions = next((int(m[0]) for m in modifiers if re.fullmatch(r"[1-5]D", m)), 1)
    return dimensions + (2 if opcode == "UTMALDG" else 1)


def _clock(opcode: str, modifiers: Modifiers) -> int:
    return 1 if "32" in modifiers else 2


def _converted(opcode: str, modifiers: Modifiers) -> int:
    """The result of a conversion."""
    if opcode in ("F2I", "UF2I"):
        return 2 if {"S64", "U64"}.intersection(modifiers) else 1
    if opcode in ("I2F", "UI2F", "FRND", "UFRND"):
        return 2 if "F64" in modifiers else 1
    types = [m for m in modifiers if _TYPES.fullmatch(m)]
    return 2 if types[:1] == ["F64"] else 1


def _source(opcode: str, modifiers: Modifiers) -> int:
    """What a conversion reads."""
    if opcode in ("F2I", "UF2I"):
        return 2 if "F64" in modifiers else 1
    if opcode in ("I2F", "UI2F"):
        return 2 if {"S64", "U64"}.intersection(modifiers) else 1
    types = [m for m in modifiers if _TYPES.fullmatch(m)]
    return 2 if types[1:2] == ["F64"] else 1


def _shape(modifiers: Modifiers) -> tuple[int, int, int]:
    """Rows, columns and depth of a matrix product: `16816` is 16 x 8 x 16."""
    for word in modifiers:
        found = _BY.fullmatch(word) or _SHAPE.fullmatch(word)
        if found:
            m, n, k = (int(x) for x in found.groups())
            return m, n, k
    return 16, 8, 16


def _element_bits(opcode: str, modifiers: Modifiers) -> int:
    """Bits of an element of A and B."""
    if opcode == "DMMA":
        return 64
    if opcode in ("BMMA", "BGMMA"):
        return 1
    if opcode in ("IMMA", "IGMMA"):
        return 4 if {"S4", "U4"}.intersection(modifiers) else 8
    if opcode in ("QMMA", "QGMMA", "OMMA"):
        return 4 if opcode == "OMMA" else 8
    return 32 if "TF32" in modifiers else 16


def _lanes(opcode: str) -> int:
    """So many lanes hold a matrix together."""
    return 128 if opcode.endswith("GMMA") else 32


def _result_bits(opcode: str, modifiers: Modifiers) -> int:
    if opcode == "DMMA":
        return 64
    types = [m for m in modifiers if m in ("F32", "F16")]
    return 16 if types[:1] == ["F16"] else 32


def _product(opcode: str, modifiers: Modifiers) -> int:
    """The result of a matrix product, and what is added."""
    m, n, _ = _shape(modifiers)
    if "884" in modifiers and opcode == "HMMA":
        return 8 if "F32" in modifiers else 4
    return max(1, m * n * _result_bits(opcode, modifiers) // (32 * _lanes(opcode)))


def _left(opcode: str, modifiers: Modifiers) -> int:
    m, _, k = _shape(modifiers)
    if "884" in modifiers and opcode == "HMMA":
        return 2
    k = k // 2 if "SP" in modifiers else k
    return max(1, m * k * _element_bits(opcode, modifiers) // (32 * _lanes(opcode)))


def _right(opcode: str, modifiers: Modifiers) -> int:
    _, n, k = _shape(modifiers)
    if "884" in modifiers and opcode == "HMMA":
        return 2
    return max(1, n * k * _element_bits(opcode, modifiers) // (32 * 32))


def _matrices(opcode: str, modifiers: Modifiers) -> int:
    return int(modifiers[-1]) if modifiers and modifiers[-1] in ("2", "4") else 1


def _tensor_memory(opcode: str, modifiers: Modifiers) -> int:
    """Registers of `16dp256bit.x4` and the like: 32 lanes hold the rows of a piece."""
    count, each = 1, 1
    for word in modifiers:
        if re.fullmatch(r"x\d+", word):
            count = int(word[1:])
        found = re.match(r"(\d+)dp(\d+)bit", word)
        if found:
            each = max(1, int(found[2]) // 64) if int(found[2]) > 32 else 1
    return count * each


def _dimensions(modifiers: Modifiers) -> tuple[int, int]:
    """Coordinates of a texture or surface: those of its space, and with the index in an array."""
    found = next((m for m in map(_SPACE.fullmatch, modifiers) if m), None)
    if found is None:
        return 1, 1
    spatial = 3 if found[2] == "CUBE" else int(found[2][0])
    return spatial, spatial + bool(found[1] or found[3])


def _texels(modifiers: Modifiers) -> int:
    """So many components of a texel are taken: a bit each in the mask; all without one."""
    mask = next((m for m in modifiers if m.startswith("0x")), "0xf")
    return (int(mask, 16) & 15).bit_count()


def _upper(opcode: str, modifiers: Modifiers) -> int:
    return max(1, _texels(modifiers) - 2)


def _lower(opcode: str, modifiers: Modifiers) -> int:
    return max(1, min(2, _texels(modifiers)))


def _coordinates(opcode: str, modifiers: Modifiers) -> int:
    count = _dimensions(modifiers)[1]
    return (count + _further(modifiers) + 1) // 2 if "SCR" in modifiers else count


def _further(modifiers: Modifiers) -> int:
    """Level, sample and depth to compare with, where an instruction takes them."""
    return len({"LL", "LB", "MS", "DC"}.intersection(modifiers))


def _behind(opcode: str, modifiers: Modifiers) -> int:
    """The registers behind the coordinates. Scattered ones are all split in two halves."""
    spatial, count = _dimensions(modifiers)
    if opcode == "TXD":
        return 2 * spatial
    if "SCR" in modifiers:
        return max(1, count + _further(modifiers) - _coordinates(opcode, modifiers))
    return max(1, _further(modifiers))


def _surface(opcode: str, modifiers: Modifiers) -> int:
    return 4 if "P" in modifiers else _memory(opcode, modifiers)


_RULES: Final[dict[str, Callable[[str, Modifiers], int]]] = {
    "m": _memory,
    "n": _long,
    "w": _wide,
    "W": _added,
    "T": _copied,
    "c": _clock,
    "D": _converted,
    "S": _source,
    "x": _product,
    "C": _product,
    "A": _left,
    "B": _right,
    "s": _matrices,
    "t": _tensor_memory,
    "X": _upper,
    "Y": _lower,
    "K": _coordinates,
    "L": _behind,
    "G": _surface,
}

__all__ = ["of"]
