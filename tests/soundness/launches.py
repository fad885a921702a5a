"""Launches of the fixture kernels' references, as the static half takes them."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ptxlint.facts import KernelMetadata
from ptxlint.launches import DTYPE_BYTES, Argument, Launch, Scalar, Tensor

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
sys.path.insert(0, str(FIXTURES))

from references import emulated, kit  # noqa: E402


def builds(archs: tuple[str, ...]) -> list[emulated.Build]:
    """All builds for some architectures that have a reference."""
    return [emulated.build(name, arch) for arch in archs for name in emulated.names(arch)]


def metadata(build: emulated.Build) -> KernelMetadata:
    """What lies beside a build."""
    return KernelMetadata(shared=build.shared)


def launches(build: emulated.Build, seed: int) -> Iterator[Launch]:
    """The launches that the build's reference lists; none where tensor maps or scratch memory are
    passed, which a launch without names cannot tell from other pointers."""
    if any(build.scratch):
        return
    for sizes in build.reference.sizes(build.constants):
        made = build.reference.launch(sizes, build.constants, np.random.default_rng(seed))
        arguments: dict[str, Argument] = {}
        for number, (name, argument) in enumerate(made.arguments.items()):
            if isinstance(argument, kit.Descriptor):
                break
            arguments[name] = _argument(argument, build.constants[name], number)
        else:
            yield Launch(made.grid, (0, 0, 0), arguments)


def _argument(argument: Any, kind: str, number: int) -> Argument:
    if not isinstance(argument, kit.Tensor):
        value = int(argument) if kind.startswith(("i", "u")) else float(argument)
        return Scalar(kind, value)
    dtype = emulated.TORCH_NAMES[kind]
    strides: list[int] = []
    step = 1
    for extent in reversed(argument.shape):
        strides.insert(0, step)
        step *= argument.pitch if len(strides) == 1 and argument.pitch else extent
    values = None
    if argument.values is not None and dtype.startswith("int") and np.size(argument.values):
        values = int(np.min(argument.values)), int(np.max(argument.values))
    size = step * DTYPE_BYTES[dtype]
    fresh = "uninitialised" if argument.values is None else ""
    return Tensor(dtype, argument.shape, tuple(strides), number, size, 0, 16, fresh, values)
