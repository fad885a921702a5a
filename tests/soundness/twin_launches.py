"""Twins, compiled anew or by Triton 3.6 before, with launches and references."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
sys.path.insert(0, str(FIXTURES))

import twin_builds as BUILDS  # noqa: E402, N812
from references import by_twin, emulated  # noqa: E402

TWINS = [twin for twin in BUILDS.twins() if twin.kernel in by_twin]


def twin_of(kernel: str) -> Any:
    """A twin by the name of its kernel."""
    return next(twin for twin in TWINS if twin.kernel == kernel)


def builds(capability: int) -> Iterator[tuple[Any, dict[str, Any]]]:
    """All twins with each of their builds that a compute capability can have."""
    for twin in TWINS:
        if capability >= twin.since:
            for settled in twin.builds:
                yield twin, settled


def built(twin: Any, settled: Mapping[str, Any], capability: int, folder: Path) -> Any:
    """A build of a twin, compiled into a folder. Needs Triton."""
    words = "-".join(f"{key}{value}" for key, value in sorted(settled.items()))
    path = folder / f"{twin.kernel}-{words}-sm_{capability}.ptx"
    if not path.exists():
        path.write_text(BUILDS.compiled(twin, settled, capability))
    arch = f"sm_{capability}"
    return emulated.of_twin(
        twin.kernel, _arguments(twin.path, twin.kernel), twin.types, settled, arch, path
    )


def older(twin: Any, arch: str) -> Any:
    """What Triton 3.6 made of a twin's first build; None where it is not kept."""
    stem = f"{twin.module.removeprefix('twins/')}-{twin.kernel}"
    path = FIXTURES / "ptx-triton-3.6" / arch / f"{stem}.ptx"
    if not path.exists():
        return None
    arguments = _arguments(twin.path, twin.kernel)
    return emulated.of_twin(twin.kernel, arguments, twin.types, twin.builds[0], arch, path)


def all_older() -> list[Any]:
    """All that Triton 3.6 made of twins for both architectures."""
    found = [older(twin, arch) for twin in TWINS for arch in ("sm_80", "sm_90")]
    return [build for build in found if build is not None]


@cache
def _arguments(path: Path, kernel: str) -> tuple[str, ...]:
    """The arguments of a kernel that are no constants of its source."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    found = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == kernel)
    return tuple(a.arg for a in found.args.args if a.annotation is None)
