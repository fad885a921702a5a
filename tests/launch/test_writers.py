"""What a kernel writes to, stores through tensor maps included."""

from __future__ import annotations

import pytest

from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse
from ptxlint.launch.writers import Writers, writers_of

HEAD = """.version 8.8
.target sm_90a
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 x, .param .u64 .ptr .global .align 16 out,
    .param .u64 .ptr .global .align 16 places, .param .u64 .ptr .global .align 16 scratch)
    .reqntid 128
{
.reg .b32 %r<9>;
.reg .b64 %rd<20>;
ld.param.u64 %rd1, [x];
ld.param.u64 %rd2, [out];
ld.param.u64 %rd3, [places];
ld.param.u64 %rd4, [scratch];
mov.u32 %r1, 0;
mov.u64 %rd5, 0;
mov.u32 %r2, %ctaid.x;
mul.wide.u32 %rd6, %r2, 256;
"""
MAP = """add.s64 %rd7, {target}, %rd6;
tensormap.replace.tile.global_address.shared::cta.b1024.b64 [%rd5], %rd7;
add.s64 %rd8, %rd4, %rd6;
tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned
    [%rd8], [%rd5], 0x80;
"""
STORE = "cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%rd8, {%r1, %r1}], [%r1];\n"
LOAD = "ld.global.b32 %r3, [%rd3];\n"


def writers(body: str) -> Writers | None:
    module = parse(HEAD + body + "ret;\n}\n", "k.ptx")
    assert not module.problems, module.problems
    return writers_of(Facts(module, module.kernels()[0]))


def test_maps_that_the_kernel_makes_lead_to_their_pointers() -> None:
    found = writers(MAP.format(target="%rd2") + STORE + LOAD)
    assert found is not None
    assert (found.located, found.loose) == ((), ())
    assert found.bases == {"out", "scratch"}
    both = writers(MAP.format(target="%rd1") + MAP.format(target="%rd2") + STORE)
    assert both is not None
    assert both.bases == {"x", "out", "scratch"}, "which map it is is not followed"


def test_stores_count_beside_maps() -> None:
    found = writers(MAP.format(target="%rd2") + STORE + "st.global.b32 [%rd3], %r1;\n")
    assert found is not None
    assert found.mapped == {"out", "scratch"}
    assert found.bases == {"out", "scratch", "places"}


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(STORE.replace("%rd8", "%rd4"), id="a map that somebody else made"),
        pytest.param(
            "ld.global.b64 %rd9, [%rd3];\n" + MAP.format(target="%rd9") + STORE,
            id="a pointer from memory",
        ),
        pytest.param(
            MAP.format(target="%rd2") + STORE.replace("%rd8", "%rd3"), id="a map at another place"
        ),
    ],
)
def test_where_other_maps_lead_is_not_known(body: str) -> None:
    assert writers(body) is None
