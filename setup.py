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
    "ptxlint/cfg",
    "ptxlint/dataflow",
    "ptxlint/frontends/ptx",
    "ptxlint/ir",
    "ptxlint/ir/sass",
    "ptxlint/source",
)
"""Folders all of whose modules are compiled but for those of `INTERPRETED`.

The rest takes too little time to be worth it, or others derive classes from its own.
"""
INTERPRETED = frozenset(
    {
        # Run by hand, from the sources.
        "ptxlint/frontends/ptx/prebuild.py",
        # Lark calls its methods by their names, and it is only there to be compared with.
        "ptxlint/frontends/ptx/reference.py",
    }
)


def modules() -> list[str]:
    """The sources to compile, relative to the root."""
    paths = [path for place in COMPILED for path in sorted((ROOT / place).glob("*.py"))]
    names = [path.relative_to(ROOT).as_posix() for path in paths if path.name != "__init__.py"]
    return [name for name in names if name not in INTERPRETED]


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
