"""Accesses that nothing orders: what racecheck is for, in shared memory."""

from __future__ import annotations

from functools import cache
from typing import Final

import numpy as np

from defects.kit import ROOT, Defect, Launch, Tensor, blank, kernel, numbered

TILE: Final = ".shared .align 16 .b8 tile[256];\n"
INPUT: Final = Tensor(numbered(64))

REVERSED: Final = kernel(
    """
  mov.u32 %r3, tile;
  mad.lo.s32 %r4, %r0, 4, %r3;
  ld.global.b32 %r5, [%rd10];
  st.shared.b32 [%r4], %r5;
  bar.sync 0;
  xor.b32 %r6, %r0, 63;
  mad.lo.s32 %r6, %r6, 4, %r3;
  ld.shared.b32 %r7, [%r6]; //~ EMU905 thread 0
  st.global.b32 [%rd11], %r7;
""",
    "pp",
    TILE,
)

ROUNDS: Final = kernel(
    """
  mov.u32 %r3, tile;
  mad.lo.s32 %r4, %r0, 4, %r3;
  xor.b32 %r6, %r0, 63;
  mad.lo.s32 %r6, %r6, 4, %r3;
  ld.global.b32 %r5, [%rd10];
  mov.b32 %r8, 0;
round:
  st.shared.b32 [%r4], %r5; //~ EMU905 thread 0
  bar.sync 0;
  ld.shared.b32 %r7, [%r6];
  add.s32 %r5, %r5, %r7;
  bar.sync 0; // before the next round's store
  add.s32 %r8, %r8, 1;
  setp.lt.s32 %p0, %r8, 4;
  @%p0 bra round;
  st.global.b32 [%rd11], %r5;
""",
    "pp",
    TILE,
)

BUFFERS: Final = kernel(
    """
  mov.u32 %r3, tile;
  mad.lo.s32 %r4, %r0, 4, %r3;
  xor.b32 %r6, %r0, 63;
  mad.lo.s32 %r6, %r6, 4, %r3;
  ld.global.b32 %r5, [%rd10];
  mov.b32 %r8, 0;
  mov.b32 %r9, 256;
  mov.b32 %r20, 0;
round:
  add.s32 %r21, %r4, %r20;
  st.shared.b32 [%r21], %r5; //~ EMU905 thread 0
  bar.sync 0;
  add.s32 %r22, %r6, %r20;
  ld.shared.b32 %r7, [%r22];
  add.s32 %r5, %r5, %r7;
  xor.b32 %r20, %r20, %r9;
  add.s32 %r8, %r8, 1;
  setp.lt.s32 %p0, %r8, 4;
  @%p0 bra round;
  st.global.b32 [%rd11], %r5;
""",
    "pp",
    ".shared .align 16 .b8 tile[512];\n",
)

WITHIN_A_WARP: Final = kernel(
    """
  mov.u32 %r3, tile;
  mad.lo.s32 %r4, %r0, 4, %r3;
  xor.b32 %r6, %r0, 31;
  mad.lo.s32 %r6, %r6, 4, %r3;
  ld.global.b32 %r5, [%rd10];
  st.shared.b32 [%r4], %r5;
  bar.warp.sync -1;
  ld.shared.b32 %r7, [%r6]; //~ EMU905 thread 0
  st.global.b32 [%rd11], %r7;
""",
    "pp",
    TILE,
)

LANES_ON_ONE_CELL: Final = kernel(
    """
  mov.u32 %r3, tile;
  ld.global.b32 %r5, [%rd10];
  setp.eq.s32 %p0, %r0, 0;
  @%p0 st.shared.b32 [%r3], %r5;
  bar.sync 0;
  ld.shared.b32 %r7, [%r3];
  st.global.b32 [%rd11], %r7;
""",
    "pp",
    TILE,
)

HISTOGRAM: Final = kernel(
    """
  mov.u32 %r3, tile;
  mad.lo.s32 %r4, %r0, 4, %r3;
  st.shared.b32 [%r4], 0;
  bar.sync 0;
  ld.global.b32 %r5, [%rd10];
  and.b32 %r5, %r5, 15;
  mad.lo.s32 %r6, %r5, 4, %r3;
  red.shared.add.u32 [%r6], 1;
  bar.sync 0;
  ld.shared.b32 %r7, [%r4];
  st.global.b32 [%rd11], %r7;
""",
    "pp",
    TILE,
)
_COUNT: Final = "red.shared.add.u32 [%r6], 1;"

