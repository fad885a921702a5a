"""Operand patterns: how operands are made of a shape's slots.

A pattern is a nested tuple, so that templates can be stored as JSON. Its first element says what
it is:

==========================  =====================================================
`("s", i)`                  slot i
`("s", i, ".x")`            a part of slot i, or a component of a special register
`("_",)`                    the sink
`("z", name)`               a register that always holds the same (SASS: `RZ`)
`("u", op, p)`              unary `!`, `-`, `~`, `+`
`("b", op, p, q)`           binary operator; `|` of two registers is a pair
`("?", c, p, q)`            conditional constant expression
`("t", type, p)`            cast `(.s64) p`
`("v", p, …)`               vector `{…}`
`("r", i, n)`               vector of the n numbers in the slots from i on
`("a", p, …)`               address `[base, rest…]`, `("l", ".unified")` last if that follows
`("i", p, q)`               `p[q]`
`("f", p, q)`               `p(q)`, as in `generic(sym)`
`("(", p, …)`               parenthesised list
`("l", text)`               literal word kept as it is
==========================  =====================================================
"""

from __future__ import annotations

from ptxlint.ir.instruction import Pattern
from ptxlint.ir.operand import (
    Address,
    Atom,
    Expr,
    Group,
    Immediate,
    Indexed,
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

_SINK = Sink()
UNIFIED = ("l", ".unified")
"""The last part of the pattern of `[a].unified`."""


def instantiate(pattern: Pattern, args: tuple[Atom, ...]) -> Operand:
    """The operand that a pattern makes of these slot values."""
    kind = pattern[0]
    if kind == "s":
        atom = args[pattern[1]]
        return atom if len(pattern) == 2 else _select(atom, pattern[2])
    if kind == "_":
        return _SINK
    if kind == "z":
        return SpecialRegister(pattern[1])
    if kind == "v":
        return Vector(tuple(instantiate(p, args) for p in pattern[1:]))
    if kind == "r":
        return Vector(args[pattern[1] : pattern[1] + pattern[2]])
    if kind == "a":
        return _address(pattern, args)
    if kind == "u":
        return _unary(pattern[1], instantiate(pattern[2], args))
    if kind == "b":
        return _binary(pattern[1], instantiate(pattern[2], args), instantiate(pattern[3], args))
    if kind == "(":
        return Group(tuple(instantiate(p, args) for p in pattern[1:]))
    if kind == "i":
        return Indexed(instantiate(pattern[1], args), instantiate(pattern[2], args))
    if kind == "l":
        return Symbol(pattern[1], "unknown")
    name = pattern[1] if kind == "t" else kind
    rest = pattern[2:] if kind == "t" else pattern[1:]
    return Expr(name, tuple(instantiate(p, args) for p in rest))


def _select(atom: Atom, selector: str) -> Operand:
    if isinstance(atom, Register):
        return Selected(atom, selector[1:])
    if isinstance(atom, SpecialRegister):
        return SpecialRegister(atom.name + selector)
    return Expr(selector, (atom,))


def _address(pattern: Pattern, args: tuple[Atom, ...]) -> Address:
    inner = pattern[1]
    if len(pattern) == 2:
        # `[r]` and `[r+4]`, which nearly all are.
        if inner[0] == "s" and len(inner) == 2:
            return Address(args[inner[1]], 0)
        if inner[:2] == ("b", "+") and all(p[0] == "s" and len(p) == 2 for p in inner[2:]):
            left, right = args[inner[2][1]], args[inner[3][1]]
            if type(right) is Immediate and right.kind == "int":
                return Address(left, right.value)
    base = instantiate(inner, args)
    unified = pattern[-1] == UNIFIED
    last = len(pattern) - unified
    rest = tuple(instantiate(p, args) for p in pattern[2:last]) if last > 2 else ()
    offset = 0
    # `[r+4-8]` nests as a sum: peel constant terms off until the base is left.
    while isinstance(base, Expr) and base.operator in "+-" and len(base.operands) == 2:
        left, right = base.operands
        constant = fold(right)
        if constant is None:
            break
        offset += constant if base.operator == "+" else -constant
        base = left
    return Address(base, offset, rest, unified)


def _unary(operator: str, operand: Operand) -> Operand:
    if isinstance(operand, Immediate) and operand.kind == "int" and operator in "-+~":
        value = {"-": -operand.value, "+": operand.value, "~": ~operand.value}[operator]
        return Immediate(operator + operand.text, "int", value)
    if isinstance(operand, Immediate) and operator == "-":
        sign = 1 << (31 if operand.kind == "f32" else 63)
        return Immediate("-" + operand.text, operand.kind, operand.value ^ sign)
    return Negated(operator, operand)


def _binary(operator: str, left: Operand, right: Operand) -> Operand:
    if operator == "|" and not (isinstance(left, Immediate) and isinstance(right, Immediate)):
        return Pair(left, right)
    return Expr(operator, (left, right))


def fold(operand: Operand) -> int | None:
    """The value of an integer constant expression; None if it is not constant.

    Arithmetic is 64-bit as PTX ISA "Constant Expressions" has it; results are not wrapped, and
    one that needs more than 256 bits is unknown.
    """
    if isinstance(operand, Immediate):
        return operand.value if operand.kind == "int" else None
    if isinstance(operand, SpecialRegister) and operand.name == "WARP_SZ":
        return 32
    if isinstance(operand, Group) and len(operand.elements) == 1:
        return fold(operand.elements[0])
    if isinstance(operand, Negated):
        inner = fold(operand.operand)
        if inner is None:
            return None
        return {"-": -inner, "~": ~inner, "!": int(not inner), "+": inner}[operand.sign]
    if isinstance(operand, Pair):
        first, second = fold(operand.first), fold(operand.second)
        return None if first is None or second is None else first | second
    if isinstance(operand, Expr):
        return _fold_expression(operand)
    return None


def _fold_expression(expr: Expr) -> int | None:
    values = [fold(o) for o in expr.operands]
    if any(v is None for v in values):
        return None
    known = [v for v in values if v is not None]
    if expr.operator == "?":
        return known[1] if known[0] else known[2]
    if len(known) == 1:
        value = known[0]
        if expr.operator == "u64":
            return value & 0xFFFFFFFFFFFFFFFF
        return value if expr.operator in ("s64", ".s64", ".u64") else None
    if len(known) != 2:
        return None
    return _apply(expr.operator, known[0], known[1])


def _apply(operator: str, a: int, b: int) -> int | None:
    if operator in "/%" and b == 0:
        return None
    if operator in ("<<", ">>") and not 0 <= b < 64:
        return None
    if operator == "/":
        return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
    if operator == "%":
        return abs(a) % abs(b) * (-1 if a < 0 else 1)
    simple = {
        "+": lambda: a + b, "-": lambda: a - b, "*": lambda: a * b,
        "<<": lambda: a << b, ">>": lambda: a >> b,
        "&": lambda: a & b, "|": lambda: a | b, "^": lambda: a ^ b,
        "<": lambda: int(a < b), ">": lambda: int(a > b),
        "<=": lambda: int(a <= b), ">=": lambda: int(a >= b),
        "==": lambda: int(a == b), "!=": lambda: int(a != b),
        "&&": lambda: int(bool(a) and bool(b)), "||": lambda: int(bool(a) or bool(b)),
    }.get(operator)  # fmt: skip
    value = simple() if simple else None
    return value if value is not None and value.bit_length() <= 256 else None
