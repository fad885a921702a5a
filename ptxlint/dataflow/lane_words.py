"""Integer words that are linear in the bits of the thread index: addresses in shared memory.

A word is `add + (fix ^ basis[i] ^ …)`, with the entry of each set bit i of the thread index, modulo
the register's width. Shifts, masks, exclusive ors, bit fields and sums without carries keep that
form, so that swizzled addresses have it though they are no sums. Values that loops or branches
choose (the stage of a pipelined loop) are looked up in a *state*, which gives numbers to phis.

The address of a shared variable is taken to be a multiple of 1024, which the swizzles of `wgmma`
and of tensor copies need anyway; the word is then the offset from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from operator import or_
from typing import Final, NamedTuple, TypeAlias

from ptxlint.dataflow.lane_map import span_value
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
    Vector,
)
from ptxlint.ir.pattern import fold
from ptxlint.ir.types import BITS

Condition: TypeAlias = "tuple[tuple[int, int], ...]"
"""The threads t for which all (mask, parity) hold: t & mask has that parity of set bits."""
Known: TypeAlias = "Word | Condition | None"
"""A word, a condition (of a predicate), or None for what is not known."""
State: TypeAlias = "Mapping[int, Known]"
"""By phi what it is; None or absent for one that is not known."""

TRUE: Final[Condition] = ()
FALSE: Final[Condition] = ((0, 1),)
_MAX_DEPTH: Final = 20_000
_LOOKED_THROUGH: Final = 6
"""Operations on single bits that a mask is put through."""


class Word(NamedTuple):
    """A word of each thread. `fix` has no bits but those in which the entries differ.

    `symbol` is the shared variable whose address is in it, "" for none.
    """

    add: int
    fix: int
    basis: tuple[int, ...]
    symbol: str = ""

    @property
    def moving(self) -> int:
        """The bits of the lane part that differ between threads."""
        return reduce(or_, self.basis, 0)

    @property
    def is_uniform(self) -> bool:
        """True if it is the same in all threads."""
        return not any(self.basis)

    @property
    def constant(self) -> int | None:
        """What thread 0 has where no carry runs into the moving bits; None elsewhere."""
        return None if self.add & self.moving else self.add | self.fix

    def value(self, thread: int) -> int:
        """The word of one thread, not reduced to the register's width."""
        return self.add + (self.fix ^ span_value(self.basis, thread))


class _Varying:
    """Stands for a value that depends on a phi, in the evaluation without a state."""


VARYING: Final = _Varying()
_Known: TypeAlias = "Known | _Varying"


