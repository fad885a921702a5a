"""Functions and kernels: registers, variables, labels, instructions, in source order."""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Label, Operand, Register
from ptxlint.source import Loc


class Variable(NamedTuple):
    """A declared variable or parameter.

    `dims` are the array extents in elements, None for an open extent (`[]`); `align` in bytes,
    0 when not given. `attributes` are further words such as `ptr`, `global`, `managed`.
    """

    name: str
    space: str
    type: str
    dims: tuple[int | None, ...]
    align: int
    vector: int
    linkage: tuple[str, ...]
    attributes: tuple[str, ...]
    initializer: Operand | None
    offset: int

    @property
    def size(self) -> int | None:
        """Size in bytes; None when an extent is open."""
        from ptxlint.ir.types import bits

        total = max(1, bits(self.type) // 8) * self.vector
        for extent in self.dims:
            if extent is None:
                return None
            total *= extent
        return total


class RegisterDeclaration(NamedTuple):
    """`.reg .b32 %r<10>, x;`: names as written, a count for `<n>` and 0 for a plain name."""

    type: str
    vector: int
    names: tuple[tuple[str, int], ...]
    offset: int


class ScopeOpen(NamedTuple):
    """`{` of a block inside a body; `scope` is its number."""

    scope: int
    offset: int


class ScopeClose(NamedTuple):
    """`}` of a block inside a body."""

    scope: int
    offset: int


class TargetList(NamedTuple):
    """`name: .branchtargets a, b;` or `.calltargets`; `kind` is the directive without its dot."""

    name: str
    kind: str
    targets: tuple[str, ...]
    offset: int


class Prototype(NamedTuple):
    """`name: .callprototype (…) _ (…);`."""

    name: str
    returns: tuple[Variable, ...]
    params: tuple[Variable, ...]
    attributes: tuple[tuple[str, tuple[str, ...]], ...]
    offset: int


class Pragma(NamedTuple):
    """`.pragma "…";`."""

    texts: tuple[str, ...]
    offset: int


Item: TypeAlias = (
    Instr
    | Label
    | Loc
    | RegisterDeclaration
    | Variable
    | ScopeOpen
    | ScopeClose
    | TargetList
    | Prototype
    | Pragma
)
"""Anything that stands in a function body, in source order."""


class Function:
    """A `.entry` (kernel) or `.func`.

    `body` is None for a declaration. `items` holds everything of the body in source order;
    `instrs` only the instructions. `directives` are performance-tuning and other header
    directives by name without the dot: `{"reqntid": (128,)}`, `{"noreturn": ()}`.
    """

    __slots__ = (
        "directives",
        "end_offset",
        "instrs",
        "is_declaration",
        "is_machine",
        "items",
        "kind",
        "labels",
        "linkage",
        "name",
        "offset",
        "params",
        "pragmas",
        "registers",
        "returns",
        "targets",
        "variables",
    )

    def __init__(
        self,
        name: str,
        kind: str,
        linkage: tuple[str, ...],
        params: tuple[Variable, ...],
        returns: tuple[Variable, ...],
        directives: dict[str, tuple[int | str, ...]],
        pragmas: tuple[str, ...],
        offset: int,
    ) -> None:
        self.name = name
        self.kind = kind
        self.linkage = linkage
        self.params = params
        self.returns = returns
        self.directives = directives
        self.pragmas = pragmas
        self.offset = offset
        self.end_offset = offset
        self.is_declaration = True
        self.is_machine = False
        """Machine code, whose registers are those of the hardware."""
        self.items: list[Item] = []
        self.instrs: list[Instr] = []
        self.registers: list[Register] = []
        self.labels: list[Label] = []
        self.variables: list[Variable] = []
        self.targets: dict[str, TargetList] = {}

    @property
    def is_kernel(self) -> bool:
        """True for `.entry`."""
        return self.kind == "entry"

    def max_threads(self) -> int | None:
        """Threads per CTA that `.reqntid` or `.maxntid` allow; None when neither is given."""
        extents = self.directives.get("reqntid") or self.directives.get("maxntid")
        if not extents:
            return None
        total = 1
        for extent in extents:
            total *= int(extent)
        return total

    def __repr__(self) -> str:
        return f"Function({self.kind} {self.name}, {len(self.instrs)} instructions)"
