"""Kernels in which nothing is wrong: what Triton makes of its reductions, scans and products."""

from __future__ import annotations

import sys
from typing import Final, NamedTuple

import numpy as np

from defects.kit import ROOT, Argument, Case, Launch, Map, Tensor
from ptxlint.dynamic.emulator.tensor_map import of_tensor

sys.path.insert(0, str(ROOT / "fixtures"))

from references import emulated, kit
from references.emulated import TORCH_NAMES, laid_out

ARCHS: Final = ("sm_80", "sm_90")
QUICK: Final = (
    "softmax", "softmax_bf16_small", "layer_norm_fwd", "layer_norm_bwd", "rmsnorm", "l2norm",
    "cumsum", "decay_scan", "argmax", "welford", "histogram", "ticket_sum", "matmul_dot_fp16",
    "segment_sum", "zero_fill",
)  # fmt: skip
"""Those that are run always."""
SLOW: Final = tuple(
    name for name in emulated.names("sm_90") if "_buggy" not in name and name not in QUICK
)


class Right(NamedTuple):
    """A build of a fixture, at the first sizes of its reference."""

    build: str
    arch: str

    @property
    def name(self) -> str:
        """What it is called."""
        return f"{self.build} for {self.arch}"

    def case(self) -> Case:
        """It, and a launch of it."""
        build = emulated.build(self.build, self.arch)
        function = emulated.emulator(build.path).kernel
        sizes = build.reference.sizes(build.constants)[0]
        launch = build.reference.launch(sizes, build.constants, np.random.default_rng(0))
        block = [int(x) for x in function.directives["reqntid"]]
        arguments: list[Argument] = []
        for name, argument in launch.arguments.items():
            arguments += _arguments(argument, build.constants[name])
        x, y, z = launch.grid
        for size in build.scratch:
            room = np.zeros(max(size * x * y * z, 1), dtype=np.uint8)
            arguments.append(Tensor(room, "blank") if size else 0)
        return Case(
            self.name,
            build.path.read_text(encoding="utf-8"),
            Launch(tuple(arguments), block[0], launch.grid, build.shared),
            "sm_90a",
            is_small=False,
        )


def _arguments(argument: kit.Argument, kind: str) -> list[Argument]:
    """An argument as parameters; behind a map, extents and strides are passed as well."""
    if isinstance(argument, int | float):
        return [emulated.to_elements(np.array([argument]), TORCH_NAMES[kind]).tobytes()]
    if isinstance(argument, kit.Tensor):
        return [_tensor(argument, kind)]
    strides = emulated._strides(argument.tensor)
    fields = of_tensor(0, TORCH_NAMES[kind], argument.tensor.shape, strides, argument.block)
    held = _tensor(argument.tensor, kind)
    return [Map(fields, tensor=held), *argument.tensor.shape, *strides]


def _tensor(tensor: kit.Tensor, kind: str) -> Tensor:
    """What lies between rows belongs to nobody; here it is the tensor's, and holds NaN."""
    values = laid_out(tensor, kind)
    if values is None:
        return Tensor(np.zeros(_size(tensor, kind), dtype=np.uint8), "blank")
    return Tensor(values)


def _size(tensor: kit.Tensor, kind: str) -> int:
    """Bytes of a tensor's memory."""
    return emulated._room(tensor) * emulated.kept_as(TORCH_NAMES[kind]).itemsize


CASES: Final = (
    *(Right(name, arch) for arch in ARCHS for name in QUICK),
    *(Right(name, "sm_90") for name in SLOW),
)


__all__ = ["ARCHS", "CASES", "QUICK", "SLOW", "Right"]
