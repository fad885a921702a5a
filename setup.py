"""The compiled build. With PTXLINT_COMPILE=1 a wheel carries its modules as machine code, too.

    PTXLINT_COMPILE=1 pip wheel --no-deps .

mypyc translates the modules to C as they stand; the wheel keeps their sources beside them. Without
the variable this file adds nothing to what pyproject.toml says, and nothing needs a C compiler.
Answers are the same either way: only the time differs.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

from setuptools import setup

ROOT = Path(__file__).resolve().parent
COMPILER = "mypy==2.4.1"
"""What the build of a compiled wheel requires besides setuptools."""
COMPILED = (
    "ptxlint/arch",
    "ptxlint/cfg",
    "ptxlint/dataflow",
    "ptxlint/diagnostics.py",
    "ptxlint/engine",
    "ptxlint/frontends",
    "ptxlint/frontends/ptx",
    "ptxlint/ir",
    "ptxlint/obligations.py",
    "ptxlint/source",
    "ptxlint/wording.py",
)
"""Modules, and folders all of whose modules are compiled but for those of `INTERPRETED`."""
INTERPRETED = (
    # Run by hand, from the sources.
    "ptxlint/arch/__main__.py",
    "ptxlint/frontends/ptx/prebuild.py",
    # Looks at classes that others define, and at their modules.
    "ptxlint/engine/registry.py",
    # Lark calls its methods by their names; it is there to be compared with.
    "ptxlint/frontends/ptx/reference.py",
)


def modules() -> list[str]:
    """The sources to compile, relative to the root."""
    found: list[str] = []
    for place in COMPILED:
        path = ROOT / place
        for source in sorted(path.glob("*.py")) if path.is_dir() else [path]:
            name = source.relative_to(ROOT).as_posix()
            if source.name != "__init__.py" and name not in INTERPRETED:
                found.append(name)
    return found


def extensions() -> list[Any]:
    """What to compile: nothing unless it is asked for and a wheel or library is being built."""
    if not {"build", "build_ext", "bdist_wheel"} & set(sys.argv):
        return []
    from mypyc.build import mypycify

    return mypycify(modules(), group_name="ptxlint", multi_file=True, debug_level="0")


if __name__ == "__main__":
    if os.environ.get("PTXLINT_COMPILE", "0") in ("", "0"):
        setup()
    else:
        setup(setup_requires=[COMPILER], ext_modules=extensions())
