"""Values that a run shows to be none: what they come from, and what they decide on."""

from __future__ import annotations

from typing import Any, Final

from ptxlint.engine.emulated.rule import EmulatedRule
from ptxlint.rulekit import TILE_START, Sample


def _launch(elements: int = 256, grid: int = 2, block: int = 128, **changes: Any) -> dict[str, Any]:
    """A launch on tensors of 256 elements."""
    arguments = {"in_ptr": "float32[256]", "out_ptr": "float32[256]", "n_elements": elements}
    return {"grid": grid, "block": block, "arguments": {**arguments, **changes}}


_MASKED: Final = (
    TILE_START
    + """
            FILL
            @%p1 ld.global.b32 %r6, [%rd4];
            st.global.b32 [%rd5], %r6;MARK
            ret;
"""
)
_SHARED: Final = """
            .shared .align 4 .b8 tile[512];
            .reg .b32 %r<6>;
            .reg .b64 %rd<3>;
            ld.param.u64 %rd1, [out_ptr];
            mov.u32 %r1, %tid.x;
            shl.b32 %r2, %r1, 2;
            mov.u32 %r3, tile;
            add.u32 %r4, %r3, %r2;STORE
            bar.sync 0;
            ld.shared.b32 %r5, [%r4];
            mad.wide.u32 %rd2, %r1, 4, %rd1;
            st.global.b32 [%rd2], %r5;MARK
            ret;
"""
UNINITIALISED: Final = EmulatedRule(
    "EMU912",
    "emulated-uninitialised-value",
    "What nothing was written to decides on a branch or an address, or is stored.",
    "A register that was never written, or only in lanes that a mask let through, shared memory "
    "before the first store: they hold what was there before. Bits of them are followed through "
    "what is computed with them, and told where they can bear on a branch, on whether something is "
    "written, on an address, or on a number that is stored to global memory. Reading them does no "
    "harm, and is not told. Looked for with `--sanitize uninitialised`.",
    "Write registers and memory before they are read: give a masked load an `other=`, and a cell "
    "of shared memory a store and a barrier.",
    "rerun",
    bad=(
        Sample(
            "lanes beyond the end store what a masked load left them",
            _MASKED.replace("FILL", "").replace("MARK", " //~ EMU912"),
            launch=_launch(200),
        ),
        Sample(
            "shared memory that no thread has stored to",
            _SHARED.replace("STORE", "").replace("MARK", " //~ EMU912"),
            launch=_launch(grid=1),
        ),
    ),
    good=(
        Sample(
            "the masked load is filled",
            _MASKED.replace("FILL", "mov.b32 %r6, 0;").replace("MARK", ""),
            launch=_launch(200),
        ),
        Sample(
            "shared memory that is",
            _SHARED.replace("STORE", "\n            st.shared.b32 [%r4], %r1;").replace("MARK", ""),
            launch=_launch(grid=1),
        ),
    ),
    watch="uninitialised",
    refs=("https://valgrind.org/docs/manual/mc-manual.html#mc-manual.uninitvals",),
)
_QUOTIENT: Final = (
    TILE_START
    + """
            @%p1 ld.global.b32 %r6, [%rd4];
            mov.b32 %r7, 0;
            div.rn.f32 %r8, %r6, DIVISOR;MARK
            CHOICE
            @%p1 st.global.b32 [%rd5], %r8;
            ret;
"""
)
NOT_FINITE: Final = EmulatedRule(
    "EMU915",
    "emulated-not-finite",
    "NaN or an infinity is made of finite numbers, and stored to global memory.",
    "A division by a sum of nothing, an exponential of a score whose maximum was not taken off, a "
    "sum in 16 bits: the first instruction whose result is not finite though its operands are is "
    "told, with these, if what it made is stored. Kernels make NaN and infinities that they throw "
    "away again, in rows that are masked, and fill lanes with -inf: neither is told, nor is what "
    "comes with the inputs. It may be what is meant, so this is a warning. Looked for with "
    "`--sanitize nonfinite`.",
    "Look at the operands: keep the divisor from zero, take the maximum off before the "
    "exponential, or sum in a wider type.",
    "nonfinite",
    bad=(
        Sample(
            "the divisor is zero",
            _QUOTIENT.replace("DIVISOR", "%r7")
            .replace("MARK", " //~ EMU915")
            .replace("CHOICE", ""),
            launch=_launch(),
        ),
    ),
    good=(
        Sample(
            "the quotient is thrown away again",
            _QUOTIENT.replace("DIVISOR", "%r7")
            .replace("MARK", "")
            .replace("CHOICE", "selp.b32 %r8, %r8, %r6, !%p1;"),
            launch=_launch(),
        ),
        Sample(
            "the divisor is one",
            _QUOTIENT.replace("DIVISOR", "0f3F800000").replace("MARK", "").replace("CHOICE", ""),
            launch=_launch(),
        ),
    ),
    watch="nonfinite",
    severity="warning",
)
_ROW: Final = """
            .reg .b32 %r<6>;
            .reg .b64 %rd<4>;
            ld.param.u64 %rd1, [in_ptr];
            ld.param.b32 %r1, [n_elements];
            mov.u32 %r2, %tid.x;
            shl.b32 %r3, %r2, 2;
            mul.lo.s32 %r4, %r3, %r1;
            mul.wide.s32 %rd2, %r4, 4;
            add.s64 %rd3, %rd1, %rd2;
            ld.global.b32 %r5, [%rd3];MARK
            ret;
"""
WRAPPED: Final = EmulatedRule(
    "EMU913",
    "emulated-index-overflow",
    "An address is not the one that was computed: an integer on the way to it wrapped.",
    "Integers are followed beside what registers hold of them. What wraps and comes back, what is "
    "masked, and remainders of a hash are as they were meant. A number that wrapped and is an "
    "address lies elsewhere: gigabytes away, or in the tensor at another element. The finding "
    "names the operands and the number that did not fit. BND301 decides the same for all threads "
    "of a launch, without a run. Looked for with `--sanitize overflow`.",
    "Widen one factor before the product: tl.program_id(0).to(tl.int64) * stride.",
    "overflow",
    bad=(
        Sample(
            "rows of 2^30 elements: every fourth comes around to the first element",
            _ROW.replace("MARK", " //~ EMU913"),
            launch=_launch(elements=1 << 30, grid=1, block=4),
        ),
    ),
    good=(
        Sample(
            "rows that fit",
            _ROW.replace("MARK", ""),
            launch=_launch(elements=8, grid=1, block=4),
        ),
    ),
    watch="overflow",
    refs=("https://github.com/triton-lang/triton/issues/1058",),
)
VALUES: Final = (UNINITIALISED, WRAPPED, NOT_FINITE)
"""What runs find of values."""


__all__ = ["NOT_FINITE", "UNINITIALISED", "VALUES", "WRAPPED"]
