"""Faults that people make in Triton kernels, as edits of the source found in its syntax tree.

`mutations(text, kernel)` lists every place of a kernel where one of the operators applies, in the
order of the source. An edit replaces one expression or statement and keeps all lines above it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple, TypeGuard

OPERATORS = (
    "drop load mask",
    "drop store mask",
    "drop conjunct",
    "off by one",
    "change fill",
    "drop re-mask",
    "change re-mask",
    "overwrite",
    "drop rescale",
    "drop stride",
    "drop eps",
)


class Mutation(NamedTuple):
    """One edit: what it does, the line and column of what it replaces, and the whole new source.

    `access_line` is where the access begins of which a mask or a fill is replaced. `arrays` are the
    pointers some of whose accesses go by what is replaced and some do not, as far
    as addresses are concerned. `guards` and `selects` say whether masks of accesses, and conditions
    of `tl.where`, go by it.
    """

    operator: str
    kernel: str
    line: int
    column: int
    change: str
    text: str
    access_line: int
    arrays: frozenset[str]
    guards: bool
    selects: bool


class _Edit(NamedTuple):
    operator: str
    node: ast.AST
    new: str
    access: ast.AST | None = None


def mutations(text: str, kernel: str) -> list[Mutation]:
    """All mutations of one kernel of a module."""
    (function,) = (
        node
        for node in ast.parse(text).body
        if isinstance(node, ast.FunctionDef) and node.name == kernel
    )
    edits = [edit for operator in _FINDERS for edit in operator(function)]
    lines = text.split("\n")
    found: dict[tuple[int, int, str], Mutation] = {}
    for operator, node, new, access in edits:
        start, end = _span(lines, node)
        old = text[start:end]
        if "".join(old.split()) == "".join(new.split()):
            continue
        line, column = node.lineno, node.col_offset + 1  # type: ignore[attr-defined]
        begins = line if access is None else access.lineno  # type: ignore[attr-defined]
        changed = text[:start] + new + text[end:]
        short = f"`{' '.join(old.split())}` to `{' '.join(new.split())}`"
        guards, selects = _is_guard(function, node), _is_condition(function, node)
        arrays = _arrays(function, node)
        mutation = Mutation(
            operator, kernel, line, column, short, changed, begins, arrays, guards, selects
        )
        found.setdefault((start, OPERATORS.index(operator), new), mutation)
    return [found[key] for key in sorted(found)]


def _span(lines: list[str], node: ast.AST) -> tuple[int, int]:
    """Start and end of a node in the text; columns of the syntax tree are those of ASCII here."""

    def at(line: int, column: int) -> int:
        return sum(len(lines[number]) + 1 for number in range(line - 1)) + column

    return (
        at(node.lineno, node.col_offset),  # type: ignore[attr-defined]
        at(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
    )


# What a kernel is made of ---------------------------------------------------------------------
def _is_call(node: ast.AST, *names: str) -> bool:
    """True for `tl.NAME(…)`."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Attribute)
        and isinstance(node.func.value, ast.Name)
        and node.func.value.id == "tl"
        and node.func.attr in names
    )


def _calls(function: ast.FunctionDef, *names: str) -> list[ast.Call]:
    return [n for n in ast.walk(function) if isinstance(n, ast.Call) and _is_call(n, *names)]


def _parameters(function: ast.FunctionDef) -> set[str]:
    """Parameters that are neither pointers nor compile-time constants."""
    return {
        a.arg
        for a in function.args.args
        if a.annotation is None and not a.arg.lower().endswith("ptr")
    }


def _loops(function: ast.FunctionDef) -> list[ast.For]:
    return [n for n in ast.walk(function) if isinstance(n, ast.For)]


def _keyword(call: ast.Call, name: str) -> ast.keyword | None:
    return next((k for k in call.keywords if k.arg == name), None)


def _without(call: ast.Call, *names: str) -> str:
    kept = [k for k in call.keywords if k.arg not in names]
    return ast.unparse(ast.Call(call.func, call.args, kept))


def _value(node: ast.AST) -> float | None:
    """The number that an expression is: a literal, its negative, or `float("inf")`."""
    try:
        found = ast.literal_eval(node)
    except ValueError:
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            inner = _value(node.operand)
            return None if inner is None else -inner
        text = ast.unparse(node)
        return float("inf") if text == "float('inf')" else None
    return float(found) if isinstance(found, int | float) else None


