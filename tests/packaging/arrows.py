"""Hold the imports to the contracts of [tool.importlinter] in pyproject.toml.

import-linter reads one folder a package, and `ptxlint.rules` and others lie beside `ptxlint/`.
So the packages are first laid out as they are installed, in a scratch folder.

    python tests/packaging/arrows.py
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def lay_out(root: Path, target: Path) -> None:
    """Copy the packages of a source tree to `target`, each where an installation puts it."""
    settings = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))
    places: dict[str, str] = settings["tool"]["setuptools"]["package-dir"]
    ignore = shutil.ignore_patterns("__pycache__")
    for package, folder in sorted(places.items()):
        destination = target.joinpath(*package.split("."))
        shutil.copytree(root / folder, destination, ignore=ignore, dirs_exist_ok=True)


def lint(root: Path) -> int:
    """Check the contracts on a source tree; the exit status of import-linter."""
    with tempfile.TemporaryDirectory() as folder:
        lay_out(root, Path(folder))
        code = (
            "import sys; from importlinter.cli import lint_imports_command as command; "
            "command(sys.argv[1:], prog_name='lint-imports')"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, "--no-cache", "--no-logo", str(root / "pyproject.toml")],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": folder},
            check=False,
        )
    return done.returncode


if __name__ == "__main__":
    sys.exit(lint(ROOT))