CLEARED: Final = kernel(
    """
  mov.u32 %r3, tile;
  setp.eq.s32 %p0, %r0, 0;
  @%p0 st.shared.b32 [%r3], 0;
  bar.sync 0;
  ld.global.b32 %r5, [%rd10];
  red.shared.add.u32 [%r3], %r5; //~ EMU905 thread 32
  bar.sync 0;
  ld.shared.b32 %r7, [%r3];
  st.global.b32 [%rd11], %r7;
""",
    "pp",
    TILE,
)

HALVES: Final = kernel(
    """
  mov.u32 %r3, tile;
  mad.lo.s32 %r4, %r0, 4, %r3;
  xor.b32 %r6, %r0, 63;
  mad.lo.s32 %r6, %r6, 4, %r3;
  ld.global.b32 %r5, [%rd10];
  st.shared.b32 [%r4], %r5;
  shr.u32 %r7, %r0, 6;
  add.s32 %r7, %r7, 1;
  bar.sync %r7, 64;
  ld.shared.b32 %r8, [%r6]; //~ EMU905 thread 0
  st.global.b32 [%rd11], %r8;
""",
    "pp",
    ".shared .align 16 .b8 tile[512];\n",
)

SAME_CELL: Final = kernel(
    """
  mad.wide.s32 %rd3, %r1, 4, %rd0;
  setp.eq.s32 %p0, %r0, 0;
  @%p0 st.global.b32 [%rd3], %r1;
""",
    "p",
)

OVERLAP: Final = kernel(
    """
  mad.lo.s32 %r3, %r1, 64, %r0;
  mad.wide.s32 %rd3, %r3, 4, %rd0;
  ld.global.b32 %r4, [%rd3];
  add.s32 %r4, %r4, 1;
  mad.wide.s32 %rd4, %r3, 4, %rd1;
  st.global.b32 [%rd4], %r4; //~ EMU905 thread 32
""",
    "pp",
)

COUNTER: Final = kernel(
    """
  setp.eq.s32 %p0, %r0, 0;
  @%p0 red.global.add.u32 [%rd0], 1;
""",
    "p",
)

TOTAL: Final = kernel(
    """
  ld.global.b32 %r3, [%rd11];
  red.global.add.u32 [%rd0], %r3;
""",
    "pp",
)

GLOBAL: Final = kernel(
    """
  ld.global.b32 %r3, [%rd10];
  st.global.b32 [%rd11], %r3;
  bar.sync 0;
  xor.b32 %r4, %r0, 63;
  mad.wide.s32 %rd3, %r4, 4, %rd1;
  ld.global.b32 %r5, [%rd3]; //~ EMU905 thread 0
  st.global.b32 [%rd12], %r5;
""",
    "ppp",
)

IN_PLACE: Final = kernel(
    """
  xor.b32 %r3, %r0, 63;
  mad.wide.s32 %rd3, %r3, 4, %rd0;
  ld.global.b32 %r4, [%rd3];
  bar.sync 0;
  st.global.b32 [%rd10], %r4;
""",
    "p",
)

TICKET: Final = kernel(
    """
  .shared .align 4 .b32 last;
  st.global.b32 [%rd10], %r2;
  membar.gl; // for those who take the ticket later
  bar.sync 0;
  setp.eq.s32 %p0, %r0, 0;
  mov.b32 %r3, 0;
  @%p0 atom.global.add.u32 %r3, [%rd1], 1;
  @%p0 st.shared.b32 [last], %r3;
  bar.sync 0;
  ld.shared.b32 %r3, [last];
  setp.ne.s32 %p1, %r3, 1;
  @%p1 bra done;
  membar.gl;
  mad.wide.s32 %rd3, %r0, 4, %rd0;
  ld.volatile.global.b32 %r4, [%rd3];
  ld.volatile.global.b32 %r5, [%rd3+256]; //~ EMU905 thread 0
  add.s32 %r4, %r4, %r5;
  mad.wide.s32 %rd4, %r0, 4, %rd2;
  st.global.b32 [%rd4], %r4;
done:
""",
    "ppp",
)


