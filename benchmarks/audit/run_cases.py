"""Call a library's operators, as the script of a capture.

    ptxlint capture --arch sm_90 --out BUNDLE benchmarks/audit/run_cases.py liger --told TOLD.json

The library must be importable. A case that fails is written down with the reason, and the next one
runs: what it launched until then counts.
"""

from __future__ import annotations

import argparse
import json
import sys
import traceback
from importlib import import_module
from pathlib import Path

import torch


def main() -> int:
    """Run the cases of one library, in the order of its file."""
    options = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    options.add_argument("library")
    options.add_argument("--only", default="", help="cases with this in their names")
    options.add_argument("--told", type=Path, help="where the number of cases and failures go")
    given = options.parse_args()
    sys.path.insert(0, str(Path(__file__).parent))
    names = []
    failed = {}
    for name, case in import_module(f"cases_{given.library}").cases():
        if given.only not in name:
            continue
        torch.manual_seed(0)
        names.append(name)
        try:
            case()
        except Exception as error:
            failed[name] = _told(error)
            print(f"{name}: {failed[name]}")
    print(f"{len(names)} cases, {len(failed)} failed")
    if given.told:
        told = {"cases": names, "failed": failed}
        given.told.write_text(json.dumps(told, indent=1) + "\n", encoding="utf-8")
    return 0


def _told(error: Exception) -> str:
    """What went wrong in one line, and where."""
    last = traceback.extract_tb(error.__traceback__)[-1]
    lines = [line.strip() for line in str(error).splitlines() if line.strip()] or [""]
    # A compiler's message says what is wrong behind where it is.
    fatal = [line for line in lines if "error   :" in line]
    first = fatal[0].partition("error   :")[2].strip() if fatal else lines[0]
    if lines[0].startswith("at "):
        first = lines[-1]
    return f"{type(error).__name__}: {first} ({Path(last.filename).name}:{last.lineno})"


if __name__ == "__main__":
    raise SystemExit(main())
