"""From how far the steps of a scan take in what other lanes hold.

A scan along an axis of a tile reads from the lane some steps down with `shfl.up`, and lets the
first lanes of each row keep their own by `selp`. What those read from another row is dropped, so
that no lane of one row takes in anything of another.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ptxlint.cfg.loops import LoopForest
from ptxlint.dataflow.exchanges import ALL_LANES, moved_lanes
from ptxlint.dataflow.lane_bits import WARP_BITS
from ptxlint.dataflow.ssa_values import Ssa
from ptxlint.dataflow.thread_expression import WARP, Launch, thread_expression
from ptxlint.dataflow.uniformity import Uniformity
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Register
from ptxlint.ir.pattern import fold

_ALL: Final = (1 << WARP) - 1


class ScanLanes:
    """The bits of the lane number that the steps of one function's scans combine over.

    `width` is how many bits the index of a thread has in a CTA of one dimension, None for any other
    one. `readers` gives the instructions that read a value, and `origin` the value that another one
    is a copy of, both looking through moves.
    """

    def __init__(
        self,
        ssa: Ssa,
        loops: LoopForest,
        uniformity: Uniformity,
        width: int | None,
        readers: Callable[[int], list[Instr]],
        origin: Callable[[int], int],
    ) -> None:
        self._ssa = ssa
        self._loops = loops
        self._uniformity = uniformity
        self._width = width
        self._readers = readers
        self._origin = origin
        self._where: dict[int, int | None] = {}

    def of(self, shfl: Instr, combines: Callable[[Instr], bool]) -> int:
        """The bits in which a lane that keeps what it read may differ from the one it read from.

        `combines` tells the instructions whose result a `selp` may drop.
        """
        amount, clamp = fold(shfl.operands[2]), fold(shfl.operands[3])
        whole = moved_lanes(shfl)
        if not shfl.shape.has("up") or amount is None or clamp != 0 or self._width is None:
            return whole
        taken = self._taken(shfl, combines)
        amount &= ALL_LANES
        found = 0
        for lane in range(amount, WARP):
            if taken >> lane & 1:
                found |= lane ^ (lane - amount)
        return found & whole

    def _taken(self, shfl: Instr, combines: Callable[[Instr], bool]) -> int:
        """The lanes that keep what they read, or make something of it that they keep."""
        result = self._ssa.def_values[shfl.index][0]
        taken = 0
        for reader in self._readers(result):
            if reader.opcode == "selp":
                taken |= self._choosing(reader, result)
                continue
            if not combines(reader) or len(reader.defs) != 1 or reader.guard is not None:
                return _ALL
            made = self._ssa.def_values[reader.index][0]
            if self._ssa.value_users(made):
                return _ALL
            for choice in self._readers(made):
                taken |= self._choosing(choice, made) if choice.opcode == "selp" else _ALL
        return _ALL if self._ssa.value_users(result) else taken

    def _choosing(self, selp: Instr, value: int) -> int:
        """The lanes in which a `selp` may choose a value."""
        wanted = self._origin(value)
        values = self._ssa.use_values[selp.index]
        sources = [
            values[selp.uses.index(o)] if isinstance(o, Register) else None
            for o in selp.operands[1:4]
        ]
        *arms, predicate = sources
        is_arm = [arm is not None and self._origin(arm) == wanted for arm in arms]
        where = None if predicate is None else self._holding(predicate)
        if where is None or is_arm[0] == is_arm[1]:
            return _ALL
        return where if is_arm[0] else _ALL & ~where

    def _holding(self, predicate: int) -> int | None:
        """The lanes in which a predicate of the lane's number holds; None if it is no such one."""
        if predicate not in self._where:
            self._where[predicate] = self._find_holding(predicate)
        return self._where[predicate]

    def _find_holding(self, predicate: int) -> int | None:
        if self._width is None or self._uniformity.dependence(predicate) & WARP_BITS:
            return None
        found = thread_expression(self._ssa, self._loops, predicate)
        if (
            found is None
            or found.parameters
            or not {"%tid.x", "%laneid"}.issuperset(found.registers)
        ):
            return None
        launch = Launch((1 << self._width, 1, 1), {})
        return sum((found.value(launch, lane) & 1) << lane for lane in range(WARP))


__all__ = ["ScanLanes"]
