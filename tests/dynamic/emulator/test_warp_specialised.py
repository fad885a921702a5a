"""A kernel whose warps have jobs of their own, as Gluon compiles it for sm_90."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.device import Fault
from ptxlint.dynamic.emulator.run import Emulator
from ptxlint.dynamic.emulator.sanitizer.choice import Sanitize
from ptxlint.dynamic.emulator.tensor_map import of_tensor
from ptxlint.frontends.ptx import parse

SCRIPT = Path(__file__).resolve().parents[1] / "scripts/warp_specialised.py"
M, N, K = 100, 72, 200
A, B = (np.random.default_rng(i).standard_normal((r, K)).astype("f2") for i, r in ((1, M), (2, N)))


Tile = tuple[int, int, int]
BUILDS: tuple[tuple[Tile, int, int, str], ...] = (
    ((64, 64, 64), 2, 4, ""),
    ((128, 64, 32), 3, 4, ""),
    ((128, 128, 64), 2, 8, ""),
    ((64, 64, 64), 2, 4, "arrive"),
    ((64, 64, 64), 2, 4, "empty"),
    ((64, 64, 64), 2, 4, "full"),
)
"""Tiles of M, N and K, stages, warps, what is left out."""


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[str, int]]:
    """PTX and bytes of shared memory, by build."""
    pytest.importorskip("triton", reason="needs Triton: install ptxlint[triton]")
    environment = {
        **os.environ, "TRITON_DEFAULT_FP_FUSION": "1",
        "TRITON_CACHE_DIR": str(tmp_path_factory.mktemp("cache")),
    }  # fmt: skip
    given = json.dumps([[*tile, *rest] for tile, *rest in BUILDS])
    done = subprocess.run(
        [sys.executable, str(SCRIPT), given], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    found: list[tuple[str, int]] = json.loads(done.stdout)
    return found


def ran(text: str, shared: int, tile: Tile) -> tuple[NDArray[np.float16], list[Fault]]:
    """What the kernel wrote, and what was found; races and copies are
    watched."""
    module = parse(text, "product.ptx")
    (function,) = module.kernels()
    emulator = Emulator(module, function)
    arena = emulator.arena()
    m, n, k = tile
    values: dict[str, bytes] = {}
    parameters = iter(function.params)
    out = arena.allocate("c", 2 * M * N, None)
    for start, shape, block in (
        (out.start, (M, N), (m, n)),
        (arena.allocate("a", A.nbytes, A).start, (M, K), (m, k)),
        (arena.allocate("b", B.nbytes, B).start, (N, K), (n, k)),
    ):
        found = of_tensor(start, "float16", shape, (shape[1], 1), block)
        values[next(parameters).name] = found.encode()
        for number in (*shape, shape[1], 1):
            parameter = next(parameters)
            values[parameter.name] = number.to_bytes(parameter.size or 8, "little")
    values[next(parameters).name] = K.to_bytes(4, "little")
    threads = int(function.directives["reqntid"][0])
    grid = (-(-M // m), -(-N // n), 1)
    outcome = emulator.run(
        grid, (threads, 1, 1), values, arena, shared, sanitize=Sanitize(races=True, copies=True)
    )
    assert outcome.is_complete
    return arena.contents(out).view(np.float16).reshape(M, N), outcome.faults


@pytest.mark.parametrize("number", [0, 1, 2])
def test_loading_and_multiplying_apart(compiled: list[tuple[str, int]], number: int) -> None:
    text, shared = compiled[number]
    assert "setmaxnreg" in text
    c, faults = ran(text, shared, BUILDS[number][0])
    assert not faults, faults
    assert np.abs(c - A.astype(np.float64) @ B.astype(np.float64).T).max() < 0.03


@pytest.mark.parametrize(
    ("number", "kinds"),
    [
        (3, {"deadlock"}),
        (4, {"race", "mbarrier", "arrival"}),
        (5, {"race", "mbarrier", "deadlock", "arrival"}),
    ],
)
def test_a_meeting_that_is_left_out(
    compiled: list[tuple[str, int]], number: int, kinds: set[str]
) -> None:
    _, faults = ran(*compiled[number], BUILDS[number][0])
    assert faults
    assert {found.kind for found in faults} <= kinds, faults
