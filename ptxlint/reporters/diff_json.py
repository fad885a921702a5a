"""A comparison as data (docs/diff.md)."""

from __future__ import annotations

import json
from typing import Any

from ptxlint.comparison.changes import InstructionChange, Where, constants, instructions, operands
from ptxlint.comparison.difference import CodeDifference, Difference
from ptxlint.comparison.records import KernelRecord
from ptxlint.comparison.report import DiffReport
from ptxlint.comparison.spill_lines import SpilledAt

VERSION = 1


def render_json(report: DiffReport) -> str:
    """The whole report."""
    words = {id(d): list(w) for d, w in report.failures}
    data = {
        "version": VERSION,
        "pairs": [_difference(d, words.get(id(d), [])) for d in report.differences],
        "removed": [_kernel(k) for k in report.removed],
        "added": [_kernel(k) for k in report.added],
        "faults": list(report.faults),
        "undecided": [
            {"kernel": d.new.name, "arch": d.new.arch, "words": list(words)}
            for d, words in report.undecided
        ],
        "missing": [{**_kernel(kernel), "fails_on": word} for kernel, word in report.missing],
        "seconds": round(report.seconds, 3),
    }
    return json.dumps(data, indent=1) + "\n"


def _kernel(kernel: KernelRecord) -> dict[str, Any]:
    return {
        "kernel": kernel.name, "arch": kernel.arch, "path": kernel.path, "level": kernel.level,
    }  # fmt: skip


def _where(where: Where) -> dict[str, Any]:
    return {"path": where.path, "line": where.line}


def _difference(difference: Difference, fails: list[str]) -> dict[str, Any]:
    machine = difference.machine
    return {
        "old": _kernel(difference.old),
        "new": _kernel(difference.new),
        "fails_on": fails,
        **_code(difference.code),
        "machine_code": None if machine is None else _code(machine),
        "resources": [
            {"name": d.name, "old": d.old, "new": d.new, "source": d.source}
            for d in difference.resources
        ],
        "spill_lines": {
            "old": list(map(_spilled, difference.old_spills)),
            "new": list(map(_spilled, difference.new_spills)),
        },
        "verdicts": [
            {
                "rule": v.rule,
                "old": dict(v.old),
                "new": dict(v.new),
                "worse": v.is_worse,
                **({} if v.at is None else {"place": _where(v.at)}),
            }
            for v in difference.verdicts
        ],
        "notes": list(difference.notes),
    }


def _spilled(line: SpilledAt) -> dict[str, Any]:
    return {"place": _where(line.where), "stored": line.stored, "loaded": line.loaded}


def _code(code: CodeDifference) -> dict[str, Any]:
    """What has changed at one level."""
    removed, added = instructions(code)
    return {
        "level": code.level,
        "kind": code.kind,
        "constants": [
            {
                "old": c.old, "new": c.new, "old_place": _where(c.old_where),
                "new_place": _where(c.new_where), "instruction": c.mnemonic, "times": c.times,
            }
            for c in constants(code)
        ],
        "removed": list(map(_instruction, removed)),
        "added": list(map(_instruction, added)),
        "operands": [
            {
                "instruction": c.mnemonic, "old_place": _where(c.old_where),
                "new_place": _where(c.new_where), "times": c.times,
            }
            for c in operands(code)
        ],
        "declarations": [
            {"name": d.title, "old": d.old, "new": d.new} for d in code.alignment.declared
        ],
        "graph": code.graph,
        "instructions": [{"name": d.name, "old": d.old, "new": d.new} for d in code.classes],
        "accesses": [
            {"kind": a.kind, "space": a.space, "guarded": a.guarded, "old": old, "new": new}
            for a, old, new in code.accesses
        ],
    }  # fmt: skip


def _instruction(change: InstructionChange) -> dict[str, Any]:
    return {
        "instruction": change.mnemonic, "constant": change.constant or None,
        "place": _where(change.where), "times": change.times,
    }  # fmt: skip


__all__ = ["VERSION", "render_json"]