class LaneWords:
    """The words and conditions of one function, evaluated when asked for.

    `width` is how many bits a thread index has; what is found holds for the threads in which the
    bits of `muted` are 0. A result of None means: not of this form, or not known.
    """

    def __init__(self, ssa: Ssa, width: int, muted: int = 0) -> None:
        self._ssa = ssa
        self.width = width
        self._muted = muted
        self._instrs = ssa.cfg.function.instrs
        self._none = (0,) * width
        self._plain: dict[int, _Known] = {}
        self._by_state: dict[int, dict[int, _Known]] = {}
        self.phis: list[int] = []
        """The phis that values which were asked for depend on, in the order of discovery."""

    def constant(self, number: int) -> Word:
        """The same number in all threads."""
        return Word(number, 0, self._none)

    # Asking -----------------------------------------------------------------------------------
    def plain(self, value: int) -> _Known:
        """What a value is without a state; `VARYING` if it depends on a phi."""
        if value not in self._plain:
            self._evaluate(value, self._plain, None)
        return self._plain[value]

    def under(self, value: int, number: int, state: State) -> Known:
        """What a value is in a state; `number` identifies the state."""
        found = self.plain(value)
        if isinstance(found, _Varying):
            known = self._by_state.setdefault(number, {})
            if value not in known:
                self._evaluate(value, known, state)
            found = known[value]
        return None if isinstance(found, _Varying) else found

    def forget(self) -> None:
        """Forget what was found in states."""
        self._by_state.clear()

    def read(self, instr: Instr, operand: Operand, number: int, state: State) -> Word | None:
        """An operand of an instruction as a word in a state."""
        if isinstance(operand, Register):
            found = self.under(self.value_read(instr, operand), number, state)
            return found if isinstance(found, Word) else None
        return self._leaf(instr, operand)

    def address(self, instr: Instr, address: Address, number: int, state: State) -> Word | None:
        """An address as a word in a state, its offset included."""
        base = self.read(instr, address.base, number, state)
        if base is None or address.rest:
            return None
        return make(base.add + address.offset, base.fix, base.basis, 32, base.symbol)

    def value_read(self, instr: Instr, register: Register) -> int:
        """The value that an instruction reads from a register."""
        return self._ssa.use_values[instr.index][instr.uses.index(register)]

    # Evaluation -------------------------------------------------------------------------------
    def _evaluate(self, wanted: int, known: dict[int, _Known], state: State | None) -> None:
        """Evaluate a value and what it needs; without recursion over the chain of operands."""
        stack = [wanted]
        while stack:
            value = stack[-1]
            if value in known:
                stack.pop()
                continue
            missing = [v for v in self._needs(value, state) if v not in known]
            if state is not None:
                missing = [v for v in missing if self.plain(v) is VARYING]
            if missing and len(stack) < _MAX_DEPTH:
                stack += missing
                continue
            known[value] = None if missing else self._transfer(value, known, state)

    def _needs(self, value: int, state: State | None) -> tuple[int, ...]:
        ssa = self._ssa
        root = ssa.resolve(value)
        if root != value:
            return (root,)
        kind = ssa.kind[value]
        if kind == MERGE:
            return ssa.operands[value]
        if kind == RESULT and _is_followed(self._instrs[ssa.instr[value]], ssa, value):
            return ssa.operands[value]
        return ()

    def _transfer(self, value: int, known: dict[int, _Known], state: State | None) -> _Known:
        ssa = self._ssa
        root = ssa.resolve(value)
        lookup = known if state is None else _Layers(known, self._plain)
        if root != value:
            return lookup[root]
        kind = ssa.kind[value]
        if kind == PHI:
            if state is None:
                self.phis.append(value)
                return VARYING
            return self._quiet(state.get(value))
        if kind == MERGE:
            predicate, yes, no = (lookup[v] for v in ssa.operands[value])
            if isinstance(predicate, _Varying) or yes is VARYING or no is VARYING:
                return VARYING
            return select(predicate, yes, no)
        if kind != RESULT:
            return None
        instr = self._instrs[ssa.instr[value]]
        if not _is_followed(instr, ssa, value):
            return None
        if any(lookup[v] is VARYING for v in ssa.operands[value]):
            return VARYING
        return self._apply(instr, value, lookup)

    def _quiet(self, found: Known) -> Known:
        """What is known of a phi, for the threads in which the muted bits are 0."""
        if not self._muted or found is None:
            return found
        if not isinstance(found, Word):
            return tuple((mask & ~self._muted, parity) for mask, parity in found)
        basis = tuple([0 if self._muted >> i & 1 else e for i, e in enumerate(found.basis)])
        return make(found.add, found.fix, basis, 64, found.symbol)

    def _apply(self, instr: Instr, value: int, lookup: Mapping[int, _Known]) -> _Known:
        """The result of an instruction from what its operands are."""
        values = self._ssa.use_values[instr.index]
        words: list[Known] = []
        for operand in _sources(instr):
            if isinstance(operand, Register):
                found = lookup[values[instr.uses.index(operand)]]
                words.append(None if isinstance(found, _Varying) else found)
            elif isinstance(operand, Negated) and isinstance(operand.operand, Register):
                found = lookup[values[instr.uses.index(operand.operand)]]
                plain = None if isinstance(found, _Varying | Word) else found
                words.append(complement(plain) if operand.sign == "!" else None)
            else:
                words.append(self._leaf(instr, operand))
        if instr.shape.opcode == "and" and words[0] is None:
            mask, source = _number(words[1]), instr.operands[1]
            if mask is not None and isinstance(source, Register):
                read = values[instr.uses.index(source)]
                return self._masked(read, mask, lookup, _LOOKED_THROUGH)
        return _RULES[instr.shape.opcode](instr, words, self._ssa.result[value])

    def _masked(
        self, value: int, mask: int, lookup: Mapping[int, _Known], depth: int
    ) -> Word | None:
        """Some bits of a word that is not linear as a whole: those of what it is made of."""
        ssa = self._ssa
        root = ssa.resolve(value)
        try:
            found = lookup[root]
        except KeyError:
            return None
        bits = BITS.get(ssa.register[root].type, 32)
        if isinstance(found, Word):
            return _and(found, self.constant(mask), bits)
        if found is not None or ssa.kind[root] != RESULT or not depth:
            return None
        instr = self._instrs[ssa.instr[root]]
        opcode, parts = instr.shape.opcode, ssa.operands[root]
        if instr.shape.type == "pred" or len(instr.operands) != 3:
            return None
        if opcode in ("or", "xor", "and") and len(parts) == 2:
            a, b = (self._masked(part, mask, lookup, depth - 1) for part in parts)
            return None if a is None or b is None else _BITWISE[opcode](a, b, bits)
        amount = fold(instr.operands[2])
        if opcode not in ("shl", "shr") or instr.shape.type.startswith("s") or len(parts) != 1:
            return None
        if amount is None or not 0 <= amount < bits:
            return None
        if opcode == "shl":
            inner = self._masked(parts[0], mask >> amount, lookup, depth - 1)
            return None if inner is None else _times(inner, 1 << amount, bits)
        inner = self._masked(parts[0], mask << amount & (1 << bits) - 1, lookup, depth - 1)
        return None if inner is None else _linear(inner, bits, lambda x: x >> amount)

    def _leaf(self, instr: Instr, operand: Operand) -> Word | None:
        """An operand that is no register."""
        if isinstance(operand, Symbol):
            return Word(0, 0, self._none, operand.name) if operand.kind == "variable" else None
        if isinstance(operand, SpecialRegister):
            return self._special(operand.name)
        if isinstance(operand, Immediate) and operand.kind != "int":
            return None
        constant = fold(operand)
        if constant is None:
            return None
        return self.constant(constant & (1 << BITS.get(instr.shape.type, 64)) - 1)

    def _special(self, name: str) -> Word | None:
        if name in ("%tid.x", "%laneid"):
            bits = (1 << self.width) - 1 if name == "%tid.x" else 31
            bits &= ~self._muted
            return Word(0, 0, tuple(bits & 1 << i for i in range(self.width)))
        if name in ("%tid.y", "%tid.z"):
            return self.constant(0)
        if name == "%ntid.x":
            return self.constant(1 << self.width)
        return self.constant(32) if name == "WARP_SZ" else None


