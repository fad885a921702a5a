"""Verdicts on triangular solves: rows that no round replaces keep what they were loaded with."""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from ptxlint.dataflow.padding import PaddingAnalysis
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse

SOURCE = Path(__file__).with_name("triangular_solves.py")
RIGHT = {"limit": 0, "off": 0, "fill": 0.0, "masked": 1, "alone": 0}
BUILDS = [(80, 1), (80, 2), (90, 4)]
"""Architectures and numbers of warps."""


@pytest.fixture(scope="module")
def triton(tmp_path_factory: pytest.TempPathFactory) -> Any:
    os.environ["TRITON_CACHE_DIR"] = str(tmp_path_factory.mktemp("cache"))
    os.environ["TRITON_DEFAULT_FP_FUSION"] = "1"
    return pytest.importorskip("triton", reason="needs Triton: install ptxlint[triton]")


def verdicts(triton: Any, name: str, build: tuple[int, int], **other: float) -> dict[str, str]:
    """By what is loaded under a mask: the verdict on it."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    spec = importlib.util.spec_from_file_location("triangular_solves", SOURCE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["triangular_solves"] = module
    spec.loader.exec_module(module)
    function = getattr(module, name)
    names = function.arg_names
    narrow = "*fp16" if name == "of_keys" else "*fp32"
    signature = {n: narrow if n == "k_ptr" else "*fp32" for n in names if n.endswith("_ptr")}
    signature |= {n: "i32" for n in names if n in ("n", "m")}
    values = RIGHT | other | {"block": 16}
    constants = {(at,): values[n] for at, n in enumerate(names) if n not in signature}
    signature |= {n: "constexpr" for n in names if n not in signature}
    aligned = {(at,): [["tt.divisibility", 16]] for at, n in enumerate(names) if "_ptr" in n}
    compiled = triton.compile(
        ASTSource(function, signature, constants, aligned),
        target=GPUTarget("cuda", build[0], 32),
        options={"num_warps": build[1]},
    )
    ptx = parse(compiled.asm["ptx"], f"{name}.ptx")
    lines = SOURCE.read_text(encoding="utf-8").splitlines()
    found = {}
    for verdict in Facts(ptx, ptx.functions[0]).get(PaddingAnalysis).verdicts:
        assert verdict.at.loc is not None
        frame = ptx.python_frame(verdict.at.loc)
        assert frame is not None
        found[lines[frame.line - 1].split("=")[0].strip()] = verdict.status
    return found


@pytest.mark.parametrize("build", BUILDS)
def test_rows_up_to_the_size_are_replaced(triton: Any, build: tuple[int, int]) -> None:
    assert verdicts(triton, "one_block", build) == {"lower": "proved", "x": "proved"}


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("wrong", [{"limit": 1}, {"limit": 2}, {"off": 1}, {"fill": 1.0}], ids=str)
def test_rows_beyond_the_size_that_are_replaced_are_not_proved(
    triton: Any, build: tuple[int, int], wrong: dict[str, float]
) -> None:
    assert verdicts(triton, "one_block", build, **wrong)["lower"] != "proved"


@pytest.mark.parametrize("build", BUILDS)
@pytest.mark.parametrize("alone", [0, 1])
def test_a_triangle_of_products(triton: Any, build: tuple[int, int], alone: int) -> None:
    assert set(verdicts(triton, "of_keys", build, alone=alone).values()) == {"proved"}


@pytest.mark.parametrize("build", BUILDS)
def test_a_triangle_of_products_that_is_not_masked(triton: Any, build: tuple[int, int]) -> None:
    found = verdicts(triton, "of_keys", build, fill=1.0, masked=0, alone=1)
    assert found["k"] != "proved"
    assert found["beta"] != "proved"
