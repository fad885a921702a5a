"""Tolerances taken from kernels that are known to be right, in a file with the sample behind them.

Of each case the largest error is told as a share of what the bound allows there (`Compared.share`):
that says the same at every size, where an absolute or a relative tolerance would not. A tolerance
is the 95th percentile of these shares times 1.5, for an operator and a dtype; the bound times that
is what is allowed from then on, and at least what rounding the result does.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import replace
from math import ceil, isfinite
from pathlib import Path
from typing import Any, Final, NamedTuple

from ptxlint.dynamic.cases.case import Case
from ptxlint.dynamic.operators.spec import Operator
from ptxlint.dynamic.oracle.compared import Compared

VERSION: Final = 1
_PERCENT, _TIMES = 95, 1.5
_LEAST_CASES: Final = 8
"""Of fewer cases a percentile says nothing."""


class CalibrationError(ValueError):
    """A sample or a file that gives no tolerances; the text says why."""


class Sample(NamedTuple):
    """What a tolerance rests on. Shares are of what the bound allows."""

    cases: int
    seeds: tuple[int, ...]
    values: tuple[str, ...]
    """Strategies."""
    p95: float
    largest: float
    beyond: int
    """Cases of the sample itself that the tolerance would not allow."""
    max_abs: float
    max_rel: float
    max_ulp: float


class Calibrated(NamedTuple):
    """The tolerance of an operator for a dtype: `scale` times the bound."""

    operator: str
    dtype: str
    scale: float
    sample: Sample


def calibrated(ran: Iterable[tuple[Case, tuple[Compared, ...]]]) -> tuple[Calibrated, ...]:
    """Tolerances from cases that were run, and what came of comparing each.

    Raises `CalibrationError` for less than 8 cases of an operator and a dtype, and for one with a
    NaN or an infinity that its reference has not: such a kernel is not known to be right.
    """
    grouped: dict[tuple[str, str], list[tuple[Case, tuple[Compared, ...]]]] = {}
    for case, compared in ran:
        if compared:
            grouped.setdefault((case.operator, case.dtype), []).append((case, compared))
    if not grouped:
        raise CalibrationError("nothing was compared: there is no sample")
    return tuple(_calibrated(*key, sample) for key, sample in sorted(grouped.items()))


def _calibrated(
    operator: str, dtype: str, ran: list[tuple[Case, tuple[Compared, ...]]]
) -> Calibrated:
    if len(ran) < _LEAST_CASES:
        raise CalibrationError(
            f"{operator} ({dtype}): {len(ran)} cases, give at least {_LEAST_CASES}"
        )
    shares = []
    for case, compared in ran:
        share = max(one.share for one in compared)
        if any(one.nonfinite for one in compared) or not isfinite(share):
            raise CalibrationError(
                f"{operator} ({dtype}): seed {case.seed}, values {case.values}, "
                f"{dict(case.dims)}: it is not right there, so it cannot be what others are held to"
            )
        shares.append(share)
    every = [one for _, compared in ran for one in compared]
    p95 = sorted(shares)[ceil(len(shares) * _PERCENT / 100) - 1]
    scale = _TIMES * p95
    sample = Sample(
        len(ran),
        tuple(sorted({case.seed for case, _ in ran})),
        tuple(sorted({case.values for case, _ in ran})),
        p95,
        max(shares),
        sum(share > scale for share in shares),
        max(one.max_abs for one in every),
        max(one.max_rel for one in every),
        max(one.max_ulp for one in every),
    )
    return Calibrated(operator, dtype, scale, sample)


def applied(operator: Operator, tolerances: Iterable[Calibrated]) -> Operator:
    """The operator with those of the tolerances that are its own. What its spec gives stays."""
    own = {each.dtype: each.scale for each in tolerances if each.operator == operator.name}
    return replace(operator, calibrated={**operator.calibrated, **own})


def written(tolerances: Iterable[Calibrated]) -> str:
    """The text of a file."""
    told = [{**each._asdict(), "sample": each.sample._asdict()} for each in tolerances]
    return json.dumps({"version": VERSION, "tolerances": told}, indent=2) + "\n"


def read(path: str) -> tuple[Calibrated, ...]:
    """The tolerances in a file. Raises `CalibrationError`."""
    try:
        told = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise CalibrationError(f"{path}: {error.strerror}") from None
    except ValueError as error:
        raise CalibrationError(f"{path}: no JSON: {error}") from None
    version = told.get("version") if isinstance(told, dict) else None
    if version != VERSION:
        raise CalibrationError(
            f"{path}: version {version!r} of a file of tolerances, not {VERSION}: "
            "write it again with `ptxlint calibrate`"
        )
    try:
        return tuple(_read(each) for each in told["tolerances"])
    except (KeyError, TypeError, ValueError) as error:
        said = f"no {error}" if isinstance(error, KeyError) else str(error)
        raise CalibrationError(f"{path}: no file of tolerances: {said}") from None


def _read(told: Mapping[str, Any]) -> Calibrated:
    sample = {name: told["sample"][name] for name in Sample._fields}
    scale = float(told["scale"])
    if not (isfinite(scale) and scale >= 0):
        raise ValueError(f"the scale of {told['operator']} is {scale}")
    many = {name: tuple(sample[name]) for name in ("seeds", "values")}
    return Calibrated(
        str(told["operator"]), str(told["dtype"]), scale, Sample(**{**sample, **many})
    )


__all__ = [
    "VERSION", "Calibrated", "CalibrationError", "Sample", "applied", "calibrated", "read",
    "written",
]  # fmt: skip
