"""Products that add to one another, and where their sum begins.

What a product of tensor cores gives is what the next one adds to, so that a sum over k takes many
instructions, and rounds of a loop. Padding that no lane of one instruction tells apart lies along k
if some of them have it, and along rows or columns if all have.
"""

from __future__ import annotations

from typing import NamedTuple

from ptxlint.cfg.loops import LoopForest
from ptxlint.dataflow.fragments import Fragments
from ptxlint.dataflow.movements import Movements
from ptxlint.dataflow.reductions import Reductions
from ptxlint.dataflow.ssa_values import PHI, Ssa
from ptxlint.ir.instruction import Instr


class Chain(NamedTuple):
    """Products that add to one another, the values that their sums begin with, and the headers of
    the loops that carry them."""

    products: tuple[Instr, ...]
    starts: tuple[int, ...]
    headers: tuple[int, ...]


class Chains:
    """The chains of one function, found when first asked for."""

    def __init__(self, ssa: Ssa, reductions: Reductions, movements: Movements) -> None:
        self._ssa = ssa
        self._reductions = reductions
        self._movements = movements
        self._loops: LoopForest = reductions.loops
        self._known: dict[int, Chain] | None = None

    def of(self, product: Instr) -> Chain | None:
        """The chain that a product is in; None for one whose accumulator is not in registers."""
        if self._known is None:
            self._known = self._find()
        return self._known.get(product.index)

    def _find(self) -> dict[int, Chain]:
        """All chains, by the products in them: what is linked by values is one chain."""
        products: dict[int, Instr] = {}
        read: dict[int, list[int]] = {}
        """By node what it adds to or joins. Products are nodes as ~index, and so are phis."""
        made: dict[int, int] = {}
        """By value the product that makes it."""
        for instr in self._reductions.contractions:
            fragments = self._movements.fragments(instr)
            if fragments is None or instr.opcode == "tcgen05":
                continue
            products[instr.index] = instr
            read[~instr.index] = self._added_to(instr, fragments)
            for value in self._ssa.def_values[instr.index]:
                made[self._ssa.resolve(value)] = ~instr.index
        work = [value for values in read.values() for value in values]
        for value in work:
            if self._ssa.kind[value] == PHI and value not in read:
                read[value] = self._values(self._ssa.operands[value])
                work += read[value]
        links: dict[int, list[int]] = {}
        starts: dict[int, list[int]] = {}
        for node, values in read.items():
            for value in values:
                other = made.get(value, value if value in read else None)
                if other is None:
                    starts.setdefault(node, []).append(value)
                    continue
                links.setdefault(node, []).append(other)
                links.setdefault(other, []).append(node)
        return self._components(products, links, starts)

    def _added_to(self, instr: Instr, fragments: Fragments) -> list[int]:
        registers = dict.fromkeys(element.register for element in fragments.result)
        found = [self._movements.accumulator(instr, register) for register in registers]
        return self._values([v for v in found if v is not None])

    def _values(self, values: tuple[int, ...] | list[int]) -> list[int]:
        return [self._reductions.origin(value) for value in values]

    def _components(
        self,
        products: dict[int, Instr],
        links: dict[int, list[int]],
        starts: dict[int, list[int]],
    ) -> dict[int, Chain]:
        found: dict[int, Chain] = {}
        for index in products:
            if index in found:
                continue
            work, seen = [~index], {~index}
            for node in work:
                for other in links.get(node, ()):
                    if other not in seen:
                        seen.add(other)
                        work.append(other)
            chain = Chain(
                tuple([products[~node] for node in sorted(work, reverse=True) if node < 0]),
                tuple(dict.fromkeys(v for node in sorted(work) for v in starts.get(node, ()))),
                tuple(dict.fromkeys(self._headers(work))),
            )
            found.update(dict.fromkeys([p.index for p in chain.products], chain))
        return found

    def _headers(self, nodes: list[int]) -> list[int]:
        blocks = [self._ssa.phi_block[node] for node in sorted(nodes) if node >= 0]
        return [block for block in blocks if self._loops.with_header(block) is not None]


__all__ = ["Chain", "Chains"]
