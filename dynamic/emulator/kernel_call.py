"""One call of a kernel from Python: a kernel, a grid and arguments in, a result out."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from operator import index
from typing import Any, Final, NamedTuple

import numpy as np

from ptxlint.diagnostics import Finding
from ptxlint.dynamic.emulator.counters import Counters
from ptxlint.dynamic.emulator.findings import findings
from ptxlint.dynamic.emulator.host_arrays import ArrayError, HostArrays, is_array
from ptxlint.dynamic.emulator.inputs import InputError
from ptxlint.dynamic.emulator.launched import MOST_CTAS, run_launch
from ptxlint.dynamic.emulator.lines import Line, lines
from ptxlint.dynamic.emulator.loading import (
    EmulationError,
    check,
    load,
    metadata_beside,
    pick,
    refusal,
    translated,
)
from ptxlint.dynamic.emulator.run import MOST_TURNS
from ptxlint.dynamic.emulator.sanitizer.choice import Sanitize, chosen
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.engine.fingerprint import Fingerprints
from ptxlint.engine.places import Places
from ptxlint.engine.python_source import PythonSources
from ptxlint.engine.registry import default_registry
from ptxlint.engine.source_words import KernelWords, PythonReader
from ptxlint.engine.suppression import PythonSuppressions, bearing_on
from ptxlint.facts import KernelMetadata
from ptxlint.frontends.discovery import Input, InputFault, read
from ptxlint.ir.function import Function
from ptxlint.ir.module import Module
from ptxlint.launch.binding import BindingError, Bound, bind
from ptxlint.launches import (
    AS_COMPILED,
    Argument,
    Constant,
    Descriptor,
    Extent,
    Launch,
    Scalar,
)

_CONSTANT: Final = "constexpr"
"""Triton's type of what is compiled in."""
_TEXT: Final = "kernel.ptx"
"""What a text without a file is called."""


class Result(NamedTuple):
    """What a call came to."""

    outputs: dict[str, Any]
    """Every array argument behind the run, by name: numpy arrays for numpy arrays, torch tensors on
    the CPU for torch tensors, each of the type and shape of what was passed."""
    findings: tuple[Finding, ...]
    """What was done wrong, as `ptxlint.check` tells it: with lines of Python and PTX, and the
    first program and thread that did it as the `witness`."""
    counters: tuple[Line, ...]
    """What each line of Python executes and moves; empty with `count=False`."""
    is_complete: bool
    """False if a hang was given up: outputs are what they were then."""
    kernel: str
    ctas: int
    """CTAs that came to their end."""
    sampled: int
    """CTAs of the grid if only some of them were run, else 0."""
    seconds: float
    suppressed: int = 0
    """Findings that comments in the source held back."""


class _Kernel(NamedTuple):
    """What is called, and what travels beside it."""

    module: Module
    function: Function
    metadata: KernelMetadata | None
    signature: dict[str, Any] | None
    """Triton's types by parameter, constants included; None for plain PTX."""
    scratch: tuple[int, int] | None
    """Bytes of scratch memory of a program."""


