"""The import contracts hold, and a breach of each is seen."""

from __future__ import annotations

import ast
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("ptxlint", "rules", "grammar", "dynamic")
ARROWS = ROOT / "tests" / "packaging" / "arrows.py"
# Each takes longer to import than the whole check of a file.
HEAVY = frozenset(
    "asyncio dataclasses elftools inspect lark matplotlib networkx numpy pkgutil rich torch "
    "triton".split()
)
# Loaded only when a shape is not among the shipped templates, or by --parser=lark.
REFERENCE_PARSER = {"ptxlint/frontends/ptx/reference.py", "ptxlint/frontends/ptx/prebuild.py"}

# Loaded only for what polynomials leave open under a launch.
WITH_ARRAYS = {
    f"ptxlint/launch/{name}.py"
    for name in (
        "coverage/cells", "coverage/program_map", "coverage/runs", "exact", "fills", "first_reads",
        "float_words", "lane_numbers", "lanes", "left_behind", "machine", "memory", "memory_steps",
        "warps", "view_walk", "words",
    )
}  # fmt: skip


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """The sources, in a folder of their own."""
    ignore = shutil.ignore_patterns("__pycache__")
    for room in ROOMS:
        shutil.copytree(ROOT / room, tmp_path / room, ignore=ignore)
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / "tests" / "packaging").mkdir(parents=True)
    shutil.copy(ARROWS, tmp_path / "tests" / "packaging")
    return tmp_path


def lint(root: Path) -> subprocess.CompletedProcess[str]:
    """Check the contracts on a source tree."""
    command = [sys.executable, str(root / "tests" / "packaging" / "arrows.py")]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_contracts_hold() -> None:
    done = lint(ROOT)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("path", "statement", "complaint"),
    [
        ("ptxlint/source/text.py", "import ptxlint.ir.module", "ptxlint.source is not allowed"),
        ("ptxlint/ir/module.py", "import ptxlint.frontends.ptx", "ptxlint.ir is not allowed"),
        ("ptxlint/engine/run.py", "import ptxlint.dynamic", "ptxlint.engine is not allowed"),
        ("rules/planted.py", "import ptxlint.engine.api", "ptxlint.rules is not allowed"),
        ("rules/planted.py", "import ptxlint.frontends.ptx", "ptxlint.rules is not allowed"),
        ("ptxlint/cfg/graph.py", "import torch", "ptxlint.cfg is not allowed to import torch"),
        ("ptxlint/frontends/ptx/memo.py", "import lark", "ptxlint is not allowed to import lark"),
        ("ptxlint/helpers/__init__.py", "", "ptxlint.helpers"),
    ],
)
def test_a_breach_is_seen(clone: Path, path: str, statement: str, complaint: str) -> None:
    file = clone / path
    file.parent.mkdir(exist_ok=True)
    text = file.read_text(encoding="utf-8") if file.exists() else ""
    file.write_text(f"{text}\n{statement}\n", encoding="utf-8")
    done = lint(clone)
    assert done.returncode == 1, done.stdout + done.stderr
    assert complaint in done.stdout


def imported_on_load(tree: ast.AST) -> Iterator[str]:
    """Top-level names of what a module imports when it is loaded itself."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            yield (node.module or "").partition(".")[0]
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            continue
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            yield from imported_on_load(node)


@pytest.mark.parametrize("room", ["ptxlint", "rules", "grammar"])
def test_nothing_heavy_is_imported_on_load(room: str) -> None:
    guilty = []
    for path in sorted((ROOT / room).rglob("*.py")):
        name = path.relative_to(ROOT).as_posix()
        heavy = HEAVY & set(imported_on_load(ast.parse(path.read_text(encoding="utf-8"))))
        heavy -= {"numpy"} if name in WITH_ARRAYS else frozenset()
        if heavy and name not in REFERENCE_PARSER:
            guilty.append(f"{name} imports {', '.join(sorted(heavy))}: do so in a function")
    assert guilty == []


def test_what_needs_arrays_is_loaded_late() -> None:
    """A check without launches does not wait for numpy."""
    code = """import sys
from pathlib import Path
from ptxlint.engine.options import Options
from ptxlint.engine.run import run
from ptxlint.frontends.discovery import Input
text = Path(sys.argv[1]).read_text(encoding="utf-8")
report = run([Input("k.ptx", text, None, ())], Options())
assert report.kernels
assert "numpy" not in sys.modules
"""
    path = ROOT / "fixtures" / "ptx" / "sm_90" / "softmax.ptx"
    command = [sys.executable, "-c", code, str(path)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_heavy_import_is_seen() -> None:
    code = (
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import torch\n"
        "try:\n    import numpy.linalg\nexcept ImportError:\n    pass\n"
        "class C:\n    from networkx import Graph\n"
        "def f():\n    import triton\n"
    )
    assert HEAVY & set(imported_on_load(ast.parse(code))) == {"numpy", "networkx"}
