"""Where the kernels of the mutation study lie, and what stands in for one of their modules."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from typing import Any, Final

_ROOT: Final = Path(__file__).resolve().parents[3]
HELD_OUT: Final = _ROOT / "benchmarks" / "kernels" / "held_out.py"
FIXTURES: Final = _ROOT / "fixtures" / "kernels"
BOTH: Final = ("float32", "float16")

stand_ins: dict[str, str] = {}
"""Files to load in place of modules, by the modules' names: a mutant is a whole module."""


def held_out(name: str) -> Any:
    """A kernel that was written for the study."""
    return _kernel(HELD_OUT, name)


def fixture(module: str, name: str) -> Any:
    """A kernel of `fixtures/kernels/MODULE.py`."""
    return _kernel(FIXTURES / f"{module}.py", name)


def _kernel(path: Path, name: str) -> Any:
    known = f"ptxlint_study_kernels.{path.stem}"
    if known not in sys.modules:
        spec = importlib.util.spec_from_file_location(known, stand_ins.get(path.stem, path))
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[known] = module
        spec.loader.exec_module(module)
    return getattr(sys.modules[known], name)
