"""What one instruction makes of the dependences of its operands.

Most results depend on whatever is read. Besides there are integers, in which the positions of
thread index bits are followed, and memory, warp and CTA operations, each with a function here.
Anything else may differ between any two threads.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple, TypeAlias

from ptxlint.dataflow.lane_bits import (
    ANY_THREAD,
    ANY_WARP,
    CTA_BIT,
    LANE,
    MEMORY,
    add_constant,
    at_least,
    carry,
    extend,
    field,
    insert,
    keep,
    narrow,
    shift_left,
    shift_right,
    spread,
    times_constant,
)
from ptxlint.dataflow.uniformity_reading import Reading
from ptxlint.ir.instruction import Instr, Shape
from ptxlint.ir.operand import Address, SpecialRegister, Symbol
from ptxlint.ir.types import BITS, FLOATS

_PURE: Final = frozenset({"int", "float", "compare", "logic", "move", "convert", "video"})
# f64 keeps the NaN payload of one operand, so its sums need not be the same both ways round.
COMMUTES: Final = frozenset({"add", "mul", "min", "max", "and", "or", "xor"})
_STRONG: Final = frozenset({"volatile", "relaxed", "acquire", "acq_rel", "mmio", "cv"})


Transfer: TypeAlias = "Callable[[Reading], int]"
"""Gives the dependence of all results, or their planes for a rule that follows positions."""
SplitTransfer: TypeAlias = "Callable[[Reading], tuple[int, ...]]"
"""Gives the dependence of each result."""


class Rule(NamedTuple):
    """How a shape is evaluated.

    With neither function the results depend on all that is read; so they do when `only_marked` is
    set and no operand is marked (has planes or comes from a lane exchange). `positions` gives
    planes, `results` a dependence for each result. `special` tells that special registers are
    among the operands.
    """

    only_marked: bool
    positions: Transfer | None = None
    common: Transfer | None = None
    results: SplitTransfer | None = None
    special: bool = False


def rule_of(instr: Instr) -> Rule:
    """The rule of an instruction's shape, which fixes what kinds of operand there are."""
    rule = _rule_of(instr)
    if any(type(atom) is SpecialRegister for atom in instr.args):
        return rule._replace(only_marked=False, special=True)
    return rule


def _rule_of(instr: Instr) -> Rule:
    shape = instr.shape
    row = shape.row
    found = _BY_OPCODE.get(shape.opcode)
    if found is not None:
        # The rules count on the operands that the table demands; a faulty statement has others.
        return found if shape.form is not None else OPAQUE
    if not row.known or row.category not in _PURE or shape.form is None:
        return OPAQUE
    if row.reads_carry:
        return Rule(False, common=_with_carry)
    if shape.opcode == "setp":
        return Rule(True, common=_compare)
    return Rule(True, _POSITIONS.get(shape.opcode) if _is_narrow_integer(shape) else None)


def is_timeless(shape: Shape) -> bool:
    """True if the results depend on the operands alone, whenever the instruction is executed."""
    if shape.opcode == "ld":
        return shape.space in ("param", "const")
    return shape.row.known and shape.row.category in _PURE


def _is_narrow_integer(shape: Shape) -> bool:
    """True if the result is an integer of 32 bits, or 16 where the position does not matter."""
    written = shape.types[0] if shape.types else ""
    if shape.patterns[0][0] != "s" or shape.partial or "sat" in shape.modifiers:
        return False
    if written in FLOATS or written == "pred" or "hi" in shape.modifiers:
        return False
    width = BITS.get(written, 0)
    if shape.opcode == "cvt":
        return width in (8, 16, 32) and shape.type not in FLOATS and len(shape.patterns) == 2
    if "wide" in shape.modifiers:
        return False
    return width == 32 or (width == 16 and shape.opcode in _BITWISE)


# Integers: planes in, planes out.


def _move(read: Reading) -> int:
    return read.planes(1)


def _and(read: Reading) -> int:
    for one, other in ((1, 2), (2, 1)):
        mask = read.constant(one)
        if mask is not None:
            return keep(read.planes(other), mask)
    return read.planes(1) | read.planes(2)


def _bitwise(read: Reading) -> int:
    return read.planes(1) | read.planes(2)


def _add(read: Reading) -> int:
    for one, other in ((2, 1), (1, 2)):
        constant = read.constant(one)
        if constant is not None:
            return add_constant(read.planes(other), constant)
    return carry(read.planes(1) | read.planes(2))


def _subtract(read: Reading) -> int:
    constant = read.constant(2)
    if constant is not None:
        return add_constant(read.planes(1), -constant)
    return carry(read.planes(1) | read.planes(2))


def _multiply(read: Reading) -> int:
    for one, other in ((2, 1), (1, 2)):
        constant = read.constant(one)
        if constant is not None:
            return times_constant(read.planes(other), constant)
    return carry(read.planes(1) | read.planes(2))


