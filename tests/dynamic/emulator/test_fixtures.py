"""Every fixture kernel runs and gives what its reference says, at boundary shapes too; the buggy
ones give something else, and exactly what their fault makes of it."""

from __future__ import annotations

import ast
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
sys.path.insert(0, str(FIXTURES))

from references import by_kernel, emulated  # noqa: E402
from references.kit import Expected  # noqa: E402

ARCHS = ("sm_80", "sm_90")
QUICK = 2
"""So many launches of each build run always."""

Array = NDArray[Any]
BUILDS = [
    (arch, name)
    for arch in ARCHS
    for name in emulated.names(arch)
    if emulated.build(name, arch).kernel in by_kernel
]
RIGHT = [(arch, name) for arch, name in BUILDS if "_buggy" not in name]


def launches(builds: list[tuple[str, str]]) -> list[Any]:
    """A parameter set a build and launch, the later ones slow."""
    out = []
    for arch, name in builds:
        build = emulated.build(name, arch)
        for at, sizes in enumerate(build.reference.sizes(build.constants)):
            label = "-".join(f"{key}{value}" for key, value in sizes.items())
            marks = [] if at < QUICK else [pytest.mark.slow]
            out.append(pytest.param(arch, name, sizes, id=f"{arch}-{name}-{label}", marks=marks))
    return out


@pytest.mark.parametrize(("arch", "name", "sizes"), launches(RIGHT))
def test_right_kernels_give_what_their_reference_says(
    arch: str, name: str, sizes: dict[str, int]
) -> None:
    held = emulated.hold(emulated.build(name, arch), sizes)
    assert not held.faults, held.faults
    assert not held.stray
    assert held.misses
    assert {key: miss for key, miss in held.misses.items() if miss.worst > 1} == {}


def sigmoid(x: Array) -> Array:
    return 1 / (1 + np.exp(-x))


def softmax_over_zeros(given: dict[str, Any], constants: dict[str, Any]) -> Array:
    """Padding lanes hold 0, in the maximum and in the sum."""
    x = given["x_ptr"]
    padding = constants["BLOCK"] - x.shape[1]
    top = np.maximum(x.max(axis=1, keepdims=True), 0 if padding else -np.inf)
    y = np.exp(x - top)
    return y / (y.sum(axis=1, keepdims=True) + padding * np.exp(-top))


def mean_square(x: Array) -> Array:
    return (x * x).mean(axis=1, keepdims=True)


Fault = Callable[[dict[str, Any], dict[str, Any]], Array]
FAULTS: dict[str, tuple[dict[str, int], str, Fault]] = {
    "gelu_buggy": ({"n": 1025}, "out_ptr", lambda g, c: 2 * right("gelu_kernel", g, c)),
    "silu_buggy": ({"n": 1025}, "out_ptr", lambda g, c: g["x_ptr"] * sigmoid(2 * g["x_ptr"])),
    "leaky_relu_buggy": (
        {"n": 1025}, "out_ptr", lambda g, c: np.maximum(g["x_ptr"], 0.1 * g["x_ptr"])
    ),
    "softmax_buggy": ({"rows": 3, "columns": 3}, "out_ptr", softmax_over_zeros),
    "rmsnorm_buggy": (
        {"rows": 3, "columns": 17}, "out_ptr",
        lambda g, c: g["x_ptr"] / (mean_square(g["x_ptr"]) + g["eps"]) * g["w_ptr"],
    ),
    "l2norm_buggy": (
        {"rows": 3, "columns": 17}, "out_ptr",
        lambda g, c: g["x_ptr"] / ((g["x_ptr"] ** 2).sum(axis=1, keepdims=True) + g["eps"]),
    ),
}  # fmt: skip
"""By build: a launch that shows the fault, an output, and what the fault makes of it."""


def right(kernel: str, given: dict[str, Any], constants: dict[str, Any]) -> Array:
    return by_kernel[kernel].expect(given, constants)["out_ptr"].values


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", FAULTS)
def test_buggy_kernels_miss_it_by_what_their_fault_makes(arch: str, name: str) -> None:
    sizes, output, fault = FAULTS[name]
    build = emulated.build(name, arch)
    held = emulated.hold(build, sizes)
    assert not held.faults, held.faults
    assert not held.stray
    assert held.misses[output].worst > 1000
    wrong = fault(held.given, build.constants)
    expected = build.reference.expect(held.given, build.constants)[output]
    error = np.abs(wrong - expected.values).max()
    assert held.misses[output].error == pytest.approx(error, rel=1e-5)
    scale = np.abs(wrong).max() / np.abs(expected.values).max()
    as_faulty = Expected(wrong, np.asarray(expected.slack) * max(scale, 1) + 2e-6 * np.abs(wrong))
    assert emulated.compare(held.got[output], as_faulty, build.constants[output]).worst <= 1


def test_softmax_with_a_wrong_fill_is_right_where_nothing_is_padded() -> None:
    held = emulated.hold(emulated.build("softmax_buggy", "sm_80"), {"rows": 3, "columns": 1024})
    assert held.is_right


def test_every_buggy_build_has_its_fault_described() -> None:
    assert {name for _, name in BUILDS if "_buggy" in name} == set(FAULTS)


# References -----------------------------------------------------------------------------------
def source_arguments(module: str, kernel: str) -> list[str]:
    """The parameters of a kernel in its source."""
    tree = ast.parse((FIXTURES / "kernels" / f"{module}.py").read_text(encoding="utf-8"))
    found = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == kernel)
    return [argument.arg for argument in found.args.args]


@pytest.mark.parametrize("name", sorted({name for _, name in BUILDS}))
def test_launches_bring_the_arguments_in_the_order_of_the_source(name: str) -> None:
    arch = next(arch for arch, other in BUILDS if other == name)
    build = emulated.build(name, arch)
    entry = emulated.manifest()["variants"][name]
    order = source_arguments(Path(entry["source"]).stem, build.kernel)
    random = np.random.default_rng(0)
    for sizes in build.reference.sizes(build.constants):
        launch = build.reference.launch(sizes, build.constants, random)
        assert list(launch.arguments) == [a for a in order if a in entry["args"]]


def test_a_result_that_is_off_by_more_than_its_bound_is_told() -> None:
    expected = Expected(np.array([1.0, 2.0, 0.0]), 1e-6)
    good = np.array([1 + 1e-6, 2 - 1e-6, 1e-6])
    assert emulated.compare(good, expected, "fp32").worst <= 1
    assert emulated.compare(np.array([1.0, 2 + 2e-6, 0]), expected, "fp32").worst > 1
    assert emulated.compare(np.array([1.0, np.nan, 0]), expected, "fp32").worst == np.inf
    assert emulated.compare(np.array([1.0, 2.0, np.inf]), expected, "fp32").worst == np.inf
    lost = Expected(np.array([np.nan, np.inf]), 0.0)
    assert emulated.compare(np.array([np.nan, np.inf]), lost, "fp32").worst == 0


def test_inputs_are_the_same_for_a_seed() -> None:
    build = emulated.build("softmax", "sm_80")
    first, second, other = (
        emulated.hold(build, {"rows": 2, "columns": 5}, seed).given["x_ptr"] for seed in (1, 1, 2)
    )
    assert (first == second).all()
    assert (first != other).any()
