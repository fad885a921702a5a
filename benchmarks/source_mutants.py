"""What ptxlint says of faults in correct Triton kernels: `python benchmarks/source_mutants.py`.

Each mutant is run beside its kernel in Triton's interpreter, with extents that no tile divides and
with whole tiles. Those that change results are compiled and checked; `mutants.md` counts what is
said of the property that was broken. The exit status is 1 if that property was proved for some.
Needs Triton and torch, no GPU. The same sources give the same tables.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
import json
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "fixtures"))

import twin_builds
from mutation_cases import CASES, Case, Data
from source_operators import OPERATORS, Mutation, mutations

import ptxlint
from ptxlint.engine.registry import default_registry
from ptxlint.source import SourceText

OUT = Path(__file__).with_name("mutants.md")
CASE_SOURCES = Path(__file__).with_name("mutation_cases.py")
CAPABILITIES = (80, 90, 100)
WARPS = (4, 2, 1)
HALF = {"batched_matmul_bias": "fp16", "attention_tile": "bf16", "linear_attention": "bf16",
        "swiglu_down": "fp16", "matmul_dot_kernel": "fp16", "flash_fwd_kernel": "fp16",
        "dot_sum": "bf16", "log_softmax": "bf16", "rmsnorm_kernel": "fp16"}  # fmt: skip
"""Element types that are compiled where it is not fp32; the interpreter always runs fp32."""

PROPERTY: dict[str, tuple[str, ...]] = {
    "drop load mask": ("MSK202", "MSK203", "MSK204", "MSK205"),
    "drop store mask": ("MSK202", "MSK203", "MSK204", "MSK205"),
    "drop conjunct": ("MSK202", "MSK203", "MSK204", "MSK205"),
    "off by one": ("MSK201", "MSK204"),
    "change fill": ("MSK201",),
    "drop re-mask": ("MSK201", "NUM409"),
    "change re-mask": ("MSK201",),
    "overwrite": ("NUM401",),
    "drop rescale": ("NUM402",),
    "drop stride": ("BND306",),
    "drop eps": ("NUM404", "NUM405", "NUM406"),
}
"""The rules that speak of what an operator breaks."""
AT_ACCESS = ("drop load mask", "drop store mask", "drop conjunct", "change fill")
"""Operators whose property is that of the access they change, by its line."""
TAIL = ("drop load mask", "drop conjunct", "off by one", "change fill", "drop re-mask",
        "change re-mask")  # fmt: skip
"""Operators whose fault must not show where tiles are whole; else they changed the formula."""
HELD = ("change fill", "drop re-mask", "change re-mask", "overwrite", "drop rescale")
"""Operators that are to be refuted in at least four of five."""

OUTCOMES = ("refuted", "by another rule", "open", "silent", "proved")


class Outcome(NamedTuple):
    """One mutant: what it did, and what was said of it."""

    case: Case
    mutation: Mutation
    effect: str
    """`changed`, `same`, `formula`, or why it was not run or compiled."""
    arch: str = ""
    verdict: str = ""
    reasons: tuple[str, ...] = ()


class Said(NamedTuple):
    """What a check said: (rule, line) of errors and warnings, and the verdicts."""

    findings: frozenset[tuple[str, int]]
    verdicts: tuple[tuple[str, str, int, str], ...]
    """Rule, status, line (0 for the whole kernel), reason."""


class Store:
    """Answers that do not depend on ptxlint, kept in a folder if one is given."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder

    def get(self, key: str, make: Callable[[], str]) -> str:
        """What was made for a key before, or what is made now."""
        if self._folder is None:
            return make()
        path = self._folder / hashlib.sha256(key.encode()).hexdigest()
        if not path.exists():
            path.write_text(make(), encoding="utf-8")
        return path.read_text(encoding="utf-8")


class Runner:
    """The interpreter, in a process of its own."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(Path(__file__).with_name("mutation_runner.py"))],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def ask(self, case: int, source: Path | None = None, is_tail: bool = False) -> dict[str, str]:
        """How a mutant's results compare; of the kernel itself without a source.

        Whole tiles are asked for only if they matter: for a fault of the tail if it shows there,
        for all others if they do not show with ragged ends.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        asked: dict[str, Any] = {"case": case, "is_tail": is_tail}
        if source is not None:
            asked["source"] = str(source)
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"the interpreter ended at {CASES[case].name}")
        answer: dict[str, str] = json.loads(line)
        return answer

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)


