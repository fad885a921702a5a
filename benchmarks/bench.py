"""`make bench`: speed and memory as ratios measured in one run, written to results.md and .svg.

Nothing here is compared with an absolute time: machines differ, and this one is busy now and then.
Each ratio sets two things against each other that were measured in turn. `--quick` takes few
files and small sizes; it shows that the benchmark runs and is no measurement. `--only` measures
the checks, the comparison of builds or the emulator alone and leaves the rest of the page as it
is.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import json
import math
import os
import platform
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from collections.abc import Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "emulator"))
sys.path.insert(0, str(Path(__file__).parent / "comparing"))

import hostile
import ratio
import speed
import synthetic

from ptxlint.frontends.ptx import memo, parse, reference

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
Row = tuple[str, str, str, str]
"""What was measured, the figure, the target, whether it was met."""


def read(path: Path) -> str:
    with path.open(encoding="utf-8", newline="") as file:
        return file.read()


def verdict(met: bool) -> str:
    return "met" if met else "missed"


def spread(values: list[float], form: str = "{:.1f}") -> str:
    """Median with the least and the greatest."""
    low, mid, high = min(values), median(values), max(values)
    return f"{form.format(mid)} ({form.format(low)} to {form.format(high)})"


# Parsing ----------------------------------------------------------------------------------------


def parser_rows(paths: list[Path], rounds: int) -> list[Row]:
    """Plain Lark against the memo parser, cold (nothing known) and warm."""
    texts = [(path.name, read(path)) for path in paths]
    lines = sum(text.count("\n") for _, text in texts)
    reference.parse(".version 8.0", "item")

    def rate(parser: str) -> float:
        gc.collect()
        start = process_time()
        for name, text in texts:
            parse(text, name, parser)
        return lines / (process_time() - start)

    rates: dict[str, list[float]] = {"lark": [], "cold": [], "warm": []}
    for _ in range(rounds):
        rates["lark"].append(rate("lark"))
        memo.reset_memo(shipped=False)
        rates["cold"].append(rate("memo"))
        rates["warm"].append(rate("memo"))
    memo.reset_memo()
    cold = [c / lark for c, lark in zip(rates["cold"], rates["lark"], strict=True)]
    warm = [w / lark for w, lark in zip(rates["warm"], rates["lark"], strict=True)]
    plain = [r / 1000 for r in rates["lark"]]
    return [
        (
            "plain Lark, thousand lines a second",
            spread(plain),
            ">= 15",
            verdict(median(plain) >= 15),
        ),
        ("memo parser, cold, times plain Lark", spread(cold), ">= 7", verdict(median(cold) >= 7)),
        ("memo parser, warm, times plain Lark", spread(warm), ">= 10", verdict(median(warm) >= 10)),
    ]


# Against the assembler --------------------------------------------------------------------------


def assembler_for(text: str) -> list[str] | None:
    """The command that assembles a text, without its file; None if there is no ptxas."""
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        return None
    folder = Path(spec.origin).parent / "backends" / "nvidia" / "bin"
    version = re.search(r"\.version\s+(\d+)", text)
    target = re.search(r"\.target\s+(\w+)", text)
    assert version is not None
    assert target is not None
    name = "ptxas-blackwell" if int(version[1]) >= 9 else "ptxas"
    return [str(folder / name), "-arch", target[1], "-o", os.devnull]


FOUNDATION = "RES,SYN,NUM407,NUM408"
"""The rules on resources, synchronisation and types, which follow no values."""


_WORKER = """
import hashlib, re, sys
from time import perf_counter
import ptxlint
for line in sys.stdin:
    select, path = line.rstrip("\\n").split("\\t")
    start = perf_counter()
    # As the command does for text output, which says nothing of evidence.
    report = ptxlint.check(path, select=select or (), evidence=False)
    seconds = perf_counter() - start
    answer = re.sub(r'"seconds": [^,]*,', "", report.to_json())
    print(seconds, hashlib.sha256(answer.encode()).hexdigest(), flush=True)
