"""Defects in the emulator and, on a machine with a GPU, under each tool of compute-sanitizer.

    python benchmarks/defects/run.py emulate RESULTS.json
    python benchmarks/defects/run.py assemble FOLDER [--ptxas PATH]
    python benchmarks/defects/run.py gpu FOLDER RESULTS.json [--jobs 12]

`emulate` writes what the emulator finds. `assemble` makes a folder that `gpu` takes to a machine
with a GPU; there each wrong case runs in a process of its own, alone and under each tool, and so do
right ones in batches, until one of a batch is told of. Who does not end within `--timeout` seconds
is ended, and hangs.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

HERE = Path(__file__).resolve().parent
TOOLS = ("memcheck", "initcheck", "racecheck", "synccheck")
MODES = ("alone", *TOOLS)
OPTIONS = {
    "memcheck": ["--padding", str(1 << 20)],
    "racecheck": ["--racecheck-deadlock-timeout", "3000"],
}
"""Bytes that are kept free behind each allocation; milliseconds after which waiting threads count
as a deadlock, which is not looked for without."""
BATCH = 12
_KEPT = 6
"""So many different reports of a tool are kept."""
_NO_REPORT = re.compile(
    r"COMPUTE-SANITIZER|ERROR SUMMARY|RACECHECK SUMMARY|LEAK SUMMARY|Target application|Program hit"
    r"|Saved host backtrace|Internal|No attachable"
)


def reports(text: str) -> Counter[str]:
    """The reports of a tool, without numbers that change."""
    found: Counter[str] = Counter()
    for line in text.splitlines():
        if not line.startswith("========= ") or line.startswith("=========  "):
            continue
        told = line.removeprefix("========= ").strip()
        if told and not _NO_REPORT.search(told):
            found[re.sub(r"0x[0-9a-f]+", "0x…", told)] += 1
    return found


def child(folder: Path, numbers: list[int], mode: str, limit: float) -> dict[int, dict[str, Any]]:
    """What happens to cases that share a process, up to the first that ends in a fault."""
    # What was never written is read back only where no tool looks.
    how = "alone" if mode == "alone" else "watched"
    command = [sys.executable, str(HERE / "gpu_case.py"), str(folder), how, *map(str, numbers)]
    if mode != "alone":
        tool = ["compute-sanitizer", "--tool", mode, "--print-limit", "50", *OPTIONS.get(mode, [])]
        command = [*tool, *command]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    ) as process:
        try:
            text, _ = process.communicate(timeout=limit)
            is_over = True
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            text, _ = process.communicate()
            is_over = False
    lines = [json.loads(line) for line in text.splitlines() if line.startswith('{"number"')]
    found: dict[int, dict[str, Any]] = {line.pop("number"): line for line in lines}
    missing = [number for number in numbers if number not in found]
    if missing and not any("fault" in one for one in found.values()):
        found[missing[0]] = {"hangs": True} if not is_over else {"failed": text[-500:]}
    told = reports(text)
    if told and len(numbers) > 1:
        # Whose they are is not told.
        return {}
    for one in found.values():
        if told:
            one["told"] = dict(told.most_common(_KEPT))
            one["text"] = text[:3000]
    return found


def on_gpu(folder: Path, batch: list[int], mode: str, limit: float) -> dict[int, dict[str, Any]]:
    """The cases of a batch: together until something is told, then one by one."""
    found: dict[int, dict[str, Any]] = {}
    alone = len(batch) == 1
    while left := [number for number in batch if number not in found]:
        some = child(folder, left[:1] if alone else left, mode, limit)
        alone = alone or not some
        found |= some
    return found


def gpu(folder: Path, target: Path, jobs: int, limit: float) -> None:
    """All cases in all modes; those that may hang last."""
    cases = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
    results: dict[str, dict[str, Any]] = {case["name"]: {"what": case["what"]} for case in cases}
    for case in cases:
        if case["said"]:
            results[case["name"]]["assembler"] = case["said"]
    of = {what: [n for n, c in enumerate(cases) if c["what"] == what] for what in WHAT}
    small = [n for n in of["right"] if "mended" in cases[n]["name"]]
    large = [n for n in of["right"] if n not in small]
    batches = [[n] for n in (*of["probe"], *of["wrong"])]
    batches += [
        group[i : i + BATCH] for group in (small, large) for i in range(0, len(group), BATCH)
    ]
    started = time.monotonic()
    for groups in (batches, [[n] for n in of["hangs"]]):
        work = [(batch, mode) for batch in groups for mode in MODES]
        with ThreadPoolExecutor(jobs) as threads:
            every = threads.map(lambda job: (job[1], on_gpu(folder, *job, limit)), work)
            for mode, found in every:
                for number, one in found.items():
                    results[cases[number]["name"]][mode] = one
        print(f"{len(work)} runs after {time.monotonic() - started:.0f} s", flush=True)
        version = subprocess.run(
            ["compute-sanitizer", "--version"], capture_output=True, text=True
        ).stdout.strip()
        last = version.splitlines()[-1] if version else ""
        about = {"device": device(), "tool": last, "limit": int(limit)}
        texts = {
            (name, mode): one.pop("text")
            for name, modes in results.items()
            for mode, one in modes.items()
            if isinstance(one, dict) and "text" in one
        }
        write(target, about, results)
        with target.with_suffix(".log").open("a", encoding="utf-8") as log:
            for (name, mode), text in texts.items():
                log.write(f"#### {name} / {mode}\n{text}\n")


WHAT = ("right", "wrong", "hangs", "probe")


def device() -> str:
    """The name of the GPU."""
    from ptxlint.dynamic.cuda_driver import Context

    return Context().device.name


def write(path: Path, about: dict[str, Any], cases: dict[str, Any]) -> None:
    """Results, a line for each case."""
    lines = ",\n".join(f"{json.dumps(n)}: {json.dumps(c)}" for n, c in cases.items())
    text = f'{{"about": {json.dumps(about)},\n"cases": {{\n{lines}\n}}}}\n'
    path.write_text(text, encoding="utf-8")


def emulate_all(target: Path) -> None:
    """What the emulator says of all cases."""
    from defects.catalogue import DEFECTS
    from defects.emulated import emulate
    from defects.right import CASES

    found: dict[str, Any] = {}
    for defect in DEFECTS:
        for case in (defect.wrong, defect.right):
            found[case.name] = [one._asdict() for one in emulate(case)]
    for right in CASES:
        found[right.name] = [one._asdict() for one in emulate(right.case())]
    write(target, {}, found)


def assemble(folder: Path, ptxas: str) -> None:
    """All cases, with what they are."""
    from defects.catalogue import DEFECTS
    from defects.packed import pack
    from defects.probes import PROBES
    from defects.right import CASES

    shutil.rmtree(folder, ignore_errors=True)
    every = [(d.wrong, "hangs" if d.hangs else "wrong") for d in DEFECTS]
    every += [(d.right, "right") for d in DEFECTS]
    every += [(right.case(), "right") for right in CASES]
    every += [(probe.case, "probe") for probe in PROBES]
    pack(folder, every, ptxas)
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"{len(every)} cases, {size:,} bytes in {folder}")


def main() -> None:
    """The command line."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    what = options.add_subparsers(dest="what", required=True)
    one = what.add_parser("emulate")
    one.add_argument("results", type=Path)
    one = what.add_parser("assemble")
    one.add_argument("folder", type=Path)
    one.add_argument("--ptxas", default=shutil.which("ptxas") or "ptxas")
    one = what.add_parser("gpu")
    one.add_argument("folder", type=Path)
    one.add_argument("results", type=Path)
    one.add_argument("--jobs", type=int, default=12)
    one.add_argument("--timeout", type=float, default=30)
    given = options.parse_args()
    if given.what == "emulate":
        emulate_all(given.results)
    elif given.what == "assemble":
        assemble(given.folder, given.ptxas)
    else:
        gpu(given.folder, given.results, given.jobs, given.timeout)


if __name__ == "__main__":
    main()