# Building and checking ------------------------------------------------------------------------
def ptx(case: Case, path: Path, capability: int, warps: int) -> str:
    """A kernel as its case launches it, compiled for one architecture."""
    launch = case.make(Data(), False)
    half = HALF.get(case.kernel, "fp32")
    kinds = {name: _kind(value, half) for name, value in launch.arguments.items()}
    build = launch.constants | {"num_warps": warps}
    function = getattr(twin_builds.load(path), case.kernel)
    return twin_builds.ptx_of(function, kinds, build, capability)


def _kind(value: Any, half: str) -> str:
    if isinstance(value, float):
        return "fp32"
    if isinstance(value, int):
        return "i32"
    kind = str(value.dtype).removeprefix("torch.")
    return {"float32": f"*{half}", "int32": "*i32", "int64": "*i64"}[kind]


def check(text: str) -> Said:
    """All rules, preview ones too."""
    select = ",".join(["ALL", *sorted(default_registry().rules)])
    report = ptxlint.check(SourceText(text, "mutant.ptx"), select=select)
    if report.exit_code == 2:
        raise RuntimeError("the check failed")
    findings = frozenset((f.rule, _line(f.place)) for f in report.findings if f.severity != "note")
    verdicts = [(o.rule, o.status, _line(o.place), o.reason) for o in report.obligations]
    return Said(findings, tuple(sorted(verdicts)))


def _line(place: Any) -> int:
    return place.source.line if place is not None and place.source is not None else 0


def _rules(mutation: Mutation) -> tuple[str, ...]:
    """The rules that speak of what a mutation breaks."""
    if mutation.operator == "off by one":
        return ("MSK204",) * mutation.guards + ("MSK201",) * mutation.selects
    return PROPERTY[mutation.operator]


def verdict(mutation: Mutation, before: Said, after: Said) -> tuple[str, tuple[str, ...]]:
    """What was said of the property that a mutation broke, and the reasons given."""
    rules = _rules(mutation)
    new = {rule for rule, line in after.findings - before.findings}
    if any(rule in rules for rule in new):
        return "refuted", ()
    if new:
        return "by another rule", tuple(sorted(new))
    about = [v for v in after.verdicts if v[0] in rules]
    if mutation.operator == "drop stride":
        about = [v for v in about if any(array in v[3] for array in mutation.arrays)]
    if mutation.operator in AT_ACCESS:
        at_line = [v for v in about if v[2] == mutation.access_line]
        about = at_line or [v for v in about if v[2] == 0]
    if not about:
        return "silent", ()
    reasons = tuple(sorted({v[3] for v in about if v[1] != "proved"}))
    return ("open", reasons) if reasons else ("proved", tuple(sorted({v[3] for v in about})))


# The study ------------------------------------------------------------------------------------
def study(chosen: list[int], scratch: Path, store: Store) -> Iterator[Outcome]:
    """Every mutant of these cases."""
    runner = Runner()
    setting = CASE_SOURCES.read_text(encoding="utf-8")
    for number in chosen:
        case = CASES[number]
        text = case.path.read_text(encoding="utf-8")
        key = f"{setting}\n{case.name}\n{text}"
        found = json.loads(store.get(key, lambda n=number: json.dumps(runner.ask(n))))
        if set(found.values()) != {"same"}:
            raise RuntimeError(f"{case.name} is no sound base: {found}")
        yield from _of_case(number, text, key, scratch, store, runner)
    runner.close()


def _of_case(
    number: int, text: str, key: str, scratch: Path, store: Store, runner: Runner
) -> Iterator[Outcome]:
    """Every mutant of one case."""
    case = CASES[number]
    checked: dict[tuple[int, int], Said] = {}
    for at, mutation in enumerate(mutations(text, case.kernel)):
        path = scratch / f"{case.path.stem}_{case.kernel}_{at}.py"
        path.write_text(mutation.text, encoding="utf-8")
        own = f"{key}\n{mutation.operator}\n{mutation.text}"

        def run(mutation: Mutation = mutation, path: Path = path) -> str:
            return json.dumps(runner.ask(number, path, mutation.operator in TAIL))

        effect = _effect(mutation, json.loads(store.get(own, run)))
        if effect != "changed":
            yield Outcome(case, mutation, effect)
            continue
        target = _target(case, mutation)
        if target not in checked:
            checked[target] = check(_built(store, key, case, case.path, target))
        compiled = _built(store, own, case, path, target)
        if compiled.startswith("not compiled"):
            yield Outcome(case, mutation, compiled)
            continue
        said, reasons = verdict(mutation, checked[target], check(compiled))
        arch = "sm_{}, {} warps".format(*target)
        yield Outcome(case, mutation, effect, arch, said, reasons)