class _Layers(dict[int, _Known]):
    """What holds in a state, and below it what holds in all."""

    def __init__(self, above: dict[int, _Known], below: dict[int, _Known]) -> None:
        super().__init__()
        self._above = above
        self._below = below

    def __missing__(self, value: int) -> _Known:
        found = self._below.get(value)
        return self._above[value] if found is VARYING else found


def _sources(instr: Instr) -> tuple[Operand, ...]:
    """The operands that are read; those of a `mov` that packs are its vector's elements."""
    last = instr.operands[-1]
    return last.elements if isinstance(last, Vector) else instr.operands[1:]


def _is_followed(instr: Instr, ssa: Ssa, value: int) -> bool:
    """True if an instruction is one of those that keep words linear."""
    shape = instr.shape
    if shape.opcode not in _RULES or shape.partial or shape.has("sat") or shape.has("cc"):
        return False
    return shape.patterns[0][0] in "sb" and not shape.type.startswith("f")


# Words ------------------------------------------------------------------------------------------


def make(add: int, fix: int, basis: tuple[int, ...], bits: int, symbol: str = "") -> Word:
    """A word of a register with `bits` bits in its normal form."""
    mask = (1 << bits) - 1
    basis = tuple([entry & mask for entry in basis])
    moving = reduce(or_, basis, 0)
    still = fix & mask & ~moving
    return Word((add + still) & mask, fix & moving, basis, symbol)


def _linear(word: Word, bits: int, apply: Callable[[int], int]) -> Word | None:
    """A function that commutes with exclusive or, applied to a word."""
    constant = word.constant
    if constant is None:
        return None
    return make(0, apply(constant), tuple([apply(e) for e in word.basis]), bits, word.symbol)


def _step(word: Word) -> int | None:
    """What is xored to a word that has at most two values; None if it may have more."""
    steps = {entry for entry in word.basis if entry}
    return None if len(steps) > 1 else steps.pop() if steps else 0


