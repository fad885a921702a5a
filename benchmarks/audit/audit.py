"""What ptxlint says about the kernels of six libraries, and what has changed since the last time.

    python benchmarks/audit/audit.py [--work DIR] [--arch sm_90,sm_80] [--library …] [--update]

Installs the versions that requirements.txt pins, captures their kernels and launches without a GPU,
checks them with every rule, and compares with the records: findings by fingerprint, verdicts by
family (`recorded.json`, without launches), accesses and findings under the launches
(`launched.json`). Each error and warning needs a word in `labels.toml`, true or false and why. With
`--update` the records and docs/precision.md are written anew; otherwise a difference, or a finding
without a label, is exit status 1. The libraries' code is run.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import judged
import under_launches
import without_launches
from judged import Label, labels

HERE = Path(__file__).resolve().parent
RECORD = HERE / "recorded.json"
LAUNCHED = HERE / "launched.json"
PAGE = HERE.parents[1] / "docs" / "precision.md"

Run = dict[str, Any]


# Running ------------------------------------------------------------------------------------------
def install(site: Path) -> None:
    """Put the pinned libraries into a folder of their own."""
    wanted = (HERE / "requirements.txt").read_text(encoding="utf-8")
    done = site / "installed.txt"
    if done.exists() and done.read_text(encoding="utf-8") == wanted:
        return
    subprocess.run(
        [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--upgrade", "--target",
         str(site), "--requirement", str(HERE / "requirements.txt")],
        check=True,
    )  # fmt: skip
    done.write_text(wanted, encoding="utf-8")


def capture(library: str, arch: str, site: Path, bundle: Path) -> dict[str, Any]:
    """Capture a library's operators, unless that is done; what the cases say of themselves."""
    told = bundle.with_suffix(".told.json")
    if not (bundle / "manifest.json").exists() or not told.exists():
        environment = {
            **os.environ,
            "PYTHONPATH": str(site),
            "TRITON_DEFAULT_FP_FUSION": "1",
            # Empty, so that the time of a capture is that of compiling.
            "TRITON_CACHE_DIR": tempfile.mkdtemp(dir=bundle.parent),
        }
        command = [sys.executable, "-m", "ptxlint", "capture", "--no-gpu", "--force",
                   "--arch", arch, "--out", str(bundle),
                   str(HERE / "run_cases.py"), library, "--told", str(told)]  # fmt: skip
        before = spent()
        # What could not be captured is in the bundle, and on the page.
        subprocess.run(command, check=False, env=environment)
        cases = json.loads(told.read_text(encoding="utf-8"))
        cases["seconds"] = spent() - before
        told.write_text(json.dumps(cases, indent=1) + "\n", encoding="utf-8")
    found: dict[str, Any] = json.loads(told.read_text(encoding="utf-8"))
    return found


def spent() -> float:
    """Processor time of all that this process started and that has ended, in seconds."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def check(path: Path) -> Run:
    """The JSON report of every rule that is not in preview, and the `seconds` that it took."""
    command = [sys.executable, "-m", "ptxlint", "check", str(path), "--no-config",
               "--format", "json"]  # fmt: skip
    before = spent()
    done = subprocess.run(command, stdout=subprocess.PIPE, check=False)
    seconds = spent() - before
    if done.returncode not in (0, 1):
        raise SystemExit(f"ptxlint could not check {path}: exit status {done.returncode}")
    report: Run = json.loads(done.stdout)
    return {**report, "seconds": seconds}


def page(plain: list[Run], launched: list[Run], known: dict[str, Label]) -> str:
    """docs/precision.md."""
    counts, *rest = without_launches.sections(plain, known)
    findings = [f for run in (*plain, *launched) for f in run["findings"]]
    launches = (HERE / "page_launches.txt").read_text(encoding="utf-8").rstrip()
    parts = [
        (HERE / "page_head.txt").read_text(encoding="utf-8").rstrip(),
        counts,
        launches + "\n\n" + under_launches.section(launched, known),
        "## Errors and warnings, one by one\n\n" + judged.one_by_one(findings, known),
        *rest,
        (HERE / "page_tail.txt").read_text(encoding="utf-8").rstrip(),
    ]
    return "\n\n".join(parts) + "\n"


def read(record: Path) -> list[Run]:
    """The runs of a record."""
    found: list[Run] = json.loads(record.read_text(encoding="utf-8")) if record.exists() else []
    return found


def merged(old: list[Run], new: list[Run]) -> list[Run]:
    """A record with the runs that were made anew in place of the old ones."""
    made = {(run["library"], run["arch"]): run for run in new}
    kept = [made.pop((run["library"], run["arch"]), run) for run in old]
    return kept + list(made.values())


def main() -> int:
    """Run the audit; 1 if something changed or has no label."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--work", type=Path, default=HERE / "work", help="where files are kept")
    options.add_argument("--arch", default="sm_90,sm_80")
    options.add_argument("--library", default=",".join(under_launches.LIBRARIES))
    options.add_argument("--update", action="store_true", help="write the records and the page")
    given = options.parse_args()
    work = given.work.resolve()
    work.mkdir(parents=True, exist_ok=True)
    install(work / "site")
    plain, launched = [], []
    for arch in given.arch.split(","):
        for library in given.library.split(","):
            bundle = work / f"{library}-{arch}"
            told = capture(library, arch, work / "site", bundle)
            # The kernels alone: without the manifest there are no launches.
            bare = check(bundle / arch)
            if library in without_launches.LIBRARIES:
                plain.append(without_launches.summary(library, arch, bare))
            report = check(bundle)
            launched.append(under_launches.summary(library, arch, bundle, told, report, bare))
            print(f"{library} {arch}: {launched[-1]['accesses']}", flush=True)
    differences = without_launches.changes(read(RECORD), plain)
    differences += under_launches.changes(read(LAUNCHED), launched)
    findings = [f for run in (*plain, *launched) for f in run["findings"]]
    missing = judged.unlabelled(findings, labels())
    print("\n".join(differences) or "nothing changed")
    print("\n".join(under_launches.missed(merged(read(LAUNCHED), launched))) or "goals reached")
    print("\n".join(f"no label: {line}" for line in missing) or "every finding has a label")
    if given.update:
        plain, launched = merged(read(RECORD), plain), merged(read(LAUNCHED), launched)
        for record, runs in ((RECORD, plain), (LAUNCHED, launched)):
            record.write_text(json.dumps(runs, indent=1) + "\n", encoding="utf-8")
        PAGE.write_text(page(plain, launched, labels()), encoding="utf-8")
    return 1 if missing or (differences and not given.update) else 0


if __name__ == "__main__":
    raise SystemExit(main())
