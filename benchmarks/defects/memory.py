"""Accesses to memory that is not theirs: what memcheck is for."""

from __future__ import annotations

from typing import Final

from defects.kit import Defect, Launch, Map, Tensor, blank, kernel, numbered
from ptxlint.dynamic.emulator.tensor_map import ELEMENTS, TensorMap

COPY: Final = kernel(
    """
  setp.lt.s32 %p0, %r2, %r12;
  mov.b32 %r3, 0;
  @%p0 ld.global.b32 %r3, [%rd10];
  @%p0 st.global.b32 [%rd11], %r3;
""",
    "ppi",
)
FIFTY: Final = Launch((Tensor(numbered(50)), blank(50), 50))

SHIFTED: Final = kernel(
    """
  sub.s32 %r3, %r2, 1;
  setp.ge.s32 %p0, %r3, 0;
  mov.b32 %r4, 0;
  @%p0 ld.global.b32 %r4, [%rd10+-4];
  st.global.b32 [%rd11], %r4;
""",
    "pp",
)

NEXT: Final = kernel(
    """
  add.s32 %r3, %r2, 1;
  setp.lt.s32 %p0, %r3, %r12;
  mov.b32 %r4, 0;
  @%p0 ld.global.b32 %r4, [%rd10+4];
  setp.lt.s32 %p1, %r2, %r12;
  @%p1 st.global.b32 [%rd11], %r4;
""",
    "ppi",
)

ROWS: Final = kernel(
    """
  mad.lo.s32 %r3, %r1, %r12, %r0;
  mad.wide.s32 %rd3, %r3, 4, %rd0;
  ld.global.b32 %r4, [%rd3]; //~ EMU901 thread 16 of program 3
  st.global.b32 [%rd11], %r4;
""",
    "ppi",
)


def _rows(pitch: int) -> Launch:
    return Launch((Tensor(numbered(256)), blank(128), pitch), threads=32, grid=(4, 1, 1))


VECTORS: Final = kernel(
    """
  shl.b32 %r3, %r2, 2;
  add.s32 %r4, %r3, 3;
  setp.lt.s32 %p0, %r4, %r12;
  mad.wide.s32 %rd3, %r3, 4, %rd0;
  mad.wide.s32 %rd4, %r3, 4, %rd1;
  @%p0 ld.global.v4.b32 {%r5, %r6, %r7, %r8}, [%rd3]; //~ EMU901 thread 12
  @%p0 st.global.v4.b32 [%rd4], {%r5, %r6, %r7, %r8}; //~ EMU901 thread 12
""",
    "ppi",
)

PAIRS: Final = kernel(
    """
  mad.wide.s32 %rd3, %r2, 8, %rd0;
  ld.global.v2.b32 {%r3, %r4}, [%rd3+8]; //~ EMU902 thread 0
  add.s32 %r3, %r3, %r4;
  st.global.b32 [%rd11], %r3;
""",
    "pp",
)


def _pairs(first: int) -> Launch:
    return Launch((Tensor(numbered(136), first=first), blank(64)))


SHARED: Final = ".shared .align 16 .b8 tile[256];\n"
NEIGHBOURS: Final = kernel(
    """
  mov.u32 %r3, tile;
  add.s32 %r4, %r0, 1;
  setp.eq.s32 %p0, %r4, 64;
  selp.b32 %r4, 0, %r4, %p0;
  mad.lo.s32 %r4, %r4, 4, %r3;
  st.shared.b32 [%r4], %r0; //~ EMU901 thread 63
  bar.sync 0;
  mad.lo.s32 %r5, %r0, 4, %r3;
  ld.shared.b32 %r6, [%r5];
  st.global.b32 [%rd10], %r6; //~ EMU912 thread 0
""",
    "p",
    SHARED,
)
WRAPS: Final = "  selp.b32 %r4, 0, %r4, %p0;\n"

TWO_ARRAYS: Final = kernel(
    """
  mov.u32 %r3, tile;
  mov.u32 %r4, flags;
  mad.lo.s32 %r5, %r0, 4, %r4;
  st.shared.b32 [%r5], 1;
  mad.lo.s32 %r6, %r0, 4, %r3;
  st.shared.b32 [%r6], 0;
  bar.sync 0;
  st.shared.b32 [%r6], 7;
  bar.sync 0;
  ld.shared.b32 %r7, [%r5];
  ld.shared.b32 %r8, [%r6];
  add.s32 %r7, %r7, %r8;
  st.global.b32 [%rd10], %r7;
""",
    "p",
    ".shared .align 16 .b8 tile[256];\n.shared .align 16 .b8 flags[256];\n",
)