def _two_valued(word: Word, bits: int, apply: Callable[[int], int]) -> Word | None:
    """Any function of a word that has at most two values."""
    constant, step = word.constant, _step(word)
    if constant is None or step is None:
        return None
    first = apply(constant)
    change = first ^ apply(constant ^ step)
    basis = tuple([change if entry else 0 for entry in word.basis])
    return make(0, first, basis, bits, word.symbol)


def _symbol(a: Word, b: Word) -> str | None:
    """The variable of which a result holds the address; None for a mixture of two."""
    if a.symbol and b.symbol:
        return None
    return a.symbol or b.symbol


def add_words(a: Word, b: Word, bits: int) -> Word | None:
    """The sum of two words; None where carries would run between lane parts."""
    symbol = _symbol(a, b)
    if symbol is None:
        return None
    if a.moving & b.moving:
        return _term_by_term(a, b, 1, bits, symbol)
    basis = tuple([x | y for x, y in zip(a.basis, b.basis, strict=True)])
    return make(a.add + b.add, a.fix | b.fix, basis, bits, symbol)


def _subtract(a: Word, b: Word, bits: int) -> Word | None:
    if b.is_uniform:
        if b.symbol:
            same = a.symbol == b.symbol
            return make(a.add - b.add, a.fix, a.basis, bits) if same else None
        return make(a.add - b.add, a.fix, a.basis, bits, a.symbol)
    return None if b.symbol else _term_by_term(a, b, -1, bits, a.symbol)


def _term_by_term(a: Word, b: Word, sign: int, bits: int, symbol: str) -> Word | None:
    """`a + sign * b` where both are sums over the bits of the thread index, and so is that."""
    x, y = _terms(a), _terms(b)
    if x is None or y is None:
        return None
    add, fix, moving = a.add + sign * b.add + x[0] + sign * y[0], 0, 0
    basis = []
    for p, q in zip(x[1], y[1], strict=True):
        term = p + sign * q
        size = abs(term)
        if size & moving:
            return None
        moving |= size
        basis.append(size)
        if term < 0:
            # -c t is c (1 - t) - c.
            add -= size
            fix |= size
    return make(add, fix, tuple(basis), bits, symbol)


def _terms(word: Word) -> tuple[int, list[int]] | None:
    """The lane part of a word as a number and a factor for each bit of the thread index."""
    start, out, moving = 0, [], 0
    for entry in word.basis:
        if entry & moving or entry & word.fix not in (0, entry):
            return None
        moving |= entry
        if entry & word.fix:
            start += entry
            entry = -entry
        out.append(entry)
    return start, out


def xor_words(a: Word, b: Word, bits: int) -> Word | None:
    """The exclusive or of two words."""
    symbol, x, y = _symbol(a, b), a.constant, b.constant
    if symbol is None or x is None or y is None:
        return None
    basis = tuple([p ^ q for p, q in zip(a.basis, b.basis, strict=True)])
    return make(0, x ^ y, basis, bits, symbol)


def _and(a: Word, b: Word, bits: int) -> Word | None:
    if not b.is_uniform:
        a, b = b, a
    if b.is_uniform:
        mask = b.add
        if not mask & mask + 1 and a.add + a.moving <= mask:
            return a
        return _linear(a, bits, lambda x: x & mask)
    x, y = a.constant, b.constant
    if x is None or y is None:
        return None
    if not (x | a.moving) & (y | b.moving):
        return make(0, 0, (0,) * len(a.basis), bits)
    return a if a == b else None


def _or(a: Word, b: Word, bits: int) -> Word | None:
    for small, large in ((a, b), (b, a)):
        if large.is_uniform and small.add + small.moving < large.add & -large.add:
            return add_words(small, large, bits)
    x, y = a.constant, b.constant
    if x is None or y is None:
        return None
    if not (x | a.moving) & (y | b.moving):
        return xor_words(a, b, bits)
    if not b.is_uniform:
        a, b = b, a
    if b.is_uniform:
        mask = b.add
        kept = _linear(a, bits, lambda v: v & ~mask)
        return None if kept is None else xor_words(kept, b, bits)
    return a if a == b else None


