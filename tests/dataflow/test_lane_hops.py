"""Where registers come from behind `shfl` and `selp`, against random code run on all threads."""

from __future__ import annotations

from random import Random

import pytest

from ptxlint.dataflow.lane_hops import LaneHop, LaneHops, Shift
from ptxlint.dataflow.lane_map import LaneMap
from ptxlint.dataflow.polynomial import Atom, AtomTable, Polynomial
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.dataflow.ssa_values import Ssa
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse
from ptxlint.ir.types import BITS

WIDTH = 6
THREADS = range(1 << WIDTH)
HEAD = """.version 8.6
.target sm_80
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 a, .param .u32 n) .reqntid 64
{
.reg .pred %p<60>;
.reg .b16 %h<60>, %g<60>;
.reg .b32 %r<99>;
.reg .b64 %d<9>;
ld.param.u64 %d1, [a];
ld.param.u32 %r90, [n];
mov.u32 %r0, %tid.x;
"""
Table = list[int]


def source_lane(instr: str, thread: int, lane: int, clamp: int) -> int:
    """The thread that `shfl.sync` reads from (PTX ISA, "shfl.sync")."""
    own, segment = thread & 31, clamp >> 8 & 31
    most = own & segment | clamp & 31 & ~segment
    found = own & segment | lane & ~segment & 31 if instr == "idx" else own ^ lane & 31
    return thread & ~31 | (found if found <= most else own)


def permuted(a: int, b: int, selector: int) -> int:
    """`prmt` in its default mode, without signs (PTX ISA, "prmt")."""
    both = a | b << 32
    return sum((both >> 8 * (selector >> 4 * k & 7) & 0xFF) << 8 * k for k in range(4))


