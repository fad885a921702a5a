"""Verdicts on kernels that an autotuner runs again, held to running them again (HAZ604).

The launch is run, what the autotuner resets or puts back is reset or put back, and it is run once
more on the same memory with its programs in the same order. *Proved*: the second run leaves all
storages as the first one did, bit by bit. *Refuted*: it leaves the storage of the witness
otherwise. Contents are random. Refuted launches are not judged where what is added may be nothing:
if no tensor holds floating-point numbers, some are blank, or the autotuner sets some to zero.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ptxlint.dynamic.judge.replay import KEPT, UNKNOWN, VIOLATED, Judgement, Played
from ptxlint.dynamic.judge.tuning import behind
from ptxlint.launch.binding import Bound

NAME = "rerun"


def judge(played: Played) -> Iterator[Judgement]:
    """One judgement on a launch that is proved, one on each storage that is refuted."""
    verdicts, hits = played.said("HAZ604")
    if not verdicts:
        return
    changed = _changed(played)
    for verdict in verdicts:
        if verdict.status == "proved":
            happened = UNKNOWN if changed is None else VIOLATED if changed else KEPT
            yield Judgement(NAME, "proved", happened, f"{changed} differ: {verdict.reason}")
        elif verdict.status == "open":
            yield Judgement(NAME, "open", UNKNOWN)
    regions = {o.judged.access.instr: o.judged.region for o in played.found.outcomes}
    for hit in hits:
        region = None if hit.at is None else regions[hit.at]
        if region is None or changed is None:
            yield Judgement(NAME, "refuted", UNKNOWN)
        elif region.storage in changed:
            yield Judgement(NAME, "refuted", VIOLATED)
        else:
            happened = UNKNOWN if _may_add_nothing(played.bound) else KEPT
            yield Judgement(NAME, "refuted", happened, f"run again it is the same: {hit.message}")


def _may_add_nothing(bound: Bound) -> bool:
    """True if what a launch adds to, or multiplies, may be zeros alone."""
    tuned = bound.launch.autotuned
    tensors = [region.tensor for region in bound.regions.values()]
    has_numbers = any(tensor.dtype.startswith(("float", "bfloat")) for tensor in tensors)
    is_blank = any(tensor.fresh == "uninitialised" for tensor in tensors)
    return not has_numbers or is_blank or bool(tuned is not None and tuned.reset)


def _changed(played: Played) -> frozenset[int] | None:
    """The storages that a second run leaves otherwise; None if a run did not come to its end."""
    if not played.is_whole:
        return None
    first = played.ran
    again = played.run(inputs=behind(played.bound, first, played.contents), only=played.order)
    if not again.outcome.is_complete:
        return None
    return frozenset(
        storage
        for storage, bytes_ in first.storages.items()
        if not np.array_equal(bytes_, again.storages[storage])
    )


__all__ = ["judge"]