def _others(value: float) -> list[str]:
    """Fills to try in place of one."""
    if value == 0.0:
        return ["1.0", '-float("inf")']
    if value < -1e3:
        return ["0.0"]
    return ["0.0"] if value == 1.0 else []


def _arrays(function: ast.FunctionDef, edited: ast.AST) -> frozenset[str]:
    """The pointers that are used both with an address that goes by an expression and without."""
    pointers = {a.arg for a in function.args.args if a.arg.lower().endswith("ptr")}
    found: dict[str, set[bool]] = {}
    for call in _calls(function, "load", "store", "atomic_add", "atomic_max"):
        nodes, names = _behind(function, call.args[0])
        for pointer in names & pointers:
            found.setdefault(pointer, set()).add(edited in nodes)
    return frozenset(pointer for pointer, ways in found.items() if len(ways) == 2)


def _is_guard(function: ast.FunctionDef, edited: ast.AST) -> bool:
    """True if the mask of an access goes by an expression."""
    masks = [
        mask.value
        for call in _calls(function, "load", "store", "atomic_add", "atomic_max")
        if (mask := _keyword(call, "mask")) is not None
    ]
    return any(edited in _behind(function, mask)[0] for mask in masks)


def _is_condition(function: ast.FunctionDef, edited: ast.AST) -> bool:
    """True if the condition of a `tl.where` goes by an expression."""
    return any(edited in _behind(function, call.args[0])[0] for call in _calls(function, "where"))


def _behind(function: ast.FunctionDef, node: ast.AST) -> tuple[set[ast.AST], set[str]]:
    """All nodes and names that an expression goes by, through assignments in any order."""
    assignments = [n for n in ast.walk(function) if isinstance(n, ast.Assign | ast.AugAssign)]
    nodes, names = set(ast.walk(node)), _names(node)
    grew = True
    while grew:
        grew = False
        for made in assignments:
            targets = made.targets if isinstance(made, ast.Assign) else [made.target]
            if made.value not in nodes and any(_names(t) & names for t in targets):
                nodes |= {made, *ast.walk(made.value)}
                names |= _names(made.value)
                grew = True
    return nodes, names


# Operators ------------------------------------------------------------------------------------
def _masks(function: ast.FunctionDef) -> Iterator[_Edit]:
    """Accesses without their mask, or without one of the conditions in it."""
    for call in _calls(function, "load", "store", "atomic_add", "atomic_max"):
        mask = _keyword(call, "mask")
        if mask is None:
            continue
        kind = "load" if _is_call(call, "load") else "store"
        yield _Edit(f"drop {kind} mask", call, _without(call, "mask", "other"))
        if isinstance(mask.value, ast.BinOp) and isinstance(mask.value.op, ast.BitAnd):
            for side in (mask.value.left, mask.value.right):
                yield _Edit("drop conjunct", mask.value, ast.unparse(side), call)


def _bounds(function: ast.FunctionDef) -> Iterator[_Edit]:
    """`<=` for `<` against something that holds a parameter."""
    known = _parameters(function)
    for node in ast.walk(function):
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.Lt):
            names = {n.id for n in ast.walk(node.comparators[0]) if isinstance(n, ast.Name)}
            if names & known:
                changed = ast.Compare(node.left, [ast.LtE()], node.comparators)
                yield _Edit("off by one", node, ast.unparse(changed))


def _fills(function: ast.FunctionDef) -> Iterator[_Edit]:
    """Another value for masked lanes."""
    for call in _calls(function, "load"):
        other = _keyword(call, "other")
        value = None if other is None else _value(other.value)
        if other is not None and value is not None:
            for new in _others(value):
                yield _Edit("change fill", other.value, new, call)


def _selections(function: ast.FunctionDef) -> Iterator[_Edit]:
    """`tl.where(inside, x, constant)` left out or with another constant."""
    for call in _calls(function, "where"):
        if len(call.args) != 3:
            continue
        value = _value(call.args[2])
        if value is None or _value(call.args[1]) is not None:
            continue
        yield _Edit("drop re-mask", call, f"({ast.unparse(call.args[1])})")
        for new in _others(value):
            yield _Edit("change re-mask", call.args[2], new)