def _built(store: Store, key: str, case: Case, path: Path, target: tuple[int, int]) -> str:
    """The PTX of a kernel or mutant, or why there is none."""

    def build() -> str:
        try:
            return ptx(case, path, *target)
        except Exception as error:
            return f"not compiled: {type(error).__name__}"

    return store.get(f"{key}\n{target}", build)


def _effect(mutation: Mutation, found: dict[str, str]) -> str:
    words = set(found.values())
    strange = sorted(w for w in words if w != "same" and not w.startswith("differs"))
    if strange:
        return "not run: " + strange[0].partition(":")[0]
    if words == {"same"}:
        return "same"
    is_formula = mutation.operator in TAIL and found.get("exact") != "same"
    return "formula" if is_formula else "changed"


def _target(case: Case, mutation: Mutation) -> tuple[int, int]:
    """One of two architectures and numbers of warps that a kernel has, by the operator."""
    digest = hashlib.sha256(case.name.encode()).digest()
    turn = OPERATORS.index(mutation.operator) % 2
    return CAPABILITIES[(digest[0] + turn) % 3], WARPS[(digest[1] + turn) % 3]


# The page -------------------------------------------------------------------------------------
def page(outcomes: list[Outcome]) -> str:
    """The tables."""
    changed = [o for o in outcomes if o.effect == "changed"]
    counts = Counter(o.verdict for o in changed)
    held = [o for o in changed if o.mutation.operator in HELD]
    caught = sum(o.verdict in ("refuted", "by another rule") for o in held)
    parts = [
        "# Faults made in correct Triton kernels",
        "",
        "Written by `python benchmarks/source_mutants.py`. Needs Triton and torch, no GPU.",
        "",
        f"{len(outcomes)} mutants of {len({o.case.name for o in outcomes})} kernels; "
        f"{len(changed)} of them change results when run. Of those: "
        + ", ".join(f"{counts[word]} {word}" for word in OUTCOMES)
        + ". Fills, re-masks, accumulators and rescales: "
        f"{caught} of {len(held)} found ({_share(caught, len(held))}).",
        "",
        *_METHOD,
        "## By operator",
        "",
        *_table("operator", OPERATORS, changed, lambda o: o.mutation.operator),
        "",
        "## By origin of the kernel",
        "",
        *_table("kernels", ("fixtures", "twins", "held out"), changed, lambda o: o.case.group),
        "",
        "The held-out kernels were written for this study, after the rules. Of their fills, "
        "re-masks, accumulators and rescales "
        + _found([o for o in held if o.case.group == "held out"])
        + ".",
        "",
        "## Set apart",
        "",
        *_apart(outcomes),
        "",
        "## What was not found, of fills, re-masks, accumulators and rescales",
        "",
        *_why([o for o in held if o.verdict not in ("refuted", "by another rule")]),
        "",
        *_missed([o for o in held if o.verdict not in ("refuted", "by another rule")]),
        "",
        "## What was not found, of all others",
        "",
        *_missed(
            [
                o
                for o in changed
                if o.mutation.operator not in HELD
                and o.verdict not in ("refuted", "by another rule")
            ]
        ),
        "",
    ]
    return "\n".join(parts)


_METHOD = [
    "A kernel is mutated in its source, one expression at a time. Both versions run in Triton's "
    "interpreter on tensors that lie in larger storages, with padded rows, other strides than 1 "
    "where a kernel takes them, and a row of zeros: once with extents that no tile divides, once "
    "with whole tiles. All of the storages of what is written are compared. A mutant of a mask or "
    "a fill that changes the results of whole tiles too has changed the formula and is set apart. "
    "What is left is compiled, for sm_80, sm_90 or sm_100 and 1, 2 or 4 warps, and checked.",
    "",
    "*Refuted*: an error or a warning that the kernel itself does not have, of a rule for what was "
    "broken; or *by another rule*. *Open*: a verdict says that it is not known. *Silent*: no rule "
    "for it has a verdict here. *Proved* would be wrong. For a fill or a mask that is dropped or "
    "changed the verdicts are those of the access. A bound with one element too many breaks the "
    "guard of accesses (MSK204) or, in `tl.where`, the masking of the tail (MSK201). Verdicts on "
    "strides (BND306) say that the accesses of one array agree, which is broken only where some of "
    "them went by the stride that was dropped and some did not. Where all did, they still agree, "
    "and what is wrong is silent until a launch or a reference has spoken.",
    "",
]


