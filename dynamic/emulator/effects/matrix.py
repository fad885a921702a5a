"""Matrices between shared memory and the registers of a warp, and how registers hold them (PTX ISA,
"ldmatrix", "stmatrix", "Matrix Fragments for mma")."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.access import Lanes, gather, scatter
from ptxlint.dynamic.emulator.batch import WARP, Batch, Mask, Reader
from ptxlint.dynamic.emulator.effects.exchange import lanes as by_lanes
from ptxlint.dynamic.emulator.effects.exchange import warps
from ptxlint.dynamic.emulator.effects.memory import MEMORIES, elements
from ptxlint.dynamic.emulator.formats import Array, dtype
from ptxlint.dynamic.emulator.frame import Frame
from ptxlint.dynamic.emulator.meeting import warp_meeting
from ptxlint.dynamic.emulator.operands import address, reader, writer
from ptxlint.dynamic.emulator.rounding import FORMATS, decoded
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.dynamic.emulator.semantics.converting import numbers, stored
from ptxlint.ir.instruction import Instr
from ptxlint.ir.types import bits

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.effects import Waiting

_LANE: Final = np.arange(WARP)
_GROUP: Final = _LANE // 4
_IN_GROUP: Final = _LANE % 4


# ldmatrix, stmatrix ---------------------------------------------------------------------------
def _count(instr: Instr) -> int:
    return next(int(m[1:]) for m in instr.shape.modifiers if m in ("x1", "x2", "x4"))


def _check_eights(instr: Instr) -> None:
    if not instr.shape.has("m8n8") or instr.shape.type != "b16":
        raise UnsupportedError(instr, "matrices that are not m8n8 of b16")


def _ldmatrix(frame: Frame, instr: Instr) -> Waiting:
    """Lane l of a warp gives the address of row l % 8 of matrix l / 8; of each matrix a lane gets
    two neighbours of row l / 4, or of column l / 4 if transposed."""
    _check_eights(instr)
    target, source = instr.operands
    count, is_transposed = _count(instr), instr.shape.has("trans")
    where = address(frame, instr, source)
    writes = [writer(frame, instr, part, "b32") for part in elements(target)]

    def step(batch: Batch, mask: Mask) -> None:
        rows = _rows(batch, instr, mask, where, count)
        for at, write in enumerate(writes):
            tile = rows[:, :, 8 * at : 8 * at + 8, :]
            if is_transposed:
                tile = tile.swapaxes(-1, -2)
            words = np.ascontiguousarray(tile).view(np.uint32).reshape(*tile.shape[:2], WARP)
            write(batch, by_lanes(batch, words), mask)

    return warp_meeting(step, None, is_whole=True)


def _row_lanes(batch: Batch, mask: Mask, count: int) -> Lanes:
    if mask is None and count == 4:
        return batch.taking_part(None)
    gives = (np.arange(batch.threads) % WARP < 8 * count)[None, :]
    return Lanes(batch, batch.lanes(mask) & gives)


def _rows(batch: Batch, instr: Instr, mask: Mask, where: Reader, count: int) -> Array:
    """The rows of all matrices as 16-bit elements: CTAs, warps, rows, 8."""
    lanes = _row_lanes(batch, mask, count)
    memory, place, allowed = MEMORIES["shared"].resolve(
        batch, instr, lanes, lanes.pick(where(batch)), 16, False, True
    )
    found = gather(memory, place, 16)
    if allowed is not None:
        found[~allowed] = 0
    rows = lanes.spread(found)
    tiles = warps(batch, rows)[..., : 8 * count]
    return np.ascontiguousarray(tiles).view(np.uint16).reshape(*tiles.shape, 8)


def _stmatrix(frame: Frame, instr: Instr) -> Waiting:
    _check_eights(instr)
    target, source = instr.operands
    count, is_transposed = _count(instr), instr.shape.has("trans")
    where = address(frame, instr, target)
    reads = [reader(frame, instr, part, "b32") for part in elements(source)]

    def step(batch: Batch, mask: Mask) -> None:
        tiles = []
        for read in reads:
            words = np.ascontiguousarray(warps(batch, read(batch)))
            tile = words.view(np.uint16).reshape(*words.shape[:2], 8, 8)
            tiles.append(tile.swapaxes(-1, -2) if is_transposed else tile)
        rows = np.ascontiguousarray(np.concatenate(tiles, axis=2)).view(np.complex128)[..., 0]
        spare = WARP - 8 * count
        full = np.pad(rows, ((0, 0), (0, 0), (0, spare)))
        lanes = _row_lanes(batch, mask, count)
        memory, place, allowed = MEMORIES["shared"].resolve(
            batch, instr, lanes, lanes.pick(where(batch)), 16, True, False
        )
        values = lanes.pick(by_lanes(batch, full))
        if allowed is not None:
            place, values = place[allowed], values[allowed]
        scatter(memory, place, values, 16)

    return warp_meeting(step, None, is_whole=True)


# mma ------------------------------------------------------------------------------------------
class Fragment(NamedTuple):
    """Where a warp holds a matrix: for each lane and element, its row and column."""

    rows: NDArray[np.int64]
    columns: NDArray[np.int64]


def fragment_a(m: int, k: int, width: int) -> Fragment:
    """The fragment of A, rows of 16 or 8, for elements of `width` bits (PTX ISA, "Matrix Fragments
    for mma"): pairs of rows eight apart, then columns a half of k apart."""
    per_word = max(1, 32 // width)
    if width == 64:
        return _wide_a(m, k)
    return _words(m // 8, k // (4 * per_word), per_word)


def _wide_a(m: int, k: int) -> Fragment:
    """f64: element i lies i / 2 halves of k and i % 2 halves of m on."""
    down, right = m // 8, k // 4
    rows = [_GROUP + 8 * i for _ in range(right) for i in range(down)]
    columns = [_IN_GROUP + 4 * j for j in range(right) for _ in range(down)]
    return Fragment(np.stack(rows, axis=1), np.stack(columns, axis=1))


def _words(down: int, right: int, per_word: int) -> Fragment:
    """Words of `per_word` neighbours in a row, those below each other first."""
    rows, columns = [], []
    for j in range(right):
        for i in range(down):
            for e in range(per_word):
                rows.append(_GROUP + 8 * i)
                columns.append(_IN_GROUP * per_word + e + 4 * per_word * j)
    return Fragment(np.stack(rows, axis=1), np.stack(columns, axis=1))


def fragment_b(k: int, n: int, width: int) -> Fragment:
    """The fragment of B: a column a group of four lanes, words of neighbours in k."""
    if width == 64:
        rows = [_IN_GROUP + 4 * i for i in range(k // 4)]
        columns = [_GROUP] * (k // 4)
        return Fragment(np.stack(rows, axis=1), np.stack(columns, axis=1))
    per_word = max(1, 32 // width)
    across = _words(n // 8, k // (4 * per_word), per_word)
    return Fragment(across.columns, across.rows)


def fragment_c(m: int, n: int) -> Fragment:
    """The accumulator's: pairs of columns, rows eight apart."""
    rows, columns = [], []
    for i in range(m // 8):
        for e in range(2):
            rows.append(_GROUP + 8 * i)
            columns.append(_IN_GROUP * 2 + e)
    return Fragment(np.stack(rows, axis=1), np.stack(columns, axis=1))


def unpacked(words: list[Array], kind: str) -> Array:
    """Registers of a fragment as numbers in float64 (integers: int64): CTAs, warps, lanes,
    elements."""
    width = bits(kind) if kind != "tf32" else 32
    stacked = np.stack(words, axis=-1)
    if width >= 32:
        return as_numbers(stacked, kind)
    parts = np.ascontiguousarray(stacked).view({8: np.uint8, 16: np.uint16}[width])
    return as_numbers(parts, kind)


def as_numbers(parts: Array, kind: str) -> Array:
    """Bits of elements as numbers in float64 (integers: int64), exactly."""
    if kind == "tf32":
        # The lower bits of the word are not looked at.
        return (parts & np.uint32(0xFFFFE000)).view(np.float32).astype(np.float64)
    if kind[0] in "su":
        return parts.view(dtype(kind)).astype(np.int64)
    if kind in FORMATS and kind not in ("f16", "bf16", "f32"):
        return decoded(parts, FORMATS[kind])
    if kind == "f16":
        return parts.view(np.float16).astype(np.float64)
    return numbers(parts.view(dtype(kind)), kind).astype(np.float64)


def placed(values: Array, fragment: Fragment, rows: int, columns: int) -> Array:
    """Elements of a fragment as matrices: CTAs, warps, rows, columns."""
    out = np.zeros((*values.shape[:2], rows, columns), dtype=values.dtype)
    out[:, :, fragment.rows, fragment.columns] = values
    return out


def multiply(left: Array, right: Array, add: Array, kind: str, saturates: bool) -> Array:
    """The product of matrices and what is added, in the accumulator's type."""
    return rounded(left.astype(np.float64) @ right.astype(np.float64), add, kind, saturates)


def rounded(product: Array, add: Array, kind: str, saturates: bool) -> Array:
    """The sum of a product in float64 and of what is added, in the accumulator's type."""
    if kind in ("s32", "u32"):
        total: Any = product.astype(np.int64) + add
        if saturates:
            total = np.clip(total, -(1 << 31), (1 << 31) - 1)
        return total.astype(np.int32)
    total = product + add
    return total if kind == "f64" else stored(total, kind, "rn", False)


WAITING: Final[dict[str, Callable[[Frame, Instr], Waiting | None]]] = {
    "ldmatrix": _ldmatrix, "stmatrix": _stmatrix,
}  # fmt: skip


__all__ = [
    "WAITING", "Fragment", "as_numbers", "fragment_a", "fragment_b", "fragment_c", "multiply",
    "placed", "rounded", "unpacked",
]  # fmt: skip
