"""A real ptxas takes every committed module: the oracle for what is valid."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
PATHS = [p for p in sorted(FIXTURES.rglob("*.ptx")) if "invalid" not in p.parts]
INVALID = sorted((FIXTURES / "syntax" / "invalid").glob("*.ptx"))
SAMPLE = [p for p in PATHS if p.parent.name == "syntax"] + [
    p for p in PATHS if p.parent.name != "syntax"
][::25]


def name(path: Path) -> str:
    return str(path.relative_to(FIXTURES))


def read(path: Path) -> str:
    with path.open(encoding="utf-8", newline="") as file:
        return file.read()


def target_of(text: str) -> str:
    """What to assemble for: as the first comment says, else the module's own target."""
    stated = re.match(r"// ptxas -arch=(\w+)", text)
    own = re.search(r"^\s*\.target\s+(\w+)", text, re.MULTILINE)
    assert stated or own
    return stated[1] if stated else own[1] if own else ""


def complaints(text: str, assemblers: list[Any], scratch: Path) -> list[str]:
    """What each assembler that knows the target says against the text; empty if one takes it."""
    target, said = target_of(text), []
    for assembler in assemblers:
        if target in assembler.targets:
            errors = assembler.errors(text, target, scratch)
            if not errors:
                return []
            if "Unsupported .version" not in str(errors[0]):
                said.append(f"{assembler.version}: {errors[0]}")
    if not said:
        pytest.skip(f"no ptxas at hand knows {target} and the module's .version")
    return said


@pytest.mark.parametrize("path", SAMPLE, ids=name)
def test_ptxas_takes_a_sample(path: Path, assemblers: list[Any], tmp_path: Path) -> None:
    assert complaints(read(path), assemblers, tmp_path) == []


@pytest.mark.slow
@pytest.mark.parametrize("path", [p for p in PATHS if p not in SAMPLE], ids=name)
def test_ptxas_takes_the_rest(path: Path, assemblers: list[Any], tmp_path: Path) -> None:
    assert complaints(read(path), assemblers, tmp_path) == []


@pytest.mark.parametrize("path", INVALID[::4], ids=name)
def test_ptxas_rejects_the_invalid_ones(path: Path, assemblers: list[Any], tmp_path: Path) -> None:
    text = path.read_bytes().decode("utf-8")
    stated = re.search(r"-arch=(\w+)", text)
    target = stated[1] if stated else "sm_80"
    assert all(a.errors(text, target, tmp_path) for a in assemblers if target in a.targets)