def _share(part: int, whole: int) -> str:
    return f"{100 * part / whole:.0f} %" if whole else "none"


def _found(outcomes: list[Outcome]) -> str:
    caught = sum(o.verdict in ("refuted", "by another rule") for o in outcomes)
    return f"{caught} of {len(outcomes)} are found ({_share(caught, len(outcomes))})"


def _table(head: str, keys: tuple[str, ...], outcomes: list[Outcome], key: Any) -> Iterator[str]:
    yield f"| {head} | changed | {' | '.join(OUTCOMES)} | found |"
    yield "|---" + "|---:" * (len(OUTCOMES) + 2) + "|"
    for name in (*keys, "all"):
        of = [o for o in outcomes if name in ("all", key(o))]
        counts = Counter(o.verdict for o in of)
        caught = counts["refuted"] + counts["by another rule"]
        numbers = " | ".join(str(counts[word]) for word in OUTCOMES)
        yield f"| {name} | {len(of)} | {numbers} | {_share(caught, len(of))} |"


_APART = {
    "same": "the results are the same: the lane is masked later, or only the reads go outside",
    "formula": "whole tiles are different too: the mask or the fill is part of the formula",
}


def _apart(outcomes: list[Outcome]) -> Iterator[str]:
    yield "| operator | mutants | why |"
    yield "|---|---:|---|"
    counts = Counter((o.mutation.operator, o.effect) for o in outcomes if o.effect != "changed")
    for operator in OPERATORS:
        for (name, effect), count in sorted(counts.items()):
            if name == operator:
                yield f"| {operator} | {count} | {_APART.get(effect, effect)} |"


def _why(outcomes: list[Outcome]) -> Iterator[str]:
    """The reasons that verdicts give, counted."""
    counts = Counter(reason for o in outcomes for reason in o.reasons or ("no verdict",))
    yield "| reason | mutants |"
    yield "|---|---:|"
    for reason, count in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        yield f"| {reason} | {count} |"


def _missed(outcomes: list[Outcome]) -> Iterator[str]:
    yield "| kernel | line | operator | change | arch | verdict | reason |"
    yield "|---|---:|---|---|---|---|---|"
    for o in outcomes:
        change = o.mutation.change.replace("|", "\\|")
        if len(change) > 120:
            change = change[:117] + "…`"
        yield (
            f"| {o.case.name} | {o.mutation.line} | {o.mutation.operator} | {change} | {o.arch} | "
            f"{o.verdict} | {'; '.join(o.reasons)} |"
        )


def main() -> int:
    """Run the study, or the cases that match."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", default="", help="cases with this in their name; writes nothing")
    options.add_argument("--log", action="store_true", help="print each mutant")
    options.add_argument("--group", default="", help="fixtures, twins or held out; writes nothing")
    options.add_argument("--cache", type=Path, help="a folder for results of runs and for PTX")
    given = options.parse_args()
    if given.cache is not None:
        given.cache.mkdir(parents=True, exist_ok=True)
    if importlib.util.find_spec("triton") is None or importlib.util.find_spec("torch") is None:
        print("source_mutants.py: needs Triton and torch: make venv", file=sys.stderr)
        return 2
    chosen = [
        number
        for number, case in enumerate(CASES)
        if given.only in case.name and given.group in case.group
    ]
    began = time.monotonic()
    outcomes: list[Outcome] = []
    with tempfile.TemporaryDirectory() as scratch:
        twin_builds.prepare(scratch)
        for outcome in study(chosen, Path(scratch), Store(given.cache)):
            outcomes.append(outcome)
            if given.only or given.group or given.log:
                print(
                    f"{outcome.case.name}:{outcome.mutation.line} {outcome.mutation.operator} "
                    f"{outcome.mutation.change[:80]}: {outcome.effect} {outcome.arch} "
                    f"{outcome.verdict} {'; '.join(outcome.reasons)}"
                )
    text = page(outcomes)
    if given.only or given.group:
        print(text)
    else:
        OUT.write_text(text, encoding="utf-8")
    wrong = [o for o in outcomes if o.verdict == "proved"]
    changed = sum(o.effect == "changed" for o in outcomes)
    seconds = time.monotonic() - began
    print(
        f"{len(outcomes)} mutants, {changed} change results, {len(wrong)} proved wrongly "
        f"({seconds:.0f} s)",
        file=sys.stderr,
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