"""


class Worker:
    """A process that checks files with the ptxlint of one interpreter."""

    def __init__(self, python: Path) -> None:
        self._process = subprocess.Popen(
            [str(python), "-P", "-c", _WORKER],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def check(self, path: Path, select: str) -> tuple[float, str]:
        """The time that the check of a file takes, and a digest of what it says."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{select}\t{path}\n")
        self._process.stdin.flush()
        seconds, digest = self._process.stdout.readline().split()
        return float(seconds), digest

    def end(self) -> None:
        """End the process."""
        self._process.communicate()


def check_rows(
    paths: list[Path], builds: dict[str, Path] | None = None
) -> tuple[list[Row], list[str]]:
    """`check` in one process of each build against ptxas run once for each file.

    `builds` gives the interpreter that has a build of ptxlint, by what the build is called; this
    interpreter's if there are none.
    """
    builds = builds or {PURE: Path(sys.executable)}
    commands = {path: assembler_for(read(path)) for path in paths}
    if None in commands.values():
        return [], ["ptxas is not at hand: install ptxlint[triton]"]
    kinds = {"foundation rules": FOUNDATION, "all rules": ""}
    workers = {name: Worker(python) for name, python in builds.items()}
    assembled: list[float] = []
    taken: dict[tuple[str, str], list[float]] = {(b, k): [] for b in builds for k in kinds}
    for worker in workers.values():
        worker.check(paths[0], "")
    same = 0
    for path in paths:
        command = commands[path]
        assert command is not None
        start = perf_counter()
        subprocess.run([*command, str(path)], check=True, capture_output=True)
        assembled.append(perf_counter() - start)
        said = set()
        for (build, kind), times in taken.items():
            seconds, digest = workers[build].check(path, kinds[kind])
            times.append(seconds)
            said.add((kind, digest))
        same += len(said) == len(kinds)
    for worker in workers.values():
        worker.end()
    rows = []
    for (build, kind), times in taken.items():
        ratio, target = sum(times) / sum(assembled), 0.4 if kind != "all rules" else 0.8
        what = f"`check`, {build}, {kind}, times ptxas"
        rows.append((what, f"{ratio:.2f}", f"<= {target}", verdict(ratio <= target)))
    if len(builds) > 1:
        what = "`check`, files of which all builds say the same"
        rows.append((what, str(same), str(len(paths)), verdict(same == len(paths))))
    details = []
    for build in builds:
        ratios = [a / b for a, b in zip(taken[build, "all rules"], assembled, strict=True)]
        worst = sorted(zip(ratios, paths, strict=True), reverse=True)[:6]
        details += ["", f"Slowest against ptxas, {build}:", "", "| file | ratio |", "|---|---:|"]
        details += [f"| {path.parent.name}/{path.stem} | {ratio:.2f} |" for ratio, path in worst]
    return rows, details


def stage_table(paths: list[Path]) -> list[str]:
    """Share of each analysis and rule in the time of `check`."""
    import ptxlint

    seconds: dict[str, float] = {}
    for path in paths:
        report = ptxlint.check(path, statistics=True, evidence=False)
        for stage, spent in report.timings.items():
            seconds[stage] = seconds.get(stage, 0.0) + spent
    total = sum(seconds.values()) or 1.0
    rows = sorted(seconds.items(), key=lambda item: -item[1])
    return ["| stage | share |", "|---|---:|"] + [
        f"| {stage} | {100 * spent / total:.1f} % |"
        for stage, spent in rows
        if spent / total > 0.003
    ]


# From the shell ---------------------------------------------------------------------------------


PURE = "pure Python"
COMPILED = "compiled"