LOCAL: Final = kernel(
    """
  .local .align 4 .b8 stack[64];
  .reg .b32 %base;
  mov.u32 %base, stack;
  mov.u32 %r3, 0;
fill:
  mad.lo.s32 %r4, %r3, 4, %base;
  st.local.b32 [%r4], %r3; //~ EMU901 thread 0
  add.s32 %r3, %r3, 1;
  setp.lt.s32 %p0, %r3, %r11;
  @%p0 bra fill;
  and.b32 %r5, %r0, 15;
  mad.lo.s32 %r5, %r5, 4, %base;
  ld.local.b32 %r6, [%r5];
  st.global.b32 [%rd10], %r6;
""",
    "pi",
)

TWO_LOCALS: Final = kernel(
    """
  .local .align 16 .b8 keys[64];
  .local .align 16 .b8 counts[64];
  .reg .b32 %keys, %counts;
  mov.u32 %keys, keys;
  mov.u32 %counts, counts;
  mov.u32 %r3, 0;
clear:
  mad.lo.s32 %r4, %r3, 4, %counts;
  st.local.b32 [%r4], 0;
  mad.lo.s32 %r4, %r3, 4, %keys;
  st.local.b32 [%r4], 0;
  add.s32 %r3, %r3, 1;
  setp.lt.s32 %p0, %r3, 16;
  @%p0 bra clear;
  mad.lo.s32 %r5, %r11, 4, %keys;
  st.local.b32 [%r5], 7;
  and.b32 %r6, %r0, 15;
  mad.lo.s32 %r7, %r6, 4, %keys;
  ld.local.b32 %r8, [%r7];
  mad.lo.s32 %r7, %r6, 4, %counts;
  ld.local.b32 %r9, [%r7];
  sub.s32 %r8, %r8, %r9;
  st.global.b32 [%rd10], %r8;
""",
    "pi",
)

PRODUCT: Final = kernel(
    """
  mul.lo.s32 %r3, %r12, %r13;
  add.s32 %r4, %r3, %r0;
  mad.wide.s32 %rd3, %r4, 4, %rd0;
  ld.global.b32 %r5, [%rd3]; //~ EMU913 thread 0
  st.global.b32 [%rd11], %r5;
""",
    "ppii",
)


def _product(row: int, stride: int) -> Launch:
    return Launch((Tensor(numbered(128)), blank(64), row, stride))


INTO_ANOTHER: Final = kernel(
    """
  setp.lt.s32 %p0, %r2, 32;
  sub.s64 %rd3, %rd1, %rd0;
  add.s64 %rd4, %rd0, 128;
  sub.s64 %rd4, %rd4, %rd1;
  add.s64 %rd5, %rd10, 0;
  ld.global.b32 %r3, [%rd5];
  st.global.b32 [%rd12], %r3;
""",
    "ppp",
)

BINS: Final = kernel(
    """
  ld.global.b32 %r3, [%rd10];
  min.u32 %r3, %r3, 15;
  mad.wide.u32 %rd3, %r3, 4, %rd1;
  red.global.add.u32 [%rd3], 1; //~ EMU901 thread 16
""",
    "pp",
)

ASYNC: Final = kernel(
    """
  mov.u32 %r3, tile;
  mad.lo.s32 %r4, %r0, 16, %r3;
  shl.b32 %r5, %r0, 2;
  sub.s32 %r6, %r12, %r5;
  max.s32 %r6, %r6, 0;
  min.s32 %r6, %r6, 4;
  shl.b32 %r7, %r6, 2;
  mad.wide.s32 %rd3, %r5, 4, %rd0;
  cp.async.cg.shared.global [%r4], [%rd3], 16, %r7; //~ EMU901 thread 12
  cp.async.commit_group;
  cp.async.wait_group 0;
  bar.sync 0;
  mad.lo.s32 %r8, %r0, 4, %r3;
  ld.shared.b32 %r9, [%r8];
  st.global.b32 [%rd11], %r9;
""",
    "ppi",
    ".shared .align 16 .b8 tile[1024];\n",
)

