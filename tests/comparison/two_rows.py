"""A kernel that takes the maxima of two rows, each loaded under a mask with a fill of its own."""

from __future__ import annotations

NEUTRAL = "-8388608"
"""The bits of -inf, which no maximum notices."""
_HEAD = """.version 8.7
.target sm_80
.address_size 64
.visible .entry two_rows(.param .u64 x, .param .u64 y, .param .u64 out, .param .u32 n)
.reqntid 32
{
.reg .pred %p<3>;
.reg .b32 %r<31>;
.reg .b64 %rd<12>;
ld.param.b64 %rd5, [x];
ld.param.b64 %rd6, [y];
ld.param.b64 %rd7, [out];
ld.param.b32 %r10, [n];
mov.u32 %r8, %tid.x;
and.b32 %r9, %r8, 31;
setp.lt.s32 %p1, %r9, %r10;
mul.wide.u32 %rd10, %r9, 4;
"""
_TAIL = """setp.eq.b32 %p2, %r9, 0;
@%p2 st.global.b32 [ %rd7 + 0 ], { %r5 };
@%p2 st.global.b32 [ %rd7 + 4 ], { %r6 };
ret;
}
.file 1 "two_rows.py"
"""


def two_rows(first: str, second: str, line: int = 10) -> str:
    """The PTX with these fills, the first load at this Python line."""
    loads = [
        f".loc 1 {line + at} 9\nadd.s64 %rd{1 + at}, %rd{5 + at}, %rd10;\n"
        f"mov.b32 %r{2 + 2 * at}, {fill};\nmov.u32 %r{1 + 2 * at}, %r{2 + 2 * at};\n"
        f"@%p1 ld.global.b32 {{ %r{1 + 2 * at} }}, [ %rd{1 + at} + 0 ];\n"
        for at, fill in enumerate((first, second))
    ]
    maxima = [f".loc 1 {line + 2 + at} 11\n{_maximum(1 + 2 * at, 5 + at)}" for at in range(2)]
    return _HEAD + "".join(loads) + "".join(maxima) + f".loc 1 {line + 4} 5\n" + _TAIL


def _maximum(source: int, result: int) -> str:
    out = [f"mov.b32 %r{result}, %r{source};\n"]
    for distance in (16, 8, 4, 2, 1):
        out.append(f"shfl.sync.bfly.b32 %r12, %r{result}, {distance}, 31, -1;\n")
        out.append(f"max.f32 %r{result}, %r{result}, %r12;\n")
    return "".join(out)