def installed(folder: Path, build: str = PURE) -> Path:
    """A wheel of this tree in an environment of its own; returns its folder of commands.

    The dependencies are those of the running interpreter, through links.
    """
    wheels = folder / "wheels"
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--no-build-isolation",
         "-w", str(wheels), str(ROOT)],
        check=True,
        env=os.environ | {"PTXLINT_COMPILE": str(int(build == COMPILED))},
    )  # fmt: skip
    home = folder / "env"
    venv.create(home, with_pip=False)
    python = home / "bin" / "python"
    site = next((home / "lib").glob("python3*")) / "site-packages"
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--target", str(site),
         *map(str, wheels.glob("*.whl"))],
        check=True,
    )  # fmt: skip
    purelib = Path(sysconfig.get_path("purelib"))
    for needed in ("click", "lark"):
        os.symlink(purelib / needed, site / needed)
    subprocess.run([str(python), "-m", "compileall", "-q", str(site)], check=False)
    return home / "bin"


def compiled(folder: Path) -> tuple[Path | None, str]:
    """The commands of a compiled build in an environment of its own, or why there is none."""
    compiler = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")[0]
    if shutil.which(compiler) is None:
        return None, "no C compiler"
    if importlib.util.find_spec("mypyc") is None:
        return None, "no mypyc"
    return installed(folder, COMPILED), ""


def shell_rows(builds: dict[str, Path], rounds: int) -> list[Row]:
    """One file of about 500 lines from the shell against `python -c pass`.

    `builds` gives the folder of commands of each build.
    """
    path = min(
        (ROOT / "fixtures" / "ptx" / "sm_90").glob("*.ptx"),
        key=lambda p: abs(read(p).count("\n") - 500),
    )
    lines = read(path).count("\n")
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder) / "home"
        home.mkdir()
        home.chmod(0o555)
        environment = {
            "HOME": str(home),
            "PATH": os.environ["PATH"],
            "PYTHONDONTWRITEBYTECODE": "1",
        }
        for build, commands in builds.items():
            python = str(commands / "python")
            nothing, ours = [python, "-c", "pass"], [python, "-m", "ptxlint", "check", str(path)]
            ratios = []
            for _ in range(rounds):
                taken = []
                for command in (nothing, ours):
                    start = perf_counter()
                    subprocess.run(
                        command, env=environment, cwd=folder, capture_output=True, check=False
                    )
                    taken.append(perf_counter() - start)
                ratios.append(taken[1] / taken[0])
            name = f"one file of {lines} lines from the shell, {build}, times `python -c pass`"
            rows.append((name, spread(ratios), "<= 15", verdict(median(ratios) <= 15)))
    return rows


def build_rows(paths: list[Path], quick: bool) -> tuple[list[Row], list[str]]:
    """What is measured of both builds of this tree, pure Python and compiled, side by side."""
    if quick:
        return check_rows(paths)
    with tempfile.TemporaryDirectory() as folder:
        builds = {PURE: installed(Path(folder, "pure"))}
        commands, reason = compiled(Path(folder, "compiled"))
        if commands is not None:
            builds[COMPILED] = commands
        rows, details = check_rows(paths, {b: path / "python" for b, path in builds.items()})
        if commands is None:
            rows.append((f"`check`, {COMPILED}, all rules, times ptxas", reason, "<= 0.8", ""))
        return rows + shell_rows(builds, 21), details


# Growth -----------------------------------------------------------------------------------------

_CHILD = """
import json, resource, sys
from time import process_time
import ptxlint
start = process_time()
report = ptxlint.check(sys.argv[1], select=sys.argv[2])
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
try:
    # ru_maxrss counts what the parent held before exec; the kernel's own mark does not.
    with open("/proc/self/status") as status:
        peak = next(int(l.split()[1]) / 1024 for l in status if l.startswith("VmHWM:"))
except (OSError, StopIteration):
    pass
print(json.dumps([process_time() - start, peak, report.summary.kernels]))
"""


def measure(text: str, folder: Path) -> tuple[float, float]:
    """Seconds and peak MB of checking a text in a process of its own."""
    path = folder / "grown.ptx"
    path.write_text(text, encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(path), FOUNDATION],
        check=True,
        capture_output=True,
        text=True,
    )
    seconds, peak, _ = json.loads(done.stdout)
    return seconds, peak


