"""Compile a library's kernels without a GPU and write their PTX to a folder.

    python benchmarks/audit/collect.py liger OUT [--arch sm_90]

The library must be importable. This runs the library's code.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import traceback
from importlib import import_module
from pathlib import Path

from ptxlint.dynamic.capture import Options, recording

_METADATA = ("num_warps", "num_stages", "num_ctas", "shared")


def main() -> int:
    """Write one .ptx and .json a kernel, and what failed to failed.txt."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("library", choices=["liger", "fla"])
    options.add_argument("out", type=Path)
    options.add_argument("--arch", default="sm_90")
    given = options.parse_args()
    os.environ.setdefault("TRITON_DEFAULT_FP_FUSION", "1")
    sys.path.insert(0, str(Path(__file__).parent))
    given.out.mkdir(parents=True, exist_ok=True)
    failed: list[str] = []
    with recording(given.arch, Options(limited=False)) as record:
        for name, case in import_module(f"cases_{given.library}").cases():
            try:
                case()
            except Exception as error:
                last = traceback.extract_tb(error.__traceback__)[-1]
                failed.append(
                    f"{name}: {type(error).__name__}: {str(error).splitlines()[:1]} "
                    f"({Path(last.filename).name}:{last.lineno})"
                )
            print(f"{name}: {len(record.kernels)} kernels so far", file=sys.stderr)
    for kernel in record.kernels:
        stem = given.out / f"{kernel.name}_{kernel.hash[:8]}"
        stem.with_suffix(".ptx").write_text(kernel.ptx, encoding="utf-8")
        stem.with_suffix(".ttir").write_text(kernel.ttir, encoding="utf-8")
        metadata = {field: kernel.metadata.get(field) for field in _METADATA}
        stem.with_suffix(".json").write_text(
            json.dumps({"name": kernel.name, **metadata}, sort_keys=True), encoding="utf-8"
        )
    failed += [f"{trouble.what}: {trouble.reason}" for trouble in record.troubles]
    (given.out / "failed.txt").write_text("\n".join(failed) + "\n", encoding="utf-8")
    print(f"{len(record.kernels)} kernels, {len(failed)} cases failed")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
