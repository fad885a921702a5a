"""Small kernels in PTX, each for one construct of machine code that compiled kernels rarely hold.

Whatever a kernel computes it stores, so that the assembler cannot leave the construct out.
"""

from __future__ import annotations

from typing import Final, NamedTuple

HEAD: Final = """
.version 9.0
.target {target}
.address_size 64
.func (.param .b32 r) twice(.param .b32 a)
{{ .reg .b32 %r<3>; ld.param.b32 %r1, [a]; mul.hi.u32 %r2, %r1, %r1; st.param.b32 [r], %r2; ret; }}
.func (.param .b32 r) other(.param .b32 a)
{{ .reg .b32 %r<3>; ld.param.b32 %r1, [a]; popc.b32 %r2, %r1; st.param.b32 [r], %r2; ret; }}
.func (.param .b32 r) folded(.param .b32 a)
{{ .reg .b32 %r<4>; .reg .pred %p1; ld.param.b32 %r1, [a]; setp.eq.u32 %p1, %r1, 0; @%p1 bra E;
mul.hi.u32 %r2, %r1, %r1; {{ .param .b32 b; .param .b32 q; st.param.b32 [b], %r2;
call (q), folded, (b); ld.param.b32 %r3, [q]; }} xor.b32 %r1, %r1, %r3;
E: st.param.b32 [r], %r1; ret; }}
.global .u64 table[2] = {{twice, other}};
"""
KERNEL: Final = """
.entry {name}(.param .u64 out, .param .u64 in, .param .u64 image)
{{
.reg .pred %p<4>; .reg .b32 %r<40>; .reg .f32 %f<40>; .reg .b64 %rd<20>; .reg .f64 %fd<20>;
.shared .align 1024 .b8 tile[4096];
ld.param.u64 %rd1, [out]; ld.param.u64 %rd2, [in]; ld.param.u64 %rd3, [image];
mov.u32 %r1, %tid.x; mad.wide.u32 %rd4, %r1, 4, %rd1; mad.wide.u32 %rd5, %r1, 4, %rd2;
ld.global.v4.b32 {{%r10, %r11, %r12, %r13}}, [%rd5]; ld.global.v2.f64 {{%fd1, %fd2}}, [%rd5];
{body}
st.global.v4.b32 [%rd4], {{%r2, %r3, %r4, %r5}}; st.global.v2.f64 [%rd4+64], {{%fd3, %fd4}};
ret;
}}
"""
ZEROS: Final = (
    "mov.b32 %r2, 0; mov.b32 %r3, 0; mov.b32 %r4, 0; mov.b32 %r5, 0; "
    "mov.f64 %fd3, 0d0000000000000000; mov.f64 %fd4, %fd3;\n"
)


class Construct(NamedTuple):
    """A kernel's name, the targets that take it, its body, and opcodes that it must be made of."""

    name: str
    targets: tuple[str, ...]
    body: str
    opcodes: tuple[str, ...]


ALL: Final = ("sm_75", "sm_80", "sm_90a", "sm_100a", "sm_120a")
AMPERE: Final = ALL[1:]
HOPPER: Final = ("sm_90a",)
_ASYNC: Final = (
    "mov.u32 %r6, tile; cvt.u64.u32 %rd6, %r6; shr.u64 %rd6, %rd6, 4; wgmma.fence.sync.aligned;\n"
)
_DONE: Final = "\nwgmma.commit_group.sync.aligned; wgmma.wait_group.sync.aligned 0;"
_FLOATS: Final = "{%f1, %f2, %f3, %f4}"
_INTEGERS: Final = "{%r2, %r3, %r4, %r5}"
_MOVED: Final = "\nmov.b32 %r2, %f1; mov.b32 %r3, %f2; mov.b32 %r4, %f3; mov.b32 %r5, %f4;"
_FLOAT_ZEROS: Final = (
    "mov.f32 %f1, 0f00000000; mov.f32 %f2, %f1; mov.f32 %f3, %f1; mov.f32 %f4, %f1;\n"
)

