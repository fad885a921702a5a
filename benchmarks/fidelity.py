"""Whether two captures hold the same code: PTX byte for byte except for the paths of sources.

    python benchmarks/fidelity.py BUNDLE OTHER

For captures of one script with one version of Triton on two machines, or with a GPU and without.
Kernels are the same if their names, signatures, constants and warps are. Prints a line for each,
and leaves with 1 if one differs or has no counterpart.
"""

from __future__ import annotations

import json
import re
import sys
from itertools import zip_longest
from pathlib import Path
from typing import Any

_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+"(?:[^"]*/)?([^"/]+)".*$', re.MULTILINE)


def kernels(bundle: Path) -> dict[str, tuple[str, str]]:
    """The kernels of a bundle: what identifies each, its name and its PTX without paths."""
    manifest = json.loads((bundle / "manifest.json").read_text(encoding="utf-8"))
    found: dict[str, tuple[str, str]] = {}
    for kernel in manifest["kernels"]:
        metadata = json.loads((bundle / kernel["metadata"]).read_text(encoding="utf-8"))
        identity = [kernel["arch"], kernel["name"], kernel["signature"], constants(kernel)]
        identity += [metadata["num_warps"], metadata["num_stages"]]
        ptx = (bundle / kernel["ptx"]).read_text(encoding="utf-8")
        key = json.dumps(identity)
        assert key not in found, f"two kernels {key}"
        found[key] = kernel["name"], _FILE.sub(r"\1 \2", ptx)
    return found


def constants(kernel: dict[str, Any]) -> dict[str, str]:
    """What is compiled in."""
    arguments = kernel["launches"][0]["arguments"]
    return {n: a["value"] for n, a in arguments.items() if a["kind"] == "constant"}


def difference(one: str, other: str) -> str:
    """The first line that differs; empty if none does."""
    lines = zip_longest(one.splitlines(), other.splitlines())
    for number, (here, there) in enumerate(lines, 1):
        if here != there:
            return f"line {number}: {here!r}, {there!r}"
    return ""


def main() -> int:
    """Print the table."""
    first, second = (kernels(Path(path)) for path in sys.argv[1:])
    differing = 0
    for key in sorted(first.keys() | second.keys()):
        name = (first.get(key) or second[key])[0]
        if key not in first or key not in second:
            said = f"only in {sys.argv[1 if key in first else 2]}"
        else:
            said = difference(first[key][1], second[key][1])
        differing += bool(said)
        signature = json.loads(key)
        types = " ".join(str(kind) for kind in signature[2].values() if kind != "constexpr")
        print(f"{name:12} {types:45.45} w{signature[4]} s{signature[5]}  {said or 'equal'}")
    print(f"{len(first)} kernels, {len(second)} kernels, {differing} differ")
    return differing > 0


if __name__ == "__main__":
    sys.exit(main())
