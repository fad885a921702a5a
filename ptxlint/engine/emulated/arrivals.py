"""Data that is touched before it has arrived, in a run."""

from __future__ import annotations

from typing import Final

from ptxlint.engine.emulated.rule import EmulatedRule
from ptxlint.rulekit import Sample

_LAUNCH: Final = {
    "grid": 1,
    "block": 64,
    "arguments": {"in_ptr": "int32[64]", "out_ptr": "int32[64]", "n_elements": 64},
}
_COPY: Final = """
            .shared .align 16 .b8 tile[256];
            .reg .b32 %r<6>;
            .reg .b64 %rd<3>;
            mov.u32 %r1, %tid.x;
            shl.b32 %r2, %r1, 2;
            mov.u32 %r3, tile;
            add.u32 %r4, %r3, %r2;
            ld.param.u64 %rd1, [in_ptr];
            mad.wide.u32 %rd2, %r1, 4, %rd1;
            cp.async.ca.shared.global [%r4], [%rd2], 4;
            cp.async.commit_group;
            cp.async.wait_group PENDING;
            bar.sync 0;
            ld.shared.b32 %r5, [%r4]; MARK
            ret;
"""
ARRIVAL: Final = EmulatedRule(
    "EMU914",
    "emulated-not-arrived",
    "Data of an asynchronous copy or matrix product is touched before that is done.",
    "`cp.async`, bulk and tensor copies and `wgmma` go on beside the threads that start them. What "
    "they bring may be read behind a wait (`wait_group` of the thread that started it, then a "
    "barrier for the others; a phase of the mbarrier that hears of it); what they read, in shared "
    "memory or registers, may be overwritten behind one; and what threads wrote to shared memory "
    "is seen by bulk copies and `wgmma` behind a `fence.proxy.async`. On a device the outcome "
    "depends on how fast memory is. Looked for with `--sanitize copies`.",
    "Wait for it: put the wait, or the fence, that the message names between the two, and count "
    "the groups that may still be pending.",
    "sync",
    bad=(
        Sample(
            "one group may still be pending, and there is only one",
            _COPY.replace("PENDING", "1").replace("MARK", "//~ EMU914"),
            launch=_LAUNCH,
        ),
    ),
    good=(
        Sample(
            "no group is pending",
            _COPY.replace("PENDING", "0").replace(" MARK", ""),
            launch=_LAUNCH,
        ),
    ),
    watch="copies",
)
ARRIVALS: Final = (ARRIVAL,)

__all__ = ["ARRIVAL", "ARRIVALS"]
