"""What is otherwise on one architecture than on the others.

What is *usual* is what most architectures have; where none prevails, the better. Only what can be
compared is: barriers among architectures with the same tensor-core instructions, guards and
verdicts on the same line of the source.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping
from typing import Final, NamedTuple, TypeVar

from ptxlint.arch import TargetError, supports
from ptxlint.comparison.changes import Where
from ptxlint.comparison.portrait import RANK, Portrait
from ptxlint.comparison.spill_lines import told
from ptxlint.wording import counted

KINDS: Final = ("spills", "tensor", "copies", "guards", "barriers", "verdicts")
"""What `--fail-on` names, in the order of reports."""

V = TypeVar("V", bound=Hashable)
_LINES: Final = 3
"""So many lines are named on which a kernel spills."""
_GUARDS: Final = {"all": 0, "some": 1, "none": 2}
_OWN: Final = ("tcgen05", "wgmma")
"""Tensor-core instructions that only some architectures have, the newest first."""


class Surprise(NamedTuple):
    """Architectures that are otherwise: `kind` is one of `KINDS`, `here` what they have, `usual`
    what the others have, both in words; `where` is a line of the source, if it is one's."""

    kind: str
    archs: tuple[str, ...]
    here: str
    usual: str
    rule: str = ""
    where: Where | None = None


def surprises(portraits: tuple[Portrait, ...]) -> list[Surprise]:
    """All surprises of one kernel, by kind; architectures otherwise in one way are one surprise."""
    found: dict[Surprise, tuple[str, ...]] = {}
    for look in (_spills, _tensor, _copies, _guards, _barriers, _verdicts):
        for surprise in look(portraits):
            key = surprise._replace(archs=())
            found[key] = (*found.get(key, ()), *surprise.archs)
    return [key._replace(archs=archs) for key, archs in found.items()]


def usual(values: Mapping[str, V], badness: Callable[[V], float]) -> V:
    """The value that most architectures have; of several, the best."""
    counts = Counter(values.values())
    return min(counts, key=lambda v: (-counts[v], badness(v)))


def _spills(portraits: tuple[Portrait, ...]) -> Iterator[Surprise]:
    known = {p.arch: p.spilled for p in portraits if p.spilled is not None}
    clean = [arch for arch, spilled in known.items() if not spilled]
    others = f"none on {', '.join(clean)}" if clean else "all of them spill"
    for p in portraits:
        if p.spilled:
            stores, loads = (
                a.value if a is not None else 0
                for a in (p.resources.spill_stores, p.resources.spill_loads)
            )
            text = f"{stores:,} B stored, {loads:,} B loaded"
            if p.spill_lines:
                text = f"{text}; {told(p.spill_lines, _LINES)}"
            yield Surprise("spills", (p.arch,), text, others)


def _tensor(portraits: tuple[Portrait, ...]) -> Iterator[Surprise]:
    having = [p for p in portraits if p.tensor]
    for p in having:
        if p.machine is not None and not p.machine.tensor:
            mine = ", ".join(p.tensor)
            text = "no tensor-core instructions in its machine code"
            yield Surprise("tensor", (p.arch,), text, f"{mine}, which its PTX has")
    if not having:
        return
    for p in portraits:
        if not p.tensor:
            others = "; ".join(f"{', '.join(q.tensor)} on {q.arch}" for q in having)
            yield Surprise("tensor", (p.arch,), "no tensor-core instructions", others)
        elif (own := _own_path(p.arch)) and own not in p.tensor:
            yield Surprise(
                "tensor", (p.arch,), f"{', '.join(p.tensor)}", f"{own}, which {p.arch} has"
            )


def _own_path(arch: str) -> str:
    """The tensor-core instructions that an architecture has beyond `mma`; "" if none."""
    try:
        return next((name for name in _OWN if supports(arch, name)), "")
    except TargetError:
        return ""


def _copies(portraits: tuple[Portrait, ...]) -> Iterator[Surprise]:
    values = {p.arch: bool(p.profile.copies) for p in portraits}
    if usual(values, lambda has: not has):
        for p in portraits:
            if not p.profile.copies:
                others = ", ".join(q.arch for q in portraits if q.profile.copies)
                yield Surprise("copies", (p.arch,), "no asynchronous copies", f"some on {others}")


