"""The same finding over files, architectures and autotune configurations, told once."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from ptxlint.diagnostics import SEVERITY_ORDER, Finding
from ptxlint.engine.fingerprint import normalise
from ptxlint.engine.pseudo import FAILURES, UNUSED
from ptxlint.obligations import SEMANTICS, Generalisation, Obligation

_DIGITS = re.compile(r"(\d+)")


def merge_findings(findings: Iterable[Finding]) -> list[Finding]:
    """Each finding once, with all its architectures, files and places, in reading order.

    Two findings are the same when rule, severity, kernel, message (registers and labels blanked)
    and Python place agree. Without a Python place the fingerprint takes its part, so that two PTX
    lines of one file stay two findings and the same line of two builds becomes one.
    """
    groups: dict[tuple[Any, ...], list[Finding]] = {}
    for finding in findings:
        groups.setdefault(_key(finding), []).append(finding)
    return sorted((_merged(group) for group in groups.values()), key=reading_order)


def _key(finding: Finding) -> tuple[Any, ...]:
    place = finding.place
    where: tuple[Any, ...]
    if finding.rule in FAILURES or finding.family == UNUSED.family:
        where = (place.path, place.line, place.column)
    elif place.source is not None:
        where = place.source[:3]
    else:
        where = ("", finding.fingerprint)
    message = normalise(finding.message)
    return (finding.rule, finding.severity, finding.kernel, message, where)


def _merged(group: list[Finding]) -> Finding:
    first = group[0]
    archs = sorted({f.arch for f in group if f.arch}, key=natural)
    paths = dict.fromkeys(f.place.path for f in group)
    places = dict.fromkeys(f.place for f in group)
    return first._replace(archs=tuple(archs), paths=tuple(paths), occurrences=tuple(places)[1:])


def reading_order(finding: Finding) -> tuple[Any, ...]:
    """Sort key: file and line as a person reads them, then severity and rule."""
    place = finding.place
    shown = place.source or place
    severity = SEVERITY_ORDER[finding.severity]
    exact = (place.path, place.line, place.column)
    return (shown.path, shown.line, shown.column, severity, finding.rule, exact, finding.message)


def natural(text: str) -> list[tuple[int, int, str]]:
    """Sort key under which `sm_90` comes before `sm_100`."""
    pieces = [piece for piece in _DIGITS.split(text) if piece]
    return [(0, int(p), "") if p.isdecimal() else (1, 0, p) for p in pieces]


def merge_obligations(obligations: Iterable[Obligation]) -> list[Obligation]:
    """Each verdict once, with all its architectures, in the order in which they were given."""
    groups: dict[tuple[Any, ...], list[Obligation]] = {}
    for item in obligations:
        place = item.place
        where: tuple[Any, ...] = ()
        if place is not None and place.source is not None:
            where = place.source[:3]
        elif place is not None and item.family != SEMANTICS:
            where = (place.path, place.line)
        key = (item.rule, item.family, item.kernel, item.status, normalise(item.reason), where)
        groups.setdefault(key, []).append(item)
    return [
        group[0]._replace(
            archs=tuple(sorted({o.arch for o in group if o.arch}, key=natural)),
            generalises=_shared(group),
        )
        for group in groups.values()
    ]


def _shared(group: list[Obligation]) -> tuple[Generalisation, ...]:
    """What is shown for all builds that one verdict stands for."""
    first, *others = group
    return tuple(
        part for part in first.generalises if all(part in other.generalises for other in others)
    )
