"""Instructions on arrays of words against what PTX says of them."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from random import Random
from types import ModuleType

import numpy as np
import pytest

from ptxlint.frontends.ptx import parse
from ptxlint.ir.instruction import Instr
from ptxlint.launch.words import Operation, Word, constant, operation


def load(name: str) -> ModuleType:
    """A module beside this file; tests are no package."""
    path = Path(__file__).with_name(f"{name}.py")
    spec = importlib.util.spec_from_file_location(f"words_{name}", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


cases = load("word_cases")
HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry k()
{
.reg .pred %p<9>;
.reg .b16 %rs<9>;
.reg .b32 %r<9>;
.reg .b64 %rd<9>;
"""
_PREFIX = {16: "%rs", 32: "%r", 64: "%rd"}


def instruction(text: str) -> Instr:
    """One instruction."""
    module = parse(HEAD + text + "\nret;\n}\n", "k.ptx")
    assert not module.problems, module.problems
    return module.kernels()[0].instrs[0]


def followed(text: str, result: int = 0) -> Operation:
    """What computes a result of an instruction."""
    found = operation(instruction(text), result)
    assert found is not None, text
    return found


def words(columns: list[tuple[int, ...]]) -> list[Word]:
    """One word of many lanes for each column."""
    return [Word(np.array([column], dtype=np.uint64)) for column in columns]


def spelled(case: object) -> str:
    """A case as an instruction."""
    registers = [f"{_PREFIX[width]}{at}" for at, width in enumerate(case.widths)]  # type: ignore[attr-defined]
    tail = [case.tail] if case.tail else []  # type: ignore[attr-defined]
    return f"{case.mnemonic} {', '.join([*registers, *tail])};"  # type: ignore[attr-defined]


@pytest.mark.parametrize("case", cases.CASES, ids=lambda c: c.mnemonic + c.tail)
def test_an_instruction(case: object) -> None:
    compute = followed(spelled(case))
    sources = cases.operands(case, 400, Random(spelled(case)))
    columns = words(list(zip(*sources, strict=True)))
    if case.tail:  # type: ignore[attr-defined]
        columns.append(constant(int(case.tail, 0)))  # type: ignore[attr-defined]
    found = compute(columns)
    assert found is not None
    bits = np.broadcast_to(found.bits, (1, len(sources)))[0]
    known = np.broadcast_to(True if found.known is None else found.known, (1, len(sources)))[0]
    for lane, source in enumerate(sources):
        right = cases.expected(case, source)
        assert bool(known[lane]) == (right is not None), source
        if right is not None:
            assert int(bits[lane]) == right, (source, hex(int(bits[lane])), hex(right))


_RELATIONS = {
    "eq": lambda a, b: a == b, "ne": lambda a, b: a != b, "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b, "gt": lambda a, b: a > b, "ge": lambda a, b: a >= b,
    "lo": lambda a, b: a < b, "ls": lambda a, b: a <= b, "hi": lambda a, b: a > b,
    "hs": lambda a, b: a >= b,
}  # fmt: skip


@pytest.mark.parametrize("relation", _RELATIONS)
@pytest.mark.parametrize("width", [16, 32, 64])
def test_comparisons(relation: str, width: int) -> None:
    """With both results, and with each way to join a predicate."""
    random = Random(f"{relation}{width}")
    kinds = "u" if relation in ("lo", "ls", "hi", "hs") else "us"
    shape = cases.Case("", (1, width, width), lambda a, b: 0)
    sources = cases.operands(shape, 200, random)
    joined = [(a, b, random.randrange(2)) for a, b in sources]
    columns = words(list(zip(*joined, strict=True)))
    r = _PREFIX[width]
    for kind in kinds:
        read = cases.s if kind == "s" else cases.u
        met = [_RELATIONS[relation](read(a, width), read(b, width)) for a, b, _ in joined]
        plain = followed(f"setp.{relation}.{kind}{width} %p0, {r}1, {r}2;")(columns[:2])
        assert plain is not None
        assert [bool(x) for x in plain.bits[0]] == met
        for name, join in (("and", int.__and__), ("or", int.__or__), ("xor", int.__xor__)):
            text = f"setp.{relation}.{name}.{kind}{width} %p0|%p1, {r}1, {r}2, %p2;"
            for result in (0, 1):
                found = followed(text, result)(columns)
                assert found is not None
                right = [
                    join(int(m != result), c) for m, (_, _, c) in zip(met, joined, strict=True)
                ]
                assert [int(x) for x in found.bits[0]] == right


def test_packing_and_unpacking() -> None:
    low, high = constant(0x89ABCDEF), constant(0x01234567)
    whole = followed("mov.b64 %rd1, {%r1, %r2};")([low, high])
    assert whole is not None
    assert int(whole.bits[0, 0]) == 0x0123456789ABCDEF
    for result, right in ((0, 0x89ABCDEF), (1, 0x01234567)):
        part = followed("mov.b64 {%r1, %r2}, %rd1;", result)([whole])
        assert part is not None
        assert int(part.bits[0, 0]) == right
    upper = followed("mov.b32 {_, %rs1}, %r1;")([low])
    assert upper is not None
    assert int(upper.bits[0, 0]) == 0x89AB


def test_what_is_known_of_a_word() -> None:
    """A selection knows what it selects; a false operand decides a conjunction."""
    holds = Word(np.array([[1, 1, 0, 0]], dtype=np.uint64))
    some = Word(np.array([[5, 6, 7, 8]], dtype=np.uint64), np.array([[True, False, True, False]]))
    selected = followed("selp.b32 %r1, %r2, 9, %p1;")([some, constant(9), holds])
    assert selected is not None
    assert selected.known is not None
    assert selected.known[0].tolist() == [True, False, True, True]
    assert selected.bits[0, [0, 2, 3]].tolist() == [5, 9, 9]
    both = followed("and.pred %p1, %p2, %p3;")([holds, None])
    assert both is not None
    assert both.known is not None
    assert both.known[0].tolist() == [False, False, True, True]
    either = followed("or.pred %p1, %p2, %p3;")([holds, None])
    assert either is not None
    assert either.known is not None
    assert either.known[0].tolist() == [True, True, False, False]
    assert followed("add.s32 %r1, %r2, %r3;")([some, None]) is None


def test_a_negative_constant_has_the_width_of_its_type() -> None:
    found = followed("selp.b32 %r1, -1, 0, %p1;")([constant(-1), constant(0), constant(1)])
    assert found is not None
    assert int(found.bits[0, 0]) == 0xFFFFFFFF


@pytest.mark.parametrize(
    "text",
    [
        "add.sat.s32 %r1, %r2, %r3;", "add.cc.u32 %r1, %r2, %r3;", "addc.u32 %r1, %r2, %r3;",
        "cvt.sat.u8.s32 %r1, %r2;", "cvt.rzi.s32.f32 %r1, %r2;", "add.f32 %r1, %r2, %r3;",
        "prmt.b32.f4e %r1, %r2, %r3, %r4;", "shfl.sync.bfly.b32 %r1, %r2, 1, 31, -1;",
        "min.s16x2 %r1, %r2, %r3;", "setp.lt.f32 %p1, %r1, %r2;", "add.u16x2 %r1, %r2, %r3;",
    ],
)  # fmt: skip
def test_what_is_not_followed(text: str) -> None:
    assert operation(instruction(text), 0) is None