def _times(word: Word, factor: int, bits: int) -> Word | None:
    """A product with a number."""
    factor &= (1 << bits) - 1
    if word.symbol:
        return None
    if not factor & factor - 1:
        return make(
            word.add * factor, word.fix * factor, tuple([e * factor for e in word.basis]), bits
        )
    taken, moving = 0, word.moving
    while moving:
        bit = moving & -moving
        moving ^= bit
        image = bit * factor & (1 << bits) - 1
        if taken & image:
            return _two_valued(word, bits, lambda x: x * factor)
        taken |= image
    # The images of single bits do not overlap: their sum is their exclusive or.
    images = tuple([entry * factor for entry in word.basis])
    return make(word.add * factor, word.fix * factor, images, bits)


def _multiply(a: Word, b: Word, bits: int) -> Word | None:
    if b.is_uniform and not b.symbol:
        return _times(a, b.add, bits)
    if a.is_uniform and not a.symbol:
        return _times(b, a.add, bits)
    return None


def _signed(value: int, bits: int) -> int:
    value &= (1 << bits) - 1
    return value - (1 << bits) if value >> bits - 1 else value


def _widen(word: Word, source: int, signed: bool, bits: int) -> Word | None:
    """A word of `source` bits in a wider register."""
    if bits <= source:
        return make(word.add, word.fix, word.basis, bits, word.symbol)
    low = (1 << source) - 1
    if word.constant is not None:
        if signed:
            return _linear(word, bits, lambda x: _signed(x, source))
        return _linear(word, bits, lambda x: x & low)
    limit = source - 1 if signed else source
    fits = word.add + word.moving < 1 << limit
    return make(word.add, word.fix, word.basis, bits, word.symbol) if fits else None


# Conditions -------------------------------------------------------------------------------------


def complement(condition: Condition | None) -> Condition | None:
    """The threads for which a condition does not hold; None if that is no such set."""
    if condition is None or len(condition) > 1:
        return None
    if not condition:
        return FALSE
    ((mask, parity),) = condition
    return TRUE if not mask and parity else ((mask, 1 - parity),)


def both(a: Condition | None, b: Condition | None) -> Condition | None:
    """The threads for which both hold."""
    if a == FALSE or b == FALSE:
        return FALSE
    if a is None or b is None:
        return None
    return a + tuple(c for c in b if c not in a)


def _either(a: Condition | None, b: Condition | None) -> Condition | None:
    if a == TRUE or b == TRUE:
        return TRUE
    if a == FALSE:
        return b
    if b == FALSE or a == b:
        return a
    return None


def _zero(word: Word, among: int = -1) -> Condition | None:
    """The threads in which these bits of a word are all 0."""
    constant = word.constant
    if constant is None:
        return None
    if constant & ~word.moving & among:
        return FALSE
    out: list[tuple[int, int]] = []
    moving = word.moving & among
    while moving:
        bit = moving & -moving
        moving ^= bit
        mask = sum(1 << i for i, entry in enumerate(word.basis) if entry & bit)
        term = (mask, int(constant & bit != 0))
        if (mask, 1 - term[1]) in out:
            return FALSE
        if term not in out:
            out.append(term)
    return tuple(out)


_ORDERS: Final = {"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}
_SWAPPED: Final = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}


def _compare(order: str, a: Word, b: Word, bits: int, signed: bool) -> Condition | None:
    """The threads for which a comparison holds."""
    if a.symbol != b.symbol:
        return None
    if order in ("eq", "ne"):
        difference = xor_words(a._replace(symbol=""), b._replace(symbol=""), bits)
        if difference is None:
            return None
        equal = _zero(difference)
        return equal if order == "eq" else complement(equal)
    order = _ORDERS.get(order, order)
    if not b.is_uniform:
        a, b, order = b, a, _SWAPPED.get(order, "")
    if not b.is_uniform or order not in _SWAPPED:
        return None
    bound = _signed(b.add, bits) if signed else b.add
    if order in ("le", "gt"):
        bound += 1
    below = _below(a, bound, bits, signed)
    return below if order in ("lt", "le") else complement(below)


