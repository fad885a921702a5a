"""Barriers, masks and waits that are used against their rules: what synccheck is for."""

from __future__ import annotations

from typing import Final

import numpy as np

from defects.copies import WGMMA, WGMMA_LAUNCH
from defects.kit import Defect, Launch, Tensor, blank, kernel, numbered
from defects.memory import BULK, BULK_LAUNCH

INPUT: Final = Tensor(numbered(64))
TILE: Final = ".shared .align 16 .b8 tile[512];\n"

BRANCH: Final = kernel(
    """
  mov.u32 %r3, tile;
  mad.lo.s32 %r4, %r0, 4, %r3;
  st.shared.b32 [%r4], %r0;
  setp.ge.s32 %p0, %r0, 64;
  @%p0 bra after;
  bar.sync 0; //~ EMU907 thread 32
after:
  ld.shared.b32 %r5, [%r4];
  st.global.b32 [%rd10], %r5;
""",
    "p",
    TILE,
)

TWO_ARMS: Final = kernel(
    """
  setp.ge.s32 %p0, %r0, 0;
  @%p0 bra first;
  bar.sync 0; //~ EMU907 thread 16
  mov.b32 %r5, 1;
  bra after;
first:
  bar.sync 0; //~ EMU907 thread 0
  mov.b32 %r5, 2;
after:
  st.global.b32 [%rd10], %r5;
""",
    "p",
)

NAMED: Final = kernel(
    """
  setp.ge.s32 %p0, %r0, 32;
  @%p0 bra second;
  bar.sync 1, 64; //~ EMU906 thread 0
  bra after;
second:
  bar.arrive 1, 64;
after:
  st.global.b32 [%rd10], %r0;
""",
    "p",
)

COUNTED: Final = kernel(
    """
  bar.sync %r11, %r12; //~ EMU917 thread 0
  st.global.b32 [%rd10], %r0;
""",
    "pii",
)


def _counted(number: int, count: int) -> Launch:
    return Launch((blank(64), number, count))


EARLY: Final = kernel(
    """
  setp.ge.s32 %p0, %r0, 64;
  @%p0 ret;
  bar.sync 0, 64; //~ EMU906 thread 0
  st.global.b32 [%rd10], %r0;
""",
    "p",
)

SHUFFLE: Final = kernel(
    """
  ld.global.b32 %r3, [%rd10];
  setp.ge.s32 %p0, %r0, 32;
  @%p0 bra after;
  shfl.sync.bfly.b32 %r4, %r3, 1, 31, -1; //~ EMU907 thread 0
  add.s32 %r3, %r3, %r4;
after:
  st.global.b32 [%rd11], %r3;
  bar.warp.sync -1; //~ EMU907 thread 16
""",
    "pp",
)
ONE_WARP: Final = Launch((Tensor(numbered(32)), blank(32)), threads=32)

MASKED: Final = kernel(
    """
  ld.global.b32 %r3, [%rd10];
  shfl.sync.bfly.b32 %r4, %r3, 1, 31, 0xffffffff;
  st.global.b32 [%rd11], %r4;
""",
    "pp",
)

WARP_BARRIER: Final = kernel(
    """
  ld.global.b32 %r3, [%rd10];
  bar.warp.sync 0xffffffff;
  st.global.b32 [%rd11], %r3;
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
  setp.ge.s32 %p0, %r0, 32;
  @%p0 bra after;
  mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 //~ EMU907 thread 0
    {%r20, %r21, %r22, %r23}, {%r30, %r30, %r30, %r30}, {%r30, %r30}, {%r20, %r21, %r22, %r23};
after:
  mad.wide.s32 %rd3, %r0, 16, %rd1;
  st.global.v4.b32 [%rd3], {%r20, %r21, %r22, %r23};
""",
    "pp",
)
MATRIX_LAUNCH: Final = Launch(
    (Tensor(np.ones(64, dtype=np.float16).view(np.int32)), blank(128)), threads=32
)