class Program:
    """Random code: integers of the thread, predicates of them, data that moves."""

    def __init__(self, random: Random, number: int) -> None:
        self.random = random
        self.lines: list[str] = []
        self.words: dict[str, Table] = {"%r0": list(THREADS)}
        self.predicates: dict[str, Table] = {}
        self.data: dict[str, Table] = {}
        """Registers with a number for what each thread has: of which register, in which thread."""
        self.number = number
        for mask in (3, 7):
            shared, own, whole = (f"%r{60 + 3 * (mask & 4) + k}" for k in range(3))
            self.lines += [
                f"and.b32 {shared}, %r90, {mask};",
                f"and.b32 {own}, %r0, {31 - mask};",
                f"or.b32 {whole}, {own}, {shared};",
            ]
            self.words[whole] = [t & 31 - mask | number & mask for t in THREADS]
        for at in range(1, 10):
            self.index(f"%r{at}")
        for at in range(4):
            self.predicate(f"%p{at}")
        for at in range(10, 14):
            self.lines.append(f"ld.global.b32 %r{at}, [%d1+{4 * at}];")
            self.data[f"%r{at}"] = [at << 24 | t << 16 | t << 8 | at for t in THREADS]
        for at in range(14, 44):
            self.move(f"%r{at}", f"%h{at}")

    def pick(self, table: dict[str, Table]) -> str:
        return self.random.choice(list(table))

    def index(self, new: str) -> None:
        r, a, b = self.random, self.pick(self.words), self.pick(self.words)
        bit, mask = r.randrange(5), r.choice((1, 2, 3, 5, 8, 12, 16, 24, 28, 31))
        x, y = self.words[a], self.words[b]
        line, table = r.choice(
            (
                (f"and.b32 {new}, {a}, {mask};", [v & mask for v in x]),
                (f"xor.b32 {new}, {a}, {mask};", [v ^ mask for v in x]),
                (f"xor.b32 {new}, {a}, {b};", [v ^ w for v, w in zip(x, y, strict=True)]),
                (f"or.b32 {new}, {a}, {b};", [v | w for v, w in zip(x, y, strict=True)]),
                (f"shr.u32 {new}, {a}, {bit};", [v >> bit for v in x]),
                (f"bfe.u32 {new}, {a}, {bit}, 2;", [v >> bit & 3 for v in x]),
                (f"and.b32 {new}, {a}, 20;", [v & 20 for v in x]),
                (f"and.b32 {new}, %r90, {mask & 7};", [self.number & mask & 7] * len(x)),
                (f"shl.b32 {new}, {a}, 1;", [v << 1 & 0xFFFFFFFF for v in x]),
            )
        )
        self.lines.append(line)
        self.words[new] = table

    def predicate(self, new: str) -> None:
        a, mask = self.pick(self.words), self.random.choice((1, 2, 4, 8, 16, 3, 12, 17))
        test = self.random.choice(("eq", "ne"))
        self.lines += [
            f"and.b32 %r{80 + len(self.predicates)}, {a}, {mask};",
            f"setp.{test}.u32 {new}, %r{80 + len(self.predicates)}, 0;",
        ]
        met = [v & mask == 0 for v in self.words[a]]
        self.predicates[new] = [int(m == (test == "eq")) for m in met]

    def move(self, new: str, half: str) -> None:
        r, a, b = self.random, self.pick(self.data), self.pick(self.data)
        same = [name for name in self.data if name[1] == a[1]]
        kind = r.choice(("idx", "idx", "bfly", "selp", "selp", "selp", "cvt", "pack", "prmt"))
        wide = a[1] == "r"
        if kind == "cvt":
            target = half if wide else new
            types = "u16.u32" if wide else "u32.u16"
            self.lines.append(f"cvt.{types} {target}, {a};")
            self.data[target] = [v & 0xFFFF for v in self.data[a]]
        elif kind == "pack":
            self.pack(new, half, a, r.choice(same))
        elif kind == "prmt" and wide:
            self.permute(new, a, r.choice(same))
        elif kind == "selp":
            b, p = r.choice(same), self.pick(self.predicates)
            target = new if wide else half
            self.lines.append(f"selp.b{32 if wide else 16} {target}, {a}, {b}, {p};")
            self.data[target] = [
                x if c else y
                for x, y, c in zip(self.data[a], self.data[b], self.predicates[p], strict=True)
            ]
        elif wide:
            lane = self.pick(self.words) if r.random() < 0.8 else str(r.randrange(32))
            lanes = self.words.get(lane) or [int(lane)] * len(THREADS)
            clamp = r.choice((31, 31, 31, 0x101F, 0x181F, 0x1C1F, 15))
            self.lines.append(f"shfl.sync.{kind}.b32 {new}, {a}, {lane}, {clamp}, -1;")
            self.data[new] = [self.data[a][source_lane(kind, t, lanes[t], clamp)] for t in THREADS]

    def permute(self, new: str, a: str, b: str) -> None:
        """Halves or bytes of two registers, chosen by the lane."""
        p, selector = self.pick(self.predicates), f"%r{92 + self.random.randrange(4)}"
        size = self.random.choice((2, 2, 2, 1))
        arms = []
        for _ in range(2):
            places = [self.random.randrange(8 // size) * size for _ in range(4 // size)]
            nibbles = [place + k for place in places for k in range(size)]
            arms.append(sum(nibble << 4 * k for k, nibble in enumerate(nibbles)))
        self.lines += [
            f"selp.b32 {selector}, {arms[0]}, {arms[1]}, {p};",
            f"prmt.b32 {new}, {a}, {b}, {selector};",
        ]
        self.data[new] = [
            permuted(x, y, arms[0] if c else arms[1])
            for x, y, c in zip(self.data[a], self.data[b], self.predicates[p], strict=True)
        ]

    def pack(self, new: str, half: str, a: str, b: str) -> None:
        """Halves of two registers in one, and taken out of it again."""
        at = (0, 0)
        if a[1] == "r":
            at = self.random.choice(((0, 0), (0, 0), (1, 1), (0, 1)))
            selector = f"0x{5 + 2 * at[1]}{4 + 2 * at[1]}{1 + 2 * at[0]}{2 * at[0]}"
            self.lines.append(f"prmt.b32 {new}, {a}, {b}, {selector};")
        else:
            self.lines.append(f"mov.b32 {new}, {{{a}, {b}}};")
        parts = [half, half.replace("%h", "%g")]
        self.lines.append(f"mov.b32 {{{parts[0]}, {parts[1]}}}, {new};")
        for target, source, place in zip(parts, (a, b), at, strict=True):
            self.data[target] = [v >> 16 * place & 0xFFFF for v in self.data[source]]

    @property
    def text(self) -> str:
        return HEAD + "\n".join(self.lines) + "\nret;\n}\n"


def facts_of(text: str) -> Facts:
    module = parse(text, "k.ptx")
    return Facts(module, module.kernels()[0])


def by_register(facts: Facts) -> dict[str, int]:
    ssa: Ssa = facts.get(SsaAnalysis)
    return {
        ssa.register[v].name: v
        for instr in facts.function.instrs
        for v in ssa.def_values[instr.index]
    }


def check(program: Program, facts: Facts) -> tuple[int, int, int]:
    """How many registers were told, how many ways with a shift, how many registers in parts."""
    ssa: Ssa = facts.get(SsaAnalysis)
    hops, values = LaneHops(facts), by_register(facts)
    names = {ssa.resolve(v): name for name, v in values.items()}
    told = shifts = split = 0
    for name, table in program.data.items():
        ways = hops.of(values[name])
        if not ways:
            continue
        told += 1
        split += ways[0].split > 1
        width = BITS[ssa.register[values[name]].type]
        for thread in THREADS:
            own = [h for h in ways if thread & h.fixed == h.at]
            assert sorted(h.into for h in own) == list(range(own[0].split)), (name, ways)
            parts = 0
            for hop in own:
                bits = 0
                if hop.shift is not None:
                    shifts += 1
                    bits = shift_of(hop, program, names)
                source = hop.source(thread, bits)
                assert source is not None
                whole = BITS[ssa.register[hop.value].type] // hop.parts
                held = program.data[names[hop.value]][source] >> whole * hop.part
                size = min(whole, width // hop.split)
                assert hop.parts == 1 or size == whole
                parts |= (held & (1 << size) - 1) << width // hop.split * hop.into
            assert table[thread] == parts, (name, own, program.text)
    return told, shifts, split


def shift_of(hop: LaneHop, program: Program, names: dict[int, str]) -> int:
    """The bits that a shift adds when a program is run."""
    assert hop.shift is not None
    low = hop.shift.mask & -hop.shift.mask
    return number_of(hop.shift.number, program, names) * low


def number_of(polynomial: Polynomial, program: Program, names: dict[int, str]) -> int:
    table = polynomial.table
    known = {a: table.constant(value_of(a, program, names)) for a in polynomial.atoms()}
    return polynomial.substitute(known).constant


def value_of(atom: Atom, program: Program, names: dict[int, str]) -> int:
    if atom.kind == "param":
        return program.number
    if atom.kind == "opaque":
        return program.words[names[atom.data[0]]][0]
    assert atom.kind == "fdiv"
    return number_of(atom.data[0], program, names) // int(atom.data[1])


@pytest.mark.parametrize("seed", range(300))
def test_random_movements(seed: int) -> None:
    random = Random(seed)
    program = Program(random, random.randrange(100))
    check(program, facts_of(program.text))


def test_enough_is_told() -> None:
    told = shifts = split = 0
    for seed in range(40):
        program = Program(Random(seed), seed)
        found = check(program, facts_of(program.text))
        told += found[0]
        shifts += found[1] > 0
        split += found[2]
    assert told > 200
    assert shifts > 10
    assert split > 20


def random_hop(random: Random) -> LaneHop:
    """A hop whose lanes are permuted, doubled or flipped."""
    places = [1 << i for i in range(WIDTH)]
    images = [random.choice((*places, 0, random.randrange(64))) for _ in places]
    fixed = random.choice((0, 0, 1, 4, 20))
    images = [0 if fixed >> i & 1 else image for i, image in enumerate(images)]
    at = random.randrange(64) & fixed
    return LaneHop(0, fixed, at, random.randrange(64), tuple(images))


def random_map(random: Random) -> LaneMap:
    whole = LaneMap(random.randrange(99), tuple([random.randrange(64) for _ in range(WIDTH)]))
    fixed = random.choice((0, 0, 0, 1, 6, 32))
    found = whole.restrict(fixed, random.randrange(64) & fixed)
    assert found is not None
    return found


@pytest.mark.parametrize("seed", range(200))
def test_numbers_that_go_along(seed: int) -> None:
    random = Random(seed)
    hop, held = random_hop(random), random_map(random)
    pushed = hop.push(held)
    assert pushed is not None
    found = {t: p.value(t) for p in pushed for t in THREADS if p.holds_for(t)}
    sources = {t: s for t in THREADS if (s := hop.source(t)) is not None}
    assert found == {t: held.value(s) for t, s in sources.items() if held.holds_for(s)}
    assert hop.meets(held) == bool(found)
    back = hop.pull(held)
    if back is not None:
        read = {t: s for t, s in sources.items() if held.holds_for(t)}
        assert {s for s in THREADS if back.holds_for(s)} == set(read.values())
        assert all(back.value(s) == held.value(t) for t, s in read.items())


@pytest.mark.parametrize("seed", range(200))
def test_numbers_that_a_shift_raises(seed: int) -> None:
    random = Random(seed)
    size = random.choice((1, 2, 4, 16))
    basis = [size << i if random.random() < 0.9 else 0 for i in range(WIDTH)]
    random.shuffle(basis) if seed % 4 == 0 else None
    held = LaneMap(random.choice((0, 0, 1, 64 * size)), tuple(basis))
    mask = random.choice((3, 7, 12, 16))
    lanes = [0 if mask >> i & 1 else 1 << i for i in range(WIDTH)]
    table = AtomTable()
    number = table.plain(table.atom("param", ("n",), 0, 3))
    hop = LaneHop(0, 0, 0, 0, tuple(lanes), Shift(number, mask))
    factor, pushed = hop.shift_factor(held), hop.push(held)
    assert pushed is not None
    if factor is None:
        return
    low = mask & -mask
    (whole,) = pushed
    for bits in range(0, mask + 1, low):
        if not bits & ~mask:
            for thread in THREADS:
                source = hop.source(thread, bits)
                assert source is not None
                assert held.value(source) == whole.value(thread) + factor * (bits // low)


MOVED = """
and.b32 %r1, %r0, 1;
setp.eq.u32 %p1, %r1, 0;
and.b32 %r2, %r0, 30;
shr.u32 %r3, %r2, 1;
and.b32 %r4, %r0, 1;
shl.b32 %r5, %r4, 4;
or.b32 %r6, %r3, %r5;
ld.global.b32 %r10, [%d1];
ld.global.b32 %r11, [%d1+4];
shfl.sync.idx.b32 %r12, %r10, %r6, 31, -1;
shfl.sync.idx.b32 %r13, %r11, %r6, 31, -1;
"""


def test_what_combines_is_no_movement() -> None:
    text = MOVED + "add.f32 %r14, %r12, %r11;\nselp.b32 %r15, %r12, %r10, %p1;\n"
    facts = facts_of(HEAD + text + "ret;\n}\n")
    hops, values = LaneHops(facts), by_register(facts)
    assert hops.of(values["%r12"]) == (LaneHop(values["%r10"], 0, 0, 0, (16, 1, 2, 4, 8, 32)),)
    assert not hops.of(values["%r14"])
    own = LaneHop(values["%r10"], 1, 1, 1, (0, 2, 4, 8, 16, 32))
    assert own in hops.of(values["%r15"])
    step = next(i for i in facts.function.instrs if i.opcode == "shfl")
    assert not LaneHops(facts, {step.index}).of(values["%r12"])
    for combined in ("add.f32 %r14, %r12, %r10;", "fma.rn.f32 %r14, %r11, %r11, %r12;"):
        facts = facts_of(HEAD + MOVED + combined.replace("%r11, %r12", "%r10, %r12") + "ret;\n}\n")
        found = LaneHops(facts).of(by_register(facts)["%r12"])
        assert bool(found) == ("fma" in combined)
    facts = facts_of(HEAD + MOVED + "shfl.sync.bfly.b32 %r14, %r10, 8, 31, -1;\nret;\n}\n")
    assert not LaneHops(facts).of(by_register(facts)["%r14"])


JOINED = """
setp.lt.s32 %p5, %r90, 3;
@%p5 bra OTHER;
xor.b32 %r7, %r6, FIRST;
bra JOIN;
OTHER:
xor.b32 %r7, %r6, 4;
JOIN:
shfl.sync.idx.b32 %r14, %r10, %r7, 31, -1;
"""


@pytest.mark.parametrize("first", [4, 8])
def test_a_lane_that_each_way_has_worked_out(first: int) -> None:
    facts = facts_of(HEAD + MOVED + JOINED.replace("FIRST", str(first)) + "ret;\n}\n")
    values = by_register(facts)
    found = LaneHops(facts).of(values["%r14"])
    expected = (LaneHop(values["%r10"], 0, 0, 4, (16, 1, 2, 4, 8, 32)),)
    assert found == (expected if first == 4 else ())


@pytest.mark.parametrize(
    "lane", ["%r90", "%r10"], ids=["a number of any size", "a number that was loaded"]
)
def test_lanes_that_are_not_known(lane: str) -> None:
    text = HEAD + MOVED + f"shfl.sync.idx.b32 %r14, %r10, {lane}, 31, -1;\nret;\n}}\n"
    facts = facts_of(text)
    assert not LaneHops(facts).of(by_register(facts)["%r14"])


GATHERED = """
min.s32 %r3, %r90, {most};
{entered}
mov.b32 %r2, 0;
LOOP:
and.b32 %r4, %r0, 16;
or.b32 %r5, %r4, %r2;
shfl.sync.idx.b32 %r14, %r10, %r5, 31, -1;
add.s32 %r2, %r2, 1;
setp.ne.s32 %p2, %r3, %r2;
@%p2 bra LOOP;
END:
"""
ENTERED = "setp.lt.s32 %p3, %r90, 1;\n@%p3 bra END;"


@pytest.mark.parametrize(
    ("most", "entered", "told"),
    [
        (16, ENTERED, True),
        (17, ENTERED, False),
        (16, "", False),
        (16, ENTERED.replace("lt", "gt"), False),
        (16, "max.s32 %r3, %r3, 1;", True),
    ],
    ids=["16 columns", "too many", "not known to end", "no column", "one column at least"],
)
def test_a_column_that_a_loop_counts(most: int, entered: str, told: bool) -> None:
    text = HEAD + MOVED + GATHERED.format(most=most, entered=entered) + "ret;\n}\n"
    facts = facts_of(text)
    found = LaneHops(facts).of(by_register(facts)["%r14"])
    assert len(found) == told
    for hop in found:
        assert hop.shift is not None
        assert hop.shift.mask == 15
        assert hop.images == (0, 0, 0, 0, 16, 32)
