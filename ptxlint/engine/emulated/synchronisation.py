"""Threads that get in each other's way, or wait for what never comes, in a run."""

from __future__ import annotations

from typing import Any, Final

from ptxlint.engine.emulated.rule import EmulatedRule
from ptxlint.rulekit import Sample


def _launch(block: int = 64, **changes: Any) -> dict[str, Any]:
    """One CTA."""
    arguments = {"in_ptr": "int32[256]", "out_ptr": "int32[256]", "n_elements": 64}
    return {"grid": 1, "block": block, "arguments": {**arguments, **changes}}


_EXCHANGE = """
            .shared .align 4 .b8 tile[256];
            .reg .b32 %r<6>;
            mov.u32 %r1, %tid.x;
            shl.b32 %r2, %r1, 2;
            mov.u32 %r3, tile;
            add.u32 %r4, %r3, %r2;
            st.shared.b32 [%r4], %r1;BETWEEN
            xor.b32 %r2, %r2, 128;
            add.u32 %r4, %r3, %r2;
            ld.shared.b32 %r5, [%r4];MARK
            ret;
"""
RACE: Final = EmulatedRule(
    "EMU905",
    "emulated-race",
    "Two threads access the same bytes, one of them writes, and nothing orders the two.",
    "Which of them comes first is left to the device, so that the result may change from run to "
    "run. Warps of a program are ordered by barriers, lanes of a warp by `bar.warp.sync` and other "
    "`.sync` instructions (looked at in shared memory); programs by flags and counters in global "
    "memory that one writes behind a fence, or with `.release`, and the other reads. Writes of "
    "what is there already are not told. Looked for with `--sanitize races`.",
    "Put a barrier between the two accesses, or give each thread a cell of its own.",
    "sync",
    bad=(
        Sample(
            "a warp reads what another one has just written",
            _EXCHANGE.replace("BETWEEN", "").replace("MARK", " //~ EMU905"),
            launch=_launch(),
        ),
    ),
    good=(
        Sample(
            "with a barrier between",
            _EXCHANGE.replace("BETWEEN", "\n            bar.sync 0;").replace("MARK", ""),
            launch=_launch(),
        ),
    ),
    watch="races",
)
DEADLOCK: Final = EmulatedRule(
    "EMU906",
    "emulated-deadlock",
    "Threads wait for others, or for an mbarrier, and nobody is left to go on.",
    "A barrier with a count lets nobody on until so many threads have come, one without waits for "
    "all warps that have not left; a phase of an mbarrier ends with its last arrival and byte. On "
    "a device the launch never ends. Here the program ends there, what it wrote stays, and the "
    "others go on. The finding says how many are there, and where the missing ones wait or that "
    "they have left; who only waits for those at a barrier is named with them.",
    "Let all threads that are counted come to the barrier, or count those that do.",
    "sync",
    bad=(
        Sample(
            "the barrier counts 128 threads, the program has 64",
            "bar.sync 1, 128; //~ EMU906\nret;",
            launch=_launch(),
        ),
    ),
    good=(Sample("the barrier counts all", "bar.sync 1, 64;\nret;", launch=_launch()),),
)
_VOTE = """
            .reg .pred %p<3>;
            .reg .b32 %r<3>;
            mov.u32 %r1, %tid.x;
            setp.lt.u32 %p1, %r1, 16;
            @%p1 bra low;
            vote.sync.ballot.b32 %r2, %p1, HIGH;MARK
            bra done;
            low:
            vote.sync.ballot.b32 %r2, %p1, LOW;MARK
            done:
            ret;
"""
DIVERGENCE: Final = EmulatedRule(
    "EMU907",
    "emulated-divergence",
    "Lanes of a warp that belong together do not come to an instruction together.",
    "Shuffles, votes, barriers of a warp and matrix products name the lanes that take part, or "
    "need all of them; aligned barriers of the CTA (`bar.sync`) need whole warps, all at one "
    "instruction. If one of these lanes is elsewhere, or comes without being named, PTX says "
    "nothing of what comes out, and a device may wait for ever.",
    "Let all lanes that the mask names come to the instruction: move it out of the branch, or name "
    "those that are there.",
    "sync",
    bad=(
        Sample(
            "the masks name 32 lanes, 16 come to each",
            _VOTE.replace("HIGH", "0xffffffff")
            .replace("LOW", "0xffffffff")
            .replace("MARK", " //~ EMU907"),
            launch=_launch(32),
        ),
    ),
    good=(
        Sample(
            "the masks name those that come",
            _VOTE.replace("HIGH", "0xffff0000").replace("LOW", "0x0000ffff").replace("MARK", ""),
            launch=_launch(32),
        ),
    ),
)
_ASSERT = """
            .reg .pred %p<2>;
            .reg .b32 %r<3>;
            ld.param.b32 %r1, [n_elements];
            setp.gt.s32 %p1, %r1, 256;
            @%p1 trap;MARK
            ret;
"""
TRAP: Final = EmulatedRule(
    "EMU908",
    "emulated-trap",
    "The kernel stops itself: a trap, an assertion that fails, a jump beyond its table.",
    "A trap ends the launch, and with it all later work of the process. `tl.device_assert` becomes "
    "a call that says what does not hold, and a trap.",
    "Look at what the assertion says, and pass what it asks for.",
    "bounds",
    bad=(
        Sample(
            "more elements than the kernel takes",
            _ASSERT.replace("MARK", " //~ EMU908"),
            launch=_launch(n_elements=1000),
        ),
    ),
    good=(Sample("as many as it takes", _ASSERT.replace("MARK", ""), launch=_launch()),),
)
_SPIN = """
            .reg .pred %p<2>;
            .reg .b32 %r<3>;
            .reg .b64 %rd<3>;
            ld.param.u64 %rd1, [in_ptr];
            waiting:
            ld.volatile.global.b32 %r1, [%rd1];MARK
            setp.ne.s32 %p1, %r1, 1;
            @%p1 bra waiting;
            ret;
"""
HANG: Final = EmulatedRule(
    "EMU909",
    "emulated-hang",
    "The kernel does not come to an end.",
    "A loop whose condition never changes, or a wait for a flag that nobody sets. It is given up "
    "once all is as it was before, else after `--most-turns` turns of a group of programs. The "
    "exit status is 2, and what was written until then is kept. If the kernel only runs long, "
    "raise that number.",
    "Look at what the loop waits for: who sets it, and whether that program can run at the same "
    "time.",
    "sync",
    bad=(
        Sample(
            "the flag is 0, and nobody sets it",
            _SPIN.replace("MARK", " //~ EMU909"),
            launch=_launch(
                in_ptr={"kind": "tensor", "dtype": "int32", "shape": [1], "values": [0, 0]}
            ),
        ),
    ),
    good=(
        Sample(
            "the flag is set",
            _SPIN.replace("MARK", ""),
            launch=_launch(
                in_ptr={"kind": "tensor", "dtype": "int32", "shape": [1], "values": [1, 1]}
            ),
        ),
    ),
)
_ARRIVE = """
            .shared .align 8 .b64 bar;
            .reg .pred %p<2>;
            .reg .b32 %r<3>;
            .reg .b64 %rd<3>;
            mov.u32 %r1, %tid.x;
            setp.eq.u32 %p1, %r1, 0;
            mov.u32 %r2, bar;INIT
            bar.sync 0;
            mbarrier.arrive.shared.b64 %rd1, [%r2];MARK
            ret;
"""
MBARRIER: Final = EmulatedRule(
    "EMU910",
    "emulated-mbarrier",
    "An mbarrier object is used against its rules.",
    "It must be initialised before anything else is done with it, and in a phase no more threads "
    "may arrive and no more bytes be announced than it can count. PTX says nothing of what "
    "follows; a device mostly waits for ever.",
    "Initialise it before its use, and let as many threads and bytes arrive as it expects.",
    "sync",
    bad=(
        Sample(
            "nobody has initialised it",
            _ARRIVE.replace("INIT", "").replace("MARK", " //~ EMU910"),
            launch=_launch(),
        ),
    ),
    good=(
        Sample(
            "one thread has, before the others come",
            _ARRIVE.replace(
                "INIT", "\n            @%p1 mbarrier.init.shared.b64 [%r2], 64;"
            ).replace("MARK", ""),
            launch=_launch(),
        ),
    ),
)
_COUNTED = """
            .reg .b32 %r<2>;
            ld.param.b32 %r1, [n_elements];
            bar.sync 1, %r1;MARK
            ret;
"""
BARRIER: Final = EmulatedRule(
    "EMU917",
    "emulated-barrier",
    "A barrier of the CTA that there is not, or one for a part of a warp.",
    "Barriers have the numbers 0 to 15, and count threads in whole warps of 32. PTX says nothing "
    "of what follows else; a device stops the kernel or waits for ever.",
    "Name a barrier from 0 to 15, and count threads in whole warps.",
    "sync",
    bad=(
        Sample(
            "a warp and a half",
            _COUNTED.replace("MARK", " //~ EMU917"),
            launch=_launch(n_elements=48),
        ),
    ),
    good=(Sample("two warps", _COUNTED.replace("MARK", ""), launch=_launch(n_elements=64)),),
)
SYNCHRONISATION: Final = (RACE, DEADLOCK, DIVERGENCE, TRAP, HANG, MBARRIER, BARRIER)

__all__ = [
    "BARRIER", "DEADLOCK", "DIVERGENCE", "HANG", "MBARRIER", "RACE", "SYNCHRONISATION", "TRAP",
]  # fmt: skip
