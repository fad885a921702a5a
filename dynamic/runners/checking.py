"""What is looked at when a case runs: a function for each of `ptxlint.dynamic.cases.checks`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from ..cases.arrays import Placed
from .case_run import CaseRun, bits, same, told_apart, wrong
from .manner import Manner
from .runner import Called, Output
from .tensors import Array

_OTHER_POISON: Final = 0x5A
_REPEATS: Final = 2
_TF32: Final = (
    '; products of tf32 are off by so much: if they are meant, give arithmetic={"float32": "tf32"}'
)
_CONFIGURATIONS: Final = (
    (Manner(num_warps=1), "one warp"),
    (Manner(num_warps=8), "8 warps"),
    (Manner(num_stages=1), "one stage"),
)
Check = Callable[[CaseRun], str]
"""Says in words what is wrong; empty for nothing."""


def reference(run: CaseRun) -> str:
    """Outputs against the float64 reference."""
    run.compared = run.held_to_reference(run.outputs)
    said = wrong(run.compared)
    # What `tl.dot` makes of float32 unless it is told otherwise.
    return said + _TF32 if said and run.may_mean("tf32") else said


def canaries(run: CaseRun) -> str:
    """What nobody should have written is as it was."""
    if run.first.trampled:
        return run.first.trampled[0]
    for name, before, after in _tensors(run):
        changed = bits(before.storage) != bits(after.storage)
        outside = changed & before.gaps
        if outside.any():
            return f"{_elements(outside)} around and between those of {name} changed"
        if name not in run.operator.writes and changed.any():
            return f"{_elements(changed)} of {name} changed, which is an input alone"
    return ""


def poison(run: CaseRun) -> str:
    """Nothing of what memory held before comes out."""
    manner = Manner()
    suspects = [
        (bits(output.elements) == _pattern(output.elements, manner.poison)) | _nan(output)
        for output in run.outputs
    ]
    if not any(suspect.any() for suspect in suspects):
        return ""
    # What is NaN with either is one by itself.
    other = Manner(poison=_OTHER_POISON)
    for one, again, suspect in zip(
        run.outputs, run.outputs_of(run.call(other)), suspects, strict=True
    ):
        unwritten = suspect & (bits(again.elements) == _pattern(again.elements, other.poison))
        if unwritten.any():
            at = ", ".join(str(int(i)) for i in np.argwhere(unwritten)[0])
            return (
                f"{int(unwritten.sum()):,} of {one.elements.size:,} elements of {one.name} are "
                f"never written, the first at [{at}]"
            )
        depends = suspect & ~same(one, again)
        if run.operator.deterministic and depends.any():
            return f"what memory held before comes out: {told_apart(one, again, depends)}"
    return ""


def surroundings(run: CaseRun) -> str:
    """What lies around inputs has no say."""
    changed = {}
    for name, given in run.arguments.items():
        if isinstance(given, Placed) and given.gaps.any():
            storage = given.storage.copy()
            storage[given.gaps] = 0
            changed[name] = given._replace(storage=storage)
    if not changed and "margin" not in run.runner.manners:
        return ""
    said = run.differing(run.call(Manner(margin=0), {**run.arguments, **changed}))
    return said and f"what lies around the inputs decides: {said}"


def sanitizer(run: CaseRun) -> str:
    """The run did nothing wrong on the way."""
    _ = run.first
    for finding in run.findings:
        if finding["severity"] in ("error", "warning"):
            return f"{finding['rule']}: {finding['kernel']}: {finding['message']}"
    return ""


def repeat(run: CaseRun) -> str:
    """The same again."""
    for _ in range(_REPEATS):
        said = run.differing(run.call(Manner()))
        if said:
            return f"run again, {said}"
    return ""


def programs(run: CaseRun) -> str:
    """Programs in other orders."""
    if "order" not in run.runner.manners:
        return ""
    for order in ("reversed", "1"):
        said = run.differing(run.call(Manner(order=order)))
        if said:
            return f"with its programs in another order, {said}"
    return ""


def warps(run: CaseRun) -> str:
    """Other numbers of warps and stages."""
    for manner, words in _CONFIGURATIONS:
        for called in _if_it_fits(run, manner):
            said = wrong(run.held_to_reference(run.outputs_of(called)))
            if said:
                return f"with {words}, {said}"
    return ""


def rerun(run: CaseRun) -> str:
    """Each launch made again."""
    if "again" not in run.runner.manners:
        return ""
    said = run.differing(run.call(Manner(again=True)))
    return said and f"with each launch made twice, as an autotuner does, {said}"


CHECKED: Final[dict[str, Check]] = {
    "reference": reference,
    "canaries": canaries,
    "poison": poison,
    "surroundings": surroundings,
    "sanitizer": sanitizer,
    "repeat": repeat,
    "programs": programs,
    "warps": warps,
    "rerun": rerun,
}
"""By the names of `ptxlint.dynamic.cases.checks`."""


def _tensors(run: CaseRun) -> Iterator[tuple[str, Placed, Placed]]:
    """Tensors of the case before and behind the first call."""
    for name, after in run.first.after.items():
        yield name, run.arguments[name], after


def _elements(flags: Array) -> str:
    count = int(flags.sum())
    return "1 element" if count == 1 else f"{count:,} elements"


def _pattern(elements: Array, byte: int) -> Any:
    width = min(elements.itemsize, 8)
    return np.frombuffer(bytes([byte] * width), dtype=f"u{width}")[0]


def _nan(output: Output) -> Array:
    values = output.numbers
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(values.shape, dtype=np.bool_)


def _if_it_fits(run: CaseRun, manner: Manner) -> Iterator[Called]:
    """The call in a manner that a kernel may not be compiled in, or not be loaded."""
    from triton.compiler.errors import CompilationError
    from triton.runtime.errors import OutOfResources, PTXASError

    try:
        yield run.call(manner)
    except (CompilationError, OutOfResources, PTXASError):
        return


__all__ = ["CHECKED", "Check"]
