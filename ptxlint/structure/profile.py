"""What a kernel does, counted: instructions by the unit that runs them, memory accesses, barriers.

The classes are those of the work, whatever the language: PTX and machine code, and different
architectures, can be held against each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.opcodes import memory_of

_SPECIAL: Final = frozenset("ex2 lg2 rcp rsqrt sqrt sin cos tanh".split())
_HALVES: Final = frozenset("f16 bf16 f16x2 bf16x2".split())
_SHUFFLES: Final = frozenset("shfl vote match redux activemask elect".split())
_ADDRESSED: Final = frozenset(("load", "store", "atomic", "async", "constant"))


class Access(NamedTuple):
    """A kind of access to memory: `load`, `store`, `atomic` or `async`, the space, whether it is
    under a guard."""

    kind: str
    space: str
    guarded: bool


class Profile(NamedTuple):
    """One kernel, counted over its text: instructions by class, accesses by kind, blocks."""

    instructions: int
    classes: Counter[str]
    accesses: Counter[Access]
    barriers: int
    tensor: Counter[str]
    """Tensor-core instructions by their base opcode."""
    copies: Counter[str]
    """Asynchronous copies by their base opcode."""


def profile(fn: Function, is_guarded: Callable[[Instr], bool] | None = None) -> Profile:
    """Count a kernel. Without `is_guarded` a predicate is a guard, and nothing else."""
    classes: Counter[str] = Counter()
    accesses: Counter[Access] = Counter()
    tensor: Counter[str] = Counter()
    copies: Counter[str] = Counter()
    barriers = total = 0
    guard = is_guarded or _has_predicate
    for instr in fn.instrs:
        name = class_of(instr)
        if name == "padding":
            continue
        total += 1
        classes[name] += 1
        if name == "tensor":
            tensor[instr.opcode] += 1
        elif name == "barrier":
            barriers += 1
        if name in _ADDRESSED:
            if name == "async" and memory_of(instr.shape) != ((), ()):
                copies[instr.opcode] += 1
            for space in _spaces(instr):
                accesses[Access(name, space, guard(instr))] += 1
    return Profile(total, classes, accesses, barriers, tensor, copies)


def _has_predicate(instr: Instr) -> bool:
    return bool(instr.shape.guard)


def class_of(instr: Instr) -> str:
    """The class of one instruction; `padding` for what fills a section up."""
    if instr.opcode == "NOP":
        return "padding"
    # Opcodes of PTX are written in small letters.
    return _machine_class(instr) if instr.opcode[:1].isupper() else _ptx_class(instr)


def _machine_class(instr: Instr) -> str:
    name = instr.shape.row.category
    # Products apart from what surrounds them, as in PTX.
    if name == "tensor" and not instr.opcode.endswith("MMA"):
        return "barrier"
    return {"predicate": "logic", "fence": "barrier", "cache": "misc"}.get(name, name)


def _ptx_class(instr: Instr) -> str:
    shape = instr.shape
    category = shape.row.category
    if category == "memory" or instr.opcode in ("ldmatrix", "stmatrix"):
        return _memory_class(instr)
    if category == "tensor":
        return _tensor_class(instr)
    if instr.opcode in _SPECIAL:
        return "special"
    if category in ("float", "compare", "int", "logic"):
        if "f64" in shape.types:
            return "double"
        if _HALVES.intersection(shape.types):
            return "half"
        if "f32" in shape.types or "f32x2" in shape.types:
            return "float"
        return "logic" if shape.type == "pred" else "int"
    return {"convert": "conversion", "dict": "int", "video": "int"}.get(category, category)


def _memory_class(instr: Instr) -> str:
    opcode, space = instr.opcode, instr.shape.space
    if space in ("param", "const"):
        return "constant"
    if opcode in ("st", "stmatrix"):
        return "store"
    if opcode in ("ld", "ldu", "ldmatrix"):
        return "load"
    if opcode in ("fence", "membar"):
        return "barrier"
    return "int" if opcode in ("cvta", "isspacep", "mapa") else "misc"


def _tensor_class(instr: Instr) -> str:
    """Products apart from what surrounds them: waits, fences, copies of tensor memory."""
    words = instr.shape.modifiers
    if instr.opcode in ("wgmma", "tcgen05"):
        if any(word.startswith("mma") for word in words):
            return "tensor"
        if "ld" in words or "st" in words:
            return "load" if "ld" in words else "store"
        return "barrier"
    return "tensor"


def _spaces(instr: Instr) -> tuple[str, ...]:
    effect = memory_of(instr.shape)
    return tuple(dict.fromkeys((*effect.writes, *effect.reads))) or (instr.shape.space,)


__all__ = ["Access", "Profile", "class_of", "profile"]
