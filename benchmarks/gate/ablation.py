"""Which inputs find what: every strategy on every operator of fixtures/specs, and the gate beside.

    python benchmarks/gate/ablation.py --runner cuda --out benchmarks/gate

Each strategy has eight cases for an operator and dtype. A case of a wrong operator that fails is
found; a case of a right operator that fails is a false alarm. An operator is wrong if its name says
so (`_buggy`): no strategy looks at names. Writes `ablation-RUNNER.json` and `ablation-RUNNER.md`.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from shared_gpus import shared_gpus

from ptxlint.dynamic.campaign.campaign import Campaign, Settings, Task
from ptxlint.dynamic.campaign.gate import Options
from ptxlint.dynamic.campaign.strategies import CASES, STRATEGIES, cases
from ptxlint.dynamic.campaign.verdict import Verdict
from ptxlint.dynamic.families.kit import Known
from ptxlint.dynamic.families.registry import FIRST, all_families
from ptxlint.dynamic.operators.spec import Dims
from ptxlint.dynamic.runners.executor import Place
from ptxlint.dynamic.runners.knowledge import Described
from ptxlint.dynamic.runners.worker import Worker, WorkerError

ROOT = Path(__file__).resolve().parents[2]
SPECS = ROOT / "fixtures" / "specs"


class Counted(NamedTuple):
    """Cases of one operator, dtype and strategy, by what became of them."""

    operator: str
    dtype: str
    strategy: str
    failed: int
    undecided: int
    cases: int
    launches: int


class Judged(NamedTuple):
    """The gate's verdict on one operator, and what it cost."""

    name: str
    verdict: str
    runs_on: str
    is_proved: bool
    launches: int
    reducing: int


def is_wrong(operator: str) -> bool:
    """True for an operator that has a fault."""
    return operator.endswith("_buggy")


def known_of(worker: Worker, described: Described, dtype: str) -> Known:
    """What cases are made from: an operator that has run once, and what was captured of it."""
    blank = Known(described, (), dtype)
    minimum = all_families()[FIRST].cases(blank)
    worker.run(next(case for case in minimum if worker.allowed([case.dims])[0]))
    try:
        return blank._replace(kernels=worker.check())
    except WorkerError:
        return blank


def counted(worker: Worker, strategies: Sequence[str], count: int) -> Iterator[Counted]:
    """All strategies on one operator."""
    described = worker.describe()

    def takes(dims: Dims) -> bool:
        return worker.allowed([dims])[0]

    # Before any strategy runs: what is captured of others' cases is not for the next dtype to know.
    known = {dtype: known_of(worker, described, dtype) for dtype in described.dtypes}
    for dtype in described.dtypes:
        kernels = known[dtype].kernels
        for strategy in strategies:
            words: Counter[str] = Counter()
            launches = 0
            for case in cases(strategy, described, kernels, dtype, count=count, takes=takes):
                outcome = worker.run(case)
                words[outcome.status] += 1
                launches += outcome.launches
            yield Counted(
                described.name, dtype, strategy, words["fail"], words["undecided"], words.total(),
                launches,
            )  # fmt: skip


class Counting:
    """All strategies on the operators of tasks, as pieces of work."""

    def __init__(self, campaign: Campaign, count: int) -> None:
        self._campaign = campaign
        self._count = count

    def __call__(self, task: Mapping[str, Any], place: Place) -> dict[str, Any]:
        """The rows of one operator."""
        worker = self._campaign.worker(Task(**task), place.gpu)
        try:
            return {"rows": list(counted(worker, list(STRATEGIES), self._count))}
        finally:
            worker.close()


def judged(verdict: Verdict) -> Judged:
    """What the tables need of a verdict."""
    return Judged(
        verdict.name, verdict.verdict, verdict.runs_on, not verdict.obligations,
        verdict.launches, verdict.reducing,
    )  # fmt: skip


def share(part: int, whole: int) -> str:
    """A part of a whole, with its percentage."""
    return f"{part}/{whole} ({100 * part / whole:.0f} %)" if whole else "–"


