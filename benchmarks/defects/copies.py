"""Asynchronous copies and matrix products that are not waited for, or not ordered."""

from __future__ import annotations

from typing import Final

from defects.kit import Defect, Launch, Tensor, blank, kernel, numbered
from defects.memory import BULK, BULK_LAUNCH

TILE: Final = ".shared .align 128 .b8 tile[512];\n"
TWO: Final = Launch((Tensor(numbered(128)), blank(64)))

PIPELINE: Final = kernel(
    """
  mov.u32 %r3, tile;
  mad.lo.s32 %r4, %r0, 4, %r3;
  cp.async.ca.shared.global [%r4], [%rd10], 4;
  cp.async.commit_group;
  cp.async.ca.shared.global [%r4+256], [%rd10+256], 4;
  cp.async.commit_group;
  cp.async.wait_group 1; // the first tile
  bar.sync 0; // the first tile
  xor.b32 %r5, %r0, 63;
  mad.lo.s32 %r5, %r5, 4, %r3;
  ld.shared.b32 %r6, [%r5];
  cp.async.wait_group 0; // the second tile
  bar.sync 0; // the second tile
  ld.shared.b32 %r7, [%r5+256];
  add.s32 %r6, %r6, %r7;
  st.global.b32 [%rd11], %r6;
""",
    "pp",
    TILE,
)

STAGES: Final = kernel(
    """
  mov.u32 %r3, tile;
  mad.lo.s32 %r4, %r0, 4, %r3;
  xor.b32 %r5, %r0, 63;
  mad.lo.s32 %r5, %r5, 4, %r3;
  cp.async.ca.shared.global [%r4], [%rd10], 4;
  cp.async.commit_group;
  cp.async.wait_group 0;
  bar.sync 0;
  ld.shared.b32 %r6, [%r5];
  bar.sync 0; // before the tile is filled again
  cp.async.ca.shared.global [%r4], [%rd10+256], 4;
  cp.async.commit_group;
  cp.async.wait_group 0;
  bar.sync 0;
  ld.shared.b32 %r7, [%r5];
  add.s32 %r6, %r6, %r7;
  st.global.b32 [%rd11], %r6;
""",
    "pp",
    TILE,
)

STORE: Final = kernel(
    """
  mov.u32 %r3, tile;
  mad.lo.s32 %r4, %r0, 4, %r3;
  st.shared.b32 [%r4], %r0;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  setp.eq.s32 %p0, %r0, 0;
  @%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r3], 256;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group.read 0;
  bar.sync 0;
  st.shared.b32 [%r4], 7;
""",
    "p",
    TILE,
)

WGMMA: Final = kernel(
    """
  mov.u32 %r3, tile;
  mad.lo.s32 %r4, %r0, 4, %r3;
  mov.b32 %r5, 0x3c003c00;
  st.shared.b32 [%r4], %r5;
  st.shared.b32 [%r4+512], %r5;
  st.shared.b32 [%r4+1024], %r5;
  st.shared.b32 [%r4+1536], %r5;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  shr.u32 %r6, %r3, 4;
  cvt.u64.u32 %rd3, %r6;
  or.b64 %rd3, %rd3, 0x0000001000080000;
  mov.b32 %r20, 0;
  mov.b32 %r21, 0;
  mov.b32 %r22, 0;
  mov.b32 %r23, 0;
  wgmma.fence.sync.aligned;
  wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16
    {%r20, %r21, %r22, %r23}, %rd3, %rd3, 1, 1, 1, 0, 0;
  wgmma.commit_group.sync.aligned;
  wgmma.wait_group.sync.aligned 0;
  mad.wide.s32 %rd4, %r0, 16, %rd0;
  st.global.v4.b32 [%rd4], {%r20, %r21, %r22, %r23};
""",
    "p",
    ".shared .align 1024 .b8 tile[4096];\n",
)
WGMMA_LAUNCH: Final = Launch((blank(512),), threads=128)

