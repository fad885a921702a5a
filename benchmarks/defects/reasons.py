"""Why compute-sanitizer does not find a defect, or speaks of what is right, by the names of both.

Each was looked into: in the machine code, or by the kernels in `probes`.
"""

from __future__ import annotations

from typing import Final

_REGISTERS: Final = (
    "initcheck looks at global memory; a register that was never written has no address, and the "
    "assembler takes any register in its place."
)
_SHARED: Final = "initcheck has an eye on global memory alone; it has no option for shared memory."
_GLOBAL: Final = (
    "racecheck looks at shared memory alone, and no other tool at the order of accesses."
)
_ORDER_OF_PROXIES: Final = (
    "No tool looks at the order between accesses of threads and those of copies and products that "
    "the async proxy makes; the device gives the right result here."
)
_NUMBERS: Final = "No tool looks at values."

UNSEEN: Final = {
    "input that is written to": (
        "That memory is an input only the launch knows; to the device all allocations may be "
        "written to."
    ),
    "shared index into the next array": (
        "memcheck knows where the CTA's shared memory ends, not where one array of it does."
    ),
    "index that wraps to another row": (
        "The address is inside of the tensor; that it was computed in too few bits is not looked "
        "at."
    ),
    "index that leads into another tensor": (
        "The address is inside of an allocation; whose pointer it was made from is not followed."
    ),
    "tensor map larger than the tensor": (
        "memcheck holds plain bulk copies against allocations, as it shows above; for a tensor "
        "copy it does not take the addresses of rows out of the map."
    ),
    "constant table index too large": (
        "Loads from constant memory are not checked (the same index into a variable in global "
        "memory is found); the device reads what lies behind the table."
    ),
    "shared store taken out": _SHARED,
    "shared tail unwritten": _SHARED,
    "last byte of a word unwritten": _SHARED,
    "masked load without a fill, stored": _REGISTERS,
    "masked load without a fill, branched on": _REGISTERS,
    "masked load without a fill, as an index": _REGISTERS,
    "reduction over lanes without a value": _REGISTERS,
    "accumulator not cleared": _REGISTERS,
    "local array half written": (
        "initcheck looks at global memory; a thread's local memory is not followed."
    ),
    "barriers with different names": (
        "racecheck takes barriers of different names for one, once all warps wait at some: it "
        "finds the race if one half waits and the other does not."
    ),
    "plain store among atomic sums": (
        "racecheck does not hold atomic accesses to shared memory against plain ones: it says "
        "nothing of a plain store or load of one warp and atomic sums of others either."
    ),
    "programs that store to one cell": _GLOBAL,
    "programs that read what others overwrite": _GLOBAL,
    "plain sum for an atomic one": _GLOBAL,
    "plain store among atomic sums of other programs": _GLOBAL,
    "barrier taken out between global accesses": _GLOBAL,
    "reversal in place without a barrier": _GLOBAL,
    "programs that do not wait for each other": _GLOBAL,
    "fence taken out in front of a ticket": _GLOBAL,
    "arrival of copies that are not waited for": (
        "Once copies arrive at an mbarrier racecheck takes them for done at the next barrier; "
        "without that arrival it finds the same read."
    ),
    "source of a bulk copy changed too early": _ORDER_OF_PROXIES,
    "proxy fence in front of a bulk copy taken out": _ORDER_OF_PROXIES,
    "proxy fence in front of wgmma taken out": _ORDER_OF_PROXIES,
    "wgmma that is not waited for": (
        "The assembler puts the wait in by itself, and says so (C7517): the machine code has no "
        "defect. The PTX has."
    ),
    "barrier that there is not": (
        "The device goes on, with the right result, and synccheck says nothing of the number."
    ),
    "shuffle mask without the own lane": (
        "The machine code of a shuffle (SHFL) has no mask: where the assembler knows the warp to "
        "be converged, nothing is left of it."
    ),
    "matrix product of half a warp": (
        "synccheck tells of products of a warpgroup that a part of it makes, and says nothing of "
        "those of a warp; the device goes on, with another result."
    ),
    "flag that nobody sets": (
        "The loop is no synchronisation instruction, at which racecheck looks for deadlocks; the "
        "tools wait as the kernel does."
    ),
    "zero divided by zero": _NUMBERS,
    "exponential that overflows": _NUMBERS,
}
"""By the names of defects that no tool finds."""

_WELFORD: Final = (
    "Lanes of a warp that have reduced together all store their result to one cell. They differ "
    "by 8e-7 of it at most, by the order in which each lane combined; any of them will do."
)
FALSE_ALARMS: Final = {
    ("memcheck", "asynchronous copy without a size, mended"): (
        "The copy is told to read 8 of its 16 bytes; memcheck counts all 16."
    ),
    ("racecheck", "welford for sm_80"): _WELFORD,
    ("racecheck", "welford for sm_90"): _WELFORD,
    ("initcheck", "matmul_tma_persistent for sm_90"): (
        "The kernel writes its tensor maps by `tensormap.cp_fenceproxy`, which initcheck does not "
        "take for a write; nor does it take a bulk copy for one (last line below)."
    ),
}
"""By tool and name of a right kernel that it speaks of."""


__all__ = ["FALSE_ALARMS", "UNSEEN"]
