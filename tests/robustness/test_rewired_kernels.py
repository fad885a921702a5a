"""Fixtures with their data and control flow rewired: every rule answers, none crashes.

The texts stay readable as PTX for the most part, so that the edits reach the analyses: registers
and operands are exchanged, statements moved, branches turned round or led elsewhere (into cycles
with several entries, too), guards put on and taken off, constants and opcodes replaced.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from ptxlint import SourceText, check

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
LARGEST = 60_000
SECONDS = 20
STATEMENT = re.compile(r"\s*(?:@!?%p\d+\s+)?[a-z][\w.:]*(?:\s.*)?;\s*")
REGISTER = re.compile(r"%[a-z]+\d+")
ALIKE = (
    ("add", "sub", "max", "min", "mul"), ("ex2", "lg2", "rcp", "sqrt", "tanh"), ("shl", "shr"),
    ("and", "or", "xor"), ("lt", "le", "gt", "ge", "eq", "ne"), ("s32", "u32", "b32", "f32"),
    ("global", "shared", "local"), ("bfly", "down", "up", "idx"), ("bf16", "f16"),
    ("s64", "u64", "b64"),
)  # fmt: skip
NUMBERS = ("0", "1", "-1", "2", "16", "31", "32", "64", "-8388608", "2147483647")
FLOATS = ("0f00000000", "0fFF800000", "0f7F800000", "0f7FC00000", "0f3F800000", "0f80000000")
Deadline = Callable[[int], AbstractContextManager[None]]
Edit = Callable[[list[str], list[int], Random], None]


def delete(lines: list[str], places: list[int], random: Random) -> None:
    lines[random.choice(places)] = "\n"


def repeat(lines: list[str], places: list[int], random: Random) -> None:
    lines[random.choice(places)] += lines[random.choice(places)]


def exchange(lines: list[str], places: list[int], random: Random) -> None:
    one, two = random.choice(places), random.choice(places)
    lines[one], lines[two] = lines[two], lines[one]


def replace_word(lines: list[str], places: list[int], random: Random) -> None:
    """An opcode, a type, a space or a relation becomes another one."""
    at = random.choice(places)
    words = set(re.findall(r"[a-z]\w*", lines[at]))
    found = [(word, group) for group in ALIKE for word in group if word in words]
    if found:
        old, group = random.choice(found)
        new = random.choice(group)
        lines[at] = re.sub(rf"(?<![\w%]){old}(?!\w)", new, lines[at], count=1)


def replace_register(lines: list[str], places: list[int], random: Random) -> None:
    """A register becomes another one of its kind."""
    at = random.choice(places)
    here = REGISTER.findall(lines[at])
    there = REGISTER.findall(lines[random.choice(places)])
    pairs = [(a, b) for a in here for b in there if a.rstrip("0123456789") in b]
    if pairs:
        old, new = random.choice(pairs)
        lines[at] = re.sub(rf"{old}(?!\d)", new, lines[at], count=1)


def swap_operands(lines: list[str], places: list[int], random: Random) -> None:
    at = random.choice(places)
    found = list(dict.fromkeys(REGISTER.findall(lines[at])))
    if len(found) > 1:
        one, two = random.sample(found, 2)
        swapped = {one: two, two: one}
        lines[at] = REGISTER.sub(lambda m: swapped.get(m[0], m[0]), lines[at])


def _predicate(random: Random) -> str:
    return f"@{random.choice(('', '!'))}%p{random.randrange(1, 5)} "


def redirect(lines: list[str], places: list[int], random: Random) -> None:
    """A branch leads to some other label, or is added."""
    labels = [m[1] for line in lines if (m := re.match(r"(\$[\w$]+):", line))]
    branches = [at for at in places if re.search(r"\bbra\b", lines[at])]
    if not labels:
        return
    target = random.choice(labels)
    if branches and random.random() < 0.5:
        at = random.choice(branches)
        lines[at] = re.sub(r"\$[\w$]+(?=\s*;)", lambda _: target, lines[at])
    else:
        lines[random.choice(places)] += f"{_predicate(random)}bra {target};\n"


def jump(lines: list[str], places: list[int], random: Random) -> None:
    """A new branch, backwards or forwards: a loop or a way round."""
    first, last = sorted((random.choice(places), random.choice(places)))
    label = f"$Lnew{random.randrange(10**9)}"
    branch, mark = f"{_predicate(random)}bra {label};\n", f"{label}:\n"
    before, behind = (mark, branch) if random.random() < 0.5 else (branch, mark)
    lines[first] = before + lines[first]
    lines[last] += behind


def guard(lines: list[str], places: list[int], random: Random) -> None:
    at = random.choice(places)
    bare = re.sub(r"^\s*@!?%p\d+\s+", "", lines[at])
    kept = bare != lines[at] and random.random() < 0.5
    lines[at] = bare if kept else _predicate(random) + bare.lstrip()


def replace_number(lines: list[str], places: list[int], random: Random) -> None:
    at = random.choice(places)
    lines[at] = re.sub(r"0f[0-9A-F]{8}", lambda _: random.choice(FLOATS), lines[at])
    lines[at] = re.sub(
        r"(?<=[ \[+])-?\d+(?=[;,\] ])", lambda _: random.choice(NUMBERS), lines[at], count=1
    )


def make_constant(lines: list[str], places: list[int], random: Random) -> None:
    """A source becomes a constant or a special register."""
    at = random.choice(places)
    found = REGISTER.findall(lines[at])[1:]
    if found:
        new = random.choice((*NUMBERS, *FLOATS, "%tid.x", "%laneid", "%ctaid.y"))
        lines[at] = re.sub(rf"{random.choice(found)}(?!\d)", lambda _: new, lines[at], count=1)


EDITS: tuple[Edit, ...] = (
    delete, repeat, exchange, replace_word, replace_register, swap_operands, redirect, jump,
    guard, replace_number, make_constant,
)  # fmt: skip


def _read(path: Path) -> str:
    with path.open(encoding="utf-8", newline="") as file:
        return file.read()


def _is_base(path: Path) -> bool:
    return path.stat().st_size <= LARGEST and "invalid" not in path.parts


BASES = sorted(p for p in FIXTURES.rglob("*.ptx") if _is_base(p))


def rewire(text: str, edits: list[Edit], random: Random) -> str:
    lines = text.splitlines(keepends=True)
    places = [at for at, line in enumerate(lines) if STATEMENT.fullmatch(line)]
    for edit in edits:
        if places:
            edit(lines, places, random)
    return "".join(lines)


@st.composite
def kernels(draw: st.DrawFn) -> str:
    """A fixture with one to twenty edits."""
    base = draw(st.sampled_from(BASES))
    edits = draw(st.lists(st.sampled_from(EDITS), min_size=1, max_size=20))
    seed = draw(st.integers(0, 2**32 - 1))
    note(f"{base.relative_to(FIXTURES)}, {[e.__name__ for e in edits]}, seed {seed}")
    return rewire(_read(base), edits, Random(seed))


def answer(text: str, deadline: Deadline) -> None:
    with deadline(SECONDS):
        report = check(SourceText(text, "rewired.ptx"), select="ALL")
    assert [f"{f.message} {f.help}" for f in report.findings if f.rule == "INTERNAL"] == []


def _settings(examples: int) -> settings:
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )


@given(text=kernels())
@_settings(150)
def test_a_sample_of_rewired_kernels(deadline: Deadline, text: str) -> None:
    answer(text, deadline)


@pytest.mark.slow
@given(text=kernels())
@_settings(5_000)
def test_rewired_kernels(deadline: Deadline, text: str) -> None:
    answer(text, deadline)


@pytest.mark.parametrize("edit", EDITS)
def test_every_edit_changes_something(edit: Edit) -> None:
    text = _read(FIXTURES / "ptx" / "sm_80" / "flash_fwd.ptx")
    changed = sum(rewire(text, [edit], Random(seed)) != text for seed in range(40))
    assert changed >= 8
