"""Faults that a text can have although it parses: operands, types, versions, targets, calls.

One pass; verdicts on operands are kept by shape and slot types over all modules. The first rule:
never report what an assembler accepts. What is not known passes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import repeat
from typing import Final

from ptxlint.ir.function import Function, Prototype, Variable
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.module import Module
from ptxlint.ir.operand import Atom, Symbol
from ptxlint.ir.operand_check import Fault, describe, faults
from ptxlint.ir.requirements import needs_of, target_fault, version_fault
from ptxlint.source import Problem

MAX_PROBLEMS: Final = 200
"""Faults after which a module is given up."""

LATEST: Final = (9, 4)
"""The PTX ISA that the opcode table covers whole."""

_NOTHING: Final = repeat("")

_contexts: dict[tuple[tuple[int, int], str], dict[Shape, set[tuple[str, ...]]]] = {}
"""By version and architecture: the shapes seen, with the slot descriptions that have no fault."""


def verify(module: Module) -> list[Problem]:
    """The faults of a parsed module, in text order; names and syntax are the parser's to report."""
    return _Verifier(module).run()


class _Verifier:
    def __init__(self, module: Module) -> None:
        self.module = module
        self.problems: list[Problem] = []
        self.number, self.suffix = _target(module)
        self.clean = _contexts.setdefault((module.version, module.arch), {})
        self.lacks: dict[Shape, tuple[tuple[str, str], ...]] = {}
        self.functions: dict[str, list[Function]] = {}
        for function in module.functions:
            self.functions.setdefault(function.name, []).append(function)
        self.spaces = {name: v.space for name, v in module.variables.items()}
        self.unknown: set[str] = set()
        self.current: Function | None = None
        self.prototypes: dict[str, Prototype] | None = None

    def run(self) -> list[Problem]:
        from ptxlint.ir.verifier_module import check_header, check_module

        self.problems += check_header(self.module)
        self.problems += check_module(self.module)
        for function in self.module.functions:
            if not function.is_declaration:
                self._function(function)
            if len(self.problems) >= MAX_PROBLEMS:
                break
        self.problems.sort(key=lambda p: p.offset)
        return self.problems[:MAX_PROBLEMS]

    # The hot path -----------------------------------------------------------------------------
    def _function(self, function: Function) -> None:
        """Check all instructions; a shape with slot types that passed once is not looked at."""
        self.current, self.prototypes = function, None
        table: dict[Atom, str] = {}
        for register in function.registers:
            table[register] = register.type if register.vector == 1 else describe(register)
        get, passed = table.get, self.clean.get
        spaces = self._spaces_of(function)
        for instr in function.instrs:
            slots = tuple(map(get, instr.args, _NOTHING))
            seen = passed(instr.shape)
            if seen is None or slots not in seen:
                if "" in slots:
                    slots = self._describe(instr.args, table, spaces)
                    if seen is not None and slots in seen:
                        continue
                self._instruction(instr, slots)
                if len(self.problems) >= MAX_PROBLEMS:
                    return

    def _instruction(self, instr: Instr, slots: tuple[str, ...]) -> None:
        """Check one instruction of a kind not known to be without fault."""
        shape = instr.shape
        lacks = self.lacks.get(shape)
        if lacks is None:
            lacks = self.lacks[shape] = self._lacks(shape)
        found = _all_faults(shape, slots)
        if found:
            self._report(instr, found)
        if lacks:
            message, hint = lacks[0]
            self._add(instr.offset, message, hint, "version")
        if not shape.row.known:
            self._unknown_opcode(instr)
        elif shape.row.is_call:
            for message in _call_faults(instr, self.functions, self._prototypes()):
                self._add(instr.offset, message, "", "operand")
        elif not found and not lacks:
            self.clean.setdefault(shape, set()).add(slots)

    def _prototypes(self) -> dict[str, Prototype]:
        if self.prototypes is None:
            self.prototypes = _prototypes(self.current) if self.current is not None else {}
        return self.prototypes

    def _describe(
        self, args: tuple[Atom, ...], table: dict[Atom, str], spaces: dict[str, str]
    ) -> tuple[str, ...]:
        for atom in args:
            if atom not in table:
                text = describe(atom)
                if isinstance(atom, Symbol) and atom.name in spaces:
                    text += ":" + spaces[atom.name]
                table[atom] = text
        return tuple(table[atom] for atom in args)

    def _spaces_of(self, function: Function) -> dict[str, str]:
        """State spaces of the names seen in a function; names of several spaces are left out."""
        spaces = dict(self.spaces)
        owner = "entry" if function.is_kernel else "func"
        inner: dict[str, set[str]] = {}
        for variable in function.variables:
            inner.setdefault(variable.name, set()).add(variable.space)
        for variable in function.params:
            inner.setdefault(variable.name, set()).add(owner)
        for variable in function.returns:
            inner.setdefault(variable.name, set()).add("result")
        for name, found in inner.items():
            space = found.pop()
            if found or spaces.get(name, space) != space:
                spaces.pop(name, None)
            else:
                spaces[name] = space
        return spaces

    # Reports ----------------------------------------------------------------------------------
    def _report(self, instr: Instr, found: list[Fault]) -> None:
        for fault in found:
            if fault.code == "modifier" and not (2, 0) <= self.module.version <= LATEST:
                continue
            message = f"`{instr.shape.mnemonic}`: {fault.message}"
            if fault.operand >= 0:
                from ptxlint.ir.printer import format_operand

                message += f" (`{format_operand(instr.operands[fault.operand])}`)"
            code = "operand" if fault.code == "modifier" else fault.code
            self._add(instr.offset, message, fault.hint, code)

    def _add(self, offset: int, message: str, hint: str, code: str, note: bool = False) -> None:
        self.problems.append(Problem(offset, message, hint, code, note))

    def _lacks(self, shape: Shape) -> tuple[tuple[str, str], ...]:
        """Why the module's version or target does not take a shape, and what to do."""
        version = self.module.version
        lacking = []
        for need in needs_of(shape):
            fault = version_fault(need, version) if version > (0, 0) else ""
            if fault:
                lacking.append((f"{fault}; the module says {version[0]}.{version[1]}", _RAISE))
                continue
            fault = target_fault(need, self.number, self.suffix) if self.number else ""
            if fault:
                lacking.append((f"{fault}; the target is {self.module.arch}", _RAISE))
        if _is_without_sync(shape) and version >= (6, 4) and self.number >= 70:
            message = f"`{shape.opcode}` without `.sync` ended with PTX 6.4 for sm_70 and later"
            lacking.append((message, f"write `{shape.opcode}.sync`, which names its lanes"))
        return tuple(lacking)

    def _unknown_opcode(self, instr: Instr) -> None:
        """An error where the table knows the whole ISA, else a note; once an opcode."""
        opcode = instr.opcode
        if opcode in self.unknown:
            return
        self.unknown.add(opcode)
        note = self.module.version > LATEST or opcode in _UNDOCUMENTED or opcode[0] == "_"
        message = f"`{opcode}` is no instruction of PTX ISA {LATEST[0]}.{LATEST[1]}"
        self._add(instr.offset, message, _similar(opcode), "unknown-opcode", note)


