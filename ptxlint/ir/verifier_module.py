"""Faults of declarations: `.version`, `.target`, variables, initialisers, function headers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ptxlint.ir.declaration_check import check_declarations
from ptxlint.ir.function import Function, Variable
from ptxlint.ir.module import GlobalDeclaration, Module
from ptxlint.ir.operand import Immediate, Operand, Vector
from ptxlint.source import Problem

_SPACE: Final = re.compile(r"(?:\s++|//[^\n]*\n|/\*.*?\*/|#[^\n]*\n)*+", re.DOTALL)
_DIRECTIVE: Final = re.compile(r"\.(version|target|address_size)\s+[\w.]+(?:\s*,\s*\w+)*")


def check_header(module: Module) -> Iterator[Problem]:
    """`.version`, then `.target`, then perhaps `.address_size`, each known and fit for another."""
    if any(p.code == "version" for p in module.problems):
        return
    heads, places = _heads(module.source.text)
    if module.version == (0, 0):
        hint = "start with `.version 8.0` or the like"
        yield _structure(places[0], "`.version` is missing", hint)
    elif "version" in heads and (fault := _version_fault(module)) is not None:
        yield Problem(heads["version"], *fault, "version")
    if not module.targets:
        if module.version != (0, 0):
            hint = "add `.target sm_80` or the like"
            yield _structure(places[min(1, len(places) - 1)], "`.target` is missing", hint)
    elif "target" in heads and (fault := _target_fault(module)) is not None:
        yield Problem(heads["target"], *fault, "version")
    if "version" in heads:
        yield from _late(module.source.text, places[-1])


def _structure(offset: int, message: str, hint: str) -> Problem:
    return Problem(offset, message, hint, "structure")


def _heads(text: str) -> tuple[dict[str, int], list[int]]:
    """Offsets of the directives at the top, and of all statements up to the first other one.

    Several `.target` may stand in a row (measured).
    """
    heads: dict[str, int] = {}
    places = [_after_space(text, 0)]
    last = ""
    while (match := _DIRECTIVE.match(text, places[-1])) is not None and (
        match[1] not in heads or match[1] == last == "target"
    ):
        last = match[1]
        heads.setdefault(last, places[-1])
        places.append(_after_space(text, match.end()))
    return heads, places


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _late(text: str, start: int) -> Iterator[Problem]:
    """The same directives anywhere else."""
    for word in ("version", "target", "address_size"):
        at = text.find("\n." + word, max(0, start - 1))
        if (
            at >= 0
            and re.match(r"\.\w+[ \t]+[\w.]", text[at + 1 : at + 40])
            and not _commented(text, at)
        ):
            hint = "a module has it once, at the top"
            yield _structure(at + 1, f"`.{word}` stands after other statements", hint)


def _commented(text: str, at: int) -> bool:
    """Whether a position lies inside a block comment."""
    return text.rfind("/*", 0, at) > text.rfind("*/", 0, at)


def _version_fault(module: Module) -> tuple[str, str] | None:
    from ptxlint.arch.targets import LATEST_PTX_VERSION, is_released

    version = module.version
    if version == (0, 0) or version > LATEST_PTX_VERSION or is_released(version):
        return None
    return f"there is no PTX ISA {version[0]}.{version[1]}", "use a released version"


def _target_fault(module: Module) -> tuple[str, str] | None:
    from ptxlint.arch.targets import TargetError, ptx_version_for, version_accepts

    arch = module.targets[0] if module.targets else ""
    try:
        since = ptx_version_for(arch)
        accepted = version_accepts(module.version, arch)
    except TargetError:
        return f"`{arch}` is no architecture", "name one such as `sm_80`"
    if accepted is not False or module.version == (0, 0):
        return None
    if since is not None and not module.items:
        return None  # ptxas compares the two only where there is something to assemble
    if since is None:
        return f"`{arch}` is no architecture that PTX ISA {_dotted(module.version)} knows", ""
    return (
        f"`{arch}` needs PTX ISA {_dotted(since)}; the module says {_dotted(module.version)}",
        "raise `.version`",
    )


def _dotted(version: tuple[int, int]) -> str:
    return f"{version[0]}.{version[1]}"


# Declarations ---------------------------------------------------------------------------------
def check_module(module: Module) -> Iterator[Problem]:
    """Variables and function headers."""
    for item in module.items:
        if isinstance(item, GlobalDeclaration):
            for variable in item.variables:
                yield from _variable_faults(variable, item.offset)
    first: dict[str, Function] = {}
    for function in module.functions:
        yield from _header_faults(function, module.source.text)
        before = first.setdefault(function.name, function)
        if before is not function and _signature(before) != _signature(function):
            message = f"`{function.name}` is declared with other parameters above"
            yield Problem(function.offset, message, "make both alike", "structure")
        for variable in (*function.params, *function.returns, *function.variables):
            yield from _variable_faults(variable, variable.offset)
    yield from check_declarations(module)


def _signature(function: Function) -> tuple[object, ...]:
    """What must agree between declarations; names may differ."""
    sides = (function.params, function.returns)
    return tuple(tuple((v.space, v.type, v.dims, v.vector) for v in side) for side in sides)


def _header_faults(function: Function, text: str) -> Iterator[Problem]:
    directives = function.directives
    if "maxntid" in directives and "reqntid" in directives:
        first, second = sorted(
            ("maxntid", "reqntid"), key=lambda word: text.find("." + word, function.offset)
        )
        at = text.find("." + second, function.offset)
        message = f"`.{second}` cannot stand beside `.{first}`"
        yield Problem(at, message, "keep one of them", "structure")


def _variable_faults(variable: Variable, offset: int) -> Iterator[Problem]:
    align = variable.align
    if align and align & (align - 1):
        yield Problem(offset, f"an alignment of {align} is no power of two", "", "operand")
    value = variable.initializer
    if value is None:
        return
    if variable.space not in ("global", "const"):
        message = f"a .{variable.space} variable cannot be initialised"
        yield Problem(offset, message, "store to it in the kernel", "operand")
        return
    if variable.type.endswith("ref"):
        return  # textures, samplers and surfaces have fields
    fault = _initialiser_fault(variable, value, variable.dims)
    if fault:
        yield Problem(offset, fault, "", "type")


def _initialiser_fault(variable: Variable, value: Operand, dims: tuple[int | None, ...]) -> str:
    """Why a value does not do for a variable of these extents; "" if it does."""
    if dims or (variable.vector > 1 and isinstance(value, Vector)):
        if not isinstance(value, Vector):
            return "an array is initialised with `{…}`"
        extent = dims[0] if dims else variable.vector
        if not value.elements and (not dims or not extent):
            return "`{}` stands where the number of elements is not known"
        if extent is not None and len(value.elements) > extent:
            return f"{len(value.elements)} values for {extent} elements"
        if not dims:
            return ""
        inner = (_initialiser_fault(variable, e, dims[1:]) for e in value.elements)
        return next(filter(None, inner), "")
    if isinstance(value, Vector):
        return "`{…}` stands where a single value is needed"
    return _value_fault(variable.type, value)


def _value_fault(type_name: str, value: Operand) -> str:
    """Bit types take any literal (measured); symbols and expressions are not looked at."""
    if type_name in ("f16", "f16x2"):
        return f"a .{type_name} variable takes no initial value"
    if not isinstance(value, Immediate):
        return ""
    if type_name in ("f32", "f64") and value.kind == "int":
        return f"`{value.text}` is no float value for a .{type_name} variable"
    if type_name[0] in "us" and type_name[1:].isdigit() and value.kind != "int":
        return f"`{value.text}` is no integer value for a .{type_name} variable"
    return ""
