"""From the lines of a listing to a module: functions, labels, registers, places."""

from __future__ import annotations

import re
import struct
from typing import Final

from ptxlint.frontends.sass.memo import Instruction, parse
from ptxlint.ir.function import TargetList
from ptxlint.ir.instruction import Instr
from ptxlint.ir.module import FileEntry, Module
from ptxlint.ir.operand import Atom, Immediate, Label, Register, SpecialRegister, Symbol
from ptxlint.ir.sass.function import SassFunction, control_of
from ptxlint.source import Loc, Problem, SourceText

_REGISTER: Final = re.compile(r"(UR|R|UP|P|B)(\d+)")
_TYPES: Final = {"R": "b32", "UR": "b32", "P": "pred", "UP": "pred", "B": "b32"}
_SPECIAL_NUMBERS: Final = {"INF": 0x7FF << 52, "QNAN": 0xFFF << 51, "SNAN": 0x7FF << 52 | 1}
_LISTED: Final = re.compile(r"\.?[$\w][.$\w]*")
_WORD: Final = 0xFFFFFFFF
MAX_PROBLEMS: Final = 100


class SassBuilder:
    """A module while its lines are read."""

    def __init__(self, source: SourceText) -> None:
        self.module = Module(source)
        self._function: SassFunction | None = None
        self._registers: dict[str, Register] = {}
        self._labels: dict[str, Label] = {}
        self._entries: set[str] = set()
        self._files: dict[str, int] = {}
        self._places: list[tuple[str, int]] = []
        self._loc: Loc | None = None
        self._low = ""
        self._calls: list[tuple[Instr, str]] = []
        """Calls of addresses, with their text."""

    # Lines ------------------------------------------------------------------------------------
    def target(self, name: str) -> None:
        """The architecture that the code is for."""
        if not self.module.targets:
            self.module.targets = (name,)

    def function(self, name: str, offset: int, is_entry: bool = False) -> None:
        """The start of a function."""
        self._end()
        fn = SassFunction(name, "entry" if is_entry else "func", offset)
        self._function = fn
        self._registers, self._labels, self._loc, self._places = {}, {}, None, []
        self._calls = []
        self.module.functions.append(fn)
        self.module.items.append(fn)

    def entry(self, name: str) -> None:
        """That a function is a kernel."""
        self._entries.add(name)

    def registers(self, count: int) -> None:
        """How many registers the listing says that a thread has."""
        if self._function is not None:
            self._function.directives["registers"] = (count,)

    def label(self, name: str, offset: int) -> None:
        """A label."""
        fn = self._function
        if fn is None:
            return
        label = self._label(name)
        label.offset, label.target = offset, len(fn.instrs)
        fn.items.append(label)

    def place(self, path: str, line: int, inlined: tuple[str, int] | None, offset: int) -> None:
        """A line of a source, and what it is inlined at: one more frame of the place of what
        follows."""
        self._places.append((path, line))
        if inlined is None:
            self._loc, self._places = self._chained(offset), []

    def instruction(self, address: int, text: str, offset: int, low: str | None) -> None:
        """An instruction, at its address in the function; `low` is the first word of its
        encoding."""
        fn = self._function
        if fn is None:
            self.function("", offset, is_entry=True)
            fn = self._function
            assert fn is not None
        if self._places:
            self._loc, self._places = self._chained(offset), []
        try:
            read = parse(text)
            instr = self._instr(fn, read, address, offset)
        except ValueError as error:
            # A number may have more digits than Python reads, too.
            self.problem(offset, f"`{text.split(' ', 1)[0]}` cannot be read: {error}")
            return
        if instr.shape.row.is_call and instr.args and isinstance(instr.args[-1], Immediate):
            self._calls.append((instr, text))
        fn.instrs.append(instr)
        fn.items.append(instr)
        fn.addresses.append(address)
        self._low = low or ""

    def encoding(self, high: str) -> None:
        """The second word of the encoding of the instruction before."""
        fn = self._function
        if fn is not None and self._low and len(fn.controls) == len(fn.instrs) - 1:
            fn.controls.append(control_of(int(self._low, 16), int(high, 16)))
        self._low = ""

    def problem(self, offset: int, message: str) -> None:
        """Something that cannot be read."""
        if len(self.module.problems) < MAX_PROBLEMS:
            self.module.problems.append(Problem(offset, message))

    def finish(self) -> None:
        """After the last line."""
        self._end()
        for fn in self.module.functions:
            if fn.name in self._entries:
                fn.kind = "entry"

    # Parts ------------------------------------------------------------------------------------
    def _end(self) -> None:
        """Settle what the function's branches lead to."""
        fn = self._function
        if fn is None:
            return
        fn.end_offset = fn.instrs[-1].offset if fn.instrs else fn.offset
        by_address = {address: at for at, address in enumerate(fn.addresses)}
        for label in self._labels.values():
            if label.target < 0 and label.name.startswith("0x"):
                label.target = by_address.get(int(label.name, 16), -1)
        returns: dict[int, bool] = {}
        for call, text in self._calls:
            self._settle(fn, call, text, by_address, returns)
        fn.labels = [label for label in self._labels.values() if label.target >= 0]
        fn.registers = list(self._registers.values())
        self._function = None

    def _settle(
        self,
        fn: SassFunction,
        call: Instr,
        text: str,
        by_address: dict[int, int],
        returns: dict[int, bool],
    ) -> None:
        """Make a call of an address a branch, if nothing returns from there: `cuobjdump` prints no
        labels, by which the two are told elsewhere."""
        address = call.args[-1]
        assert isinstance(address, Immediate)
        target = by_address.get(address.value)
        if target is None:
            return
        if target not in returns:
            returns[target] = _returns(fn, target, by_address)
        if returns[target]:
            return
        name = f".L_{address.value:x}"
        read = parse(text.replace(address.text, f"`({name})"))
        branch = self._instr(fn, read, fn.addresses[call.index], call.offset)
        branch.index, branch.loc = call.index, call.loc
        self._label(name).target = target
        fn.instrs[call.index] = branch
        fn.items[fn.items.index(call)] = branch

    def _label(self, name: str) -> Label:
        label = self._labels.get(name)
        if label is None:
            label = self._labels[name] = Label(name, 0, 0, -1)
        return label

    def _register(self, name: str, offset: int) -> Register:
        register = self._registers.get(name)
        if register is None:
            letters = name.rstrip("0123456789")
            register = Register(name, _TYPES[letters], len(self._registers), 0, offset)
            self._registers[name] = register
        return register

    def _instr(self, fn: SassFunction, read: Instruction, address: int, offset: int) -> Instr:
        shape, slots = read.form.built
        args: list[Atom] = []
        for slot in slots:
            if slot.name:
                name = slot.name
                is_state = _REGISTER.fullmatch(name) is None
                args.append(SpecialRegister(name) if is_state else self._register(name, offset))
                continue
            text = read.slots[slot.number]
            found = _REGISTER.fullmatch(text)
            if found:
                letters, number = found[1], int(found[2]) + slot.skip
                args += [
                    self._register(f"{letters}{number + at}", offset) for at in range(slot.width)
                ]
            else:
                args.append(self._atom(fn, shape.row.terminator, text))
        if read.form.note and shape.row.terminator == "indirect":
            args.append(self._listed(fn, read.form.note, address, offset))
        return Instr(shape, tuple(args), len(fn.instrs), offset, self._loc)

    def _atom(self, fn: SassFunction, terminator: str, text: str) -> Atom:
        if text[0] in "+-" and text[1:] in _SPECIAL_NUMBERS:
            bits = _SPECIAL_NUMBERS[text[1:]] | (1 << 63 if text[0] == "-" else 0)
            return Immediate(text, "dec", bits)
        if "@" in text:
            return Symbol(text, "unknown")
        if text[0].isdigit():
            if terminator == "branch":
                return self._label(f"0x{_integer(text):x}")
            return _number(text)
        if text in ("PT", "UPT"):
            return SpecialRegister(text)
        if text[0] == ".":
            return self._label(text)
        return Symbol(text, "function")

    def _listed(self, fn: SassFunction, note: str, address: int, offset: int) -> Symbol:
        """The targets that a note behind an indirect branch names."""
        name = f"$targets_{address:x}"
        targets = tuple(w for w in _LISTED.findall(note) if w != "BRANCH_TARGETS")
        for target in targets:
            self._label(target)
        fn.targets[name] = TargetList(name, "branchtargets", targets, offset)
        return Symbol(name, "targets")

    def _chained(self, offset: int) -> Loc | None:
        """The place that the lines before an instruction name: innermost first."""
        loc: Loc | None = None
        for path, line in reversed(self._places):
            loc = Loc(self._file(path, offset), line, 0, offset, parent=loc)
        return loc

    def _file(self, path: str, offset: int) -> int:
        number = self._files.get(path)
        if number is None:
            number = self._files[path] = len(self._files) + 1
            entry = FileEntry(number, path, None, None, offset)
            self.module.files[number] = entry
            self.module.items.append(entry)
        return number


