"""Kernels that say which addresses they touch: PTX with a record before each global access.

The record is the least and the greatest address of each access, over all threads in which it takes
place, in a variable of the module. What is outside of a tensor and inside of another allocation,
where no memory checker sees it, is seen so.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.module import Module

VARIABLE: Final = "ptxlint_addresses"
"""The variable: for each site the least and the greatest address, 64 bits each."""
_NEVER: Final = (1 << 64) - 1
_HEADER: Final = re.compile(r"^\s*\.address_size\s+64.*$", re.MULTILINE)
_GUARD: Final = re.compile(r"@(!?)\s*(%[\w$]+)\s")
_PLACE: Final = re.compile(r"\[\s*(%[\w$]+)\s*(?:\+\s*(-?\w+)\s*)?\]")
_ACCESSES: Final = frozenset({"ld", "ldu", "st", "atom", "red"})


class Touched(NamedTuple):
    """What an access touched: the least and the greatest address of a first byte."""

    least: int
    greatest: int


class LoggedPtx(NamedTuple):
    """PTX with records. `sites` are the indices of the instructions that are recorded, in the order
    of the variable, `left_out` those of global accesses whose address is no register."""

    text: str
    sites: list[int]
    left_out: list[int]

    @property
    def blank(self) -> bytes:
        """What the variable must hold before a launch."""
        return (_NEVER.to_bytes(8, "little") + bytes(8)) * len(self.sites)

    def read(self, data: bytes) -> dict[int, Touched]:
        """What each access touched, by the index of its instruction; those that took place."""
        out: dict[int, Touched] = {}
        for number, site in enumerate(self.sites):
            least, greatest = (
                int.from_bytes(data[at : at + 8], "little") for at in (16 * number, 16 * number + 8)
            )
            if least != _NEVER:
                out[site] = Touched(least, greatest)
        return out


def logged(module: Module, kernel: Function) -> LoggedPtx:
    """The text of a module whose kernel records what it touches.

    Raises ValueError for a module that is not one of 64-bit addresses.
    """
    text = module.source.text
    header = _HEADER.search(text)
    if header is None:
        raise ValueError("addresses of 64 bits are recorded, and the module does not say so")
    sites: list[int] = []
    left_out: list[int] = []
    inserted: list[tuple[int, str]] = []
    for instr in kernel.instrs:
        if not _is_global(instr):
            continue
        record = _record(_text_of(instr, text), len(sites))
        if record is None:
            left_out.append(instr.index)
        else:
            sites.append(instr.index)
            inserted.append((instr.offset, record))
    size = max(1, 16 * len(sites))
    variable = f"\n.visible .global .align 8 .b8 {VARIABLE}[{size}];\n"
    parts: list[str] = []
    at = 0
    for offset, record in [(header.end(), variable), *inserted]:
        parts += [text[at:offset], record]
        at = offset
    return LoggedPtx("".join([*parts, text[at:]]), sites, left_out)


def _is_global(instr: Instr) -> bool:
    """True for what reads or writes global memory by an address."""
    shape = instr.shape
    if shape.opcode == "cp":
        return shape.has("async") and shape.has("global") and not shape.has("bulk")
    return shape.opcode in _ACCESSES and shape.space == "global"


def _text_of(instr: Instr, text: str) -> str:
    return text[instr.offset : text.index(";", instr.offset)]


def _copied(statement: str) -> str:
    """How many bytes an asynchronous copy reads, as it is written; empty if that is its size."""
    operands = [part.strip() for part in statement.rpartition("]")[2].split(",")[1:]]
    if ".L2::cache_hint" in statement:
        operands.pop()
    return operands[1] if len(operands) > 1 else ""


def _record(statement: str, number: int) -> str | None:
    """Code that records the address of an access; None if it is not in a register."""
    guard = _GUARD.match(statement)
    places = _PLACE.findall(statement)
    copies = " cp.async" in f" {statement[guard.end() if guard else 0 :].lstrip()}"
    at = 1 if copies else 0
    if len(places) <= at:
        return None
    base, offset = places[at]
    condition = f"@{guard[1]}{guard[2]} " if guard else ""
    lines = [
        "{ .reg .b64 %ptxlint_at; .reg .pred %ptxlint_on;",
        f"add.s64 %ptxlint_at, {base}, {offset or 0};",
    ]
    size = _copied(statement) if copies else ""
    if size:
        # A copy of no bytes touches nothing.
        lines.append("setp.ne.b32 %ptxlint_on, 0, 0;")
        lines.append(f"{condition}setp.ne.b32 %ptxlint_on, {size}, 0;")
        condition = "@%ptxlint_on "
    for operation, where in (("min", 16 * number), ("max", 16 * number + 8)):
        lines.append(
            f"{condition}red.relaxed.gpu.global.{operation}.u64 [{VARIABLE}+{where}], %ptxlint_at;"
        )
    return "\n".join([*lines, "}\n"])
