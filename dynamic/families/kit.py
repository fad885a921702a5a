"""What a family of stress tests is. One family is one file, with its documentation.

A family says which static verdicts it decides when they are open, and turns what is known of an
operator into cases, the most promising first. Metadata that is missing or malformed is an error
when the class is created, not when it runs.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

from ptxlint.dynamic.cases.case import Case
from ptxlint.dynamic.cases.checks import CHECKS
from ptxlint.dynamic.operators.spec import NUMPY, TRITON, Dims
from ptxlint.dynamic.runners.knowledge import Described, KernelKnowledge
from ptxlint.rulekit import FAMILIES

from .shapes import distinct, rich, several_tiles

_ID = re.compile(r"[a-z][a-z0-9]*(-[a-z0-9]+)*")


class Known(NamedTuple):
    """What cases are made from: an operator, its kernels as far as they have been seen, a dtype.

    `sizes` are worth trying beside those of tiles: an obligation suggested them.
    """

    described: Described
    kernels: tuple[KernelKnowledge, ...]
    dtype: str
    seed: int = 0
    sizes: tuple[int, ...] = ()


class Family:
    """Base of all families.

    `decides` names the static families (`ptxlint.rulekit.FAMILIES`) whose open verdicts its cases
    decide; `values` the strategies that fill tensors, the first one first; `checks` what is looked
    at; `runs_on` the operators that it is for. `summary` and `why` are sentences for people.
    """

    id: ClassVar[str]
    summary: ClassVar[str]
    why: ClassVar[str]
    decides: ClassVar[tuple[str, ...]]
    values: ClassVar[tuple[str, ...]] = ("graded",)
    checks: ClassVar[tuple[str, ...]] = ("reference", "canaries", "poison", "sanitizer")
    runs_on: ClassVar[tuple[str, ...]] = (TRITON, NUMPY)

    @classmethod
    def sizes(cls, known: Known) -> Iterator[Dims]:
        """Sizes to run, in order of promise; some may be none that the operator takes.

        Unless a family says other: several tiles and a part of one, then sizes that know nothing.
        """
        ran = rich(known.described)
        yield from distinct([several_tiles(known.described, known.kernels, ran)], [ran])

    @classmethod
    def layouts(cls, known: Known) -> Sequence[str]:
        """How tensors lie, in order of promise; none: the family has nothing to test here."""
        return ("contiguous",)

    @classmethod
    def cases(cls, known: Known) -> Iterator[Case]:
        """Cases in order of promise: the first sizes with the first values, then with the next, and
        the next sizes with the first, and so on."""
        if known.described.runs_on not in cls.runs_on:
            return
        places = [(dims, layout) for dims in cls.sizes(known) for layout in cls.layouts(known)]
        for rank in range(len(places) + len(cls.values) - 1):
            for later, values in reversed(list(enumerate(cls.values))):
                if 0 <= rank - later < len(places):
                    dims, layout = places[rank - later]
                    yield Case(
                        known.described.name,
                        known.dtype,
                        dict(dims),
                        values,
                        known.seed,
                        layout,
                        cls.checks,
                        cls.id,
                    )

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        faults = _faults(cls)
        if faults:
            raise TypeError(f"family {cls.__module__}.{cls.__name__}: " + "; ".join(faults))


def _faults(cls: type[Family]) -> list[str]:
    """Everything wrong with a family's metadata."""
    required = "id summary why decides".split()
    faults = [f"`{field}` is missing" for field in required if not hasattr(cls, field)]
    if faults:
        return faults
    if not _ID.fullmatch(cls.id):
        faults.append(f"id {cls.id!r} is not kebab-case")
    faults += [
        f"`{field}` is no sentence" for field in ("summary", "why")
        if not getattr(cls, field).endswith(".")
    ]  # fmt: skip
    for field, allowed in (
        ("decides", FAMILIES), ("checks", CHECKS), ("runs_on", (TRITON, NUMPY)),
    ):  # fmt: skip
        unknown = [word for word in getattr(cls, field) if word not in allowed]
        if unknown:
            faults.append(f"{field}: {unknown[0]!r} is none of {', '.join(sorted(allowed))}")
    faults += [
        f"`{field}` is empty"
        for field in ("decides", "values", "checks")
        if not getattr(cls, field)
    ]
    return faults


__all__ = ["Family", "Known"]
