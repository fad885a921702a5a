"""Integer and predicate values as expressions over the thread index, evaluated per thread.

What is followed are integer operations on constants, kernel parameters and the special registers
that tell threads and CTAs apart. A loop counter is taken as it is in the first round. Anything
else, a value from memory above all, makes no expression.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from ptxlint.cfg.loops import LoopForest
from ptxlint.dataflow.ssa_values import MERGE, PHI, RESULT, Ssa
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import (
    Address,
    Immediate,
    Negated,
    Operand,
    Register,
    SpecialRegister,
    Symbol,
)
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import BITS, FLOATS

_LIMIT: Final = 200
"""Nodes of an expression at most."""
WARP: Final = 32


class Launch(NamedTuple):
    """The part of a launch that an expression may ask for."""

    extents: tuple[int, int, int]
    """The CTA's threads along x, y, z."""
    values: dict[str, int]
    """Kernel parameters, by name and byte offset as in `ThreadExpression.parameters`."""
    ctaid: int = 0
    """The CTA along x; the others are 0."""


class _Node(NamedTuple):
    """One step: `compute` applied to earlier nodes, or a leaf."""

    compute: Callable[..., int] | None
    operands: tuple[int, ...]
    leaf: str = ""
    constant: int = 0


class ThreadExpression:
    """A value that each thread can compute from its index and the kernel's parameters."""

    __slots__ = ("_nodes", "parameters", "registers")

    def __init__(self, nodes: list[_Node]) -> None:
        self._nodes = nodes
        leaves = dict.fromkeys(node.leaf for node in nodes if node.leaf)
        self.parameters = tuple(leaf for leaf in leaves if leaf[0] != "%")
        """Parameters that it reads, as `name` or `name+offset`."""
        self.registers = tuple(leaf for leaf in leaves if leaf[0] == "%")
        """Special registers that it reads."""

    def is_linear(self) -> bool:
        """True if it does not ask for `%tid.y`, `%tid.z`, nor for the extents along y and z."""
        deeper = ("%tid.y", "%tid.z", "%ntid.y", "%ntid.z")
        return not any(register in deeper for register in self.registers)

    def is_per_thread(self) -> bool:
        """True if it asks for something that differs between the threads of a CTA."""
        return any(r.startswith("%tid") or r == "%laneid" for r in self.registers)

    def value(self, launch: Launch, thread: int) -> int:
        """The value in the thread with this linear index; as an unsigned number."""
        found: list[int] = []
        for node in self._nodes:
            if node.compute is not None:
                found.append(node.compute(*[found[at] for at in node.operands]))
            elif node.leaf:
                found.append(_leaf(node.leaf, launch, thread))
            else:
                found.append(node.constant)
        return found[-1]


def _leaf(name: str, launch: Launch, thread: int) -> int:
    if name[0] != "%":
        return launch.values.get(name, 0)
    return _SPECIAL[name](launch, thread)


_SPECIAL: Final[dict[str, Callable[[Launch, int], int]]] = {
    "%tid.x": lambda launch, t: t % launch.extents[0],
    "%tid.y": lambda launch, t: t // launch.extents[0] % launch.extents[1],
    "%tid.z": lambda launch, t: t // (launch.extents[0] * launch.extents[1]),
    "%ntid.x": lambda launch, t: launch.extents[0],
    "%ntid.y": lambda launch, t: launch.extents[1],
    "%ntid.z": lambda launch, t: launch.extents[2],
    "%ctaid.x": lambda launch, t: launch.ctaid,
    "%ctaid.y": lambda launch, t: 0,
    "%ctaid.z": lambda launch, t: 0,
    "%nctaid.x": lambda launch, t: launch.ctaid + 1,
    "%nctaid.y": lambda launch, t: 1,
    "%nctaid.z": lambda launch, t: 1,
    "%laneid": lambda launch, t: t % WARP,
}


class _NotFollowedError(Exception):
    """Raised where a value is reached that makes no expression."""


def thread_expression(ssa: Ssa, loops: LoopForest, value: int) -> ThreadExpression | None:
    """A value as an expression; None if it depends on something that is not followed."""
    try:
        return ThreadExpression(_Builder(ssa, loops).build(value))
    except _NotFollowedError:
        return None


