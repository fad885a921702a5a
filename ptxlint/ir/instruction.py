"""Instructions: slots filled with atoms over a shared, immutable shape."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from ptxlint.ir.operand import Atom, Operand, Register
from ptxlint.source import Loc

if TYPE_CHECKING:
    from ptxlint.ir.opcodes import Form, MemoryEffect, Opcode

Pattern: TypeAlias = tuple[Any, ...]
"""How an operand is made of slots; see `ptxlint.ir.pattern`."""


class Shape:
    """All that instructions of one form have in common. One object serves many instructions.

    `mnemonic` is the opcode with its modifiers, `opcode` the base (`ld`), `modifiers` the rest
    without dots (`("global", "b32")`). `row` is the opcode's row in the table and `form` the
    operand roles that apply, or None when the operand count fits none. `guard` is "" without a
    predicate, else "@" or "@!"; the guard register then is slot 0.
    """

    __slots__ = (
        "fills",
        "form",
        "guard",
        "memory",
        "mnemonic",
        "modifiers",
        "only_def",
        "opcode",
        "partial",
        "patterns",
        "pick_defs",
        "pick_uses",
        "roles",
        "row",
        "space",
        "type",
        "types",
    )

    def __init__(
        self,
        mnemonic: str,
        opcode: str,
        modifiers: tuple[str, ...],
        guard: str,
        patterns: tuple[Pattern, ...],
        row: Opcode,
        form: Form | None,
        roles: tuple[str, ...],
        def_slots: tuple[int, ...],
        use_slots: tuple[int, ...],
        partial: bool,
        types: tuple[str, ...],
        space: str,
    ) -> None:
        self.mnemonic = mnemonic
        self.opcode = opcode
        self.modifiers = modifiers
        self.guard = guard
        self.patterns = patterns
        self.row = row
        self.form = form
        self.roles = roles
        """One role a operand pattern, as in `ptxlint.ir.opcodes.Form.roles`."""
        self.partial = partial
        """True when a destination is written in part only (a vector component, a byte)."""
        self.types = types
        """The type modifiers in order, without dots."""
        self.type = types[-1] if types else ""
        self.space = space
        """The state space modifier (`global`, `shared`, …), "" for generic or none."""
        self.only_def = def_slots[0] if len(def_slots) == 1 else -1
        """The slot of the one register written, -1 if there is none or more than one."""
        self.fills: tuple[Any, ...] = tuple(
            p[1] if p[0] == "s" and len(p) == 2 else p for p in patterns
        )
        """The patterns; for one that is a slot as it is, the slot."""
        self.memory: MemoryEffect | None = None
        """What `ptxlint.ir.opcodes.memory_of` found, which is the way to ask for it."""
        self.pick_defs = _picker(def_slots)
        self.pick_uses = _picker(use_slots)

    def has(self, modifier: str) -> bool:
        """True if the modifier (without its dot) is present."""
        return modifier in self.modifiers

    def __repr__(self) -> str:
        return f"Shape({self.guard}{self.mnemonic})"


def _instantiate(pattern: Pattern, args: tuple[Atom, ...]) -> Operand:
    from ptxlint.ir.pattern import instantiate

    return instantiate(pattern, args)


def _picker(slots: tuple[int, ...]) -> Callable[[tuple[Atom, ...]], tuple[Register, ...]]:
    """A function that picks these slots out of an argument tuple."""
    from operator import itemgetter

    if not slots:
        return _none
    if len(slots) == 1:
        at = slots[0]
        return lambda args: (args[at],)  # type: ignore[return-value]
    return itemgetter(*slots)


def _none(args: tuple[Atom, ...]) -> tuple[Register, ...]:
    return ()


class Instr:
    """One instruction of a function.

    `defs` are the registers it writes and `uses` those it reads, the guard included, in operand
    order (duplicates kept). With a guard, or when `shape.partial`, a definition is a
    *may-definition*: the old value survives where the guard is false. `index` is the position in
    `Function.instrs`; `offset` the character offset of its first character in the text.
    """

    __slots__ = ("_operands", "args", "defs", "index", "loc", "offset", "opcode", "shape", "uses")

    def __init__(
        self, shape: Shape, args: tuple[Atom, ...], index: int, offset: int, loc: Loc | None
    ) -> None:
        self.shape = shape
        self.opcode = shape.opcode
        """Base opcode, such as `ld`: that of the shape, at hand because all ask for it."""
        self.args = args
        self.index = index
        self.offset = offset
        self.loc = loc
        first = shape.only_def
        self.defs: tuple[Register, ...] = (
            (args[first],) if first >= 0 else shape.pick_defs(args)  # type: ignore[assignment]
        )
        self.uses = shape.pick_uses(args)
        self._operands: tuple[Operand, ...] | None = None

    @property
    def guard(self) -> Register | None:
        """The guard predicate's register, or None. `shape.guard` tells `@` from `@!`.

        None, too, where a faulty text has something else than a register after the `@`.
        """
        guard = self.args[0] if self.shape.guard else None
        return guard if isinstance(guard, Register) else None

    @property
    def may_define(self) -> bool:
        """True when its definitions may leave the old value in place."""
        return bool(self.shape.guard) or self.shape.partial

    @property
    def operands(self) -> tuple[Operand, ...]:
        """The operands in order, the guard excluded; built on first use."""
        if self._operands is None:
            args = self.args
            self._operands = tuple(
                [args[p] if type(p) is int else _instantiate(p, args) for p in self.shape.fills]
            )
        return self._operands

    def __repr__(self) -> str:
        from ptxlint.ir.printer import format_instruction

        return format_instruction(self)
