"""Checks of an instruction's modifiers and types against what its opcode takes.

Measured with ptxas 12.9 and 13.4; see `modifier_rows`. What is not known passes.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from ptxlint.ir.instruction import Shape
from ptxlint.ir.modifier_rows import ANYWHERE, ELSEWHERE, GROUPS, MODIFIERS, TYPES

_ONE_SPACE: Final = frozenset("ld ldu st atom red cvta isspacep prefetch".split())
_ONE_ROUNDING: Final = frozenset("add sub mul mad fma div rcp sqrt cvt".split())
_ROUNDINGS: Final = frozenset((GROUPS["ROUND"] + " " + GROUPS["INTEGER"]).split())
_COMPARISONS: Final = frozenset(GROUPS["COMPARE"].split())
_CACHES: Final = frozenset("ca cg cs lu cv wb wt".split())
_VECTORS: Final = frozenset(GROUPS["VECTOR"].split())
_SCOPES: Final = frozenset(GROUPS["SCOPE"].split())
_ORDERS: Final = frozenset("relaxed acquire release".split())
_ONCE: Final = frozenset("ftz nc volatile relaxed acquire release acq_rel weak mmio oob".split())
_FIRST: Final[dict[str, str]] = {
    "cp": "async reduce",
    "setmaxnreg": "inc dec",
    "shf": "l r",
    "wgmma": "fence commit_group wait_group mma_async",
}
"""Modifiers of which one must follow the opcode at once: they make up its name."""
_LEADING: Final[dict[str, frozenset[str]]] = {
    "mul": frozenset({"lo", "hi", "wide"}),
    "mad": frozenset({"lo", "hi", "wide"}),
    "mul24": frozenset({"lo", "hi"}),
    "mad24": frozenset({"lo", "hi"}),
    "madc": frozenset({"lo", "hi"}),
    "div": frozenset({"full"}),
}
"""Modifiers that must be the first one if they are there."""
_APPROXIMATE: Final = frozenset("ex2 lg2 sin cos tanh rsqrt".split())
_COMPARED: Final[dict[str, str]] = {
    "b": "eq ne",
    "u": "eq ne lt le gt ge lo ls hi hs",
    "s": "eq ne lt le gt ge",
    "f": "eq ne lt le gt ge equ neu ltu leu gtu geu num nan",
}
"""Comparisons by the first letter of the type compared; `bf16` counts as `f`."""


def modifier_fault(shape: Shape) -> str:
    """Why an instruction's modifiers or types do not do; "" if they do."""
    opcode, modifiers, types = shape.opcode, shape.modifiers, shape.types
    if opcode in _FIRST and (modifiers[:1] or ("",))[0] not in _FIRST[opcode].split():
        return f"one of `.{_FIRST[opcode].replace(' ', '`, `.')}` must follow `{opcode}`"
    known = _modifiers().get(opcode)
    for word in modifiers:
        if word in types:
            continue
        if known is None:
            if word not in _vocabulary() and not _glued(word) and word.isalpha():
                return f"there is no modifier `.{word}`"
        elif word not in known:
            return f"`{opcode}` has no modifier `.{word}`"
    if len(types) > 1 and ("pred" in types or "pack" in modifiers):
        return _combined(opcode, modifiers, types)
    return _wrong_types(opcode, types) or _combined(opcode, modifiers, types)


def _glued(word: str) -> bool:
    """`.wait_group0` is `.wait_group 0` to ptxas (measured; no other word may be glued)."""
    return word.startswith("wait_group") and word[10:].isdigit()


def _wrong_types(opcode: str, types: tuple[str, ...]) -> str:
    allowed = _types().get(opcode)
    if allowed is None or types in allowed:
        return ""
    longest = max(map(len, allowed))
    if len(types) > longest and (longest != 1 or types[:1] in allowed):
        wanted = ("no type", "one type", "two types")[longest]
        return f"`{opcode}` takes {wanted}, not {len(types)}"
    if not types:
        return "a type is missing"
    if len(types) < longest:
        return "a second type is missing"
    return f"`{opcode}` has no type `.{'.'.join(types[:longest])}`"


