"""Text cases: PTX, and under `[out]` the facts at every point beside it.

A file `cases/NAME.test` or `cases/NAME-more.test` here or in `tests/cfg` holds cases like

    [case straight-line]
        mov.u32 %r1, 1;
    [out]
    ...

The PTX is a kernel's body, or a whole module if it declares functions. `NAME` chooses what is
printed. `pytest tests/dataflow --update-cases` rewrites the `[out]` parts: read the difference.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from ptxlint.cfg.build import CfgAnalysis
from ptxlint.cfg.control_dependence import ControlDependenceAnalysis, Dependence
from ptxlint.cfg.dominance import (
    NONE,
    AbortFreePostDominatorsAnalysis,
    DominatorsAnalysis,
    PostDominatorsAnalysis,
)
from ptxlint.cfg.graph import EXIT, Block, Cfg, Condition
from ptxlint.cfg.loops import LoopsAnalysis
from ptxlint.dataflow.liveness import LivenessAnalysis
from ptxlint.dataflow.pressure import PressureAnalysis
from ptxlint.dataflow.reaching import PARAMETER, UNINITIALISED, ReachingAnalysis
from ptxlint.dataflow.solver import FORWARD, MUST, run_analysis
from ptxlint.engine.registry import default_registry
from ptxlint.engine.said import rules_on
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse
from ptxlint.ir.instruction import Instr
from ptxlint.ir.module import Module
from ptxlint.ir.operand import Register
from ptxlint.reporters.facts_text import render_facts
from ptxlint.reporters.facts_view import FactsView

TESTS = Path(__file__).parent.parent
PROLOGUE = ".version 8.0\n.target sm_90\n.address_size 64\n"
KERNEL = """.visible .entry k(.param .u64 out, .param .u32 n)
{{
.reg .pred %p<70>;
.reg .b16 %rs<10>;
.reg .b32 %r<70>;
.reg .b64 %rd<10>;
{body}
}}
"""


class Case(NamedTuple):
    """One case of a file: what is before `[out]` and the lines expected after it."""

    path: Path
    name: str
    code: str
    expected: list[str]


def read_cases(path: Path) -> list[Case]:
    """The cases of a file, in order."""
    cases: list[Case] = []
    for part in re.split(r"^\[case ", path.read_text(), flags=re.MULTILINE)[1:]:
        name, _, rest = part.partition("]\n")
        code, separator, expected = rest.partition("[out]\n")
        assert separator, f"{path.name}: case {name} has no [out]"
        cases.append(Case(path, name, code, expected.rstrip("\n").splitlines()))
    return cases


def module_of(code: str) -> Module:
    """The module that a case's code stands for; any fault in it fails the test."""
    whole = ".entry" in code or ".func" in code
    module = parse(PROLOGUE + (code if whole else KERNEL.format(body=code)), "case.ptx")
    assert not module.problems, module.problems
    return module


def render(case: Case) -> list[str]:
    """The facts of a case, as they are printed."""
    module = module_of(case.code)
    printer = PRINTERS[case.path.stem.partition("-")[0]]
    out: list[str] = []
    bodies = [f for f in module.functions if not f.is_declaration]
    for fn in bodies:
        if len(bodies) > 1:
            out.append(f"{fn.name}:")
        out += [line.rstrip() for line in printer(Facts(module, fn))]
    return out


def text_of(facts: Facts, instr: Instr) -> str:
    """The instruction as it stands in the text, on one line."""
    text = facts.module.source.text
    return re.sub(r"\s+", " ", text[instr.offset : text.index(";", instr.offset) + 1])


def names(registers: Iterable[Register]) -> str:
    """Register names, `%r2` before `%r10`."""
    found = [r.name for r in registers]
    found.sort(key=lambda name: [int(p) if p.isdigit() else p for p in re.split(r"(\d+)", name)])
    return " ".join(found) or "-"


def blocks(indices: Iterable[int]) -> str:
    """Block names, `exit` for the virtual one."""
    return " ".join(block(i) for i in indices) or "-"


def block(index: int) -> str:
    """A block's name."""
    return {EXIT: "exit", NONE: "none"}.get(index, f"B{index}")


def when(condition: Condition | None) -> str:
    """` if p` or ` if !p`."""
    if condition is None:
        return ""
    return f" if {'' if condition[1] else '!'}{condition[0].name}"


