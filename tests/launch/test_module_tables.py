"""Tables that a module declares: their size is known without the launch."""

from __future__ import annotations

import pytest

from ptxlint.engine.options import Options
from ptxlint.engine.run import run
from ptxlint.frontends.discovery import Input
from ptxlint.launches import Launch, Tensor

TEXT = """
.version 8.0
.target sm_80
.address_size 64
.global .align 4 .b8 table[24] = {1, 2, 3};
.visible .entry sum(.param .u64 .ptr .global .align 4 out)
.reqntid 32
{
    .reg .pred %p<2>;
    .reg .b32 %r<4>;
    .reg .b64 %rd<6>;
    ld.param.u64 %rd1, [out];
    mov.u64 %rd2, table;
    mov.b64 %rd3, 0;
    mov.u32 %r1, 0;
$round:
    add.s64 %rd4, %rd2, %rd3;
    ld.global.nc.WIDTH %r2, [%rd4];
    add.s32 %r1, %r1, %r2;
    add.s64 %rd3, %rd3, 4;
    setp.ne.b64 %p1, %rd3, LAST;
    @%p1 bra $round;
    st.global.b32 [%rd1], %r1;
    ret;
}
"""


@pytest.mark.parametrize(
    ("last", "width", "is_proved"),
    [(24, "b32", True), (28, "b32", False), (20, "b32", True), (24, "b8", True)],
)
def test_a_table_is_read_to_its_end(last: int, width: str, is_proved: bool) -> None:
    text = TEXT.replace("LAST", str(last)).replace("WIDTH", width)
    launch = Launch((1, 1, 1), (32, 1, 1), {"out": Tensor("int32", (1,), (1,), 0, 4)}, shared=0)
    rules = ("BND301", "BND302", "BND303", "BND305")
    report = run([Input("sum.ptx", text, None, (launch,))], Options(select=rules))
    statuses = {o.status for o in report.obligations if o.rule in rules}
    assert (statuses == {"proved"}) == is_proved
    assert not report.findings
