"""Operators from pairs of torch modules: `Model` in one file, `ModelNew` in the same or another.

The form is that of KernelBench (https://github.com/ScalingIntelligence/KernelBench): the first file
has a class `Model`, `get_inputs()` and `get_init_inputs()`, and integers at the top of the module,
which are the dimensions.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import ModuleType
from typing import Any, Final
from unittest import mock

from ptxlint.dynamic.operators.executing import executed, located
from ptxlint.dynamic.operators.module_dims import PARTS, Inputs, Source
from ptxlint.dynamic.operators.spec import Dim, Dims, Domain, Input, Operator, Size, SpecError
from ptxlint.dynamic.operators.triple import on_torch, parameters

_CANDIDATE: Final = "ModelNew"
_SEED: Final = 0
"""Of the weights."""
_FINEST_FIRST: Final = ("float64", "float32", "float16", "bfloat16")


def is_pair(module: ModuleType) -> bool:
    """True for a module with both models."""
    return all(hasattr(module, name) for name in (*PARTS, _CANDIDATE))


def kernelbench(
    reference: str,
    candidate: str = "",
    *,
    dtypes: tuple[str, ...] = ("float32",),
    arithmetic: Mapping[str, str] | None = None,
    domains: Mapping[str, Domain] | None = None,
    name: str = "",
) -> Operator:
    """An operator whose kernel is `ModelNew` of `candidate` and whose reference is `Model` of
    `reference`, evaluated in float64; without `candidate` both are in one file.

    Paths may be relative to the working directory or to that of the spec. Each integer that is
    assigned at the top of the reference's file, and on which the inputs or the arguments of the
    models depend, is a dimension, from 1 to twice its value; sizes that `Model` refuses are left
    out. Weights are those that `Model` starts with after `torch.manual_seed(0)`, rounded to the
    coarsest of `dtypes`; those of the same names in `ModelNew` become the same. Where
    `Model` has products of float32, they count as computed in tf32, unless `arithmetic` says
    otherwise. Raises `SpecError`.
    """
    source = Source(located(reference))
    other = executed(located(candidate)) if candidate else executed(source.path)
    if not hasattr(other, _CANDIDATE):
        raise SpecError(f"{candidate or reference}: no class {_CANDIDATE}")
    names, inputs, dims = _described(source, domains or {})
    coarsest = max(dtypes, key=_FINEST_FIRST.index)
    pair = _Pair(source, other, names, dims, coarsest)
    return Operator(
        kernel=pair.candidate,
        reference=on_torch(pair.reference),
        inputs=inputs,
        dims=dims,
        dtypes=dtypes,
        name=name,
        where=source.accepts if source.accepts(source.integers) else None,
        arithmetic=_usual(source) if arithmetic is None else arithmetic,
    )


def _usual(source: Source) -> dict[str, str]:
    """What float32 is computed in where nobody says: products in tf32."""
    return {"float32": "tf32"} if source.multiplies() else {}


def _described(
    source: Source, domains: Mapping[str, Domain]
) -> tuple[list[str], dict[str, Input], dict[str, Dim]]:
    """The names of the inputs, all inputs of the operator, and the dimensions.

    Dimensions are inputs, too: what is called needs to know them.
    """
    found = Inputs(source)
    names = parameters(source.at(source.integers)["Model"].forward, len(found.base.inputs) + 1)[1:]
    inputs = {n: found.input(n, i, domains.get(n)) for i, n in enumerate(names)}
    dims = found.dims()
    return names, inputs | {_size_input(name): Size(name) for name in dims}, dims


def _size_input(dim: str) -> str:
    return f"size {dim}"


class _Pair:
    """Both models, made anew for each call."""

    def __init__(
        self,
        source: Source,
        module: ModuleType,
        names: list[str],
        dims: Mapping[str, Dim],
        unit: str,
    ) -> None:
        """`unit` is the dtype that weights are rounded to."""
        self._source = source
        self._module = module
        self._names = names
        self._dims = tuple(dims)
        self._unit = unit

    def reference(self, **given: Any) -> Any:
        """`Model` in float64."""
        return self._original(self._sizes(given)).double()(*(given[n] for n in self._names))

    def candidate(self, **given: Any) -> Any:
        """`ModelNew` where its inputs are and in their type."""
        import torch

        dims = self._sizes(given)
        arguments = [given[name] for name in self._names]
        first = next(a for a in arguments if hasattr(a, "device"))
        kind = next((a.dtype for a in arguments if _is_float(a)), torch.float32)
        with mock.patch.dict(vars(self._module), self._numbers(dims)):
            model = self._made(getattr(self._module, _CANDIDATE), dims)
            known = model.state_dict()
            state = self._original(dims).state_dict()
            alike = {n: v for n, v in state.items() if n in known and known[n].shape == v.shape}
            model.load_state_dict(alike, strict=False)
            with torch.no_grad():
                return model.to(device=first.device, dtype=kind)(*arguments)

    def _numbers(self, dims: Dims) -> dict[str, Any]:
        """What numbers at the top of the candidate's file are at these sizes: those that are called
        as the reference's, and are the same."""
        before, there = self._source.at(self._source.integers), self._source.at(dims)
        held = vars(self._module)
        alike = [n for n, v in before.items() if type(v) in (int, float) and held.get(n) == v]
        return {name: there[name] for name in alike if name in there}

    def _original(self, dims: Dims) -> Any:
        return self._made(self._source.at(dims)["Model"], dims)

    def _made(self, model: Any, dims: Dims) -> Any:
        """A model with the weights that it starts with, rounded."""
        import torch

        torch.manual_seed(_SEED)
        made = model(*self._source.at(dims)["get_init_inputs"]())
        rounded = getattr(torch, self._unit)
        with torch.no_grad():
            for held in (*made.parameters(), *made.buffers()):
                if held.is_floating_point():
                    held.copy_(held.to(rounded))
        return made

    def _sizes(self, given: Mapping[str, Any]) -> dict[str, int]:
        return {**self._source.integers, **{n: given[_size_input(n)] for n in self._dims}}


def _is_float(value: Any) -> bool:
    return hasattr(value, "is_floating_point") and bool(value.is_floating_point())


__all__ = ["is_pair", "kernelbench"]
