"""Cubins and machine code held against the assembler: what is equal is counted, the rest told."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from ptxlint.frontends.toolkit import ToolError, find_assembler, find_tool
from ptxlint.resources import Amount

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "benchmarks" / "exactness"
sys.path.insert(0, str(FOLDER))

import assembled  # noqa: E402
from page import PAGE, written  # noqa: E402

SOFTMAX = ROOT / "fixtures" / "ptx" / "sm_80" / "softmax.ptx"


@pytest.fixture
def tally() -> assembled.Tally:
    try:
        find_assembler((9, 4))
        find_tool("nvdisasm")
    except ToolError as error:
        pytest.skip(str(error))
    return assembled.Tally()


def test_what_agrees_is_counted(tally: assembled.Tally) -> None:
    assembled.hold(SOFTMAX, "sm_75", tally)
    assert tally.faults == []
    instructions = tally.counts.pop("instructions")
    assert instructions > 100
    assert tally.counts == {
        "files": 1, "listings": 1, "kernels": 1, "no spills": 1, "functions": 1, "graphs": 1,
    }  # fmt: skip


def test_what_does_not_agree_is_told(
    tally: assembled.Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, parse = assembled.read_cubin, assembled.parse

    def other(cubin: bytes) -> Any:
        found = read(cubin)
        ((name, known),) = found.kernels.items()
        return found._replace(kernels={name: known._replace(registers=Amount(7, "cubin"))})

    def unread(text: str) -> Any:
        return parse(text.replace("EXIT", "FROB"))

    monkeypatch.setattr(assembled, "read_cubin", other)
    monkeypatch.setattr(assembled, "parse", unread)
    assembled.hold(SOFTMAX, "", tally)
    first, second, third = tally.faults
    assert first.startswith("softmax: registers ")
    assert first.endswith(" in the log, 7 in the cubin")
    assert second == "softmax: softmax_kernel: unknown opcodes FROB"
    assert third.startswith("softmax: softmax_kernel: ")
    assert tally.counts["kernels, other"] == tally.counts["graphs, other"] == 1


def test_a_file_that_a_target_does_not_take_is_counted_with_the_reason(
    tally: assembled.Tally,
) -> None:
    assembled.hold(ROOT / "fixtures" / "ptx" / "sm_90" / "matmul_dot_fp16.ptx", "sm_75", tally)
    assert tally.counts["files"] == 0
    (reason,) = tally.rejected
    assert "sm_75" in reason or "sm_8" in reason or "sm_9" in reason


def test_the_page_is_that_of_the_record_and_nothing_disagrees() -> None:
    rows = json.loads((FOLDER / "results.json").read_text(encoding="utf-8"))
    assert PAGE.read_text(encoding="utf-8") == written(rows)
    assert [row["faults"] for row in rows.values() if row["faults"]] == []
    assert sum(row["counts"]["kernels"] for row in rows.values()) >= 200