class _Builder:
    """Collects the nodes of one expression, operands first."""

    def __init__(self, ssa: Ssa, loops: LoopForest) -> None:
        self._ssa = ssa
        self._loops = loops
        self._instrs = ssa.cfg.function.instrs
        self._nodes: list[_Node] = []
        self._place: dict[int, int] = {}
        self._parameters = frozenset(v.name for v in ssa.cfg.function.params)

    def build(self, value: int) -> list[_Node]:
        """The nodes; the value asked for is the last."""
        if not self._ssa.cfg.function.is_kernel:
            raise _NotFollowedError
        self._visit(value, 0)
        return self._nodes

    def _add(self, node: _Node) -> int:
        self._nodes.append(node)
        return len(self._nodes) - 1

    def _visit(self, value: int, depth: int) -> int:
        """The place of a value among the nodes."""
        place = self._place.get(value)
        if place is not None:
            return place
        if depth > _LIMIT or len(self._nodes) > _LIMIT:
            raise _NotFollowedError
        kind = self._ssa.kind[value]
        if kind == PHI:
            place = self._visit(self._first_round(value), depth + 1)
        elif kind == MERGE:
            operands = tuple(self._visit(v, depth + 1) for v in self._ssa.operands[value])
            place = self._add(_Node(_choose, operands))
        elif kind == RESULT:
            place = self._result(value, depth)
        else:
            raise _NotFollowedError
        self._place[value] = place
        return place

    def _first_round(self, phi: int) -> int:
        """The operand with which a loop is entered."""
        block = self._ssa.phi_block[phi]
        loop = self._loops.with_header(block)
        sources = self._ssa.phi_sources(block)
        entering = {
            self._ssa.resolve(operand)
            for source, operand in zip(sources, self._ssa.operands[phi], strict=True)
            if loop is None or not self._loops.contains(loop, source)
        }
        if len(entering) != 1:
            raise _NotFollowedError
        return entering.pop()

    def _result(self, value: int, depth: int) -> int:
        instr = self._instrs[self._ssa.instr[value]]
        shape = instr.shape
        if shape.opcode == "ld":
            return self._parameter(instr)
        compute = operation(instr, self._ssa.result[value])
        if compute is None:
            raise _NotFollowedError
        operands = [self._operand(o, instr, depth) for o in instr.operands[1:]]
        return self._add(_Node(compute, tuple(operands)))

    def _parameter(self, instr: Instr) -> int:
        """A leaf for a scalar loaded from a kernel parameter."""
        shape = instr.shape
        address = instr.operands[1] if len(instr.operands) == 2 else None
        if (
            shape.space != "param"
            or not isinstance(address, Address)
            or not isinstance(address.base, Symbol)
            or address.base.name not in self._parameters
            or not isinstance(instr.operands[0], Register)
            or shape.type in FLOATS
        ):
            raise _NotFollowedError
        offset = f"+{address.offset}" if address.offset else ""
        leaf = self._add(_Node(None, (), address.base.name + offset))
        return self._add(_Node(extension(shape.type, instr.operands[0].type), (leaf,)))

    def _operand(self, operand: Operand, instr: Instr, depth: int) -> int:
        if isinstance(operand, Register):
            at = instr.uses.index(operand)
            return self._visit(self._ssa.use_values[instr.index][at], depth + 1)
        if isinstance(operand, Immediate) and operand.kind == "int":
            return self._add(_Node(None, (), "", operand.value))
        if isinstance(operand, SpecialRegister) and operand.name in _SPECIAL:
            return self._add(_Node(None, (), operand.name))
        if isinstance(operand, Negated) and operand.sign == "!":
            inner = self._operand(operand.operand, instr, depth)
            return self._add(_Node(lambda p: p ^ 1, (inner,)))
        constant = fold(operand)
        if constant is None:
            raise _NotFollowedError
        return self._add(_Node(None, (), "", constant))


def _choose(predicate: int, if_true: int, if_false: int) -> int:
    return if_true if predicate else if_false


