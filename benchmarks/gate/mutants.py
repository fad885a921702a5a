"""Whether the gate fails mutants of kernels that nothing was tuned on.

    python benchmarks/gate/mutants.py --runner emulator --sample 1
    python benchmarks/gate/mutants.py --runner cuda --sample 1 2

The mutants are those of the study of faults in sources (`benchmarks/mutants.md`) that change
results there; the kernels have specs in `benchmarks/gate/specs` and none in `fixtures/specs`. Each
mutant is written to a module of its own and goes through the gate as `ptxlint gate` would put it
there, but that failures are not made smaller; so does each kernel as it is, from a copy of its
module. A sample holds a third of the mutants of each operator of mutation, `MOST` at most, no
mutant is in two, and what is in which goes by a digest of its text. Sample 0 is for development.

Writes `mutants-RUNNER-SAMPLE.json`, and `mutants-RUNNER.md` from those beside it. `--changed` asks
the study's interpreter which mutants change results, and writes `changed.json`. The exit status is
1 if a kernel that is right fails.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import json
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from mutation_cases import CASES, Case
from shared_gpus import shared_gpus
from source_operators import OPERATORS, Mutation, mutations

from ptxlint.dynamic.campaign.campaign import Campaign, Settings, Task
from ptxlint.dynamic.campaign.gate import Options
from ptxlint.dynamic.campaign.verdict import Verdict

HERE = Path(__file__).resolve().parent
SPECS = HERE / "specs"
CHANGED = HERE / "changed.json"
REASONS = HERE / "mutants-reasons.json"
SAMPLES = 3
MOST = 6
"""Mutants of one operator of mutation in a sample."""
WORDS = ("fail", "undecided", "pass")


class Mutant(NamedTuple):
    """A mutation of the kernel of a case, and its number among those of the case."""

    case: Case
    mutation: Mutation

    @property
    def name(self) -> str:
        """What tells it from all others."""
        return " ".join(told(self.case, self.mutation))


class Row(NamedTuple):
    """What became of a mutant; of a kernel as it is, `operator` and `change` are empty."""

    kernel: str
    operator: str
    line: int
    change: str
    verdict: str
    kind: str = ""
    """Of the failing run (`ptxlint.dynamic.runners.outcome`); `static` where none was needed."""
    family: str = ""
    reason: str = ""
    cases: int = 0
    launches: int = 0


# Which mutants --------------------------------------------------------------------------------
def told(case: Case, mutation: Mutation) -> tuple[str, ...]:
    """A mutation in words, as `changed.json` has it."""
    place = f"{mutation.line}:{mutation.column}"
    return case.name, mutation.operator, place, mutation.change


def specs(folder: Path = SPECS) -> dict[str, Path]:
    """The spec file of each variable in the spec files of a folder: kernels are called alike."""
    found = {}
    for path in sorted(folder.glob("[!_]*.py")):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                name = node.targets[0].id
                if not name.startswith("_"):
                    found[name] = path
    return found


def cases() -> list[Case]:
    """The study's cases whose kernels have a spec."""
    known = specs()
    return [c for c in CASES if c.group != "twins" and c.kernel in known]


def population(chosen: Iterable[Case]) -> list[Mutant]:
    """All mutants of these cases that change results in the study."""
    changed = {tuple(one) for one in json.loads(CHANGED.read_text(encoding="utf-8"))}
    return [
        Mutant(case, mutation)
        for case in chosen
        for mutation in mutations(case.path.read_text(encoding="utf-8"), case.kernel)
        if told(case, mutation) in changed
    ]


def sample(mutants: Iterable[Mutant], number: int) -> list[Mutant]:
    """One of `SAMPLES` samples."""
    kept = []
    ordered = sorted(mutants, key=lambda m: hashlib.sha256(m.name.encode()).digest())
    for operator in OPERATORS:
        stratum = [m for m in ordered if m.mutation.operator == operator]
        kept += stratum[number::SAMPLES][:MOST]
    return kept


