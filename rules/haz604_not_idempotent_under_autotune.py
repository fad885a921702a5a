"""HAZ604: an autotuner runs a kernel that goes on from its own result."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from ptxlint.dataflow.updates import MOVED, SETTLED, SHIFTED, change_by_atomic, effects
from ptxlint.dataflow.value_flow import ValueFlowAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.launch.analysis import LaunchAnalysis, LaunchOutcomes, Outcome
from ptxlint.launch.questions import element_of, place, thread_of
from ptxlint.rulekit import TILE_START, Hit, Rule, Sample, Verdict, refuted

if TYPE_CHECKING:
    from ptxlint.launch.exposed import Exposed, Shared
    from ptxlint.launch.under import Judged
    from ptxlint.launches import Autotuned

_ADD: Final = TILE_START + "@%p1 red.global.add.u32 [%rd5], %r2;{mark}\nret;"
_IN_PLACE: Final = (
    TILE_START
    + """
            @%p1 ld.global.f32 %r6, [%rd5];{mark}
            {change}.f32 %r7, %r6, 0f40000000;
            @%p1 st.global.f32 [%rd5], %r7;
            ret;
            """
)


def _launch(configurations: int = 4, **other: list[str]) -> dict[str, object]:
    return {
        "grid": 8,
        "block": 128,
        "arguments": {
            "in_ptr": "float32[1024]",
            "out_ptr": "float32[1024]",
            "n_elements": 1024,
        },
        "autotuned": {"configurations": configurations} | other,
    }


class NotIdempotent(Rule):
    id = "HAZ604"
    name = "not-idempotent-under-autotune"
    severity = "error"
    confidence = "high"
    category = "hazards"
    family = "rerun"
    needs = (LaunchAnalysis, ValueFlowAnalysis)
    summary = "An autotuner compares configurations of a kernel that changes what it reads."
    why = (
        "To compare configurations an autotuner runs each many times on the same arguments. "
        "A kernel that adds to a tensor, or replaces x by a function of x, goes on from what the "
        "run before it left, and so the first call with new sizes returns a wrong result, later "
        "ones the right one. Atomic minima and maxima, and stores of what does not depend on what "
        "they replace, give the same when run again."
    )
    fix = (
        "Name the tensor in reset_to_zero, if it must be zero at first, or in restore_value of "
        "triton.autotune."
    )
    refs = ("https://github.com/triton-lang/triton/issues/4217",)
    bad = (
        Sample("each configuration adds again", _ADD.replace("{mark}", " //~ HAZ604"),
               launch=_launch()),
        Sample("each configuration doubles again",
               _IN_PLACE.replace("{mark}", " //~ HAZ604").replace("{change}", "mul"),
               launch=_launch(reset=["in_ptr"])),
    )  # fmt: skip
    good = (
        Sample("set to zero before each", _ADD.replace("{mark}", ""),
               launch=_launch(reset=["out_ptr"])),
        Sample("put back after each",
               _IN_PLACE.replace("{mark}", "").replace("{change}", "mul"),
               launch=_launch(restored=["out_ptr"])),
        Sample("a maximum stays what it is",
               _IN_PLACE.replace("{mark}", "").replace("{change}", "max"), launch=_launch()),
        Sample("the only configuration is not compared", _ADD.replace("{mark}", ""),
               launch=_launch(1)),
        Sample("not autotuned",
               _ADD.replace("{mark}", ""),
               launch={k: v for k, v in _launch().items() if k != "autotuned"}),
    )  # fmt: skip

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit | Verdict]:
        """A hit for each storage that a configuration leaves other than it found it."""
        for found in facts.get(LaunchAnalysis) if facts.launches else ():
            tuned = found.bound.launch.autotuned
            if tuned is not None and tuned.configurations > 1:
                yield from _Tuned(found, tuned).judged()


class _Word(NamedTuple):
    """The word on one read: "" for nothing to say, `refuted` or `open`, with a reason."""

    status: str
    reason: str = ""
    shown: Outcome | None = None


_FINE: Final = _Word("")


class _Tuned:
    """One launch that an autotuner made."""

    def __init__(self, found: LaunchOutcomes, tuned: Autotuned) -> None:
        from ptxlint.launch.exposed import Exposed

        self._found = found
        self._tuned = tuned
        self._exposed: Exposed = Exposed(found)
        self._flow = found.under.facts.get(ValueFlowAnalysis)

    def judged(self) -> Iterator[Hit | Verdict]:
        """A hit or an open verdict for each storage, or one verdict that all is well."""
        bound, hidden = self._found.bound, self._exposed.hidden
        is_fine = True
        if hidden is not None:
            is_fine = False
            reason = f"where `{hidden.opcode}` writes is not followed"
            yield Verdict("open", reason, hidden, launch=bound)
        for shared in self._exposed.storages.values():
            words = [(read, self._word(shared, read)) for read in shared.reads]
            for wanted in ("refuted", "open"):
                first = next(((r, w) for r, w in words if w.status == wanted), None)
                if first is not None:
                    is_fine = False
                    yield from self._said(*first)
                    break
        if is_fine:
            yield Verdict("proved", self._why_fine(), launch=bound)

    def _why_fine(self) -> str:
        updated = [s for s in self._exposed.storages.values() if _is_updated(s)]
        if not updated:
            return "it reads nothing that it writes"
        names = ", ".join(dict.fromkeys(s.regions[0].name for s in updated))
        return f"run again, it leaves the same in {names}"

    def _said(self, read: Judged, word: _Word) -> Iterator[Hit | Verdict]:
        bound, access = self._found.bound, read.access
        assert read.region is not None
        if word.shown is None:
            yield Verdict("open", word.reason, access.instr, launch=bound)
            return
        message = (
            f"{self._tuned.configurations} configurations are run one after another on the same "
            f"{read.region.name}, and {thread_of(word.shown)} {word.reason}"
            f"{element_of(word.shown)} each time"
        )
        label = f"{word.reason} what the run before left"
        key = f"again {access.kind} {read.region.name}"
        witness = place(self._found, word.shown)
        yield from refuted(bound, message, access.instr, key, label, witness)

    # One read -----------------------------------------------------------------------------------
    def _word(self, shared: Shared, read: Judged) -> _Word:
        """What running again makes of what is read."""
        assert read.region is not None
        if not _is_updated(shared) or self._exposed.is_reset(
            read.region, (*self._tuned.reset, *self._tuned.restored)
        ):
            return _FINE
        if read.access.kind == "atomic":
            return self._atomic(read)
        return self._load(shared, read)

    def _atomic(self, read: Judged) -> _Word:
        change = change_by_atomic(read.access.instr)
        if change == SHIFTED:
            return self._seen(read, "adds to it")
        is_used = bool(effects(self._flow, read.access.instr))
        if change != SETTLED or is_used:
            return self._open(read, "what an atomic brings may decide what is stored")
        # What it combines may come from what the kernel changes: that is said of the load.
        return _FINE

    def _load(self, shared: Shared, read: Judged) -> _Word:
        if all(self._exposed.are_apart(read, w) for w in (*shared.stores, *_atomics(shared))):
            return _FINE
        reached = effects(self._flow, read.access.instr)
        if reached is None:
            return self._open(read, "what is loaded enters too much to follow")
        stores = {s.access.instr.index: s for s in shared.stores}
        changes = set()
        for effect in reached:
            store = stores.get(effect.instr.index)
            is_same = store is not None and self._exposed.is_same_cell(read, store)
            if is_same and store is not None and effect.change == SHIFTED:
                return self._seen(read, "replaces it by a function of it", store)
            changes.add(effect.change if is_same else MOVED)
        if changes <= {SETTLED}:
            return _FINE
        return self._open(read, "what is loaded enters what is stored")

    def _seen(self, read: Judged, doing: str, then: Judged | None = None) -> _Word:
        from ptxlint.launch.exposed import COVERED, NEVER

        seen = self._exposed.of(read, then)
        if seen.status in (COVERED, NEVER):
            return _FINE
        if seen.witness is None:
            return _Word("open", seen.reason)
        return _Word("refuted", doing, Outcome(read, seen.witness))

    def _open(self, read: Judged, reason: str) -> _Word:
        from ptxlint.launch.exposed import COVERED, NEVER

        is_fine = self._exposed.of(read).status in (COVERED, NEVER)
        return _FINE if is_fine else _Word("open", reason)


def _is_updated(shared: Shared) -> bool:
    """True for a storage that is both read and written."""
    return bool(shared.reads) and bool(shared.stores or _atomics(shared))


def _atomics(shared: Shared) -> list[Judged]:
    return [read for read in shared.reads if read.access.kind == "atomic"]
