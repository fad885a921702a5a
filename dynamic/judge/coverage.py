"""Verdicts on elements that no program writes, held to what was written (BND307).

*Proved*: after a whole run every byte of every element of the tensor was written by a plain store.
*Refuted*: the element of the witness was written by none, and no atomic came to it.

What was there before does not matter: stores are noted, not changes.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from ptxlint.dynamic.judge.replay import KEPT, UNKNOWN, VIOLATED, Judgement, Played
from ptxlint.dynamic.judge.written import Written
from ptxlint.launch.coverage.analysis import CoverageAnalysis
from ptxlint.launch.coverage.missed import Missed
from ptxlint.launches import DTYPE_BYTES, Tensor

NAME = "coverage"


def judge(played: Played) -> Iterator[Judgement]:
    """One judgement on each tensor of which something is said."""
    (coverage,) = played.facts.get(CoverageAnalysis)
    for word in coverage.missed:
        if not played.is_whole or played.record.is_full:
            yield Judgement(NAME, word.status, UNKNOWN)
            continue
        storage = played.ran.places[word.region.storage]
        yield _compared(word, Written(played.record, storage))


def _compared(word: Missed, written: Written) -> Judgement:
    region, missing = word.region, word.missing
    if word.status == "refuted" and missing is not None:
        place = np.array([missing.offset - region.low])
        is_missed = not written.is_written(place).any()
        what = f"byte {missing.offset} of {region.name} is written"
        return Judgement(NAME, word.status, VIOLATED if is_missed else KEPT, what)
    places = elements(region.tensor) - region.low
    left = places[~written.is_written(places)]
    if len(left):
        what = f"byte {int(left[0])} of the storage of {region.name} is not written"
        return Judgement(NAME, word.status, VIOLATED, what)
    return Judgement(NAME, word.status, KEPT, f"all of {region.name} is written")


def elements(tensor: Tensor) -> NDArray[np.int64]:
    """The bytes of a tensor's elements, counted from its first one."""
    size = DTYPE_BYTES[tensor.dtype]
    places = np.zeros(1, dtype=np.int64)
    for extent, stride in zip(tensor.shape, tensor.strides, strict=True):
        places = (places[:, None] + np.arange(extent) * stride * size).ravel()
    found: NDArray[np.int64] = (places[:, None] + np.arange(size)).ravel()
    return found


__all__ = ["elements", "judge"]