def _below(a: Word, bound: int, bits: int, signed: bool) -> Condition | None:
    """The threads in which a word is below a number."""
    constant = a.constant
    if constant is None:
        return None
    step = _step(a)
    if step is not None:
        values = [constant, constant ^ step]
        met = [(_signed(v, bits) if signed else v) < bound for v in values]
        if met[0] == met[1]:
            return TRUE if met[0] else FALSE
        mask = sum(1 << i for i, entry in enumerate(a.basis) if entry)
        return ((mask, int(not met[0])),)
    top = constant | a.moving
    if signed and top >> bits - 1:
        return None
    if bound > top:
        return TRUE
    if bound <= constant & ~a.moving:
        return FALSE
    return _zero(a, ~(bound - 1)) if not bound & bound - 1 else None


def select(predicate: Known, yes: _Known, no: _Known) -> Known:
    """What is chosen by a condition: `yes` where it holds."""
    if isinstance(yes, _Varying) or isinstance(no, _Varying):
        return None
    if yes == no:
        return yes
    if predicate is None or isinstance(predicate, Word):
        return None
    if predicate == TRUE:
        return yes
    if predicate == FALSE:
        return no
    if len(predicate) > 1 or not isinstance(yes, Word) or not isinstance(no, Word):
        return None
    x, y = yes.constant, no.constant
    if x is None or y is None or yes.basis != no.basis or yes.symbol != no.symbol:
        return None
    ((mask, parity),) = predicate
    basis = tuple([e ^ (x ^ y if mask >> i & 1 else 0) for i, e in enumerate(no.basis)])
    return make(0, y if parity else x, basis, 64, yes.symbol)


# Instructions -----------------------------------------------------------------------------------

_Words: TypeAlias = "list[Known]"
_Rule: TypeAlias = "Callable[[Instr, _Words, int], Known]"


def _words(words: _Words, count: int) -> list[Word] | None:
    found = [w for w in words[:count] if isinstance(w, Word)]
    return found if len(found) == count and len(words) >= count else None


def _conditions(words: _Words) -> list[Condition | None]:
    return [None if isinstance(w, Word) else w for w in words]


def _number(word: Known) -> int | None:
    """A word that is the same number in all threads."""
    if isinstance(word, Word) and word.is_uniform and not word.symbol:
        return word.add
    return None


def _bits(instr: Instr) -> int:
    return BITS.get(instr.shape.type, 32)


def _binary(apply: Callable[[Word, Word, int], Word | None]) -> _Rule:
    def rule(instr: Instr, words: _Words, result: int) -> Known:
        found = _words(words, 2)
        return None if found is None else apply(found[0], found[1], _bits(instr))

    return rule


def _logic(
    apply: Callable[[Word, Word, int], Word | None],
    predicates: Callable[[Condition | None, Condition | None], Condition | None],
) -> _Rule:
    on_words = _binary(apply)

    def rule(instr: Instr, words: _Words, result: int) -> Known:
        if instr.shape.type != "pred":
            return on_words(instr, words, result)
        a, b = _conditions([_as_condition(w) for w in words[:2]])
        return predicates(a, b)

    return rule


def _as_condition(word: Known) -> Condition | None:
    """A predicate; a number stands for a constant one."""
    if isinstance(word, Word):
        return (TRUE if word.add else FALSE) if word.is_uniform else None
    return word


def _xor_predicates(a: Condition | None, b: Condition | None) -> Condition | None:
    if a in (TRUE, FALSE):
        a, b = b, a
    if b == TRUE:
        return complement(a)
    return a if b == FALSE else None


def _mov(instr: Instr, words: _Words, result: int) -> Known:
    if len(words) == 1:
        return _as_condition(words[0]) if instr.shape.type == "pred" else words[0]
    return _pack(words, _bits(instr))


def _pack(words: _Words, bits: int) -> Word | None:
    """Words side by side in one of `bits` bits, the lowest first."""
    found = _words(words, len(words))
    if not found:
        return None
    step = bits // len(found)
    packed: Word | None = None
    for word in reversed(found):
        above = None if packed is None else _linear(packed, bits, lambda x: x << step)
        packed = word if above is None else xor_words(above, word, bits)
        if packed is None or (above is None and word is not found[-1]):
            return None
    return packed


def _not(instr: Instr, words: _Words, result: int) -> Known:
    if instr.shape.type == "pred":
        return complement(_as_condition(words[0]))
    found, bits = _words(words, 1), _bits(instr)
    if found is None or found[0].constant is None or found[0].symbol:
        return None
    return make(0, found[0].constant ^ (1 << bits) - 1, found[0].basis, bits)