def find_changed() -> list[tuple[str, ...]]:
    """Ask the study's interpreter."""
    from source_mutants import TAIL, Runner, _effect

    found = []
    runner = Runner()
    wanted = {case.name for case in cases()}
    with tempfile.TemporaryDirectory() as scratch:
        for number, case in enumerate(CASES):
            if case.name not in wanted:
                continue
            text = case.path.read_text(encoding="utf-8")
            for at, mutation in enumerate(mutations(text, case.kernel)):
                path = Path(scratch) / f"{case.path.stem}_{case.kernel}_{at}.py"
                path.write_text(mutation.text, encoding="utf-8")
                answer = runner.ask(number, path, mutation.operator in TAIL)
                if _effect(mutation, answer) == "changed":
                    found.append(told(case, mutation))
    runner.close()
    return found


# Through the gate -----------------------------------------------------------------------------
def task(case: Case, text: str, folder: Path, known: Mapping[str, Path]) -> Task:
    """A spec file: that of the case's kernel, with this text in place of the kernel's module."""
    folder.mkdir()
    module = folder / f"{case.path.stem}.py"
    module.write_text(text, encoding="utf-8")
    name = case.kernel.lstrip("_")
    spec = known[name]
    path = folder / "spec.py"
    path.write_text(
        f"import sys\n\nsys.path.insert(0, {str(spec.parent)!r})\n"
        f"import _source\n\n_source.stand_ins[{case.path.stem!r}] = {str(module)!r}\n"
        f"from {spec.stem} import {name}\n",
        encoding="utf-8",
    )
    return Task(str(path), name)


def row(kernel: str, mutation: Mutation | None, verdict: Verdict) -> Row:
    """What the page needs of a verdict."""
    failure = verdict.failures[0] if verdict.failures else None
    shown = failure.shown if failure else None
    said = verdict.problem or verdict.reason or (failure.reason if failure else "")
    return Row(
        kernel,
        mutation.operator if mutation else "",
        mutation.line if mutation else 0,
        mutation.change if mutation else "",
        "problem" if verdict.problem else verdict.verdict,
        shown.kind if shown else "static" if failure else "",
        failure.family if failure else "",
        said[:300],
        verdict.cases,
        verdict.launches,
    )


def judged(
    chosen: Sequence[Mutant],
    as_they_are: Sequence[Case],
    settings: Settings,
    folder: Path = SPECS,
) -> tuple[list[Row], list[Row]]:
    """Verdicts on mutants, and on kernels as they are."""
    began = time.monotonic()

    def progress(done: int, total: int, last: Verdict) -> None:
        print(
            f"{time.monotonic() - began:5.0f} s {done}/{total} {last.name} {last.verdict} "
            f"{last.problem}",
            file=sys.stderr,
            flush=True,
        )

    with tempfile.TemporaryDirectory() as scratch:
        texts = [(m.case, m.mutation.text) for m in chosen]
        texts += [(case, case.path.read_text(encoding="utf-8")) for case in as_they_are]
        known = specs(folder)
        tasks = [task(*one, Path(scratch) / f"m{at}", known) for at, one in enumerate(texts)]
        campaign = Campaign(settings)
        try:
            verdicts = campaign.run(tasks, progress)
        finally:
            campaign.close()
    mutated = [
        row(m.case.name, m.mutation, verdict)
        for m, verdict in zip(chosen, verdicts[: len(chosen)], strict=True)
    ]
    right = [
        row(case.name, None, verdict)
        for case, verdict in zip(as_they_are, verdicts[len(chosen) :], strict=True)
    ]
    return mutated, right


# The page -------------------------------------------------------------------------------------
def share(part: int, whole: int) -> str:
    """A part of a whole, with its percentage."""
    return f"{part} of {whole} ({100 * part / whole:.0f} %)" if whole else "none"


def page(runner: str, results: Sequence[dict[str, Any]], reasons: dict[str, str]) -> str:
    """The tables of all samples that a runner was given."""
    lines = [
        f"# Mutants of kernels that nothing was tuned on ({runner})",
        "",
        f"Written by `python benchmarks/gate/mutants.py --runner {runner} --sample N`; "
        "[which mutants](../../docs/gate.md#faults-of-others) they are.",
    ]
    for result in sorted(results, key=lambda one: one["sample"]):
        lines += ["", *_of_sample(result, reasons)]
    return "\n".join(lines) + "\n"


def _of_sample(result: dict[str, Any], reasons: dict[str, str]) -> list[str]:
    return [f"## Sample {result['sample']}", "", *tables(result, reasons)]


