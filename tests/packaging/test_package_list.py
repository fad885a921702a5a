"""Every package on disk is declared: one that is not would miss in the wheel and nowhere else."""

from __future__ import annotations

import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]
DECLARED: list[str] = SETTINGS["setuptools"]["packages"]
PLACES: dict[str, str] = SETTINGS["setuptools"]["package-dir"]


def on_disk() -> set[str]:
    """Names of the packages that the folders of the sources stand for."""
    names = set()
    for package, place in PLACES.items():
        folder = ROOT / place
        for module in folder.rglob("*.py"):
            inner = module.parent.relative_to(folder).parts
            names.add(".".join([package, *inner]))
    return names


def test_declared_packages_are_those_on_disk() -> None:
    assert set(DECLARED) == on_disk()


def test_declared_packages_are_sorted_and_unique() -> None:
    assert sorted(set(DECLARED)) == DECLARED


def test_every_package_has_an_init() -> None:
    """A namespace package would be found in an editable installation only."""
    missing = []
    for package, place in PLACES.items():
        folders = {module.parent for module in (ROOT / place).rglob("*.py")}
        missing += [f"{package}: {f}" for f in folders if not (f / "__init__.py").is_file()]
    assert missing == []