def _signed(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def extension(type_name: str, register_type: str) -> Callable[[int], int]:
    """How a value of a type is put into a register that may be wider."""
    source, target = BITS[type_name], BITS.get(register_type, 64)
    mask = (1 << target) - 1
    if type_name[0] == "s":
        return lambda a: _signed(a, source) & mask
    narrow = (1 << source) - 1
    return lambda a: a & narrow & mask


def operation(instr: Instr, result: int) -> Callable[..., int] | None:
    """What computes a result from the source operands in order; None if it is not followed."""
    shape = instr.shape
    types = shape.types
    if not types or not FLOATS.isdisjoint(types) or shape.partial:
        return None
    if any(word in shape.modifiers for word in ("cc", "sat", "hi")) or shape.row.reads_carry:
        return None
    if shape.patterns[0][0] not in "sb":
        return None
    if shape.opcode == "setp":
        return _comparison(instr, result)
    if shape.opcode == "cvt":
        return _conversion(types) if len(types) == 2 else None
    width = BITS[types[0]]
    make = _MAKERS.get(shape.opcode)
    if make is None or len(instr.operands) - 1 not in _ARITIES.get(shape.opcode, (2,)):
        return None
    return make(width, types[0][0] == "s", shape.has("wide"))


def _conversion(types: tuple[str, ...]) -> Callable[[int], int]:
    source, written = BITS[types[1]], BITS[types[0]]
    signed = types[1][0] == "s"
    mask = (1 << written) - 1

    def convert(a: int) -> int:
        value = _signed(a, source) if signed else a & ((1 << source) - 1)
        return value & mask

    return convert


_COMPARE: Final[dict[str, Callable[[int, int], bool]]] = {
    "eq": lambda a, b: a == b,
    "ne": lambda a, b: a != b,
    "lt": lambda a, b: a < b,
    "le": lambda a, b: a <= b,
    "gt": lambda a, b: a > b,
    "ge": lambda a, b: a >= b,
    "lo": lambda a, b: a < b,
    "ls": lambda a, b: a <= b,
    "hi": lambda a, b: a > b,
    "hs": lambda a, b: a >= b,
}
_BOOLEAN: Final[dict[str, Callable[[int, int], int]]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
}


def _comparison(instr: Instr, result: int) -> Callable[..., int] | None:
    """`setp`; the second result is of the opposite comparison (PTX ISA, "setp")."""
    shape = instr.shape
    compare = _COMPARE.get(shape.modifiers[0])
    boolean = next((_BOOLEAN[m] for m in shape.modifiers[1:] if m in _BOOLEAN), None)
    count = len(instr.operands) - 1
    if compare is None or count != (2 if boolean is None else 3):
        return None
    width = BITS[shape.type]
    read = _reader(width, shape.type[0] == "s")

    def apply(a: int, b: int, c: int = 0) -> int:
        met = int(compare(read(a), read(b))) ^ result
        return met if boolean is None else boolean(met, c)

    return apply


def _reader(width: int, signed: bool) -> Callable[[int], int]:
    mask = (1 << width) - 1
    return (lambda a: _signed(a, width)) if signed else (lambda a: a & mask)


_Maker: TypeAlias = "Callable[[int, bool, bool], Callable[..., int] | None]"


def _arithmetic(apply: Callable[[int, int], int]) -> _Maker:
    def make(width: int, signed: bool, wide: bool) -> Callable[..., int]:
        read, mask = _reader(width, signed), (1 << (2 * width if wide else width)) - 1
        return lambda a, b: apply(read(a), read(b)) & mask

    return make


def _multiply_add(width: int, signed: bool, wide: bool) -> Callable[..., int]:
    read, mask = _reader(width, signed), (1 << (2 * width if wide else width)) - 1
    return lambda a, b, c: (read(a) * read(b) + c) & mask


def _unary(apply: Callable[[int], int]) -> _Maker:
    def make(width: int, signed: bool, wide: bool) -> Callable[..., int]:
        read, mask = _reader(width, signed), (1 << width) - 1
        return lambda a: apply(read(a)) & mask

    return make


def _not(width: int, signed: bool, wide: bool) -> Callable[..., int]:
    mask = (1 << width) - 1
    return lambda a: a & mask ^ mask


def _shift_left(width: int, signed: bool, wide: bool) -> Callable[..., int]:
    mask = (1 << width) - 1
    return lambda a, b: (a << (b & 0xFFFFFFFF)) & mask if b & 0xFFFFFFFF < width else 0


def _shift_right(width: int, signed: bool, wide: bool) -> Callable[..., int]:
    read, mask = _reader(width, signed), (1 << width) - 1
    return lambda a, b: read(a) >> min(b & 0xFFFFFFFF, width) & mask


def _divide(a: int, b: int) -> int:
    if b == 0:
        return -1
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _remainder(a: int, b: int) -> int:
    return a if b == 0 else a - b * _divide(a, b)


def _select(width: int, signed: bool, wide: bool) -> Callable[..., int]:
    return lambda a, b, p: a if p else b


def _extract(width: int, signed: bool, wide: bool) -> Callable[..., int]:
    if signed:
        return lambda a, b, c: _signed_field(a, b & 255, c & 255, width)
    return lambda a, b, c: (a & ((1 << width) - 1)) >> (b & 255) & ((1 << min(c & 255, width)) - 1)


def _signed_field(a: int, position: int, length: int, width: int) -> int:
    """`bfe` of a signed type: extended by the field's top bit (PTX ISA, "bfe")."""
    mask = (1 << width) - 1
    if not length:
        return 0
    if position + length > width:
        return _signed(a, width) >> min(position, width - 1) & mask
    return _signed(a >> position, length) & mask


_MAKERS: Final[dict[str, _Maker]] = {
    "mov": _unary(lambda a: a),
    "add": _arithmetic(lambda a, b: a + b),
    "sub": _arithmetic(lambda a, b: a - b),
    "mul": _arithmetic(lambda a, b: a * b),
    "mad": _multiply_add,
    "div": _arithmetic(_divide),
    "rem": _arithmetic(_remainder),
    "min": _arithmetic(min),
    "max": _arithmetic(max),
    "and": _arithmetic(lambda a, b: a & b),
    "or": _arithmetic(lambda a, b: a | b),
    "xor": _arithmetic(lambda a, b: a ^ b),
    "not": _not,
    "neg": _unary(lambda a: -a),
    "abs": _unary(abs),
    "shl": _shift_left,
    "shr": _shift_right,
    "selp": _select,
    "bfe": _extract,
}
_ARITIES: Final = {
    "mov": (1,),
    "not": (1,),
    "neg": (1,),
    "abs": (1,),
    "mad": (3,),
    "selp": (3,),
    "bfe": (3,),
}
