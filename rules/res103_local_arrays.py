"""RES103: arrays in local memory."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptxlint.facts import Facts
from ptxlint.ir.function import Function, Variable
from ptxlint.ir.instruction import Shape
from ptxlint.ir.operand import Symbol
from ptxlint.resources import Amount, Resources
from ptxlint.rulekit import Hit, Rule, Sample
from ptxlint.wording import counted

_TABLE: Final = """
            .reg .b64 %out;
            ld.param.u64 %out, [out_ptr];
            .local .align 4 .b8 table[64];
            .reg .b32 %r<4>;
            .reg .b64 %rd<4>;
            mov.u64 %rd1, table;
            mov.u32 %r1, %tid.x;
            mul.wide.u32 %rd2, %r1, 4;
            add.u64 %rd3, %rd1, %rd2;
            st.local.u32 [%rd3], %r1;{mark}
            ld.local.u32 %r2, [%rd1];
            st.global.u32 [%out], %r2;
            ret;
"""


class LocalArrays(Rule):
    id = "RES103"
    name = "local-arrays"
    severity = "note"
    confidence = "high"
    category = "resources"
    family = "resources"
    summary = "The kernel keeps an array in local memory."
    why = (
        "A .local variable lives in device memory, one copy for each thread, and is reached "
        "through the cache: each access costs as much as one to global memory. Compilers make one "
        "for an array that is indexed by a value unknown at compile time. It is a note, because "
        "some are harmless: the slow path of sin and cos has a small one that is almost never "
        "reached. Spilled registers are another matter: PTX never shows them. What the PTX "
        "declares is an estimate, since the assembler keeps arrays in registers where it can. "
        "Where it has spoken (a log of `ptxas -v` or a cubin beside the file, or `--exact`), the "
        "rule gives the bytes of the thread's stack, and is silent if there is none."
    )
    fix = (
        "Index the array by compile-time constants (unroll the loop), or move it to shared memory."
    )
    refs = (
        "https://docs.nvidia.com/cuda/cuda-c-programming-guide/index.html#device-memory-accesses",
    )
    bad = (
        Sample(
            "a table indexed at run time",
            _TABLE.format(mark=" //~ RES103"),
        ),
        Sample(
            "an assembler that puts it on the stack",
            _TABLE.format(mark=" //~ RES103"),
            {"stack": 64},
        ),
    )
    good = (
        Sample("an assembler that keeps it in registers", _TABLE.format(mark=""), {"stack": 0}),
        Sample(
            "declared and never used",
            """
            .local .align 4 .b8 table[64];
            ret;
            """,
        ),
        Sample(
            "the table lies in shared memory",
            """
            .reg .b64 %out;
            ld.param.u64 %out, [out_ptr];
            .shared .align 4 .b8 table[64];
            .reg .b32 %r<2>;
            ld.shared.u32 %r1, [table];
            st.global.u32 [%out], %r1;
            ret;
            """,
        ),
    )
    kernels_only = False

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit]:
        """One hit a function, at its first access to local memory."""
        known = facts.resources
        stack = known.stack if known is not None else None
        declared = [*fn.variables, *facts.module.variables.values()]
        local = {v.name: v for v in declared if v.space == "local"}
        if not local or (stack is not None and not stack.value):
            return
        uses = [i for i in fn.instrs if any(_names(atom, local) for atom in i.args)]
        if not uses:
            return
        used = {a.name: local[a.name] for i in uses for a in i.args if isinstance(a, Symbol)
                and a.name in local}  # fmt: skip
        accesses = facts.instructions(_accesses)
        size, arrays = _size(list(used.values())), counted(len(used), "array")
        yield Hit(
            f"{size} of local memory a thread in {arrays} (counted in the PTX, an estimate)"
            if stack is None
            else f"{arrays} of {size} in local memory: {_stack(stack, known)}",
            (accesses or uses)[0],
            label=f"{len(accesses)} accesses" if len(accesses) > 1 else "",
            key="local arrays",
            exact=stack is not None,
        )


def _stack(stack: Amount, known: Resources | None) -> str:
    """How much of a thread's stack is taken."""
    spills = known.spill_stores if known is not None else None
    besides = ", spilled registers included" if spills is not None and spills.value else ""
    return f"{counted(stack.value, 'byte')} of stack a thread{besides} ({stack.said})"


def _names(atom: object, local: dict[str, Variable]) -> bool:
    return isinstance(atom, Symbol) and atom.name in local


def _accesses(shape: Shape) -> bool:
    return shape.opcode in ("ld", "st") and shape.space == "local"


def _size(variables: list[Variable]) -> str:
    """The bytes that these variables take together."""
    sizes = [variable.size for variable in variables]
    known = sum(size for size in sizes if size is not None)
    return f"{known} bytes" if None not in sizes else f"at least {known} bytes"
