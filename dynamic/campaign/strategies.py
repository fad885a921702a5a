"""Ways to choose inputs, to be held against each other and against the gate.

Each gives `CASES` cases for an operator and a dtype; a case counts as failing or not by itself.
None looks at verdicts; `targeted` is the gate's minimum run, with eight seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import cycle, islice
from typing import Final, TypeAlias

from ptxlint.dynamic.cases.case import Case
from ptxlint.dynamic.families.kit import Known
from ptxlint.dynamic.families.registry import FIRST, all_families
from ptxlint.dynamic.families.shapes import fitted, rich, tiles, told
from ptxlint.dynamic.operators.spec import Dims
from ptxlint.dynamic.runners.knowledge import Described, KernelKnowledge

CASES: Final = 8
Strategy: TypeAlias = Callable[[Known], Iterator[tuple[Dims, str]]]
"""Sizes and values, in order."""


def default(known: Known) -> Iterator[tuple[Dims, str]]:
    """Sizes mixed of boundary and regular ones, normal numbers: what a test suite has."""
    for regular_sizes, edge in zip(_regular(known), _edges(known), strict=False):
        yield regular_sizes, "regular"
        yield edge, "regular"


def regular(known: Known) -> Iterator[tuple[Dims, str]]:
    """Whole tiles and powers of two, normal numbers."""
    for sizes in _regular(known):
        yield sizes, "regular"


def boundary(known: Known) -> Iterator[tuple[Dims, str]]:
    """One element, primes, one more and one less than tiles; normal numbers."""
    for sizes in _edges(known):
        yield sizes, "regular"


def nan_injected(known: Known) -> Iterator[tuple[Dims, str]]:
    """Sizes as in `default`, with NaN and infinities among normal numbers."""
    for sizes, _ in default(known):
        yield sizes, "nonfinite"


def adversarial(known: Known) -> Iterator[tuple[Dims, str]]:
    """Sizes as in `default`, with the ends of the type."""
    for (sizes, _), values in zip(
        default(known), cycle(("finite-extremes", "overflow", "underflow", "nonfinite")),
        strict=False,
    ):  # fmt: skip
        yield sizes, values


def targeted(known: Known) -> Iterator[tuple[Dims, str]]:
    """What the gate always runs: several of the tiles that the kernel has and a part of one, graded
    values. Cases for what is not proved are left out: they are aimed at one property each, and
    those for infinities are no better than others at finding a wrong constant."""
    for case in islice(all_families()[FIRST].cases(known), 1):
        yield case.dims, case.values


STRATEGIES: Final[dict[str, Strategy]] = {
    "default": default,
    "boundary": boundary,
    "regular": regular,
    "nan": nan_injected,
    "adversarial": adversarial,
    "targeted": targeted,
}


def cases(
    strategy: str,
    described: Described,
    kernels: Sequence[KernelKnowledge],
    dtype: str,
    *,
    count: int = CASES,
    takes: Callable[[Dims], bool] = lambda _: True,
) -> tuple[Case, ...]:
    """Cases of a strategy by name; when its sizes are used up, they come again with other seeds.

    `takes` says which sizes the operator allows together. Raises `KeyError` for another name.
    """
    known = Known(described, tuple(kernels), dtype)
    once = [(dict(d), v) for d, v in islice(STRATEGIES[strategy](known), count) if takes(d)]
    repeated = islice(cycle(once), count)
    return tuple(
        Case(described.name, dtype, dims, values, seed, family=f"strategy {strategy}")
        for seed, (dims, values) in enumerate(repeated)
    )


def full_cost(described: Described) -> int:
    """Cases of every strategy for every dtype."""
    return CASES * len(STRATEGIES) * len(described.dtypes)


def _regular(known: Known) -> Iterator[Dims]:
    """Powers of two, from small to several tiles."""
    yield from _moved(known, (256, 16, 64, 128, 1024, 32, 512, 2048))


def _edges(known: Known) -> Iterator[Dims]:
    """One, small primes, and sizes next to tiles and powers of two."""
    tile = (tiles(known.kernels) or (256,))[0]
    yield from _moved(known, (3, tile + 1, 1, tile - 1, 17, 1025, 7, 257))


def _moved(known: Known, sizes: Sequence[int]) -> Iterator[Dims]:
    ran = rich(known.described)
    moving = told(known.described, known.kernels, ran) or tuple(ran)
    for size in sizes:
        yield fitted(known.described, {**ran, **dict.fromkeys(moving, size)})


__all__ = ["CASES", "STRATEGIES", "cases", "full_cost"]
