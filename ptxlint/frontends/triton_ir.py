"""The header of Triton's IR beside a kernel: what the source calls the kernel's parameters.

A cache entry holds `KERNEL.ttir` and `KERNEL.source`; both have one `tt.func public @KERNEL(…)`,
whose arguments are the kernel's parameters in order, constants already dropped, each with its name
in a location attribute: `%n: i32 loc("n"(#loc))`, or `loc(#loc7)` with `#loc7 = loc("n"(#loc))`.
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from ptxlint.ir.function import Variable

SUFFIXES: Final = (".ttir", ".source", ".ttgir")
_MOST: Final = 4 << 20
"""Bytes that are read in search of the header."""
_PIECE: Final = 1 << 16
_ARGUMENT = re.compile(r"%[\w$.-]+\s*:\s*")
_LOCATION = re.compile(r'\bloc\(\s*(?:"([^"\\]*)"\s*\(|(#[\w.-]+)\s*\))')
_SUBSCRIPT = re.compile(r"\.(\d+)")
_NUMBER = re.compile(r"(?:i|f|bf)(\d+)")
_POINTER: Final = 8
_DESCRIPTOR: Final = 128
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*(\.\w+)*")


class IrParameter(NamedTuple):
    """A parameter of the kernel in Triton's IR: its name in the source and its IR type."""

    name: str
    type: str


def load_parameters(ptx_path: str, kernel: str) -> tuple[IrParameter, ...] | None:
    """The parameters of a kernel from the IR beside its PTX; None when there is none to read."""
    stem = ptx_path[:-4] if ptx_path.lower().endswith(".ptx") else ptx_path
    for suffix in SUFFIXES:
        text = _read_header(stem + suffix, kernel)
        found = None if text is None else parse_parameters(text, kernel)
        if found is not None:
            return found
    return None


def _read_header(path: str, kernel: str) -> str | None:
    """The text up to the end of the line on which the kernel begins; None if there is none."""
    text = ""
    try:
        # A pipe or a device of that name would block.
        if not os.path.isfile(path):
            return None
        with open(path, encoding="utf-8", errors="replace") as stream:
            while len(text) < _MOST:
                piece = stream.read(_PIECE)
                text += piece
                start = text.find(f"tt.func public @{kernel}(")
                end = text.find("\n", start)
                if start >= 0 and (end >= 0 or not piece):
                    return text[: end if end >= 0 else len(text)]
                if not piece:
                    return None
    except (OSError, ValueError):
        return None
    return None


def parse_parameters(text: str, kernel: str) -> tuple[IrParameter, ...] | None:
    """The parameters of `tt.func public @kernel`; None if it is not there or not all are named."""
    head = f"tt.func public @{kernel}("
    start = text.find(head)
    if start < 0:
        return None
    pieces = _split(text, start + len(head))
    if pieces is None:
        return None
    out: list[IrParameter] = []
    for piece in pieces:
        found = _parameter(piece, text)
        if found is None:
            return None
        out.append(found)
    return tuple(out)


def _split(text: str, start: int) -> list[str] | None:
    """The arguments between the parenthesis opened before `start` and its end; None if it has
    none."""
    out: list[str] = []
    depth, begin, at = 0, start, start
    while at < len(text):
        char = text[at]
        if char == '"':
            at = text.find('"', at + 1)
            if at < 0:
                break
        elif char in "([{<":
            depth += 1
        elif char in ")]}" or (char == ">" and text[at - 1] != "-"):
            if depth == 0:
                out.append(text[begin:at])
                return [piece for piece in out if piece.strip()]
            depth -= 1
        elif char == "," and depth == 0:
            out.append(text[begin:at])
            begin = at + 1
        at += 1
    return None


def _parameter(piece: str, text: str) -> IrParameter | None:
    """`%x: !tt.ptr<f32> {…} loc("x"(#loc))` as name and type."""
    piece = piece.strip()
    start = _ARGUMENT.match(piece)
    location = _LOCATION.search(piece)
    if start is None or location is None:
        return None
    name: str | None = location[1]
    if name is None:
        label = re.search(rf'^{re.escape(location[2])} = loc\("([^"\\]*)"\s*\(', text, re.MULTILINE)
        name = label[1] if label is not None else None
    if name is None or not _IDENTIFIER.fullmatch(name):
        return None
    type_text = piece[start.end() : location.start()].partition("{")[0]
    return IrParameter(_SUBSCRIPT.sub(r"[\1]", name), type_text.strip())


def agrees(parameter: IrParameter, declared: Variable) -> bool:
    """True if a parameter of this type in Triton's IR may be declared so in PTX."""
    kind = parameter.type
    if kind.startswith("!tt.ptr"):
        return declared.size == _POINTER and not declared.dims
    if kind.startswith("!tt.tensordesc"):
        return declared.size == _DESCRIPTOR
    number = _NUMBER.fullmatch(kind)
    if number is None or "ptr" in declared.attributes:
        return False
    return declared.size == max(8, int(number[1])) // 8
