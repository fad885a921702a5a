"""Kernels without names: registers, labels, parameters and symbols by the order of their use.

Two kernels with equal `identity` do the same, instruction by instruction; with equal `shape` they
do so up to the constants in them, signs included. What a kernel calls and the arrays that it names
belong to it. Nothing of debugging information enters.
"""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b
from typing import NamedTuple

from ptxlint.ir.function import Function, Pragma
from ptxlint.ir.instruction import Instr, Pattern
from ptxlint.ir.module import Module
from ptxlint.ir.operand import Atom, Immediate, Label, Register, SpecialRegister, Symbol
from ptxlint.ir.pattern import instantiate
from ptxlint.structure.declared import Declared, Reached


class Kernel(NamedTuple):
    """A function, and the module that it stands in."""

    function: Function
    module: Module


class Line(NamedTuple):
    """One instruction: its form, and the constants in it in operand order."""

    form: str
    constants: tuple[Immediate, ...]

    @property
    def text(self) -> str:
        """The form with its constants."""
        return f"{self.form} {' '.join(key(c) for c in self.constants)}"


class Canonical(NamedTuple):
    """A kernel without names. `lines` are those of `instrs`: its own instructions, then those of
    the functions that it calls, in the order in which they are met. `declared` are parameters, what
    the kernel fixes of its launch, and the arrays and functions that are named."""

    declared: tuple[Declared, ...]
    lines: tuple[Line, ...]
    instrs: tuple[Instr, ...]

    @property
    def identity(self) -> str:
        """A hash that equal kernels have in common, constants and all."""
        declared = [f"{d.form} {' '.join(key(c) for c in d.constants)}" for d in self.declared]
        return _hash([*declared, *(line.text for line in self.lines)])

    @property
    def shape(self) -> str:
        """A hash of what is left without the constants."""
        return _hash([*(d.form for d in self.declared), *(line.form for line in self.lines)])


def canonical(kernel: Kernel) -> Canonical:
    """A kernel without names."""
    reached = Reached(kernel.function, kernel.module)
    lines: list[Line] = []
    instrs: list[Instr] = []
    # Functions are added while their callers are read.
    for fn in reached.functions:
        naming = _Naming(fn, reached)
        own = _without_padding(fn)
        lines += [naming.line(instr) for instr in own]
        instrs += own
    return Canonical(tuple(reached.declared), tuple(lines), tuple(instrs))


def _without_padding(fn: Function) -> list[Instr]:
    """The instructions of a function but for those that fill its section up at the end."""
    end = len(fn.instrs)
    while end and fn.instrs[end - 1].opcode == "NOP":
        end -= 1
    return fn.instrs[:end]


def anonymous(instr: Instr) -> str:
    """An instruction's form with every register and label alike: what alignment compares first."""
    shape = instr.shape
    kinds = " ".join(_kind(atom) for atom in instr.args)
    return f"{shape.guard}{shape.mnemonic} {kinds} {_outline(instr)}"


def key(constant: Immediate) -> str:
    """A constant by its kind and value, however it is written."""
    return f"{constant.kind}:{constant.value:x}"


def constants(instr: Instr) -> tuple[Immediate, ...]:
    """The constants of an instruction, in operand order."""
    return tuple(c for pattern in instr.shape.patterns for c in _constants(pattern, instr.args))


def _constants(pattern: Pattern, args: tuple[Atom, ...]) -> Iterator[Immediate]:
    """The constants of one operand; a sign belongs to its number."""
    if _is_signed(pattern, args):
        found = instantiate(pattern, args)
        assert isinstance(found, Immediate)
        yield found
    elif pattern[0] == "s":
        atom = args[pattern[1]]
        if isinstance(atom, Immediate):
            yield atom
    elif pattern[0] == "r":
        yield from args[pattern[1] : pattern[1] + pattern[2]]  # type: ignore[misc]
    else:
        for part in pattern[1:]:
            if isinstance(part, tuple):
                yield from _constants(part, args)


def _is_signed(pattern: Pattern, args: tuple[Atom, ...]) -> bool:
    if pattern[0] != "u" or pattern[1] not in ("-", "+") or pattern[2][0] != "s":
        return False
    atom = args[pattern[2][1]]
    return isinstance(atom, Immediate) and (atom.kind == "int" or pattern[1] == "-")


def _hash(parts: list[str]) -> str:
    digest = blake2b(digest_size=16)
    for part in parts:
        digest.update(part.encode())
        digest.update(b"\n")
    return digest.hexdigest()


def _kind(atom: Atom) -> str:
    if isinstance(atom, Register):
        return atom.type
    if isinstance(atom, SpecialRegister):
        return atom.name
    return type(atom).__name__


class _Naming:
    """Numbers for names in one function, in the order in which they are met."""

    def __init__(self, fn: Function, reached: Reached) -> None:
        self._fn = fn
        self._reached = reached
        self._registers: dict[Register, int] = {}
        self._pragmas = _pragmas(fn)

    def line(self, instr: Instr) -> Line:
        """An instruction in these names."""
        shape = instr.shape
        words = " ".join([self._word(instr, atom) for atom in instr.args])
        form = f"{shape.guard}{shape.mnemonic} {words} {_outline(instr)}"
        if self._pragmas:
            form += self._pragmas.get(instr.index, "")
        return Line(form, constants(instr))

    def _word(self, instr: Instr, atom: Atom) -> str:
        if isinstance(atom, Register):
            number = self._registers.setdefault(atom, len(self._registers))
            return f"{atom.type}{number}"
        if isinstance(atom, Immediate):
            return "#"
        if isinstance(atom, Label):
            # Where it leads to, seen from here: labels move with what lies before them.
            return f"@{atom.target - instr.index}" if atom.target >= 0 else "@?"
        if isinstance(atom, Symbol):
            return self._reached.word(self._fn, atom, instr.index)
        return atom.name


def _pragmas(fn: Function) -> dict[int, str]:
    """What `.pragma` says before an instruction, by the instruction's number."""
    if not any(type(item) is Pragma for item in fn.items):
        return {}
    out: dict[int, str] = {}
    at = 0
    for item in fn.items:
        if isinstance(item, Instr):
            at = item.index + 1
        elif isinstance(item, Pragma):
            out[at] = f"{out.get(at, '')} {' '.join(item.texts)}"
    return out


def _outline(instr: Instr) -> str:
    return ",".join("".join(_words(pattern, instr.args)) for pattern in instr.shape.patterns)


def _words(pattern: Pattern, args: tuple[Atom, ...]) -> Iterator[str]:
    """A pattern's parts but for the numbers of its slots, which are the same in all."""
    if _is_signed(pattern, args):
        pattern = pattern[2]
    if pattern[0] == "r":
        yield f"r{pattern[2]}"
        return
    for part in pattern:
        if isinstance(part, tuple):
            yield "("
            yield from _words(part, args)
            yield ")"
        elif isinstance(part, str):
            yield part


__all__ = ["Canonical", "Kernel", "Line", "anonymous", "canonical", "constants", "key"]
