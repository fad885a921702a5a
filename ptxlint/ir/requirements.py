"""Which PTX ISA version and which targets an instruction asks for.

The table's own versions and targets, and those that modifiers bring along. Only what ptxas was
measured to demand is demanded: nothing below PTX 4.0 and sm_50, which no assembler of today reads.
"""

# No `from __future__ import annotations`: it makes a NamedTuple 1 ms dearer to import.
from typing import Final, NamedTuple

from ptxlint.ir.instruction import Shape

Version = tuple[int, int]


class Need(NamedTuple):
    """What is asked for by what: the words of a message, a version and targets."""

    what: str
    since: Version
    target: str


_MODIFIERS: Final[dict[str, tuple[Version, str]]] = {
    "L2::cache_hint": ((7, 4), "80"),
    "shared::cluster": ((7, 8), "90"),
    "multicast::cluster": ((8, 0), "90"),
    "acquire": ((6, 0), "70"),
    "release": ((6, 0), "70"),
    "acq_rel": ((6, 0), "70"),
    "relaxed": ((6, 0), "70"),
    "mmio": ((8, 2), "70"),
    "L1::evict_first": ((7, 4), "70"),
    "L1::evict_last": ((7, 4), "70"),
    "L1::no_allocate": ((7, 4), "70"),
    "param::entry": ((8, 3), ""),
    "param::func": ((8, 3), ""),
    "b128": ((8, 3), "70"),
    "bf16": ((7, 0), "80"),
    "tf32": ((7, 0), "80"),
    "f16x2": ((4, 2), "53"),
    "f32x2": ((8, 6), "100"),
    "u16x2": ((8, 0), "90"),
    "s16x2": ((8, 0), "90"),
    "e4m3x2": ((7, 8), "89"),
    "e5m2x2": ((7, 8), "89"),
    "e2m1x2": ((8, 6), "100f,110f,120f"),
    "e2m3x2": ((8, 6), "100f,110f,120f"),
    "e3m2x2": ((8, 6), "100f,110f,120f"),
    "ue8m0x2": ((8, 6), "100f,110f,120f"),
    "relu": ((7, 0), "80"),
    "xorsign": ((7, 2), "86"),
    "NaN": ((7, 0), "80"),
    "cp_mask": ((8, 6), "100"),
    "v8": ((8, 1), "90"),
}


def needs_of(shape: Shape) -> tuple[Need, ...]:
    """All requirements of a shape, the opcode's first."""
    row, form = shape.row, shape.form
    needs = []
    if row.known:
        needs.append(Need(f"`{shape.opcode}`", row.since, row.target))
        if form is not None and form.since > (0, 0):
            what = ".".join((shape.opcode, *(w for w in form.when if w[0] != "!")))
            needs[0] = Need(f"`{what}`", form.since, form.target or row.target)
        elif form is None:
            del needs[:]
    for modifier in shape.modifiers:
        found = _MODIFIERS.get(modifier)
        if found is not None:
            needs.append(Need(f"`.{modifier}`", *found))
    return tuple(needs)


def version_fault(need: Need, version: Version) -> str:
    """Why the version does not do, "" if it does."""
    if need.since <= version or need.since < (4, 0):
        return ""
    return f"{need.what} needs PTX ISA {need.since[0]}.{need.since[1]}"


def target_fault(need: Need, number: int, suffix: str) -> str:
    """Why the target does not do, "" if it does."""
    parts = [p for p in need.target.split(",") if p]
    if not parts or any(_has(part, number, suffix) for part in parts):
        return ""
    if parts[0].isdigit() and int(parts[0]) < 50:
        return ""
    return f"{need.what} needs {' or '.join(_name(p) for p in parts)}"


def _has(part: str, number: int, suffix: str) -> bool:
    from ptxlint.arch.features import FAMILIES

    wanted = int(part.rstrip("af"))
    if part[-1] == "a":
        return number == wanted and suffix == "a"
    if part[-1] == "f":
        return number in FAMILIES[wanted] and suffix != ""
    return number >= wanted


def _name(part: str) -> str:
    if part[-1] == "a":
        return f"the target sm_{part}"
    if part[-1] == "f":
        return f"an `a` or `f` target of the family of sm_{part[:-1]}"
    return f"sm_{part} or later"
