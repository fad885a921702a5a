"""What is known of operators and kernels survives the way through JSON."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from ptxlint.dynamic.operators import Dim, Operator, Tensor, Value
from ptxlint.dynamic.runners.knowledge import Described, KernelKnowledge, describe, sources_key


def nothing(**_: Any) -> None: ...


OPERATOR = Operator(
    kernel=nothing,
    reference=nothing,
    dims={"rows": Dim(2, 64), "n": Dim(8, 4096, multiple=8, typical=1024)},
    inputs={
        "x": Tensor("rows", "n", layouts=("padded-rows", "contiguous")),
        "w": Tensor("n", lambda dims: 2 * dims["n"], 3, layouts=("offset",)),
        "eps": Value(1e-5),
    },
    dtypes=("float32", "float16"),
    name="norm",
    where=lambda dims: dims["n"] >= dims["rows"],
    deterministic=False,
)


def test_an_operator_is_described_without_its_functions() -> None:
    described = describe(OPERATOR, "specs/norm.py")
    assert described.axes == {"x": ("rows", "n"), "w": ("n", "", "")}
    assert described.layouts == ("offset", "padded-rows")
    assert described.restricted
    assert not described.deterministic
    assert Described.from_json(json.loads(json.dumps(described.to_json()))) == described


def test_knowledge_of_a_kernel_comes_back_as_it_went() -> None:
    known = KernelKnowledge(
        "softmax_kernel",
        "0f",
        "sm_90",
        {"BLOCK": "1024", "FAST": "True"},
        num_warps=4,
        path="softmax.py",
        line=7,
        grids=((3, 1, 1), (5, 2, 1)),
        findings=({"rule": "MSK201"},),
        obligations=({"family": "tail-mask", "status": "open"},),
    )
    assert KernelKnowledge.from_json(json.loads(json.dumps(known.to_json()))) == known


def test_the_code_of_an_operator_has_a_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    spec, helper = tmp_path / "spec.py", tmp_path / "helper_of_spec.py"
    spec.write_text("import helper_of_spec")
    helper.write_text("SLOPE = 0.01")
    before = sources_key(str(spec))
    assert sources_key(str(spec)) == before
    spec.write_text("import helper_of_spec  # changed")
    assert sources_key(str(spec)) != before
    module = ModuleType("helper_of_spec")
    module.__file__ = str(helper)
    monkeypatch.setitem(sys.modules, "helper_of_spec", module)
    loaded = sources_key(str(spec))
    helper.write_text("SLOPE = 0.1")
    assert sources_key(str(spec)) != loaded