def emulate(
    kernel: Any,
    grid: int | Sequence[int],
    args: Sequence[Any] | Mapping[str, Any] = (),
    *,
    name: str = "",
    block: int | Sequence[int] | None = None,
    dynamic_shared: int | None = None,
    sanitize: str | Sanitize = "memory",
    count: bool = True,
    in_place: bool = False,
    most_ctas: int = MOST_CTAS,
    most_turns: int = MOST_TURNS,
) -> Result:
    """Run a compiled kernel on arrays and numbers, without a GPU.

    `kernel` is PTX text, the path of a PTX file, a parsed module, or what Triton compiled (anything
    whose `asm["ptx"]` is the text); of several kernels `name` picks one. `grid` is in CTAs. `args`
    are numpy arrays, torch tensors, numbers and None (a null pointer), in the parameters' order or
    by their names; constants that were compiled in may be among those of Triton's. `block` and
    `dynamic_shared` (bytes) are needed where neither the PTX nor Triton's metadata tell them.
    `sanitize` names what is watched for, as `--sanitize` does. Arrays are left as they are unless
    `in_place` is true; those that are not writeable must not be written. Of larger grids
    `most_ctas` CTAs are run, evenly spread; after `most_turns` turns of a group of CTAs a run is
    given up for a hang.

    Raises `EmulationError` (a `ValueError`) that says what cannot be run, before anything runs.
    """
    what = _kernel(kernel, name)
    watched = sanitize if isinstance(sanitize, Sanitize) else _watched(sanitize)
    given = _named(args, what)
    constants = {key: Constant(repr(v)) for key, v in given.items() if _is_constant(key, what)}
    given = {key: value for key, value in given.items() if key not in constants}
    try:
        arrays = HostArrays({k: _array_of(v) for k, v in given.items() if is_array(_array_of(v))})
    except ArrayError as error:
        raise EmulationError(str(error)) from None
    extents = _extent(grid, "grid", 0)
    programs = extents[0] * extents[1] * extents[2]
    launch = Launch(
        extents,
        AS_COMPILED if block is None else _extent(block, "block", 1),
        {**constants, **{key: _argument(key, value, arrays) for key, value in given.items()}},
        -1 if dynamic_shared is None else dynamic_shared,
        is_ordered=what.signature is not None or not isinstance(args, Mapping),
        scratch=what.scratch and (programs * what.scratch[0], programs * what.scratch[1]),
    )
    sources = PythonSources(("",))
    places = Places(what.module, sources)
    start = time.perf_counter()
    emulator = translated(what.module, what.function, places)
    words = KernelWords(what.module, what.function, PythonReader(sources))
    counters = Counters() if count else None
    try:
        bound = bind(what.function, launch, words.parameters(what.function), what.metadata)
        ran = run_launch(
            emulator,
            bound,
            arrays,
            counters=counters,
            most_ctas=most_ctas,
            most_turns=most_turns,
            sanitize=watched,
            metadata=what.metadata,
            read_only=arrays.read_only,
        )
    except (BindingError, InputError) as error:
        raise EmulationError(str(error)) from None
    except UnsupportedError as error:
        raise EmulationError(refusal(error, places)) from None
    outputs = {
        _shown(key, bound): arrays.after(_array_of(value), ran.storages)
        for key, value in given.items()
        if is_array(_array_of(value))
    }
    if in_place:
        arrays.write_back(ran.storages)
    comments = bearing_on(what.module, PythonSuppressions(sources, default_registry))
    found, held = findings(
        ran.outcome.faults, what.module, what.function, bound, places, Fingerprints(), comments
    )
    return Result(
        outputs,
        tuple(found),
        () if counters is None else tuple(lines(counters, places)),
        ran.outcome.is_complete,
        what.function.name,
        ran.outcome.ctas,
        ran.sampled,
        time.perf_counter() - start,
        held,
    )


# The kernel.


def _kernel(given: Any, name: str) -> _Kernel:
    if isinstance(given, Module):
        check(given)
        function = pick(given, name)
        return _Kernel(given, function, metadata_beside(given.source.path), None, None)
    compiled = getattr(given, "asm", None)
    if compiled is not None:
        return _compiled(given, compiled, name)
    path = _TEXT
    if isinstance(given, str) and ("\n" in given or ".version" in given):
        text: str | InputFault = given
    elif isinstance(given, str | os.PathLike):
        path = os.fspath(given)
        text = read(Input(path))
    else:
        raise EmulationError(
            f"a {type(given).__name__} is no kernel: give PTX text, the path of a PTX file, a "
            "module, or what Triton compiled"
        )
    if isinstance(text, InputFault):
        raise EmulationError(f"{text.path}: {text.message}")
    module = load(text, path)
    return _Kernel(module, pick(module, name), metadata_beside(path), None, None)


def _compiled(given: Any, asm: Any, name: str) -> _Kernel:
    """What Triton compiled."""
    try:
        text = asm["ptx"]
    except (KeyError, TypeError):
        raise EmulationError('the compiled kernel has no PTX: `asm["ptx"]` is not there') from None
    module = load(text, _TEXT)
    function = pick(module, name)
    told = getattr(given, "metadata", None)
    metadata = KernelMetadata(
        name=function.name,
        num_warps=getattr(told, "num_warps", None),
        shared=getattr(told, "shared", None),
    )
    signature = getattr(getattr(given, "src", None), "signature", None)
    if signature is None:
        return _Kernel(module, function, metadata, None, None)
    sizes = [int(getattr(told, f"{kind}_scratch_size", 0) or 0) for kind in ("global", "profile")]
    named = {str(key): kind for key, kind in signature.items()}
    return _Kernel(module, function, metadata, named, (sizes[0], sizes[1]))


