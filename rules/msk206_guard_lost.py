"""MSK206: machine code runs an access whatever its guard in the PTX says."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ptxlint.dataflow.inputs import Input, parameter_addresses
from ptxlint.dataflow.lost_guards import LostGuard, survival
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.rulekit import Hit, Note, Rule, Sample
from ptxlint.structure.assembled_from import AssembledFrom
from ptxlint.wording import counted

_SHOWN: Final = 4
_AXES: Final = "xyz"
_PTX: Final = """
.version 8.0
.target sm_90
.address_size 64
.visible .entry sample(.param .u64 .ptr .global .align 16 out_ptr, .param .u32 n_elements)
.reqntid 128
{
.reg .pred %p<2>;
.reg .b32 %r<5>;
.reg .b64 %rd<4>;
.loc 1 3 0
ld.param.u64 %rd1, [out_ptr];
ld.param.b32 %r1, [n_elements];
mov.u32 %r2, %tid.x;
setp.lt.s32 %p1, %r2, %r1;
mul.wide.u32 %rd2, %r2, 4;
add.s64 %rd3, %rd1, %rd2;
.loc 1 4 0
@%p1 st.global.b32 [%rd3], %r2;
ret;
}
.file 1 "sample.py"
"""
_START: Final = """
S2R R0, SR_TID.X
LDC.64 R2, c[0x0][0x210]
ULDC.64 UR4, c[0x0][0x208]
IMAD.WIDE.U32 R2, R0, 0x4, R2
"""
_STORE: Final = '//## File "sample.py", line 4\n'


class GuardLost(Rule):
    id = "MSK206"
    name = "guard-lost"
    severity = "error"
    confidence = "high"
    category = "masking"
    family = "guard"
    levels = ("sass",)
    needs = (AssembledFrom,)
    summary = "Machine code runs an access whatever its guard in the PTX says."
    why = (
        "The assembler makes predicates, branches and early exits of guards, and splits and merges "
        "accesses; but whether an access runs has to depend on all that the guard depends on. "
        "Here it does not: nothing that leads to a predicate or a branch of the access has to do "
        "with an input that decides in the PTX. Either the machine code is not that of this PTX, "
        "or the assembler has lost the guard. It is looked at where PTX of the same stem lies "
        "beside, with a kernel of the same name, and both name lines of the source; silence means "
        "that an access depends on these inputs, not that it does so in the right way."
    )
    fix = (
        "Assemble the PTX anew. If the guard is missing again, report it with the PTX, and "
        "assemble with -O1 meanwhile."
    )
    bad = (
        Sample(
            "no predicate, no branch",
            f"{_START}{_STORE}STG.E desc[UR4][R2.64], R0 //~ MSK206\nEXIT",
            level="sass",
            ptx=_PTX,
        ),
        Sample(
            "a predicate of something else",
            f"{_START}ISETP.NE.AND P0, PT, R0, RZ, PT\n"
            f"{_STORE}@P0 STG.E desc[UR4][R2.64], R0 //~ MSK206\nEXIT",
            level="sass",
            ptx=_PTX,
        ),
    )
    good = (
        Sample(
            "a predicate",
            f"{_START}LDC R4, c[0x0][0x218]\nISETP.GE.AND P0, PT, R0, R4, PT\n"
            f"{_STORE}@!P0 STG.E desc[UR4][R2.64], R0\nEXIT",
            level="sass",
            ptx=_PTX,
        ),
        Sample(
            "PTX for an older architecture",
            f"{_START}LDC R4, c[0x0][0x218]\nISETP.GE.AND P0, PT, R0, R4, PT\n"
            f"{_STORE}@!P0 STG.E desc[UR4][R2.64], R0\nEXIT",
            level="sass",
            ptx=_PTX.replace("sm_90", "sm_80"),
        ),
        Sample(
            "an early exit",
            f"{_START}ISETP.GE.AND P0, PT, R0, c[0x0][0x218], PT\n@P0 EXIT\n"
            f"{_STORE}STG.E desc[UR4][R2.64], R0\nEXIT",
            level="sass",
            ptx=_PTX,
        ),
        Sample(
            "a branch around it",
            f"{_START}ULDC UR6, c[0x0][0x218]\nISETP.GE.AND P0, PT, R0, UR6, PT\n"
            f"BSSY B0, `(.L_x_1)\n@P0 BRA `(.L_x_0)\n"
            f"{_STORE}STG.E desc[UR4][R2.64], R0\n.L_x_0:\nBSYNC B0\n.L_x_1:\nEXIT",
            level="sass",
            ptx=_PTX,
        ),
        Sample(
            "both branches of an if store to one address: one store of what was selected",
            f"{_START}ULDC UR6, c[0x0][0x218]\nISETP.GE.AND P0, PT, R0, UR6, PT\n"
            f"SEL R4, R0, RZ, !P0\n{_STORE}STG.E desc[UR4][R2.64], R4\nEXIT",
            level="sass",
            ptx=_PTX.replace("ret;", "@!%p1 st.global.b32 [%rd3], 0;\nret;"),
        ),
        Sample(
            "a copy that only fills with zeros reads nothing",
            f"{_START}{_STORE}LDGSTS.E.BYPASS.128 [R6], desc[UR4][R2.64], !PT\nEXIT",
            level="sass",
            ptx=_PTX.replace(
                "@%p1 st.global.b32 [%rd3], %r2;",
                ".shared .align 16 .b8 tile[2048];\nmov.u32 %r3, tile;\n"
                "selp.b32 %r4, 16, 0, %p1;\n"
                "cp.async.cg.shared.global [%r3], [%rd3], 16, %r4;",
            ),
        ),
        Sample(
            "a guard that holds for every thread may go",
            f"{_START}{_STORE}STG.E desc[UR4][R2.64], R0\nEXIT",
            level="sass",
            ptx=_PTX.replace("%r2, %r1;", "%r2, 128;"),
        ),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit]:
        """One hit for each line and kind of access, at the first."""
        source = facts.get(AssembledFrom)
        if source is None:
            return
        by_line: dict[tuple[str, int, str, tuple[Input, ...]], list[LostGuard]] = {}
        for lost in survival(source, facts).lost:
            frame = facts.module.python_frame(lost.instr.loc)
            place = ("", 0) if frame is None else (frame.path, frame.line)
            kind = lost.instr.shape.row.category
            by_line.setdefault((*place, kind, lost.inputs), []).append(lost)
        for (_, _, kind, inputs), group in by_line.items():
            first, *others = group
            names = _names(source.function, facts.module.arch, inputs)
            ends = "s" if len(group) == 1 else ""
            number = source.module.source.position(first.access.offset).line
            guard = facts.words.guard(first.access)
            yield Hit(
                f"{counted(len(group), f'global {kind}')} of this line depend{ends} no longer on "
                f"{' and '.join(names)}, which decide{'' if names[1:] else 's'} in the PTX",
                first.instr,
                tuple(Note("and here", other.instr) for other in others[:_SHOWN]),
                key=f"{kind} {' and '.join(names)}",
                label=f"{guard}, line {number} of the PTX"
                if guard
                else f"line {number} of the PTX",
            )


def _names(fn: Function, arch: str, inputs: tuple[Input, ...]) -> list[str]:
    """Inputs in words: parameters by their names in the PTX."""
    sizes = {variable.name: variable.size or 0 for variable in fn.params}
    places = parameter_addresses(fn, arch)
    words = []
    for given in inputs:
        if given.kind == "param":
            words += [n for n, at in places.items() if at <= given.at < at + sizes[n]]
        elif given.kind == "ctaid":
            words.append(f"%ctaid.{_AXES[given.at]}")
        else:
            words.append("the thread" if given.kind == "thread" else "what was loaded")
    return words
