"""A small PTX machine for property tests: integer kernels on concrete threads, and random kernels.

Threads run one after the other; only `run_lockstep` (straight-line code) knows warp operations.
Memory is adversarial: what a load gives depends on everything that it may depend on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import NamedTuple

from ptxlint.cfg.graph import EXIT, Cfg
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import (
    Address,
    Immediate,
    Negated,
    Operand,
    Register,
    SpecialRegister,
    Symbol,
)
from ptxlint.ir.types import bits

MASK = 0xFFFFFFFF
THREADS = 64
CTAS = 2
SAMPLE = (0, 1, 2, 3, 4, 7, 8, 16, 17, 31, 32, 33, 36, 40, 48, 63)

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u32 n, .param .u32 m) .reqntid 64
{
.reg .pred %p<6>;
.reg .b32 %r<10>;
"""


class Thread(NamedTuple):
    """A thread of a one-dimensional grid."""

    cta: int
    tid: int

    def special(self, name: str) -> int:
        """The value of a special register."""
        return {
            "%tid.x": self.tid,
            "%tid.y": 0,
            "%ctaid.x": self.cta,
            "%ntid.x": THREADS,
            "%laneid": self.tid & 31,
            "%warpid": self.tid >> 5,
        }[name]


def all_threads() -> list[Thread]:
    """Threads of the grid that tell every bit of the index, and the CTAs, apart."""
    return [Thread(cta, tid) for cta in range(CTAS) for tid in SAMPLE]


def scramble(*parts: int) -> int:
    """A 32-bit mix of some numbers."""
    out = 0x9E3779B9
    for part in parts:
        out = (out ^ (part & MASK)) * 0x85EBCA6B & MASK
        out ^= out >> 13
    return out


Registers = dict[Register, int]


def evaluate(operand: Operand, registers: Registers, thread: Thread) -> int:
    """An operand's value as an unsigned 32-bit number."""
    if isinstance(operand, Register):
        return registers[operand]
    if isinstance(operand, Immediate):
        return operand.value & MASK
    if isinstance(operand, SpecialRegister):
        return thread.special(operand.name)
    if isinstance(operand, Negated):
        return int(not evaluate(operand.operand, registers, thread))
    if isinstance(operand, Symbol):
        return scramble(len(operand.name), ord(operand.name[0]))
    raise AssertionError(f"operand {operand!r}")


def signed(value: int, width: int = 32) -> int:
    """A value's low bits as a two's complement number."""
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def _shift_right(instr: Instr, a: int, count: int) -> int:
    if instr.shape.type.startswith("s"):
        return signed(a) >> min(count, 31)
    return a >> count if count < 32 else 0


def _extract(instr: Instr, a: int, position: int, length: int) -> int:
    position, length = position & 255, length & 255
    if not length:
        return 0
    top = min(position + length - 1, 31)
    sign = instr.shape.type.startswith("s") and a >> top & 1
    out = 0
    for i in range(32):
        inside = i < length and position + i < 32
        out |= (a >> position + i & 1 if inside else sign) << i
    return out


def _insert(instr: Instr, a: int, b: int, position: int, length: int) -> int:
    for i in range(length & 255):
        at = (position & 255) + i
        if at < 32:
            b = b & ~(1 << at) | (a >> i & 1) << at
    return b


def _compare(instr: Instr, a: int, b: int, boolean: int = 1) -> int:
    relation = instr.shape.modifiers[0]
    if instr.shape.type.startswith("s"):
        a, b = signed(a), signed(b)
    found = {
        "lt": a < b, "lo": a < b, "le": a <= b, "ls": a <= b, "gt": a > b, "hi": a > b,
        "ge": a >= b, "hs": a >= b, "eq": a == b, "ne": a != b,
    }[relation]  # fmt: skip
    return int(found and bool(boolean))


def _convert(instr: Instr, a: int) -> int:
    to, of = instr.shape.types[0], instr.shape.types[-1]
    value = a & (1 << bits(of)) - 1
    if of.startswith("s"):
        value = signed(value, bits(of))
    value &= (1 << bits(to)) - 1
    return signed(value, bits(to)) if to.startswith("s") else value


