"""Marks of bytes against what bytes depend on, in random straight-line code."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest

from ptxlint.dataflow.integer_words import Span
from ptxlint.dataflow.padding import Padding
from ptxlint.dataflow.register_words import Data, Either, Word
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse

ONES = 0xFFFFFFFF
LOADS = {"b8": 8, "u8": 8, "s8": 8, "b16": 16, "b32": 32}
STEPS = 14

State = dict[str, int]
Step = tuple[str, Callable[[State], None]]


class Program:
    """Masked loads and steps that move their bytes about; runs with any of the loads masked off."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.lines: list[str] = []
        self.steps: list[Callable[[State, int | None], None]] = []
        self.wide: list[str] = []
        """Registers of 32 bits."""
        self.loads = self.count = 0
        self.data: dict[int, set[int]] = {8: set(), 16: set(), 32: set()}
        """The pieces of what is loaded."""
        for _ in range(4):
            self._load()
        for _ in range(STEPS):
            self.random.choice(
                [self._permute, self._permute, self._shift, self._mask, self._unite, self._insert,
                 self._extract, self._narrow, self._split, self._select, self._pass, self._add]
            )()  # fmt: skip

    def run(self, masked: int | None) -> State:
        """What all registers hold, with the conditions of one load false."""
        state: State = {}
        for step in self.steps:
            step(state, masked)
        return state

    def _new(self, name: str = "%r") -> str:
        self.count += 1
        register = f"{name}{self.count}"
        if name == "%r":
            self.wide.append(register)
        return register

    def _any(self) -> str:
        return self.random.choice(self.wide[-8:])

    def _emit(self, target: str, text: str, rule: Callable[[State], int], bits: int = 32) -> None:
        self.lines.append(text)

        def step(state: State, masked: int | None) -> None:
            state[target] = rule(state) & (1 << bits) - 1

        self.steps.append(step)

    def _load(self) -> None:
        kind = self.random.choice([*LOADS, "b8", "b8"])
        bits = LOADS[kind]
        narrow = bits <= 16 and self.random.random() < 0.6
        target = self._new("%rs" if narrow else "%r")
        width = 16 if narrow else 32
        number = self.loads
        self.loads += 1
        fill = 0 if self.random.random() < 0.5 else self.random.getrandbits(width)
        data = self.random.getrandbits(bits)
        if kind == "s8" and data >> 7:
            data |= (1 << width) - 256
        for size, pieces in self.data.items():
            pieces |= {data >> at & (1 << size) - 1 for at in range(0, width, size)}
        self.lines += [
            f"setp.lt.s32 %p{number}, %lane, %size{number};",
            f"mov.b{width} {target}, {fill};",
            f"@%p{number} ld.global.{kind} {target}, [%a+{4 * number}];",
        ]

        def step(state: State, masked: int | None) -> None:
            state[target] = fill if masked == number else data

        self.steps.append(step)
        if narrow:
            wide = self._new()
            self._emit(wide, f"cvt.u32.u16 {wide}, {target};", lambda s: s[target])

    def _permute(self) -> None:
        a, b, target = self._any(), self._any(), self._new()
        selector = self.random.choice([0x3340, 0x5410, 0x7632, 0x0123, self.random.getrandbits(16)])

        def rule(state: State) -> int:
            both = state[a] | state[b] << 32
            out = 0
            for at in range(4):
                nibble = selector >> 4 * at & 15
                byte = both >> 8 * (nibble & 7) & 255
                out |= (255 * (byte >> 7) if nibble & 8 else byte) << 8 * at
            return out

        self._emit(target, f"prmt.b32 {target}, {a}, {b}, {selector};", rule)

    def _shift(self) -> None:
        a, target = self._any(), self._new()
        amount = self.random.choice([8, 16, 24, 8, 4, 32])
        if self.random.random() < 0.5:
            self._emit(target, f"shl.b32 {target}, {a}, {amount};", lambda s: s[a] << amount)
        elif self.random.random() < 0.5:
            self._emit(target, f"shr.u32 {target}, {a}, {amount};", lambda s: s[a] >> amount)
        else:
            self._emit(target, f"shr.s32 {target}, {a}, {amount};",
                       lambda s: (s[a] ^ 1 << 31) - (1 << 31) >> amount)  # fmt: skip

    def _mask(self) -> None:
        a, target = self._any(), self._new()
        mask = self.random.choice([0xFF, 0xFF00, 0xFF00FF, 0xFFFF0000, 0x7F80, 0x7FFFFFFF])
        self._emit(target, f"and.b32 {target}, {a}, {mask};", lambda s: s[a] & mask)

    def _unite(self) -> None:
        a, b, target = self._any(), self._any(), self._new()
        if self.random.random() < 0.2:
            sign = self.random.choice([1 << 31, 1 << 15, 1 << 7, 0x80008000])
            self._emit(target, f"xor.b32 {target}, {a}, {sign};", lambda s: s[a] ^ sign)
        elif self.random.random() < 0.7:
            self._emit(target, f"or.b32 {target}, {a}, {b};", lambda s: s[a] | s[b])
        else:
            self._emit(target, f"xor.b32 {target}, {a}, {b};", lambda s: s[a] ^ s[b])

    def _add(self) -> None:
        a, b, target = self._any(), self._any(), self._new()
        if self.random.random() < 0.5:
            self._emit(target, f"add.u32 {target}, {a}, {b};", lambda s: s[a] + s[b])
        else:
            by = self.random.choice([256, 65536, 3])
            self._emit(target, f"mad.lo.u32 {target}, {a}, {by}, {b};", lambda s: s[a] * by + s[b])

    def _insert(self) -> None:
        a, b, target = self._any(), self._any(), self._new()
        start, count = self.random.choice([(0, 8), (8, 8), (16, 16), (24, 16), (4, 8)])
        ones = (1 << min(count, 32 - start)) - 1
        self._emit(target, f"bfi.b32 {target}, {a}, {b}, {start}, {count};",
                   lambda s: s[b] & ~(ones << start) | (s[a] & ones) << start)  # fmt: skip

    def _extract(self) -> None:
        a, target = self._any(), self._new()
        start, count = self.random.choice([(0, 8), (8, 8), (16, 16), (24, 8), (4, 8)])
        sign = 1 << count - 1
        if self.random.random() < 0.5:
            self._emit(target, f"bfe.u32 {target}, {a}, {start}, {count};",
                       lambda s: s[a] >> start & 2 * sign - 1)  # fmt: skip
        else:
            self._emit(target, f"bfe.s32 {target}, {a}, {start}, {count};",
                       lambda s: ((s[a] >> start & 2 * sign - 1) ^ sign) - sign)  # fmt: skip

    def _narrow(self) -> None:
        a, half, target = self._any(), self._new("%rs"), self._new()
        self._emit(half, f"cvt.u16.u32 {half}, {a};", lambda s: s[a], 16)
        kind = self.random.choice(["u32.u16", "s32.s16", "u32.u8", "s32.s8"])
        bits = int(kind.split(".")[1][1:])
        sign = 1 << bits - 1 if kind[0] == "s" else 0
        self._emit(target, f"cvt.{kind} {target}, {half};",
                   lambda s: ((s[half] & (1 << bits) - 1) ^ sign) - sign)  # fmt: skip

    def _split(self) -> None:
        a, low, high = self._any(), self._new("%rs"), self._new("%rs")
        self._emit(low, f"mov.b32 {{{low}, {high}}}, {a};", lambda s: s[a], 16)
        self.steps.append(lambda s, _: s.update({high: s[a] >> 16}))
        target = self._new()
        self._emit(
            target, f"mov.b32 {target}, {{{high}, {low}}};", lambda s: s[low] << 16 | s[high]
        )

    def _select(self) -> None:
        a, b, target = self._any(), self._any(), self._new()
        self._emit(target, f"selp.b32 {target}, {a}, {b}, %odd;", lambda s: s[b])

    def _pass(self) -> None:
        """Through shared memory, by other pieces."""
        a, b = self._any(), self._any()
        target = self._new()
        self.lines.append("bar.sync 0;")
        if self.random.random() < 0.5:
            at, kind, bits = self.random.choice(
                [(0, "b8", 8), (1, "u8", 8), (3, "b8", 8), (2, "b16", 16), (0, "b32", 32)]
            )
            self.lines += [f"st.shared.b32 [%place], {a};", "bar.sync 0;"]
            self._emit(target, f"ld.shared.{kind} {target}, [%place+{at}];",
                       lambda s: s[a] >> 8 * at & (1 << bits) - 1)  # fmt: skip
            return
        self.lines += [
            f"st.shared.b8 [%place], {a};", f"st.shared.b8 [%place+1], {b};",
            f"st.shared.b16 [%place+2], {a};", "bar.sync 0;",
        ]  # fmt: skip
        self._emit(target, f"ld.shared.b32 {target}, [%place];",
                   lambda s: s[a] & 255 | (s[b] & 255) << 8 | (s[a] & 65535) << 16)  # fmt: skip

    def text(self) -> str:
        """The whole module; a product reads the last registers."""
        used = (self.wide * 6)[-6:]
        stores = "\n".join(f"st.global.b32 [%a+{4 * i}], {r};" for i, r in enumerate(self.wide))
        body = "\n".join(self.lines)
        sizes = "\n".join(f"ld.param.u32 %size{i}, [size{i}];" for i in range(self.loads))
        params = ", ".join(f".param .u32 size{i}" for i in range(self.loads))
        zeros = "\n".join(f"mov.b32 %acc{i}, 0;" for i in range(4))
        return f"""
.version 8.4
.target sm_89
.address_size 64
.shared .align 4 .b8 tile[128];
.visible .entry kernel(.param .u64 pa, {params})
.reqntid 32
{{
.reg .pred %p<8>, %odd; .reg .b16 %rs<200>; .reg .b32 %r<200>, %size<8>, %acc<4>, %lane, %place;
.reg .b64 %a;
ld.param.u64 %a, [pa];
{sizes}
mov.u32 %lane, %tid.x;
setp.gt.u32 %odd, %lane, 15;
mov.u32 %place, tile;
mad.lo.s32 %place, %lane, 4, %place;
{body}
{zeros}
mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {{%acc0, %acc1, %acc2, %acc3}},
 {{{used[0]}, {used[1]}, {used[2]}, {used[3]}}}, {{{used[4]}, {used[5]}}},
 {{%acc0, %acc1, %acc2, %acc3}};
{stores}
ret;
}}
"""


