"""Two caches of as many kernels, the second a rebuild of the first, made of the Triton fixtures."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

FIXTURES: Final = Path(__file__).resolve().parents[2] / "fixtures" / "ptx"
CHANGED: Final = 10
"""In the changed cache each so many-th kernel has another constant."""
_KERNEL: Final = re.compile(r"^(\.visible \.entry )(\w+)", re.MULTILINE)
_REGISTER: Final = re.compile(r"%(r|rd|f|p|b|rs)(?=[<\d])")
_CONSTANT: Final = re.compile(r"(\t(?:add|and|or|shl|mul\.lo)\.[bsu]\d+ \t[^;\n]*, )(\d+);")


def write(folder: Path, count: int, renames: bool = False, changes: bool = False) -> int:
    """A cache in Triton's layout, a folder a kernel; the number of kernels in it. With `renames`
    all registers have other names and all lines have moved; with `changes` some kernels compute
    something else as well."""
    paths = sorted(FIXTURES.glob("sm_*/*.ptx"), key=lambda path: (path.stem, path.parent.name))
    written = 0
    for at in range(count):
        path = paths[at % len(paths)]
        text = path.read_text(encoding="utf-8")
        found = _KERNEL.search(text)
        if found is None:
            continue
        name = f"{found[2]}_{at}"
        text = re.sub(rf"\b{found[2]}\b", name, text)
        if renames:
            text = _REGISTER.sub(r"%x\1", text)
            text = re.sub(r"(\.loc\t\d+ )(\d+)", lambda m: f"{m[1]}{int(m[2]) + 40}", text)
        if changes and at % CHANGED == 0:
            text = _CONSTANT.sub(lambda m: f"{m[1]}{int(m[2]) + 1};", text, count=1)
        target = folder / f"{at:04d}"
        target.mkdir(parents=True)
        (target / f"{name}.ptx").write_text(text, encoding="utf-8")
        metadata = path.with_suffix(".json")
        if metadata.exists():
            (target / f"{name}.json").write_bytes(metadata.read_bytes())
        written += 1
    return written


__all__ = ["CHANGED", "write"]
