"""RES111: instructions that no path from the entry leads to."""

from __future__ import annotations

from collections.abc import Iterator

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.graph import Cfg
from ptxlint.facts import Facts
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.rulekit import Hit, Note, Rule, Sample

_SHOWN = 3


class UnreachableCode(Rule):
    id = "RES111"
    name = "unreachable-code"
    severity = "note"
    confidence = "high"
    category = "resources"
    family = "resources"
    summary = "Instructions stand where control never comes."
    why = (
        "The assembler drops them, so they cost nothing, but they are rarely meant: a branch that "
        "lost its condition, a return too many, a label that nothing names. What compilers put "
        "behind a trap, an exit or a call that does not return (another exit, a branch, the load "
        "of the result) is not reported."
    )
    fix = "Remove the instructions, or restore the branch that should lead to them."
    bad = (
        Sample(
            "the branch around the addition lost its guard",
            """
            .reg .b32 %r<3>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out_ptr];
            mov.u32 %r1, %tid.x;
            bra store;
            add.u32 %r1, %r1, 1; //~ RES111
            store:
            st.global.u32 [%rd1], %r1;
            ret;
            """,
        ),
        Sample(
            "a loop that nothing enters, reported once",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<3>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out_ptr];
            mov.u32 %r1, %tid.x;
            st.global.u32 [%rd1], %r1;
            ret;
            again:
            add.u32 %r1, %r1, 1; //~ RES111
            setp.lt.u32 %p1, %r1, 9;
            @%p1 bra again;
            st.global.u32 [%rd1], %r1;
            ret;
            """,
        ),
    )
    good = (
        Sample(
            "a second exit behind a trap",
            """
            trap;
            exit;
            """,
        ),
        Sample(
            "every label is reached",
            """
            .reg .pred %p<2>;
            .reg .b32 %r<3>;
            .reg .b64 %rd<2>;
            ld.param.u64 %rd1, [out_ptr];
            mov.u32 %r1, %tid.x;
            setp.eq.u32 %p1, %r1, 0;
            @%p1 bra store;
            add.u32 %r1, %r1, 1;
            store:
            st.global.u32 [%rd1], %r1;
            ret;
            """,
        ),
    )
    kernels_only = False
    needs = (CfgAnalysis,)

    def check(self, fn: Function, facts: Facts) -> Iterator[Hit]:
        """One hit a function, at the first instruction that does something."""
        cfg = facts.get(CfgAnalysis)
        if len(cfg.rpo) == len(cfg.blocks):
            return
        regions = list(_regions(cfg))
        if not regions:
            return
        count = sum(len(region) for region in regions)
        places = f" in {len(regions)} places" if len(regions) > 1 else ""
        yield Hit(
            f"{count} instruction{'s' if count > 1 else ''}{places} that no path leads to",
            regions[0][0],
            tuple(Note("and here", region[0]) for region in regions[1:_SHOWN]),
            key="unreachable code",
        )


def _regions(cfg: Cfg) -> Iterator[list[Instr]]:
    """Runs of neighbouring unreachable blocks that do something, as their instructions."""
    region: list[Instr] = []
    end = -1
    for block in cfg.unreachable_blocks():
        if block.start != end and region:
            if not all(map(_is_padding, region)):
                yield region
            region = []
        region = [*region, *cfg.instructions(block)]
        end = block.end
    if region and not all(map(_is_padding, region)):
        yield region


def _is_padding(instr: Instr) -> bool:
    """What stands behind a call or trap that does not return because compilers put it there."""
    shape = instr.shape
    return bool(shape.row.terminator) or (shape.opcode == "ld" and shape.space == "param")
