"""The assembler as a judge: builds of which the machine code is another one are never called the
same, whatever was done to them."""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from ptxlint.frontends.ptx import parse
from ptxlint.frontends.sass import parse as parse_sass
from ptxlint.frontends.toolkit import ToolError, assemble, disassemble, find_assembler
from ptxlint.ir.module import Module
from ptxlint.structure.alignment import align
from ptxlint.structure.canonical import Kernel

sys.path.insert(0, str(Path(__file__).parent))
from kernel_mutants import mutants, rebuilds

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
LARGEST = 25_000
SAMPLE = ("ptx/sm_80/argmax",)
WORD = re.compile(r"[%$.\w]+")


def strayed(text: str, random: Random, count: int) -> Iterator[str]:
    """Rebuilds with one word of the body in the place of another, registers for registers."""
    start = text.index("{", text.index(".entry"))
    found = [m for m in WORD.finditer(text, start) if not m.group().startswith(".loc")]
    while count > 0:
        at, other = random.choice(found), random.choice(found).group()
        if at.group() == other or (at.group()[0] == "%") != (other[0] == "%"):
            continue
        count -= 1
        yield text[: at.start()] + other + text[at.end() :]


def machine_code(text: str, module: Module) -> Module:
    """What the assembler makes of a text. Raises `ToolError` if that is nothing."""
    assembler = find_assembler(module.version)
    done = assemble(text, module.arch, assembler, seconds=60)
    return parse_sass(disassemble(done.cubin, "-c", "-g"))


def kernels(module: Module) -> list[Kernel]:
    found = [Kernel(function, module) for function in module.kernels()]
    return sorted(found, key=lambda kernel: kernel.function.name)


def is_same(old: Module, new: Module) -> bool:
    ours, theirs = kernels(old), kernels(new)
    if len(ours) != len(theirs):
        return False
    pairs = zip(ours, theirs, strict=True)
    return all(align(a, b).kind in ("identical", "renamed") for a, b in pairs)


def hold(paths: list[Path], each: int) -> Counter[str]:
    met: Counter[str] = Counter()
    for path in paths:
        text = path.read_text()
        old, random = parse(text), Random(path.name)
        if old.problems or not old.kernels():
            continue
        code = machine_code(text, old)
        others = [m.text for m in mutants(text, random)]
        tried = random.sample(others, min(each, len(others)))
        tried += strayed(text, random, each)
        same = [m.text for m in rebuilds(text, random) if m.name != "renamed"]
        tried += random.sample(same, min(each, len(same)))
        for other in tried:
            module = parse(other)
            try:
                theirs = machine_code(other, old)
            except ToolError:
                met["no PTX"] += 1
                continue
            if any(not problem.note for problem in module.problems):
                met["PTX that is not understood"] += 1
                continue
            words = is_same(old, module), is_same(code, theirs)
            assert words != (True, False), f"{path}: other machine code is called the same"
            met["{}, {}".format(*("same" if word else "other" for word in words))] += 1
    print(f"PTX and machine code: {dict(sorted(met.items()))}")
    return met


@pytest.fixture(autouse=True)
def assembler() -> None:
    try:
        find_assembler((9, 4))
    except ToolError as error:
        pytest.skip(str(error))


def test_a_sample_is_never_called_the_same_wrongly() -> None:
    met = hold([FIXTURES / f"{name}.ptx" for name in SAMPLE], each=3)
    assert met["same, same"] >= 3


@pytest.mark.slow
def test_no_other_machine_code_is_called_the_same() -> None:
    paths = [p for p in sorted(FIXTURES.glob("ptx*/*/*.ptx")) if p.stat().st_size < LARGEST]
    met = hold(Random(7).sample(paths, 30), each=4)
    assert met["other, other"] > 60