@cache
def softmax() -> str:
    """Triton's softmax, a row a program."""
    return (ROOT / "fixtures/ptx/sm_80/softmax.ptx").read_text(encoding="utf-8")


@cache
def rows() -> Launch:
    """Of softmax: two rows of 1000."""
    x = np.random.default_rng(0).standard_normal((2, 1000)).astype(np.float32)
    arguments = (Tensor(np.zeros_like(x), "blank"), Tensor(x), 1000, 1000, 1000, 0, 0)
    return Launch(arguments, threads=128, grid=(2, 1, 1), shared=16)


DEFECTS: Final = (
    Defect("barrier taken out", "racecheck",
           "Threads read what threads of the other warp stored to shared memory, without a "
           "barrier.",
           REVERSED, Launch((INPUT, blank(64))), (("  bar.sync 0;\n", ""),)),
    Defect("barrier of a warp for one of the CTA", "racecheck",
           "The barrier between the store and the load holds the lanes of each warp alone.",
           REVERSED, Launch((INPUT, blank(64))), (("bar.sync 0;", "bar.warp.sync -1;"),)),
    Defect("second barrier of a loop taken out", "racecheck",
           "The next round stores while slower warps still read what this one stored.",
           ROUNDS, Launch((INPUT, blank(64))),
           (("  bar.sync 0; // before the next round's store\n", ""),)),
    Defect("two buffers that are one", "racecheck",
           "The buffers of even and odd rounds are meant to be 256 bytes apart, and are 0 apart.",
           BUFFERS, Launch((INPUT, blank(64))), (("mov.b32 %r9, 256;", "mov.b32 %r9, 0;"),)),
    Defect("barriers with different names", "racecheck",
           "The halves of the CTA wait at a barrier each; they exchange data across the halves.",
           HALVES, Launch((Tensor(numbered(128)), blank(128)), threads=128),
           (("xor.b32 %r6, %r0, 63;", "xor.b32 %r6, %r0, 127;"),)),
    Defect("warp barrier taken out", "racecheck",
           "Lanes of a warp exchange data through shared memory without bar.warp.sync.",
           WITHIN_A_WARP, Launch((INPUT, blank(64))), (("  bar.warp.sync -1;\n", ""),)),
    Defect("lanes that store to one cell", "racecheck",
           "One lane should store; all lanes of a warp do, each another number.",
           LANES_ON_ONE_CELL, Launch((INPUT, blank(32)), threads=32),
           (("@%p0 st.shared.b32 [%r3], %r5;", "st.shared.b32 [%r3], %r5;"),),
           unseen="Lanes of a warp that reduced together all store their result, equal but for "
                  "the order of sums: it would be told of right kernels."),
    Defect("warps that store to one cell", "racecheck",
           "One thread should store; one of each warp does, each another number.",
           LANES_ON_ONE_CELL, Launch((INPUT, blank(64))),
           (("setp.eq.s32 %p0, %r0, 0;", "and.b32 %r6, %r0, 31;\n  setp.eq.s32 %p0, %r6, 0;"),
            ("@%p0 st.shared.b32 [%r3], %r5;",
             "@%p0 st.shared.b32 [%r3], %r5; //~ EMU905 thread 32"))),
    Defect("plain sums for atomic ones in shared memory", "racecheck",
           "Bins of a histogram are loaded, counted up and stored.",
           HISTOGRAM, Launch((INPUT, blank(64))),
           ((_COUNT, "ld.shared.b32 %r8, [%r6];\n  add.s32 %r8, %r8, 1;\n"
                     "  st.shared.b32 [%r6], %r8; //~ EMU905 thread 0"),)),
    Defect("plain store among atomic sums", "racecheck",
           "A thread clears the sum; no barrier keeps the others' additions behind that.",
           CLEARED, Launch((INPUT, blank(64))),
           (("  bar.sync 0;\n  ld.global.b32 %r5", "  ld.global.b32 %r5"),)),
    Defect("barrier taken out of Triton's softmax", "racecheck",
           "The first barrier of the reduction over warps is gone.",
           softmax, rows,
           (("\tbar.sync \t0;\n\tand.b32 \t%r51, %r20, 12;", "\tand.b32 \t%r51, %r20, 12;"),
            ("ld.shared.b32 \t%r53, [%r52];",
             "ld.shared.b32 \t%r53, [%r52]; //~ EMU905 thread 1"),
            ), arch="sm_90"),
    Defect("programs that store to one cell", "none",
           "Each program should store to a cell of its own; all store to the first.",
           SAME_CELL, Launch((blank(4),), grid=(4, 1, 1)),
           (("mad.wide.s32 %rd3, %r1, 4, %rd0;", "mov.b64 %rd3, %rd0;"),
            ("[%rd3], %r1;", "[%rd3], %r1; //~ EMU905 thread 0 of program 1"))),
    Defect("programs that read what others overwrite", "none",
           "Input and output are one tensor, and rows of the programs overlap.",
           OVERLAP, Launch((Tensor(numbered(128)), blank(128)), grid=(2, 1, 1)),
           (("mad.lo.s32 %r3, %r1, 64, %r0;", "mad.lo.s32 %r3, %r1, 32, %r0;"),
            ("mad.wide.s32 %rd4, %r3, 4, %rd1;", "mad.wide.s32 %rd4, %r3, 4, %rd0;"))),
    Defect("plain sum for an atomic one", "none",
           "A counter of all programs is loaded, counted up and stored.",
           COUNTER, Launch((Tensor(np.zeros(1, dtype=np.int32)),), grid=(4, 1, 1)),
           (("@%p0 red.global.add.u32 [%rd0], 1;",
             "@%p0 ld.global.b32 %r3, [%rd0];\n  add.s32 %r3, %r3, 1;\n"
             "  @%p0 st.global.b32 [%rd0], %r3; //~ EMU905 thread 0"),)),
    Defect("plain store among atomic sums of other programs", "none",
           "Each program clears the total before it adds to it.",
           TOTAL, Launch((Tensor(np.zeros(1, dtype=np.int32)), Tensor(numbered(128))), grid=(2, 1,
           1)),
           (("  red.global.add.u32 [%rd0], %r3;",
             "  setp.eq.s32 %p0, %r0, 0;\n  @%p0 st.global.b32 [%rd0], 0;\n  bar.sync 0;\n"
             "  red.global.add.u32 [%rd0], %r3; //~ EMU905 thread 0"),)),
    Defect("barrier taken out between global accesses", "none",
           "Threads of the CTA exchange data through global memory without a barrier.",
           GLOBAL, Launch((INPUT, blank(64), blank(64))), (("  bar.sync 0;\n", ""),)),
    Defect("reversal in place without a barrier", "none",
           "Each thread stores where another one may not have loaded yet.",
           IN_PLACE, Launch((INPUT,)),
           (("  bar.sync 0;\n", ""),
            ("st.global.b32 [%rd10], %r4;", "st.global.b32 [%rd10], %r4; //~ EMU905 thread 0"))),
    Defect("programs that do not wait for each other", "none",
           "The last program to come should add up what all stored; the first does so as well.",
           TICKET, Launch((blank(128), Tensor(np.zeros(1, dtype=np.int32)), blank(64)), grid=(2, 1,
           1)),
           (("setp.ne.s32 %p1, %r3, 1;", "setp.lt.s32 %p1, %r3, 0;"),)),
    Defect("fence taken out in front of a ticket", "none",
           "What a program stored need not be there for the one that sees its ticket.",
           TICKET.replace("%r5, [%rd3+256]; //~ EMU905 thread 0", "%r5, [%rd3+256];").replace(
               "%r4, [%rd3];", "%r4, [%rd3]; //~ EMU905 thread 0 of program 1"),
           Launch((blank(128), Tensor(np.zeros(1, dtype=np.int32)), blank(64)), grid=(2, 1, 1)),
           (("  membar.gl; // for those who take the ticket later\n", ""),)),
)  # fmt: skip
"""What racecheck is for, and what it would be for in global memory."""
