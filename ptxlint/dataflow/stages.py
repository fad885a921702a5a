"""The control-flow graph unrolled over the numbers that loops carry: the stages of pipelines.

A pipelined loop copies into one stage of a buffer and reads another; which one, a small number says
that goes round with the loop. A node of the unrolled graph is a block together with the numbers
that such phis then have, so that addresses in it are exact and what a copy of an earlier iteration
wrote is found by walking back. Numbers that do not come round soon, as an iteration's number does
not, are left unknown.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from ptxlint.cfg.graph import Cfg
from ptxlint.dataflow.lane_words import VARYING, Known, LaneWords
from ptxlint.dataflow.ssa_values import MERGE, PHI, RESULT, Ssa

_MAX_NUMBERS: Final = 12
"""Different numbers of one phi, past which it is left unknown."""
_NODES_PER_BLOCK: Final = 24
"""Nodes for each block on average, past which all phis are left unknown."""


class StageGraph:
    """The nodes, each a block with a state. Without phis it is the control-flow graph itself."""

    def __init__(self, ssa: Ssa, words: LaneWords, wanted: Iterable[int]) -> None:
        """`wanted` are values whose words are needed, such as addresses."""
        self._ssa = ssa
        self._cfg: Cfg = ssa.cfg
        self._words = words
        self.blocks: list[int] = []
        """By node: its block."""
        self.states: list[dict[int, Known]] = []
        """By state number: what the phis are."""
        self.state_of: list[int] = []
        """By node: its state number."""
        self.preds: list[list[int]] = []
        """By node: the nodes that lead to it."""
        self.at_block: dict[int, list[int]] = {}
        """By block: its nodes."""
        self.steps = 0
        """Work done, in edges followed."""
        values = list(wanted)
        for value in values:
            words.plain(value)
        self._phis = self._close()
        unknown: set[int] = set()
        self._live = self._liveness(values) if self._phis else {}
        while not self._explore(unknown):
            words.forget()
        self.unknown = frozenset(unknown)
        """Phis that are left unknown because they have too many numbers."""

    def _close(self) -> list[int]:
        """The phis that the wanted values depend on, and those that they depend on in turn."""
        words = self._words
        at = 0
        while at < len(words.phis):
            for operand in self._ssa.operands[words.phis[at]]:
                words.plain(operand)
            at += 1
        return list(words.phis)

    # Liveness ---------------------------------------------------------------------------------
    def _liveness(self, wanted: list[int]) -> dict[int, set[int]]:
        """By block the phis of which the number may still be asked for there."""
        ssa, cfg = self._ssa, self._cfg
        live: dict[int, set[int]] = {}
        depends: dict[int, frozenset[int]] = {}
        uses: set[tuple[int, int]] = set()
        for value in wanted:
            for phi in self._dependence(value, depends):
                uses.update((phi, block) for block in self._readers(value))
        for phi in self._phis:
            sources = ssa.phi_sources(ssa.phi_block[phi])
            for source, operand in zip(sources, ssa.operands[phi], strict=True):
                if source >= 0:
                    uses.update((p, source) for p in self._dependence(operand, depends))
        for phi, block in uses:
            work = [block]
            while work:
                current = work.pop()
                found = live.setdefault(current, set())
                if phi in found:
                    continue
                found.add(phi)
                if current != ssa.phi_block[phi]:
                    work += cfg.blocks[current].preds
        return live

    def _readers(self, value: int) -> set[int]:
        """The blocks of the instructions that read a value."""
        block_of = self._cfg.block_of
        return {block_of[user] for user in self._ssa.users(value) if user >= 0}

    def _dependence(self, wanted: int, known: dict[int, frozenset[int]]) -> frozenset[int]:
        """The phis that a value is computed from, looking through no phi."""
        ssa, words = self._ssa, self._words
        stack = [wanted]
        while stack:
            value = stack[-1]
            if value in known:
                stack.pop()
                continue
            root = ssa.resolve(value)
            if words.plain(root) is not VARYING:
                known[value] = frozenset()
                continue
            if ssa.kind[root] == PHI:
                known[value] = frozenset((root,))
                continue
            parts = ssa.operands[root] if ssa.kind[root] in (RESULT, MERGE) else ()
            missing = [v for v in parts if v not in known]
            if missing:
                stack += missing
                continue
            known[value] = frozenset().union(*(known[v] for v in parts))
        return known[wanted]

    # Exploring --------------------------------------------------------------------------------
    def _explore(self, unknown: set[int]) -> bool:
        """Find all nodes; False if phis had to be given up, and it must be done again."""
        cfg = self._cfg
        self.blocks, self.states, self.state_of, self.preds = [], [], [], []
        self.at_block = {}
        numbers: dict[tuple[Known, ...], int] = {}
        nodes: dict[tuple[int, int], int] = {}
        seen: dict[int, set[Known]] = {}
        limit = max(256, _NODES_PER_BLOCK * len(cfg.blocks))

        def node(block: int, state: tuple[Known, ...]) -> int:
            number = numbers.get(state)
            if number is None:
                number = numbers[state] = len(self.states)
                self.states.append(dict(zip(self._phis, state, strict=True)))
            found = nodes.get((block, number))
            if found is None:
                found = nodes[block, number] = len(self.blocks)
                self.blocks.append(block)
                self.state_of.append(number)
                self.preds.append([])
                self.at_block.setdefault(block, []).append(found)
                work.append(found)
            return found

        work: list[int] = []
        node(cfg.entry, (None,) * len(self._phis))
        while work:
            current = work.pop()
            if len(self.blocks) > limit:
                unknown.update(self._phis)
                return False
            for target in cfg.blocks[self.blocks[current]].succs:
                self.steps += 1
                state = self._after(current, target, unknown)
                for phi, number in zip(self._phis, state, strict=True):
                    if number is not None:
                        met = seen.setdefault(phi, set())
                        met.add(number)
                        if len(met) > _MAX_NUMBERS:
                            unknown.add(phi)
                            return False
                self.preds[node(target, state)].append(current)
        return True

    def _after(self, node: int, target: int, unknown: set[int]) -> tuple[Known, ...]:
        """What the phis are when control comes to a block."""
        ssa = self._ssa
        state = self.states[self.state_of[node]]
        live = self._live.get(target, ())
        out: list[Known] = []
        for phi in self._phis:
            if phi in unknown or phi not in live:
                out.append(None)
            elif ssa.phi_block[phi] == target:
                sources = ssa.phi_sources(target)
                operand = ssa.operands[phi][sources.index(self.blocks[node])]
                out.append(self._words.under(operand, self.state_of[node], state))
            else:
                out.append(state[phi])
        return tuple(out)
