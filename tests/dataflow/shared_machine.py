"""A machine that runs the integer part of a kernel on all threads of a CTA in lockstep.

Shared memory holds, for each byte, who wrote it: the instruction, the register of its vector
operand, the byte in it, and the threads. What a load then finds is the truth that
`ptxlint.dataflow.shared_provenance` is held to. Numbers that come from global memory or from
floating-point operations are unknown (None); an unknown branch is taken at random by all threads.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from random import Random
from typing import NamedTuple, TypeAlias

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.facts import Facts
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import (
    Address,
    Immediate,
    Negated,
    Operand,
    Register,
    SpecialRegister,
    Symbol,
    Vector,
)
from ptxlint.ir.types import BITS

Lane: TypeAlias = "int | None"


class Cell(NamedTuple):
    """One byte: what put it there."""

    instr: int
    operand: int
    byte: int
    threads: frozenset[int]


class Seen(NamedTuple):
    """What a load found: by thread, for each byte of each register.

    For a matrix operand (1 or 2) the thread is the number row + rows * (k + depth * warpgroup).
    """

    load: Instr
    cells: dict[tuple[int, int, int], Cell | None]
    """(thread, register, byte) to the cell, None for a byte that nothing wrote."""
    operand: int = 0


class UnpredictableError(Exception):
    """Raised where threads part, or an address is unknown."""


class SharedMachine:
    """One run of one kernel."""

    def __init__(self, facts: Facts, threads: int, random: Random) -> None:
        self._cfg = facts.get(CfgAnalysis)
        self._instrs = facts.function.instrs
        self._threads = threads
        self._random = random
        self.registers: dict[Register, list[Lane]] = {}
        self._memory: dict[tuple[str, int], Cell] = {}
        self._parameters: dict[tuple[str, int], int] = {}
        self._needed = self._slice()

    def compute_all(self) -> None:
        """Work out every register, not only those that addresses and branches need."""
        self._needed = {instr.index for instr in self._instrs}

    def _slice(self) -> set[int]:
        """The instructions of which the results may matter to addresses and branches."""
        writers: dict[int, list[Instr]] = {}
        for instr in self._instrs:
            for register in instr.defs:
                writers.setdefault(register.index, []).append(instr)
        work: list[Register] = []
        for instr in self._instrs:
            if instr.opcode in ("bra", "ret", "exit"):
                work += instr.uses
            elif instr.opcode == "wgmma":
                work += [o for o in instr.operands[1:3] if isinstance(o, Register)]
            elif "shared" in instr.shape.modifiers or instr.opcode in ("ldmatrix", "stmatrix"):
                if instr.guard is not None:
                    work.append(instr.guard)
                for operand in instr.operands:
                    if isinstance(operand, Address) and isinstance(operand.base, Register):
                        work.append(operand.base)
        needed: set[int] = set()
        seen: set[int] = set()
        while work:
            register = work.pop()
            if register.index in seen:
                continue
            seen.add(register.index)
            for instr in writers.get(register.index, ()):
                if instr.index not in needed:
                    needed.add(instr.index)
                    if instr.opcode != "ld":
                        work += instr.uses
        return needed

    def run(self, steps: int) -> Iterator[Seen]:
        """Run that many instructions at most; what each load from shared memory found."""
        cfg = self._cfg
        block = cfg.blocks[cfg.entry]
        while steps > 0:
            steps -= len(block) + 1
            for instr in cfg.instructions(block):
                yield from self._execute(instr)
            following = self._leave(block.index)
            if following < 0:
                return
            block = cfg.blocks[following]

    def _leave(self, index: int) -> int:
        block = self._cfg.blocks[index]
        if block.condition is not None:
            register, value = block.condition
            lanes = self.registers.get(register, [None] * self._threads)
            if any(x is None for x in lanes):
                taken = self._random.random() < 0.5
            elif len(set(lanes)) > 1:
                raise UnpredictableError
            else:
                taken = bool(lanes[0]) == value
            others = [s for s in block.succs if s != block.fallthrough]
            return (others[0] if others else -1) if taken else block.fallthrough
        return block.succs[0] if block.succs else -1

    # Instructions -----------------------------------------------------------------------------
    def _execute(self, instr: Instr) -> Iterator[Seen]:
        opcode, shape = instr.opcode, instr.shape
        if opcode == "ld" and shape.space == "shared":
            yield self._load(instr)
        elif opcode == "ldmatrix":
            yield self._load_matrix(instr)
        elif opcode == "stmatrix":
            self._store_matrix(instr)
        elif opcode == "st" and shape.space == "shared":
            self._store(instr, self._element(instr))
        elif opcode == "cp" and len(instr.operands) >= 3:
            assert not shape.has("bulk")
            self._store(instr, 0)
        elif opcode == "wgmma" and shape.has("mma_async"):
            for operand in (1, 2):
                if isinstance(instr.operands[operand], Register):
                    yield self._load_tile(instr, operand)
        elif instr.index in self._needed:
            self._compute(instr)

    def _load_tile(self, instr: Instr, operand: int) -> Seen:
        """The elements of a matrix operand, one by one (PTX ISA, "wgmma": shared memory layout)."""
        size = {"f16": 2, "bf16": 2, "tf32": 4}.get(instr.shape.types[operand], 1)
        named = re.search(r"m64n(\d+)k(\d+)", instr.shape.mnemonic)
        assert named is not None
        rows, depth = 64 if operand == 1 else int(named[1]), int(named[2])
        across = False
        if size == 2:
            flags = instr.operands[6:] if len(instr.operands) == 8 else (None, instr.operands[6])
            flag = flags[operand - 1]
            assert isinstance(flag, Immediate)
            across = flag.value == 1
        cells: dict[tuple[int, int, int], Cell | None] = {}
        for group in range(max(1, self._threads // 128)):
            descriptor = self._read(instr.operands[operand], 128 * group, 64)
            if descriptor is None:
                raise UnpredictableError
            for row in range(rows):
                for k in range(depth):
                    at = _element(descriptor, row, k, size, across)
                    number = row + rows * (k + depth * group)
                    for byte in range(size):
                        cells[number, 0, byte] = self._memory.get(("", at + byte))
        return Seen(instr, cells, operand)

    def _element(self, instr: Instr) -> int:
        return max(1, BITS[instr.shape.type] // 8)

    def _active(self, instr: Instr) -> list[int]:
        """The threads that execute an instruction; all of them if its guard is unknown."""
        guard = instr.guard
        if guard is None:
            return list(range(self._threads))
        lanes = self.registers.get(guard, [None] * self._threads)
        wanted = instr.shape.guard == "@"
        return [t for t, x in enumerate(lanes) if x is None or bool(x) == wanted]

    def _addresses(self, instr: Instr, at: int, threads: list[int]) -> dict[int, tuple[str, int]]:
        address = instr.operands[at]
        assert isinstance(address, Address)
        out = {}
        for thread in threads:
            base = self._symbolic(address.base, thread)
            if base is None:
                raise UnpredictableError
            out[thread] = (base[0], base[1] + address.offset & 0xFFFFFFFF)
        return out

    def _symbolic(self, operand: Operand, thread: int) -> tuple[str, int] | None:
        """An address; all variables begin at 0 of their own memory, and carry no name."""
        number = self._read(operand, thread, 32)
        return None if number is None else ("", number)

    def _store(self, instr: Instr, element: int) -> None:
        threads = self._active(instr)
        if element:
            data = instr.operands[1]
            count = len(data.elements) if isinstance(data, Vector) else 1
            size = element * count
        else:
            copied = instr.operands[2]
            assert isinstance(copied, Immediate)
            size = copied.value
        found: dict[tuple[str, int], tuple[int, int, set[int]]] = {}
        for thread, (name, start) in self._addresses(instr, 0, threads).items():
            for byte in range(size):
                place = (byte // element, byte % element) if element else (0, byte)
                entry = found.setdefault((name, start + byte), (*place, set()))
                if entry[:2] == place:
                    entry[2].add(thread)
        self._put(instr, found)

    def _put(self, instr: Instr, found: dict[tuple[str, int], tuple[int, int, set[int]]]) -> None:
        for at, (operand, byte, writers) in found.items():
            self._memory[at] = Cell(instr.index, operand, byte, frozenset(writers))

    def _store_matrix(self, instr: Instr) -> None:
        found: dict[tuple[str, int], tuple[int, int, set[int]]] = {}
        for thread, register, byte, at in self._matrix(instr, 0, 1):
            found.setdefault(at, (register, byte, set()))[2].add(thread)
        self._put(instr, found)

    def _matrix(
        self, instr: Instr, address: int, data: int
    ) -> Iterator[tuple[int, int, int, tuple[str, int]]]:
        """(thread, register, byte, address) of `ldmatrix` and `stmatrix`, by PTX ISA's figures."""
        vector = instr.operands[data]
        count = len(vector.elements) if isinstance(vector, Vector) else 1
        trans = instr.shape.has("trans")
        everyone = list(range(self._threads))
        pointers = self._addresses(instr, address, everyone)
        for thread in everyone:
            warp, lane = thread & ~31, thread & 31
            for register in range(count):
                for half in (0, 1):
                    row, column = lane // 4, lane % 4 * 2 + half
                    if trans:
                        row, column = column, row
                    name, start = pointers[warp + 8 * register + row]
                    for byte in (0, 1):
                        yield thread, register, 2 * half + byte, (name, start + 2 * column + byte)

    def _load_matrix(self, instr: Instr) -> Seen:
        cells = {
            (thread, register, byte): self._memory.get(at)
            for thread, register, byte, at in self._matrix(instr, 1, 0)
        }
        return Seen(instr, cells)

    def _load(self, instr: Instr) -> Seen:
        element = self._element(instr)
        target = instr.operands[0]
        count = len(target.elements) if isinstance(target, Vector) else 1
        cells = {}
        for thread, (name, start) in self._addresses(instr, 1, self._active(instr)).items():
            for at in range(element * count):
                place = thread, at // element, at % element
                cells[place] = self._memory.get((name, start + at))
        for register in instr.defs:
            self.registers[register] = [None] * self._threads
        return Seen(instr, cells)

    # Arithmetic -------------------------------------------------------------------------------
    def _compute(self, instr: Instr) -> None:
        active = self._active(instr)
        results: list[list[Lane]] = []
        for at, _ in enumerate(instr.defs):
            results.append([self._result(instr, at, thread) for thread in range(self._threads)])
        for register, values in zip(instr.defs, results, strict=True):
            old = self.registers.get(register, [None] * self._threads)
            self.registers[register] = [
                values[t] if t in active or instr.guard is None else old[t]
                for t in range(self._threads)
            ]

    def _read(self, operand: Operand, thread: int, width: int) -> Lane:
        mask = (1 << width) - 1
        if isinstance(operand, Register):
            lanes = self.registers.get(operand)
            found = None if lanes is None else lanes[thread]
            return None if found is None else found & mask
        if isinstance(operand, Immediate):
            return operand.value & mask if operand.kind == "int" else None
        if isinstance(operand, SpecialRegister):
            return {"%tid.x": thread, "%laneid": thread & 31, "%ntid.x": self._threads,
                    "%ctaid.x": 3, "%nctaid.x": 7, "%ctaid.y": 1, "%nctaid.y": 2,
                    "%tid.y": 0, "%tid.z": 0}.get(operand.name)  # fmt: skip
        if isinstance(operand, Symbol):
            return 0
        if isinstance(operand, Negated) and operand.sign == "!":
            inner = self._read(operand.operand, thread, width)
            return None if inner is None else int(not inner)
        return None

    def _result(self, instr: Instr, at: int, thread: int) -> Lane:
        shape, opcode = instr.shape, instr.opcode
        if not isinstance(instr.operands[0], Register):
            return None
        if opcode == "ld":
            return self._parameter(instr) if shape.space == "param" else None
        if opcode == "shfl":
            return self._shuffle(instr, thread)
        types = [t for t in shape.types if t in BITS]
        if not types or any(t.startswith("f") for t in types) or at:
            return None
        width = BITS[types[-1]]
        if types[-1] == "pred":
            width = 1
        values = [self._read(o, thread, 64) for o in instr.operands[1:]]
        if any(v is None for v in values):
            return None
        numbers = [v for v in values if v is not None]
        return _operate(instr, numbers, types, width)

    def _parameter(self, instr: Instr) -> Lane:
        address = instr.operands[1]
        if instr.shape.type.startswith("f") or not isinstance(address, Address):
            return None
        key = (str(address.base), address.offset)
        if key not in self._parameters:
            self._parameters[key] = self._random.choice((1, 17, 64, 96, 200))
        return self._parameters[key]

    def _shuffle(self, instr: Instr, thread: int) -> Lane:
        if not instr.shape.has("idx"):
            return None
        source = self._read(instr.operands[2], thread, 32)
        if source is None:
            return None
        return self._read(instr.operands[1], thread & ~31 | source & 31, 32)