def tables(result: dict[str, Any], reasons: dict[str, str]) -> list[str]:
    """What became of the mutants of a result, by operator of mutation, and those not failed."""
    rows = [Row(**one) for one in result["mutants"]]
    right = [Row(**one) for one in result["right"]]
    counts = Counter(r.verdict for r in right)
    false = counts["fail"] + counts["problem"]
    lines = [
        f"{share(sum(r.verdict == 'fail' for r in rows), len(rows))} mutants fail. Of "
        f"{len(right)} kernels as they are {counts['pass']} pass, {counts['undecided']} are "
        f"undecided, {false} fail.",
        "",
        "| operator of mutation | mutants | fail | undecided | pass | launches |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for operator in (*OPERATORS, "all"):
        own = [r for r in rows if operator in (r.operator, "all")]
        if own:
            numbers = [sum(r.verdict == word for r in own) for word in WORDS]
            cells = (operator, len(own), *numbers, sum(r.launches for r in own))
            lines.append(f"| {' | '.join(map(str, cells))} |")
    kinds = Counter(r.kind for r in rows if r.verdict == "fail")
    lines += ["", "Seen first by: " + ", ".join(f"{k} {n}" for k, n in kinds.most_common()) + "."]
    alarms = [r for r in right if r.verdict != "pass"]
    if alarms:
        lines += ["", "| right, and not passed | verdict | why |", "|---|---|---|"]
        lines += [
            f"| {r.kernel} | {r.verdict} | {reasons.get(r.kernel, r.reason)} |" for r in alarms
        ]
    missed = [r for r in rows if r.verdict != "fail"]
    if missed:
        lines += ["", "| not failed | line | operator | change | verdict | why |"]
        lines += ["|---|---:|---|---|---|---|"]
    for r in missed:
        why = reasons.get(f"{r.kernel}:{r.line} {r.change}", r.reason)
        change = r.change.replace("|", "\\|")
        lines.append(f"| {r.kernel} | {r.line} | {r.operator} | {change} | {r.verdict} | {why} |")
    return lines


def write_page(runner: str, folder: Path) -> str:
    """Write the page from the results that lie in a folder."""
    found = sorted(folder.glob(f"mutants-{runner}-*.json"))
    results = [json.loads(path.read_text(encoding="utf-8")) for path in found]
    reasons = json.loads(REASONS.read_text(encoding="utf-8")) if REASONS.exists() else {}
    text = page(runner, results, reasons)
    (folder / f"mutants-{runner}.md").write_text(text, encoding="utf-8")
    return text


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runner", choices=("emulator", "cuda"), default="emulator")
    parser.add_argument("--sample", type=int, nargs="+", choices=range(SAMPLES), default=[1])
    parser.add_argument("--only", default="", help="mutants and kernels with this in their names")
    parser.add_argument("--mutants-only", action="store_true", help="leave out right kernels")
    parser.add_argument("--jobs", type=int, default=0, help="processes; on CUDA for each GPU")
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--changed", action="store_true", help="write changed.json and end")
    parser.add_argument("--page", action="store_true", help="write the page anew and end")
    given = parser.parse_args()
    if given.changed:
        changed = ",\n".join(json.dumps(one) for one in find_changed())
        CHANGED.write_text(f"[\n{changed}\n]\n", encoding="utf-8")
        return 0
    if given.page:
        print(write_page(given.runner, given.out))
        return 0
    # Compiling takes longer than running: several processes share a GPU.
    shared = shared_gpus(parser, given.runner, given.jobs or 4)
    settings = Settings(Options(given.runner, reducing=0), gpus=shared, jobs=given.jobs)
    given.out.mkdir(parents=True, exist_ok=True)
    chosen = population(cases())
    as_they_are = [c for c in cases() if given.only in c.name and not given.mutants_only]
    is_right = True
    for number in given.sample:
        drawn = [m for m in sample(chosen, number) if given.only in m.name]
        mutated, right = judged(drawn, as_they_are, settings)
        is_right &= all(r.verdict in ("pass", "undecided") for r in right)
        told = {
            "version": 1, "runner": given.runner, "sample": number,
            "mutants": [r._asdict() for r in mutated], "right": [r._asdict() for r in right],
        }  # fmt: skip
        path = given.out / f"mutants-{given.runner}-{number}.json"
        path.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
        as_they_are = []
    print(write_page(given.runner, given.out))
    return 0 if is_right else 1


if __name__ == "__main__":
    raise SystemExit(main())
