"""Kernels that ask what a tool of compute-sanitizer looks at: why does it not find something?

Each is a small change of a defect that the tool finds, or of one that it does not.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from defects.kit import Case, Launch, Tensor, blank, kernel, numbered

TILE: Final = ".shared .align 8 .b64 bar;\n.shared .align 128 .b8 tile[512];\n"
LAUNCH: Final = Launch((Tensor(numbered(128)), blank(128)), threads=128)

ACROSS: Final = """
  mov.u32 %r3, tile;
  mad.lo.s32 %r4, %r0, 4, %r3;
  xor.b32 %r6, %r0, 127;
  mad.lo.s32 %r6, %r6, 4, %r3;
  ld.global.b32 %r5, [%rd10];
  st.shared.b32 [%r4], %r5;
BETWEEN
  ld.shared.b32 %r8, [%r6];
  st.global.b32 [%rd11], %r8;
"""
HALF: Final = "  setp.lt.s32 %p0, %r0, 64;\n  @%p0 bar.sync 1, 64;"
OTHERS: Final = "  setp.lt.s32 %p0, %r0, 64;\n  @%p0 bar.sync 1, 64;\n  @!%p0 bar.sync 2, 64;"
ONE_CELL: Final = """
  mov.u32 %r3, tile;
  setp.lt.s32 %p0, %r0, 32;
  FIRST
  SECOND
  bar.sync 0;
  ld.shared.b32 %r8, [%r3];
  st.global.b32 [%rd11], %r8;
"""
COPIES: Final = """
  mov.u32 %r3, tile;
  mov.u32 %r4, bar;
  mad.lo.s32 %r5, %r0, 4, %r3;
  setp.eq.u32 %p0, %r0, 0;
  @%p0 mbarrier.init.shared::cta.b64 [%r4], 128;
  bar.sync 0;
  cp.async.ca.shared.global [%r5], [%rd10], 4;
  BETWEEN
  bar.sync 0;
  xor.b32 %r6, %r0, 127;
  mad.lo.s32 %r6, %r6, 4, %r3;
  ld.shared.b32 %r7, [%r6];
  st.global.b32 [%rd11], %r7;
"""
STORE: Final = """
  mov.u32 %r3, tile;
  mad.lo.s32 %r4, %r0, 4, %r3;
  st.shared.b32 [%r4], %r0;
  fence.proxy.async.shared::cta;
  bar.sync 0;
  setp.eq.s32 %p0, %r0, 0;
  @%p0 cp.async.bulk.global.shared::cta.bulk_group [%rd0], [%r3], 256;
  cp.async.bulk.commit_group;
  cp.async.bulk.wait_group 0;
  fence.proxy.async.global;
  bar.sync 0;
  ld.global.b32 %r5, [%rd10];
  st.global.b32 [%rd11], %r5;
"""


class Probe(NamedTuple):
    """A question, as what the kernel does, and the kernel."""

    asks: str
    case: Case


def _probe(asks: str, body: str, launch: Launch = LAUNCH) -> Probe:
    return Probe(asks, Case(f"probe: {asks}", kernel(body, "pp", TILE), launch))


PROBES: Final = (
    _probe("exchange across halves, no barrier", ACROSS.replace("BETWEEN", "")),
    _probe("exchange across halves, one half waits at a named barrier",
           ACROSS.replace("BETWEEN", HALF)),
    _probe("exchange across halves, each waits at a named barrier",
           ACROSS.replace("BETWEEN", OTHERS)),
    _probe("exchange across halves, no barrier after a named one of each",
           ACROSS.replace("  st.shared", f"{OTHERS}\n  st.shared").replace("BETWEEN", "")),
    _probe("plain store of one warp, plain stores of others",
           ONE_CELL.replace("FIRST", "@%p0 st.shared.b32 [%r3], 0;").replace(
               "SECOND", "@!%p0 st.shared.b32 [%r3], %r0;")),
    _probe("plain store of one warp, atomic sums of others",
           ONE_CELL.replace("FIRST", "@%p0 st.shared.b32 [%r3], 0;").replace(
               "SECOND", "@!%p0 red.shared.add.u32 [%r3], 1;")),
    _probe("plain load of one warp, atomic sums of others",
           ONE_CELL.replace("FIRST", "@!%p0 red.shared.add.u32 [%r3], 1;").replace(
               "SECOND", "@%p0 ld.shared.b32 %r9, [%r3];\n  @%p0 st.global.b32 [%rd10], %r9;")),
    _probe("copies that nobody waits for or commits", COPIES.replace("BETWEEN", "")),
    _probe("copies that are committed and not waited for",
           COPIES.replace("BETWEEN", "cp.async.commit_group;")),
    _probe("copies that arrive at an mbarrier and are not waited for",
           COPIES.replace("BETWEEN", "cp.async.mbarrier.arrive.noinc.shared.b64 [%r4];")),
    _probe("loads of what a bulk copy stored",
           STORE, Launch((blank(64), blank(64)))),
)  # fmt: skip


__all__ = ["PROBES", "Probe"]