def listing(
    facts: Facts, head: Callable[[Block], str], side: Callable[[Instr], str]
) -> Iterator[str]:
    """The function by blocks: a head line, then the instructions with their facts beside them."""
    cfg = facts.get(CfgAnalysis)
    for each in cfg.blocks:
        dead = "" if each.index in cfg.reachable else " unreachable"
        yield f"B{each.index}{dead}: {head(each)}"
        for instr in cfg.instructions(each):
            yield f"  {instr.index:2} {text_of(facts, instr):36} {side(instr)}"


def print_cfg(facts: Facts) -> Iterator[str]:
    """Blocks, predecessors, edges with their conditions, ways out."""
    cfg = facts.get(CfgAnalysis)

    def head(each: Block) -> str:
        return f"from {blocks(each.preds)}"

    def side(instr: Instr) -> str:
        each = cfg.block_at(instr)
        return edges(cfg, each) if instr.index == each.end - 1 else ""

    yield from listing(facts, head, side)
    for each in cfg.blocks:
        if not len(each):
            yield f"B{each.index} is empty {edges(cfg, each)}"
    yield f"order {blocks(cfg.rpo)}"


def edges(cfg: Cfg, each: Block) -> str:
    """The out-edges of a block."""
    parts = [
        f"{each.leave if target == EXIT else block(target)}"
        f"{when(cfg.edge_condition(each.index, target))}"
        for target in cfg.edges_from(each)
    ]
    return "-> " + ", ".join(parts)


def print_dominance(facts: Facts) -> Iterator[str]:
    """Immediate dominators and post-dominators, frontiers."""
    tree, post = facts.get(DominatorsAnalysis), facts.get(PostDominatorsAnalysis)
    survivors = facts.get(AbortFreePostDominatorsAnalysis)
    for each in facts.get(CfgAnalysis).blocks:
        at = each.index
        line = f"{block(at)} -> {blocks(facts.get(CfgAnalysis).edges_from(each))}:"
        line += f" idom {block(tree.idom[at])}, frontier {blocks(tree.frontiers[at])}"
        line += f"; ipdom {block(post.idom[at])}, frontier {blocks(post.frontiers[at])}"
        if survivors.idom[at] != post.idom[at]:
            line += f"; without traps {block(survivors.idom[at])}"
        yield line


def print_control(facts: Facts) -> Iterator[str]:
    """Direct and iterated control dependence of each block."""
    dependence = facts.get(ControlDependenceAnalysis)

    def show(found: list[Dependence]) -> str:
        shown = (
            f"{block(d.branch)}->{block(d.target)}{when(dependence.condition(d))}" for d in found
        )
        return ", ".join(shown) or "-"

    for each in facts.get(CfgAnalysis).blocks:
        direct, closure = dependence.direct(each.index), dependence.closure(each.index)
        more = "" if len(direct) == len(closure) else f"; in all {show(closure)}"
        yield f"{block(each.index)}: {show(direct)}{more}"


def print_loops(facts: Facts) -> Iterator[str]:
    """Natural loops with their nesting, and irreducible regions."""
    forest = facts.get(LoopsAnalysis)
    for loop in forest.loops:
        preheader = forest.preheader(loop)
        exits = ", ".join(f"{block(a)}->{block(b)}" for a, b in forest.exits(loop))
        yield (
            f"{'  ' * (loop.depth - 1)}loop {block(loop.header)}: blocks {blocks(loop.blocks)}, "
            f"latches {blocks(loop.latches)}, exits {exits or '-'}, "
            f"preheader {'none' if preheader is None else block(preheader)}"
        )
    for region in forest.irreducible:
        yield f"irreducible: blocks {blocks(region.blocks)}, entries {blocks(region.entries)}"
    if not forest.loops and not forest.irreducible:
        yield "no cycle"


def print_liveness(facts: Facts) -> Iterator[str]:
    """What is live at the top of each block and after each instruction."""
    live = facts.get(LivenessAnalysis)
    yield from listing(
        facts,
        lambda each: f"live in {names(live.registers(live.live_in[each.index]))}",
        lambda instr: names(live.after(instr)),
    )