def _neg(instr: Instr, words: _Words, result: int) -> Known:
    found = _words(words, 1)
    if found is None or found[0].symbol:
        return None
    return _two_valued(found[0], _bits(instr), lambda x: -x)


def _shift(instr: Instr, words: _Words, result: int) -> Known:
    found, bits = _words(words, 1), _bits(instr)
    amount = _number(words[1])
    if found is None or amount is None:
        return None
    word = found[0]
    if instr.opcode == "shl":
        if word.symbol:
            return None
        if amount >= bits:
            return make(0, 0, (0,) * len(word.basis), bits)
        entries = tuple([e << amount for e in word.basis])
        return make(word.add << amount, word.fix << amount, entries, bits)
    signed = instr.shape.type.startswith("s")
    if signed:
        return _linear(word, bits, lambda x: _signed(x, bits) >> min(amount, bits - 1))
    return _linear(word, bits, lambda x: x >> amount)


def _field(instr: Instr, words: _Words, result: int) -> Known:
    found, bits = _words(words, 1), _bits(instr)
    start, length = _number(words[1]), _number(words[2])
    if found is None or start is None or length is None:
        return None
    start, length = start & 255, length & 255
    if start + length > bits:
        length = max(bits - start, 0)
    mask = (1 << length) - 1
    if instr.shape.type.startswith("s") and length:
        return _linear(found[0], bits, lambda x: _signed(x >> start & mask, length))
    return _linear(found[0], bits, lambda x: x >> start & mask)


def _insert(instr: Instr, words: _Words, result: int) -> Known:
    found, bits = _words(words, 2), _bits(instr)
    start, length = _number(words[2]), _number(words[3])
    if found is None or start is None or length is None:
        return None
    start, length = start & 255, length & 255
    mask = (1 << min(length, max(bits - start, 0))) - 1
    inner = _linear(found[0], bits, lambda x: (x & mask) << start)
    outer = _linear(found[1], bits, lambda x: x & ~(mask << start))
    if inner is None or outer is None:
        return None
    return xor_words(inner, outer, bits)


def _product(instr: Instr, words: _Words, result: int) -> Known:
    found, bits = _words(words, 2), _bits(instr)
    shape = instr.shape
    if found is None or shape.has("hi"):
        return None
    if not shape.has("wide"):
        return _multiply(found[0], found[1], bits)
    signed = shape.type.startswith("s")
    a, b = (_widen(w, bits, signed, bits * 2) for w in found)
    return None if a is None or b is None else _multiply(a, b, bits * 2)


def _multiply_add(instr: Instr, words: _Words, result: int) -> Known:
    product = _product(instr, words, result)
    if not isinstance(product, Word) or len(words) < 3 or not isinstance(words[2], Word):
        return None
    return add_words(product, words[2], _bits(instr) * (2 if instr.shape.has("wide") else 1))


def _divide(instr: Instr, words: _Words, result: int) -> Known:
    found, bits = _words(words, 1), _bits(instr)
    divisor = _number(words[1])
    if found is None or not divisor or divisor & divisor - 1:
        return None
    constant = found[0].constant
    if constant is None:
        return None
    if instr.shape.type.startswith("s") and (constant | found[0].moving | divisor) >> bits - 1:
        return None
    if instr.opcode == "rem":
        return _linear(found[0], bits, lambda x: x & divisor - 1)
    shift = divisor.bit_length() - 1
    return _linear(found[0], bits, lambda x: x >> shift)


def _extreme(instr: Instr, words: _Words, result: int) -> Known:
    found, bits = _words(words, 2), _bits(instr)
    if found is None:
        return None
    word, bound = found[0], _number(found[1])
    if bound is None:
        word, bound = found[1], _number(found[0])
    if bound is None or word.symbol:
        return None
    choose = min if instr.opcode == "min" else max
    if instr.shape.type.startswith("s"):
        return _two_valued(word, bits, lambda x: choose(_signed(x, bits), _signed(bound, bits)))
    return _two_valued(word, bits, lambda x: choose(x, bound))


