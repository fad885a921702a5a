"""Operators from pairs of files that define a function of the same name: one to test, one to trust.

The form is that of TritonBench (https://github.com/thunlp/TritonBench): a file defines a function,
and behind it functions `test_*` that call it with examples. Dimensions come from these.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from types import FunctionType, ModuleType
from typing import Any
from unittest import mock

from ptxlint.dynamic.operators.executing import executed, located, told
from ptxlint.dynamic.operators.spec import Domain, Operator, SpecError
from ptxlint.dynamic.operators.triple import triple

_TEST = "test_"


def tritonbench(
    reference: str,
    candidate: str,
    function: str = "",
    arguments: Sequence[Any] | Mapping[str, Any] | None = None,
    *,
    dtypes: tuple[str, ...] = (),
    arithmetic: Mapping[str, str] | None = None,
    domains: Mapping[str, Domain] | None = None,
) -> Operator:
    """An operator whose kernel is a function of the file `candidate`, and whose reference is the
    one of the same name in `reference`, called with float64 tensors of torch.

    Paths may be relative to the working directory or to that of the spec. `function` may be left
    out if only one is in both files. Without `arguments` those count that a function `test_*` of
    the reference's file, or else of the candidate's, first calls it with; neither file's tests are
    run beyond that. From there on it is a `triple`. Raises `SpecError`.
    """
    paths = [located(path) for path in (reference, candidate)]
    trusted, tested = (executed(path, without_calls_of=_TEST) for path in paths)
    name = function or _common(trusted, tested, f"{reference} and {candidate}")
    for module, path in zip((trusted, tested), paths, strict=True):
        if not callable(getattr(module, name, None)):
            raise SpecError(f"{path}: no function {name} in it")
    if arguments is None:
        arguments = _example(trusted, name, paths[0]) or _example(tested, name, paths[1])
    if not arguments:
        raise SpecError(f"{reference}: no {_TEST}* calls {name}; give example arguments")
    return triple(
        getattr(tested, name),
        getattr(trusted, name),
        arguments,
        dtypes=dtypes,
        arithmetic=arithmetic,
        domains=domains,
        name=name,
    )


def _common(trusted: ModuleType, tested: ModuleType, where: str) -> str:
    """The one function that both files define."""
    both = [name for name in _functions(trusted) if name in _functions(tested)]
    if len(both) != 1:
        said = f"several functions are in both: {', '.join(both)}" if both else "none is in both"
        raise SpecError(f"{where}: {said}; name the function")
    return both[0]


def _functions(module: ModuleType) -> list[str]:
    """Functions that a file defines, but its tests."""
    return [
        name
        for name, value in vars(module).items()
        if isinstance(value, FunctionType)
        and value.__module__ == module.__name__
        and not name.startswith((_TEST, "_"))
    ]


class _CalledError(BaseException):
    """Ends a test at its first call. No `Exception`, so that tests do not catch it."""


def _example(module: ModuleType, name: str, path: str) -> dict[str, Any]:
    """What a test of the file first calls the function with, by parameter; empty for no test that
    does."""
    genuine = getattr(module, name)
    seen: list[tuple[tuple[Any, ...], dict[str, Any]]] = []

    def call(*args: Any, **named: Any) -> Any:
        seen.append((args, named))
        raise _CalledError

    tests = [v for n, v in vars(module).items() if n.startswith(_TEST) and callable(v)]
    with mock.patch.dict(vars(module), {name: call}):
        for test in tests:
            try:
                test()
            except _CalledError:
                return _bound(genuine, *seen[0])
            except Exception as error:
                raise SpecError(told(error, path)) from error
    return {}


def _bound(
    function: Callable[..., Any], args: tuple[Any, ...], named: Mapping[str, Any]
) -> dict[str, Any]:
    """Arguments by parameter. Raises `SpecError` for those that have no names of their own."""
    bound = inspect.signature(function).bind(*args, **named).arguments
    for key, parameter in inspect.signature(function).parameters.items():
        if key in bound and parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise SpecError(f"parameter {key} takes any number of arguments; give them by name")
    return dict(bound)


__all__ = ["tritonbench"]
