"""Bit operations on polynomials: and, or, xor, shifts as sums where bits are disjoint."""

from __future__ import annotations

from math import gcd
from typing import Final

from ptxlint.dataflow.polynomial import INFINITY, AtomTable, Monomial, Polynomial

_MOST_SET: Final = 3
"""Bits that are set one by one."""
_LEAST_MAGIC: Final = 1 << 16
"""Divisors from here on may belong to a division by a product."""


def trailing_zeros(value: int) -> int:
    """How often 2 divides a non-zero number; a large number for 0."""
    return (value & -value).bit_length() - 1 if value else 512


def low_zeros(poly: Polynomial) -> int:
    """How many low bits of the polynomial are certainly zero."""
    atoms = poly.table.atoms
    found = 512
    for monomial, coefficient in poly.terms.items():
        zeros = trailing_zeros(coefficient)
        if zeros < found and len(monomial) == 1:
            atom = atoms[monomial[0]]
            if atom.kind == "select":
                zeros += min(low_zeros(atom.data[1]), low_zeros(atom.data[2]))
        found = min(found, zeros)
    return found


def floor_divide(poly: Polynomial, divisor: int) -> Polynomial:
    """floor(poly / divisor) for a positive divisor: exact multiples are split off."""
    table = poly.table
    if divisor == 1:
        return poly
    found = _unmultiplied(poly, divisor)
    if found is not None:
        return found
    exact: dict[Monomial, int] = {}
    rest: dict[Monomial, int] = {}
    for monomial, coefficient in poly.terms.items():
        quotient, remainder = divmod(coefficient, divisor)
        if quotient:
            exact[monomial] = quotient
        if remainder:
            rest[monomial] = remainder
    whole, part = Polynomial(table, exact), Polynomial(table, rest)
    common = gcd(part.gcd(), divisor)
    if common > 1:
        # The constant is no multiple where that does not matter.
        part = Polynomial(table, {m: c // common for m, c in part.terms.items() if c >= common})
        divisor //= common
    low, high = part.range()
    if low >= 0 and high < divisor:
        return whole
    if low > -INFINITY and high < INFINITY and low // divisor == high // divisor:
        return whole + low // divisor
    inner_low = low // divisor if low > -INFINITY else -INFINITY
    inner_high = high // divisor if high < INFINITY else INFINITY
    atom = table.atom("fdiv", (part, divisor), inner_low, inner_high, latest_block(part))
    return whole + table.plain(atom)


def high_word(poly: Polynomial, bits: int) -> Polynomial:
    """floor(poly / 2^bits): the high word of a product, kept as such for a later shift."""
    found = _unmultiplied(poly, 1 << bits)
    if found is not None:
        return found
    low, high = poly.range()
    bounds = low >> bits if low > -INFINITY else low, high >> bits if high < INFINITY else high
    return poly.table.plain(poly.table.atom("fdiv", (poly, 1 << bits), *bounds, latest_block(poly)))


def _unmultiplied(poly: Polynomial, divisor: int) -> Polynomial | None:
    """The quotient that compilers work out by a product with a magic number and a shift.

    floor(x m / 2^n) is floor(x / d) for an x from 0 to X, if d m = 2^n + e with e >= 0 and
    X e < 2^n: x m / 2^n is x / d + x e / (d 2^n), and the last term is too small to reach the
    next multiple of 1 / d.
    """
    table = poly.table
    for monomial, coefficient in poly.terms.items():
        atom = table.atoms[monomial[0]] if len(monomial) == 1 else None
        if atom is not None and atom.kind == "fdiv" and coefficient == 1:
            # The high word of a product, perhaps with the factor added once more, shifted.
            part, inner = atom.data
            if inner >= _LEAST_MAGIC:
                poly = (poly - table.plain(atom)) * inner + part
                divisor *= inner
                break
    if divisor < _LEAST_MAGIC:
        return None
    factor = gcd(poly.gcd(), poly.constant)
    if not factor & (factor - 1):
        return None
    quotient = -(-divisor // factor)
    error = quotient * factor - divisor
    multiplicand = Polynomial(table, {m: c // factor for m, c in poly.terms.items()})
    low, high = multiplicand.range()
    if low < 0 or high * error >= divisor:
        return None
    return floor_divide(multiplicand, quotient)


def modulo(poly: Polynomial, divisor: int) -> Polynomial:
    """poly - divisor * floor(poly / divisor)."""
    return poly - floor_divide(poly, divisor) * divisor


def latest_block(poly: Polynomial) -> int:
    """A block in which a part of the polynomial is computed; -1 if none is."""
    return max((atom.block for atom in poly.atoms()), default=-1)


def bit_and(left: Polynomial, right: Polynomial, bits: int) -> Polynomial | None:
    """left & right in words of `bits` bits; None where it is no polynomial."""
    if left.is_constant and right.is_constant:
        return left.table.constant(left.constant & right.constant)
    if left.is_constant:
        left, right = right, left
    if not right.is_constant:
        return _bit_by_bit("and", left, right)
    mask = right.constant & ((1 << bits) - 1)
    if not mask:
        return left.table.constant(0)
    low = trailing_zeros(mask)
    run = mask >> low
    if run & (run + 1):
        return _bit_by_bit("and", left, left.table.constant(mask))
    top = low + run.bit_length()
    value = left if top >= bits and left.range()[0] >= 0 else modulo(left, 1 << top)
    if top >= bits and left.range()[0] < 0:
        # A negative word: its high bits stay, only the low ones are cleared.
        value = left
    return value - modulo(value, 1 << low) if low else value


def bit_or(left: Polynomial, right: Polynomial) -> Polynomial | None:
    """left | right; None where it is no polynomial."""
    if left.is_constant and right.is_constant:
        return left.table.constant(left.constant | right.constant)
    if disjoint(left, right):
        return left + right
    return _bit_by_bit("or", left, right)


def bit_xor(left: Polynomial, right: Polynomial) -> Polynomial | None:
    """left ^ right; None where it is no polynomial."""
    if right.is_constant and right.constant == -1:
        return -left - 1
    if disjoint(left, right):
        return left + right
    if right.is_constant:
        # Of a number whose bits all lie among those that are flipped: what is left of these.
        ones, (low, high) = right.constant, left.range()
        lowest = ones & -ones
        is_run = ones > 0 and ones + lowest & ones == 0
        is_among = low >= 0 and high < ones + lowest
        if is_run and is_among and low_zeros(left) >= lowest.bit_length() - 1:
            return -left + ones
    return _bit_by_bit("xor", left, right)


def with_bits_set(left: Polynomial, right: Polynomial) -> Polynomial | None:
    """left | right where one is a few bits that are set, and a rest below the other's low zeros.

    To set bit k of x adds 2^k unless it is set: it is floor(x / 2^k) - 2 floor(x / 2^(k+1)).
    """
    for whole, other in ((left, right), (right, left)):
        zeros = low_zeros(whole)
        low, high = other.range()
        bits = low >> zeros << zeros
        if low < 0 or high >> zeros << zeros != bits or whole.range()[0] < 0:
            continue
        if bits.bit_count() > _MOST_SET:
            continue
        result = whole + other - bits
        for at in range(bits.bit_length()):
            if bits >> at & 1:
                own = floor_divide(whole, 1 << at) - floor_divide(whole, 2 << at) * 2
                result += (-own + 1) * (1 << at)
        return result
    return None


def disjoint(left: Polynomial, right: Polynomial) -> bool:
    """True if no bit can be set in both: one lies below the other's trailing zeros, or they are
    sums of different bits."""
    for small, large in ((left, right), (right, left)):
        low, high = small.range()
        if low >= 0 and high < 1 << low_zeros(large):
            return True
    a, b = bit_view(left), bit_view(right)
    return a is not None and b is not None and not a.keys() & b.keys()


def bit_view(poly: Polynomial) -> dict[int, Polynomial] | None:
    """Position to the 0/1 polynomial there, for a sum of single bits at different positions."""
    table = poly.table
    view: dict[int, Polynomial] = {}
    for monomial, coefficient in poly.terms.items():
        if not monomial:
            if coefficient < 0:
                return None
            for at in range(coefficient.bit_length()):
                if coefficient >> at & 1:
                    if at in view:
                        return None
                    view[at] = table.constant(1)
            continue
        if coefficient < 1 or coefficient & (coefficient - 1):
            return None
        if table.monomial_range(monomial) != (0, 1):
            return None
        at = coefficient.bit_length() - 1
        if at in view:
            return None
        view[at] = Polynomial(table, {monomial: 1})
    return view


def _split(poly: Polynomial, top: int) -> tuple[Polynomial, Polynomial] | None:
    """A multiple of 2^top and a rest within 0 … 2^top - 1; None if the terms do not part so."""
    high: dict[Monomial, int] = {}
    low: dict[Monomial, int] = {}
    for monomial, coefficient in poly.terms.items():
        quotient, remainder = divmod(coefficient, 1 << top)
        if quotient:
            high[monomial] = quotient << top
        if remainder:
            low[monomial] = remainder
    rest = Polynomial(poly.table, low)
    bounds = rest.range()
    if bounds[0] < 0 or bounds[1] >= 1 << top:
        return None
    return Polynomial(poly.table, high), rest


def _bit_by_bit(operation: str, left: Polynomial, right: Polynomial) -> Polynomial | None:
    """The operation on single bits; what lies above the smaller operand's bits is left alone."""
    if left.range()[1] < right.range()[1]:
        left, right = right, left
    low, high = right.range()
    if low >= 0 and high < INFINITY and operation != "and":
        parts = _split(left, high.bit_length())
        if parts is not None and parts[0].terms:
            lower = _bit_by_bit(operation, parts[1], right)
            return None if lower is None else parts[0] + lower
    a, b = bit_view(left), bit_view(right)
    if a is None or b is None:
        return None
    table = left.table
    zero = table.constant(0)
    total = zero
    for at in a.keys() | b.keys():
        x, y = a.get(at, zero), b.get(at, zero)
        both = x * y
        if operation == "and":
            bit = both
        elif operation == "or":
            bit = x + y - both
        else:
            bit = x + y - both * 2
        total += bit * (1 << at)
    return total


def as_field(table: AtomTable, poly: Polynomial, start: int, length: int) -> Polynomial:
    """Bits start … start+length-1 of a non-negative polynomial, moved down to bit 0."""
    return modulo(floor_divide(poly, 1 << start), 1 << length)
