"""What the emulator computes, held against a GPU, bit by bit.

    python benchmarks/emulator/against_gpu.py assemble FOLDER [--ptxas PATH]
    python benchmarks/emulator/against_gpu.py emulate  FOLDER [--bundle DIR]…
    python benchmarks/emulator/against_gpu.py record   FOLDER [--bundle DIR]…
    python benchmarks/emulator/against_gpu.py compare  FOLDER [--bundle DIR]… [--results FILE]
    python benchmarks/emulator/against_gpu.py table

`assemble` makes cubins of the fixtures and of single instructions, where there is an assembler;
`emulate` runs the PTX that they were made of, and launches of captured bundles, in the emulator;
`record` loads these very cubins through the driver on a machine with a Hopper GPU, and runs them
on the same bytes. Both leave their outputs in FOLDER, so each can be done on another machine.
`compare` holds them against each other; `table` writes docs/emulator-gpu.md from results.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from comparison import judged, page, sides  # noqa: E402
from comparison.fixtures import ARCHS, emulated  # noqa: E402
from comparison.instructions import group_text  # noqa: E402
from comparison.operations import GROUPS  # noqa: E402
from comparison.store import save  # noqa: E402

RESULTS = HERE / "results.json"
PAGE = HERE.parents[1] / "docs" / "emulator-gpu.md"


def assemble(folder: Path, ptxas: str) -> None:
    """A cubin for each build and each group of instructions. PTX for sm_80 is PTX for sm_90 too."""
    jobs = []
    for arch in ARCHS:
        (folder / arch).mkdir(parents=True, exist_ok=True)
        target = "sm_90" if arch == "sm_80" else f"{arch}a"
        for name in emulated.names(arch):
            path = emulated.build(name, arch).path
            jobs.append((path, folder / arch / f"{name}.cubin", target))
    (folder / "instructions").mkdir(exist_ok=True)
    for group in GROUPS:
        path = folder / "instructions" / f"{group}.ptx"
        path.write_text(group_text(group), encoding="utf-8")
        jobs.append((path, path.with_suffix(".cubin"), "sm_90a"))
    for path, cubin, target in jobs:
        command = [ptxas, f"-arch={target}", str(path), "-o", str(cubin)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f"{path.name}: {done.stderr.strip()[:500]}")
    print(f"{len(list(folder.rglob('*.cubin')))} cubins in {folder}")


def one_side(side: str, folder: Path, bundles: list[str], jobs: int) -> None:
    """Run all cases on one side, and keep what came out."""
    work = getattr(sides, side)
    batches = sides.batches(folder, bundles, side)
    outputs: dict[str, Any] = {}
    # A process that is forked off one with a CUDA context cannot have one of its own.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        for found in pool.map(work, [(str(folder), batch) for batch in batches]):
            outputs.update(found)
    save(folder, side, outputs)
    print(f"{side}: {len(outputs)} arrays of {sum(map(len, batches))} cases")


def compare(folder: Path, bundles: list[str], results: Path) -> None:
    """Write down how the outputs of the two sides compare."""
    found = judged.judge(folder, bundles)
    lines = [f'"device": {json.dumps(found["device"])}']
    for part in ("fixtures", "captured", "instructions"):
        records = ",\n".join(json.dumps(record) for record in found[part])
        lines.append(f'"{part}": [\n{records}\n]')
    results.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    for line in page.summary(found):
        print(line)


def main() -> None:
    """Do what is asked for."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("what", choices=["assemble", "emulate", "record", "compare", "table"])
    options.add_argument("folder", nargs="?", type=Path, default=Path())
    options.add_argument("--bundle", action="append", default=[], help="a captured bundle")
    options.add_argument("--results", type=Path, default=RESULTS)
    options.add_argument("--ptxas", default="ptxas")
    options.add_argument("--jobs", type=int, default=8)
    given = options.parse_args()
    if given.what == "assemble":
        assemble(given.folder, given.ptxas)
    elif given.what == "compare":
        compare(given.folder, given.bundle, given.results)
    elif given.what == "table":
        data = json.loads(given.results.read_text(encoding="utf-8"))
        PAGE.write_text(page.text(data), encoding="utf-8")
    else:
        one_side(given.what, given.folder, given.bundle, given.jobs)


if __name__ == "__main__":
    main()
