"""What one run is asked to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from ptxlint.launches import Launch


class Options(NamedTuple):
    """Settings of a run; plain data, so that worker processes get them as they are.

    `select` and `ignore` hold selectors (identifiers, prefixes, names), `arch` targets such as
    `sm_90` that files are filtered by. `per_path_ignores` pairs a glob with selectors; it is
    matched against the PTX path and the Python path, relative to `root`. `parser` is `memo` or
    `lark`.
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    arch: tuple[str, ...] = ()
    per_path_ignores: tuple[tuple[str, tuple[str, ...]], ...] = ()
    root: str = ""
    parser: str = "memo"
    statistics: bool = False
    evidence: bool = True
    """Keep what verdicts rest on; putting it into words takes time."""
    budget: float = 1.0
    """What the work budgets of the analyses are multiplied with."""
    measures: bool = False
    """Note each kernel's hashes and numbers, for a baseline."""
    exact: bool = False
    """Run an assembler for registers and spills; it costs a compilation."""
    ptxas: str = ""
    """The assembler to run, "" for the one that fits."""
    launches: tuple[Launch, ...] = ()
    """Launches of kernels in whichever of the files they are."""