def exponent(points: list[tuple[float, float]]) -> float:
    """Slope of the least-squares line through the logarithms."""
    xs, ys = [math.log(x) for x, _ in points], [math.log(max(y, 1e-6)) for _, y in points]
    mx, my = sum(xs) / len(xs), sum(ys) / len(ys)
    return sum((x - mx) * (y - my) for x, y in zip(xs, ys, strict=True)) / sum(
        (x - mx) ** 2 for x in xs
    )


Series = list[tuple[int, float, float]]
"""Size, seconds, MB."""


def grow(name: str, sizes: list[int], make: Callable[[int], str]) -> tuple[list[Row], Series]:
    """Time and memory over sizes, with the exponents fitted to them."""
    series: Series = []
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            text = make(size)
            seconds, peak = measure(text, Path(folder))
            series.append((text.count("\n"), seconds, peak))
    time_slope = exponent([(size, seconds) for size, seconds, _ in series])
    # The largest sizes, where what is measured is more than the interpreter and its modules.
    base = measure_empty()
    grown = [(size, peak - base) for size, _, peak in series if peak > 2 * base] or [
        (size, peak) for size, _, peak in series
    ]
    memory_slope = exponent(grown) if len(grown) > 1 else 0.0
    rows = [
        (
            f"{name}: time grows with exponent",
            f"{time_slope:.2f}",
            "<= 1.2",
            verdict(time_slope <= 1.2),
        ),
        (
            f"{name}: memory grows with exponent",
            f"{memory_slope:.2f}",
            "<= 1.2",
            verdict(memory_slope <= 1.2),
        ),
    ]
    last = series[-1]
    rows.append(
        (
            f"{name}: {last[0]:,} lines, seconds and MB",
            f"{last[1]:.1f} s, {last[2]:.0f} MB",
            "<= 1536 MB",
            verdict(last[2] <= 1536),
        )
    )
    return rows, series


STAGE_SIZES = [1_000, 2_000, 4_000, 8_000]
LEAST_SECONDS = 0.01
"""Below this a time says little about growth."""
UNROLLED = (
    "softmax_kernel", "layer_norm_bwd_kernel", "flash_fwd_kernel", "flash_bwd_dkdv_kernel",
    "flash_bwd_dq_kernel", "moe_gemm_kernel", "decay_scan_kernel", "int4_gemm_kernel",
)  # fmt: skip