ARRIVALS: Final = kernel(
    """
  mov.u32 %r4, bar;
  setp.eq.u32 %p0, %r0, 0;
  mov.b32 %r5, 64;
  @%p0 mbarrier.init.shared::cta.b64 [%r4], %r5;
  bar.sync 0;
  mbarrier.arrive.shared::cta.b64 %rd3, [%r4];
wait:
  mbarrier.try_wait.shared::cta.b64 %p1, [%r4], %rd3;
  @!%p1 bra wait;
  st.global.b32 [%rd10], %r0;
""",
    "p",
    ".shared .align 8 .b64 bar;\n",
)

SPIN: Final = kernel(
    """
  setp.eq.s32 %p0, %r1, 0;
  @%p0 bra first;
wait:
  ld.acquire.gpu.global.b32 %r3, [%rd1]; //~ EMU909 thread 0 of program 1
  setp.eq.s32 %p1, %r3, 0;
  @%p1 bra wait;
  bra done;
first:
  setp.eq.s32 %p2, %r0, 0;
  @%p2 st.release.gpu.global.b32 [%rd1], 1;
done:
  st.global.b32 [%rd10], %r0;
""",
    "pp",
)
SPIN_LAUNCH: Final = Launch((blank(128), Tensor(np.zeros(1, dtype=np.int32))), grid=(2, 1, 1))

TRAP: Final = kernel(
    """
  ld.global.b32 %r3, [%rd10];
  setp.lt.s32 %p0, %r3, %r12;
  @%p0 bra fine;
  trap; //~ EMU908 thread 50
fine:
  st.global.b32 [%rd11], %r3;
""",
    "ppi",
)

