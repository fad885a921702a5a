"""The outputs of the two sides, held against each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np

from ptxlint.dynamic.emulator.rounding import SMALLEST_NORMAL

from . import captured, sides
from .errors import BOUNDS, last_place, numbers, scalar
from .fixtures import FixtureCase
from .operands import operands
from .operations import GROUPS, Operation
from .store import CHECKSUM, MOST, load, of_case

Array = np.ndarray[Any, Any]
_FLOATS: Final = ("f16", "bf16", "f32", "f64")
_FAR: Final = 4
_TORCH: Final = {
    "float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64",
}  # fmt: skip


def judge(folder: Path, bundles: list[str]) -> dict[str, Any]:
    """What the page tells: records of fixtures, captured launches and instructions."""
    mine, theirs = load(folder, "emulate"), load(folder, "record")
    fixtures, others = [], []
    for key, case in sides.all_cases(bundles).items():
        record = _record(case, of_case(mine, key), of_case(theirs, key))
        (fixtures if isinstance(case, FixtureCase) else others).append(record)
    instructions = []
    for group, operations in GROUPS.items():
        one, other = (of_case(side, f"instructions/{group}") for side in (mine, theirs))
        told = [_instruction(operation, one, other) for operation in operations()]
        instructions += [{"group": group} | record for record in told]
    device = str(theirs.get(sides.DEVICE, "no GPU"))
    return {
        "device": device, "fixtures": fixtures, "captured": others, "instructions": instructions,
    }  # fmt: skip


def _record(case: Any, mine: dict[str, Array], theirs: dict[str, Array]) -> dict[str, Any]:
    if isinstance(case, FixtureCase):
        record: dict[str, Any] = {"arch": case.arch, "build": case.name, "number": case.number}
    else:
        file = case.file.rpartition("_")[2]
        record = {"library": case.library, "kernel": case.kernel, "build": file,
                  "number": case.number}  # fmt: skip
    for side in (mine, theirs):
        if sides.LEFT_OUT in side or "checksum" not in side:
            return record | {"left_out": str(side.get(sides.LEFT_OUT, "not run"))}
    if mine["checksum"] != theirs["checksum"]:
        return record | {"left_out": "the inputs were not the same"}
    if isinstance(case, FixtureCase):
        return record | {"outputs": case.compared(mine, theirs)}
    record["atomics"] = case.has_atomics
    return record | {"outputs": _captured(case, mine, theirs)}


# Captured launches ----------------------------------------------------------------------------
def _captured(
    case: captured.CapturedCase, mine: dict[str, Array], theirs: dict[str, Array]
) -> dict[str, Any]:
    types = case.types()
    names = {name for name in (*mine, *theirs) if name in types}
    return {name: _output(name, types[name], mine, theirs) for name in sorted(names)}


def _output(
    name: str, type_name: str, mine: dict[str, Array], theirs: dict[str, Array]
) -> dict[str, Any]:
    """One tensor: how many elements differ; by how much at most, and how far runs that err come to
    lie apart and a unit in the last place, both in parts of the largest number; and of how many
    elements that is far beyond what those runs make of the element itself."""
    if name not in mine or name not in theirs:
        side = "the GPU" if name in theirs else "the emulator"
        return {"only": side}
    count = int(mine[name + CHECKSUM][1])
    is_equal = bool((mine[name + CHECKSUM] == theirs[name + CHECKSUM]).all())
    words = [np.ascontiguousarray(side[name]) for side in (mine, theirs)]
    values = [sides.numbers_of(words_, type_name) for words_ in words]
    differs = words[0].view(f"u{words[0].dtype.itemsize}") != words[1].view(
        f"u{words[1].dtype.itemsize}"
    )
    differs &= ~(np.isnan(values[0]) & np.isnan(values[1]))
    spread = mine[name + sides.SPREAD].astype(np.float64)
    unit = _unit(values[0], type_name, spread)
    with np.errstate(all="ignore"):
        apart = np.where(differs, np.abs(values[0] - values[1]), 0)
    apart = np.where(np.isnan(apart), np.inf, apart)
    return {
        "elements": count,
        "seen": int(differs.size),
        "differ": int(differs.sum()),
        "equal": is_equal,
        "beyond": int((apart > _FAR * (spread + unit)).sum()),
        "apart": _relative(apart, values[0]),
        "allowed": _relative(spread + unit, values[0]),
    }


def _unit(values: Array, type_name: str, spread: Array) -> Array:
    kind = _TORCH.get(type_name)
    if kind is not None:
        return last_place(values, kind)
    # Whole numbers are rounded from others only where what errs shows in them.
    return np.full(values.shape, 1.0 if (spread > 0).any() else 0.0)


def _relative(sizes: Array, values: Array) -> float:
    """The largest size, in parts of the largest number."""
    largest = np.abs(values[np.isfinite(values)]).max(initial=0)
    most = sizes[~np.isnan(sizes)].max(initial=0)
    return float(most / largest) if largest else float(most)


# Instructions ---------------------------------------------------------------------------------
def _instruction(
    operation: Operation, mine: dict[str, Array], theirs: dict[str, Array]
) -> dict[str, Any]:
    record: dict[str, Any] = {"name": operation.name}
    text = operation.text
    if text not in mine or text not in theirs:
        reason = mine.get(f"{text}|{sides.LEFT_OUT}", "not run")
        return record | {"left_out": str(reason)}
    words = mine[text], theirs[text]
    differs = words[0] != words[1]
    nan = np.zeros(differs.shape, dtype=bool)
    if scalar(operation.result) in _FLOATS:
        nan = _only_nan(words, operation.result)
    record |= {
        "lanes": int(mine[text + CHECKSUM][1]),
        "seen": len(differs),
        "differ": int((differs & ~nan).sum()),
        "other_nan": int((differs & nan).sum()),
        "equal": bool((mine[text + CHECKSUM] == theirs[text + CHECKSUM]).all()),
    }
    if operation.bound:
        record |= _approximate(operation, words)
    return record


def _only_nan(words: tuple[Array, Array], kind: str) -> Array:
    """Where results are the same but for the bits of NaN."""
    values = [numbers(part, kind).reshape(len(part), -1) for part in words]
    parts = [np.ascontiguousarray(w).view(f"u{w.dtype.itemsize // values[0].shape[1]}")
             .reshape(values[0].shape) for w in words]  # fmt: skip
    same = (parts[0] == parts[1]) | np.isnan(values[0]) & np.isnan(values[1])
    out: Array = same.all(axis=1)
    return out


def _approximate(operation: Operation, words: tuple[Array, Array]) -> dict[str, Any]:
    """How far the results lie apart, and each from the exact one, in parts of what is allowed."""
    bound, kind = BOUNDS[operation.bound], operation.result
    arrays = operands(operation.kinds, operation.text)
    step = -(-len(arrays[0]) // MOST)
    given = [numbers(a[::step], k) for a, k in zip(arrays, operation.kinds, strict=True)]
    flushes = ".ftz" in operation.text
    smallest = SMALLEST_NORMAL.get(scalar(kind), 0.0)
    if flushes:
        given = [np.where(np.abs(x) < smallest, np.copysign(0, x), x) for x in given]
    mine, theirs = (numbers(w, kind) for w in words)
    with np.errstate(all="ignore"):
        truth = bound.exact(*given)
        allowed = bound.allowed(truth, kind, *given)
        if flushes:
            # Zero is right for what is subnormal.
            allowed = np.maximum(allowed, np.where(np.abs(truth) < smallest, smallest, 0))
        place = last_place(truth, kind)
        counts = np.isfinite(mine) & np.isfinite(theirs) & np.isfinite(truth)
        named = counts & ~np.isnan(allowed)
        apart = np.where(named, np.abs(mine - theirs) / place, 0)
        errors = [np.where(named, np.abs(x - truth) / allowed, 0) for x in (mine, theirs)]
        share = np.where(named, np.abs(mine - theirs) / allowed, 0)
    special = ~counts & ~((mine == theirs) | np.isnan(mine) & np.isnan(theirs))
    return {
        "bound": bound.words,
        "named": int(named.sum()),
        "apart": float(apart.max(initial=0)),
        "share": float(share.max(initial=0)),
        "emulator": float(errors[0].max(initial=0)),
        "gpu": float(errors[1].max(initial=0)),
        "special": int(special.sum()),
    }


__all__ = ["judge"]
