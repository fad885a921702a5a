"""Reads of what nothing was written to: what initcheck is for, in global memory."""

from __future__ import annotations

from typing import Final

import numpy as np

from defects.kit import Defect, Launch, Tensor, blank, kernel, numbered

ZEROS: Final = Tensor(np.zeros(64, dtype=np.int32))
INPUT: Final = Tensor(numbered(64))

SUM: Final = kernel(
    """
  ld.global.b32 %r3, [%rd10];
  ld.global.b32 %r4, [%rd11]; //~ EMU904 thread 0
  add.s32 %r4, %r4, %r3;
  st.global.b32 [%rd11], %r4; //~ EMU912 thread 0
""",
    "pp",
)

ATOMIC: Final = kernel(
    """
  ld.global.b32 %r3, [%rd10];
  and.b32 %r4, %r3, 7;
  mad.wide.u32 %rd3, %r4, 4, %rd1;
  red.global.add.u32 [%rd3], %r3; //~ EMU904 thread 0
""",
    "pp",
)

SCRATCH: Final = kernel(
    """
  ld.global.b32 %r3, [%rd10];
  st.global.b32 [%rd12], %r3;
  bar.sync 0;
  xor.b32 %r4, %r0, 63;
  mad.wide.s32 %rd3, %r4, 4, %rd2;
  ld.global.b32 %r5, [%rd3]; //~ EMU904 thread 0
  st.global.b32 [%rd11], %r5; //~ EMU912 thread 0
""",
    "ppp",
)

TILE: Final = ".shared .align 16 .b8 tile[256];\n"
SHARED: Final = kernel(
    """
  mov.u32 %r3, tile;
  mad.lo.s32 %r4, %r0, 4, %r3;
  ld.global.b32 %r5, [%rd10];
  st.shared.b32 [%r4], %r5;
  bar.sync 0;
  xor.b32 %r6, %r0, 63;
  mad.lo.s32 %r6, %r6, 4, %r3;
  ld.shared.b32 %r7, [%r6];
  st.global.b32 [%rd11], %r7; //~ EMU912 thread 0
""",
    "pp",
    TILE,
)

WORDS: Final = kernel(
    """
  mov.u32 %r3, tile;
  mad.lo.s32 %r4, %r0, 4, %r3;
  cvt.u16.u32 %rs1, %r0;
  st.shared.b8 [%r4], %rs1;
  st.shared.b8 [%r4+1], %rs1;
  st.shared.b8 [%r4+2], %rs1;
  st.shared.b8 [%r4+3], %rs1;
  ld.shared.b32 %r7, [%r4];
  st.global.b32 [%rd10], %r7; //~ EMU912 thread 0
""",
    "p",
    TILE,
)

FILL: Final = kernel(
    """
  setp.lt.s32 %p0, %r2, %r12;
  mov.b32 %r3, 0;
  @%p0 ld.global.b32 %r3, [%rd10];
  st.global.b32 [%rd11], %r3; //~ EMU912 thread 50
""",
    "ppi",
)

BRANCH: Final = kernel(
    """
  setp.lt.s32 %p0, %r2, %r12;
  mov.b32 %r3, 0;
  mov.b32 %r4, 1;
  @%p0 ld.global.b32 %r3, [%rd10];
  setp.gt.s32 %p1, %r3, 7;
  @%p1 bra large; //~ EMU912 thread 50
  mov.b32 %r4, 2;
large:
  st.global.b32 [%rd11], %r4;
""",
    "ppi",
)

ADDRESS: Final = kernel(
    """
  setp.lt.s32 %p0, %r2, %r12;
  mov.b32 %r3, 0;
  @%p0 ld.global.b32 %r3, [%rd10];
  mad.wide.s32 %rd3, %r3, 4, %rd1;
  ld.global.b32 %r4, [%rd3]; //~ EMU912 thread 50
  mad.wide.s32 %rd4, %r2, 4, %rd13;
  st.global.b32 [%rd13], %r4;
""",
    "ppip",
)

LOCAL: Final = kernel(
    """
  .local .align 4 .b8 stack[64];
  .reg .b32 %base;
  mov.u32 %base, stack;
  mov.u32 %r3, 0;
fill:
  mad.lo.s32 %r4, %r3, 4, %base;
  st.local.b32 [%r4], %r3;
  add.s32 %r3, %r3, 1;
  setp.lt.s32 %p0, %r3, %r11;
  @%p0 bra fill;
  and.b32 %r5, %r0, 15;
  mad.lo.s32 %r5, %r5, 4, %base;
  ld.local.b32 %r6, [%r5];
  st.global.b32 [%rd10], %r6; //~ EMU912 thread 15
""",
    "pi",
)