_RAISE: Final = "raise `.version` or `.target`"
_UNDOCUMENTED: Final = frozenset(
    "p2r r2p cctl cctlu scatter gather spmetadata genmetadata setmaxreg setsmemsize".split()
)
"""Opcodes that assemblers know and the ISA does not describe."""


def _similar(opcode: str) -> str:
    """A suggestion for a mistyped opcode."""
    from difflib import get_close_matches

    from ptxlint.ir.opcode_rows import ROWS

    close = get_close_matches(opcode.lower(), ROWS, 1, 0.75)
    return f"did you mean `{close[0]}`?" if close else ""


def _target(module: Module) -> tuple[int, str]:
    """Number and suffix of the architecture, (0, "") when it is none we know of."""
    match = re.fullmatch(r"(?:sm|compute)_(\d+)([af]?)", module.arch)
    return (int(match[1]), match[2]) if match else (0, "")


def _is_without_sync(shape: Shape) -> bool:
    return shape.opcode in ("shfl", "vote") and "sync" not in shape.modifiers


def _all_faults(shape: Shape, slots: tuple[str, ...]) -> list[Fault]:
    """Faults of the whole statement first, then those of its operands."""
    from ptxlint.ir.statement_check import statement_faults

    return statement_faults(shape) + faults(shape, slots)


def _call_faults(
    instr: Instr, functions: dict[str, list[Function]], prototypes: dict[str, Prototype]
) -> Iterator[str]:
    """A call against the declaration of what it calls, or against its prototype."""
    counts = {"def": 0, "callargs": 0}
    names: dict[str, str] = {}
    for role, pattern in zip(instr.shape.roles, instr.shape.patterns, strict=False):
        if role in counts and pattern[0] == "(":
            counts[role] = len(pattern) - 1
        elif role in ("function", "list") and pattern[0] == "s":
            atom = instr.args[pattern[1]]
            if isinstance(atom, Symbol):
                names[role] = atom.name
    declared = functions.get(names.get("function", ""), [])
    target = declared[0] if declared else prototypes.get(names.get("list", ""))
    if target is None:
        return
    if isinstance(target, Function) and target.is_kernel:
        yield f"`{target.name}` is a kernel and cannot be called"
        return
    wanted = {"results": len(target.returns)}
    if not any(_open(v) for v in target.params):
        wanted["arguments"] = len(target.params)
    for what, given in (("arguments", counts["callargs"]), ("results", counts["def"])):
        if given != wanted.get(what, given):
            yield f"`{target.name}` has {wanted[what]} {what}, the call has {given}"


def _prototypes(function: Function) -> dict[str, Prototype]:
    """The prototypes of a body by name; those of a name that blocks use twice are left out."""
    found: dict[str, Prototype] = {}
    twice = set()
    for item in function.items:
        if isinstance(item, Prototype):
            if item.name in found:
                twice.add(item.name)
            found[item.name] = item
    return {name: item for name, item in found.items() if name not in twice}


def _open(variable: Variable) -> bool:
    """A parameter of open extent: the function takes any number of arguments."""
    return None in variable.dims
