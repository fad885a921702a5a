"""Operands by kind: the values at which an instruction may go wrong, then random ones."""

from __future__ import annotations

import zlib
from typing import Any, Final

import numpy as np

Array = np.ndarray[Any, Any]

COUNT: Final = 4096
"""Lanes of an instruction with several operands."""
WIDE: Final = 1 << 14
"""Lanes of one with a single operand of more than 16 bits; of fewer bits it has all values."""

WIDTHS: Final = {
    "f16": 16, "bf16": 16, "f32": 32, "f64": 64, "f16x2": 32, "bf16x2": 32, "e4m3x2": 16,
    "e5m2x2": 16, "u8": 16, "s8": 16, "u16": 16, "s16": 16, "u32": 32, "s32": 32, "u64": 64,
    "s64": 64, "u16x2": 32, "s16x2": 32, "count": 32, "byte": 32, "bit": 32, "offset": 32,
}  # fmt: skip
"""Bits of the register that holds a kind."""
_FLOATS: Final = {"f16": (5, 10), "bf16": (8, 7), "f32": (8, 23), "f64": (11, 52)}
"""Bits of exponent and fraction."""
_NUMBERS: Final = (
    0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 1 / 3, 0.1, np.pi, 100.5, 127.5, 255.5, 448.0, 464.0, 480.0,
    2.0**15, 65504.0, 65519.0, 65520.0, 2.0**-14, 2.0**-24, 2.0**-25, 2.0**-126, 2.0**23 - 0.5,
    2.0**31, 2.0**32, 2.0**63, 2.0**64, 57344.0, 61440.0, 2.0**126, 2.0**127,
)  # fmt: skip


def operands(kinds: tuple[str, ...], name: str) -> list[Array]:
    """Arrays of registers, all as long; the same on every machine for the same name."""
    random = np.random.Generator(np.random.PCG64(zlib.crc32(name.encode())))
    if len(kinds) == 1:
        (kind,) = kinds
        if kind in ("u8", "s8"):
            return [np.arange(256).astype(np.uint16)]
        if WIDTHS[kind] == 16:
            return [np.arange(1 << 16).astype(np.uint16)]
        chosen = edges(kind)
        return [np.concatenate([chosen, drawn(random, kind, WIDE - len(chosen))])]
    share = 24 if len(kinds) == 2 else 12
    if len(kinds) > 3:
        share = 6
    lists = [_few(random, edges(kind), 2 * share if len(kinds) == 2 else share) for kind in kinds]
    grid = np.meshgrid(*lists, indexing="ij")
    out = []
    for kind, part in zip(kinds, grid, strict=True):
        flat = part.ravel()[:COUNT]
        out.append(np.concatenate([flat, drawn(random, kind, COUNT - len(flat))]))
    if set(kinds) <= {"f32", "f16"}:
        _near_smallest(random, kinds[0], out)
    return out


def _near_smallest(random: Any, kind: str, arrays: list[Array]) -> None:
    """The last operands of two, made so that their product or quotient is next to the smallest
    normal number: what rounding brings up to it is flushed or not."""
    exponent, fraction = _FLOATS[kind]
    count = COUNT // 8
    word = arrays[0].dtype
    small = random.integers(0, 9, count).astype(word)
    one = word.type(((1 << (exponent - 1)) - 1) << fraction)
    first = word.type(1 << fraction) | random.integers(0, 1 << fraction, count).astype(word)
    # Close below two, or close to one.
    second = np.where(random.random(count) < 0.5, one - small, one + small)
    first = np.where(random.random(count) < 0.5, first, word.type(1 << fraction) + small)
    sign = random.integers(0, 2, count).astype(word) << word.type(WIDTHS[kind] - 1)
    arrays[0][-count:] = first | sign
    arrays[1][-count:] = second
    if len(arrays) > 2:
        arrays[2][-count:] = small


def _few(random: Any, values: Array, most: int) -> Array:
    if len(values) <= most:
        return values
    found: Array = random.permutation(values)[:most]
    return found


