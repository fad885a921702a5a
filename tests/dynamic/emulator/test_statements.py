"""Statements of every opcode and form that assemblers take: each is run or refused by name."""

from __future__ import annotations

import numpy as np
import pytest

from ptxlint.dynamic.emulator.run import Emulator
from ptxlint.dynamic.emulator.sanitizer.choice import Sanitize
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.frontends.ptx import parse
from tests.ir.conftest import module_text, rows
from tests.ir.test_opcodes import VERSIONS

ALL = Sanitize(races=True, uninitialised=True, overflow=True, copies=True, nonfinite=True)
WHOLE = frozenset(
    "bra brx ret exit trap bar barrier mbarrier shfl vote match redux activemask elect "
    "fence membar setmaxnreg griddepcontrol nanosleep prefetch applypriority discard bfe "
    "bfi createpolicy prmt shf dp4a dp2a fma mad mul sub neg abs min max rcp sqrt rsqrt "
    "ex2 lg2 sin cos tanh selp slct and or xor not shl shr popc clz brev bfind fns bmsk "
    "sad testp copysign tensormap".split()
)
"""Opcodes of which no form is refused."""


@pytest.mark.parametrize(
    "target",
    [pytest.param(t, marks=[pytest.mark.slow] if t == "sm_100a" else []) for t in VERSIONS],
)
def test_a_statement_is_run_or_refused(target: str) -> None:
    refused = set()
    statements = [row[1] for row in rows("statements.tsv") if row[0] == target]
    module = parse(module_text(statements, target, VERSIONS[target]), "statements.ptx")
    functions = [f for f in module.functions if f.is_kernel]
    for statement, function in zip(statements, functions, strict=True):
        block, pointer = function.params
        try:
            emulator = Emulator(module, function)
        except UnsupportedError as error:
            refused.add(error.instr.opcode)
            continue
        except Exception as error:
            pytest.fail(f"{statement}: {error!r}")
        arena = emulator.arena()
        room = arena.allocate("room", 1024, np.zeros(256, np.uint32))
        values = {block.name: bytes(128), pointer.name: room.start.to_bytes(8, "little")}
        try:
            emulator.run((2, 1, 1), (128, 1, 1), values, arena, sanitize=ALL, most_turns=2000)
        except Exception as error:
            pytest.fail(f"{statement}: {error!r}")
    assert sorted(refused & WHOLE) == []
