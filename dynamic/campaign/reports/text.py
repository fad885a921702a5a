"""Verdicts for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ptxlint.wording import counted

from ..verdict import Verdict
from .json_format import summary
from .words import details, headline


def render_text(verdicts: Sequence[Verdict], *, obligations: bool = False) -> str:
    """A paragraph for each failure, a line for each other verdict, and the sums."""
    lines = [line for verdict in verdicts for line in _told(verdict, obligations)]
    return "\n".join([*lines, _sums(verdicts)]) + "\n"


def _told(verdict: Verdict, obligations: bool) -> Iterator[str]:
    word = "problem" if verdict.problem else verdict.verdict
    marked = " (numpy, no PTX)" if verdict.runs_on == "numpy" else ""
    yield f"{word:<9} {verdict.name or verdict.path}{marked}: {_cost(verdict)}"
    for failure in verdict.failures:
        where = f"{failure.place}: " if failure.place else ""
        yield f"  {where}{headline(failure)}"
        yield from (f"    {line}" for line in details(failure))
    for line in (verdict.problem, verdict.reason):
        if line:
            yield f"  {line}"
    yield from (f"  note: {note}" for note in verdict.notes)
    if obligations:
        for tested in verdict.obligations:
            where = f"{tested.place}: " if tested.place else ""
            by = f" by {', '.join(tested.by)}" if tested.by else ""
            runs = f" in {counted(tested.cases, 'case')}{by}" if tested.cases else ""
            why = f": {tested.why}" if tested.why else ""
            yield (
                f"  {where}{tested.rule or tested.family} left open ({tested.reason}): "
                f"{tested.became}{runs}{why}"
            )


def _cost(verdict: Verdict) -> str:
    parts = [f"{counted(verdict.cases, 'case')}, {counted(verdict.launches, 'launch', 'launches')}"]
    if verdict.saved:
        parts.append(f"{verdict.saved} saved")
    if verdict.reducing:
        parts.append(f"{verdict.reducing} to make it smaller")
    if verdict.proved:
        parts.append(f"{verdict.proved} proved")
    return ", ".join(parts)


def _sums(verdicts: Sequence[Verdict]) -> str:
    sums = summary(verdicts)
    words = ", ".join(
        f"{sums[word]} {word}" for word in ("pass", "fail", "undecided", "problem") if sums[word]
    )
    return (
        f"{counted(sums['operators'], 'operator')}: {words or 'none'}; "
        f"{counted(sums['cases'], 'case')}, {counted(sums['launches'], 'launch', 'launches')}, "
        f"{sums['saved']} saved"
    )


__all__ = ["render_text"]
