"""HAZ603: what nobody has written is read, or added to."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ptxlint.dataflow.access import Access, AccessAnalysis
from ptxlint.dataflow.updates import SHIFTED, change_by_atomic, effects, matters
from ptxlint.dataflow.value_flow import ValueFlowAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.launch.analysis import LaunchAnalysis, LaunchOutcomes, Outcome
from ptxlint.launch.questions import element_of, place, thread_of, touched
from ptxlint.rulekit import TILE_START, Hit, Rule, Sample, Verdict, refuted

if TYPE_CHECKING:
    from ptxlint.launch.exposed import Exposed, Shared
    from ptxlint.launch.under import Judged

_UNINITIALISED: Final = "uninitialised"
_ADD: Final = TILE_START + "@%p1 red.global.add.u32 [%rd5], %r2;{mark}\nret;"


def _launch(fresh: str, **other: object) -> dict[str, object]:
    out = {"kind": "tensor", "dtype": "int32", "shape": [1024]}
    return {
        "grid": 8,
        "block": 128,
        "arguments": {
            "in_ptr": "float32[1024]",
            "out_ptr": out | ({"fresh": fresh} if fresh else {}),
            "n_elements": 1024,
        },
    } | other


class NeedsZeroInit(Rule):
    id = "HAZ603"
    name = "needs-zero-init"
    severity = "error"
    confidence = "high"
    category = "hazards"
    family = "rerun"
    needs = (AccessAnalysis, LaunchAnalysis)
    summary = "Under this launch a kernel adds to, or reads, memory that nobody has written."
    why = (
        "An atomic, or a load whose result is stored back, goes on from what memory holds. Memory "
        "that the host allocated uninitialised (torch.empty) holds what was there before: often "
        "zeros at first, so that tests pass, and other numbers in a longer run. It is reported "
        "where a thread reads what nothing in the kernel has stored before it. A kernel that reads "
        "such memory and does not write it gets a note: what is missing may be the host's data."
    )
    fix = "Allocate the tensor with torch.zeros, or zero it before each launch."
    refs = ("https://github.com/triton-lang/triton/issues/4217",)
    bad = (
        Sample("adds to what torch.empty made", _ADD.replace("{mark}", " //~ HAZ603"),
               launch=_launch(_UNINITIALISED)),
        Sample(
            "loads, adds and stores back",
            TILE_START
            + """
            @%p1 ld.global.b32 %r6, [%rd5]; //~ HAZ603
            add.s32 %r6, %r6, %r2;
            @%p1 st.global.b32 [%rd5], %r6;
            ret;
            """,
            launch=_launch(_UNINITIALISED),
        ),
        Sample(
            "reads an input that is only allocated: a note",
            TILE_START
            + """
            @%p1 ld.global.b32 %r6, [%rd5]; //~ HAZ603
            add.s32 %r6, %r6, %r2;
            @%p1 st.global.b32 [%rd4], %r6;
            ret;
            """,
            launch=_launch(_UNINITIALISED),
        ),
    )  # fmt: skip
    good = (
        Sample("adds to zeros", _ADD.replace("{mark}", ""), launch=_launch("zeroed")),
        Sample("adds to what the host wrote", _ADD.replace("{mark}", ""), launch=_launch("")),
        Sample("no launch: it is open what is there", _ADD.replace("{mark}", "")),
        Sample(
            "each thread stores before it adds",
            TILE_START
            + """
            @%p1 st.global.b32 [%rd5], 0;
            @%p1 red.global.add.u32 [%rd5], %r2;
            ret;
            """,
            launch=_launch(_UNINITIALISED),
        ),
        Sample(
            "the autotuner zeroes it before each configuration",
            _ADD.replace("{mark}", ""),
            launch=_launch(
                _UNINITIALISED, autotuned={"configurations": 4, "reset": ["out_ptr"]}
            ),
        ),
        Sample(
            "only written",
            TILE_START + "@%p1 st.global.b32 [%rd5], %r2;\nret;",
            launch=_launch(_UNINITIALISED),
        ),
    )  # fmt: skip

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """A hit for each storage that is read before it is written, by launch."""
        if not facts.launches:
            yield from _without_launch(facts)
            return
        for found in facts.get(LaunchAnalysis):
            yield from _under(found)


def _without_launch(facts: Facts) -> Iterator[Verdict]:
    """One open verdict for each array that atomics add to."""
    if facts.opcodes.isdisjoint(("atom", "red")):
        return
    added: dict[str, Access] = {}
    for access in facts.get(AccessAnalysis).in_global:
        is_addition = access.kind == "atomic" and change_by_atomic(access.instr) == SHIFTED
        if is_addition and access.base and access.guard is not None:
            added.setdefault(access.base, access)
    for base, access in added.items():
        yield Verdict("open", f"{base} is added to: it must hold numbers before", access.instr)


def _under(found: LaunchOutcomes) -> Iterator[Hit | Verdict]:
    regions = found.bound.regions.values()
    uninitialised = {r.storage for r in regions} - {
        r.storage for r in regions if r.tensor.fresh != _UNINITIALISED
    }
    kinds = {o.judged.access.kind for o in found.outcomes}
    if not uninitialised and "atomic" not in kinds:
        return
    from ptxlint.launch.exposed import Exposed

    exposed = Exposed(found)
    for storage, shared in exposed.storages.items():
        if storage not in uninitialised:
            yield from _written_before(found, shared)
        elif shared.reads:
            yield from _uninitialised(found, exposed, shared)


def _written_before(found: LaunchOutcomes, shared: Shared) -> Iterator[Verdict]:
    """The verdict on an array that atomics update and that somebody has written."""
    atomic = next((r for r in shared.reads if r.access.kind == "atomic"), None)
    if atomic is None or atomic.region is None:
        return
    name = atomic.region.name
    if all(r.tensor.fresh == "zeroed" for r in shared.regions):
        yield Verdict("proved", f"{name} is zeros before", atomic.access.instr, launch=found.bound)
    else:
        assumes = (f"{name} was written as a whole",)
        reason = f"{name} was written before"
        yield Verdict("proved", reason, atomic.access.instr, assumes=assumes, launch=found.bound)


def _uninitialised(
    found: LaunchOutcomes, exposed: Exposed, shared: Shared
) -> Iterator[Hit | Verdict]:
    """What is to be said of an array that nobody has written."""
    from ptxlint.launch.exposed import COVERED, EXPOSED, NEVER

    bound = found.bound
    tuned = bound.launch.autotuned
    reset = () if tuned is None else tuned.reset
    reason = ""
    at: Judged | None = None
    for read in shared.reads:
        assert read.region is not None
        if exposed.is_reset(read.region, reset) or _is_unused(found, read):
            continue
        seen = exposed.of(read)
        if seen.status == EXPOSED and _matters(found, read):
            yield from _shown(found, shared, Outcome(read, seen.witness))
            return
        if seen.status not in (COVERED, NEVER) and not reason:
            reason, at = seen.reason or "what is read may not matter", read
    first = shared.reads[0]
    if reason and at is not None:
        yield Verdict("open", reason, at.access.instr, launch=bound)
    else:
        name = shared.regions[0].name
        said = f"nothing that is read of {name} was there before"
        yield Verdict("proved", said, first.access.instr, launch=bound)


def _is_unused(found: LaunchOutcomes, read: Judged) -> bool:
    """True for a load of what nothing uses."""
    flow = found.under.facts.get(ValueFlowAnalysis)
    return read.access.kind == "load" and effects(flow, read.access.instr) == []


def _matters(found: LaunchOutcomes, read: Judged) -> bool:
    """True if what is read is certainly used."""
    if read.access.kind == "atomic":
        return True
    return matters(found.under.facts.get(ValueFlowAnalysis), read.access.instr)


def _shown(found: LaunchOutcomes, shared: Shared, read: Outcome) -> Iterator[Hit | Verdict]:
    """A thread reads what nobody has written."""
    access, region = read.judged.access, read.judged.region
    assert region is not None
    is_updated = access.kind == "atomic" or bool(shared.stores)
    message = (
        f"{thread_of(read)} {touched(read)}{element_of(read)}, which was allocated uninitialised "
        "and nothing has written since"
    )
    key = f"{access.kind} of uninitialised {region.name}"
    label = f"{touched(read)} before anything is written there"
    for said in refuted(found.bound, message, access.instr, key, label, place(found, read)):
        yield (
            said._replace(severity="" if is_updated else "note") if isinstance(said, Hit) else said
        )
