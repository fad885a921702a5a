"""How the thread index of a kernel is made of `%tid`, and what special registers depend on."""

from __future__ import annotations

from typing import Final

from ptxlint.dataflow.lane_bits import (
    ANY_THREAD,
    ANY_WARP,
    CTA_BIT,
    INDEX_BITS,
    LANE,
    WARP_BITS,
    index_field,
    keep,
    spread,
)
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.operand import Expr, SpecialRegister

WARP: Final = LANE + 1
ONE_DIMENSIONAL: Final = (
    "the CTA is one-dimensional, as the kernel reads no %tid.y, %tid.z, %ntid.y or %ntid.z"
)

# PTX ISA, "Special Registers". Clocks and performance counters are read by each warp on its own.
_DEPENDENCES: Final = {
    "%tid": LANE | WARP_BITS,
    "%ntid": 0,
    # The warp's number may change when it is rescheduled, but its lanes read it together.
    "%warpid": ANY_WARP,
    "%nwarpid": 0,
    "%ctaid": CTA_BIT,
    "%nctaid": 0,
    "%smid": ANY_WARP,
    "%nsmid": 0,
    "%gridid": 0,
    "%is_explicit_cluster": 0,
    "%clusterid": CTA_BIT,
    "%nclusterid": 0,
    "%cluster_ctaid": CTA_BIT,
    "%cluster_nctaid": 0,
    "%cluster_ctarank": CTA_BIT,
    "%cluster_nctarank": 0,
    "%lanemask_eq": LANE,
    "%lanemask_le": LANE,
    "%lanemask_lt": LANE,
    "%lanemask_ge": LANE,
    "%lanemask_gt": LANE,
    "%total_smem_size": 0,
    "%aggr_smem_size": 0,
    "%dynamic_smem_size": 0,
    "%current_graph_exec": 0,
    "WARP_SZ": 0,
}


class Geometry:
    """The planes of the special registers in one function."""

    def __init__(self, facts: Facts) -> None:
        self.assumes: tuple[str, ...] = ()
        """What the answers rest on though the text does not say it."""
        self._known: dict[str, int] = {}
        self.has_full_warps = False
        """True if each warp certainly has all of its lanes."""
        fn = facts.function
        if not fn.is_kernel:
            return
        extents = _exact_extents(facts)
        if extents is not None:
            self.has_full_warps = extents[0] * extents[1] * extents[2] % WARP == 0
        if extents is None and _may_be_flat(fn):
            self.assumes = (ONE_DIMENSIONAL,)
            extents = (min(facts.max_threads() or 1 << INDEX_BITS, 1 << INDEX_BITS), 1, 1)
        if extents is not None:
            self._set_index(extents)

    def planes(self, name: str) -> int:
        """The planes of a special register with its component, such as `%tid.x`."""
        found = self._known.get(name)
        if found is None:
            found = self._known[name] = _planes(name)
        return found

    def _set_index(self, extents: tuple[int, int, int]) -> None:
        """Place each component of `%tid` in the linear index x + y * nx + z * nx * ny."""
        below, total = 1, extents[0] * extents[1] * extents[2]
        for component, extent in zip("xyz", extents, strict=True):
            width = max(0, extent - 1).bit_length()
            first = below.bit_length() - 1
            # Bits of a component are bits of the index if all extents up to it, or up to those
            # below it if it is the last one, are powers of two.
            aligned = _is_power(below) and (_is_power(extent) or below * extent == total)
            if aligned and first + width <= INDEX_BITS:
                planes = index_field(first, width)
            else:
                planes = keep(spread(LANE | WARP_BITS), (1 << width) - 1)
            self._known["%tid." + component] = planes
            below *= max(1, extent)


def _is_power(number: int) -> bool:
    return number > 0 and number & (number - 1) == 0


def _planes(name: str) -> int:
    if name == "%laneid":
        return index_field(0, 5)
    base = name.partition(".")[0]
    if base.startswith(("%envreg", "%reserved_smem_offset")):
        return 0
    return spread(_DEPENDENCES.get(base, ANY_THREAD))


def _exact_extents(facts: Facts) -> tuple[int, int, int] | None:
    """The extents that `.reqntid` or Triton's metadata fix.

    `.maxntid` bounds only the number of threads, not each extent (PTX ISA, ".maxntid").
    """
    given = facts.function.directives.get("reqntid")
    if given:
        known = [int(extent) for extent in given] + [1, 1]
        return known[0], known[1], known[2]
    metadata = facts.metadata
    if metadata is not None and metadata.num_warps:
        return 32 * metadata.num_warps, 1, 1
    return None


def _may_be_flat(fn: Function) -> bool:
    """True if the kernel reads `%tid.x` and could not tell the threads of a deeper CTA apart.

    A callee might, so a kernel that calls is left open.
    """
    found = False
    for instr in fn.instrs:
        if instr.shape.row.is_call:
            return False
        reads = any(type(a) is SpecialRegister and a.name in ("%tid", "%ntid") for a in instr.args)
        if reads and not all(map(_reads_only_x, instr.operands)):
            return False
        found |= reads
    return found


def _reads_only_x(operand: object) -> bool:
    if isinstance(operand, SpecialRegister):
        return operand.name.partition(".")[0] not in ("%tid", "%ntid") or operand.name.endswith(
            ".x"
        )
    if isinstance(operand, Expr):
        return all(map(_reads_only_x, operand.operands))
    return True