def _convert(instr: Instr, words: _Words, result: int) -> Known:
    found, types = _words(words, 1), instr.shape.types
    if found is None or len(types) != 2 or "f" in types[0][0] + types[1][0]:
        return None
    source, target = BITS.get(types[1], 32), BITS.get(types[0], 32)
    narrow = make(found[0].add, found[0].fix, found[0].basis, source, found[0].symbol)
    return _widen(narrow, source, types[1].startswith("s"), target)


def _choose(instr: Instr, words: _Words, result: int) -> Known:
    if len(words) != 3:
        return None
    found = select(_as_condition(words[2]), words[0], words[1])
    if not isinstance(found, Word):
        return found
    return make(found.add, found.fix, found.basis, _bits(instr), found.symbol)


def _set_predicate(instr: Instr, words: _Words, result: int) -> Known:
    found, shape = _words(words, 2), instr.shape
    if found is None or len(words) != 2 or result:
        return None
    return _compare(
        shape.modifiers[0], found[0], found[1], _bits(instr), shape.type.startswith("s")
    )


def _permute(instr: Instr, words: _Words, result: int) -> Known:
    """`prmt` with a constant selector (PTX ISA, "prmt"): bytes move, or a sign is spread."""
    found = _words(words, 2)
    selector = _number(words[2])
    modes = [m for m in instr.shape.modifiers if m not in ("b32",)]
    if found is None or selector is None or modes:
        return None
    a, b = found
    x, y, symbol = a.constant, b.constant, _symbol(a, b)
    if x is None or y is None or symbol is None:
        return None

    def apply(low: int, high: int) -> int:
        source = low | high << 32
        out = 0
        for at in range(4):
            choice = selector >> 4 * at & 15
            byte = source >> 8 * (choice & 7) & 255
            if choice & 8:
                byte = 255 if byte >> 7 else 0
            out |= byte << 8 * at
        return out

    basis = tuple([apply(p, q) for p, q in zip(a.basis, b.basis, strict=True)])
    return make(0, apply(x, y), basis, 32, symbol)


def _funnel(instr: Instr, words: _Words, result: int) -> Known:
    """`shf` by a constant (PTX ISA, "shf")."""
    found = _words(words, 2)
    amount = _number(words[2])
    if found is None or amount is None:
        return None
    a, b = found
    x, y, symbol = a.constant, b.constant, _symbol(a, b)
    if x is None or y is None or symbol is None:
        return None
    count = amount & 31 if instr.shape.has("wrap") else min(amount, 32)
    left = instr.shape.has("l")

    def apply(low: int, high: int) -> int:
        both_words = low | high << 32
        return both_words << count >> 32 if left else both_words >> count

    basis = tuple([apply(p, q) for p, q in zip(a.basis, b.basis, strict=True)])
    return make(0, apply(x, y), basis, 32, symbol)


def _shuffle(instr: Instr, words: _Words, result: int) -> Known:
    """`shfl.sync.idx` from one lane by number: the same for the warp."""
    found = _words(words, 1)
    lane, clamp, members = (_number(w) for w in (*words[1:4], None, None, None)[:3])
    if found is None or result or not instr.shape.has("idx"):
        return None
    if lane is None or lane > 31 or clamp != 31 or members != 0xFFFFFFFF:
        return None
    word = found[0]
    constant = word.constant
    if constant is None:
        return None
    constant ^= span_value(word.basis[:5], lane)
    return make(0, constant, (0,) * min(5, len(word.basis)) + word.basis[5:], 32, word.symbol)


_BITWISE: Final = {"or": _or, "xor": xor_words, "and": _and}
_RULES: Final[dict[str, _Rule]] = {
    "mov": _mov, "cvta": _mov, "add": _binary(add_words), "sub": _binary(_subtract),
    "xor": _logic(xor_words, _xor_predicates), "and": _logic(_and, both),
    "or": _logic(_or, _either), "not": _not, "neg": _neg, "shl": _shift, "shr": _shift,
    "bfe": _field, "bfi": _insert, "mul": _product, "mad": _multiply_add, "div": _divide,
    "rem": _divide, "min": _extreme, "max": _extreme, "cvt": _convert, "selp": _choose,
    "setp": _set_predicate, "prmt": _permute, "shf": _funnel, "shfl": _shuffle,
}  # fmt: skip
