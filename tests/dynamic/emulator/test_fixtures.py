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

from ptxlint.dynamic.emulator.semantics import UnsupportedError

FIXTURES = Path(__file__).resolve().parents[3] / "fixtures"
sys.path.insert(0, str(FIXTURES))

import twin_builds  # noqa: E402
from references import by_kernel, emulated  # noqa: E402
from references.kit import Expected  # noqa: E402

ARCHS = ("sm_80", "sm_90")
QUICK = 2
"""So many launches of each build run always."""
UNSUPPORTED: set[tuple[str, str]] = set()
"""Builds with instructions that the emulator lacks; a test fails once one of them runs."""

Array = NDArray[Any]
BUILDS = [(arch, name) for arch in ARCHS for name in emulated.names(arch)]
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


def held(arch: str, name: str, sizes: dict[str, int]) -> emulated.Held:
    """A run; skipped for builds that are listed above, which must not run."""
    build = emulated.build(name, arch)
    if (arch, name) not in UNSUPPORTED:
        return emulated.hold(build, sizes)
    with pytest.raises(UnsupportedError) as caught:
        emulated.emulator(build.path)
    pytest.skip(f"{caught.value.instr.shape.mnemonic}: {caught.value.reason or 'not run'}")


@pytest.mark.parametrize(("arch", "name", "sizes"), launches(RIGHT))
def test_right_kernels_give_what_their_reference_says(
    arch: str, name: str, sizes: dict[str, int]
) -> None:
    run = held(arch, name, sizes)
    assert not run.faults, run.faults
    assert not run.stray
    assert run.misses
    assert {key: miss for key, miss in run.misses.items() if miss.worst > 1} == {}


Fault = Callable[[dict[str, Any], dict[str, Any]], Array]


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


def last_tile(step: int) -> Fault:
    """Of a product only the last tile of K is left."""

    def product(given: dict[str, Any], constants: dict[str, Any]) -> Array:
        a, b = given["a_ptr"], given["b_ptr"]
        start = (a.shape[1] - 1) // step * step
        return a[:, start:] @ b[start:]

    return product


def attend_without_scale(given: dict[str, Any], constants: dict[str, Any]) -> Array:
    scores = given["q_ptr"] @ given["k_ptr"].swapaxes(-1, -2)
    p = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return p / p.sum(axis=-1, keepdims=True) @ given["v_ptr"]


def never_rescaled(given: dict[str, Any], constants: dict[str, Any]) -> Array:
    """Each chunk of keys is added relative to the maximum so far."""
    q, k, v = given["q_ptr"], given["k_ptr"], given["v_ptr"]
    scores = q @ k.swapaxes(-1, -2) * given.get("scale", q.shape[-1] ** -0.5)
    if constants.get("CAUSAL"):
        scores = np.where(np.tril(np.ones(scores.shape[1:], dtype=bool)), scores, -np.inf)
    step = constants["BLOCK_N"]
    total, top = 0.0, -np.inf
    out = np.zeros(q.shape)
    for start in range(0, k.shape[1], step):
        part = scores[..., start : start + step]
        higher = np.maximum(top, part.max(axis=-1, keepdims=True))
        p = np.exp(part - higher)
        total = total * np.exp(top - higher) + p.sum(axis=-1, keepdims=True)
        out += p @ v[:, start : start + step]
        top = higher
    return out / total


FAULTS: [[dict[str, Any], dict[str, Any]], Array]
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
    "matmul_buggy": ({"M": 33, "N": 31, "K": 20}, "c_ptr", last_tile(1)),
    "matmul_dot_buggy": ({"M": 65, "N": 72, "K": 35}, "c_ptr", last_tile(32)),
    "attention_buggy": (
        {"heads": 2, "queries": 3, "keys": 127, "D": 63}, "o_ptr", attend_without_scale
    ),
    "flash_attention_buggy": (
        {"heads": 2, "queries": 3, "keys": 135, "D": 63}, "o_ptr", never_rescaled
    ),
    "flash_fwd_buggy": ({"seq": 129}, "o_ptr", never_rescaled),
}  # fmt: skip
"""By build: a launch that shows the fault, an output, and what the fault makes of it."""