ASYNC_BARRIER: Final = kernel(
    """
  mov.u32 %r3, tile;
  mov.u32 %r4, bar;
  mad.lo.s32 %r5, %r0, 4, %r3;
  setp.eq.u32 %p0, %r0, 0;
  @%p0 mbarrier.init.shared::cta.b64 [%r4], 64;
  bar.sync 0;
  cp.async.ca.shared.global [%r5], [%rd10], 4;
  cp.async.mbarrier.arrive.noinc.shared.b64 [%r4];
wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], 0;
  @!%p1 bra wait;
  xor.b32 %r6, %r0, 63;
  mad.lo.s32 %r6, %r6, 4, %r3;
  ld.shared.b32 %r7, [%r6];
  st.global.b32 [%rd11], %r7;
""",
    "pp",
    ".shared .align 8 .b64 bar;\n" + TILE,
)

_WAIT: Final = """\
wait:
  mbarrier.try_wait.parity.shared::cta.b64 %p1, [%r4], 0;
  @!%p1 bra wait;
"""


def _marked(text: str, line: str, mark: str) -> str:
    """A kernel with what must be told at a line."""
    assert text.count(line) == 1
    return text.replace(line, f"{line} //~ {mark}")


DEFECTS: Final = (
    Defect("wait count one too high", "racecheck",
           "Of two groups of copies one may be left open when the second one's data is read.",
           _marked(PIPELINE, "[%r5+256];", "EMU914 thread 0"), TWO,
           (("cp.async.wait_group 0; // the second tile", "cp.async.wait_group 1;"),)),
    Defect("wait for copies taken out", "racecheck",
           "Copies of the first tile are not waited for.",
           _marked(PIPELINE, "ld.shared.b32 %r6, [%r5];", "EMU914 thread 0"), TWO,
           (("  cp.async.wait_group 1; // the first tile\n", ""),)),
    Defect("barrier behind the wait for copies taken out", "racecheck",
           "Each thread waits for its own copies, and reads those of others.",
           _marked(PIPELINE, "ld.shared.b32 %r6, [%r5];", "EMU905 thread 0, EMU914 thread 0"), TWO,
           (("  bar.sync 0; // the first tile\n", ""),)),
    Defect("tile filled again while it is read", "racecheck",
           "Copies of the next round begin while slower warps read this one's tile.",
           _marked(STAGES, "[%rd10+256], 4;", "EMU905 thread 0"), TWO,
           (("  bar.sync 0; // before the tile is filled again\n", ""),)),
    Defect("bulk copy that is not waited for", "racecheck",
           "The wait at the mbarrier is gone; a barrier of the CTA does not wait for copies.",
           _marked(BULK, "ld.shared.b32 %r6, [%r5];", "EMU914 thread 0"), BULK_LAUNCH,
           ((_WAIT, "  bar.sync 0;\n"),)),
    Defect("arrival of copies that are not waited for", "racecheck",
           "Copies arrive at an mbarrier, and nobody looks whether they have.",
           _marked(ASYNC_BARRIER, "ld.shared.b32 %r7, [%r6];", "EMU914 thread 0"),
           Launch((Tensor(numbered(64)), blank(64))), ((_WAIT, "  bar.sync 0;\n"),)),
    Defect("source of a bulk copy changed too early", "racecheck",
           "The tile is stored to while the copy that reads it may still be under way.",
           # The thread leaves without having waited, too.
           _marked(_marked(STORE, "[%r4], 7;", "EMU914 thread 0"), "[%r3], 256;",
                   "EMU914 thread 0"),
           Launch((blank(64),)), (("  cp.async.bulk.wait_group.read 0;\n", ""),)),
    Defect("proxy fence in front of a bulk copy taken out", "racecheck",
           "What threads stored to shared memory is not ordered before the copy that reads it.",
           _marked(STORE, "[%r3], 256;", "EMU914 thread 0"), Launch((blank(64),)),
           (("  fence.proxy.async.shared::cta;\n", ""),)),
    Defect("wgmma that is not waited for", "synccheck",
           "Accumulators are stored while the product may still be under way.",
           _marked(WGMMA, "st.global.v4.b32 [%rd4], {%r20, %r21, %r22, %r23};", "EMU914 thread 0"),
           WGMMA_LAUNCH,
           (("  wgmma.wait_group.sync.aligned 0;\n", ""),)),
    Defect("proxy fence in front of wgmma taken out", "racecheck",
           "What threads stored to shared memory is not ordered before wgmma reads it.",
           _marked(WGMMA, "m64n8k16.f32.f16.f16", "EMU914 thread 0"), WGMMA_LAUNCH,
           (("  fence.proxy.async.shared::cta;\n", ""),)),
)  # fmt: skip
"""What goes on beside the threads, and is read before it is there."""