BULK: Final = kernel(
    """
  mov.u32 %r3, tile;
  mov.u32 %r4, bar;
  setp.eq.u32 %p0, %r0, 0;
  @%p0 mbarrier.init.shared::cta.b64 [%r4], 1;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 256;
  @%p0 cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r3], [%rd0], 256, [%r4];
wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], 0;
  @!%p1 bra wait;
  mad.lo.s32 %r5, %r0, 4, %r3;
  ld.shared.b32 %r6, [%r5];
  st.global.b32 [%rd11], %r6;
""",
    "pp",
    ".shared .align 8 .b64 bar;\n.shared .align 128 .b8 tile[256];\n",
)
BULK_LAUNCH: Final = Launch((Tensor(numbered(64)), blank(64)))
_EXPECTED: Final = "expect_tx.shared::cta.b64 _, [%r4], 256"
_COPIED: Final = "bytes [%r3], [%rd0], 256, [%r4];"

TILES: Final = kernel(
    """
  mov.u32 %r3, tile;
  mov.u32 %r4, bar;
  mov.b64 %rd3, k_param_0;
  cvta.param.u64 %rd3, %rd3;
  setp.eq.u32 %p0, %r0, 0;
  @%p0 mbarrier.init.shared::cta.b64 [%r4], 1;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 512;
  @%p0 //~ EMU901 thread 0
    cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes
    [%r3], [%rd3, {0, 0}], [%r4];
wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], 0;
  @!%p1 bra wait;
  mad.lo.s32 %r5, %r0, 4, %r3;
  ld.shared.b32 %r6, [%r5];
  st.global.b32 [%rd12], %r6;
""",
    "mpp",
    ".shared .align 8 .b64 bar;\n.shared .align 128 .b8 tile[512];\n",
)


def _tiles(rows: int) -> Launch:
    """A tile of 8 rows of 16 numbers, of a tensor of 6 rows whose map says that it has `rows`."""
    found = TensorMap(0, (16, rows), (64,), (16, 8), (1, 1), ELEMENTS.index("s32"))
    return Launch((Map(found, of=1), Tensor(numbered(96)), blank(64)))


DYNAMIC: Final = kernel(
    """
  mov.u32 %r3, room;
  mad.lo.s32 %r4, %r0, 4, %r3;
  st.shared.b32 [%r4], %r0; //~ EMU901 thread 32
  bar.sync 0;
  xor.b32 %r5, %r0, 63;
  mad.lo.s32 %r5, %r5, 4, %r3;
  ld.shared.b32 %r6, [%r5]; //~ EMU901 thread 0
  st.global.b32 [%rd10], %r6;
""",
    "p",
    ".extern .shared .align 16 .b8 room[];\n",
)

TABLE: Final = kernel(
    """
  and.b32 %r3, %r0, 7;
  mul.wide.u32 %rd3, %r3, 4;
  mov.u64 %rd4, table;
  add.s64 %rd3, %rd4, %rd3;
  ld.const.b32 %r4, [%rd3];
  st.global.b32 [%rd10], %r4;
""",
    "p",
    ".const .align 4 .b32 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n",
)

VARIABLE: Final = kernel(
    """
  and.b32 %r3, %r0, 7;
  mul.wide.u32 %rd3, %r3, 4;
  mov.u64 %rd4, table;
  add.s64 %rd3, %rd4, %rd3;
  ld.global.b32 %r4, [%rd3];
  st.global.b32 [%rd10], %r4;
""",
    "p",
    ".global .align 4 .b32 table[8] = {1, 2, 3, 4, 5, 6, 7, 8};\n",
)

UNCACHED: Final = kernel(
    """
  st.global.b32 [%rd10], %r0;
  bar.sync 0;
  xor.b32 %r3, %r0, 63;
  mad.wide.s32 %rd3, %r3, 4, %rd0;
  ld.global.b32 %r4, [%rd3];
  st.global.b32 [%rd11], %r4;
""",
    "pp",
)

GENERIC: Final = kernel(
    """
  mov.u64 %rd3, tile;
  mad.wide.u32 %rd3, %r0, 4, %rd3;
  st.shared.b32 [%rd3], %r0;
  cvta.shared.u64 %rd4, %rd3;
  ld.b32 %r3, [%rd4]; //~ EMU901 thread 0
  st.global.b32 [%rd10], %r3;
""",
    "p",
    SHARED,
)