def _multiply_add(read: Reading) -> int:
    return carry(_multiply(read) | read.planes(3))


def _shift_left(read: Reading) -> int:
    count = read.constant(2)
    if count is None:
        return spread(read.all())
    return shift_left(read.planes(1), count & 0xFFFFFFFF)


def _shift_right(read: Reading) -> int:
    count = read.constant(2)
    if count is None:
        return spread(read.all())
    return shift_right(read.planes(1), count & 0xFFFFFFFF, _is_signed(read.shape))


def _is_signed(shape: Shape) -> bool:
    return shape.type.startswith("s")


def _extract(read: Reading) -> int:
    position, length = read.constant(2), read.constant(3)
    if position is None or length is None:
        return spread(read.all())
    # PTX ISA, "bfe": position and length are taken modulo 256.
    return field(read.planes(1), position & 255, length & 255, _is_signed(read.shape))


def _insert(read: Reading) -> int:
    position, length = read.constant(3), read.constant(4)
    if position is None or length is None:
        return spread(read.all())
    return insert(read.planes(1), read.planes(2), position & 255, length & 255)


def _convert(read: Reading) -> int:
    written, source = read.shape.types[0], read.shape.type
    planes = extend(read.planes(1), min(BITS[source], 32), source.startswith("s"))
    # PTX ISA, "cvt": a narrow result is extended to the register by its own sign.
    return extend(narrow(planes, BITS[written]), BITS[written], written.startswith("s"))


def _divide(read: Reading) -> int:
    divisor = read.constant(2)
    if divisor is None or not _is_power(divisor) or _is_signed(read.shape):
        return spread(read.all())
    return shift_right(read.planes(1), divisor.bit_length() - 1, False)


def _remainder(read: Reading) -> int:
    divisor = read.constant(2)
    if divisor is None or not _is_power(divisor) or _is_signed(read.shape):
        return spread(read.all())
    return keep(read.planes(1), divisor - 1)


def _is_power(number: int) -> bool:
    return 0 < number < 1 << 32 and number & (number - 1) == 0


def _select(read: Reading) -> int:
    return read.planes(1) | read.planes(2) | spread(read.dependence(3))


def _lookup(read: Reading) -> int:
    return read.planes(1) | read.planes(2) | read.planes(3)


_BITWISE: Final = frozenset({"mov", "and", "or", "xor", "not", "selp"})
_POSITIONS: Final[dict[str, Transfer]] = {
    "mov": _move,
    "not": _move,
    "and": _and,
    "or": _bitwise,
    "xor": _bitwise,
    "add": _add,
    "sub": _subtract,
    "mul": _multiply,
    "mad": _multiply_add,
    "shl": _shift_left,
    "shr": _shift_right,
    "bfe": _extract,
    "bfi": _insert,
    "cvt": _convert,
    "div": _divide,
    "rem": _remainder,
    "selp": _select,
    "lop3": _lookup,
}


def _compare(read: Reading) -> int:
    """`setp`: an order comparison with a constant leaves out the bits below its lowest one."""
    shape = read.shape
    if BITS.get(shape.type) != 32 or shape.type in FLOATS or len(shape.patterns) not in (3, 4):
        return read.all()
    boolean = read.dependence(3)
    bound = read.constant(2)
    if bound is not None:
        if shape.modifiers[0] in ("lt", "ge", "lo", "hs"):
            return at_least(read.planes(1), bound) | boolean
        if shape.modifiers[0] in ("gt", "le", "hi", "ls"):
            return at_least(read.planes(1), bound + 1) | boolean
    return read.dependence(1) | read.dependence(2) | boolean


# Memory.


def _load(read: Reading) -> int:
    """Lanes that read one address at one instruction get one value; other warps read it at
    another time. Read-only memory gives the same whenever it is read."""
    shape = read.shape
    if not _STRONG.isdisjoint(shape.modifiers):
        return ANY_THREAD
    address = read.all()
    space = shape.space
    if space == "param":
        return address if _is_kernel_parameter(read) else ANY_THREAD
    if space == "const" or (space == "global" and (shape.has("nc") or shape.opcode == "ldu")):
        return address
    if space in ("global", "shared"):
        return address | MEMORY | CTA_BIT
    # Local memory is private to a thread, and a generic address may point there.
    return ANY_THREAD


def _is_kernel_parameter(read: Reading) -> bool:
    """True unless the instruction may read the `.param` space of a call or a `.func`."""
    parameters = read.kernel_parameters()
    source = read.instr.operands[1]
    if parameters is None or not isinstance(source, Address):
        return False
    return not isinstance(source.base, Symbol) or source.base.name in parameters


def _sample(read: Reading) -> int:
    return read.all() | MEMORY | CTA_BIT


def _common(read: Reading) -> int:
    return read.all()


def _opaque(read: Reading) -> int:
    return ANY_THREAD


