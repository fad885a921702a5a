"""Faults of declarations: spaces, types and extents of variables, header directives, `.file`.

Measured with ptxas 12.9 and 13.4 (PTX 4.1 to 9.4); what is not known passes. Source: PTX ISA,
"State Spaces, Types, and Variables", "Directives".
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from ptxlint.ir.function import Function, Variable
from ptxlint.ir.module import FileEntry, GlobalDeclaration, Module
from ptxlint.ir.types import FUNDAMENTAL
from ptxlint.source import Problem

_TYPES: Final = FUNDAMENTAL | {"texref", "samplerref", "surfref"}
_LINKAGE: Final = frozenset({"visible", "extern", "weak", "common"})
_SPACES: Final = frozenset("global shared local const param".split())
_EXTENTS: Final[dict[str, int]] = {
    "maxntid": 3,
    "reqntid": 3,
    "reqnctapercluster": 3,
    "maxnreg": 1,
    "minnctapersm": 1,
    "maxnctapersm": 1,
}
"""Header directives that take this many numbers at most, and at least one."""
_POSITIVE: Final = frozenset(_EXTENTS) - {"reqnctapercluster"}
_KERNEL_DIRECTIVES: Final = frozenset(_EXTENTS) | {
    "explicitcluster",
    "maxclusterrank",
    "blocksareclusters",
}
_DIRECTIVES: Final = _KERNEL_DIRECTIVES | set(
    "noreturn abi_preserve abi_preserve_after abi_preserve_control attribute local_maxnreg"
    " minperctamemory metadata_domain reserved retaddr_allocno scratch unique unified".split()
)
"""All header directives that assemblers know, described or not."""
_OPEN: Final = re.compile(r"[\w$%]+\s*\[\s*\]")


def check_declarations(module: Module) -> Iterator[Problem]:
    """All declarations of a module, in any order."""
    if module.address_size not in (0, 32, 64):
        at = module.source.text.find(".address_size")
        message = f"an address has 32 or 64 bits, not {module.address_size}"
        yield Problem(max(at, 0), message, "", "structure")
    files: set[int] = set()
    text = module.source.text
    seen: set[tuple[object, ...]] = set()
    for item in module.items:
        if isinstance(item, FileEntry):
            if item.number in files:
                message = f"file number {item.number} is given twice"
                yield Problem(item.offset, message, "number each file once", "duplicate")
            files.add(item.number)
        elif isinstance(item, GlobalDeclaration):
            for variable in item.variables:
                yield from _variable(variable, variable.offset, text, seen)
    for function in module.functions:
        yield from _header(function, text)
        for parameter in (*function.params, *function.returns):
            yield from _parameter(parameter, function)
        for variable in function.variables:
            yield from _variable(variable, variable.offset, text, seen)


# Variables ------------------------------------------------------------------------------------
def _variable(
    variable: Variable, offset: int, text: str, seen: set[tuple[object, ...]]
) -> Iterator[Problem]:
    """`seen` keeps what was found without fault, whatever its name."""
    key = (*variable[1:4], *variable[5:8], variable.initializer is None)
    if key in seen:
        return
    message = _shape_fault(variable) or _storage_fault(variable, text)
    if message:
        yield Problem(offset, message, "", "type")
    elif None not in variable.dims:
        seen.add(key)


def _shape_fault(variable: Variable) -> str:
    """A type or a word that no variable has."""
    if variable.type not in _TYPES:
        return f"`.{variable.type}` is no type of a variable"
    if variable.vector == 8:
        return "a variable has no vector of 8 elements"
    if any(extent is not None and extent < 0 for extent in variable.dims):
        return "a negative extent"
    if len(variable.linkage) > 1:
        return f"`.{variable.linkage[1]}` cannot stand beside `.{variable.linkage[0]}`"
    return ""


def _storage_fault(variable: Variable, text: str) -> str:
    """A type that the space does not hold, words that do not belong here, an open extent."""
    if variable.type == "pred":
        return "a predicate lives in a register only"
    if variable.type == "f16x2" and variable.space == "param":
        return "a parameter cannot be `.f16x2`"
    for word in variable.attributes:
        if not word.startswith("attribute:"):
            return f"`.{word}` cannot stand in this declaration"
    if variable.initializer is None and "extern" not in variable.linkage:
        extent = variable.dims[0] if variable.dims else 1
        # An extent that could not be told is none that is missing.
        if extent == 0 or (extent is None and _OPEN.match(text, variable.offset)):
            return f"`{variable.name}` has no size"
    return ""


def _parameter(parameter: Variable, function: Function) -> Iterator[Problem]:
    message = _shape_fault(parameter) or _place_fault(parameter, function)
    if message:
        yield Problem(parameter.offset, message, "", "type")


def _place_fault(parameter: Variable, function: Function) -> str:
    name, space = parameter.name, parameter.space
    if function.is_kernel and space != "param":
        return f"the kernel parameter `{name}` must be in `.param`"
    if space not in ("param", "reg"):
        return f"the parameter `{name}` must be in `.param` or `.reg`"
    if space == "param" and parameter.type in ("pred", "f16x2"):
        return f"a parameter cannot be `.{parameter.type}`"
    if function.is_kernel and 0 in parameter.dims:
        return f"the kernel parameter `{name}` has no size"
    words = [w for w in parameter.attributes if not w.startswith("attribute:")]
    if words and words[0] != "ptr":
        return f"`.{words[0]}` stands without `.ptr`"
    if words and not function.is_kernel:
        return "`.ptr` is for kernel parameters only"
    if len(words) > 2 or (len(words) == 2 and words[1] not in _SPACES - {"param"}):
        return f"`.{words[-1]}` cannot stand after `.ptr`"
    return ""


# Headers --------------------------------------------------------------------------------------
def _header(function: Function, text: str) -> Iterator[Problem]:
    linkage = [word for word in function.linkage if word in _LINKAGE]
    if len(linkage) > 1:
        message = f"`.{linkage[1]}` cannot stand beside `.{linkage[0]}`"
        yield Problem(function.offset, message, "keep one of them", "structure")
    if "extern" in linkage and not function.is_declaration:
        message = f"`{function.name}` is `.extern` and has a body"
        yield Problem(function.offset, message, "drop `.extern`", "structure")
    if function.is_kernel and function.is_declaration:
        yield from _unfinished(function, text)
    for word, values in function.directives.items():
        message = "" if word in _DIRECTIVES else f"`.{word}` is no directive of a function"
        message = message or _directive_fault(word, values, function.is_kernel)
        if message:
            at = text.find("." + word, function.offset)
            yield Problem(max(at, function.offset), message, "", "structure")


def _unfinished(function: Function, text: str) -> Iterator[Problem]:
    """A kernel's head with neither `;` nor a body; for a `.func` ptxas takes that."""
    if text[function.end_offset : function.end_offset + 1] not in (";", ""):
        message = f"`{function.name}` has neither a body nor a `;`"
        yield Problem(function.end_offset, message, "", "structure")


def _directive_fault(word: str, values: tuple[int | str, ...], is_kernel: bool) -> str:
    if word in _KERNEL_DIRECTIVES and not is_kernel:
        return f"`.{word}` is for kernels only"
    if word == "noreturn" and is_kernel:
        return "`.noreturn` is for functions only"
    most = _EXTENTS.get(word)
    if most is None:
        return ""
    if not values or len(values) > most:
        wanted = "one number" if most == 1 else f"one to {most} numbers"
        return f"`.{word}` takes {wanted}, not {len(values) or 'none'}"
    if word in _POSITIVE and any(v == 0 for v in values):
        return f"`.{word}` takes positive numbers only"
    return ""
