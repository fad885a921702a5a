"""Which kernel of the new side is which of the old one: by name and architecture, then by what
they do."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import NamedTuple

from ptxlint.comparison.records import KernelRecord, base


class Pairing(NamedTuple):
    """Kernels that belong together, and those of one side alone."""

    pairs: list[tuple[KernelRecord, KernelRecord]]
    removed: list[KernelRecord]
    added: list[KernelRecord]


def pair(old: list[KernelRecord], new: list[KernelRecord]) -> Pairing:
    """Pair kernels. Of several with one name those that do the same go together first, then those
    of one shape, then in the order of their files, PTX with PTX if it can be; what is left over is
    paired by what it does, whatever its name."""
    pairs: list[tuple[KernelRecord, KernelRecord]] = []
    ours, theirs = list(old), list(new)
    # A hash is dear, and a name that stands alone on both sides needs none.
    ours, theirs = _alone(ours, theirs, pairs)
    keys: tuple[Callable[[KernelRecord], Hashable], ...] = (
        lambda k: (k.name, base(k.arch), k.identity),
        lambda k: (k.name, base(k.arch), k.shape),
        lambda k: (k.name, base(k.arch), k.level),
        lambda k: (k.name, base(k.arch)),
        lambda k: (base(k.arch), k.identity),
        lambda k: (base(k.arch), k.shape),
    )
    for key in keys:
        ours, theirs = _matched(ours, theirs, key, pairs)
    order = {id(kernel): at for at, kernel in enumerate(old)}
    pairs.sort(key=lambda p: order[id(p[0])])
    return Pairing(pairs, ours, theirs)


def _alone(
    old: list[KernelRecord],
    new: list[KernelRecord],
    pairs: list[tuple[KernelRecord, KernelRecord]],
) -> tuple[list[KernelRecord], list[KernelRecord]]:
    ours, theirs = _by_name(old), _by_name(new)
    taken = set()
    for key, mine in ours.items():
        yours = theirs.get(key, [])
        if len(mine) == len(yours) == 1:
            pairs.append((mine[0], yours[0]))
            taken |= {id(mine[0]), id(yours[0])}
    return [k for k in old if id(k) not in taken], [k for k in new if id(k) not in taken]


def _by_name(kernels: list[KernelRecord]) -> dict[tuple[str, str], list[KernelRecord]]:
    out: dict[tuple[str, str], list[KernelRecord]] = {}
    for kernel in kernels:
        out.setdefault((kernel.name, base(kernel.arch)), []).append(kernel)
    return out


def _matched(
    old: list[KernelRecord],
    new: list[KernelRecord],
    key: Callable[[KernelRecord], Hashable],
    pairs: list[tuple[KernelRecord, KernelRecord]],
) -> tuple[list[KernelRecord], list[KernelRecord]]:
    """Pair what has a key in common; what is left of both sides."""
    if not old or not new:
        return old, new
    waiting: dict[Hashable, list[KernelRecord]] = {}
    for kernel in new:
        waiting.setdefault(key(kernel), []).append(kernel)
    left = []
    taken = set()
    for kernel in old:
        found = waiting.get(key(kernel))
        if found:
            other = found.pop(0)
            taken.add(id(other))
            pairs.append((kernel, other))
        else:
            left.append(kernel)
    return left, [kernel for kernel in new if id(kernel) not in taken]


__all__ = ["Pairing", "pair"]
