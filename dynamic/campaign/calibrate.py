"""Samples of kernels that are known to be right, to take tolerances from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice, product
from typing import Final, NamedTuple

from ptxlint.dynamic.cases.case import Case
from ptxlint.dynamic.families.shapes import distinct, fitted, rich
from ptxlint.dynamic.operators.spec import Dims
from ptxlint.dynamic.oracle.calibration import Calibrated, calibrated
from ptxlint.dynamic.oracle.compared import Compared
from ptxlint.dynamic.runners.knowledge import Described
from ptxlint.dynamic.runners.worker import Worker

CASES: Final = 24
VALUES: Final = ("regular", "graded", "shifted")
"""What people have: extremes would widen the tolerance for all else."""


class SampleError(Exception):
    """A kernel that cannot be calibrated on; the text says why."""


class Ran(NamedTuple):
    """A case, and what came of comparing its outputs."""

    case: Case
    compared: tuple[Compared, ...]


def sample(
    described: Described, dtype: str, count: int, nearest: Callable[[Dims], Dims | None]
) -> tuple[Case, ...]:
    """Cases of several sizes and kinds of values, each with a seed of its own. `nearest` makes of
    sizes such as the operator takes together, if there are any."""
    taken = [dims for dims in map(nearest, _sizes(described)) if dims is not None]
    sizes = list(distinct((), map(dict, taken)))
    chosen = islice(cycle(product(sizes, VALUES)), count) if sizes else ()
    return tuple(
        Case(described.name, dtype, dict(dims), values, seed)
        for seed, (dims, values) in enumerate(chosen)
    )


def _sizes(described: Described) -> Iterator[Dims]:
    """Sizes without knowledge, some smaller, some larger."""
    ran = rich(described)
    shares: Sequence[tuple[int, int]] = ((1, 2), (2, 1), (1, 8))
    scaled = (
        fitted(described, {name: size * up // down | 1 for name, size in ran.items()})
        for up, down in shares
    )
    yield from distinct([ran], scaled)


def tolerances(worker: Worker, count: int = CASES) -> tuple[Calibrated, ...]:
    """Those of one operator, for all its dtypes.

    Raises `SampleError` for a kernel whose runs do not come to their end, and `CalibrationError`
    and `WorkerError` as they come.
    """
    described = worker.describe()
    ran = []
    for dtype in described.dtypes:
        cases = sample(described, dtype, count, worker.nearest)
        for case in cases:
            outcome = worker.run(case)
            if not outcome.compared:
                raise SampleError(f"{described.name} ({dtype}): {outcome.reason or outcome.kind}")
            ran.append(Ran(case, outcome.compared))
    found: tuple[Calibrated, ...] = calibrated(ran)
    return found


__all__ = ["CASES", "SampleError", "sample", "tolerances"]