def _returns(fn: SassFunction, start: int, by_address: dict[int, int]) -> bool:
    """True if an instruction that returns may be reached from here, or if that is not known."""
    seen: set[int] = set()
    waiting = [start]
    while waiting:
        at = waiting.pop()
        if at in seen or not 0 <= at < len(fn.instrs):
            continue
        seen.add(at)
        instr = fn.instrs[at]
        row = instr.shape.row
        if row.terminator in ("return", "indirect"):
            return True
        if row.terminator == "branch":
            waiting += [atom.target for atom in instr.args if isinstance(atom, Label)]
        elif row.is_call:
            # It may turn out to be a branch itself.
            waiting += [by_address.get(a.value, -1) for a in instr.args if isinstance(a, Immediate)]
        if instr.shape.guard or not row.terminator:
            waiting.append(at + 1)
    return False


def _integer(text: str) -> int:
    """A number as listings write them; zeros in front are no octal."""
    return int(text, 16) if text.startswith("0x") else int(text)


def _number(text: str) -> Immediate:
    if text.startswith("0x") or text.isdigit():
        return Immediate(text, "int", _integer(text))
    (bits,) = struct.unpack("<Q", struct.pack("<d", float(text)))
    return Immediate(text, "dec", bits)


__all__ = ["MAX_PROBLEMS", "SassBuilder"]
