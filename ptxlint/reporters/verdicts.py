"""Verdicts in text: one line for each kernel that something is open in, or all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from os.path import basename
from typing import Final

from ptxlint.obligations import SEMANTICS, Obligation
from ptxlint.reporters.wording import plain
from ptxlint.wording import counted

_STATUSES: Final = ("proved", "refuted", "open")
_ORDER: Final = {"refuted": 0, "open": 1, "proved": 2}
_SHOWN_KERNELS: Final = 5
_SHOWN_FAMILIES: Final = 3
_SHOWN_LINES: Final = 3

Paint = Callable[[str, str], str]
_STYLES: Final = {"refuted": "error", "open": "warning", "proved": "dim"}


def judged(obligations: Iterable[Obligation]) -> list[Obligation]:
    """The verdicts that count: all but the one on what only a reference can tell."""
    return [item for item in obligations if item.family != SEMANTICS]


def tally(obligations: Iterable[Obligation]) -> str:
    """`3 proved, 1 open`."""
    counts = dict.fromkeys(_STATUSES, 0)
    for item in obligations:
        counts[item.status] += 1
    return ", ".join(f"{number} {status}" for status, number in counts.items() if number)


def summary_lines(obligations: Iterable[Obligation]) -> list[str]:
    """What is decided and what is open, a line a kernel that has something open; [] if all is
    proved."""
    counted_ones = judged(obligations)
    open_in = {o.kernel: None for o in counted_ones if o.status == "open"}
    if not open_in:
        return [tally(counted_ones)] if any(o.status != "proved" for o in counted_ones) else []
    of_kernel: dict[str, list[Obligation]] = {}
    for item in counted_ones:
        of_kernel.setdefault(item.kernel, []).append(item)
    if len(of_kernel) == 1:
        return [_summary(counted_ones)]
    lines = [f"{tally(counted_ones)} in {counted(len(open_in), 'kernel')}"]
    # Where most is open first: the order of the files says nothing.
    ranked = sorted(open_in, key=lambda k: -sum(o.status == "open" for o in of_kernel[k]))
    lines += [
        f"  {plain(kernel)}: {_summary(of_kernel[kernel])}" for kernel in ranked[:_SHOWN_KERNELS]
    ]
    if len(ranked) > _SHOWN_KERNELS:
        lines.append(f"  and {len(ranked) - _SHOWN_KERNELS} more; --obligations lists all")
    return lines


def _summary(obligations: list[Obligation]) -> str:
    """`3 proved, 1 open: tail-mask at softmax.py:10, try n = 1023, 1025`."""
    families: dict[str, list[Obligation]] = {}
    for item in obligations:
        if item.status == "open":
            families.setdefault(item.family, []).append(item)
    parts = [_family(name, items) for name, items in families.items()]
    if len(parts) > _SHOWN_FAMILIES:
        parts[_SHOWN_FAMILIES:] = [f"and {len(parts) - _SHOWN_FAMILIES} more"]
    return plain(f"{tally(obligations)}: {'; '.join(parts)}")


def _family(name: str, items: list[Obligation]) -> str:
    lines: dict[str, set[int]] = {}
    for item in items:
        if item.place is not None:
            shown = item.place.source or item.place
            lines.setdefault(basename(shown.path), set()).add(shown.line)
    places = [_lines(path, sorted(numbers)) for path, numbers in lines.items()]
    text = f"{name} at {', '.join(places)}" if places else name
    advice = suggested(items)
    return f"{text}, {advice}" if advice else text


def _lines(path: str, numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:_SHOWN_LINES]))
    more = len(numbers) - _SHOWN_LINES
    return f"{path}:{shown}" + (f" and {counted(more, 'more line')}" if more > 0 else "")


def suggested(items: Iterable[Obligation]) -> str:
    """`try n = 1023, 1025`: values that would show the defect; "" without any."""
    values: dict[str, set[int]] = {}
    for item in items:
        for name, numbers in item.suggest.items():
            values.setdefault(name, set()).update(_telling(numbers))
    parts = [f"{name} = {', '.join(map(str, sorted(ns)))}" for name, ns in values.items() if ns]
    return f"try {' or '.join(parts)}" if parts else ""


def _telling(numbers: list[int]) -> list[int]:
    """Without the size that just fits: it is a control, and a person wants to see it fail."""
    low, *rest = numbers or [0]
    middle = len(rest) == 2 and rest[0] - low == rest[1] - rest[0]
    return [low, rest[1]] if middle else numbers


def all_lines(obligations: Iterable[Obligation], paint: Paint) -> list[str]:
    """Every verdict by kernel, with its reason; the parts of those that are not proved, too."""
    kernels: dict[str, list[Obligation]] = {}
    for item in obligations:
        kernels.setdefault(item.kernel, []).append(item)
    lines: list[str] = []
    for kernel, items in kernels.items():
        archs = sorted({arch for item in items for arch in item.archs or (item.arch,) if arch})
        where = f" on {', '.join(archs)}" if archs else ""
        lines.append(
            paint("bold", plain(f"{kernel}{where}")) + f": {tally(judged(items)) or 'nothing'}"
        )
        known: tuple[str, ...] = ()
        for item in sorted(items, key=lambda o: (o.family == SEMANTICS, _ORDER[o.status])):
            lines += _verdict(item, paint)
            carried, known = _carried(item, known)
            lines += carried
    return lines


def _verdict(item: Obligation, paint: Paint) -> list[str]:
    place = item.place
    shown = None if place is None else place.source or place
    where = f" {shown.path}:{shown.line}:{shown.column}" if shown is not None else ""
    rule = f"[{item.rule}]" if item.rule else ""
    status = paint(_STYLES[item.status], f"{item.status:<8}")
    text = f"{item.family}{rule}{where}: {item.reason}"
    if item.assumes:
        text += f" (assuming {', '.join(item.assumes)})"
    if item.launch is not None:
        text += f" ({counted(1 + item.launch['more'], 'launch', 'launches')})"
    advice = suggested([item])
    lines = [f"  {status}{plain(f'{text}; {advice}' if advice else text)}"]
    if item.status != "proved":
        lines += _evidence(item)
    return lines


def _carried(item: Obligation, known: tuple[str, ...]) -> tuple[list[str], tuple[str, ...]]:
    """For which other launches a verdict is shown, unless that was said of the one before."""
    texts = tuple(part.text for part in item.generalises)
    if not texts or texts == known:
        return [f"    {plain('likewise for these sizes')}"] if texts else [], known
    right = {"refuted": "right ", "open": "shown "}.get(item.status, "")
    return [f"    {plain(right + text)}" for text in texts], texts


def _evidence(item: Obligation) -> list[str]:
    """The parts of a verdict, those that say the same in one line."""
    groups: dict[tuple[str, str], list[dict[str, str]]] = {}
    for part in item.evidence:
        groups.setdefault((part.status, part.reason), []).append(part.details)
    lines = []
    for (status, reason), parts in sorted(groups.items(), key=lambda g: _ORDER[g[0][0]]):
        details = ", ".join(f"{key} {value}" for key, value in parts[0].items())
        behind = f" ({details})" if details else ""
        behind += f" and {len(parts) - 1} more of these" if len(parts) > 1 else ""
        lines.append(f"    {status:<8}{plain(reason + behind)}")
    return lines
