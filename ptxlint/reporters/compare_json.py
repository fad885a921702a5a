"""A comparison over architectures as data (docs/compare.md)."""

from __future__ import annotations

import json
from typing import Any

from ptxlint.comparison.architectures import ArchitectureReport, Family, Structure
from ptxlint.comparison.changes import Where
from ptxlint.comparison.portrait import Portrait
from ptxlint.comparison.surprises import Surprise
from ptxlint.resources import Amount, Resources
from ptxlint.structure.profile import Profile

VERSION = 1


def render_json(report: ArchitectureReport) -> str:
    """The whole report."""
    data = {
        "version": VERSION,
        "kernels": [_family(f, report.fail_on) for f in report.families],
        "alone": [{"kernel": k.name, "arch": k.arch, "path": k.path} for k in report.alone],
        "faults": list(report.faults),
        "seconds": round(report.seconds, 3),
    }
    return json.dumps(data, indent=1) + "\n"


def _family(family: Family, fail_on: frozenset[str]) -> dict[str, Any]:
    pairs = zip(family.portraits, family.structures, strict=True)
    return {
        "kernel": family.portraits[0].kernel.name,
        "title": family.name,
        "level": family.level,
        "architectures": [_portrait(p, s) for p, s in pairs],
        "surprises": [_surprise(s, s.kind in fail_on) for s in family.surprises],
        "notes": list(family.notes),
    }


def _portrait(p: Portrait, structure: Structure) -> dict[str, Any]:
    found = p.residency
    return {
        "arch": p.arch,
        "path": p.kernel.path,
        "code": structure.code,
        "graph": structure.graph,
        "parts": _parting(structure),
        "blocks": len(p.cfg.reachable),
        **_profile(p.profile),
        "cta_barriers": p.barriers,
        "mbarrier_waits": p.waits,
        "guards": [
            {"place": _where(place), "kind": kind, "guarded": g.guarded, "total": g.total}
            for (place, kind), g in p.guards.items()
        ],
        "resources": _resources(p.resources),
        "spill_lines": [
            {"place": _where(line.where), "stored": line.stored, "loaded": line.loaded}
            for line in p.spill_lines
        ],
        "occupancy": None if found is None else {
            "ctas": found.ctas_per_sm, "warps": found.warps_per_sm, "share": found.fraction,
            "limited_by": list(found.limiters),
        },
        "verdicts": [
            {"rule": rule, "place": _where(place), "status": o.status, "reason": o.reason}
            for (rule, place), o in p.verdicts.items()
        ],
        "findings": [
            {"rule": f.rule, "severity": f.severity, "message": f.message}
            for f in p.findings.values()
        ],
        "machine_code": None if p.machine is None else _profile(p.machine),
    }  # fmt: skip


def _profile(found: Profile) -> dict[str, Any]:
    return {
        "instructions": found.instructions,
        "classes": dict(sorted(found.classes.items())),
        "tensor": dict(sorted(found.tensor.items())),
        "copies": dict(sorted(found.copies.items())),
    }


def _parting(structure: Structure) -> dict[str, Any] | None:
    found = structure.parting
    if found is None:
        return None
    return {
        "first": None if found.ours is None else _block(*found.ours),
        "here": None if found.theirs is None else _block(*found.theirs),
        "lines": [
            {"place": _where(place), "class": name, "first": there, "here": here}
            for place, name, there, here in found.lines
        ],
    }


def _block(block: int, where: Where) -> dict[str, Any]:
    return {"block": block, "place": _where(where)}


def _where(where: Where) -> dict[str, Any] | None:
    return {"path": where.path, "line": where.line} if where.line else None


def _resources(found: Resources) -> dict[str, Any]:
    amounts = {name: a for name, a in found._asdict().items() if isinstance(a, Amount)}
    return {name: {"value": a.value, "source": a.source} for name, a in amounts.items()}


def _surprise(found: Surprise, fails: bool) -> dict[str, Any]:
    return {
        "kind": found.kind,
        "archs": list(found.archs),
        "here": found.here,
        "usual": found.usual,
        "rule": found.rule or None,
        "place": None if found.where is None else _where(found.where),
        "fails": fails,
    }


__all__ = ["VERSION", "render_json"]