CONSTRUCTS: Final = (
    Construct(
        "jump_table", ALL,
        "and.b32 %r6, %r10, 3; ts: .branchtargets L0, L1, L2, L3; brx.idx %r6, ts;\n"
        "L0: mul.lo.u32 %r2, %r11, %r12; bra.uni D;\nL1: popc.b32 %r2, %r11; bra.uni D;\n"
        "L2: brev.b32 %r2, %r13; bra.uni D;\nL3: clz.b32 %r2, %r11;\nD:",
        ("BRX",),
    ),
    Construct(
        "direct_call", ALL,
        "{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r10; call (r), folded, (a);\n"
        "ld.param.b32 %r2, [r]; }",
        ("CALL", "RET"),
    ),
    Construct(
        "indirect_call", ALL,
        "and.b32 %r6, %r10, 1; mov.u64 %rd6, table; mad.wide.u32 %rd6, %r6, 8, %rd6;\n"
        "ld.global.u64 %rd7, [%rd6];\n"
        "{ .param .b32 a; .param .b32 r; st.param.b32 [a], %r11;\n"
        "proto: .callprototype (.param .b32 _) _ (.param .b32 _);\n"
        "call (r), %rd7, (a), proto; ld.param.b32 %r2, [r]; }",
        ("CALL",),
    ),
    Construct(
        "divergent_exits", ALL,
        "setp.eq.u32 %p1, %r10, 7; @%p1 exit; mov.b32 %r6, 0;\n"
        "W: setp.gt.u32 %p2, %r6, %r11; @%p2 bra X; mul.hi.u32 %r6, %r6, %r12;\n"
        "setp.eq.u32 %p3, %r6, %r13; @%p3 exit; add.u32 %r2, %r2, %r6;\n"
        "shfl.sync.idx.b32 %r6, %r6, 3, 31, -1; bra W;\nX: bar.warp.sync %r11; bar.sync 0;",
        ("EXIT", "WARPSYNC"),
    ),
    Construct(
        "reconvergence", ALL,
        "setp.ge.u32 %p1, %r1, %r10; @%p1 bra B; mov.b32 %r6, 0; mov.b64 %rd6, %rd5;\n"
        "A: ld.global.b32 %r7, [%rd6]; add.s64 %rd6, %rd6, 4; rem.u32 %r7, %r7, %r11;\n"
        "add.u32 %r2, %r2, %r7; add.u32 %r6, %r6, 1; setp.lt.u32 %p2, %r6, %r12; @%p2 bra A;\n"
        "B: shfl.sync.bfly.b32 %r2, %r2, 1, 31, -1; vote.sync.ballot.b32 %r3, %p1, -1;",
        ("BSSY", "BSYNC", "SHFL", "VOTE"),
    ),
    Construct(
        "int8_product", ALL,
        "mma.sync.aligned.m8n8k16.row.col.s32.s8.s8.s32 {%r2, %r3}, {%r10}, {%r11}, {%r2, %r3};",
        ("IMMA",),
    ),
    Construct(
        "bit_product", ("sm_75", "sm_80"),
        "mma.sync.aligned.m8n8k128.row.col.s32.b1.b1.s32.xor.popc "
        "{%r2, %r3}, {%r10}, {%r11}, {%r2, %r3};",
        ("BMMA",),
    ),
    Construct(
        "half_product", ALL,
        "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%r2, %r3}, {%r10, %r11}, {%r12}, "
        "{%r2, %r3};",
        ("HMMA",),
    ),
    Construct(
        "double_product", AMPERE,
        "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%fd3, %fd4}, {%fd1}, {%fd2}, "
        "{%fd3, %fd4};",
        ("DMMA",),
    ),
    Construct(
        "fp8_product", ("sm_120a",),
        f"{_FLOAT_ZEROS}mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e4m3.f32 {_FLOATS}, "
        f"{{%r10, %r11, %r12, %r13}}, {{%r11, %r12}}, {_FLOATS};{_MOVED}",
        ("QMMA",),
    ),
    Construct(
        "half_products_of_a_warpgroup", HOPPER,
        f"{_FLOAT_ZEROS}{_ASYNC}wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {_FLOATS}, %rd6, "
        f"%rd6, 1, 1, 1, 0, 0;{_DONE}{_MOVED}",
        ("HGMMA",),
    ),
    Construct(
        "fp8_products_of_a_warpgroup", HOPPER,
        f"{_FLOAT_ZEROS}{_ASYNC}wgmma.mma_async.sync.aligned.m64n8k32.f32.e4m3.e5m2 {_FLOATS}, "
        f"{{%r10, %r11, %r12, %r13}}, %rd6, 1, 1, 1;{_DONE}{_MOVED}",
        ("QGMMA",),
    ),
    Construct(
        "int8_products_of_a_warpgroup", HOPPER,
        f"{_ASYNC}wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {_INTEGERS}, %rd6, "
        f"%rd6, 1;{_DONE}",
        ("IGMMA",),
    ),
    Construct(
        "bit_products_of_a_warpgroup", HOPPER,
        f"{_ASYNC}wgmma.mma_async.sync.aligned.m64n8k256.s32.b1.b1.and.popc {_INTEGERS}, %rd6, "
        f"%rd6, 1;{_DONE}",
        ("BGMMA",),
    ),
    Construct(
        "async_copy", AMPERE,
        "mov.u32 %r6, tile; mad.lo.u32 %r6, %r1, 16, %r6; cp.async.cg.shared.global [%r6], "
        "[%rd5], 16; cp.async.commit_group; cp.async.wait_group 0; bar.sync 0; "
        "ld.shared.b32 %r2, [%r6+16];",
        ("LDGSTS",),
    ),
    Construct(
        "textures", ALL,
        "cvt.rn.f32.u32 %f5, %r10; tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd3, {%f5, %f5}];\n"
        "tld4.r.2d.v4.f32.f32 {%f6, %f7, %f8, %f9}, [%rd3, {%f5, %f1}]; add.f32 %f1, %f6, %f9;\n"
        f"txq.width.b32 %r6, [%rd3];{_MOVED} add.u32 %r5, %r5, %r6;",
        ("TEX", "TLD4", "TXQ"),
    ),
    Construct(
        "surfaces", ALL,
        "suld.b.1d.b32.trap {%r2}, [%rd3, {%r10}]; sust.b.1d.b32.trap [%rd3, {%r11}], {%r2};\n"
        "sured.b.add.1d.u32.trap [%rd3, {%r12}], %r2;",
        ("SULD", "SUST", "SURED"),
    ),
    Construct(
        "atomics", ALL,
        "atom.global.add.u32 %r2, [%rd5], %r11; red.global.max.u32 [%rd5], %r12;\n"
        "mov.u32 %r6, tile; atom.shared.cas.b32 %r3, [%r6], %r11, %r12;\n"
        "atom.global.cas.b64 %rd8, [%rd5], %rd3, %rd4; cvt.u32.u64 %r4, %rd8;\n"
        "match.any.sync.b32 %r5, %r10, -1;",
        ("ATOMG", "ATOMS", "MATCH"),
    ),
    Construct(
        "local_array", ALL,
        ".local .align 16 .b8 cells[64]; mov.u64 %rd6, cells; and.b32 %r6, %r10, 15;\n"
        "mad.wide.u32 %rd7, %r6, 4, %rd6; st.local.v4.b32 [%rd6], {%r10, %r11, %r12, %r13};\n"
        "st.local.b32 [%rd7], %r12; ld.local.b32 %r2, [%rd7]; and.b32 %r7, %r11, 15;\n"
        "mad.wide.u32 %rd7, %r7, 4, %rd6; ld.local.b32 %r3, [%rd7];",
        ("STL", "LDL"),
    ),
)  # fmt: skip


def module(target: str) -> str:
    """All constructs that a target takes, a kernel each."""
    kernels = [
        KERNEL.format(name=c.name, body=ZEROS + c.body) for c in CONSTRUCTS if target in c.targets
    ]
    return HEAD.format(target=target) + "".join(kernels)
