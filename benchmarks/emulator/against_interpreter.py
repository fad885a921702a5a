"""How long the emulator takes for a launch, against Triton's interpreter on the same arguments.

    python benchmarks/emulator/against_interpreter.py [--only NAME,…] [--records FILE] [--no-page]

Each fixture kernel for sm_80 whose types numpy has runs at one size that fills several tiles, three
times in each; the best time counts. Both run in this process, one after the other, so that the
ratio of a row is of one machine at one time. The interpreter runs the Triton source, the emulator
the PTX that it was compiled to. Times are CPU time of this process. Writes docs/emulator-speed.md.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import os
import sys
import time
from pathlib import Path
from typing import Any

# Before Triton is imported: kernels are made for the interpreter.
os.environ["TRITON_INTERPRET"] = "1"

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "fixtures"))
sys.path.insert(0, str(ROOT / "fixtures" / "kernels"))

from references import emulated  # noqa: E402
from references.kit import Tensor  # noqa: E402

ARCH = "sm_80"
TYPES = {"fp32", "fp16", "fp64", "i32", "i64", "i8"}
PAGE = ROOT / "docs" / "emulator-speed.md"
RUNS = 3


def chosen(build: Any) -> Any:
    """The largest of the sizes that the reference lists."""
    return max(build.reference.sizes(build.constants), key=lambda s: math.prod(s.values()))


def in_emulator(build: Any, sizes: Any) -> tuple[float, int]:
    """The best time of some runs in seconds, and how many lane-instructions one has."""
    from ptxlint.dynamic.emulator.counters import Counters

    found = emulated.emulator(build.path)
    block = [int(x) for x in found.kernel.directives["reqntid"]] + [1, 1]
    best, lanes = math.inf, 0
    for run in range(RUNS + 1):
        launch = build.reference.launch(sizes, build.constants, np.random.default_rng(0))
        arena = found.arena()
        values = emulated.place(found, launch, build, arena).parameters()
        counters = Counters() if run == RUNS else None
        start = time.process_time()
        found.run(
            launch.grid, (block[0], block[1], block[2]), values, arena, build.shared,
            counters=counters,
        )  # fmt: skip
        if counters is None:
            best = min(best, time.process_time() - start)
        else:
            lanes = sum(count.lanes for count in counters.by_instr.values())
    return best, lanes


def in_interpreter(build: Any, sizes: Any) -> float:
    """The best time of some runs in seconds."""
    import torch

    entry = emulated.manifest()["variants"][build.name]
    kernel = getattr(importlib.import_module(Path(entry["source"]).stem), entry["kernel"])
    best = math.inf
    for _ in range(RUNS):
        launch = build.reference.launch(sizes, build.constants, np.random.default_rng(0))
        arguments: dict[str, Any] = {}
        for name, argument in launch.arguments.items():
            if isinstance(argument, Tensor):
                kind = build.constants[name]
                storage = emulated.laid_out(argument, kind)
                width = {"fp32": 4, "fp16": 2, "fp64": 8, "i32": 4, "i64": 8, "i8": 1}[kind]
                size = emulated._room(argument) * width
                raw = np.zeros(size, np.uint8) if storage is None else storage
                dtype = getattr(torch, emulated.TORCH_NAMES[kind])
                arguments[name] = torch.from_numpy(np.array(raw)).view(dtype)
            else:
                arguments[name] = argument
        constants = {k: _constant(v) for k, v in entry["constexprs"].items()}
        start = time.process_time()
        kernel[launch.grid](**arguments, **constants)
        best = min(best, time.process_time() - start)
    return best


def _constant(value: Any) -> Any:
    if isinstance(value, str) and value.startswith("tl."):
        import triton.language as tl

        return getattr(tl, value.removeprefix("tl."))
    return value


def main() -> None:
    """Measure, and write the page."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--only", default="")
    options.add_argument("--records", type=Path, help="write what was measured as JSON")
    options.add_argument("--no-page", action="store_true")
    given = options.parse_args()
    rows = []
    for name in emulated.names(ARCH):
        build = emulated.build(name, ARCH)
        types = {v for k, v in build.constants.items() if isinstance(v, str) and k.endswith("ptr")}
        if not types <= TYPES or (given.only and name not in given.only.split(",")):
            continue
        sizes = chosen(build)
        mine, lanes = in_emulator(build, sizes)
        try:
            theirs = in_interpreter(build, sizes)
        except Exception as error:
            print(f"{name}: the interpreter: {type(error).__name__}: {error}", flush=True)
            continue
        rows.append((name, dict(sizes), mine, theirs, lanes))
        print(f"{name:24} {mine:8.4f} {theirs:8.4f} {theirs / mine:6.2f}", flush=True)
    if given.records is not None:
        records = [
            {"kernel": name, "emulator": mine, "interpreter": theirs}
            for name, _, mine, theirs, _ in rows
        ]
        given.records.write_text(json.dumps(records), encoding="utf-8")
    mean = math.exp(sum(math.log(t / m) for _, _, m, t, _ in rows) / len(rows))
    if not given.no_page:
        PAGE.write_text(page(rows, mean), encoding="utf-8")
    print(f"geometric mean {mean:.2f} over {len(rows)} kernels")


def page(rows: list[tuple[str, dict[str, int], float, float, int]], mean: float) -> str:
    """The page as Markdown."""
    lines = [
        "# Speed of the emulator",
        "",
        "One launch of each fixture kernel for sm_80 whose types numpy has, in the emulator and",
        "in Triton's interpreter on the same arguments, in one process, one after the other; CPU",
        f"time, best of {RUNS}. `python benchmarks/emulator/against_interpreter.py` writes this",
        "page, and `make bench`. *Faster* is the interpreter's time over the emulator's.",
        "",
        f"Geometric mean over {len(rows)} kernels: **{mean:.2f}** times as fast.",
        "",
        "| kernel | sizes | faster | million lane-instructions a second |",
        "|---|---|---:|---:|",
    ]
    for name, sizes, mine, theirs, lanes in rows:
        told = ", ".join(f"{k} {v}" for k, v in sizes.items())
        lines.append(f"| {name} | {told} | {theirs / mine:.2f} | {lanes / mine / 1e6:,.0f} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    main()
