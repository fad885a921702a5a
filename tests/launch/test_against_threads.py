"""What is proved under random launches holds in each thread that is run.

Kernels of fixtures/ get random numbers and tensors of random sizes, most of them far too small, so
that every guard and every wrap counts. Threads are then run one by one with the machine's words:
an access that is proved inside must be, and one that never takes place must not.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse
from ptxlint.frontends.triton_cache import load_metadata
from ptxlint.ir.function import Function
from ptxlint.launch.binding import bind
from ptxlint.launch.under import Judged, UnderLaunch
from ptxlint.launch.walk import Thread, Walk
from ptxlint.launches import AS_COMPILED, Argument, Launch, Scalar, Tensor

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "ptx" / "sm_90"
MOST_INSTRUCTIONS = 700
STEPS = 4_000
_NUMBERS = (0, 1, 2, 3, 5, 17, 64, 100, 128, 130, 1000, 4096)
_LARGE = (65_537, 1 << 20, (1 << 31) - 1, -1, -7, -(1 << 31))


def random_launch(kernel: Function, source: random.Random) -> Launch:
    """Any launch: it need not make sense."""
    arguments: dict[str, Argument] = {}
    for number, parameter in enumerate(kernel.params):
        if "ptr" in parameter.attributes:
            elements = source.choice((0, 1, 10, 128, 1000, 4096, 100_000, 1 << 24, 1 << 33))
            size = source.choice((1, 2, 4))
            dtype = {1: "uint8", 2: "float16", 4: "float32"}[size]
            alignment = source.choice((16, 16, 4))
            arguments[parameter.name] = Tensor(
                dtype, (elements,), (1,), number, elements * size, alignment=alignment
            )
        else:
            choices = _NUMBERS * 4 + _LARGE
            value = source.choice(choices)
            bits = 8 * parameter.size
            kind = f"i{bits}" if bits in (8, 16, 32, 64) else "i32"
            arguments[parameter.name] = Scalar(kind, value if bits > 16 else value % 100)
    grid = source.choice(((1, 1, 1), (3, 1, 1), (2, 3, 1), (40, 2, 2), (1_000_000, 1, 1)))
    return Launch(grid, AS_COMPILED, arguments, shared=0)


def random_threads(under: UnderLaunch, source: random.Random, count: int) -> Iterator[Thread]:
    """Some threads, those at the ends among them."""
    grid, block = under.bound.grid, under.bound.block

    def one(extents: tuple[int, int, int]) -> tuple[int, int, int]:
        x, y, z = (
            source.choice((0, size - 1, source.randrange(size), source.randrange(size)))
            for size in extents
        )
        return x, y, z

    for _ in range(count):
        yield Thread(one(grid), one(block))


def violations(under: UnderLaunch, source: random.Random, threads: int) -> list[str]:
    """What threads do though it is proved that they do not."""
    walk = Walk(under.ssa, under.bound)
    proved = [j for j in under.judged if j.never or (j.region is not None and not j.wraps)]
    out: list[str] = []
    for thread in random_threads(under, source, threads):
        for judged in source.sample(proved, min(len(proved), 6)):
            for met in walk.meetings(thread, judged.access.instr, STEPS):
                fault = _fault(judged, met.address, met.size)
                if fault:
                    out.append(f"{judged.access.instr}: {fault} in {thread}")
    return out


def _fault(judged: Judged, address: int, size: int) -> str:
    if judged.never:
        return "" if judged.wraps else "it takes place"
    region = judged.region
    assert region is not None
    width = judged.access.width if size < 0 else size
    offset = address - region.address
    if judged.below and judged.above and not region.low <= offset <= region.high - width:
        return f"byte {offset} of {region.high}"
    if judged.aligned and judged.below and judged.above and address % judged.access.width:
        return f"byte {offset} is misaligned"
    return ""


def small_kernels() -> list[str]:
    """The fixtures that are small enough to run many threads of."""
    return [
        path.stem
        for path in sorted(FIXTURES.glob("*.ptx"))
        if (text := path.read_text(encoding="utf-8")).count(";") < MOST_INSTRUCTIONS
        # Descriptors are no numbers.
        and ".param .align 64" not in text
    ]


def faults_of(name: str, seed: int, threads: int) -> list[str]:
    path = FIXTURES / f"{name}.ptx"
    module = parse(path.read_text(encoding="utf-8"), str(path))
    source = random.Random(f"{name} {seed}")
    out = []
    for kernel in module.kernels():
        facts = Facts(module, kernel, None, load_metadata(str(path)))
        launch = random_launch(kernel, source)
        under = UnderLaunch(facts, bind(kernel, launch, {}, facts.metadata))
        out += [f"{fault} under {launch}" for fault in violations(under, source, threads)]
    return out


@pytest.mark.parametrize("name", small_kernels())
def test_what_is_proved_holds_in_threads(name: str) -> None:
    assert faults_of(name, 0, 12) == []


def test_a_quotient_by_zero_is_not_known() -> None:
    """PTX leaves it unspecified; devices give all ones."""
    assert faults_of("matmul_dot_fp8e4nv", 2, 6) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", small_kernels())
def test_what_is_proved_holds_under_many_launches(name: str) -> None:
    assert [f for seed in range(1, 40) for f in faults_of(name, seed, 20)] == []
