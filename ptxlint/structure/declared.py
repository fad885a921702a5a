"""What a kernel stands on besides its instructions: parameters, limits of the launch, arrays, and
the functions that it calls.

Names count for nothing where the module says what they stand for. That of a function without a body
(`vprintf`) is all that is known of it, and counts.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ptxlint.ir.function import Function, Pragma, Prototype, TargetList, Variable
from ptxlint.ir.module import Alias, Module
from ptxlint.ir.operand import (
    Address,
    Expr,
    Group,
    Immediate,
    Indexed,
    Negated,
    Operand,
    SpecialRegister,
    Symbol,
    Vector,
)


class Declared(NamedTuple):
    """One declaration without its name: its form, and the constants in it. `title` and `text` are
    for people, with the names."""

    title: str
    form: str
    constants: tuple[Immediate, ...]
    text: str


class Reached:
    """The functions that a kernel reaches, itself first, and what they name, in the order in which
    they are met. Asking for the word of a symbol adds what stands behind it."""

    def __init__(self, kernel: Function, module: Module) -> None:
        self.functions: list[Function] = []
        self.declared: list[Declared] = []
        self._module = module
        self._kernel = kernel
        self._bodies = {f.name: f for f in module.functions if not f.is_declaration}
        self._declarations = {f.name: f for f in module.functions if f.is_declaration}
        self._aliases = {i.name: i.target for i in module.items if isinstance(i, Alias)}
        self._words: dict[tuple[int, str], str] = {}
        for item in module.items:
            if isinstance(item, Pragma):
                self._plain("`.pragma`", " ".join(item.texts))
        self._enter(kernel, "")

    def word(self, fn: Function, symbol: Symbol, at: int) -> str:
        """What stands for a symbol at an instruction of a function."""
        if symbol.kind == "targets" and symbol.name in fn.targets:
            return self._targets(fn, fn.targets[symbol.name], at)
        # Parameters and local arrays are those of their function.
        word = self._words.get((id(fn), symbol.name)) or self._words.get((0, symbol.name))
        return word or self._new(fn, symbol, at)

    def _new(self, fn: Function, symbol: Symbol, at: int) -> str:
        """The word of a symbol that is met for the first time."""
        name = symbol.name
        local = [v for v in fn.variables if v.name == name]
        if local:
            return self._array(fn, (id(fn), name), local)
        if symbol.kind == "prototype":
            return self._prototype(fn, name)
        body = self._bodies.get(self._aliases.get(name, name))
        if body is not None:
            word = self._words[0, name] = f"function{len(self._words)}"
            self._enter(body, name)
            return word
        if name in self._module.variables:
            return self._array(fn, (0, name), [self._module.variables[name]])
        # Machine code calls what lies behind a kernel as a label of the kernel.
        target = next((label.target for label in fn.labels if label.name == name), None)
        if target is not None:
            return f"@{target - at}"
        word = self._words[0, name] = f"`{name.replace(self._kernel.name, '…')}`"
        declaration = self._declarations.get(name)
        if declaration is not None:
            self._signature(declaration, name)
        return word

    def _enter(self, fn: Function, name: str) -> None:
        """A function whose body counts from now on."""
        self.functions.append(fn)
        for at, parameter in enumerate((*fn.params, *fn.returns)):
            self._words.setdefault((id(fn), parameter.name), f"param{at}")
        self._signature(fn, name)

    def _signature(self, fn: Function, name: str) -> None:
        where = f" of `{name}`" if name else ""
        for at, parameter in enumerate(fn.params, 1):
            self._plain(f"parameter {at}{where}", _variable(parameter))
        for at, result in enumerate(fn.returns, 1):
            self._plain(f"result {at}{where}", _variable(result))
        for directive, values in sorted(fn.directives.items()):
            # How many registers machine code takes is a measure, not structure.
            if directive == "registers":
                continue
            self._plain(f"`.{directive}`{where}", " ".join(map(str, values)))
        for pragma in fn.pragmas:
            self._plain(f"`.pragma`{where}", pragma)

    def _targets(self, fn: Function, targets: TargetList, at: int) -> str:
        """A list of labels or functions, each as seen from an instruction."""
        places = {label.name: label.target for label in fn.labels}
        words = [
            f"@{places[name] - at}"
            if name in places
            else self.word(fn, Symbol(name, "function"), at)
            for name in targets.targets
        ]
        return f"{targets.kind}({','.join(words)})"

    def _prototype(self, fn: Function, name: str) -> str:
        found = next((i for i in fn.items if isinstance(i, Prototype) and i.name == name), None)
        word = self._words[id(fn), name] = f"prototype{len(self._words)}"
        if found is not None:
            parts = [_variable(v) for v in (*found.returns, *found.params)]
            self._plain(f"prototype `{name}`", f"{len(found.returns)} {parts} {found.attributes}")
        return word

    def _array(self, fn: Function, key: tuple[int, str], variables: list[Variable]) -> str:
        word = self._words[key] = f"array{len(self._words)}"
        for variable in variables:
            numbers: list[Immediate] = []
            form = _variable(variable)
            if variable.initializer is not None:
                initial = self._initial(fn, variable.initializer, numbers)
                form = f"{form} = {''.join(initial)}"
            text = " ".join([form, *(n.text for n in numbers)])
            self.declared.append(Declared(f"array `{key[1]}`", form, tuple(numbers), text))
        return word

    def _initial(self, fn: Function, value: Operand, numbers: list[Immediate]) -> Iterator[str]:
        """What an array holds at first; its numbers go into a list."""
        if isinstance(value, Immediate):
            numbers.append(value)
            yield "#"
        elif isinstance(value, Symbol):
            yield self.word(fn, value, 0)
        elif isinstance(value, SpecialRegister):
            yield value.name
        elif isinstance(value, (Vector, Group)):
            yield "{"
            for element in value.elements:
                yield from self._initial(fn, element, numbers)
                yield ","
            yield "}"
        else:
            yield from self._composed(fn, value, numbers)

    def _composed(self, fn: Function, value: Operand, numbers: list[Immediate]) -> Iterator[str]:
        if isinstance(value, Expr):
            sign, parts = value.operator, value.operands
        elif isinstance(value, Negated):
            sign, parts = value.sign, (value.operand,)
        elif isinstance(value, Address):
            sign, parts = f"[{value.offset}", (value.base, *value.rest)
        elif isinstance(value, Indexed):
            sign, parts = "[]", (value.base, value.subscript)
        else:
            yield repr(value)
            return
        yield f"({sign}"
        for part in parts:
            yield " "
            yield from self._initial(fn, part, numbers)
        yield ")"

    def _plain(self, title: str, text: str) -> None:
        """A declaration whose text names nothing."""
        self.declared.append(Declared(title, text, (), text))


def _variable(variable: Variable) -> str:
    """A declaration without its name and its value."""
    extents = "".join("[]" if extent is None else f"[{extent}]" for extent in variable.dims)
    linked = "extern " if "extern" in variable.linkage else ""
    vector = f" .v{variable.vector}" if variable.vector > 1 else ""
    words = "".join(f" .{word}" for word in variable.attributes)
    align = f" .align {variable.align}" if variable.align else ""
    return f"{linked}.{variable.space}{words}{align}{vector} .{variable.type}{extents}"


__all__ = ["Declared", "Reached"]