def _watched(words: str) -> Sanitize:
    try:
        return chosen(words)
    except ValueError as error:
        raise EmulationError(f"sanitize: {error}") from None


# The arguments.


def _named(args: Sequence[Any] | Mapping[str, Any], what: _Kernel) -> dict[str, Any]:
    """Arguments by name, in the parameters' order where Triton tells it; by their numbers where
    nobody knows the names."""
    if isinstance(args, Mapping):
        named = {str(key): value for key, value in args.items()}
        return named if what.signature is None else _in_order(named, what.signature)
    if isinstance(args, str | bytes) or is_array(args) or not isinstance(args, Sequence):
        raise EmulationError(f"the arguments are a {type(args).__name__}; give a list or a dict")
    if what.signature is None:
        return {str(number): value for number, value in enumerate(args)}
    every = list(what.signature)
    passed = [key for key, kind in what.signature.items() if kind != _CONSTANT]
    for names in (every, passed):
        if len(names) == len(args):
            return dict(zip(names, args, strict=True))
    raise EmulationError(
        f"{len(args)} arguments for the {len(passed)} parameters of {what.function.name} "
        f"({', '.join(passed)}), or {len(every)} with those that were compiled in"
    )


def _in_order(named: dict[str, Any], signature: dict[str, Any]) -> dict[str, Any]:
    for key in named:
        if key not in signature:
            near = get_close_matches(key, signature, n=1)
            hint = f"did you mean `{near[0]}`?" if near else f"they are {', '.join(signature)}"
            raise EmulationError(f"no parameter is called `{key}`; {hint}")
    for key, kind in signature.items():
        if key not in named and kind != _CONSTANT:
            raise EmulationError(f"no argument for parameter `{key}`")
    return {key: named[key] for key in signature if key in named}


def _is_constant(key: str, what: _Kernel) -> bool:
    return what.signature is not None and what.signature.get(key) == _CONSTANT


def _array_of(value: Any) -> Any:
    """The array behind a tensor descriptor; anything else as it is."""
    return value.base if hasattr(value, "block_shape") else value


def _argument(key: str, value: Any, arrays: HostArrays) -> Argument:
    if value is None:
        return Scalar("", 0)
    if hasattr(value, "block_shape"):
        tensor = arrays.tensor(value.base)._replace(
            shape=tuple(map(int, value.shape)), strides=tuple(map(int, value.strides))
        )
        return Descriptor(
            tensor, tuple(map(int, value.block_shape)), str(getattr(value, "padding", "zero"))
        )
    if is_array(value):
        found: Argument = arrays.tensor(value)
        return found
    if isinstance(value, bool | np.bool_):
        return Scalar("", int(value))
    if isinstance(value, int | np.integer):
        return Scalar("", int(value))
    if isinstance(value, float | np.floating):
        return Scalar("", float(value))
    raise EmulationError(
        f"argument `{key}` is a {type(value).__name__}; give a numpy array, a torch tensor, a "
        "number or None"
    )


def _shown(key: str, bound: Bound) -> str:
    """What an argument is called: a number becomes the parameter's name."""
    if not key.isdecimal():
        return key
    names = list(bound.arguments)
    return names[int(key)] if int(key) < len(names) else key


def _extent(given: int | Sequence[int], what: str, least: int) -> Extent:
    """A number, or one to three of them."""
    try:
        parts = [index(given)] if hasattr(given, "__index__") else [index(n) for n in given]
    except TypeError:
        parts = []
    if not 1 <= len(parts) <= 3 or min(parts) < least:
        raise EmulationError(
            f"the {what} is {given!r}; give 1 to 3 numbers (x, y, z) from {least} on"
        )
    x, y, z = (*parts, 1, 1)[:3]
    return x, y, z


__all__ = ["EmulationError", "Result", "emulate"]
