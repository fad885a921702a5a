"""Which values find what: the sizes of each family with every way to fill tensors.

    python benchmarks/gate/values.py --runner cuda --out benchmarks/gate

For each operator and dtype, the first sizes and layouts of each family that the operator takes,
filled in each way that there is (`ptxlint.dynamic.cases.values`), held to the reference. The
operators are the 26 of fixtures/specs and, with faults that those do not have, those of
benchmarks/gate/twin_specs. Writes `values-RUNNER.json`: for each operator, dtype and way to fill
how many runs failed and how near the bound errors came, of wrong operators for each family, too;
and `values-RUNNER.md`, its tables (`--page` writes these anew).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ablation import ROOT, SPECS, is_wrong, known_of
from shared_gpus import shared_gpus

from ptxlint.dynamic.campaign.campaign import Campaign, Settings, Task
from ptxlint.dynamic.campaign.gate import Options
from ptxlint.dynamic.cases.case import Case
from ptxlint.dynamic.cases.values import STRATEGIES
from ptxlint.dynamic.families.kit import Family, Known
from ptxlint.dynamic.families.registry import all_families
from ptxlint.dynamic.runners.executor import Place
from ptxlint.dynamic.runners.outcome import Outcome
from ptxlint.dynamic.runners.worker import Worker

TWINS = Path(__file__).resolve().parent / "twin_specs"
SIZES = 2
"""Of each family, operator and dtype."""


class Tally(NamedTuple):
    """Runs, by what became of them; `share` is the largest error, as a share of what is allowed, of
    those that pass."""

    failed: int
    undecided: int
    cases: int
    share: float


def tally(ran: Sequence[Outcome]) -> Tally:
    """What became of runs."""
    return Tally(
        sum(outcome.status == "fail" for outcome in ran),
        sum(outcome.status == "undecided" for outcome in ran),
        len(ran),
        round(max((c.share for o in ran if o.status == "pass" for c in o.compared), default=0), 4),
    )


class Runs:
    """Runs of one operator, each made once: many families have sizes in common."""

    def __init__(self, worker: Worker) -> None:
        self._worker = worker
        self.made: dict[str, Outcome] = {}

    def run(self, case: Case) -> Outcome:
        """What a case comes to."""
        if case.key not in self.made:
            self.made[case.key] = self._worker.run(case)
        return self.made[case.key]


def shapes(worker: Worker, family: type[Family], known: Known, count: int) -> list[Case]:
    """A case of a family for each of its first sizes and layouts, whatever it is filled with."""
    found: dict[str, Case] = {}
    for case in family.cases(known):
        blank = case._replace(values="", checks=("reference",), family="")
        if blank.key not in found and worker.allowed([case.dims])[0]:
            found[blank.key] = blank
        if len(found) == count:
            break
    return list(found.values())


def filled(worker: Worker, count: int) -> dict[str, Any]:
    """What became of one operator, by dtype: by way to fill, and by family if it is wrong."""
    described = worker.describe()
    out = {}
    for dtype in described.dtypes:
        runs = Runs(worker)
        known = known_of(worker, described, dtype)
        wanted = {f.id: shapes(worker, f, known, count) for f in all_families().values()}
        by_family = {
            name: {v: tally([runs.run(c._replace(values=v)) for c in cases]) for v in STRATEGIES}
            for name, cases in wanted.items()
            if cases
        }
        by_values = {
            v: tally([o for o in runs.made.values() if o.case.values == v]) for v in STRATEGIES
        }
        out[dtype] = {"all": by_values}
        if is_wrong(described.name):
            out[dtype] |= by_family
    return {"operator": described.name, "dtypes": out}


class Filling:
    """All families and values on the operators of tasks, as pieces of work."""

    def __init__(self, campaign: Campaign, count: int) -> None:
        self._campaign = campaign
        self._count = count

    def __call__(self, task: Mapping[str, Any], place: Place) -> dict[str, Any]:
        """What became of one operator, with the folder of its spec."""
        told = Task(**task)
        worker = self._campaign.worker(told, place.gpu)
        try:
            out = filled(worker, self._count)
        finally:
            worker.close()
        print(told.name, file=sys.stderr)
        return {"folder": Path(told.path).parent.resolve().relative_to(ROOT).as_posix(), **out}


def page(content: Mapping[str, Any]) -> str:
    """The tables: by way to fill, and by family and way to fill."""
    operators = content["operators"]
    wrong = [one for one in operators if is_wrong(one["operator"])]
    right = [one for one in operators if not is_wrong(one["operator"])]
    lines = [
        f"# Which values find what ({content['runner']})",
        "",
        f"Written by `python benchmarks/gate/values.py --runner {content['runner']} --sizes "
        f"{content['sizes']}`: "
        f"{len(right)} right and {len(wrong)} wrong operators of `fixtures/specs` and "
        f"`benchmarks/gate/twin_specs`, each dtype, the first sizes of each family "
        f"({content['sizes']}), filled in each way. A run counts once, though several families "
        "may have its sizes.",
        "",
        "| values | wrong operators: runs that fail | found at all "
        "| right operators: runs that fail | their largest error, as a share of what is allowed |",
        "|---|---:|---:|---:|---:|",
    ]
    for values in STRATEGIES:
        failed, cases, _ = _summed(wrong, "all", values)
        alarms, ran, share = _summed(right, "all", values)
        found = sum(bool(_summed([one], "all", values)[0]) for one in wrong)
        lines.append(
            f"| `{values}` | {failed}/{cases} | {found}/{len(wrong)} "
            f"| {alarms}/{ran} | {share:.2f} |"
        )
    families = {name: one for name, one in all_families().items() if _summed(wrong, name)[1]}
    lines += [
        "",
        "By family: the percentage of runs of wrong operators that fail with its sizes; bold are "
        "the values that the family has.",
        "",
        f"| family | {' | '.join(STRATEGIES)} |",
        "|---|" + "---:|" * len(STRATEGIES),
    ]
    for name, family in families.items():
        cells = []
        for values in STRATEGIES:
            failed, cases, _ = _summed(wrong, name, values)
            cell = f"{100 * failed / cases:.0f}" if cases else "–"
            cells.append(f"**{cell}**" if values in family.values else cell)
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _summed(
    operators: Sequence[Mapping[str, Any]], family: str, values: str = ""
) -> tuple[int, int, float]:
    """Runs that fail, runs that were decided, and the largest share of what is allowed."""
    found = [
        Tally(*told)
        for one in operators
        for dtype in one["dtypes"].values()
        for way, told in dtype.get(family, {}).items()
        if not values or way == values
    ]
    return (
        sum(one.failed for one in found),
        sum(one.cases - one.undecided for one in found),
        max((one.share for one in found), default=0.0),
    )


def write_page(runner: str, folder: Path) -> str:
    """Write the page from the results that lie in a folder."""
    content = json.loads((folder / f"values-{runner}.json").read_text(encoding="utf-8"))
    text = page(content)
    (folder / f"values-{runner}.md").write_text(text, encoding="utf-8")
    return text


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("specs", nargs="*", default=[str(SPECS), str(TWINS)])
    parser.add_argument("--runner", choices=("emulator", "cuda"), default="emulator")
    parser.add_argument("--sizes", type=int, default=SIZES)
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--only", default="", help="operators whose name has this in it")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent)
    parser.add_argument("--page", action="store_true", help="write the page anew and end")
    given = parser.parse_args()
    if given.page:
        print(write_page(given.runner, given.out))
        return 0
    # Several processes share a GPU here: what takes time are references.
    shared = shared_gpus(parser, given.runner, given.jobs)
    started = time.perf_counter()
    campaign = Campaign(Settings(Options(given.runner), gpus=shared, jobs=given.jobs))
    try:
        tasks = campaign.tasks(given.specs)
        problems = [task for task in tasks if task.problem]
        for task in problems:
            print(f"{task.path}: {task.problem}", file=sys.stderr)
        told = [t._asdict() for t in tasks if not t.problem and given.only in t.name]
        operators = list(campaign.executor.results(Filling(campaign, given.sizes), told))
    finally:
        campaign.close()
    given.out.mkdir(parents=True, exist_ok=True)
    content = {
        "version": 1, "runner": given.runner, "sizes": given.sizes,
        "seconds": round(time.perf_counter() - started, 1),
        "operators": operators,
    }  # fmt: skip
    path = given.out / f"values-{given.runner}.json"
    path.write_text(json.dumps(content) + "\n")
    print(write_page(given.runner, given.out))
    return 2 if problems else 0


if __name__ == "__main__":
    raise SystemExit(main())
