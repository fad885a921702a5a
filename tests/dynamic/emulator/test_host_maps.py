"""Launches with tensor descriptors that the host makes."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.inputs import GivenInputs, RandomInputs
from ptxlint.dynamic.emulator.session import EmulationError, emulate
from ptxlint.launches import AS_COMPILED, Descriptor, Launch, Scalar, Tensor

PTX = Path(__file__).resolve().parents[3] / "fixtures/ptx/sm_90/matmul_tma.ptx"
M, N, K = 70, 72, 88
A, B = (np.random.default_rng(i).standard_normal((r, K)).astype("f2") for i, r in ((1, M), (2, N)))


def described(shape: tuple[int, int], storage: int, padding: str = "zero") -> Descriptor:
    size = 2 * shape[0] * shape[1]
    tensor = Tensor("float16", shape, (shape[1], 1), storage, size)
    return Descriptor(tensor, (64, 64), padding)


def launch(padding: str = "zero", **changes: Any) -> Launch:
    arguments = {
        "c_desc": described((M, N), 0), "a_desc": described((M, K), 1, padding),
        "b_desc": described((N, K), 2, padding), "K": Scalar("i32", K),
    }  # fmt: skip
    return Launch((2, 2, 1), AS_COMPILED, {**arguments, **changes})


def product(path: Path, given: Launch) -> NDArray[np.float16]:
    inputs = GivenInputs({"a_desc": A, "b_desc": B}, RandomInputs(0), "given")
    found = emulate([str(path)], launches=(given,), inputs=inputs)
    assert not found.report.findings, [finding.message for finding in found.report.findings]
    return found.runs[0].outputs["c_desc"].view(np.float16).reshape(M, N)


def test_a_product_of_tensors_that_descriptors_tell_of() -> None:
    wanted = A.astype(np.float64) @ B.astype(np.float64).T
    assert np.abs(product(PTX, launch()) - wanted).max() < 0.02


def test_elements_outside_may_be_nan() -> None:
    assert np.isnan(product(PTX, launch("nan"))).all()


def test_the_compiler_says_how_tiles_are_cut(tmp_path: Path) -> None:
    """The kernel expects the swizzle that its metadata names; with another it reads nonsense."""
    shutil.copy(PTX, tmp_path / PTX.name)
    metadata = json.loads(PTX.with_suffix(".json").read_text())
    wanted = A.astype(np.float64) @ B.astype(np.float64).T
    for swizzle, is_right in ((3, True), (0, False)):
        tile = {"swizzle": swizzle, "block_size": [64, 64], "elem_type": 6}
        metadata["tensordesc_meta"] = [tile] * 3
        (tmp_path / "matmul_tma.json").write_text(json.dumps(metadata))
        error = np.abs(product(tmp_path / PTX.name, launch()) - wanted).max()
        assert (error < 0.02) == is_right


@pytest.mark.parametrize(
    ("field", "words"),
    [("is_im2col", "im2col"), ("fp4_padded", "fp4"), ("elem_type", "tf32")],
)
def test_what_is_not_emulated_is_said(tmp_path: Path, field: str, words: str) -> None:
    shutil.copy(PTX, tmp_path / PTX.name)
    metadata = json.loads(PTX.with_suffix(".json").read_text())
    metadata["tensordesc_meta"] = [{"swizzle": 3, "block_size": [64, 64], field: 11}] * 3
    (tmp_path / "matmul_tma.json").write_text(json.dumps(metadata))
    with pytest.raises(EmulationError, match=words):
        product(tmp_path / PTX.name, launch())


def test_clusters_of_several_ctas_are_refused() -> None:
    with pytest.raises(EmulationError, match="clusters of one"):
        product(PTX, launch()._replace(cluster=(2, 1, 1)))
