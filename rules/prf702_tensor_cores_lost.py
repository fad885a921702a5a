"""PRF702: PTX multiplies matrices on tensor cores, and its machine code does not."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.rulekit import Hit, Rule, Sample
from ptxlint.structure.assembled_from import AssembledFrom
from ptxlint.structure.profile import class_of
from ptxlint.wording import counted

_PRODUCT = """
            .reg .b32 %r<7>;
            .reg .f32 %f<9>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out_ptr];
            mov.b32 %r1, 0;
            mov.b32 %f1, 0f00000000;
            mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%f5, %f6, %f7, %f8},
                {%r1, %r1, %r1, %r1}, {%r1, %r1}, {%f1, %f1, %f1, %f1};
            st.global.f32 [%rd1], %f5;
            ret;
"""


class TensorCoresLost(Rule):
    id = "PRF702"
    name = "tensor-cores-lost"
    severity = "warning"
    confidence = "high"
    category = "performance"
    family = "resources"
    levels = ("sass",)
    needs = (AssembledFrom,)
    summary = "The PTX beside this machine code has matrix products, and the machine code has none."
    why = (
        "An architecture without tensor cores for a format gets its products as loops of ordinary "
        "arithmetic, many times slower; and products whose result nothing uses are left out. It "
        "is looked at where PTX of the same stem lies beside, with a kernel of the same name."
    )
    fix = "Use a format that this architecture multiplies on tensor cores, or look at what is used."
    bad = (
        Sample(
            "the products are gone",
            """
            FFMA R4, R5, R6, R7 //~ PRF702
            STG.E desc[UR4][R2.64], R4
            EXIT
            """,
            level="sass",
            ptx=_PRODUCT,
        ),
    )
    good = (
        Sample(
            "they are there",
            """
            HMMA.16816.F32 R4, R8, R12, R4
            STG.E desc[UR4][R2.64], R4
            EXIT
            """,
            level="sass",
            ptx=_PRODUCT,
        ),
        Sample("no PTX is at hand", "FFMA R4, R5, R6, R7\nEXIT", level="sass"),
        Sample("the PTX has none", "FFMA R4, R5, R6, R7\nEXIT", level="sass", ptx="ret;"),
    )

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit]:
        """One hit a kernel."""
        source = facts.get(AssembledFrom)
        if source is None or not fn.instrs or any(class_of(i) == "tensor" for i in fn.instrs):
            return
        count = sum(class_of(i) == "tensor" for i in source.function.instrs)
        if count:
            yield Hit(
                f"the PTX has {counted(count, 'matrix product')}, this machine code none",
                fn.instrs[0],
                key="tensor cores",
            )
