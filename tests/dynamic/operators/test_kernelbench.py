"""Pairs of torch modules as operators."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ptxlint.dynamic.cases import Case
from ptxlint.dynamic.cases.arrays import inputs, numbers
from ptxlint.dynamic.operators import Dim, Domain, Operator, Size, SpecError, Tensor
from ptxlint.dynamic.operators.kernelbench import kernelbench
from ptxlint.dynamic.operators.loading import load
from ptxlint.dynamic.operators.places import Place

torch = pytest.importorskip("torch")

MODEL = """
import torch
import torch.nn as nn

batch = 6
features = 8
groups = 2
wide = features * 3
scale = 0.5


class Model(nn.Module):
    def __init__(self, features, groups):
        super().__init__()
        self.groups = groups
        self.linear = nn.Linear(features // groups, wide)

    def forward(self, x, targets, bias):
        y = self.linear(x.view(len(x), self.groups, -1).sum(1)) * scale
        return y.gather(1, targets[:, None]) + bias


def get_inputs():
    return [torch.rand(batch, features), torch.randint(0, wide, (batch,)), torch.rand(1)]


def get_init_inputs():
    return [features, groups]
"""
CANDIDATE = MODEL.replace("class Model(", "class ModelNew(").replace("* scale", "* {scale}")


def files(directory: Path, scale: str = "scale", model: str = MODEL) -> tuple[str, str]:
    for name, text in (("reference", model), ("candidate", CANDIDATE.format(scale=scale))):
        (directory / f"{name}.py").write_text(text)
    return str(directory / "reference.py"), str(directory / "candidate.py")


def error(spec: Operator, dims: dict[str, int], dtype: str = "float32") -> float:
    """How far the candidate is from the reference, relative to that."""
    given = numbers(inputs(spec, Case("", dtype, dims)))
    kind = getattr(torch, dtype)
    tensors = {
        name: torch.from_numpy(value).to(kind if value.dtype.kind == "f" else torch.int64)
        if isinstance(value, np.ndarray)
        else value
        for name, value in given.items()
    }
    got = spec.kernel(**tensors)
    assert got.dtype == kind
    expected = spec.reference(**given)
    assert expected.dtype == torch.float64
    return float((got - expected).abs().max() / expected.abs().max())


def test_integers_at_the_top_are_dimensions(tmp_path: Path) -> None:
    spec = kernelbench(*files(tmp_path))
    assert dict(spec.dims) == {
        "batch": Dim(1, 12, typical=6),
        "features": Dim(1, 16, typical=8),
        "groups": Dim(1, 4, typical=2),
    }
    x, targets, bias = (spec.inputs[name] for name in ("x", "targets", "bias"))
    assert (x, bias) == (Tensor("batch", "features"), Tensor(1))
    assert isinstance(targets, Tensor)
    assert (targets.axes, targets.dtype, targets.domain.low) == (("batch",), "int64", 0)
    assert [spec.inputs[f"size {name}"] for name in spec.dims] == [Size(n) for n in spec.dims]
    held = inputs(spec, Case("", "float32", {"batch": 9, "features": 4, "groups": 2}))
    assert held["targets"].numbers.max() <= 11  # integers follow what was derived, too


def test_sizes_that_the_model_refuses_are_left_out(tmp_path: Path) -> None:
    spec = kernelbench(*files(tmp_path))
    assert spec.allows({"batch": 3, "features": 6, "groups": 3})
    assert not spec.allows({"batch": 3, "features": 6, "groups": 4})


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_both_have_the_same_weights_at_all_sizes(tmp_path: Path, dtype: str) -> None:
    right = kernelbench(*files(tmp_path), dtypes=("float32", "float16"))
    unit = {"float32": 2.0**-20, "float16": 2.0**-9}[dtype]
    for sizes in ((6, 8, 2), (1, 3, 1), (11, 10, 5)):
        assert error(right, dict(zip(right.dims, sizes, strict=True)), dtype) < unit
    (tmp_path / "wrong").mkdir()
    wrong = kernelbench(*files(tmp_path / "wrong", "0.6"), dtypes=("float32", "float16"))
    assert error(wrong, {"batch": 6, "features": 8, "groups": 2}, dtype) > 0.05


def test_one_file_with_both_is_an_operator(tmp_path: Path) -> None:
    new = CANDIDATE.format(scale="scale").split("def get_inputs")[0].split("scale = 0.5\n")[1]
    path = tmp_path / "pair.py"
    path.write_text(MODEL + new)
    found = load(Place(str(path)))
    assert list(found) == ["pair"]
    assert error(found["pair"], {"batch": 4, "features": 6, "groups": 3}) < 2.0**-20
    path.write_text(MODEL.replace("def get_inputs():", "def get_inputs():\n    1 / 0") + new)
    with pytest.raises(SpecError, match=r"pair\.py:24: ZeroDivisionError"):
        load(Place(str(path)))


def test_paths_may_be_relative_to_the_spec(tmp_path: Path) -> None:
    files(tmp_path)
    spec = tmp_path / "spec.py"
    spec.write_text(
        "from ptxlint.dynamic.operators.kernelbench import kernelbench\n"
        "operator = kernelbench('reference.py', 'candidate.py')\n"
    )
    assert list(load(Place(str(spec)))) == ["spec"]


def told(model: str, **more: Any) -> tuple[str, dict[str, Any]]:
    return model, more


@pytest.mark.parametrize(
    ("model", "more", "words"),
    [
        (*told(MODEL.replace("get_init_inputs", "others")), r"no get_init_inputs in it"),
        (
            *told(MODEL.replace("torch.randint(0, wide, (batch,))", "torch.arange(batch)")),
            "input targets: integers that torch.randint did not make; give their domain",
        ),
        (*told(MODEL.replace("torch.rand(1)]", "[torch.rand(1)]]")), "input bias: a list is no"),
    ],
)
def test_what_makes_no_operator(
    tmp_path: Path, model: str, more: dict[str, Any], words: str
) -> None:
    paths = files(tmp_path, model=model)
    with pytest.raises(SpecError, match=words):
        kernelbench(*paths, **more)


def test_a_domain_may_be_given(tmp_path: Path) -> None:
    model = MODEL.replace("torch.randint(0, wide, (batch,))", "torch.arange(batch)")
    spec = kernelbench(*files(tmp_path, model=model), domains={"targets": Domain(0, 2)})
    assert spec.inputs["targets"] == Tensor("batch", dtype="int64", domain=Domain(0, 2))


def test_a_candidate_without_its_class(tmp_path: Path) -> None:
    reference, _ = files(tmp_path)
    with pytest.raises(SpecError, match="no class ModelNew"):
        kernelbench(reference)


@pytest.mark.parametrize(
    ("forward", "arithmetic"), [("x * 2", {}), ("x @ x.T", {"float32": "tf32"})]
)
def test_products_alone_are_those_of_tf32(
    tmp_path: Path, forward: str, arithmetic: dict[str, str]
) -> None:
    both = "\n".join(
        f"class {name}(torch.nn.Module):\n    def forward(self, x):\n        return {forward}\n"
        for name in ("Model", "ModelNew")
    )
    (tmp_path / "pair.py").write_text(
        f"import torch\n\nN = 7\n\n{both}\n"
        "def get_inputs():\n    return [torch.rand(N, N)]\n\n"
        "def get_init_inputs():\n    return []\n"
    )
    assert kernelbench(str(tmp_path / "pair.py")).arithmetic == arithmetic
