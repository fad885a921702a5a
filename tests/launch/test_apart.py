"""Whether programs write apart: what is proved and refuted, against all threads of small grids."""

from __future__ import annotations

from itertools import product
from typing import Any, NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ptxlint.engine.registry import default_registry
from ptxlint.engine.samples import launches_of, module_text
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse
from ptxlint.launch.analysis import LaunchOutcomes
from ptxlint.launch.binding import bind
from ptxlint.launch.coverage.apart import Apart, apart
from ptxlint.launch.coverage.mixed_radix import Known
from ptxlint.launch.coverage.parting import Place
from ptxlint.launch.coverage.program_map import program_map
from ptxlint.launch.coverage.runs import Runs
from ptxlint.launch.coverage.writes import writes_of
from ptxlint.launch.under import UnderLaunch
from ptxlint.launches import Argument, Launch, Scalar, Tensor
from ptxlint.rulekit import Verdict

THREADS = 32
HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 x, .param .u32 n)
    .reqntid 32
{
.reg .pred %p<6>;
.reg .b32 %r<60>;
.reg .b64 %rd<6>;
ld.param.u64 %rd1, [x];
ld.param.u32 %r1, [n];
mov.u32 %r2, %ctaid.x;
mov.u32 %r3, %ctaid.y;
mov.u32 %r4, %tid.x;
"""


class Shape(NamedTuple):
    """An index as a sum: what each digit is multiplied with, and where it is guarded.

    The digits are x / q, x % q, y, tid / 4, tid % 4 and the round of a loop; the guard keeps the
    digits of `guarded` times their factors below a number. `apart` is the step between two stores.
    """

    grid: tuple[int, int]
    q: int
    rounds: int
    factors: tuple[int, ...]
    guarded: tuple[int, ...]
    below: int
    step: int

    def indices(self) -> dict[tuple[int, int], set[int]]:
        """The cells that each program writes, by running it."""
        out = {}
        for x, y in product(*map(range, self.grid)):
            cells = out[x, y] = set()
            for tid, k in product(range(THREADS), range(self.rounds)):
                digits = (x // self.q, x % self.q, y, tid // 4, tid % 4, k)
                if sum(digits[at] * self.factors[at] for at in self.guarded) >= self.below:
                    continue
                index = sum(d * f for d, f in zip(digits, self.factors, strict=True))
                cells.update({index, index + self.step} if self.step else {index})
        return out

    def text(self) -> str:
        """The kernel."""
        lines = [
            f"div.u32 %r5, %r2, {self.q};", f"rem.u32 %r6, %r2, {self.q};",
            "shr.u32 %r8, %r4, 2;", "and.b32 %r9, %r4, 3;", "mov.u32 %r10, 0;", "$round:",
        ]  # fmt: skip
        registers = (5, 6, 3, 8, 9, 10)
        at = 20
        for name, chosen in (("all", range(6)), ("guarded", self.guarded)):
            total = 11 if name == "all" else 12
            lines.append(f"mov.u32 %r{total}, 0;")
            for digit in chosen:
                lines += [
                    f"mul.lo.s32 %r{at}, %r{registers[digit]}, {self.factors[digit]};",
                    f"add.s32 %r{total}, %r{total}, %r{at};",
                ]
                at += 1
        lines += [
            "setp.lt.s32 %p1, %r12, %r1;",
            "mul.wide.s32 %rd2, %r11, 4;",
            "add.s64 %rd3, %rd1, %rd2;",
            "@%p1 st.global.b32 [%rd3], %r2;",
        ]
        if self.step:
            lines.append(f"@%p1 st.global.b32 [%rd3+{4 * self.step}], %r2;")
        lines += [
            "add.s32 %r10, %r10, 1;",
            f"setp.lt.s32 %p2, %r10, {self.rounds};",
            "@%p2 bra $round;",
        ]
        return HEAD + "\n".join(lines) + "\nret;\n}\n"


def under(text: str, grid: tuple[int, ...], n: int, elements: int = 1 << 22) -> UnderLaunch:
    """A kernel of one tensor, under one launch."""
    module = parse(text, "k.ptx")
    assert not module.problems, module.problems
    kernel = module.kernels()[0]
    arguments: dict[str, Argument] = {
        "x": Tensor("float32", (elements,), (1,), 0, 4 * elements),
        "n": Scalar("u32", n),
    }
    x, y, z = (*grid, 1, 1)[:3]
    launch = Launch((x, y, z), (THREADS, 1, 1), arguments)
    return UnderLaunch(Facts(module, kernel, launches=(launch,)), bind(kernel, launch, {}))


def alone(text: str) -> Facts:
    """A kernel without a launch."""
    module = parse(text, "k.ptx")
    return Facts(module, module.kernels()[0])


def judged(found: UnderLaunch) -> Apart:
    """The word on the only output."""
    runs = Runs(found)
    (word,) = apart(found, writes_of(LaunchOutcomes(found)), lambda: runs)
    return word


def by_algebra(found: UnderLaunch) -> bool:
    """True if the address alone tells each program along each axis."""
    (output,) = writes_of(LaunchOutcomes(found)).outputs
    places = [Place(s.place, s.width, s.guard) for s in output.stores]
    known = Known(found, places)
    axes = [axis for axis, extent in zip("xyz", found.bound.grid, strict=True) if extent > 1]
    return all(map(known.tells, axes))


def overlap(cells: dict[tuple[int, int], set[int]]) -> bool:
    """True if two programs write one cell."""
    return sum(map(len, cells.values())) != len(set().union(*cells.values()))


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    """Digits of a mixed radix in some order, sometimes with a factor that is a little off."""
    grid = draw(st.tuples(st.integers(1, 7), st.integers(1, 4)))
    q = draw(st.integers(1, 4))
    rounds = draw(st.integers(1, 3))
    extents = [-(-grid[0] // q), q, grid[1], THREADS // 4, 4, rounds]
    factors = [0] * 6
    step = 1
    for at in draw(st.permutations(range(6))):
        factors[at] = step
        step *= extents[at]
    off = draw(st.integers(0, 11))
    if off < 6:
        factors[off] = max(0, factors[off] + draw(st.sampled_from([-2, -1, 1, 3, -factors[off]])))
    guarded = tuple(draw(st.lists(st.integers(0, 5), unique=True, max_size=3)))
    below = draw(st.integers(1, 2 * step))
    between = draw(st.sampled_from([0, 0, 0, 1, step, step // 2]))
    return Shape(grid, q, rounds, tuple(factors), guarded, below, between)


@settings(max_examples=150, deadline=None, derandomize=True)
@given(shapes())
def test_what_is_said_holds_in_all_threads(shape: Shape) -> None:
    found = under(shape.text(), shape.grid, shape.below)
    word = judged(found)
    # So small a grid is always decided.
    assert word.status == ("refuted" if overlap(shape.indices()) else "proved"), word
    if word.clash is not None:
        cells = shape.indices()
        cell = word.clash.offset // 4
        for thread in (word.clash.first, word.clash.second):
            assert cell in cells[thread.ctaid[:2]]
        assert word.clash.first.ctaid != word.clash.second.ctaid


@settings(max_examples=400, deadline=None, derandomize=True)
@given(shapes())
def test_an_address_that_tells_is_written_once(shape: Shape) -> None:
    if by_algebra(under(shape.text(), shape.grid, shape.below)):
        assert not overlap(shape.indices())


@pytest.mark.parametrize("order", [(0, 1, 2, 3, 4, 5), (5, 4, 3, 2, 1, 0), (2, 5, 0, 4, 1, 3)])
def test_plain_digits_need_no_run(order: tuple[int, ...]) -> None:
    """Whatever their order, and as well for a grid of millions."""
    for grid in ((6, 4), (600_000, 4)):
        extents = [-(-grid[0] // 3), 3, grid[1], THREADS // 4, 4, 3]
        factors = [0] * 6
        step = 1
        for at in order:
            factors[at] = step
            step *= extents[at]
        shape = Shape(grid, 3, 3, tuple(factors), (), 1 << 30, 0)
        found = under(shape.text(), grid, 1 << 30, step)
        assert by_algebra(found)
        assert judged(found).status == "proved"


def test_a_guard_keeps_rows_apart() -> None:
    """32 lanes a program, of which 20 write: rows of 20 cells are apart, rows of 19 are not."""
    for row, status in ((20, "proved"), (19, "refuted")):
        shape = Shape((1_000_000, 1), 1, 1, (row, 0, 0, 4, 1, 0), (3, 4), 20, 0)
        word = judged(under(shape.text(), shape.grid, 20, 20 * 1_000_000))
        assert word.status == status
        assert (word.clash is not None) == (status == "refuted")


SWIZZLE = """
div.u32 %r5, %r2, {group};
mul.lo.s32 %r6, %r5, {first};
sub.s32 %r7, {rows}, %r6;
min.s32 %r8, %r7, {height};
rem.u32 %r9, %r2, {inner};
rem.s32 %r10, %r9, %r8;
add.s32 %r11, %r6, %r10;
div.s32 %r12, %r9, %r8;
mul.lo.s32 %r13, %r11, {columns};
add.s32 %r14, %r13, %r12;
shl.b32 %r15, %r14, 5;
add.s32 %r16, %r15, %r4;
mul.wide.s32 %rd2, %r16, 4;
add.s64 %rd3, %rd1, %rd2;
st.global.b32 [%rd3], %r2;
ret;
}}
"""


def swizzled(tiles: int, columns: int, height: int, **wrong: int) -> UnderLaunch:
    """Tiles in groups of `height` rows, the last group smaller."""
    group = height * columns
    given = {"group": group, "first": height, "rows": tiles, "height": height, "inner": group,
             "columns": columns} | wrong  # fmt: skip
    text = HEAD + SWIZZLE.format(**given)
    return under(text, (tiles * columns,), 0, 32 * (tiles + 1) * columns)


def test_a_map_of_programs_to_tiles_is_worked_out() -> None:
    """A grid that is too large to run all of its threads, and whose last group is smaller."""
    assert judged(swizzled(1001, 300, 8)).status == "proved"
    assert not by_algebra(swizzled(1001, 300, 8))


def test_a_map_that_gives_a_tile_to_two_clashes() -> None:
    word = judged(swizzled(1000, 300, 8, inner=7 * 300))
    assert word.status == "refuted"
    assert word.clash is not None
    first, second = word.clash.first.ctaid, word.clash.second.ctaid
    assert (first, second) == ((0, 0, 0), (2100, 0, 0))


def test_a_map_that_is_too_large_is_open() -> None:
    """Two million programs: none is run, none is claimed."""
    word = judged(swizzled(2001, 1024, 8))
    assert (word.status, word.clash) == ("open", None)


BODIES: dict[str, tuple[str, str]] = {
    "one cell for all": ("mul.wide.s32 %rd2, %r4, 4;", "refuted"),
    "by program": ("shl.b32 %r5, %r2, 5;\nadd.s32 %r6, %r5, %r4;\nmul.wide.s32 %rd2, %r6, 4;",
                   "proved"),
    "the first one alone": ("setp.ne.s32 %p1, %r2, 0;\n@%p1 bra $end;\nmul.wide.s32 %rd2, %r4, 4;",
                            "proved"),
    "all but the first one": (
        "setp.eq.s32 %p1, %r2, 0;\n@%p1 bra $end;\nmul.wide.s32 %rd2, %r4, 4;", "refuted"),
    "wrapped": ("shl.b32 %r5, %r2, 5;\nadd.s32 %r6, %r5, %r4;\nrem.u32 %r6, %r6, 128;\n"
                "mul.wide.s32 %rd2, %r6, 4;", "refuted"),
}  # fmt: skip


@pytest.mark.parametrize("name", BODIES)
def test_small_kernels(name: str) -> None:
    body, status = BODIES[name]
    text = HEAD + body + "\nadd.s64 %rd3, %rd1, %rd2;\nst.global.b32 [%rd3], %r2;\n$end:\nret;\n}\n"
    assert judged(under(text, (8,), 0, 1024)).status == status
    # As well where not all threads can be run.
    assert judged(under(text, (1_000_000,), 0, 1 << 25)).status == status


def test_programs_that_wait_for_each_other_are_left_open() -> None:
    """A lock orders those that write to the same cells."""
    lock = """