def growing() -> dict[str, Callable[[int], str]]:
    """Functions by name that make one kernel of about so many instructions."""
    makers: dict[str, Callable[[int], str]] = {}
    for name in UNROLLED:
        once = synthetic.repeated(name, 1).count(";\n")

        def repeat(size: int, name: str = name, once: int = once) -> str:
            return synthetic.repeated(name, max(1, size // once))

        makers[f"{name.removesuffix('_kernel')}, unrolled"] = repeat
    makers["softmax, wide"] = lambda size: synthetic.wide_softmax(size // 11)
    return makers | {f"hostile: {n.replace('_', ' ')}": m for n, m in hostile.KERNELS.items()}


def stage_times(text: str, folder: Path, rounds: int) -> tuple[int, dict[str, float]]:
    """Instructions, and the least seconds of each analysis and rule over some rounds."""
    import ptxlint

    path = folder / "grown.ptx"
    path.write_text(text, encoding="utf-8")
    least: dict[str, float] = {}
    count = 0
    for _ in range(rounds):
        report = ptxlint.check(path, select="ALL", statistics=True, evidence=False)
        count = sum(kernel.instructions for kernel in report.kernels)
        for stage, seconds in report.timings.items():
            least[stage] = min(seconds, least.get(stage, seconds))
    return count, least


def growth_of_stages(sizes: list[int], rounds: int) -> tuple[list[Row], list[str]]:
    """How each analysis and rule grows on kernels that are unrolled or hostile."""
    times: dict[str, dict[str, list[tuple[float, float]]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        for name, make in growing().items():
            for size in sizes:
                count, found = stage_times(make(size), Path(folder), rounds)
                for stage, seconds in found.items():
                    times.setdefault(stage, {}).setdefault(name, []).append((count, seconds))
    lines, worst = [], (0.0, "", "")
    for stage, kernels in times.items():
        fitted = []
        for name, points in kernels.items():
            large = [p for p in points if p[1] >= LEAST_SECONDS]
            if len(large) >= 3:
                fitted.append((exponent(large), name))
        slowest = max(points[-1][1] / points[-1][0] for points in kernels.values())
        slope, name = max(fitted, default=(0.0, ""))
        shown = f"{slope:.2f}, {name}" if name else f"under {LEAST_SECONDS * 1000:.0f} ms"
        lines.append((slowest, f"| {stage} | {slowest * 1e6:.1f} | {shown} |"))
        worst = max(worst, (slope, stage, name))
    lines.sort(key=lambda line: -line[0])
    target = 1.2
    row = (
        f"steepest of all analyses and rules ({worst[1]}; {worst[2]}): exponent",
        f"{worst[0]:.2f}",
        f"<= {target}",
        verdict(worst[0] <= target),
    )
    head = [
        f"Growth of each analysis and rule over kernels of {sizes[0]:,} to {sizes[-1]:,}"
        " instructions, unrolled and hostile: µs an instruction where it is slowest, and the"
        " steepest exponent:",
        "",
        "| stage | µs | exponent |",
        "|---|---:|---|",
    ]
    return [row], head + [line for _, line in lines]


def largest_kernels(paths: list[Path], count: int) -> list[str]:
    """The largest kernels at hand, and what they spend most of their time on."""
    import ptxlint

    found = []
    for path in sorted(paths, key=lambda p: -p.stat().st_size)[:count]:
        start = process_time()
        report = ptxlint.check(path, select="ALL", statistics=True, evidence=False)
        seconds = process_time() - start
        slow = sorted(report.timings.items(), key=lambda item: -item[1])[:3]
        instructions = sum(kernel.instructions for kernel in report.kernels)
        spent = ", ".join(f"{stage} {t:.2f}" for stage, t in slow)
        found.append(
            f"| {path.parent.name}/{path.stem} | {report.summary.lines:,} | {instructions:,} "
            f"| {seconds:.2f} | {spent} |"
        )
    return ["| kernel | lines | instructions | seconds | most of it |", "|---|---:|---:|---:|---|",
            *found]  # fmt: skip


def measure_empty() -> float:
    """Peak MB of checking next to nothing."""
    with tempfile.TemporaryDirectory() as folder:
        return measure(".version 8.0\n.target sm_80\n.entry k() { ret; }\n", Path(folder))[1] - 1


def plot(series: dict[str, Series], path: Path) -> None:
    """Lines against seconds and MB, both axes logarithmic."""
    import matplotlib

    matplotlib.use("Agg")
    matplotlib.rcParams["svg.hashsalt"] = "ptxlint"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(10, 4))
    for name, points in series.items():
        sizes = [p[0] for p in points]
        axes[0].loglog(sizes, [p[1] for p in points], marker="o", label=name)
        axes[1].loglog(sizes, [p[2] for p in points], marker="o", label=name)
    for axis, label in zip(axes, ("seconds", "peak MB"), strict=True):
        axis.set_xlabel("lines")
        axis.set_ylabel(label)
        axis.grid(True, which="both", alpha=0.3)
        axis.legend()
    figure.tight_layout()
    figure.savefig(path, metadata={"Date": None})


# The whole --------------------------------------------------------------------------------------


def report(rows: list[Row], details: list[str], series: dict[str, Series]) -> str:
    """The page as Markdown."""
    cpus = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    out = [
        "# Speed and memory",
        "",
        "Written by `make bench`. Median, with least and greatest in brackets.",
        f"{platform.machine()}, {cpus} CPUs, Python {platform.python_version()}.",
        "",
        "| what | figure | target | |",
        "|---|---:|---:|---|",
        *(f"| {a} | {b} | {c} | {d} |" for a, b, c, d in rows),
        "",
        "![lines against seconds and MB](results.svg)",
        "",
        *details,
        "",
        "| growth | lines | seconds | MB |",
        "|---|---:|---:|---:|",
    ]
    for name, points in series.items():
        out += [f"| {name} | {p[0]:,} | {p[1]:.2f} | {p[2]:.0f} |" for p in points]
    return "\n".join(out) + "\n"


def main(arguments: list[str] | None = None) -> int:
    """Measure everything and write results.md and results.svg."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--quick", action="store_true", help="few files, small sizes")
    options.add_argument("--out", type=Path, default=HERE, help="folder to write to")
    parts = ("checks", "comparing", "emulator")
    options.add_argument("--only", choices=parts, help="one part alone")
    given = options.parse_args(arguments)
    given.out.mkdir(parents=True, exist_ok=True)
    page = given.out / "results.md"
    rows: list[Row] = []

    def wants(part: str) -> bool:
        return given.only in (None, part)

    def write(part: int, text: str) -> None:
        """Put one part of the page in place of the one that was there."""
        before = page.read_text(encoding="utf-8") if page.exists() else ""
        kept = divided(before)
        kept[part] = text
        page.write_text("\n\n".join(t.strip("\n") for t in kept if t) + "\n", encoding="utf-8")

    if wants("checks"):
        rows, text = measure_checks(given.quick, given.out)
        write(0, text)
    if wants("comparing"):
        found, text = ratio.part(given.quick)
        rows += found
        write(1, text)
    if wants("emulator"):
        found, text = speed.part(given.quick)
        rows += found
        write(2, text)
    for row in rows:
        print(" | ".join(row))
    return 0


def divided(page: str) -> list[str]:
    """The parts of a page, "" where there is none: checks, comparing, the emulator."""
    rest, heading, emulated = page.partition(speed.HEADING)
    emulated = heading + emulated
    checks, heading, comparing = rest.partition(ratio.HEADING)
    return [checks, heading + comparing, emulated]


def measure_checks(quick: bool, out: Path) -> tuple[list[Row], str]:
    """The part on checks: its rows and the page; the plot is written to a folder."""
    paths = sorted((ROOT / "fixtures" / "ptx").glob("sm_*/*.ptx"))
    sizes, functions, rounds = (
        [10_000, 30_000, 100_000, 300_000, 1_000_000],
        [12_500, 25_000, 50_000, 100_000],
        3,
    )
    if quick:
        paths, sizes, functions, rounds = paths[::80], [10_000, 30_000], [1_000, 3_000], 1
    rows = parser_rows(paths, rounds)
    checked, details = build_rows(paths, quick)
    rows += checked
    series: dict[str, Series] = {}
    makers: list[tuple[str, list[int], Callable[[int], str]]] = [
        ("modules of kernels", sizes, synthetic.module),
        ("modules with call sequences", sizes, synthetic.call_sequences),
        ("one function", functions, synthetic.one_function),
    ]
    for name, wanted, make in makers:
        found, series[name] = grow(name, wanted, make)
        rows += found
    found, table = growth_of_stages(*((([1_000, 2_000], 1)) if quick else (STAGE_SIZES, 2)))
    rows += found
    details += ["", "Where the time of `check` goes:", "", *stage_table(paths[::4])]
    details += ["", *table]
    details += ["", "The largest kernels of the fixtures:", "", *largest_kernels(paths, 6)]
    if shutil.which("true"):
        plot(series, out / "results.svg")
    return rows, report(rows, details, series)


if __name__ == "__main__":
    raise SystemExit(main())
