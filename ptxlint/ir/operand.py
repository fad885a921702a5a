"""What an instruction's operands are.

A plain register operand *is* its `Register`; likewise for immediates, symbols and labels. The
other classes wrap these: `Vector`, `Address`, `Pair`, `Negated`, `Selected`, `Sink`, `Group`
(parenthesised lists of `call`) and `Expr` (constant expressions).
"""

from __future__ import annotations

import struct
from typing import NamedTuple, TypeAlias


class Register:
    """A virtual register. `index` is dense within its function, over all scopes.

    `scope` is 0 for the function body and counts the `{}` blocks in order of opening. `vector`
    is 1, or 2/4 for `.reg .v2/.v4`. Registers are compared by identity.
    """

    __slots__ = ("index", "name", "offset", "scope", "type", "vector")

    def __init__(
        self, name: str, type_name: str, index: int, scope: int, offset: int, vector: int = 1
    ) -> None:
        self.name = name
        self.type = type_name
        self.index = index
        self.scope = scope
        self.offset = offset
        self.vector = vector

    def __repr__(self) -> str:
        return self.name


class SpecialRegister(NamedTuple):
    """A predefined read-only register such as `%tid.x`, with its component; or `WARP_SZ`."""

    name: str


class Immediate(NamedTuple):
    """A literal. `kind` is `int`, `f32` (0f…), `f64` (0d…) or `dec` (decimal floating point).

    `value` is the integer, or the raw IEEE bit pattern for f32/f64/dec (dec as binary64).
    """

    text: str
    kind: str
    value: int

    def as_float(self, type_name: str = "f32") -> float:
        """The number that this literal denotes as an operand of a floating-point type.

        An integer literal under `b32`/`b16`/`b64` is a bit pattern, not a number: use `bits`.
        """
        if self.kind == "int":
            return float(self.value)
        if self.kind == "f32":
            return float(struct.unpack("<f", struct.pack("<I", self.value))[0])
        return float(struct.unpack("<d", struct.pack("<Q", self.value))[0])


class Label:
    """A code label. `target` indexes the function's instructions: the one that follows it."""

    __slots__ = ("name", "offset", "scope", "target")

    def __init__(self, name: str, offset: int, scope: int, target: int) -> None:
        self.name = name
        self.offset = offset
        self.scope = scope
        self.target = target

    def __repr__(self) -> str:
        return self.name


class Symbol(NamedTuple):
    """A named thing that is no register and no code label.

    `kind`: `variable`, `param`, `function`, `targets` (a `.branchtargets` or `.calltargets`
    list), `prototype`, or `unknown` when nothing of that name is declared.
    """

    name: str
    kind: str


class Sink(NamedTuple):
    """The `_` operand: a result that is thrown away."""


class Negated(NamedTuple):
    """`!p`, `-x` or `~x` over an operand."""

    sign: str
    operand: Operand


class Selected(NamedTuple):
    """A part of a register: `%v.x`, `%r.b0`, `%r.h1`."""

    register: Register
    selector: str


class Pair(NamedTuple):
    """Two destinations `p|q`, the first written as usual, the second its companion."""

    first: Operand
    second: Operand


class Vector(NamedTuple):
    """`{a, b, …}`."""

    elements: tuple[Operand, ...]


class Address(NamedTuple):
    """`[base + offset]`; `offset` in bytes. `rest` holds tensor coordinates and the like.

    `base` is a register, symbol, immediate or expression. `unified` is the attribute behind the
    bracket, `[a].unified` (PTX ISA, "ld"): the address is the same for all threads of a warp.
    """

    base: Operand
    offset: int
    rest: tuple[Operand, ...] = ()
    unified: bool = False


class Indexed(NamedTuple):
    """`name[subscript]`, as in `mov.u32 r, table[4]`."""

    base: Operand
    subscript: Operand


class Group(NamedTuple):
    """A parenthesised list: arguments or results of a `call`."""

    elements: tuple[Operand, ...]


class Expr(NamedTuple):
    """A constant expression that was not folded: an operator over operands."""

    operator: str
    operands: tuple[Operand, ...]


Operand: TypeAlias = (
    Register
    | SpecialRegister
    | Immediate
    | Label
    | Symbol
    | Sink
    | Negated
    | Selected
    | Pair
    | Vector
    | Address
    | Indexed
    | Group
    | Expr
)
"""Any operand."""

Atom: TypeAlias = Register | SpecialRegister | Immediate | Label | Symbol
"""What fills one slot of a shape."""
