"""Scans of tiles as Triton builds them: what is proved is so, whatever is padded and masked."""

from __future__ import annotations

import importlib.util
import itertools
import os
import sys
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import pytest

from ptxlint.dataflow.padding import PaddingAnalysis
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse


class Case(NamedTuple):
    """The constants of a kernel of scan_tiles.py, and how many warps it has."""

    padded: int
    masked: int
    scanned: int
    summed: int
    reverse: bool
    exclusive: bool
    powers: bool
    shape: tuple[int, int]
    warps: int

    @property
    def is_right(self) -> bool:
        """True if what lies beyond the size adds nothing to a sum of what does not."""
        if self.padded != self.summed or self.masked == self.padded:
            return True
        # Powers of two are 1 there; sums of what comes before it are 0 only without that.
        return not self.powers and (self.padded != self.scanned or self.reverse)


AXES, FLAGS = (0, 1), (False, True)
SHAPES = ((16, 64), (64, 16), (32, 32), (8, 128))
CASES = [
    Case(*parts)
    for parts in itertools.product(
        AXES, (0, 1, 2), AXES, AXES, FLAGS, FLAGS, FLAGS, SHAPES, (1, 4)
    )
]  # fmt: skip


@pytest.fixture(scope="module")
def triton(tmp_path_factory: pytest.TempPathFactory) -> Any:
    os.environ["TRITON_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
    return pytest.importorskip("triton", reason="needs Triton: install ptxlint[triton]")


def statuses(triton: Any, case: Case) -> set[str]:
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    path = Path(__file__).with_name("scan_tiles.py")
    spec = importlib.util.spec_from_file_location("scan_tiles", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["scan_tiles"] = module
    spec.loader.exec_module(module)
    names = module.scanned.arg_names
    signature: dict[str, str] = {"a": "*fp32", "out": "*fp32", "n": "i32"}
    signature |= dict.fromkeys(names[3:], "constexpr")
    constants = {(3 + at,): value for at, value in enumerate((*case[:7], *case.shape))}
    source = ASTSource(
        module.scanned, signature, constants, {(at,): [["tt.divisibility", 16]] for at in (0, 1)}
    )
    compiled = triton.compile(
        source, target=GPUTarget("cuda", 90, 32), options={"num_warps": case.warps}
    )
    ptx = parse(compiled.asm["ptx"], "scan.ptx")
    return {v.status for v in Facts(ptx, ptx.functions[0]).get(PaddingAnalysis).verdicts}


@pytest.mark.parametrize("seed", range(2))
def test_scans_and_sums_along_axes(triton: Any, seed: int) -> None:
    found: Counter[tuple[bool, bool]] = Counter()
    for case in Random(seed).sample(CASES, 12):
        status = statuses(triton, case)
        if status:
            assert case.is_right or status != {"proved"}, case
            assert not case.is_right or "refuted" not in status, case
            found[case.is_right, status == {"proved"}] += 1
    assert found[True, True] >= 2 * found[True, False]