def holds(word: Word, bits: int, width: int, program: Program) -> bool:
    """True if a word may stand for some bits, of which data are pieces of what was loaded."""
    if isinstance(word, int):
        return word == bits
    if isinstance(word, Span):
        return word.low <= bits <= word.high
    if isinstance(word, Either):
        return bits in word.constants or holds(word.data, bits, width, program)
    if isinstance(word, Data):
        # A zero is data like others, and a number may have another sign.
        return any(
            not number
            or number in program.data[width]
            or (width == 32 and not number & 65535 and number >> 16 in program.data[16])
            for number in (bits, bits ^ 1 << width - 1)
        )
    if type(word) is tuple:
        low, high = bits & (1 << width // 2) - 1, bits >> width // 2
        pair: tuple[Any, ...] = word
        return holds(pair[0], low, width // 2, program) and holds(
            pair[1], high, width // 2, program
        )
    return True


@pytest.mark.parametrize("seed", [*range(150), 1056])
def test_what_a_mask_changes_is_marked(seed: int) -> None:
    program = Program(seed)
    module = parse(program.text())
    assert module.problems == []
    facts = Facts(module, module.functions[0])
    padding = Padding(facts)
    ssa = padding.ssa
    values = {
        ssa.register[v].name: ssa.resolve(v)
        for i in facts.function.instrs
        for v in ssa.def_values[i.index]
    }
    before = program.run(None)
    conditions = {
        load: mark.condition
        for load in range(program.loads)
        for mark in padding._marks.all
        if mark.load == load and not mark.condition.lost
    }
    for load in range(program.loads):
        after = program.run(load)
        for name in program.wide:
            if name not in values:
                continue
            value, changed = values[name], before[name] ^ after[name]
            free = padding.words.free(value)
            assert holds(free, before[name], 32, program), (name, free, program.text())
            assert holds(free, after[name], 32, program), (name, free, program.text())
            if load in conditions:
                under = padding.words.under(value, conditions[load])
                assert holds(under, after[name], 32, program), (name, under, program.text())
            if not padding._marks._demand.of(value):
                # It only goes to global memory.
                continue
            for byte in range(4):
                marks = padding._marks.each(padding._marks.of(value, byte, 4))
                if changed >> 8 * byte & 255:
                    assert load in {mark.load for mark in marks}, (name, byte, program.text())