def _element(descriptor: int, row: int, k: int, size: int, across: bool) -> int:
    """The address of an element: 8 rows of 16 to 128 bytes make an atom, atoms are tiled."""
    start = (descriptor & 0x3FFF) * 16
    lead, stride = (descriptor >> 16 & 0x3FFF) * 16, (descriptor >> 32 & 0x3FFF) * 16
    pitch = {0: 16, 1: 128, 2: 64, 3: 32}[descriptor >> 62]
    inner, outer = (row, k) if across else (k, row)
    per_line = pitch // size
    line, column = outer % 8, inner % per_line
    at = start + line * pitch + column * size
    if across and pitch == 16:
        at += inner // per_line * stride + outer // 8 * lead
    else:
        at += inner // per_line * lead + outer // 8 * stride
    if pitch > 16:
        at ^= (at // 128 % (pitch // 16)) * 16
    return at


def _sign(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> width - 1 else value


def _operate(instr: Instr, n: list[int], types: list[str], width: int) -> Lane:
    """The result of an integer instruction on 64-bit readings of its operands."""
    opcode, shape = instr.opcode, instr.shape
    signed = types[-1].startswith("s")
    mask = (1 << width) - 1

    def take(value: int) -> int:
        return _sign(value, width) if signed else value & mask

    if opcode == "setp":
        a, b = take(n[0]), take(n[1])
        name = shape.modifiers[0]
        name = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}.get(name, name)
        met = {"eq": a == b, "ne": a != b, "lt": a < b, "le": a <= b, "gt": a > b, "ge": a >= b}
        return int(met[name]) if len(n) == 2 else None
    if opcode == "selp":
        return (n[0] if n[2] else n[1]) & mask
    if opcode == "cvt":
        source, target = BITS[types[1]], BITS[types[0]]
        value = _sign(n[0], source) if types[1].startswith("s") else n[0] & (1 << source) - 1
        return value & (1 << target) - 1
    if opcode in ("mul", "mad"):
        if shape.has("hi"):
            return take(n[0]) * take(n[1]) >> width & mask
        product = take(n[0]) * take(n[1])
        total = product + (n[2] if opcode == "mad" else 0)
        return total & ((1 << 2 * width) - 1 if shape.has("wide") else mask)
    if opcode in ("div", "rem"):
        a, b = take(n[0]), take(n[1])
        if not b:
            return None
        quotient = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        return (quotient if opcode == "div" else a - b * quotient) & mask
    if opcode == "bfe":
        start, length = n[1] & 255, n[2] & 255
        raw = (n[0] & mask) >> start & (1 << length) - 1
        return (_sign(raw, length) if signed and length else raw) & mask
    if opcode == "bfi":
        start, length = n[2] & 255, n[3] & 255
        field = (1 << length) - 1 << start
        return (n[1] & ~field | n[0] << start & field) & mask
    if opcode == "shf":
        both = n[0] & 0xFFFFFFFF | (n[1] & 0xFFFFFFFF) << 32
        count = n[2] & 31 if shape.has("wrap") else min(n[2], 32)
        return (both << count >> 32 if shape.has("l") else both >> count) & 0xFFFFFFFF
    if opcode == "prmt":
        if set(shape.modifiers) != {"b32"}:
            return None
        raw_bytes = [(n[k // 4] >> 8 * (k % 4)) & 255 for k in range(8)]
        out = 0
        for at in range(4):
            choice = n[2] >> 4 * at & 15
            byte = raw_bytes[choice & 7]
            out |= ((255 if byte >> 7 else 0) if choice & 8 else byte) << 8 * at
        return out
    if opcode == "shr":
        return take(n[0]) >> min(n[1], width) & mask
    simple = {
        "mov": lambda: n[0], "cvta": lambda: n[0], "add": lambda: n[0] + n[1],
        "sub": lambda: n[0] - n[1], "and": lambda: n[0] & n[1], "or": lambda: n[0] | n[1],
        "xor": lambda: n[0] ^ n[1], "not": lambda: ~n[0], "neg": lambda: -n[0],
        "shl": lambda: n[0] << n[1] if n[1] < width else 0,
        "min": lambda: min(take(n[0]), take(n[1])), "max": lambda: max(take(n[0]), take(n[1])),
        "abs": lambda: abs(take(n[0])),
    }  # fmt: skip
    return simple[opcode]() & mask if opcode in simple else None