def page(rows: Sequence[Counted], verdicts: Sequence[Judged], runner: str, count: int) -> str:
    """The tables."""
    lines = [
        f"# Which inputs find what ({runner})",
        "",
        f"Written by `python benchmarks/gate/ablation.py --runner {runner}`: {count} cases for "
        "each strategy, operator and dtype of `fixtures/specs`.",
        "",
        "| strategy | wrong operators: cases that fail | right operators: cases that fail "
        "| undecided | launches |",
        "|---|---:|---:|---:|---:|",
    ]
    for strategy in STRATEGIES:
        own = [row for row in rows if row.strategy == strategy]
        wrong = [row for row in own if is_wrong(row.operator)]
        right = [row for row in own if not is_wrong(row.operator)]
        cells = (
            strategy,
            share(sum(r.failed for r in wrong), sum(r.cases for r in wrong)),
            share(sum(r.failed for r in right), sum(r.cases for r in right)),
            str(sum(r.undecided for r in own)),
            str(sum(r.launches for r in own)),
        )
        lines.append(f"| {' | '.join(cells)} |")
    lines += ["", "Cases that fail, of each wrong operator, all dtypes together:", ""]
    names = sorted({row.operator for row in rows if is_wrong(row.operator)})
    lines += [f"| operator | {' | '.join(STRATEGIES)} |", "|---|" + "---:|" * len(STRATEGIES)]
    for name in names:
        cells = []
        for strategy in STRATEGIES:
            own = [r for r in rows if (r.operator, r.strategy) == (name, strategy)]
            cells.append(f"{sum(r.failed for r in own)}/{sum(r.cases for r in own)}")
        lines.append(f"| {name} | {' | '.join(cells)} |")
    if verdicts:
        lines += ["", *economy(rows, verdicts)]
    return "\n".join(lines) + "\n"


def economy(rows: Sequence[Counted], verdicts: Sequence[Judged]) -> list[str]:
    """The gate beside all strategies together."""
    wrong = [verdict for verdict in verdicts if is_wrong(verdict.name)]
    right = [verdict for verdict in verdicts if not is_wrong(verdict.name)]
    every = sum(row.launches for row in rows)
    launches = sum(verdict.launches for verdict in verdicts)
    proved = [v for v in right if v.runs_on == "triton" and v.is_proved]
    failed, passed = (
        sum(verdict.verdict == word for verdict in group)
        for word, group in (("fail", wrong), ("pass", right))
    )
    return [
        "## The gate",
        "",
        f"- wrong operators that fail: {share(failed, len(wrong))}; right ones that pass: "
        f"{share(passed, len(right))}",
        f"- launches for all verdicts: {launches}, {share(launches, every)} of those of all "
        "strategies",
        "- most launches for a right operator of which everything was proved: "
        f"{max((v.launches for v in proved), default=0)}",
        f"- launches that made failures smaller, not counted above: cases "
        f"{sum(verdict.reducing for verdict in verdicts)}",
    ]


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("specs", nargs="*", default=[str(SPECS)])
    parser.add_argument("--runner", choices=("emulator", "cuda"), default="emulator")
    parser.add_argument("--cases", type=int, default=CASES)
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    given = parser.parse_args()
    # Several processes share a GPU here: what takes time are references.
    shared = shared_gpus(parser, given.runner, given.jobs)
    started = time.perf_counter()
    campaign = Campaign(Settings(Options(given.runner), gpus=shared, jobs=given.jobs))
    try:
        tasks = campaign.tasks(given.specs)
        problems = [task for task in tasks if task.problem]
        for task in problems:
            print(f"{task.path}: {task.problem}", file=sys.stderr)
        verdicts = [judged(v) for v in campaign.run([t for t in tasks if not t.problem])]
        told = [task._asdict() for task in tasks if not task.problem]
        parts = campaign.executor.results(Counting(campaign, given.cases), told)
        rows = [row for part in parts for row in part["rows"]]
    finally:
        campaign.close()
    seconds = time.perf_counter() - started
    given.out.mkdir(parents=True, exist_ok=True)
    content = {
        "version": 1, "runner": given.runner, "seconds": round(seconds, 1),
        "rows": [row._asdict() for row in rows],
        "verdicts": [verdict._asdict() for verdict in verdicts],
    }  # fmt: skip
    (given.out / f"ablation-{given.runner}.json").write_text(json.dumps(content, indent=1) + "\n")
    text = page(rows, verdicts, given.runner, given.cases)
    (given.out / f"ablation-{given.runner}.md").write_text(text)
    print(text)
    print(f"{seconds:.0f} s", file=sys.stderr)
    return 2 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
