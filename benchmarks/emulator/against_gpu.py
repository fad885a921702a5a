"""What the emulator computes, held against a GPU, bit by bit.

    python benchmarks/emulator/against_gpu.py assemble FOLDER [--ptxas PATH]
    python benchmarks/emulator/against_gpu.py run FOLDER RESULTS.json [--jobs 8]
    python benchmarks/emulator/against_gpu.py table

`assemble` makes a cubin of each fixture build for sm_90 (where there is an assembler); `run` loads
these very cubins through the driver on a machine with such a GPU, and runs the PTX that they were
made of in the emulator, on the same bytes; `table` writes docs/emulator-gpu.md from results.json.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
sys.path.insert(0, str(ROOT / "fixtures"))

from references import emulated  # noqa: E402
from references.kit import Descriptor, Tensor  # noqa: E402

from ptxlint.dynamic.cuda_driver import Context, Memory, Module, NoDriverError  # noqa: E402
from ptxlint.dynamic.cuda_driver import run as launch_on_gpu  # noqa: E402
from ptxlint.dynamic.emulator.elements import kept_as, to_numbers  # noqa: E402

ARCH = "sm_90"
SIZES = 6
RESULTS = HERE / "results.json"
PAGE = ROOT / "docs" / "emulator-gpu.md"


class LeftOutError(Exception):
    """A launch that is not compared, and why."""


def assemble(folder: Path, ptxas: str) -> None:
    """A cubin for each build."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in emulated.names(ARCH):
        build = emulated.build(name, ARCH)
        target = folder / f"{name}.cubin"
        command = [ptxas, "-arch=sm_90a", str(build.path), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            print(f"{name}: {done.stderr.strip()}")
    print(f"{len(list(folder.glob('*.cubin')))} cubins in {folder}")


def on_both(job: tuple[str, str]) -> list[dict[str, Any]]:
    """One build at the sizes of its reference, on the GPU and in the emulator."""
    name, folder = job
    build = emulated.build(name, ARCH)
    path = Path(folder, f"{name}.cubin")
    out: list[dict[str, Any]] = []
    with Context() as context:
        module = Module(context.driver, path.read_bytes())
        function = module.function(build.kernel)
        for sizes in list(build.reference.sizes(build.constants))[:SIZES]:
            record: dict[str, Any] = {"build": name, "sizes": dict(sizes)}
            try:
                record |= _held(context, function, build, sizes)
            except LeftOutError as error:
                record["left_out"] = str(error)
            out.append(record)
    return out


def _held(context: Any, function: Any, build: Any, sizes: Any) -> dict[str, Any]:
    """Both runs of one launch, by output."""
    found = emulated.emulator(build.path)
    launch = build.reference.launch(sizes, build.constants, np.random.default_rng(0))
    if any(isinstance(a, Descriptor) for a in launch.arguments.values()):
        raise LeftOutError("tensor maps of the host")
    if any(build.scratch):
        raise LeftOutError("scratch memory")
    arena = found.arena()
    placed, values, given = emulated._placed(found, launch, build, arena)
    block = [int(x) for x in found.kernel.directives["reqntid"]] + [1, 1]
    extents = (block[0], block[1], block[2])
    start = time.perf_counter()
    found.run(launch.grid, extents, values, arena, build.shared)
    seconds = time.perf_counter() - start
    memories = {}
    parameters = dict(values)
    for variable, (key, argument) in zip(
        found.kernel.params, launch.arguments.items(), strict=False
    ):
        if not isinstance(argument, Tensor):
            continue
        tensor, allocation = placed[key]
        before = emulated.laid_out(tensor, build.constants[key])
        memory = Memory(context.driver, allocation.end - allocation.start)
        memory.fill(0)
        if before is not None:
            memory.write(before.tobytes())
        memories[key] = memory
        parameters[variable.name] = memory.address.to_bytes(8, "little")
    sent = [parameters.get(p.name, b"\0" * (p.size or 8)) for p in found.kernel.params]
    launch_on_gpu(function, launch.grid, extents, sent, build.shared)
    context.synchronise()
    expected = build.reference.expect(given, build.constants)
    outputs = {}
    for key, memory in memories.items():
        if key in expected:
            tensor, allocation = placed[key]
            kind = build.constants[key]
            mine = emulated._rows(arena.contents(allocation), tensor, kind)
            theirs = emulated._rows(np.frombuffer(memory.read(), np.uint8), tensor, kind)
            outputs[key] = _compared(mine, theirs, expected[key], kind)
        memory.release()
    return {"seconds": round(seconds, 3), "outputs": outputs}


def _compared(mine: Any, theirs: Any, expected: Any, kind: str) -> dict[str, Any]:
    """How many elements differ in a bit, by how much, and how far both are from the reference, in
    parts of what it allows."""
    width = kept_as(emulated.TORCH_NAMES[kind]).itemsize
    words = [np.ascontiguousarray(a).view(f"u{width}") for a in (mine, theirs)]
    numbers = [to_numbers(a, emulated.TORCH_NAMES[kind]) for a in (mine, theirs)]
    differs = words[0] != words[1]
    nan = np.isnan(numbers[0].astype(float)) & np.isnan(numbers[1].astype(float))
    differs &= ~nan
    with np.errstate(invalid="ignore"):
        apart = np.abs(numbers[0].astype(np.float64) - numbers[1])
    bound = np.broadcast_to(expected.bound(kind), apart.shape)
    share = np.where(differs, apart / np.maximum(bound, 1e-300), 0)
    return {
        "elements": int(differs.size),
        "differ": int(differs.sum()),
        "apart": float(apart[differs].max(initial=0)),
        "share_of_bound": float(share.max(initial=0)),
        "emulator": emulated.compare(numbers[0], expected, kind).worst,
        "gpu": emulated.compare(numbers[1], expected, kind).worst,
    }


def run(folder: str, results: Path, jobs: int) -> None:
    """All builds; processes share the GPU."""
    names = [n for n in emulated.names(ARCH) if Path(folder, f"{n}.cubin").exists()]
    try:
        device = Context().device.name
    except NoDriverError as error:
        raise SystemExit(f"no GPU: {error}") from None
    records: list[dict[str, Any]] = []
    # A process that is forked off one with a CUDA context cannot have one of its own.
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        futures = {name: pool.submit(on_both, (name, folder)) for name in names}
        for name, future in futures.items():
            try:
                records += future.result()
            except Exception as error:
                records.append({"build": name, "left_out": f"{type(error).__name__}: {error}"})
                print(name, repr(error)[:300], flush=True)
    results.write_text(json.dumps({"device": device, "records": records}, indent=0) + "\n")
    done = [r for r in records if "outputs" in r]
    differ = [r for r in done if any(o["differ"] for o in r["outputs"].values())]
    worst = max((o["share_of_bound"] for r in done for o in r["outputs"].values()), default=0)
    print(
        f"{len({r['build'] for r in done})} builds, {len(done)} launches on {device}: "
        f"{len(done) - len(differ)} alike in every bit, worst {worst:.3f} of the bound"
    )


def table() -> None:
    """Write the page."""
    data = json.loads(RESULTS.read_text(encoding="utf-8"))
    by_build: dict[str, list[dict[str, Any]]] = {}
    for record in data["records"]:
        by_build.setdefault(record["build"], []).append(record)
    done = [r for r in data["records"] if "outputs" in r]
    alike = [r for r in done if not any(o["differ"] for o in r["outputs"].values())]
    lines = [
        "# The emulator against a GPU",
        "",
        "Each fixture build for sm_90 is run in the emulator, and the cubin that is assembled from",
        f"the same PTX on one {data['device']}, on the same bytes. Where the semantics of all",
        "instructions are exact the outputs have the same bits; approximate instructions, and sums",
        "inside of `mma` and `wgmma`, may differ by what the references allow (*bound*, see",
        "[emulator](emulator.md)): each by at most the bound, so both by at most twice of it. NaN",
        "counts as NaN whatever its bits. Of sums of 8-bit floats the device keeps fewer bits than",
        "float32 has, which PTX leaves to it: there the GPU itself misses the reference, by up to",
        "three times the bound.",
        "",
        f"{len({r['build'] for r in done})} builds, {len(done)} launches: {len(alike)} alike in "
        "every bit.",
        "",
        "| build | launches | alike in every bit | elements that differ | most apart, of the bound "
        "| emulator to reference | GPU to reference |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for name, records in sorted(by_build.items()):
        ran = [r for r in records if "outputs" in r]
        if not ran:
            lines.append(f"| {name} | 0 | {records[0]['left_out']} | | | | |")
            continue
        outputs = [o for r in ran for o in r["outputs"].values()]
        equal = sum(not any(o["differ"] for o in r["outputs"].values()) for r in ran)
        differ, total = sum(o["differ"] for o in outputs), sum(o["elements"] for o in outputs)
        shares = [max(o[key] for o in outputs) for key in ("share_of_bound", "emulator", "gpu")]
        told = " | ".join(f"{share:.3f}" for share in shares)
        lines.append(f"| {name} | {len(ran)} | {equal} | {differ:,} of {total:,} | {told} |")
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    """Do what is asked for."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("what", choices=["assemble", "run", "table"])
    options.add_argument("folder", nargs="?", default="")
    options.add_argument("results", nargs="?", type=Path, default=RESULTS)
    options.add_argument("--ptxas", default="ptxas")
    options.add_argument("--jobs", type=int, default=8)
    given = options.parse_args()
    if given.what == "assemble":
        assemble(Path(given.folder), given.ptxas)
    elif given.what == "run":
        run(given.folder, given.results, given.jobs)
    else:
        table()


if __name__ == "__main__":
    main()
