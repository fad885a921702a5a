"""How padding's marks spread: looking at less must not miss anything."""

from __future__ import annotations

from pathlib import Path

import pytest

from ptxlint.dataflow.padding import PaddingAnalysis
from ptxlint.dataflow.padding_demand import Demand
from ptxlint.dataflow.padding_marks import Marks
from ptxlint.dataflow.reductions import ReductionsAnalysis
from ptxlint.dataflow.ssa import SsaAnalysis
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse

FIXTURES = Path(__file__).parents[2] / "fixtures" / "ptx"
KERNELS = [
    "sm_80/flash_fwd.ptx", "sm_80/matmul_dot_int8.ptx", "sm_80/welford.ptx",
    "sm_90/matmul_dot_tf32.ptx", "sm_90/flash_fwd.ptx", "sm_90/rmsnorm_bf16.ptx",
    "sm_120/flash_bwd_dq.ptx", "sm_120/layer_norm_bwd.ptx", "sm_120/cumsum.ptx",
]  # fmt: skip
"""Products from registers and from shared memory, loops, scans, and trees over lanes and warps."""


@pytest.mark.parametrize("kernel", KERNELS)
def test_nothing_is_left_to_spread(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once all have spread, looking at each instruction and phi again changes nothing."""
    spread = Marks.spread
    checked = []

    def spread_and_look_again(marks: Marks) -> None:
        spread(marks)
        assert marks.is_complete
        before = dict(marks._of)
        marks.version += 1
        for phis in marks._ssa.phis.values():
            for phi in phis:
                marks._join(phi)
        for instr in marks._instrs:
            if marks._ssa.cfg.is_reachable(instr):
                marks._instr(instr)
        assert marks._of == before
        checked.append(len(before))

    monkeypatch.setattr(Marks, "spread", spread_and_look_again)
    module = parse((FIXTURES / kernel).read_text(), kernel)
    for function in module.functions:
        Facts(module, function).get(PaddingAnalysis)
    assert any(checked)


@pytest.mark.parametrize("kernel", KERNELS)
def test_what_is_followed_is_combined_somewhere(kernel: str) -> None:
    """A value is followed on exactly if something that it leads to is combined or shared."""
    module = parse((FIXTURES / kernel).read_text(), kernel)
    combining = {"mma", "wgmma", "shfl", "redux", "red", "atom", "bra", "cp", "stmatrix"}
    found = set()
    for function in module.functions:
        facts = Facts(module, function)
        ssa, reductions = facts.get(SsaAnalysis), facts.get(ReductionsAnalysis)
        demand = Demand(ssa, reductions)
        for value in range(len(ssa)):
            seen, work, is_followed = {value}, [value], False
            while work and not is_followed:
                for user in ssa.users(work.pop()):
                    after: tuple[int, ...] = (~user,)
                    if user >= 0:
                        instr = function.instrs[user]
                        plain = instr.shape.space in ("global", "local")
                        is_followed |= instr.opcode in combining or user in reductions.members
                        is_followed |= instr.opcode == "st" and not plain
                        after = ssa.def_values[user]
                    else:
                        is_followed |= ~user in ssa.phi_block
                    work += [v for v in after if v not in seen]
                    seen.update(after)
            assert demand.of(value) == is_followed, value
            found.add(is_followed)
    assert found == {True, False}
