"""PRF701: machine code computes in f64 on what is no f64 in memory."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from ptxlint.dataflow.reaching import Reaching, ReachingAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.operand import Address
from ptxlint.rulekit import Hit, Note, Rule, Sample
from ptxlint.wording import counted

_CONSTANTS: Final = frozenset("LDC ULDC LDCU CS2R S2R S2UR".split())


class DoubleUnits(Rule):
    id = "PRF701"
    name = "double-units"
    severity = "warning"
    confidence = "high"
    category = "performance"
    family = "precision"
    levels = ("sass",)
    needs = (ReachingAnalysis,)
    summary = "Machine code widens f32 values and computes on them in f64, and no memory holds f64."
    why = (
        "Most GPUs have one unit for f64 to 32 or 64 for f32, and one division or square root in "
        "f64 is some twenty instructions. If neither what is loaded nor what is stored is f64, the "
        "width was most likely not meant: a constant or a parameter of Python's type float. The "
        "rule is silent where an f64 value comes from memory or may get there."
    )
    fix = "Cast the f64 operand to f32 first: eps.to(tl.float32), or 1e-5f in CUDA C."
    bad = (
        Sample(
            "a parameter in f64",
            """
            LDG.E R2, desc[UR6][R10.64]
            F2F.F64.F32 R4, R2
            DADD R6, R4, UR4 //~ PRF701
            F2F.F32.F64 R8, R6
            STG.E desc[UR6][R10.64], R8
            EXIT
            """,
            level="sass",
        ),
    )
    good = (
        Sample(
            "memory holds f64",
            """
            LDG.E.64 R2, desc[UR6][R10.64]
            F2F.F64.F32 R4, R12
            DADD R6, R4, R2
            F2F.F32.F64 R8, R6
            STG.E desc[UR6][R10.64], R8
            EXIT
            """,
            level="sass",
        ),
        Sample(
            "f64 is stored",
            """
            LDG.E R2, desc[UR6][R10.64]
            F2F.F64.F32 R4, R2
            DADD R6, R4, UR4
            MOV R8, R6
            MOV R9, R7
            STG.E.64 desc[UR6][R10.64], R8
            EXIT
            """,
            level="sass",
        ),
        Sample(
            "an integer in f64",
            """
            I2F.F64 R4, R2
            DMUL R6, R4, UR4
            F2F.F32.F64 R8, R6
            STG.E desc[UR6][R10.64], R8
            EXIT
            """,
            level="sass",
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit]:
        """One hit a kernel, at the first f64 instruction on a widened value."""
        double = facts.instructions(_is_double)
        if not double or not facts.instructions(_is_widening):
            return
        flow = _Flow(fn, facts.get(ReachingAnalysis))
        widened = [(i, w) for i in double for w in flow.before(i) if _is_widening(w.shape)]
        if not widened or flow.from_memory(double) or flow.to_memory():
            return
        at, origin = widened[0]
        yield Hit(
            f"{counted(len(double), 'f64 instruction')} in a kernel whose memory holds no f64",
            at,
            (Note("widened to f64", origin),),
            key="f64 instructions",
        )


def _is_double(shape: Shape) -> bool:
    return shape.row.category == "double"


def _is_widening(shape: Shape) -> bool:
    return shape.opcode in ("F2F", "UF2F") and shape.modifiers[:2] == ("F64", "F32")


class _Flow:
    """Where values come from, through whatever is no conversion."""

    def __init__(self, fn: Function, reaching: Reaching) -> None:
        self._fn = fn
        self._reaching = reaching

    def before(self, instr: Instr, data: Iterable[object] | None = None) -> list[Instr]:
        """The instructions that may have written what this one reads, or some of it."""
        sites: dict[int, None] = {}
        for register in instr.uses:
            if register.type != "pred" and (data is None or register in data):
                sites.update(dict.fromkeys(self._reaching.defs_of(instr, register)))
        return [self._fn.instrs[at] for at in sites if at >= 0]

    def from_memory(self, double: list[Instr]) -> bool:
        """True if what these compute on may have been loaded without a conversion."""
        return any(
            i.shape.row.category in ("load", "atomic", "warp") for i in self._back(double, True)
        )

    def to_memory(self) -> bool:
        """True if what is computed in f64 may be stored, or given to others, without one."""
        stores = [
            i for i in self._fn.instrs
            if i.shape.row.category in ("store", "atomic", "warp") and i.opcode != "STL"
        ]  # fmt: skip
        return any(_is_double(i.shape) for i in self._back(stores, False))

    def _back(self, start: list[Instr], through_double: bool) -> Iterator[Instr]:
        """What leads to these without a conversion between."""
        seen = {i.index for i in start}
        waiting = [before for i in start for before in self.before(i, _data(i))]
        while waiting:
            instr = waiting.pop()
            if instr.index in seen:
                continue
            seen.add(instr.index)
            category = instr.shape.row.category
            if category == "conversion" or instr.opcode in _CONSTANTS:
                continue
            yield instr
            if category != "load" and (through_double or category != "double"):
                waiting += self.before(instr, _data(instr))


def _data(instr: Instr) -> list[object] | None:
    """What is read and is no address; None for all."""
    addresses = [o for o in instr.operands if isinstance(o, Address)]
    if not addresses:
        return None
    return [r for o in instr.operands if not isinstance(o, Address) for r in _registers(o)]


def _registers(operand: object) -> list[object]:
    parts = getattr(operand, "elements", None)
    return list(parts) if parts is not None else [operand]
