"""How fast the emulator is and how much memory it takes: the part of `make bench` on it.

    python benchmarks/bench.py --only emulator [--quick]

CPU time, not the clock's, where one thread is measured: other work on the machine disturbs it less.
"""

from __future__ import annotations

import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from time import process_time
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
ROOT: Final = HERE.parents[1]
sys.path.insert(0, str(ROOT / "fixtures"))

Row = tuple[str, str, str, str]
"""What was measured, the figure, the target, whether it was met."""
MIB: Final = 1 << 20
ELEMENTWISE: Final = (
    "relu", "sigmoid", "tanh", "elu", "silu", "gelu", "leaky_relu", "silu_bf16", "gelu_fp16",
)  # fmt: skip
_ALONE: Final = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""One core, as the targets have it."""


def _verdict(met: bool) -> str:
    return "met" if met else "missed"


def _run(script: str, *arguments: str) -> Any:
    """The last line that a script prints, as JSON; in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        check=True, capture_output=True, text=True, env=_ALONE, cwd=HERE,
    )  # fmt: skip
    return json.loads(done.stdout.splitlines()[-1])


# Against Triton's interpreter -----------------------------------------------------------------
def against_interpreter(quick: bool) -> tuple[list[Row], list[str]]:
    """The emulator and Triton's interpreter on the same launches, in one process."""
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder, "records.json")
        command = [sys.executable, str(HERE / "against_interpreter.py"), "--records", str(out)]
        if quick:
            command += ["--only", "relu,softmax", "--no-page"]
        subprocess.run(command, check=True, capture_output=True, env=_ALONE)
        records = json.loads(out.read_text(encoding="utf-8"))
    ratios = {r["kernel"]: r["interpreter"] / r["emulator"] for r in records}
    mean = math.exp(sum(map(math.log, ratios.values())) / len(ratios))
    slower = sorted((ratio, name) for name, ratio in ratios.items() if ratio < 1)
    row = (
        f"times as fast as Triton's interpreter, geometric mean over {len(ratios)} kernels",
        f"{mean:.2f}", ">= 1", _verdict(mean >= 1),
    )  # fmt: skip
    told = ", ".join(f"{name} {ratio:.2f}" for ratio, name in slower) or "none"
    return [row], [f"Slower than the interpreter ({len(slower)} of {len(ratios)}): {told}."]


# Elementwise kernels --------------------------------------------------------------------------
def rates(names: tuple[str, ...], n: int, rounds: int) -> dict[str, float]:
    """Million lane-instructions in a second of one core, by kernel, on so many elements."""
    import numpy as np
    from references import emulated

    from ptxlint.dynamic.emulator.counters import Counters

    out = {}
    for name in names:
        build = emulated.build(name, "sm_80")
        found = emulated.emulator(build.path)
        threads = int(found.kernel.directives["reqntid"][0])
        best, lanes = math.inf, 0
        for at in range(rounds + 1):
            launch = build.reference.launch({"n": n}, build.constants, np.random.default_rng(0))
            arena = found.arena()
            values = emulated.place(found, launch, build, arena).parameters()
            counters = Counters() if at == rounds else None
            start = process_time()
            found.run(launch.grid, (threads, 1, 1), values, arena, build.shared, counters=counters)
            if counters is None:
                best = min(best, process_time() - start)
            else:
                lanes = sum(count.lanes for count in counters.by_instr.values())
        out[name] = lanes / best / 1e6
    return out


_RATES: Final = """
import json, sys, speed
print(json.dumps(speed.rates(speed.ELEMENTWISE, int(sys.argv[1]), int(sys.argv[2]))))
"""


def elementwise(quick: bool) -> tuple[list[Row], list[str]]:
    """Lane-instructions a second of kernels on many elements."""
    n = 1 << 16 if quick else 1 << 20
    found = _run(_RATES, str(n), "1" if quick else "3")
    mean = math.exp(sum(map(math.log, found.values())) / len(found))
    row = (
        f"elementwise kernels on {n:,} elements, million lane-instructions a second of one core, "
        f"geometric mean over {len(found)}",
        f"{mean:.0f} ({min(found.values()):.0f} to {max(found.values()):.0f})",
        ">= 50", _verdict(mean >= 50),
    )  # fmt: skip
    told = ", ".join(f"{name} {rate:.0f}" for name, rate in found.items())
    return [row], [f"Million lane-instructions a second: {told}."]


