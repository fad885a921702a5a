"""What ptxlint says of launches, what the memory checker says, and where the addresses went.

    python benchmarks/soundness/run.py BUNDLE RESULTS.json [--jobs 14] [--only TEXT]

BUNDLE is what kernels.py is captured into. Each case runs twice on the GPU, each time in a process
of its own and with each storage in an allocation of exactly its size: as it is, under
`compute-sanitizer --tool memcheck`, and with a record of the addresses that each access touches.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

from cases import Case, cases, load
from compare import compared
from seeds import LARGE, is_watched

from ptxlint.dynamic.cuda_driver import Context, NoDriverError
from ptxlint.engine.options import Options
from ptxlint.engine.run import run as check
from ptxlint.frontends.discovery import Input
from ptxlint.launch.analysis import LaunchAnalysis

HERE = Path(__file__).resolve().parent
RULES = ("BND301", "BND302", "BND303", "BND304", "BND305")
PADDING = 1 << 20
"""Bytes that the memory checker keeps free behind each allocation."""
MEMORY = 130 << 30
BATCH = 12
TIMEOUT = 60
_FAULT = re.compile(r"Invalid __(\w+)__ (\w+) of size (\d+)|(Misaligned|misaligned)[^\n]*")


class Room:
    """So many bytes of the device's memory, shared by those who ask."""

    def __init__(self, size: int) -> None:
        self._left = size
        self._changed = threading.Condition()

    def take(self, size: int) -> None:
        """Wait until there is room."""
        with self._changed:
            self._changed.wait_for(lambda: self._left >= size)
            self._left -= size

    def give(self, size: int) -> None:
        """Give it back."""
        with self._changed:
            self._left += size
            self._changed.notify_all()


def verdicts(case: Case) -> dict[str, Any]:
    """What ptxlint says: the rules that report, the statuses, and the word on each access."""
    item = Input(str(case.path), launches=(case.launch,))
    report = check([item], Options(select=RULES))
    loaded = load(case)
    accesses = {}
    for found in loaded.facts.get(LaunchAnalysis):
        for outcome in found.outcomes:
            judged = outcome.judged
            region = judged.region
            word = "open"
            if outcome.witness is not None:
                word = f"refuted {outcome.witness.kind}"
            elif outcome.shown:
                word = "shown"
            elif judged.never:
                word = "never"
            elif judged.is_inside and judged.aligned:
                word = "proved"
            bounds = [region.low, region.high] if region is not None else None
            accesses[judged.access.instr.index] = [word, judged.access.width, bounds]
    return {
        "rules": sorted({f.rule for f in report.findings}),
        "statuses": sorted({o.status for o in report.obligations if o.rule in RULES}),
        "accesses": accesses,
    }


def gpu(bundle: str, numbers: list[int], mode: str) -> dict[int, dict[str, Any]]:
    """What the GPU says of cases, up to the first that ends in a fault; one of them at least."""
    command = [sys.executable, str(HERE / "gpu_case.py"), bundle, mode, *map(str, numbers)]
    if mode == "checked":
        checker = ["compute-sanitizer", "--tool", "memcheck", "--padding", str(PADDING)]
        command = [*checker, *command]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=TIMEOUT)
    except subprocess.TimeoutExpired:
        return {numbers[0]: {"failed": f"took more than {TIMEOUT} s"}}
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    found: dict[int, dict[str, Any]] = {line.pop("number"): line for line in lines}
    if not found:
        return {numbers[0]: {"failed": (done.stderr + done.stdout)[-600:]}}
    faults = sorted(
        {f"{m[2]} of {m[3]} bytes" if m[2] else "misaligned" for m in _FAULT.finditer(done.stdout)}
    )
    if faults and len(found) > 1 and "fault" not in lines[-1]:
        # Whose they are is not told: one by one.
        return gpu(bundle, numbers[:1], mode)
    if faults:
        lines[-1]["faults"] = faults
    return found