$wait:
atom.global.cas.b32 %r5, [%rd1+4096], 0, 1;
setp.ne.s32 %p1, %r5, 0;
@%p1 bra $wait;
mul.wide.s32 %rd2, %r4, 4;
add.s64 %rd3, %rd1, %rd2;
ld.global.b32 %r6, [%rd3];
add.s32 %r6, %r6, %r2;
st.global.b32 [%rd3], %r6;
ret;
}
"""
    assert judged(under(HEAD + lock, (8,), 0, 4096)).status == "open"


def test_the_same_value_from_all_is_no_fault() -> None:
    """Unless nothing that is written depends on which program it is."""
    both = """
shl.b32 %r5, %r2, 5;
add.s32 %r6, %r5, %r4;
mul.wide.s32 %rd2, %r6, 4;
add.s64 %rd3, %rd1, %rd2;
st.global.b32 [%rd1+1048576], {value};
{more}
ret;
}}
"""
    own = "st.global.b32 [%rd3], %r2;"
    for value, more, status in (
        ("%r1", own, "proved"), ("%r2", own, "refuted"), ("%r1", "", "refuted"),
    ):  # fmt: skip
        for grid in (8, 8000):
            word = judged(under(HEAD + both.format(value=value, more=more), (grid,), 7, 1 << 20))
            assert word.status == status, (value, more)
            assert word.is_repeated == (status == "proved")
            if word.clash is not None:
                assert word.clash.is_idle == (value == "%r1")


def test_programs_that_are_run_and_repeat_each_other_are_told() -> None:
    """Along y all write the same to the same cells; that those along x do not, runs alone tell."""
    text = """
