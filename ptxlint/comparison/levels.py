"""At which level two builds of a kernel are compared: PTX, machine code, or both.

PTX is held against PTX and machine code against machine code. Where one side is PTX and the other
is not, the PTX becomes machine code: that of the cubin beside it, else what an assembler makes of
it.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ptxlint.comparison.records import KernelRecord
from ptxlint.frontends.cubin import code_of
from ptxlint.frontends.toolkit import ToolError

Pair: TypeAlias = tuple[KernelRecord, KernelRecord]


class UnlikeError(ValueError):
    """A pair of which nothing can be compared: the text says why."""


class OneLevel(NamedTuple):
    """Builds of a kernel at one level. `origins` is the PTX of those that were made machine code,
    by the identity of the build; `faults` are builds that could not be."""

    kernels: list[KernelRecord]
    origins: dict[int, KernelRecord]
    notes: list[str]
    faults: list[str]


def of_one_level(kernels: list[KernelRecord], ptxas: str | None) -> OneLevel:
    """Builds of one kernel, PTX made machine code where there is machine code among them."""
    if len({kernel.level for kernel in kernels}) == 1:
        return OneLevel(kernels, {}, [], [])
    found = OneLevel([], {}, [], [])
    for kernel in kernels:
        if kernel.is_machine:
            found.kernels.append(kernel)
            continue
        try:
            code, origin = lifted(kernel, ptxas)
        except UnlikeError as error:
            found.faults.append(f"{kernel.name} ({kernel.arch}): {error}")
            continue
        found.kernels.append(code)
        found.origins[id(code)] = kernel
        found.notes.append(
            f"{kernel.arch}: machine code is compared, since others are no PTX: {origin}"
        )
    return found


def alike(old: KernelRecord, new: KernelRecord, ptxas: str | None, notes: list[str]) -> Pair:
    """A pair at one level, the one that it has or else machine code. What had to be done for it
    goes to `notes`. Raises `UnlikeError`."""
    pair = old, new
    if old.level != new.level:
        source, side, other = (new, "new", "old") if old.is_machine else (old, "old", "new")
        code, origin = lifted(source, ptxas)
        pair = (old, code) if old.is_machine else (code, new)
        notes.append(
            f"machine code is compared, since the {side} side is PTX and the {other} one is not: "
            f"{origin}"
        )
    _tell_missing_lines(pair, notes)
    return pair


def machine_code(pair: Pair, is_changed: bool, notes: list[str]) -> Pair | None:
    """The machine code of a pair of PTX, of the cubins beside them; None if there are none, or, of
    PTX that has not changed, if they hold the same bytes. Why one is missing goes to `notes`."""
    old, new = pair
    ours, theirs = old.cubin_beside(), new.cubin_beside()
    if ours is None or theirs is None:
        if ours is not theirs:
            missing = old if ours is None else new
            notes.append(f"only PTX is compared: no cubin lies beside {missing.path}")
        return None
    # To disassemble is dear, and the cubins of a cache that was filled again are the same.
    if not is_changed and _is_same(ours, theirs, old.name, new.name):
        return None
    try:
        before, after = old.machine_code(), new.machine_code()
    except ToolError as error:
        notes.append(f"only PTX is compared: {error}")
        return None
    for kernel, found in ((old, before), (new, after)):
        if found is None:
            notes.append(
                f"only PTX is compared: the cubin beside {kernel.path} has no {kernel.name}"
            )
    if before is None or after is None:
        return None
    _tell_missing_lines((before, after), notes)
    return before, after


def lifted(kernel: KernelRecord, ptxas: str | None) -> tuple[KernelRecord, str]:
    """A PTX kernel as machine code, and where that is from. Raises `UnlikeError`."""
    try:
        code = kernel.machine_code()
        if code is not None:
            return code, f"it is that of {code.path}"
        if ptxas is None:
            raise UnlikeError(
                f"{kernel.path} is PTX without a cubin beside it, and no assembler is run"
            )
        code = kernel.assembled(ptxas)
    except ToolError as error:
        raise UnlikeError(f"{kernel.path} is PTX, and {error}") from None
    if code is None:
        raise UnlikeError(f"{kernel.path} is PTX, and its machine code has no kernel {kernel.name}")
    return code, f"{kernel.path} was assembled for that"


def _is_same(ours: bytes, theirs: bytes, old: str, new: str) -> bool:
    if ours == theirs:
        return True
    code = code_of(ours, old)
    return code is not None and code == code_of(theirs, new)


def _tell_missing_lines(pair: Pair, notes: list[str]) -> None:
    """Note machine code that was assembled without lines of its source."""
    notes += [
        f"{kernel.path} names no lines of a source: places are those of its listing"
        for kernel in pair
        if kernel.is_machine and not kernel.module.files
    ]


__all__ = ["OneLevel", "Pair", "UnlikeError", "alike", "lifted", "machine_code", "of_one_level"]