def _with_carry(read: Reading) -> int:
    """The carry flag is that of the nearest `.cc` before, in the same block."""
    return read.all() | read.carry_in()


# Warp operations. A mask that the lanes share names one group, whatever group that is.


def _shuffle(read: Reading) -> tuple[int, ...]:
    source, found = read.dependence(1), 0
    mode = next((m for m in read.shape.modifiers if m in ("idx", "up", "down", "bfly")), "")
    control, mask = read.constant(3), read.dependence(4)
    whole = control is not None and control & 31 == 31 and mode in ("idx", "bfly")
    segment = (control or 0) >> 8 & 31
    in_range = 0 if whole and not mask & LANE and (mode == "idx" or not segment) else ANY_THREAD
    if not source & LANE:
        found = source
    elif mask & LANE or not whole:
        found = source | ANY_THREAD
    elif mode == "bfly":
        found = source | _exchanged_lanes(read, segment)
    elif read.dependence(2) & LANE:
        found = source | ANY_THREAD
    else:
        # Lane bits outside of the segment are those of operand b, the others the reader's own.
        found = source & ~LANE | segment | read.dependence(2) | mask
    return (found, in_range)[: len(read.instr.defs)] if _writes_value(read.shape) else (in_range,)


def _exchanged_lanes(read: Reading, segment: int) -> int:
    """What `shfl.bfly` mixes in besides the source's own lanes: nothing if b is a constant."""
    other = read.constant(2)
    if other is None or not 0 <= other < 32 or other & segment:
        return ANY_THREAD
    value = read.value(1)
    if value is not None and other & (other - 1) == 0 and other and _writes_value(read.shape):
        read.note_exchange(value, other)
    return 0


def _writes_value(shape: Shape) -> bool:
    """False for `_|p`: only the companion predicate is written."""
    written = shape.patterns[0]
    return not (written[0] == "b" and written[2][0] == "_")


def _agree(read: Reading, source: int, mask: int) -> int:
    """A result that all lanes of the mask (operand 2) share, of a source that they may not."""
    if mask & LANE:
        return ANY_THREAD
    shared = source & ~LANE | mask
    # The last warp of a CTA may have fewer lanes, and any warp may leave some out.
    return shared if read.names_all_lanes(2) else shared | ANY_WARP


def _vote(read: Reading) -> int:
    source, mask = read.dependence(1), read.dependence(2)
    if not (source | mask) & LANE and not read.shape.has("ballot"):
        return source | mask
    # A ballot shows which lanes there are.
    return _agree(read, source, mask)


def _reduce(read: Reading) -> int:
    source, mask = read.dependence(1), read.dependence(2)
    idempotent = any(read.shape.has(word) for word in ("min", "max", "and", "or"))
    if not (source | mask) & LANE and idempotent:
        return source | mask
    return _agree(read, source, mask)


def _match(read: Reading) -> int:
    source, mask = read.dependence(1), read.dependence(2)
    if read.shape.has("any") and source & LANE:
        return ANY_THREAD
    return _agree(read, source, mask)


def _elect(read: Reading) -> tuple[int, ...]:
    # Which lane it is is not said (PTX ISA, "elect.sync").
    mask = read.dependence(1)
    leader = ANY_THREAD if mask & LANE else mask | ANY_WARP
    both = _writes_value(read.shape)
    return (leader, ANY_THREAD)[: len(read.instr.defs)] if both else (ANY_THREAD,)


def _active(read: Reading) -> int:
    return ANY_THREAD if read.is_split() else ANY_WARP


def _barrier(read: Reading) -> int:
    """`bar.red`: all threads of the CTA take part unless a count is given."""
    if read.shape.patterns and not read.shape.has("red"):
        return ANY_THREAD
    whole = len(read.shape.patterns) == 3 and not read.dependence(1)
    return CTA_BIT if whole else ANY_WARP


OPAQUE: Final = Rule(False, common=_opaque)
_SAMPLE: Final = Rule(False, common=_sample)
_SAME: Final = Rule(False, common=_common)
_BY_OPCODE: Final[dict[str, Rule]] = {
    "ld": Rule(False, common=_load),
    "ldu": Rule(False, common=_load),
    "tex": _SAMPLE,
    "tld4": _SAMPLE,
    "suld": _SAMPLE,
    "txq": _SAME,
    "suq": _SAME,
    "istypep": _SAME,
    "createpolicy": _SAME,
    "shfl": Rule(False, results=_shuffle),
    "vote": Rule(False, common=_vote),
    "redux": Rule(False, common=_reduce),
    "match": Rule(False, common=_match),
    "elect": Rule(False, results=_elect),
    "activemask": Rule(False, common=_active),
    "bar": Rule(False, common=_barrier),
    "barrier": Rule(False, common=_barrier),
    "alloca": OPAQUE,
    "stacksave": OPAQUE,
}
