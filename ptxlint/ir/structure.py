"""Structural equality of modules: everything but offsets, comments and layout."""

from __future__ import annotations

from typing import Any

from ptxlint.ir.function import Function, ScopeClose, ScopeOpen
from ptxlint.ir.instruction import Instr
from ptxlint.ir.module import Module, Section
from ptxlint.ir.operand import Label, Register
from ptxlint.source import Loc


def module_key(module: Module) -> tuple[Any, ...]:
    """A nested tuple that is equal for equal modules."""
    text = module.source.text
    items = tuple(
        (item.name, text[item.start : item.end]) if isinstance(item, Section) else _key(item)
        for item in module.items
    )
    return (module.version, module.targets, module.address_size, items)


def same_module(left: Module, right: Module) -> bool:
    """True if both say the same, wherever it stands in the text."""
    return module_key(left) == module_key(right)


def function_key(function: Function) -> tuple[Any, ...]:
    """A nested tuple that is equal for equal functions."""
    return (
        function.name,
        function.kind,
        function.linkage,
        function.is_declaration,
        _key(function.params),
        _key(function.returns),
        tuple(function.directives.items()),
        function.pragmas,
        tuple(_key(item) for item in function.items),
    )


def _key(value: Any) -> Any:
    """The key of any part; a field named `offset` of a named tuple does not count."""
    if isinstance(value, Instr):
        return (
            value.shape.guard,
            value.shape.mnemonic,
            *map(_key, value.args[:1]),
            _key(value.operands),
            _key(value.loc),
        )
    if isinstance(value, Register):
        return ("register", value.name, value.type, value.scope, value.vector)
    if isinstance(value, Label):
        return ("label", value.name, value.scope, value.target)
    if isinstance(value, Loc):
        return _loc_key(value)
    if isinstance(value, Function):
        return function_key(value)
    if isinstance(value, ScopeOpen | ScopeClose):
        return (type(value).__name__, value.scope)
    if isinstance(value, tuple):
        fields = getattr(value, "_fields", None)
        if fields is None or "offset" not in fields or type(value).__name__ == "Address":
            return (type(value).__name__, *map(_key, value))
        return (
            type(value).__name__,
            *(_key(v) for f, v in zip(fields, value, strict=True) if f != "offset"),
        )
    return value


def _loc_key(loc: Loc) -> tuple[Any, ...]:
    return tuple(
        (link.file, link.line, link.column, link.function, link.function_offset)
        for link in loc.chain()
    )
