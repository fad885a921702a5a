"""Matrix instructions of a warpgroup (PTX ISA, "wgmma").

They are done at once, which is one of the orders that an asynchronous instruction allows. As for
`mma`, products are exact and the sum over k, the accumulator included, is made in float64 and
rounded once; the device's order of sums, and how many bits it keeps of those of 8-bit floats, are
not specified.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np

from ptxlint.dynamic.emulator.access import Lanes, gather
from ptxlint.dynamic.emulator.batch import WARP, Batch, Mask, Step
from ptxlint.dynamic.emulator.effects.exchange import groups
from ptxlint.dynamic.emulator.effects.matrix import (
    as_numbers,
    fragment_a,
    multiply,
    placed,
    unpacked,
)
from ptxlint.dynamic.emulator.effects.memory import MEMORIES, elements
from ptxlint.dynamic.emulator.formats import Array, dtype, raw
from ptxlint.dynamic.emulator.frame import Frame
from ptxlint.dynamic.emulator.matrix_descriptor import PIECE, addresses
from ptxlint.dynamic.emulator.meeting import warpgroup_meeting
from ptxlint.dynamic.emulator.operands import number_of, reader
from ptxlint.dynamic.emulator.sanitizer.arrivals import by_matrices
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Operand, Register, Vector
from ptxlint.ir.types import bits

if TYPE_CHECKING:
    from ptxlint.dynamic.emulator.effects import Waiting

_SHAPE: Final = re.compile(r"m64n(\d+)k(\d+)")
_SIZE: Final = 4 * WARP
_ROWS: Final = 64
_K_BITS: Final = 256
"""Of each row of A a warpgroup multiplies so many bits at once."""


class _Form(NamedTuple):
    """The shape and types of one `wgmma`; `signs` and transposition by operand, A first."""

    n: int
    k: int
    result: str
    kinds: tuple[str, str]
    signs: tuple[int, int]
    is_k_major: tuple[bool, bool]
    saturates: bool


def _wgmma(frame: Frame, instr: Instr) -> Waiting:
    shape = instr.shape
    if not shape.has("mma_async"):
        return warpgroup_meeting(_ordering(instr))
    if shape.has("sp"):
        raise UnsupportedError(instr, "wgmma with sparse A")
    target, a, b, scale, *immediates = instr.operands
    form = _form(instr, [number_of(instr, operand) for operand in immediates], a)
    columns = _registers(frame, instr, target)
    factors = _registers(frame, instr, a) if isinstance(a, Vector) else []
    read_a, read_b = _operand_a(frame, instr, a, form), _from_shared(frame, instr, b, form, 1)
    adds = reader(frame, instr, scale, "pred")

    def step(batch: Batch, mask: Mask) -> None:
        leaders = _leaders(batch, instr, mask)
        if batch.in_flight is not None:
            batch.in_flight.start(instr, leaders, columns, factors)
        with by_matrices(batch, leaders):
            left, right = read_a(batch, mask, leaders), read_b(batch, mask, leaders)
        if form.signs != (1, 1):
            left = left * (form.signs[0] * form.signs[1])
        if batch.watch is not None:
            batch.watch.clocks.share(leaders.cta, leaders.thread // WARP, 4)
        chosen = None if mask is None else groups(batch, batch.lanes(mask), _SIZE).any(axis=-1)
        add = _known(batch, columns) if chosen is None else None
        if add is None:
            add = _accumulator(batch, columns, form, chosen)
        flags = leaders.pick(adds(batch))
        if not flags.all():
            add = np.where(flags[:, None, None], add, add.dtype.type(0))
        total = multiply(left, right.swapaxes(-1, -2), add, form.result, form.saturates)
        _deliver(batch, columns, total, mask, chosen)
        if mask is None:
            held = [batch.registers[number] for number in columns]
            batch.accumulators[columns[0]] = held, total

    return warpgroup_meeting(step)


def _ordering(instr: Instr) -> Step:
    """`wgmma.fence`, `.commit_group` and `.wait_group`: the products are done already."""
    shape = instr.shape
    number = number_of(instr, instr.operands[0]) if shape.has("wait_group") else 0

    def step(batch: Batch, mask: Mask) -> None:
        if batch.arrivals is None or batch.in_flight is None:
            return
        lanes, agents = batch.taking_part(mask), batch.arrivals.agents
        if shape.has("commit_group"):
            agents.commit_matrices(lanes)
        elif shape.has("wait_group"):
            agents.wait_for_matrices(lanes, number)
        else:
            batch.in_flight.fence(lanes)

    return step


def _form(instr: Instr, immediates: list[int], a: Operand) -> _Form:
    shape = instr.shape
    found = next((m for m in map(_SHAPE.fullmatch, shape.modifiers) if m), None)
    if found is None or len(shape.types) != 3 or shape.types[1] == "b1":
        raise UnsupportedError(instr, "this form of wgmma")
    n, k = int(found[1]), int(found[2])
    result, *kinds = shape.types
    if k * _width(kinds[0]) != _K_BITS or n % 8 or not 8 <= n <= 256:
        raise UnsupportedError(instr, f"wgmma of shape {found[0]}")
    signs, turned = immediates[:2] or [1, 1], immediates[2:]
    if not isinstance(a, Vector):
        turned_a, *rest = turned or [0, 0]
    else:
        turned_a, rest = 0, turned
    turned_b = rest[0] if rest else 0
    majors = not turned_a, not turned_b
    return _Form(n, k, result, (kinds[0], kinds[1]), (signs[0], signs[1]), majors,
                 shape.has("satfinite"))  # fmt: skip


def _width(kind: str) -> int:
    return 32 if kind == "tf32" else bits(kind)


def _registers(frame: Frame, instr: Instr, operand: Operand) -> list[int]:
    out = []
    for part in elements(operand):
        if not isinstance(part, Register):
            raise UnsupportedError(instr, "an accumulator that is no register")
        out.append(frame.number(part))
    return out


def _leaders(batch: Batch, instr: Instr, mask: Mask) -> Lanes:
    """The first lane of each warpgroup that takes part; one that is not whole is reported."""
    is_first = (np.arange(batch.threads) % _SIZE == 0)[None, :]
    if mask is not None or batch.threads % _SIZE:
        there = groups(batch, batch.lanes(mask), _SIZE)
        part = there.any(axis=-1, keepdims=True) & ~there.all(axis=-1, keepdims=True)
        if part.any():
            lanes = np.broadcast_to(part, there.shape).reshape(batch.shape[0], -1)
            here = lanes[:, : batch.threads] & batch.lanes(mask)
            batch.device.report(
                batch,
                instr,
                "divergence",
                "is run by a part of the four warps of a warpgroup",
                here,
            )
        # The first lane speaks for all, also if it is not there itself.
        flags = np.zeros(batch.shape, dtype=bool)
        flags[:, ::_SIZE] = there.any(axis=-1)
        return Lanes(batch, flags)
    return Lanes(batch, np.broadcast_to(is_first, batch.shape))


# Operands -------------------------------------------------------------------------------------
Operands = Callable[[Batch, Mask, Lanes], Array]
"""A matrix by warpgroup, rows along M or N, as float64 (integers: float32, which hold them)."""


def _operand_a(frame: Frame, instr: Instr, operand: Operand, form: _Form) -> Operands:
    if not isinstance(operand, Vector):
        return _from_shared(frame, instr, operand, form, 0)
    reads = [reader(frame, instr, part, "b32") for part in elements(operand)]
    kind = form.kinds[0]
    fragment = fragment_a(16, form.k, _width(kind))

    def read(batch: Batch, mask: Mask, leaders: Lanes) -> Array:
        words = [_warps_of(batch, leaders, one(batch)) for one in reads]
        return placed(unpacked(words, kind), fragment, 16, form.k).reshape(-1, _ROWS, form.k)

    return read


def _warps_of(batch: Batch, leaders: Lanes, values: Array) -> Array:
    """Values by warp of the warpgroups that take part: warpgroups, warps, lanes."""
    found = groups(batch, values, _SIZE)
    if len(leaders.index) != found.shape[0] * found.shape[1]:
        found = found[leaders.cta, leaders.thread // _SIZE]
    return found.reshape(-1, 4, WARP)


def _from_shared(frame: Frame, instr: Instr, operand: Operand, form: _Form, side: int) -> Operands:
    """A matrix that a descriptor tells of."""
    word = reader(frame, instr, operand, "u64")
    kind, is_k_major = form.kinds[side], form.is_k_major[side]
    count = (_ROWS, form.n)[side]
    per_piece = 8 * PIECE // _width(kind)
    if is_k_major:
        rows, across = count, form.k // per_piece
    else:
        rows, across = form.k, count // per_piece

    def read(batch: Batch, mask: Mask, leaders: Lanes) -> Array:
        where = addresses(leaders.pick(word(batch)), rows, across, is_k_major)
        memory, place, allowed = MEMORIES["shared"].resolve(
            batch, instr, leaders.repeated(rows * across), where.ravel(), PIECE, False, True
        )
        found = gather(memory, place, PIECE)
        if allowed is not None:
            found[~allowed] = 0
        tile = _numbers(found.view(_stored_as(kind)), kind).reshape(len(where), rows, -1)
        return tile if is_k_major else tile.swapaxes(-1, -2)

    return read


def _stored_as(kind: str) -> np.dtype:
    return np.dtype(f"u{_width(kind) // 8}")


@lru_cache(maxsize=8)
def _table(kind: str) -> Array:
    """All numbers of a format of 8 or 16 bits, by their bits."""
    width = _width(kind)
    return as_numbers(np.arange(1 << width).astype(f"u{width // 8}"), kind)


def _numbers(parts: Array, kind: str) -> Array:
    if kind in ("f16", "bf16", "e4m3", "e5m2"):
        out: Array = _table(kind)[parts]
        return out
    return as_numbers(parts, kind)


# Accumulators ---------------------------------------------------------------------------------
def _known(batch: Batch, columns: list[int]) -> Array | None:
    """What the last `wgmma` left in these registers, if nothing else wrote to them since.

    Arrays are never changed, so the same ones hold the same.
    """
    held, total = batch.accumulators.get(columns[0], ((), None))
    if len(held) != len(columns):
        return None
    same = all(batch.registers[n] is array for n, array in zip(columns, held, strict=True))
    return total if same else None


def _accumulator(batch: Batch, columns: list[int], form: _Form, chosen: Array | None) -> Array:
    """The accumulators as matrices of 64 rows, by warpgroup.

    Of 8 columns a lane holds two neighbours in each of two rows 8 apart; of 64 rows a warp has 16.
    """
    words = np.stack([batch.full(batch.value(number, 32)) for number in columns])
    spare = -batch.threads % _SIZE
    if spare:
        words = np.pad(words, ((0, 0), (0, 0), (0, spare)))
    words = words.reshape(len(columns), -1, _SIZE)
    if chosen is not None:
        words = words[:, chosen.ravel()]
    across, count = form.n // 8, words.shape[1]
    if form.result == "f16":
        pairs = words.view(np.float16).reshape(across, 2, count, 4, 8, 4, 2)
        found = pairs.transpose(2, 3, 1, 4, 0, 5, 6)
    else:
        kind = dtype(form.result)
        found = (
            words.view(kind).reshape(across, 2, 2, count, 4, 8, 4).transpose(3, 4, 1, 5, 0, 6, 2)
        )
    return found.reshape(count, _ROWS, form.n)


def _deliver(
    batch: Batch, columns: list[int], total: Array, mask: Mask, chosen: Array | None
) -> None:
    """Give the accumulators what was found."""
    count, _, n = total.shape
    parts = total.reshape(count, 4, 2, 8, n // 8, 4, 2)
    if total.dtype.itemsize == 2:
        parts = parts.transpose(4, 2, 0, 1, 3, 5, 6)
    else:
        parts = parts.transpose(4, 2, 6, 0, 1, 3, 5)
    words = raw(np.ascontiguousarray(parts)).view(np.uint32).reshape(len(columns), count, _SIZE)
    height = -(-batch.threads // _SIZE)
    if chosen is not None:
        full = np.zeros((len(columns), batch.shape[0] * height, _SIZE), dtype=np.uint32)
        full[:, chosen.ravel()] = words
        words = full
    words = words.reshape(len(columns), batch.shape[0], -1)[:, :, : batch.threads]
    for number, word in zip(columns, words, strict=True):
        batch.put(number, word, mask)


WAITING: Final[dict[str, Callable[[Frame, Instr], Waiting | None]]] = {"wgmma": _wgmma}


__all__ = ["WAITING"]
