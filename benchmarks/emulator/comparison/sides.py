"""The two sides: cases in the emulator, and the same on a GPU.

Cases come in batches, one for each process at a time. A batch is a list of keys; outputs are named
`key|output`. A case that cannot be run leaves the reason as `key|left out`.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any, Final

import numpy as np

from ptxlint.dynamic.cuda_driver import Context, CudaError, NoDriverError, PlacementError
from ptxlint.dynamic.emulator.elements import kept_as, to_numbers
from ptxlint.dynamic.emulator.inputs import InputError
from ptxlint.dynamic.emulator.sanitizer.choice import Sanitize
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.launch.binding import BindingError

from . import captured, fixtures, instructions
from .disturbed import disturbed
from .operations import GROUPS
from .store import kept, load, of_case

Array = np.ndarray[Any, Any]
SEEDS: Final = 6
"""Runs of a captured launch in which everything errs at random."""
_BATCH: Final = 6
SPREAD: Final = "~"
LEFT_OUT: Final = "left out"
DEVICE: Final = "device"
_INSTRUCTIONS: Final = "instructions/"


@lru_cache(maxsize=1)
def _cases(bundles: tuple[str, ...]) -> dict[str, Any]:
    found: dict[str, Any] = {case.key: case for case in fixtures.cases()}
    for bundle in bundles:
        found.update({case.key: case for case in captured.cases(bundle)})
    return found


def all_cases(bundles: list[str]) -> dict[str, Any]:
    """Fixtures and captured launches by key."""
    return _cases(tuple(bundles))


def batches(folder: Path, bundles: list[str], side: str) -> list[tuple[tuple[str, ...], Any]]:
    """What a process is given at a time: the bundles, and keys. On a GPU only those cases are run
    in which the emulator found nothing wrong."""
    # What takes longest begins first.
    keys = list(reversed(all_cases(bundles)))
    if side == "record":
        mine = load(folder, "emulate")
        if mine:
            keys = [key for key in keys if f"{key}|{LEFT_OUT}" not in mine]
    keys = [_INSTRUCTIONS + group for group in GROUPS] + keys
    return [(tuple(bundles), keys[at : at + _BATCH]) for at in range(0, len(keys), _BATCH)]


def emulate(job: tuple[str, tuple[tuple[str, ...], list[str]]]) -> dict[str, Array]:
    """A batch in the emulator."""
    _, (bundles, keys) = job
    out: dict[str, Array] = {}
    for key in keys:
        try:
            for name, values in _emulated(bundles, key):
                out.update(kept(f"{key}|{name}", values))
        except (UnsupportedError, InputError, BindingError, LeftOutError) as error:
            out[f"{key}|{LEFT_OUT}"] = np.array(str(error))
    return out


class LeftOutError(Exception):
    """A case that says nothing, and why."""


def _emulated(bundles: tuple[str, ...], key: str) -> Iterator[tuple[str, Array]]:
    if key.startswith(_INSTRUCTIONS):
        group = key.removeprefix(_INSTRUCTIONS)
        for at, operation in enumerate(GROUPS[group]()):
            found = instructions.in_emulator(group, at, operation)
            if isinstance(found, str):
                yield f"{operation.text}|{LEFT_OUT}", np.array(found)
            else:
                yield operation.text, found
        return
    case = all_cases(list(bundles))[key]
    if isinstance(case, captured.CapturedCase):
        outputs = case.in_emulator(Sanitize(races=True))
        _check(outputs)
        for name, values in _spread(case, outputs).items():
            yield f"{name}{SPREAD}", values
    else:
        outputs = case.in_emulator()
    yield from outputs.items()


def _spread(case: captured.CapturedCase, outputs: dict[str, Array]) -> dict[str, Array]:
    """How far each element of an output comes to lie from itself when everything errs; NaN where
    it becomes something that is no number."""
    types = case.types()
    names = [name for name in outputs if name in types]
    numbers = {name: numbers_of(outputs[name], types[name]) for name in names}
    found = {name: np.zeros(numbers[name].shape, dtype=np.float32) for name in names}
    for seed in range(SEEDS):
        with disturbed(seed):
            erring = case.in_emulator()
        for name in names:
            if name not in erring:
                # Nothing of it was changed: it is as it was before.
                continue
            other = numbers_of(erring[name], types[name])
            with np.errstate(all="ignore"):
                apart = np.abs(other - numbers[name]).astype(np.float32)
            same = (other == numbers[name]) | np.isnan(other) & np.isnan(numbers[name])
            found[name] = np.maximum(found[name], np.where(same, 0, apart))
    return found


def numbers_of(elements: Array, type_name: str) -> Array:
    """Elements as float64; bits as integers where the type has no numbers."""
    flat = np.ascontiguousarray(elements)
    try:
        return to_numbers(flat.view(kept_as(type_name)), type_name).astype(np.float64)
    except KeyError:
        return flat.view(f"u{flat.dtype.itemsize}").astype(np.float64)


def _check(outputs: dict[str, Array]) -> None:
    faults = str(outputs.pop("faults"))
    if faults:
        raise LeftOutError(f"with random inputs: {faults}")
    if len(outputs) == 1:
        raise LeftOutError("writes nothing with these inputs")


def record(job: tuple[str, tuple[tuple[str, ...], list[str]]]) -> dict[str, Array]:
    """A batch on the GPU. A kernel that fails there ends the batch, which says so."""
    folder, (bundles, keys) = Path(job[0]), job[1]
    out: dict[str, Array] = {}
    try:
        context = Context()
    except NoDriverError as error:
        raise SystemExit(f"no GPU: {error}") from None
    out[DEVICE] = np.array(context.device.name)
    with context:
        for key in keys:
            try:
                found = _on_gpu(context, folder, bundles, key)
            except (CudaError, PlacementError, OSError) as error:
                out[f"{key}|{LEFT_OUT}"] = np.array(f"on the GPU: {error}")
                continue
            for name, values in found.items():
                out.update(kept(f"{key}|{name}", values))
    return out


def _on_gpu(context: Context, folder: Path, bundles: tuple[str, ...], key: str) -> dict[str, Array]:
    if key.startswith(_INSTRUCTIONS):
        return instructions.on_gpu(
            context, key.removeprefix(_INSTRUCTIONS), (folder / f"{key}.cubin").read_bytes()
        )
    case = all_cases(list(bundles))[key]
    found: dict[str, Array] = case.on_gpu(context, (folder / case.cubin).read_bytes())
    return found


__all__ = ["DEVICE", "LEFT_OUT", "all_cases", "batches", "emulate", "of_case", "record"]
