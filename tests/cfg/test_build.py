"""Blocks and edges that the text cases do not reach: many labels, bad labels, large functions."""

from __future__ import annotations

import pytest

from ptxlint.cfg.build import CfgAnalysis, build
from ptxlint.cfg.graph import EXIT, Cfg
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse
from ptxlint.ir.function import Function

HEAD = """.version 8.0
.target sm_90
.address_size 64
.visible .entry k(.param .u32 n)
{
.reg .pred %p<9>;
.reg .b32 %r<9>;
"""


def function_of(body: str) -> Function:
    return parse(f"{HEAD}{body}\n}}\n").functions[0]


def test_one_block_for_each_of_64_targets() -> None:
    labels = [f"L{i}" for i in range(64)]
    body = f"T: .branchtargets {', '.join(labels)};\nbrx.idx %r1, T;\n"
    body += "\n".join(f"{label}: mov.u32 %r2, {i}; bra END;" for i, label in enumerate(labels))
    cfg = build(function_of(body + "\nEND: ret;"))
    assert len(cfg.blocks) == 66
    assert cfg.blocks[0].succs == list(range(1, 65))
    assert cfg.blocks[65].preds == list(range(1, 65))
    assert cfg.rpo == list(range(66))


def test_labels_that_nothing_jumps_to_start_no_block() -> None:
    cfg = build(function_of("A: mov.u32 %r1, 1;\nB: C: mov.u32 %r1, 2;\nret;"))
    assert len(cfg.blocks) == 1


def test_a_label_of_a_list_means_every_label_of_that_name() -> None:
    body = "T: .branchtargets A;\nbrx.idx %r1, T;\n{ A: mov.u32 %r2, 1; ret; }\n"
    cfg = build(function_of(body + "{ A: mov.u32 %r2, 2; ret; }\nmov.u32 %r2, 3; ret;"))
    assert cfg.blocks[0].succs == [1, 2]
    assert not cfg.is_reachable(cfg.function.instrs[5])


@pytest.mark.parametrize("jump", ["bra NOWHERE;", "brx.idx %r1, NOTABLE;"])
def test_a_jump_to_the_unknown_may_go_to_every_label(jump: str) -> None:
    fn = function_of(f"{jump}\nmov.u32 %r1, 0;\nA: mov.u32 %r1, 1;\nB: ret;")
    cfg = build(fn)
    targets = {cfg.blocks[t].start for t in cfg.blocks[0].succs}
    assert targets == {label.target for label in fn.labels}


def test_a_table_with_an_unknown_label_may_lead_to_every_label() -> None:
    fn = function_of("T: .branchtargets A, GONE;\nbrx.idx %r1, T;\nA: exit;\nB: ret;")
    cfg = build(fn)
    assert [cfg.blocks[t].start for t in cfg.blocks[0].succs] == [1, 2]


def test_a_jump_without_any_label_goes_on() -> None:
    cfg = build(function_of("bra NOWHERE;\nret;"))
    assert cfg.blocks[0].succs == [1]


def test_a_declaration_has_one_empty_block() -> None:
    module = parse(".version 8.0\n.target sm_90\n.address_size 64\n.extern .func f ();\n")
    cfg = build(module.functions[0])
    assert [(b.start, b.end, b.leave) for b in cfg.blocks] == [(0, 0, "end")]
    assert cfg.exits == [0]


def test_guarded_terminator_at_the_end_leaves_without_condition() -> None:
    cfg = build(function_of("setp.eq.s32 %p1, %r1, 0;\n@%p1 ret;"))
    assert cfg.edges_from(cfg.blocks[0]) == [EXIT]
    assert cfg.edge_condition(0, EXIT) is None


def test_guarded_branch_at_the_end_leaves_on_the_opposite_condition() -> None:
    cfg = build(function_of("A: setp.eq.s32 %p1, %r1, 0;\n@%p1 bra A;"))
    (register, value) = cfg.edge_condition(0, EXIT) or pytest.fail("no condition")
    assert (register.name, value) == ("%p1", False)


def test_block_lookups() -> None:
    fn = function_of("mov.u32 %r1, 1;\n@%p1 bra A;\nmov.u32 %r1, 2;\nA: ret;")
    cfg = build(fn)
    assert cfg.block_of == [0, 0, 1, 2]
    assert cfg.block_at(fn.instrs[2]) is cfg.blocks[1]
    assert cfg.instructions(0) == fn.instrs[:2]
    assert cfg.terminator(0) is fn.instrs[1]
    assert cfg.terminator(1) is None


def test_networkx_view_has_the_same_edges() -> None:
    cfg = build(function_of("@%p1 bra A;\nmov.u32 %r1, 2;\nA: ret;"))
    graph = cfg.to_networkx()
    assert set(graph.edges) == {(0, 2), (0, 1), (1, 2)}
    assert graph.edges[0, 2]["condition"] == (cfg.function.instrs[0].guard, True)


def test_the_module_tells_which_callees_never_return() -> None:
    text = ".version 8.0\n.target sm_90\n.address_size 64\n.extern .func f () .noreturn;\n"
    text += ".visible .entry k() { call f; ret; }\n"
    module = parse(text)
    cfg = Facts(module, module.functions[1]).get(CfgAnalysis)
    assert cfg.blocks[0].leave == "noreturn"
    assert [b.start for b in cfg.unreachable_blocks()] == [1]


def invariants(cfg: Cfg) -> None:
    """What holds of every graph."""
    covered = [i for b in cfg.blocks for i in range(b.start, b.end)]
    assert covered == list(range(len(cfg.function.instrs)))
    for block in cfg.blocks:
        assert len(set(block.succs)) == len(block.succs)
        assert block.succs or block.leave
        for target in block.succs:
            live = block.index in cfg.reachable or target not in cfg.reachable
            assert (block.index in cfg.blocks[target].preds) == live
    assert set(cfg.exits) == {b.index for b in cfg.blocks if b.leave} & cfg.reachable


@pytest.mark.parametrize(
    "body",
    [
        "".join(f"L{i}: @%p1 bra L{i + 1};\nmov.u32 %r1, 1;\n" for i in range(5000))
        + "L5000: ret;",
        "".join("@%p1 bra END;\nmov.u32 %r1, 1;\n" for _ in range(5000)) + "END: ret;",
        "".join(f"L{i}: @%p1 bra L{i};\n" for i in range(5000)) + "ret;",
    ],
    ids=["triangles", "early exits", "self loops"],
)
def test_large_functions(body: str) -> None:
    cfg = build(function_of(body))
    assert len(cfg.blocks) > 5000
    assert len(cfg.rpo) == len(cfg.blocks)
    invariants(cfg)