DEFECTS: Final = (
    Defect("mask taken off a store", "memcheck",
           "The grid has more threads than the tensor has elements, and the store is not masked.",
           COPY, FIFTY,
           (("@%p0 st.global.b32 [%rd11], %r3;",
             "st.global.b32 [%rd11], %r3; //~ EMU901 thread 50"),)),
    Defect("index one too large", "memcheck",
           "The neighbour to the right is loaded with <= in the mask where < belongs.",
           NEXT, FIFTY,
           (("lt.s32 %p0", "le.s32 %p0"),
            ("[%rd10+4];", "[%rd10+4]; //~ EMU901 thread 49"))),
    Defect("negative index", "memcheck",
           "The neighbour to the left is loaded, of the first element as well.",
           SHIFTED, Launch((Tensor(numbered(64)), blank(64))),
           (("@%p0 ld.global.b32 %r4, [%rd10+-4];",
             "ld.global.b32 %r4, [%rd10+-4]; //~ EMU901 thread 0"),)),
    Defect("stride of another tensor", "memcheck",
           "Rows are taken to be further apart than they are, so that the last one is outside.",
           ROWS, _rows(64), wrong_launch=_rows(80)),
    Defect("vector over the end", "memcheck",
           "The mask of four elements looks at the first of them only.",
           VECTORS, FIFTY, (("add.s32 %r4, %r3, 3;", "mov.b32 %r4, %r3;"),)),
    Defect("misaligned vector", "memcheck",
           "Two elements are loaded at once from an odd one on.",
           PAIRS, _pairs(0), (("[%rd3+8];", "[%rd3+12];"),)),
    Defect("misaligned tensor", "memcheck",
           "The launch passes a tensor that begins 4 bytes late to a kernel that loads 8 at once.",
           PAIRS, _pairs(0), wrong_launch=_pairs(4)),
    Defect("null pointer", "memcheck",
           "The launch passes no tensor.",
           kernel("  ld.global.b32 %r3, [%rd10]; //~ EMU901 thread 0\n"
                  "  st.global.b32 [%rd11], %r3;", "pp"),
           Launch((Tensor(numbered(64)), blank(64))), wrong_launch=Launch((0, blank(64)))),
    Defect("freed tensor", "memcheck",
           "The memory was given back before the launch.",
           kernel("  ld.global.b32 %r3, [%rd10]; //~ EMU916 thread 0\n"
                  "  st.global.b32 [%rd11], %r3;", "pp"),
           Launch((Tensor(numbered(64)), blank(64))),
           wrong_launch=Launch((Tensor(numbered(64), "freed"), blank(64)))),
    Defect("input that is written to", "memcheck",
           "The result goes to the input, which the launch says is read only.",
           COPY,
           Launch((Tensor(numbered(50), "read_only"), blank(50), 50)),
           (("@%p0 st.global.b32 [%rd11], %r3;",
             "@%p0 st.global.b32 [%rd10], %r3; //~ EMU903 thread 0"),)),
    Defect("shared index too large", "memcheck",
           "The last thread's neighbour is not wrapped around: it lies behind the CTA's memory.",
           NEIGHBOURS, Launch((blank(64),)), ((WRAPS, ""),)),
    Defect("shared index into the next array", "memcheck",
           "The index is 64 too large; behind the array lies another one of the same CTA.",
           TWO_ARRAYS, Launch((blank(64),)),
           (("st.shared.b32 [%r6], 7;", "st.shared.b32 [%r6+256], 7;"),),
           unseen="Both arrays belong to the CTA; which of them an address was meant for is not "
                  "known."),
    Defect("too little dynamic shared memory", "memcheck",
           "The launch gives the kernel half of the shared memory that it uses.",
           DYNAMIC, Launch((blank(64),), shared=256),
           wrong_launch=Launch((blank(64),), shared=128)),
    Defect("local index too large", "memcheck",
           "The loop stores one number more than the thread's array holds.",
           LOCAL, Launch((blank(64), 16)), wrong_launch=Launch((blank(64), 17))),
    Defect("local index into the next array", "memcheck",
           "The index is one too large; behind the array lies another one of the same thread.",
           TWO_LOCALS, Launch((blank(64), 15)), wrong_launch=Launch((blank(64), 16)),
           unseen="Both arrays belong to the thread; which of them an address was meant for is "
                  "not known. ptxas lays these two the other way round: on the GPU nothing lies "
                  "behind the first one."),
    Defect("index that turns negative", "memcheck",
           "A row times a stride passes 2^31 in 32 bits: the offset is negative.",
           PRODUCT.replace("~ EMU913", "~ EMU901 thread 0, EMU913"),
           _product(1, 64), wrong_launch=_product(40000, 60000)),
    Defect("index that wraps to another row", "memcheck",
           "A row times a stride passes 2^32 in 32 bits: the offset is inside, of another row.",
           PRODUCT, _product(1, 64), wrong_launch=_product(1 << 16, 1 << 16)),
    Defect("index that leads into another tensor", "memcheck",
           "The offset is as large as the way to another tensor, which is read in its place.",
           INTO_ANOTHER, Launch((Tensor(numbered(64)), Tensor(numbered(64, 100)), blank(64))),
           (("add.s64 %rd5, %rd10, 0;", "add.s64 %rd5, %rd10, %rd3;"),),
           unseen="The address is another tensor's of the launch; whose pointer it was made from "
                  "is not followed."),
    Defect("bin beyond the histogram", "memcheck",
           "Numbers are not clipped before they choose the bin that is counted up.",
           BINS, Launch((Tensor(numbered(64)), Tensor(numbered(16)))),
           (("  min.u32 %r3, %r3, 15;\n", ""),)),
    Defect("asynchronous copy without a size", "memcheck",
           "cp.async reads 16 bytes each, also where fewer are left of the tensor.",
           ASYNC, FIFTY._replace(arguments=(*FIFTY.arguments[:1], blank(64), 50)),
           (("16, %r7;", "16;"),)),
    Defect("bulk copy of one piece too many", "memcheck",
           "The copy reads, and its barrier expects, 16 bytes more than the tensor has.",
           BULK.replace("tile[256]", "tile[512]"), BULK_LAUNCH,
           ((_EXPECTED, _EXPECTED.replace("256", "272")),
            (_COPIED, _COPIED.replace("256", "272") + " //~ EMU901 thread 0"))),
    Defect("bulk copy over the end of shared memory", "memcheck",
           "The copy's target begins 16 bytes late, so that its end lies behind the CTA's memory.",
           BULK.replace("[%rd11], %r6;", "[%rd11], %r6; //~ EMU912 thread 0"), BULK_LAUNCH,
           ((_COPIED, "bytes [%r3+16], [%rd0], 256, [%r4]; //~ EMU901 thread 0"),)),
    Defect("misaligned bulk copy", "memcheck",
           "A bulk copy's source must be a multiple of 16; the launch passes one that is not.",
           BULK.replace(_COPIED, _COPIED + " //~ EMU902 thread 0"),
           Launch((Tensor(numbered(68)), blank(64))),
           wrong_launch=Launch((Tensor(numbered(68), first=8), blank(64)))),
    Defect("tensor map larger than the tensor", "memcheck",
           "The map says that the tensor has 8 rows; memory for 6 was allocated.",
           TILES, _tiles(6), wrong_launch=_tiles(8)),
    Defect("constant table index too large", "memcheck",
           "The index is 8 for some threads, of a table of 8 constants.",
           TABLE, Launch((blank(64),)),
           (("and.b32 %r3, %r0, 7;", "and.b32 %r3, %r0, 8;"),
            ("ld.const.b32 %r4, [%rd3];", "ld.const.b32 %r4, [%rd3]; //~ EMU901 thread 8"))),
    Defect("module variable index too large", "memcheck",
           "The index is 8 for some threads, of a variable of 8 numbers in global memory.",
           VARIABLE, Launch((blank(64),)),
           (("and.b32 %r3, %r0, 7;", "and.b32 %r3, %r0, 8;"),
            ("ld.global.b32 %r4, [%rd3];", "ld.global.b32 %r4, [%rd3]; //~ EMU901 thread 8"))),
    Defect("shared address taken for a generic one", "memcheck",
           "An address of shared memory is used without cvta, which makes it one of nobody's.",
           GENERIC, Launch((blank(64),)), (("cvta.shared.u64 %rd4", "mov.u64 %rd4"),)),
    Defect("non-coherent load of what is written", "memcheck",
           "ld.global.nc promises that nobody writes there while the kernel runs; the kernel does.",
           UNCACHED, Launch((blank(64), blank(64))),
           (("ld.global.b32 %r4, [%rd3];",
             "ld.global.nc.b32 %r4, [%rd3]; //~ EMU905 thread 0"),)),
)  # fmt: skip
"""What memcheck is for."""