def _lookup(instr: Instr, a: int, b: int, c: int, table: int) -> int:
    out = 0
    for i in range(32):
        out |= (table >> ((a >> i & 1) << 2 | (b >> i & 1) << 1 | (c >> i & 1)) & 1) << i
    return out


OPERATIONS: dict[str, Callable[..., int]] = {
    "mov": lambda i, a: a,
    "not": lambda i, a: int(not a) if i.shape.type == "pred" else ~a,
    "popc": lambda i, a: bin(a).count("1"),
    "add": lambda i, a, b: a + b,
    "sub": lambda i, a, b: a - b,
    "mul": lambda i, a, b: a * b,
    "mad": lambda i, a, b, c: a * b + c,
    "and": lambda i, a, b: a & b,
    "or": lambda i, a, b: a | b,
    "xor": lambda i, a, b: a ^ b,
    "shl": lambda i, a, n: a << n if n < 32 else 0,
    "shr": _shift_right,
    "bfe": _extract,
    "bfi": _insert,
    "div": lambda i, a, b: a // b if b else MASK,
    "rem": lambda i, a, b: a % b if b else a,
    "min": lambda i, a, b: min(a, b),
    "max": lambda i, a, b: max(a, b),
    "selp": lambda i, a, b, p: a if p else b,
    "setp": _compare,
    "cvt": _convert,
    "lop3": _lookup,
}


def compute(instr: Instr, sources: list[int], thread: Thread, when: int) -> tuple[int, ...]:
    """What an instruction writes, given its source operands; `when` counts its executions."""
    first = _first_result(instr, sources, thread, when)
    if len(instr.defs) == 1:
        return (first,)
    # `setp p|q`: the companion is the opposite.
    return first, int(not first)


def _first_result(instr: Instr, sources: list[int], thread: Thread, when: int) -> int:
    opcode = instr.opcode
    if opcode == "ld":
        address = sources[0]
        if instr.shape.space in ("param", "const"):
            return scramble(address)
        if instr.shape.space in ("global", "shared"):
            warp = thread.tid >> 5
            return scramble(address, instr.index, when, warp, thread.cta)
        return scramble(address, instr.index, when, thread.tid, thread.cta)
    result = OPERATIONS[opcode](instr, *sources) & MASK
    return result & 1 if instr.shape.opcode == "setp" else result


def sources_of(instr: Instr, registers: Registers, thread: Thread) -> list[int]:
    """The values of an instruction's source operands."""
    out = []
    for operand in instr.operands[1:]:
        if isinstance(operand, Address):
            base = evaluate(operand.base, registers, thread)
            out.append((base + operand.offset) & MASK)
        else:
            out.append(evaluate(operand, registers, thread))
    return out


def guard_holds(instr: Instr, registers: Registers) -> bool:
    """True if an instruction is executed."""
    guard = instr.guard
    return guard is None or bool(registers[guard]) == (instr.shape.guard == "@")


def initial(register: Register, thread: Thread) -> int:
    """What a register holds before anything is written to it."""
    mask = 1 if register.type == "pred" else MASK
    return scramble(register.index, thread.tid, thread.cta) & mask


class Step(NamedTuple):
    """One instruction on its way: the registers before it, and what it writes if it does.

    The registers are those of the machine: they change when the run goes on.
    """

    instr: Instr
    registers: Registers
    written: tuple[int, ...] | None


class Runner:
    """One thread on its way, a block at a time."""

    def __init__(self, cfg: Cfg, thread: Thread) -> None:
        self._cfg = cfg
        self.thread = thread
        self.registers = {r: initial(r, thread) for r in cfg.function.registers}
        self.next: int | None = cfg.entry
        """The block that comes next, `EXIT`, or None after a trap."""

    def steps(self, block: int, when: int) -> Iterator[Step]:
        """Execute a block; `when` is the time at which memory is read. Sets `next`."""
        cfg, registers = self._cfg, self.registers
        self.next = block + 1 if block + 1 < len(cfg.blocks) else EXIT
        for instr in cfg.instructions(block):
            if instr.shape.row.terminator:
                yield Step(instr, registers, None)
                if guard_holds(instr, registers):
                    self.next = self._target(instr)
            elif instr.defs:
                sources = sources_of(instr, registers, self.thread)
                written = compute(instr, sources, self.thread, when)
                yield Step(instr, registers, written)
                if guard_holds(instr, registers):
                    registers.update(zip(instr.defs, written, strict=True))

    def _target(self, instr: Instr) -> int | None:
        if instr.opcode == "bra":
            return self._cfg.block_of[instr.args[-1].target]  # type: ignore[union-attr]
        return None if instr.opcode == "trap" else EXIT


