"""Mutated fixtures: every one is answered, by both parsers alike, and nothing crashes.

Hypothesis draws the fixture, the mutations and a seed for what they do; the draw is fixed, so
that a red example stays red. `--run-slow` takes 5,000 mutants, the default a sample.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, given, note, settings
from hypothesis import strategies as st

from ptxlint import SourceText, check
from ptxlint.frontends.ptx import parse
from ptxlint.ir.printer import print_module
from ptxlint.ir.structure import module_key
from ptxlint.reporters import render

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
LARGEST = 40_000
"""Bytes of the largest fixture that is mutated: many small ones try more than few large ones."""
SECONDS = 10
TOKEN = re.compile(r'"[^"\n]*"|[%$_A-Za-z.][\w$.]*|[0-9]\w*|\s+|.', re.DOTALL)
STATEMENT = re.compile(r"[^;{}]*[;{}]")
INSERTED = [
    ";", "{", "}", "(", ")", "[", "]", ",", ":", "@", "@!", "@%p1", "!", "-", "~", "|", "_", "+",
    "*", "?", "=", "<", ">", '"', "//", "/*", "*/", "#", "\0", "\r", "\n", "\t", " ", "\v",
    "\xe9", "\u2028", "\ufeff", "0", "1", "0x", "0x7fffffffffffffff", "99999999999999999999",
    "0f3F800000", "0fFFF", "1.5", "1e400", ".5", "%r1", "%rd99999999", "%p0", "%tid.x", "%tid",
    "%tid.q", "$L__BB0_2", "WARP_SZ", ".b32", ".v4", ".f64", ".shared", ".reg", ".param", ".entry",
    ".func", ".visible", ".loc 1 2 3", ".loc 1 2 3, function_name x, inlined_at 1 2 3", ".file 1 ",
    ".section .x {", ".version 9.9", ".target sm_10", ".pragma", ".align 3", ".branchtargets a",
    ".callprototype _ (.param .b32 _)", "bra", "call", "ret;", "exit;", "bar.sync 0;", "mov.b32",
    ".reg .b32 %r<2>;", ".reg .pred %p<2000000000>;", "L:", "L: L:", "{ ret; }", "generic(x)",
    "{%r1, %r2}", "[%r1+4]", "[%r1+4*2-1, {%r2}]", "(1+2)", "1 ? 2 : 3", "(.s64)5",
]  # fmt: skip
Deadline = Callable[[int], AbstractContextManager[None]]
Mutation = Callable[[str, Random, str], str]
MUTATIONS: dict[str, Mutation] = {}


def mutation(function: Mutation) -> Mutation:
    MUTATIONS[function.__name__] = function
    return function


def span(text: str, random: Random) -> tuple[int, int]:
    """A short stretch of the text."""
    start = random.randrange(len(text) + 1)
    return start, min(len(text), start + random.choice((1, 1, 2, 3, 8, 30, 200)))


@mutation
def delete_characters(text: str, random: Random, other: str) -> str:
    start, end = span(text, random)
    return text[:start] + text[end:]


@mutation
def repeat_characters(text: str, random: Random, other: str) -> str:
    start, end = span(text, random)
    return text[:end] + text[start:end] * random.choice((1, 2, 50)) + text[end:]


@mutation
def replace_character(text: str, random: Random, other: str) -> str:
    at = random.randrange(len(text) + 1)
    return text[:at] + chr(random.choice((random.randrange(128), 0xFF, 0x3A9))) + text[at + 1 :]


@mutation
def flip_bit(text: str, random: Random, other: str) -> str:
    at = random.randrange(len(text) or 1)
    return (
        text[:at]
        + "".join(chr(ord(c) ^ 1 << random.randrange(7)) for c in text[at : at + 1])
        + (text[at + 1 :])
    )


@mutation
def insert_token(text: str, random: Random, other: str) -> str:
    at = random.randrange(len(text) + 1)
    return text[:at] + random.choice(INSERTED) + text[at:]


def _edit(pieces: list[str], random: Random, wanted: Callable[[str], bool]) -> str:
    """Delete, repeat, swap, replace or move one piece."""
    places = [at for at, piece in enumerate(pieces) if wanted(piece)]
    if not places:
        return "".join(pieces)
    one, two = random.choice(places), random.choice(places)
    what = random.randrange(6)
    if what == 0:
        pieces[one] = ""
    elif what == 1:
        pieces[one] *= random.choice((2, 2, 30))
    elif what == 2:
        pieces[one], pieces[two] = pieces[two], pieces[one]
    elif what == 3:
        pieces[one] = pieces[two]
    elif what == 4:
        pieces[one] = random.choice(INSERTED)
    else:
        pieces[one] += " " + pieces[two]
    return "".join(pieces)


@mutation
def edit_token(text: str, random: Random, other: str) -> str:
    return _edit(TOKEN.findall(text), random, lambda piece: not piece.isspace())


@mutation
def edit_statement(text: str, random: Random, other: str) -> str:
    end = max((m.end() for m in STATEMENT.finditer(text)), default=0)
    return _edit(STATEMENT.findall(text), random, lambda piece: True) + text[end:]


@mutation
def edit_line(text: str, random: Random, other: str) -> str:
    return _edit(text.splitlines(keepends=True), random, lambda piece: bool(piece.strip()))


@mutation
def join_lines(text: str, random: Random, other: str) -> str:
    at = random.randrange(len(text) + 1)
    return text[:at] + text[at:].replace("\n", random.choice(("", " ", "\r")), random.randrange(9))


@mutation
def truncate(text: str, random: Random, other: str) -> str:
    return text[: random.randrange(len(text) + 1)]


@mutation
def drop_beginning(text: str, random: Random, other: str) -> str:
    return text[random.randrange(len(text) + 1) :]


@mutation
def splice(text: str, random: Random, other: str) -> str:
    return text[: random.randrange(len(text) + 1)] + other[random.randrange(len(other) + 1) :]


@mutation
def insert_part_of_another(text: str, random: Random, other: str) -> str:
    lines, strange = text.splitlines(keepends=True), other.splitlines(keepends=True)
    at, start = random.randrange(len(lines) + 1), random.randrange(len(strange) + 1)
    return "".join(lines[:at] + strange[start : start + random.randrange(1, 9)] + lines[at:])


@mutation
def rename(text: str, random: Random, other: str) -> str:
    """All of one name become another name of the text."""
    names = sorted(set(re.findall(r"[%$A-Za-z_][\w$]*", text)))
    if not names:
        return text
    old, new = random.choice(names), random.choice(names)
    return re.sub(rf"(?<![\w$%]){re.escape(old)}(?![\w$])", lambda _: new, text)


def _read(path: Path) -> str:
    with path.open(encoding="utf-8", newline="", errors="surrogateescape") as file:
        return file.read()


BASES = sorted(p for p in FIXTURES.rglob("*.ptx") if p.stat().st_size <= LARGEST)


@st.composite
def mutants(draw: st.DrawFn) -> str:
    """A fixture with one to four mutations."""
    base, other = draw(st.sampled_from(BASES)), draw(st.sampled_from(BASES))
    names = draw(st.lists(st.sampled_from(sorted(MUTATIONS)), min_size=1, max_size=4))
    seed = draw(st.integers(0, 2**32 - 1))
    note(f"{base.relative_to(FIXTURES)}, {other.relative_to(FIXTURES)}, {names}, seed {seed}")
    text, random, strange = _read(base), Random(seed), _read(other)
    for name in names:
        text = MUTATIONS[name](text, random, strange)
    return text


def answer(text: str, deadline: Deadline) -> None:
    """Everything that must hold for any text."""
    with deadline(SECONDS):
        report = check(SourceText(text, "mutant.ptx"), select="ALL")
        assert [f"{f.message} {f.help}" for f in report.findings if f.rule == "INTERNAL"] == []
        assert report.exit_code in (0, 1, 2)
        for finding in report.findings:
            assert finding.place.line >= 1
            assert finding.place.column >= 1
            assert finding.message
        assert json.loads(render(report, "json"))["summary"]["files"] == 1
        render(report, "text")
    with deadline(SECONDS):
        module = parse(text, "mutant.ptx")
        reference = parse(text, "mutant.ptx", parser="lark")
        assert module.problems == reference.problems
        assert module_key(module) == module_key(reference)
        if not module.problems:
            again = parse(print_module(module), "printed.ptx")
            assert again.problems == []
            assert module_key(again) == module_key(module)


def _settings(examples: int) -> settings:
    return settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        suppress_health_check=list(HealthCheck),
    )


@given(text=mutants())
@_settings(150)
def test_a_sample_of_mutants(deadline: Deadline, text: str) -> None:
    answer(text, deadline)


@pytest.mark.slow
@given(text=mutants())
@_settings(5_000)
def test_mutants(deadline: Deadline, text: str) -> None:
    answer(text, deadline)


def test_every_mutation_changes_something() -> None:
    """A mutation that does nothing would make the fuzz look better than it is."""
    text, other = _read(BASES[0]), _read(BASES[-1])
    for name, function in MUTATIONS.items():
        changed = sum(function(text, Random(seed), other) != text for seed in range(20))
        assert changed >= 10, name