def right(kernel: str, given: dict[str, Any], constants: dict[str, Any]) -> Array:
    return by_kernel[kernel].expect(given, constants)["out_ptr"].values


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", FAULTS)
def test_buggy_kernels_miss_it_by_what_their_fault_makes(arch: str, name: str) -> None:
    sizes, output, fault = FAULTS[name]
    build = emulated.build(name, arch)
    run = held(arch, name, sizes)
    assert not run.faults, run.faults
    assert not run.stray
    assert run.misses[output].worst > 1000
    wrong = fault(run.given, build.constants)
    expected = build.reference.expect(run.given, build.constants)[output]
    kind = build.constants[output]
    error = np.abs(wrong - expected.values).max()
    rounding = {"fp32": 1e-5, "fp16": 2e-3}[kind]
    assert run.misses[output].error == pytest.approx(error, rel=rounding)
    scale = max(1, np.abs(wrong).max() / np.abs(expected.values).max())
    slack = np.asarray(expected.slack) * scale + 1e-5 * np.abs(wrong).max()
    assert emulated.compare(run.got[output], Expected(wrong, slack), kind).worst <= 1


def test_softmax_with_a_wrong_fill_is_right_where_nothing_is_padded() -> None:
    assert held("sm_80", "softmax_buggy", {"rows": 3, "columns": 1024}).is_right


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("leaky_relu_buggy", {"n": 1}),
        ("matmul_buggy", {"M": 5, "N": 7, "K": 1}),
        ("matmul_dot_buggy", {"M": 5, "N": 7, "K": 32}),
        ("flash_attention_buggy", {"heads": 2, "queries": 3, "keys": 64, "D": 16}),
        ("flash_fwd_buggy", {"seq": 64}),
        ("attention_buggy", {"heads": 2, "queries": 3, "keys": 9, "D": 1}),
    ],
)
def test_buggy_kernels_are_right_where_their_fault_does_not_show(
    name: str, sizes: dict[str, int]
) -> None:
    assert held("sm_80", name, sizes).is_right


def test_every_buggy_build_has_its_fault_described() -> None:
    assert {name for _, name in BUILDS if "_buggy" in name} == set(FAULTS)


# Triton 3.6 ---------------------------------------------------------------------------------
OLDER = [
    (arch, module)
    for arch in ARCHS
    for module in sorted(twin_builds.CORPUS)
    if list((FIXTURES / "ptx-triton-3.6" / arch).glob(f"{module}-*_kernel.ptx"))
]


@pytest.mark.parametrize(("arch", "module"), OLDER)
def test_builds_by_triton_3_6(arch: str, module: str) -> None:
    twin = next(t for t in twin_builds.twins() if t.module == module)
    made = twin.builds[0]
    pointed = made.get("T", "fp32")
    types = {
        name: twin.types.get(name, pointed if name.endswith("ptr") else "i32").lstrip("*")
        for name in source_arguments(module, twin.kernel)
    }
    build = emulated.by_older_triton(module, twin.kernel, arch, {**types, **made})
    sizes = build.reference.sizes(build.constants)
    runs = [emulated.hold(build, chosen) for chosen in sizes[:3]]
    assert not any(run.faults or run.stray for run in runs)
    is_right = [all(miss.worst <= 1 for miss in run.misses.values()) for run in runs]
    assert all(is_right) != module.endswith("_buggy"), [run.misses for run in runs]


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
        for argument, kind in entry["args"].items():
            value = launch.arguments[argument]
            if kind.startswith("i") and kind.endswith(":16"):
                assert isinstance(value, int)
                assert value % 16 == 0, f"{argument} = {value} breaks a promise of the build"


def test_all_kernels_have_a_reference() -> None:
    kernels = {entry["kernel"] for entry in emulated.manifest()["variants"].values()}
    assert set(by_kernel) == kernels


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