WARP_SUM: Final = kernel(
    """
  setp.lt.s32 %p0, %r0, 16;
  mov.b32 %r3, 0;
  @%p0 ld.global.b32 %r3, [%rd10];
  shfl.sync.bfly.b32 %r4, %r3, 16, 31, -1;
  add.s32 %r3, %r3, %r4;
  shfl.sync.bfly.b32 %r4, %r3, 8, 31, -1;
  add.s32 %r3, %r3, %r4;
  st.global.b32 [%rd11], %r3; //~ EMU912 thread 0
""",
    "pp",
)

MATRIX: Final = kernel(
    """
  mov.b32 %r20, 0;
  mov.b32 %r21, 0;
  mov.b32 %r22, 0;
  mov.b32 %r23, 0;
  ld.global.b32 %r30, [%rd10];
  ld.global.b32 %r31, [%rd10+128];
  ld.global.b32 %r32, [%rd10];
  ld.global.b32 %r33, [%rd10+128];
  ld.global.b32 %r34, [%rd10];
  ld.global.b32 %r35, [%rd10+128];
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32
    {%r20, %r21, %r22, %r23}, {%r30, %r31, %r32, %r33}, {%r34, %r35}, {%r20, %r21, %r22, %r23};
  mad.wide.s32 %rd3, %r0, 16, %rd1;
  st.global.v4.b32 [%rd3], {%r20, %r21, %r22, %r23}; //~ EMU912 thread 0
""",
    "pp",
)

DEFECTS: Final = (
    Defect("sum into memory that is not cleared", "initcheck",
           "The kernel adds to its output, which the host allocated and did not clear.",
           SUM, Launch((INPUT, ZEROS)), wrong_launch=Launch((INPUT, blank(64)))),
    Defect("atomic sum into memory that is not cleared", "initcheck",
           "As before, with an atomic addition.",
           ATOMIC, Launch((INPUT, Tensor(np.zeros(8, dtype=np.int32)))),
           wrong_launch=Launch((INPUT, blank(8)))),
    Defect("half of a buffer unwritten", "initcheck",
           "The first half of the CTA alone stores to the buffer that all of it reads.",
           SCRATCH, Launch((INPUT, blank(64), blank(64))),
           (("  st.global.b32 [%rd12]",
           "  setp.lt.s32 %p0, %r0, 32;\n  @%p0 st.global.b32 [%rd12]"),)),
    Defect("shared store taken out", "initcheck",
           "Nobody fills the array in shared memory that all read.",
           SHARED, Launch((INPUT, blank(64))), (("  st.shared.b32 [%r4], %r5;\n", ""),)),
    Defect("shared tail unwritten", "initcheck",
           "A mask keeps the last 14 threads from storing; others read their cells.",
           SHARED, Launch((INPUT, blank(64))),
           (("  st.shared.b32 [%r4], %r5;\n",
             "  setp.lt.s32 %p0, %r0, 50;\n  @%p0 st.shared.b32 [%r4], %r5;\n"),)),
    Defect("last byte of a word unwritten", "initcheck",
           "Three bytes are stored to shared memory, and four loaded.",
           WORDS, Launch((blank(64),)), (("  st.shared.b8 [%r4+3], %rs1;\n", ""),)),
    Defect("masked load without a fill, stored", "initcheck",
           "Where the mask does not hold, the register was never written; it is stored.",
           FILL, Launch((Tensor(numbered(50)), blank(64), 50)), (("  mov.b32 %r3, 0;\n", ""),)),
    Defect("masked load without a fill, branched on", "initcheck",
           "Where the mask does not hold, a branch depends on a register that was never written.",
           BRANCH, Launch((Tensor(numbered(50)), blank(64), 50)), (("  mov.b32 %r3, 0;\n", ""),)),
    Defect("masked load without a fill, as an index", "initcheck",
           "Where the mask does not hold, the index of a load was never written.",
           ADDRESS, Launch((Tensor(numbered(50)), INPUT, 50, blank(64))),
           (("  mov.b32 %r3, 0;\n", ""),)),
    Defect("local array half written", "initcheck",
           "The loop fills 15 cells of the thread's array; the 16th is read as well.",
           LOCAL, Launch((blank(64), 16)), wrong_launch=Launch((blank(64), 15))),
    Defect("reduction over lanes without a value", "initcheck",
           "Half of the warp loads, all of it takes part in the sum, and nothing is filled in.",
           WARP_SUM, Launch((INPUT, blank(32)), threads=32), (("  mov.b32 %r3, 0;\n", ""),)),
    Defect("accumulator not cleared", "initcheck",
           "The sums of a matrix product begin with registers that were never written.",
           MATRIX, Launch((Tensor(np.ones(128, dtype=np.float16).view(np.int32)), blank(128)),
           threads=32),
           tuple((f"  mov.b32 %r2{at}, 0;\n", "") for at in range(4))),
)  # fmt: skip
"""What initcheck is for, and what it would be for in other memories."""