DEFECTS: Final = (
    Defect("barrier in a branch of half a warp", "synccheck",
           "Lanes of the second warp part in front of the barrier: 16 of them do not come to it.",
           BRANCH, Launch((blank(64),)), (("setp.ge.s32 %p0, %r0, 64;",
           "setp.ge.s32 %p0, %r0, 48;"),)),
    Defect("barrier in both arms of a branch", "synccheck",
           "Lanes of a warp wait at one barrier in two places, at instructions that are not the "
           "same.",
           TWO_ARMS, Launch((blank(64),)),
           (("setp.ge.s32 %p0, %r0, 0;", "and.b32 %r3, %r0, 16;\n  setp.eq.s32 %p0, %r3, 0;"),)),
    Defect("named barrier that waits for too many", "synccheck",
           "One warp waits for 96 threads where only 64 ever come.",
           NAMED, Launch((blank(64),)),
           (("bar.sync 1, 64;", "bar.sync 1, 96;"), ("bar.arrive 1, 64;", "bar.arrive 1, 96;")),
           hangs=True),
    Defect("arrival at another barrier", "synccheck",
           "One warp waits at barrier 1, the other one arrives at barrier 2.",
           NAMED, Launch((blank(64),)), (("bar.arrive 1, 64;", "bar.arrive 2, 64;"),), hangs=True),
    Defect("count that is no multiple of a warp", "synccheck",
           "The kernel is told to wait for 48 threads; counts go by warps.",
           COUNTED, _counted(1, 64), wrong_launch=_counted(1, 48)),
    Defect("barrier that there is not", "synccheck",
           "The kernel is told to wait at barrier 16; there are 16, from 0 on.",
           COUNTED, _counted(1, 64), wrong_launch=_counted(16, 64)),
    Defect("threads that leave before a counted barrier", "synccheck",
           "A warp returns early, and the other one waits for it at a barrier with a count.",
           EARLY, Launch((blank(64),)), (("setp.ge.s32 %p0, %r0, 64;",
           "setp.ge.s32 %p0, %r0, 32;"),),
           hangs=True),
    Defect("shuffle mask with absent lanes", "synccheck",
           "The mask names all lanes; half of them wait at a barrier of the warp.",
           SHUFFLE, ONE_WARP, (("setp.ge.s32 %p0, %r0, 32;", "setp.ge.s32 %p0, %r0, 16;"),),
           hangs=True),
    Defect("shuffle mask without the own lane", "synccheck",
           "The mask names the lower half of the warp; all of it shuffles.",
           MASKED, ONE_WARP, (("0xffffffff;", "0x0000ffff; //~ EMU907 thread 16"),)),
    Defect("warp barrier mask without the own lane", "synccheck",
           "The mask names the lower half of the warp; all of it comes.",
           WARP_BARRIER, ONE_WARP, (("0xffffffff;", "0x0000ffff; //~ EMU907 thread 16"),)),
    Defect("matrix product of half a warp", "synccheck",
           "mma.sync asks for all lanes; half of them take another way.",
           MATRIX, MATRIX_LAUNCH, (("setp.ge.s32 %p0, %r0, 32;", "setp.ge.s32 %p0, %r0, 16;"),)),
    Defect("wgmma of three warps", "synccheck",
           "wgmma asks for the four warps of a warpgroup; the CTA has three.",
           WGMMA.replace("f32.f16.f16\n", "f32.f16.f16 //~ EMU907 thread 0\n").replace(
               "[%rd4], {%r20, %r21, %r22, %r23};",
               "[%rd4], {%r20, %r21, %r22, %r23}; //~ EMU912 thread 0"),
           WGMMA_LAUNCH, wrong_launch=WGMMA_LAUNCH._replace(threads=96)),
    Defect("mbarrier that expects more bytes", "synccheck",
           "The mbarrier expects 272 bytes, and the copy brings 256.",
           BULK.replace("%p1, [%r4], 0;", "%p1, [%r4], 0; //~ EMU906 thread 0"), BULK_LAUNCH,
           (("_, [%r4], 256", "_, [%r4], 272"),), hangs=True),
    Defect("mbarrier waited for in the wrong phase", "synccheck",
           "Threads wait for the phase of parity 1, which nobody completes.",
           BULK.replace("  mad.lo.s32 %r5", """\
  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 0;
next:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], 1; //~ EMU906 thread 0
  @!%p1 bra next;
  mad.lo.s32 %r5"""), BULK_LAUNCH,
           (("  @%p0 mbarrier.arrive.expect_tx.shared::cta.b64 _, [%r4], 0;\n", ""),), hangs=True),
    Defect("mbarrier that is not initialised", "synccheck",
           "Threads arrive at an mbarrier that nobody initialised.",
           ARRIVALS, Launch((blank(64),)),
           (("  @%p0 mbarrier.init.shared::cta.b64 [%r4], %r5;\n", ""),
            ("mbarrier.arrive.shared::cta.b64 %rd3, [%r4];",
             "mbarrier.arrive.shared::cta.b64 %rd3, [%r4]; //~ EMU910 thread 0"),
            ("mbarrier.try_wait.shared::cta.b64 %p1, [%r4], %rd3;",
             "mbarrier.try_wait.shared::cta.b64 %p1, [%r4], %rd3; //~ EMU910 thread 0")),
             hangs=True),
    Defect("mbarrier initialised for too many", "synccheck",
           "The mbarrier waits for 65 threads, and there are 64.",
           ARRIVALS.replace("%p1, [%r4], %rd3;", "%p1, [%r4], %rd3; //~ EMU906 thread 0"),
           Launch((blank(64),)), (("mov.b32 %r5, 64;", "mov.b32 %r5, 65;"),), hangs=True),
    Defect("mbarrier used before all see it", "racecheck",
           "No barrier stands between the initialisation by one thread and the others' arrivals.",
           ARRIVALS, Launch((blank(64),)),
           (("  bar.sync 0;\n", ""),
            ("mbarrier.arrive.shared::cta.b64 %rd3, [%r4];",
             "mbarrier.arrive.shared::cta.b64 %rd3, [%r4]; //~ EMU905 thread 32"))),
    Defect("flag that nobody sets", "none",
           "A program waits for a flag in global memory; the one that should set it does not.",
           SPIN, SPIN_LAUNCH, (("setp.eq.s32 %p2, %r0, 0;", "setp.eq.s32 %p2, %r0, 64;"),),
           hangs=True),
    Defect("assertion that fails", "memcheck",
           "A number is not below the bound that the kernel asserts, and it traps.",
           TRAP, Launch((INPUT, blank(64), 64)), wrong_launch=Launch((INPUT, blank(64), 50))),
)  # fmt: skip
"""What synccheck is for, and programs that do not end."""