def _guards(portraits: tuple[Portrait, ...]) -> Iterator[Surprise]:
    for key in sorted({key for p in portraits for key in p.guards}):
        there = {p.arch: p.guards[key] for p in portraits if key in p.guards}
        common = usual({a: g.word for a, g in there.items()}, _GUARDS.__getitem__)
        place, kind = key
        for arch, found in there.items():
            if _GUARDS[found.word] > _GUARDS[common]:
                is_copy = kind == "async"
                noun = "asynchronous copy" if is_copy else f"global {kind}"
                plural = "asynchronous copies" if is_copy else f"{noun}s"
                yield Surprise(
                    "guards",
                    (arch,),
                    f"{found.guarded} of {counted(found.total, noun, plural)} guarded",
                    f"{common} on the others",
                    where=place,
                )


def _barriers(portraits: tuple[Portrait, ...]) -> Iterator[Surprise]:
    alike: dict[Hashable, list[Portrait]] = {}
    for p in portraits:
        alike.setdefault(p.tensor, []).append(p)
    for members in alike.values():
        if len(members) > 1:
            common = usual({p.arch: p.barriers for p in members}, lambda n: -n)
            for p in members:
                if p.barriers < common:
                    yield Surprise(
                        "barriers",
                        (p.arch,),
                        counted(p.barriers, "CTA barrier"),
                        str(common),
                    )
    # Between kinds of products the number says nothing, that there is none does.
    having = [p.arch for p in portraits if p.barriers or p.waits]
    for p in portraits:
        is_told = len(alike[p.tensor]) > 1 and any(q.barriers for q in alike[p.tensor])
        if having and not p.barriers and not p.waits and not is_told:
            yield Surprise(
                "barriers", (p.arch,), "no barrier at all", f"some on {', '.join(having)}"
            )


def _verdicts(portraits: tuple[Portrait, ...]) -> Iterator[Surprise]:
    for rule in sorted({rule for p in portraits for rule, _ in p.verdicts}):
        told: set[str] = set()
        places = sorted({place for p in portraits for name, place in p.verdicts if name == rule})
        for place in places:
            found = {
                p.arch: p.verdicts[rule, place].status
                for p in portraits
                if (rule, place) in p.verdicts
            }
            if len(found) > 1:
                for surprise in _odd(rule, dict(found), portraits, place):
                    told.update(surprise.archs)
                    yield surprise
        # Where lines differ between architectures the kernel's worst verdicts do not.
        worst: dict[str, str] = {p.arch: p.worst(rule) or "" for p in portraits}
        if "refuted" not in worst.values():
            worst = {arch: status for arch, status in worst.items() if status}
        for surprise in _odd(rule, worst, portraits, None):
            if not told.issuperset(surprise.archs):
                yield surprise
    yield from _findings(portraits)


def _findings(portraits: tuple[Portrait, ...]) -> Iterator[Surprise]:
    """Rules that find something on some architectures, where verdicts do not say so already."""
    for rule in sorted({rule for p in portraits for rule in p.findings}):
        if any(p.worst(rule) == "refuted" for p in portraits):
            continue
        common = usual({p.arch: rule in p.findings for p in portraits}, int)
        for p in portraits:
            finding = p.findings.get(rule)
            if (finding is None) == common:
                others = next(q.findings[rule] for q in portraits if rule in q.findings)
                text = "no finding" if finding is None else f"{finding.severity}: {finding.message}"
                usually = f"{others.severity}: {others.message}" if common else "no finding"
                yield Surprise("verdicts", (p.arch,), text, usually, rule)


def _odd(
    rule: str, found: dict[str, str], portraits: tuple[Portrait, ...], place: Where | None
) -> Iterator[Surprise]:
    common = usual(found, lambda status: RANK.get(status, 0))
    at = place if place is not None and place.line else None
    for p in portraits:
        status = found.get(p.arch)
        if status is not None and status != common:
            text = _told(p, rule, status, place)
            yield Surprise("verdicts", (p.arch,), text, common or "no verdict", rule, at)


def _told(p: Portrait, rule: str, status: str, place: Where | None) -> str:
    """A verdict with its reason."""
    for (name, at), verdict in p.verdicts.items():
        if name == rule and verdict.status == status and place in (None, at):
            return f"{status}: {verdict.reason}" if verdict.reason else status
    return status or "no verdict"


__all__ = ["KINDS", "Surprise", "surprises", "usual"]