# One block of softmax -------------------------------------------------------------------------
def milliseconds(name: str, sizes: dict[str, int], rounds: int) -> float:
    """The best time of one launch."""
    import numpy as np
    from references import emulated

    build = emulated.build(name, "sm_80")
    found = emulated.emulator(build.path)
    threads = int(found.kernel.directives["reqntid"][0])
    best = math.inf
    for _ in range(rounds):
        launch = build.reference.launch(sizes, build.constants, np.random.default_rng(0))
        arena = found.arena()
        values = emulated.place(found, launch, build, arena).parameters()
        start = process_time()
        found.run(launch.grid, (threads, 1, 1), values, arena, build.shared)
        best = min(best, process_time() - start)
    return 1000 * best


_SOFTMAX: Final = """
import json, sys, speed
print(json.dumps(speed.milliseconds("softmax", {"rows": 1, "columns": 1024}, int(sys.argv[1]))))
"""


def softmax(quick: bool) -> tuple[list[Row], list[str]]:
    """One row of 1024 numbers, which one CTA reduces."""
    taken = _run(_SOFTMAX, "3" if quick else "30")
    row = "one CTA of softmax, a row of 1,024, ms", f"{taken:.2f}", "<= 2", _verdict(taken <= 2)
    return [row], []


# Memory ---------------------------------------------------------------------------------------
TIMES: Final = {"memory": 3.25, "races": 23.25}
"""Of the tensors: they, a copy, a state a byte; shadows where races are looked for. A quarter is
for pages that are taken whole."""
_PEAK: Final = """
import json, resource, sys
import numpy as np
from ptxlint.dynamic.emulator.run import run
from ptxlint.dynamic.emulator.sanitizer.choice import chosen
from ptxlint.frontends.ptx import parse
path, words, count = sys.argv[1], sys.argv[2], int(sys.argv[3]) // 8
module = parse(open(path).read(), path)
x, out = np.ones(count, np.float32), np.full(count, 7, np.float32)
grid = -(-count // 1024), 1, 1
outcome = run(module, module.kernels()[0], grid, [out, x, count], sanitize=chosen(words))
assert outcome.is_complete and not outcome.faults and (out == x).all()
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    # ru_maxrss counts what the parent held before exec; the kernel's own mark does not.
    with open("/proc/self/status") as status:
        peak = next(int(l.split()[1]) for l in status if l.startswith("VmHWM:"))
except (OSError, StopIteration):
    pass
print(json.dumps(peak / 1024))
"""


def memory(quick: bool) -> tuple[list[Row], list[str]]:
    """The peak of a process that runs relu on two tensors, over their size."""
    sizes = {"memory": [16, 32, 64, 128], "races": [4, 8, 16, 32]}
    if quick:
        sizes = {"memory": [4, 16], "races": [2, 4]}
    path = str(ROOT / "fixtures" / "ptx" / "sm_80" / "relu.ptx")
    rows: list[Row] = []
    details = ["| `--sanitize` | tensors, MiB | peak, MiB |", "|---|---:|---:|"]
    for words, tensors in sizes.items():
        peaks = [_run(_PEAK, path, words, str(size * MIB)) for size in tensors]
        slope = (peaks[-1] - peaks[0]) / (tensors[-1] - tensors[0])
        limit = TIMES[words]
        rows.append(
            (f"peak memory of a launch, `--sanitize {words}`, grows by so many times the tensors",
             f"{slope:.2f}", f"<= {limit}", _verdict(slope <= limit))
        )  # fmt: skip
        details += [f"| {words} | {s} | {p:.0f} |" for s, p in zip(tensors, peaks, strict=True)]
    return rows, details


HEADING: Final = "## The emulator"


def part(quick: bool) -> tuple[list[Row], str]:
    """All of it: the rows, and the part of the page."""
    rows: list[Row] = []
    details: list[str] = []
    for measure in (against_interpreter, elementwise, softmax, memory):
        found, more = measure(quick)
        rows += found
        details += ["", *more] if more else []
    lines = [
        HEADING,
        "",
        "Written by `make bench`, or alone by `python benchmarks/bench.py --only emulator`. CPU",
        "time of one thread, the best of some runs; against Triton's interpreter",
        "[kernel by kernel](../docs/emulator-speed.md).",
        "",
        "| what | figure | target | |",
        "|---|---:|---:|---|",
        *(f"| {a} | {b} | {c} | {d} |" for a, b, c, d in rows),
        *details,
    ]
    return rows, "\n".join(lines) + "\n"


def replaced(page: str, text: str) -> str:
    """A page with another part on the emulator, at its end."""
    before = page.partition(HEADING)[0].rstrip("\n")
    return f"{before}\n\n{text}" if before else text


__all__ = ["HEADING", "part", "replaced"]
