"""How many global accesses of captured kernels are proved under their launches.

    python benchmarks/launch_proofs.py BUNDLE [--open N] [--kernel NAME]

An access counts once for each launch. Prints the rates, the time against that of a check without
launches, and the commonest reasons for what is open.
"""

from __future__ import annotations

import argparse
from collections import Counter
from time import process_time

from ptxlint.engine.analyse import find_arch
from ptxlint.engine.options import Options
from ptxlint.engine.run import run
from ptxlint.facts import Facts
from ptxlint.frontends.discovery import Input, InputFault, discover, read
from ptxlint.frontends.ptx import parse
from ptxlint.launch.analysis import LaunchAnalysis
from ptxlint.launch.binding import BindingError, bind


def status_of(outcome: object) -> str:
    """`proved`, `dead`, `refuted` or `open`."""
    judged = outcome.judged  # type: ignore[attr-defined]
    if outcome.witness is not None or outcome.shown:  # type: ignore[attr-defined]
        return "refuted"
    if judged.never == "compiled":
        return "dead"
    if not (judged.is_inside or (judged.never and judged.is_settled)):
        return "open"
    return "proved"


def main() -> None:
    """Print the table."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("bundle")
    options.add_argument("--open", type=int, default=15)
    options.add_argument("--kernel", default="")
    options.add_argument("--without", action="store_true", help="time a check without launches")
    given = options.parse_args()
    counts: Counter[str] = Counter()
    reasons: Counter[tuple[str, str]] = Counter()
    kernels = launches = unbound = 0
    seconds = plain = 0.0
    for item in discover([given.bundle]):
        if not isinstance(item, Input) or given.kernel not in item.path:
            continue
        text = read(item)
        if isinstance(text, InputFault):
            print(text.message)
            continue
        module = parse(text, item.path)
        kernels += 1
        for function in module.kernels():
            facts = Facts(module, function, find_arch(module.arch), item.metadata)
            bound = []
            for launch in item.launches:
                if launch.kernel not in ("", function.name):
                    continue
                try:
                    bound.append(bind(function, launch, {}, item.metadata).launch)
                except BindingError as error:
                    unbound += 1
                    print(f"{item.path}: {error}")
            facts.launches = tuple(bound)
            start = process_time()
            for found in facts.get(LaunchAnalysis):
                launches += 1
                for instr in found.under.unlocated:
                    counts["open"] += 1
                    reasons["not understood", f"{function.name} {instr.index}"] += 1
                for outcome in found.outcomes:
                    status = status_of(outcome)
                    counts[status] += 1
                    counts["misaligned?"] += not outcome.judged.aligned
                    if status in ("open", "refuted"):
                        reasons[f"{status}: {outcome.judged.reason}", function.name] += 1
            seconds += process_time() - start
            facts.forget()
        if given.without:
            start = process_time()
            run([Input(item.path, text, item.metadata)], Options())
            plain += process_time() - start
    judged = counts["proved"] + counts["open"] + counts["refuted"]
    print(f"{kernels} kernels, {launches} launches, {unbound} unbound")
    print(dict(counts), f"proved {100 * counts['proved'] / max(1, judged):.2f} %")
    print(f"{seconds:.1f} s under launches; a check without: {plain:.1f} s")
    for (reason, kernel), count in reasons.most_common(given.open):
        print(f"{count:6} {kernel}: {reason}")


if __name__ == "__main__":
    main()
