"""Kernels and single instructions on a GPU, against the emulator: a sample of what
benchmarks/emulator/against_gpu.py runs. The driver assembles the PTX."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxlint.dynamic.cuda_driver import Context, NoDriverError

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "benchmarks" / "emulator"))

from comparison import instructions  # noqa: E402
from comparison.fixtures import FixtureCase  # noqa: E402
from comparison.operations import GROUPS  # noqa: E402
from comparison.store import kept  # noqa: E402

pytestmark = pytest.mark.gpu

EXACT = [
    ("sm_80", "matmul_dot_int8"), ("sm_80", "matmul_dot_bf16"), ("sm_80", "layer_norm_bwd"),
    ("sm_90", "relu"), ("sm_90", "cumsum"), ("sm_90", "histogram"), ("sm_90", "quantise_fp8"),
    ("sm_90", "matmul_dot_bf16"),
]  # fmt: skip
BOUNDED = [
    ("sm_80", "matmul_dot_fp16"), ("sm_80", "softmax"), ("sm_80", "flash_fwd"),
    ("sm_90", "matmul_dot_fp16"), ("sm_90", "matmul_tma"), ("sm_90", "matmul_tma_persistent"),
    ("sm_90", "flash_fwd"),
]  # fmt: skip


@pytest.fixture(scope="module")
def context() -> Iterator[Context]:
    try:
        made = Context()
    except NoDriverError as error:
        pytest.skip(f"no GPU: {error}")
    if made.device.capability != (9, 0):
        pytest.skip(f"{made.device.name} is no Hopper GPU, which kernels for sm_90 need")
    with made:
        yield made


def compared(context: Context, arch: str, name: str) -> list[dict[str, Any]]:
    """What comes of the first launch of a build on both sides, by output."""
    case = FixtureCase(arch, name, 0)
    mine, theirs = (
        {
            key: array
            for output, values in side.items()
            for key, array in kept(output, values).items()
        }
        for side in (case.in_emulator(), case.on_gpu(context, case.ptx()))
    )
    assert mine["checksum"] == theirs["checksum"], "the inputs are not the same"
    found = list(case.compared(mine, theirs).values())
    assert found
    return found


@pytest.mark.parametrize(("arch", "name"), EXACT)
def test_outputs_have_the_same_bits(context: Context, arch: str, name: str) -> None:
    for output in compared(context, arch, name):
        assert (output["differ"], output["elements"] > 0) == (0, True)


@pytest.mark.parametrize(("arch", "name"), BOUNDED)
def test_outputs_are_within_what_both_may_err(context: Context, arch: str, name: str) -> None:
    for output in compared(context, arch, name):
        assert output["gpu"] <= 1
        assert output["share_of_bound"] <= 2


@pytest.mark.parametrize("group", ["bits", "integers"])
def test_instructions_give_the_same_bits(context: Context, group: str) -> None:
    image = instructions.for_driver(instructions.group_text(group))
    theirs = instructions.on_gpu(context, group, image)
    differ = []
    for at, operation in enumerate(GROUPS[group]()):
        mine = instructions.in_emulator(group, at, operation)
        if not isinstance(mine, str) and not np.array_equal(mine, theirs[operation.text]):
            differ.append(operation.name)
    assert differ == []