xor.b32 %r5, %r2, 5;
mul.wide.u32 %rd2, %r5, 128;
add.s64 %rd3, %rd1, %rd2;
mul.wide.u32 %rd4, %r4, 4;
add.s64 %rd3, %rd3, %rd4;
st.global.b32 [%rd3], {value};
red.global.add.u32 [%rd1+1048576], {added};
ret;
}}
"""
    for value, added, said in (
        ("%r2", "%r3", ("proved", True)), ("%r3", "%r3", ("refuted", False)),
        ("%r2", "%r2", ("refuted", False)),
    ):  # fmt: skip
        word = judged(under(HEAD + text.format(value=value, added=added), (8, 2), 7, 1 << 20))
        assert (word.status, word.is_repeated) == said, (value, added)
        assert ("the same to the same cells" in word.reason) == word.is_repeated
    alone = text.format(value="%r2", added="%r3")
    word = judged(under(HEAD + alone, (8,), 7, 1 << 20))
    assert (word.status, word.is_repeated) == ("proved", False)


def test_a_proof_says_where_programs_meet() -> None:
    """In the sample that flags the same from all programs, next to the tiles of each."""
    rule = default_registry().rules["HAZ601"]
    (sample,) = (sample for sample in rule.good if "flag" in sample.title)
    module = parse(module_text(sample), "sample.ptx")
    facts = Facts(module, module.kernels()[0], launches=launches_of(sample))
    (verdict,) = (v for v in rule().check(facts.function, facts) if isinstance(v, Verdict))
    said = "programs write apart in out_ptr and that meet write the same in in_ptr"
    assert (verdict.status, verdict.reason) == ("proved", said)


def test_too_many_programs_are_not_mapped() -> None:
    found: Any = under(Shape((6, 4), 2, 1, (4, 1, 1, 1, 1, 1), (), 1, 0).text(), (1 << 30,), 1)
    number = found.symbolic.table.plain(
        found.symbolic.table.atom("ctaid", ("x",), 0, (1 << 30) - 1)
    )
    assert program_map(found, [number], "x") is None
