"""IR back to PTX text. What is printed parses to an equal module (`ptxlint.ir.structure`)."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.ir.function import (
    Function,
    Item,
    Pragma,
    Prototype,
    RegisterDeclaration,
    ScopeClose,
    ScopeOpen,
    TargetList,
    Variable,
)
from ptxlint.ir.instruction import Instr
from ptxlint.ir.module import (
    Alias,
    DwarfLine,
    FileEntry,
    GlobalDeclaration,
    Module,
    ModuleItem,
    Section,
)
from ptxlint.ir.operand import (
    Address,
    Expr,
    Group,
    Immediate,
    Indexed,
    Label,
    Negated,
    Operand,
    Pair,
    Register,
    Selected,
    Sink,
    SpecialRegister,
    Symbol,
    Vector,
)
from ptxlint.source import Loc


def print_module(module: Module) -> str:
    """The whole module as PTX."""
    lines = []
    if module.version != (0, 0):
        lines.append(f".version {module.version[0]}.{module.version[1]}")
    if module.targets:
        lines.append(".target " + ", ".join(module.targets))
    if module.address_size:
        lines.append(f".address_size {module.address_size}")
    for item in module.items:
        lines += _module_item(item, module)
    return "\n".join(lines) + "\n"


def _module_item(item: ModuleItem, module: Module) -> Iterator[str]:
    if isinstance(item, Function):
        yield from function_lines(item)
    elif isinstance(item, GlobalDeclaration):
        for variable in item.variables:
            yield format_variable(variable) + ";"
    elif isinstance(item, FileEntry):
        stamp = "" if item.timestamp is None else f", {item.timestamp}, {item.size}"
        yield f'.file {item.number} "{item.name}"{stamp}'
    elif isinstance(item, Alias):
        yield f".alias {item.name}, {item.target};"
    elif isinstance(item, Section):
        yield f".section {item.name} {{{module.source.text[item.start : item.end]}}}"
    elif isinstance(item, DwarfLine):
        yield item.text
    elif isinstance(item, Pragma):
        yield _pragma(item)
    else:
        yield _loc(item)


def function_lines(function: Function) -> Iterator[str]:
    """A function as lines of PTX."""
    head = "".join(_linkage(word) for word in function.linkage) + "." + function.kind
    if function.returns:
        head += " (" + ", ".join(map(format_variable, function.returns)) + ")"
    head += f" {function.name}"
    if function.params:
        yield head + "("
        for at, param in enumerate(function.params):
            yield "\t" + format_variable(param) + ("," if at + 1 < len(function.params) else "")
        yield ")"
    else:
        yield head + "()"
    for name, values in function.directives.items():
        yield f".{name} {', '.join(map(str, values))}".rstrip()
    for text in function.pragmas:
        yield f'.pragma "{text}";'
    if function.is_declaration:
        yield ";"
        return
    yield "{"
    for item in function.items:
        yield _item(item)
    yield "}"


def _item(item: Item) -> str:
    """One item of a body as a line."""
    if isinstance(item, Instr):
        return "\t" + format_instruction(item)
    if isinstance(item, Label):
        return f"{item.name}:"
    if isinstance(item, Loc):
        line = "\t" + _loc(item)
        return f"\t// begin inline asm\n{line}\n\t// end inline asm" if item.in_asm else line
    if isinstance(item, RegisterDeclaration):
        vector = f" .v{item.vector}" if item.vector > 1 else ""
        names = ", ".join(f"{n}<{c}>" if c else n for n, c in item.names)
        return f"\t.reg{vector} .{item.type} {names};"
    if isinstance(item, Variable):
        return f"\t{format_variable(item)};"
    if isinstance(item, ScopeOpen):
        return "\t{"
    if isinstance(item, ScopeClose):
        return "\t}"
    if isinstance(item, TargetList):
        return f"{item.name}: .{item.kind} {', '.join(item.targets)};"
    if isinstance(item, Prototype):
        return _prototype(item)
    return "\t" + _pragma(item)


def _prototype(item: Prototype) -> str:
    returns = f"({', '.join(map(format_variable, item.returns))}) " if item.returns else ""
    params = ", ".join(map(format_variable, item.params))
    words = "".join(f" .{name} {', '.join(map(str, v))}".rstrip() for name, v in item.attributes)
    return f"{item.name}: .callprototype {returns}_ ({params}){words};"


def _pragma(item: Pragma) -> str:
    return ".pragma " + ", ".join(f'"{text}"' for text in item.texts) + ";"


def _loc(loc: Loc) -> str:
    line = f".loc {loc.file} {loc.line} {loc.column}"
    if loc.parent is None:
        return line
    shift = f"+{loc.function_offset}" if loc.function_offset else ""
    parent = loc.parent
    return (
        f"{line}, function_name {loc.function}{shift}"
        f", inlined_at {parent.file} {parent.line} {parent.column}"
    )


def _linkage(word: str) -> str:
    return f"{_attribute(word) if word.startswith('attribute:') else '.' + word} "


def _attribute(word: str) -> str:
    return f".attribute(.{word.removeprefix('attribute:')})"


def format_variable(variable: Variable) -> str:
    """A variable or parameter declaration, without its semicolon."""
    pointer = "ptr" in variable.attributes
    align = f".align {variable.align}" if variable.align else ""
    words = [f".{w}" for w in variable.linkage]
    words.append(f".{variable.space}" if variable.space else "")
    words += [_attribute(a) for a in variable.attributes if a.startswith("attribute:")]
    if not pointer:
        words.append(align)
    words.append(f".v{variable.vector}" if variable.vector > 1 else "")
    words.append(f".{variable.type}")
    words += [f".{a}" for a in variable.attributes if not a.startswith("attribute:")]
    if pointer:
        words.append(align)
    dims = "".join(f"[{'' if d is None else d}]" for d in variable.dims)
    value = "" if variable.initializer is None else f" = {format_operand(variable.initializer)}"
    return " ".join(w for w in words if w) + f" {variable.name}{dims}{value}"


def format_instruction(instr: Instr) -> str:
    """One instruction with its semicolon."""
    guard = f"{instr.shape.guard}{format_operand(instr.args[0])} " if instr.shape.guard else ""
    operands = ", ".join(map(format_operand, instr.operands))
    return f"{guard}{instr.shape.mnemonic}{' ' + operands if operands else ''};"


def format_operand(operand: Operand) -> str:
    """One operand as PTX."""
    if isinstance(operand, Register | Label | SpecialRegister | Symbol):
        return operand.name
    if isinstance(operand, Immediate):
        return operand.text
    if isinstance(operand, Sink):
        return "_"
    if isinstance(operand, Negated):
        return operand.sign + format_operand(operand.operand)
    if isinstance(operand, Selected):
        return f"{operand.register.name}.{operand.selector}"
    if isinstance(operand, Pair):
        return f"{format_operand(operand.first)}|{format_operand(operand.second)}"
    if isinstance(operand, Vector):
        return "{" + ", ".join(map(format_operand, operand.elements)) + "}"
    if isinstance(operand, Group):
        return "(" + ", ".join(map(format_operand, operand.elements)) + ")"
    if isinstance(operand, Address):
        return _address(operand)
    if isinstance(operand, Indexed):
        return f"{format_operand(operand.base)}[{format_operand(operand.subscript)}]"
    return _expression(operand)


def _address(address: Address) -> str:
    base = format_operand(address.base) + (f"+{address.offset}" if address.offset else "")
    inside = ", ".join((base, *map(format_operand, address.rest)))
    return f"[{inside}]" + (".unified" if address.unified else "")


def _expression(expr: Expr) -> str:
    parts = [format_operand(o) for o in expr.operands]
    if expr.operator == "?":
        return f"{parts[0]} ? {parts[1]} : {parts[2]}"
    if expr.operator == "f":
        return f"{parts[0]}({parts[1]})"
    if expr.operator.startswith("."):
        return parts[0] + expr.operator
    if len(parts) == 1:
        return f"(.{expr.operator}){parts[0]}"
    return f" {expr.operator} ".join(parts)