def _accumulators(function: ast.FunctionDef) -> Iterator[_Edit]:
    """`acc = x` for `acc += x` in a loop, in each form in which a sum is written."""
    for loop in _loops(function):
        for node in ast.walk(loop):
            if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add):
                if isinstance(node.target, ast.Name):
                    new = f"{node.target.id} = {ast.unparse(node.value)}"
                    yield _Edit("overwrite", node, new)
                continue
            if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
                continue
            name, value = node.targets[0].id, node.value
            if isinstance(value, ast.Call) and _is_call(value, "dot") and len(value.args) == 3:
                if ast.unparse(value.args[2]) == name:
                    call = ast.Call(value.func, value.args[:2], value.keywords)
                    yield _Edit("overwrite", value, ast.unparse(call))
            elif _is_sum(value) and name in _names(value.left):
                yield _Edit("overwrite", value, ast.unparse(value.right))


def _is_sum(node: ast.AST) -> TypeGuard[ast.BinOp]:
    return isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)


def _rescales(function: ast.FunctionDef) -> Iterator[_Edit]:
    """What a loop carries, not multiplied by exp(old - new)."""
    for loop in _loops(function):
        assigned = {
            t.id
            for n in ast.walk(loop)
            if isinstance(n, ast.Assign | ast.AugAssign)
            for t in (n.targets if isinstance(n, ast.Assign) else [n.target])
            if isinstance(t, ast.Name)
        }
        before = {
            n.id
            for statement in function.body
            if statement is not loop
            for n in ast.walk(statement)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }
        carried = assigned & before
        factors = {
            n.targets[0].id
            for n in ast.walk(loop)
            if isinstance(n, ast.Assign)
            and isinstance(n.targets[0], ast.Name)
            and _is_call(n.value, "exp", "exp2")
            and _is_call_of_difference(n.value, carried)
        }
        for node in ast.walk(loop):
            if (
                isinstance(node, ast.AugAssign)
                and isinstance(node.op, ast.Mult)
                and ast.unparse(node.target) in carried
                and _names(node.value) & factors
            ):
                yield _Edit("drop rescale", node, "pass")
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
                for one, other in ((node.left, node.right), (node.right, node.left)):
                    scales = _names(other) & factors or (
                        _is_call(other, "exp", "exp2") and _is_call_of_difference(other, carried)
                    )
                    if isinstance(one, ast.Name) and one.id in carried and scales:
                        yield _Edit("drop rescale", node, one.id)


def _names(node: ast.AST) -> set[str]:
    return {n.id for n in ast.walk(node) if isinstance(n, ast.Name)}


def _is_call_of_difference(node: ast.AST, carried: set[str]) -> bool:
    """True for exp(old - …) of something that is carried."""
    return isinstance(node, ast.Call) and any(
        isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub) and bool(_names(n.left) & carried)
        for n in ast.walk(node.args[0])
    )


def _strides(function: ast.FunctionDef) -> Iterator[_Edit]:
    """An index that is not multiplied by a parameter."""
    known = _parameters(function)
    for node in ast.walk(function):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
            for one, other in ((node.left, node.right), (node.right, node.left)):
                if isinstance(other, ast.Name) and other.id in known and "stride" in other.id:
                    yield _Edit("drop stride", node, f"({ast.unparse(one)})")


def _epsilons(function: ast.FunctionDef) -> Iterator[_Edit]:
    """A small number that keeps a denominator away from zero, left out."""
    known = _parameters(function)
    for node in ast.walk(function):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
            small = _value(node.right)
            named = isinstance(node.right, ast.Name) and node.right.id in known & {"eps"}
            if named or (small is not None and 0 < small < 1e-2):
                yield _Edit("drop eps", node, f"({ast.unparse(node.left)})")
        if isinstance(node, ast.Call) and _is_call(node, "maximum") and len(node.args) == 2:
            small = _value(node.args[1])
            if small is not None and 0 < small <= 1.0:
                yield _Edit("drop eps", node, f"({ast.unparse(node.args[0])})")


_FINDERS = (
    _masks, _bounds, _fills, _selections, _accumulators, _rescales, _strides, _epsilons,
)  # fmt: skip
