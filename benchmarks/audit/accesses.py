"""How many global accesses of captured kernels are proved under their launches.

    python benchmarks/audit/accesses.py BUNDLE [--open N] [--kernel NAME]

An access counts once for each launch that differs. Prints the counts and the commonest reasons for
what is open.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

from ptxlint.engine.analyse import find_arch
from ptxlint.facts import Facts
from ptxlint.frontends.discovery import Input, InputFault, discover, read
from ptxlint.frontends.ptx import parse
from ptxlint.ir.function import Function
from ptxlint.launch.analysis import LaunchAnalysis, LaunchOutcomes, Outcome
from ptxlint.launch.binding import BindingError, bind


@dataclass
class Accesses:
    """Accesses by what is known of them, counted once for each launch.

    `statuses` has `proved` (inside of the storage, without wrap), `dead` (the mask is constant
    false), `refuted` and `open`; `reasons` those that are not proved, by status, kernel and reason;
    `operators` the launches of each kernel's name; `unbound` what is said of launches that do not
    fit their kernel.
    """

    statuses: Counter[str] = field(default_factory=Counter)
    reasons: Counter[tuple[str, str, str]] = field(default_factory=Counter)
    operators: Counter[str] = field(default_factory=Counter)
    kernels: int = 0
    launches: int = 0
    times: int = 0
    unbound: list[str] = field(default_factory=list)


def measure(bundle: str, only: str = "") -> Accesses:
    """All kernels of a bundle, or those with a word in their path."""
    made = Accesses()
    for item in discover([bundle]):
        if not isinstance(item, Input) or only not in item.path:
            continue
        text = read(item)
        if isinstance(text, InputFault):
            made.unbound.append(text.message)
            continue
        module = parse(text, item.path)
        for function in module.kernels():
            made.kernels += 1
            facts = Facts(module, function, find_arch(module.arch), item.metadata)
            facts.launches = tuple(_bound(item, function, made))
            for found in facts.get(LaunchAnalysis):
                _count(found, function.name, made)
            facts.forget()
    return made


def _bound(item: Input, function: Function, made: Accesses) -> Iterator[object]:
    for launch in item.launches:
        if launch.kernel in ("", function.name):
            made.times += launch.times
            try:
                yield bind(function, launch, {}, item.metadata).launch
            except BindingError as error:
                made.unbound.append(f"{item.path}: {error}")


def _count(found: LaunchOutcomes, kernel: str, made: Accesses) -> None:
    made.launches += 1
    made.operators[kernel] += 1
    for instr in found.under.unlocated:
        made.statuses["open"] += 1
        made.reasons["open", kernel, f"`{instr.opcode}`: the address is not understood"] += 1
    for outcome in found.outcomes:
        status = status_of(outcome)
        made.statuses[status] += 1
        if status in ("open", "refuted"):
            made.reasons[status, kernel, outcome.judged.reason] += 1


def status_of(outcome: Outcome) -> str:
    """`proved`, `dead`, `refuted` or `open`."""
    judged = outcome.judged
    if outcome.witness is not None or outcome.shown:
        return "refuted"
    if judged.never == "compiled":
        return "dead"
    if not (judged.is_inside or (judged.never and judged.is_settled)):
        return "open"
    return "proved"


def rate(statuses: Counter[str] | dict[str, int]) -> float:
    """The share of proved accesses in percent, of those that are not dead."""
    counted = {s: statuses.get(s, 0) for s in ("proved", "refuted", "open")}
    return 100 * counted["proved"] / max(1, sum(counted.values()))


def main() -> None:
    """Print the counts of one bundle."""
    options = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    options.add_argument("bundle")
    options.add_argument("--open", type=int, default=15)
    options.add_argument("--kernel", default="")
    given = options.parse_args()
    made = measure(given.bundle, given.kernel)
    print(f"{made.kernels} kernels, {made.launches} launches", *made.unbound, sep="\n")
    print(f"{dict(made.statuses)}: proved {rate(made.statuses):.2f} %")
    for (status, kernel, reason), count in made.reasons.most_common(given.open):
        print(f"{count:6} {status} {kernel}: {reason}")


if __name__ == "__main__":
    main()
