"""The cases: each kernel of a bundle under each variation of each of its launches."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from seeds import seeded

from ptxlint.facts import Facts
from ptxlint.frontends.discovery import Input, discover, read
from ptxlint.frontends.ptx import parse
from ptxlint.frontends.triton_cache import load_metadata
from ptxlint.ir.function import Function
from ptxlint.ir.module import Module
from ptxlint.launch.binding import Bound, bind
from ptxlint.launches import Launch, Tensor


class Case(NamedTuple):
    """A kernel of a bundle under a launch; `path` is that of its PTX."""

    path: Path
    kernel: str
    number: int
    """Which launch of the kernel."""
    seed: str
    launch: Launch

    @property
    def name(self) -> str:
        """What the case is found by."""
        return f"{self.path.stem} {self.number} {self.seed}"

    @property
    def size(self) -> int:
        """Bytes of all its tensors."""
        tensors = [a for a in self.launch.arguments.values() if isinstance(a, Tensor)]
        return sum({t.storage: t.storage_bytes for t in tensors}.values())


class Loaded(NamedTuple):
    """What a case is about, read and bound."""

    module: Module
    function: Function
    facts: Facts
    bound: Bound


def cases(bundle: str) -> Iterator[Case]:
    """All cases of a bundle, in a fixed order."""
    for item in discover([bundle]):
        if isinstance(item, Input):
            for number, launch in enumerate(item.launches):
                for seed, changed in seeded(launch):
                    yield Case(Path(item.path), launch.kernel, number, seed, changed)


def load(case: Case) -> Loaded:
    """Read the PTX of a case and bind its launch."""
    text = read(Input(str(case.path)))
    assert isinstance(text, str), text
    module = parse(text, str(case.path))
    function = next(f for f in module.kernels() if f.name == case.kernel)
    metadata = load_metadata(str(case.path))
    facts = Facts(module, function, None, metadata)
    bound = bind(function, case.launch, {}, metadata)
    facts.launches = (case.launch,)
    return Loaded(module, function, facts, bound)
