"""The largest error of a softmax that fills with 0 beyond the end, at rows of three elements.

    python benchmarks/gate/fill_zero.py --runner cuda

Eight seeds of 16 rows for each of some ways to fill tensors; prints a table.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from ptxlint.dynamic.campaign.campaign import Campaign, Settings
from ptxlint.dynamic.campaign.gate import Options
from ptxlint.dynamic.cases.case import Case

SPEC = Path(__file__).resolve().parents[2] / "fixtures" / "specs" / "softmax.py"
VALUES = ("regular", "graded", "negative")


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runner", choices=("emulator", "cuda"), default="emulator")
    campaign = Campaign(Settings(Options(parser.parse_args().runner)))
    try:
        (task,) = campaign.tasks([f"{SPEC}:softmax_buggy"])
        worker = campaign.worker(task)
        print("| values | largest error |\n|---|---:|")
        for values in VALUES:
            cases = [
                Case("softmax_buggy", "float32", {"rows": 16, "n": 3}, values, s) for s in range(8)
            ]
            errors = [c.max_abs for case in cases for c in worker.run(case).compared]
            print(f"| `{values}` | {max(errors):.3f} |")
        worker.close()
    finally:
        campaign.close()


if __name__ == "__main__":
    main()
