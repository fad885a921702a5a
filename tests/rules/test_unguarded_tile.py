"""MSK203 counts a tile in elements, however many of them a thread accesses at once."""

from __future__ import annotations

import pytest

from ptxlint import SourceText, check

KERNEL = """
.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 p, .param .u64 q, .param .u32 stride) .reqntid 128
{{
.reg .b16 %h<16>; .reg .b32 %r<32>; .reg .b64 %d<8>;
ld.param.u64 %d1, [p];
ld.param.u64 %d2, [q];
ld.param.u32 %r3, [stride];
mov.u32 %r1, %ctaid.x;
mov.u32 %r2, %tid.x;
and.b32 %r2, %r2, 127;
shl.b32 %r4, %r1, 7;
or.b32 %r5, %r4, %r2;
{0}
ret;
}}
"""
BYTES = "mul.wide.u32 %d3, {0}, {1};\nadd.s64 %d1, %d1, %d3;\n"
VECTOR = "ld.global.v4.b32 {%r10, %r11, %r12, %r13}, [%d1];\n"
FOUR = "".join(f"ld.global.b32 %r{10 + at}, [%d1+{4 * at}];\n" for at in range(4))
HALVES = "mov.b32 {%h1, %h2}, %r10;\nadd.f16 %h3, %h1, %h2;\n"


@pytest.mark.parametrize(
    ("body", "wanted"),
    [
        (BYTES.format("%r5", 4) + "ld.global.b32 %r10, [%d1];", "128 elements of 4 bytes"),
        (BYTES.format("%r5", 16) + VECTOR, "512 elements of 4 bytes"),
        (BYTES.format("%r5", 16) + FOUR, "512 elements of 4 bytes"),
        (BYTES.format("%r5", 16) + VECTOR + HALVES, "1024 elements of 2 bytes"),
        (BYTES.format("%r5", 4) + "ld.global.b32 %r10, [%d1];\nadd.f16x2 %r11, %r10, %r10;",
         "256 elements of 2 bytes"),
        (BYTES.format("%r5", 4) + "mov.b32 %r10, {%h1, %h2};\nst.global.b32 [%d1], %r10;",
         "256 elements of 2 bytes"),
        (BYTES.format("%r5", 8) + "ld.global.b64 %d4, [%d1];\nmov.b64 {%r10, %r11}, %d4;\n"
         + HALVES, "512 elements of 2 bytes"),
        (BYTES.format("%r5", 1) + "ld.global.b8 %h1, [%d1];", "128 elements of 1 byte"),
        # One element of each of 128 rows, whose length is a constant or a parameter.
        (BYTES.format("%r5", 512) + "ld.global.b32 %r10, [%d1];", "128 elements of 4 bytes"),
        ("mul.lo.s32 %r6, %r5, %r3;\n" + BYTES.format("%r6", 4) + "ld.global.b32 %r10, [%d1];",
         "128 elements of 4 bytes"),
    ],
)  # fmt: skip
def test_a_tile(body: str, wanted: str) -> None:
    report = check(SourceText(KERNEL.format(body), "k.ptx"), select="MSK203")
    (finding,) = report.findings
    assert finding.message == f"a tile of {wanted} is accessed without a guard"
    size = int(wanted.split()[0])
    (verdict,) = (o for o in report.obligations if o.rule == "MSK203")
    assert verdict.status == "open"
    assert verdict.suggest == {"size": [size - 1, size, size + 1]}
