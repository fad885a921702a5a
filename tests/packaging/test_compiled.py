"""What the compiled build compiles, and what its compiler asks of the sources."""

from __future__ import annotations

import ast
import importlib.util
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
C_WORDS = {"asm", "inline", "const", "volatile", "signed", "typeof", "attribute", "alignof"}


def setup_module_of(root: Path) -> ModuleType:
    """`setup.py`, without a build."""
    spec = importlib.util.spec_from_file_location("ptxlint_setup", root / "setup.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


SETUP = setup_module_of(ROOT)
MODULES: list[str] = SETUP.modules()


def test_all_modules_of_the_folders_are_compiled_or_left_out_by_name() -> None:
    found = {
        path.relative_to(ROOT).as_posix()
        for place in SETUP.COMPILED
        for path in (ROOT / place).rglob("*.py")
        if path.name != "__init__.py"
    }
    assert found == set(MODULES) | SETUP.INTERPRETED
    assert not set(MODULES) & SETUP.INTERPRETED
    assert len(MODULES) == len(set(MODULES))
    assert "ptxlint/dataflow/polynomial.py" in MODULES


def late_fields(tree: ast.Module) -> Iterator[str]:
    """Fields of named tuples whose class does not exist yet when the tuple's class is made."""
    lines = {node.name: node.lineno for node in tree.body if isinstance(node, ast.ClassDef)}
    guarded = {
        alias.asname or alias.name
        for node in tree.body
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
        for inner in node.body
        if isinstance(inner, ast.ImportFrom)
        for alias in inner.names
    }
    for owner in tree.body:
        if isinstance(owner, ast.ClassDef) and owner.bases:
            for node in owner.body:
                if isinstance(node, ast.AnnAssign):
                    kind = node.annotation
                    kind = kind.value if isinstance(kind, ast.Subscript) else kind
                    name = ast.unparse(kind)
                    if name in guarded or lines.get(name, 0) >= owner.lineno:
                        yield f"{owner.name}.{ast.unparse(node.target)}"


@pytest.mark.parametrize("name", MODULES)
def test_the_compiler_can_take_a_module(name: str) -> None:
    """What it does not report itself: the C compiler would, or nobody until the import crashes."""
    tree = ast.parse((ROOT / name).read_text(encoding="utf-8"))
    assert list(late_fields(tree)) == []
    assert list(float_tuples(tree)) == []
    stored = {
        node.attr
        for node in ast.walk(tree)
        if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store)
    }
    assert not {f"_{word}" for word in C_WORDS} & stored


def float_tuples(tree: ast.Module) -> Iterator[str]:
    """Constants that are tuples of a fixed number of floats: read as if they were not set."""
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and ast.unparse(node.annotation) == "Final":
            first = node.value.elts[:1] if isinstance(node.value, ast.Tuple) else []
            if any(
                isinstance(part, ast.Constant | ast.UnaryOp) and "." in ast.unparse(part)
                for part in first
            ):
                yield ast.unparse(node.target)


def test_a_float_tuple_is_seen() -> None:
    text = "A: Final = (-1.0, 2.0)\nB: Final[tuple[float, ...]] = (1.0,)\nC: Final = (1, 2.0)\n"
    assert list(float_tuples(ast.parse(text))) == ["A"]


def test_a_late_field_is_seen() -> None:
    text = "class A(NamedTuple):\n    b: B\n    c: int\nclass B:\n    pass\n"
    assert list(late_fields(ast.parse(text))) == ["A.b"]


@pytest.mark.slow
def test_the_compiler_accepts_the_sources(tmp_path: Path) -> None:
    """Down to C; what the C compiler makes of it, `make bench` and `make wheel-compiled` show."""
    code = (
        "import sys; from mypyc.build import mypyc_build; "
        "from mypyc.options import CompilerOptions; "
        "mypyc_build(sys.argv[2:], CompilerOptions(multi_file=True, target_dir=sys.argv[1]))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path), *MODULES],
        cwd=ROOT,
        env=os.environ | {"MYPY_CACHE_DIR": str(tmp_path / "cache")},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