def edges(kind: str) -> Array:
    """Values next to which something changes."""
    word = np.dtype(f"u{WIDTHS[kind] // 8}")
    if kind in _FLOATS:
        return _float_edges(kind)
    if kind in ("f16x2", "bf16x2"):
        half = _float_edges(kind[:-2]).astype(np.uint32)
        return half | np.roll(half, 7) << np.uint32(16)
    if kind == "count":
        return np.array([0, 1, 7, 8, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 255, 256, 1 << 31,
                         0xFFFFFFFF], dtype=word)  # fmt: skip
    if kind == "byte":
        return np.array([0, 1, 7, 8, 15, 16, 31, 32, 33, 63, 64, 65, 128, 255], dtype=word)
    if kind == "bit":
        return np.arange(32, dtype=word)
    if kind == "offset":
        return np.array([0, 1, 2, 5, 32, 0xFFFFFFFF, 0xFFFFFFFE, 0xFFFFFFF0], dtype=word)
    width = 8 if kind in ("u8", "s8") else word.itemsize * 8
    top = 1 << (width - 1)
    near = [0, 1, 2, 3, 5, 7, 10, 100, 127, 128, 255, 256, 32767, 32768, 65535, 65536, 1 << 24,
            (1 << 24) + 1, (1 << 31) - 1, 1 << 31, (1 << 32) - 1, 1 << 32, (1 << 53) + 1,
            top - 1, top, top + 1, 2 * top - 1, 2 * top - 2, 2 * top - 128, 2 * top - 129,
            0x5555555555555555, 0xAAAAAAAAAAAAAAAA, 0x0123456789ABCDEF]  # fmt: skip
    return np.unique(np.array([number % (1 << 8 * word.itemsize) for number in near], dtype=word))


def _float_edges(kind: str) -> Array:
    exponent, fraction = _FLOATS[kind]
    one = ((1 << (exponent - 1)) - 1) << fraction
    top = ((1 << exponent) - 1) << fraction
    smallest, quiet = 1 << fraction, 1 << (fraction - 1)
    found = [0, 1, 2, smallest - 1, smallest, smallest + 1, one - 1, one, one + 1,
             top - 1, top, top + 1, top | quiet, top | (smallest - 1)]  # fmt: skip
    word = np.dtype(f"u{WIDTHS[kind] // 8}")
    plain = np.array(found, dtype=word)
    with np.errstate(all="ignore"):
        plain = np.concatenate([plain, _bits(np.array(_NUMBERS), kind)])
    sign = word.type(1 << (WIDTHS[kind] - 1))
    return np.unique(np.concatenate([plain, plain | sign]))


def _bits(numbers: Array, kind: str) -> Array:
    if kind == "bf16":
        wide = numbers.astype(np.float32).view(np.uint32)
        return (wide >> np.uint32(16)).astype(np.uint16)
    types: dict[str, Any] = {"f16": np.float16, "f32": np.float32, "f64": np.float64}
    found: Array = numbers.astype(types[kind])
    return found.view(f"u{WIDTHS[kind] // 8}")


def drawn(random: Any, kind: str, count: int) -> Array:
    """Random values: any bits, and for floating-point numbers half of them of usual size."""
    width = WIDTHS[kind]
    word = np.dtype(f"u{width // 8}")
    small = {"count": (0, 70), "byte": (0, 70), "bit": (0, 32), "offset": (-33, 34)}.get(kind)
    if small is not None:
        within: Array = random.integers(*small, count)
        return within.astype(np.int32).view(word)
    last = (1 << width) - 1
    anything: Array = random.integers(0, last, count, dtype=np.uint64, endpoint=True).astype(word)
    parts = 2 if kind in ("f16x2", "bf16x2") else 1
    scalar = kind[:-2] if parts == 2 else kind
    if scalar not in _FLOATS:
        if WIDTHS[kind] >= 32:
            # Small numbers too.
            shift = random.integers(0, width, count).astype(word)
            anything = np.where(random.random(count) < 0.5, anything >> shift, anything)
        return anything
    size = np.exp2(random.uniform(-8, 8, count * parts)) * random.choice([-1.0, 1.0], count * parts)
    with np.errstate(all="ignore"):
        usual = np.ascontiguousarray(_bits(size, scalar)).view(word)
    return np.where(random.random(count) < 0.5, usual, anything)