def on_gpu(
    bundle: str, batch: list[tuple[int, Case]], mode: str, end: float | None
) -> dict[int, dict[str, Any]]:
    """What the GPU says of the cases of a batch that are begun before the end."""
    found: dict[int, dict[str, Any]] = {}
    while left := [number for number, _ in batch if number not in found]:
        if end is not None and time.monotonic() > end:
            break
        found |= gpu(bundle, left, mode)
    return found


def batches(every: list[tuple[int, Case]]) -> list[list[tuple[int, Case]]]:
    """Cases that share a process; what is large has its own."""
    large = [[one] for one in every if one[1].size > LARGE]
    small = [one for one in every if one[1].size <= LARGE]
    return [*large, *(small[i : i + BATCH] for i in range(0, len(small), BATCH))]


def device() -> str:
    """The name of the GPU; empty without one."""
    try:
        return Context().device.name
    except NoDriverError:
        return ""


def made_with(bundle: str) -> dict[str, str]:
    """The versions of the compiler that the kernels are of."""
    run = json.loads(Path(bundle, "manifest.json").read_text(encoding="utf-8"))["runs"][0]
    return {"triton": run["triton"], "arch": run["arch"]}


def main() -> None:
    """Run all cases and write what was found."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("bundle")
    options.add_argument("results")
    options.add_argument("--jobs", type=int, default=14)
    options.add_argument("--only", default="")
    options.add_argument("--seeds", default="", help="changes with one of these texts, by commas")
    options.add_argument("--seconds", type=float, default=1e6, help="time for the checker")
    options.add_argument("--all-checked", action="store_true", help="the checker sees every case")
    options.add_argument("--without-gpu", action="store_true", help="ptxlint's side alone")
    given = options.parse_args()
    every = [
        (number, case)
        for number, case in enumerate(cases(given.bundle))
        if given.only in case.name and any(seed in case.seed for seed in given.seeds.split(","))
    ]
    print(f"{len(every)} cases of {len({c.path for _, c in every})} kernels", flush=True)
    started = time.monotonic()
    with ProcessPoolExecutor(given.jobs) as processes:
        said = list(processes.map(verdicts, [case for _, case in every], chunksize=4))
    print(f"checked in {time.monotonic() - started:.0f} s", flush=True)
    room = Room(MEMORY)

    def in_room(
        job: tuple[list[tuple[int, Case]], str, float | None],
    ) -> dict[int, dict[str, Any]]:
        batch, mode, end = job
        size = min(MEMORY, max(case.size for _, case in batch) + (2 << 30))
        room.take(size)
        try:
            return on_gpu(given.bundle, batch, mode, end)
        finally:
            room.give(size)

    results: dict[str, dict[int, dict[str, Any]]] = {"logged": {}, "checked": {}}
    about = {"device": device(), "bundle": made_with(given.bundle)}
    for mode in ("logged", "checked"):
        chosen = every
        if mode == "checked" and not given.all_checked:
            chosen = [one for one in every if is_watched(one[1].seed)]
        end = time.monotonic() + given.seconds if mode == "checked" else None
        if given.without_gpu:
            chosen = []
        with ThreadPoolExecutor(given.jobs) as threads:
            jobs = [(batch, mode, end) for batch in batches(chosen)]
            for found in threads.map(in_room, jobs):
                results[mode] |= found
        print(f"{mode} after {time.monotonic() - started:.0f} s", flush=True)
        records = [
            {"case": case.name, "kernel": case.kernel, "seed": case.seed}
            | compared(word, results["logged"].get(number, {}), results["checked"].get(number))
            for (number, case), word in zip(every, said, strict=True)
        ]
        write(Path(given.results), about, records)
    for record in records:
        for disagreement in record["disagreements"]:
            print(f"{record['case']}: {disagreement}")


def write(path: Path, about: dict[str, Any], records: list[dict[str, Any]]) -> None:
    """The results, a line for each case, without what is empty."""
    told = [{k: v for k, v in record.items() if v not in ("", [])} for record in records]
    lines = ",\n".join(json.dumps(record) for record in told)
    text = f'{{"about": {json.dumps(about)},\n"cases": [\n{lines}\n]}}\n'
    path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