def _combined(opcode: str, modifiers: tuple[str, ...], types: tuple[str, ...]) -> str:
    """Words that exclude or need each other."""
    if opcode in ("setp", "set"):
        found = [w for w in modifiers if w in _COMPARISONS]
        if len(found) > 1:
            return f"`.{found[0]}` and `.{found[1]}` cannot stand together"
        if found and types and not _compares(found[0], types[-1]):
            return f"`.{found[0]}` does not compare `.{types[-1]}` values"
    if opcode in _ONE_ROUNDING:
        message = _rounding(opcode, modifiers, types)
        if message:
            return message
    if opcode in _LEADING:
        word = next((w for w in modifiers if w in _LEADING[opcode]), "")
        if word and modifiers[0] != word:
            return f"`.{word}` must follow `{opcode}` at once"
        if word and types and opcode in ("mul", "mad") and types[0][0] in "fb":
            return f"`{opcode}.{word}` has no type `.{types[0]}`"
    if opcode in _APPROXIMATE and "approx" not in modifiers:
        return "`.approx` is missing"
    twice = next((w for w in modifiers if w in _ONCE and modifiers.count(w) > 1), "")
    if twice:
        return f"`.{twice}` stands twice"
    return _memory(opcode, modifiers) if opcode in _ONE_SPACE else ""


def _rounding(opcode: str, modifiers: tuple[str, ...], types: tuple[str, ...]) -> str:
    found = [w for w in modifiers if w in _ROUNDINGS]
    if len(found) > 1:
        return f"`.{found[0]}` and `.{found[1]}` cannot stand together"
    if found and types and all(t[0] in "us" and t[1:].isdigit() for t in types):
        return f"`.{found[0]}` rounds, integers need none"
    return ""


def _compares(comparison: str, type_name: str) -> bool:
    kind = "f" if type_name[:2] == "bf" else type_name[0]
    words = _COMPARED.get(kind)
    return words is None or "x" in type_name or comparison in words.split()


def _memory(opcode: str, modifiers: tuple[str, ...]) -> str:
    """One state space, one cache operator, one vector length; an order with its scope."""
    spaces = [w for w in modifiers if w in _spaces()]
    for found in (spaces, *([w for w in modifiers if w in g] for g in (_CACHES, _VECTORS))):
        if len(found) > 1:
            return f"`.{found[0]}` and `.{found[1]}` cannot stand together"
    if opcode not in ("ld", "st") or "async" in modifiers or "bulk" in modifiers:
        return ""
    order = next((w for w in modifiers if w in _ORDERS), "")
    scope = next((w for w in modifiers if w in _SCOPES), "")
    if order and not scope:
        return f"`.{order}` needs a scope, such as `.gpu`"
    if scope and not order:
        return f"`.{scope}` needs a memory order, such as `.relaxed`"
    return ""


# The rows -------------------------------------------------------------------------------------
def _rows(text: str) -> dict[str, list[str]]:
    rows: dict[str, list[str]] = {}
    for line in text.strip().replace("\n  ", " ").split("\n"):
        names, _, words = line.partition(":")
        for name in names.split():
            rows[name] = words.split()
    return rows


@cache
def _modifiers() -> dict[str, frozenset[str]]:
    anywhere = frozenset(ANYWHERE.split())
    groups = {name: words.split() for name, words in GROUPS.items()}
    return {
        opcode: anywhere.union(*(groups.get(word, (word,)) for word in words))
        for opcode, words in _rows(MODIFIERS).items()
    }


@cache
def _vocabulary() -> frozenset[str]:
    return frozenset(ELSEWHERE.split()).union(*_modifiers().values())


@cache
def _spaces() -> frozenset[str]:
    return frozenset(GROUPS["SPACE"].split())


@cache
def _types() -> dict[str, frozenset[tuple[str, ...]]]:
    return {
        opcode: frozenset(pair for word in words for pair in _pairs(word))
        for opcode, words in _rows(TYPES).items()
    }


def _pairs(word: str) -> list[tuple[str, ...]]:
    if word == "-":
        return [()]
    first, dot, second = word.partition(".")
    if not dot:
        return [(first,)]
    return [(a, b) for a in first.split("/") for b in second.split("/")]