def print_pressure(facts: Facts) -> Iterator[str]:
    """Live words after each instruction, the peak and what is live there."""
    pressure = facts.get(PressureAnalysis)

    def side(instr: Instr) -> str:
        counts = pressure.counts(instr)
        parts = ((counts.b16, "b16"), (counts.b32, "b32"), (counts.b64, "b64"))
        parts += ((counts.b128, "b128"), (counts.predicates, "pred"))
        return f"{counts.words:2} words" + "".join(f" {n} {kind}" for n, kind in parts if n)

    yield from listing(facts, lambda each: "", side)
    if pressure.peak_instr is not None:
        yield f"peak {pressure.peak.words} at {pressure.peak_instr.index}"
        for value in pressure.live_at(pressure.peak_instr):
            written = " ".join(str(d.index) for d in value.definitions) or "-"
            yield f"  {value.register.name} {value.words} written at {written}"


def print_reaching(facts: Facts) -> Iterator[str]:
    """For each read where the value may come from, and who reads what is written."""
    reaching = facts.get(ReachingAnalysis)
    special = {UNINITIALISED: "nowhere", PARAMETER: "parameter"}

    def side(instr: Instr) -> str:
        parts = []
        for register in dict.fromkeys(instr.uses):
            found = reaching.defs_of(instr, register)
            parts.append(f"{register.name} from " + " ".join(special.get(d, str(d)) for d in found))
            assert (UNINITIALISED in found) == (
                reaching.initialisation(instr, register) != "always"
            )
        readers = " ".join(str(u.index) for u in reaching.uses_of(instr))
        if readers:
            parts.append(f"read by {readers}")
        return ", ".join(parts)

    yield from listing(facts, lambda each: "", side)
    yield f"candidates {names(reaching.uninitialised_candidates())}"


def print_definite(facts: Facts) -> Iterator[str]:
    """The registers written on every path: a forward problem of intersection for the solver."""
    cfg = facts.get(CfgAnalysis)
    named = dict.fromkeys(r for i in cfg.function.instrs for r in i.defs + i.uses)
    registers = sorted(named, key=lambda r: r.index)

    def gen_kill(instr: Instr) -> tuple[int, int]:
        mask = 0
        if not instr.may_define:
            for register in instr.defs:
                mask |= 1 << register.index
        return mask, 0

    universe = sum(1 << r.index for r in registers)
    solution = run_analysis(cfg, gen_kill, kind=MUST, direction=FORWARD, universe=universe)

    def show(bits: int) -> str:
        return names(r for r in registers if bits >> r.index & 1)

    yield from listing(
        facts,
        lambda each: show(solution.before[each.index]),
        lambda instr: show(solution.after_instr(instr)),
    )


def print_facts(facts: Facts) -> Iterator[str]:
    """What `ptxlint show facts` prints, with what one rule says."""
    said = [each for each in rules_on(facts, default_registry()) if each.rule.id == "MSK201"]
    text = render_facts(FactsView(facts, said), lambda instr: True)
    yield from text.splitlines()[2:]


PRINTERS: dict[str, Callable[[Facts], Iterator[str]]] = {
    "cfg": print_cfg,
    "control": print_control,
    "definite": print_definite,
    "dominance": print_dominance,
    "facts": print_facts,
    "liveness": print_liveness,
    "loops": print_loops,
    "pressure": print_pressure,
    "reaching": print_reaching,
}


def all_cases() -> list[Case]:
    """Every case of this directory and of tests/cfg."""
    paths = sorted(p for d in ("cfg", "dataflow") for p in (TESTS / d / "cases").glob("*.test"))
    return [case for path in paths if stem(path) in PRINTERS for case in read_cases(path)]


def stem(path: Path) -> str:
    """What a case file shows."""
    return path.stem.partition("-")[0]


def rewrite(case: Case, actual: list[str]) -> None:
    """Put what is printed now into the case's file."""
    text = case.path.read_text()
    start = text.index(f"[case {case.name}]\n")
    at = text.index("[out]\n", start) + len("[out]\n")
    end = text.find("\n[case ", at - 1)
    tail = text[end:] if end >= 0 else ""
    case.path.write_text(text[:at] + "\n".join(actual) + "\n" + tail)


@pytest.mark.parametrize("case", all_cases(), ids=lambda c: f"{c.path.stem}:{c.name}")
def test_case(case: Case, request: pytest.FixtureRequest) -> None:
    actual = render(case)
    if request.config.getoption("--update-cases", default=False):
        rewrite(case, actual)
        return
    assert actual == case.expected


def test_every_printer_has_cases() -> None:
    shown = {stem(case.path) for case in all_cases()}
    assert shown == set(PRINTERS)


def test_case_names_are_unique_within_a_file() -> None:
    keys = [(case.path, case.name) for case in all_cases()]
    assert len(keys) == len(set(keys))