def run(cfg: Cfg, thread: Thread, fuel: int = 60) -> Iterator[int | Step]:
    """Run one thread: yields each block's index when it is entered, then its steps, last `EXIT`.

    A thread that traps or runs out of `fuel` (blocks) does not come to `EXIT`. `written` is what
    the instruction computes, guard or no guard. Memory is read at the time that the number of
    executions of the block tells.
    """
    runner = Runner(cfg, thread)
    counts: dict[int, int] = {}
    while runner.next is not None and runner.next != EXIT and fuel > 0:
        fuel -= 1
        block = runner.next
        counts[block] = counts.get(block, 0) + 1
        yield block
        yield from runner.steps(block, counts[block])
    if runner.next == EXIT:
        yield EXIT


SPECIALS = ("%tid.x", "%ctaid.x", "%laneid", "%warpid", "%ntid.x")


class Generator:
    """Random kernels from a random source that hypothesis can shrink.

    Constants, parameters and fresh predicates are frequent: once everything differs between
    threads, nothing is claimed and nothing is tested.
    """

    def __init__(self, random: Random) -> None:
        self._random = random
        self._labels = 0

    def register(self) -> str:
        """A register to read or write."""
        return f"%r{self._random.randrange(7)}"

    def predicate(self) -> str:
        """A predicate register."""
        return f"%p{self._random.randrange(4)}"

    def source(self) -> str:
        """A register or a constant."""
        if self._random.random() < 0.3:
            return str(self._random.choice([0, 1, 2, 3, 5, 15, 31, 32, 96, 64, 0xFFFFFFE0]))
        return self.register()

    def guard(self) -> str:
        """A guard, or nothing."""
        if self._random.random() < 0.75:
            return ""
        return f"@{self._random.choice(['', '!'])}{self.predicate()} "

    def simple(self, register: str = "") -> str:
        """An instruction that sets a register anew, to something mostly uniform."""
        r, d = self._random, register or self.register()
        choice = r.random()
        if choice < 0.6:
            return f"mov.u32 {d}, {r.randrange(9)};"
        if choice < 0.8:
            return f"ld.param.u32 {d}, [{r.choice('nm')}];"
        return f"mov.u32 {d}, {r.choice(SPECIALS)};"

    def condition(self, predicate: str) -> str:
        """Set a predicate by a special register, or by whatever a register holds."""
        r = self._random
        relation = r.choice(["lt", "le", "gt", "ge", "eq", "ne"])
        kind = r.choice(["s32", "u32"])
        if r.random() < 0.6:
            bound = r.choice([0, 1, 2, 31, 32, 33, 40])
            return (
                f"mov.u32 %r9, {r.choice(SPECIALS)};\n"
                f"setp.{relation}.{kind} {predicate}, %r9, {bound};"
            )
        return f"setp.{relation}.{kind} {predicate}, {self.register()}, {self.source()};"

    def statement(self) -> str:
        """An instruction that is no branch, or a few."""
        r = self._random
        choice = r.random()
        if choice < 0.3:
            return self.guard() + self.simple()
        if choice < 0.45:
            return self.condition(self.predicate())
        if choice < 0.5:
            return f"{self.guard()}{self.predicates()}"
        if choice < 0.53:
            return self.both_ways()
        if choice < 0.56:
            return r.choice(["bar.sync 0;", "bar.warp.sync -1;"])
        if choice < 0.6:
            space = r.choice(["const", "global", "shared", "local"])
            return f"{self.guard()}ld.{space}.u32 {self.register()}, [{self.register()}];"
        return self.guard() + self.arithmetic()

    def both_ways(self) -> str:
        """A register set under a predicate and under its opposite."""
        r, d, p, q = self._random, self.register(), self.predicate(), "%p5"
        first, second = r.choice([(p, "!" + p), ("!" + p, p), (p, q), (q, p), ("!" + p, "!" + q)])
        opposite = r.choice(
            [
                f"not.pred {q}, {p};",
                f"setp.lt.u32 {p}|{q}, {self.register()}, {self.source()};",
                f"mov.u32 %r9, {r.choice(SPECIALS)};\nsetp.ge.s32 {p}|{q}, %r9, 9;",
            ]
        )
        return f"{opposite}\n@{first} mov.u32 {d}, {r.randrange(9)};\n@{second} {self.simple(d)}"

    def predicates(self) -> str:
        """An instruction on predicates."""
        r, d = self._random, self.predicate()
        return r.choice(
            [
                f"not.pred {d}, {self.predicate()};",
                f"mov.pred {d}, {self.predicate()};",
                f"mov.pred {d}, {r.choice(['0', '1', '-1'])};",
                f"and.pred {d}, {self.predicate()}, {self.predicate()};",
                f"setp.lt.and.u32 {d}, {self.register()}, {self.source()}, {self.predicate()};",
            ]
        )

    def arithmetic(self) -> str:
        """An instruction on integers."""
        r, d = self._random, self.register()
        a, b = self.register(), self.source()
        n = r.choice([0, 1, 2, 4, 5, 6, 8, 31])
        return r.choice(
            [
                f"mov.u32 {d}, {b};",
                f"{r.choice(['add', 'sub'])}.s32 {d}, {a}, {b};",
                f"{r.choice(['and', 'or', 'xor'])}.b32 {d}, {a}, {b};",
                f"{r.choice(['shl.b32', 'shr.u32', 'shr.s32'])} {d}, {a}, {n};",
                f"bfe.{r.choice('us')}32 {d}, {a}, {n}, {r.choice([0, 1, 3, 5, 27])};",
                f"bfi.b32 {d}, {a}, {self.source()}, {n}, {r.choice([0, 1, 3, 5])};",
                f"mul.lo.s32 {d}, {a}, {r.choice(['1', '3', '4', '32', b])};",
                f"mad.lo.s32 {d}, {a}, {r.choice(['4', b])}, {self.source()};",
                f"{r.choice(['div', 'rem'])}.u32 {d}, {a}, {r.choice(['4', '32', '6'])};",
                f"{r.choice(['min', 'max'])}.u32 {d}, {a}, {b};",
                f"cvt.{r.choice(['u8', 's8', 'u16', 's16'])}.u32 {d}, {a};",
                f"lop3.b32 {d}, {a}, {b}, {self.source()}, {r.randrange(256)};",
                f"selp.b32 {d}, {a}, {b}, {self.predicate()};",
                f"not.b32 {d}, {a};",
            ]
        )

    def integers(self, statements: int) -> str:
        """A straight kernel of shifts, masks, sums and comparisons over the thread index."""
        r = self._random
        lines = [f"mov.u32 %r{i}, {r.choice([*SPECIALS[:4], '%tid.x'])};" for i in range(7)]
        lines += [
            self.arithmetic() if r.random() < 0.8 else self.condition("%p0")
            for _ in range(statements)
        ]
        return HEAD + "\n".join([*lines, "ret;", "}"])

    def _prologue(self) -> list[str]:
        lines = [f"mov.u32 %r{i}, {i};" for i in range(10)]
        lines += [self.simple() for _ in range(3)]
        return lines + [self.condition(f"%p{i}") for i in range(4)]

    def kernel(self, blocks: int, statements: int) -> str:
        """A kernel with random control flow; registers may be read before they are written."""
        r = self._random
        lines = self._prologue() if r.random() < 0.7 else []
        for index in range(blocks):
            lines.append(f"L{index}:")
            lines += [self.statement() for _ in range(r.randrange(statements))]
            to = f"L{r.randrange(blocks)}"
            ending, p = r.random(), self.predicate()
            sign = r.choice(["", "!"])
            if ending < 0.3:
                lines.append(self.condition(p))
            if ending < 0.55:
                lines.append(f"@{sign}{p} bra {to};")
            elif ending < 0.65:
                lines.append(f"bra {to};")
            elif ending < 0.72:
                lines.append(f"@{sign}{p} ret;")
        return HEAD + "\n".join([*lines, "ret;", "}"])

    def structured(self, depth: int) -> str:
        """A kernel of nested loops and conditionals, initialised and mostly terminating."""
        return HEAD + "\n".join([*self._prologue(), *self._body(depth), "ret;", "}"])

    def rounds(self) -> str:
        """A kernel of one loop that threads go round without coming to all of it."""
        return HEAD + "\n".join([*self._prologue(), *self._odd_loop(1), "ret;", "}"])

    def _label(self) -> str:
        self._labels += 1
        return f"L{self._labels}"

    def _body(self, depth: int) -> list[str]:
        r = self._random
        out: list[str] = []
        for _ in range(r.randrange(1, 4)):
            choice = r.random()
            if depth and choice < 0.35:
                out += self._conditional(depth)
            elif depth and choice < 0.5:
                out += self._loop(depth)
            elif depth and choice < 0.6:
                out += self._odd_loop(depth)
            elif choice < 0.63:
                p = self.predicate()
                out += [self.condition(p), f"@{p} {r.choice(['ret', 'exit', 'trap'])};"]
            else:
                out += [self.statement() for _ in range(r.randrange(1, 4))]
        return out

    def _conditional(self, depth: int) -> list[str]:
        p, other, end = self.predicate(), self._label(), self._label()
        out = [self.condition(p), f"@{p} bra {other};", *self._arm(depth), f"bra {end};"]
        return [*out, f"{other}:", *self._arm(depth), f"{end}:"]

    def _arm(self, depth: int) -> list[str]:
        return [self.simple()] if self._random.random() < 0.5 else self._body(depth - 1)

    def _loop(self, depth: int) -> list[str]:
        """A loop of a few rounds by a counter, as many in each thread or not, with breaks."""
        r = self._random
        head, end, counter = self._label(), self._label(), f"%r{6 + depth}"
        out = [f"mov.u32 {counter}, 0;", f"{head}:", *self._arm(depth)]
        if r.random() < 0.4:
            out += [*self._rounds(counter, "eq"), f"@%p4 bra {end};", *self._arm(depth)]
        if r.random() < 0.6:
            out.append(f"add.s32 {self.register()}, {counter}, {r.randrange(3)};")
        out += [f"add.s32 {counter}, {counter}, 1;", *self._rounds(counter, "lt")]
        out += [f"@%p4 bra {head};", f"{end}:"]
        if r.random() < 0.5:
            out.append(f"add.s32 {self.register()}, {counter}, 0;")
        return out

    def _odd_loop(self, depth: int) -> list[str]:
        """A loop that some threads go round without coming to its second half."""
        r = self._random
        head, latch, end, counter = *(self._label() for _ in range(3)), f"%r{6 + depth}"
        first = self._rounds(counter, r.choice(["lt", "ne"]))
        out = [f"mov.u32 {counter}, 0;", f"{head}:", f"add.s32 {counter}, {counter}, 1;"]
        out += [*first, f"@%p4 bra {r.choice([head, latch])};", *self._arm(depth)]
        out += [f"add.s32 {self.register()}, {counter}, 0;"]
        out += [*self._rounds(counter, r.choice(["ge", "eq"])), f"@%p4 bra {end};"]
        out += [*self._arm(depth), f"{latch}:", self.simple(), f"bra {head};", f"{end}:"]
        return out

    def _rounds(self, counter: str, relation: str) -> list[str]:
        """Compare a loop's counter with a small number of rounds."""
        r = self._random
        source = r.choice([*SPECIALS, "3", self.register()])
        bound = [f"mov.u32 %r9, {source};", f"and.b32 %r9, %r9, {r.choice([1, 3, 35])};"]
        return [*bound, f"setp.{relation}.u32 %p4, {counter}, %r9;"]
