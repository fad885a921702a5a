"""Spec files: where they are found, what they hold, and what is said of those that are broken."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from ptxlint.dynamic.operators import SpecError
from ptxlint.dynamic.operators.loading import load
from ptxlint.dynamic.operators.places import Place, places

HEAD = "from ptxlint.dynamic.operators import Dim, Operator, Tensor\n"
ONE = "Operator(kernel=print, reference=print, inputs={'x': Tensor(3)})\n"


@pytest.fixture(autouse=True)
def _path_and_modules_as_before() -> Iterator[None]:
    path, modules = list(sys.path), set(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        del sys.modules[name]


def written(directory: Path, name: str, text: str) -> str:
    path = directory / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return str(path)


def test_operators_are_named_by_variable_by_file_or_by_themselves(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        "row_sum.py",
        f"{HEAD}operator = {ONE}second = {ONE}again = second\n_hidden = {ONE}"
        f"third = {ONE.replace('Operator(', 'Operator(name=' + repr('own') + ', ')}",
    )
    found = load(Place(path))
    assert list(found) == ["row_sum", "second", "own"]
    assert [spec.name for spec in found.values()] == list(found)
    assert list(load(Place(path, "second"))) == ["second"]


def test_what_lies_beside_can_be_imported_and_its_kernels_found(tmp_path: Path) -> None:
    written(tmp_path, "_sizes.py", "SIZE = 7\n")
    # A file that is called as a library is not that library.
    path = written(tmp_path, "json.py", f"{HEAD}from _sizes import SIZE\nx = {ONE}")
    assert list(load(Place(path))) == ["x"]
    kernel = written(
        tmp_path,
        "own.py",
        f"{HEAD}import inspect\ndef f(): return 1\nTEXT = inspect.getsource(f)\noperator = {ONE}",
    )
    assert list(load(Place(kernel))) == ["own"]


def test_places(tmp_path: Path) -> None:
    b, a = written(tmp_path, "b.py", ""), written(tmp_path, "deeper/a.py", "")
    for name in ("_kit.py", ".hidden.py", "_parts/c.py", "notes.txt"):
        written(tmp_path, name, "")
    assert places(str(tmp_path)) == (Place(b), Place(a))
    assert places(b) == (Place(b),)
    assert places(f"{b}:x") == (Place(b, "x"),)
    assert str(Place(b, "x")) == f"{b}:x"


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("none.py", "none.py: no such file"),
        ("none.py:x", r"none.py: no such file"),
        ("none", "none: no such file"),
        ("empty", r"empty: no spec files \(\*.py\) in this directory"),
    ],
)
def test_places_that_are_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str, words: str
) -> None:
    (tmp_path / "empty").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SpecError, match=f"^{words}$"):
        places(where)


BROKEN = {
    "syntax": ("x = 1\ny = (\n", r"spec\.py:2: '\(' was never closed"),
    "raises": (f"{HEAD}def f():\n    return {{}}['k']\n\nf()\n", r"spec\.py:3: KeyError: 'k'"),
    "elsewhere": ("import json\n\njson.loads('{')\n", r"spec\.py:3: JSONDecodeError: Expecting"),
    "import": ("import no_such_module\n", r"spec\.py:1: ModuleNotFoundError: No module named"),
    "file": ("open('no_such_file')\n", r"spec\.py:1: FileNotFoundError: .*no_such_file"),
    "exit": ("\nraise SystemExit(3)\n", r"spec\.py:2: it ends the process \(exit status 3\)"),
    "spec": (
        f"{HEAD}x = Operator(\n    kernel=print,\n    reference=1,\n    inputs={{}},\n)\n",
        r"spec\.py:2: the operator: reference is not callable",
    ),
    "none": (f"{HEAD}x = 1\n", r"spec\.py: no operators: assign an `Operator` to a variable"),
    "twice": (
        f"{HEAD}x = {ONE}y = {ONE.replace('Operator(', 'Operator(name=' + repr('x') + ', ')}",
        r"spec\.py: two operators are called 'x'",
    ),
}


@pytest.mark.parametrize("kind", BROKEN)
def test_broken_files_are_told_with_their_line(tmp_path: Path, kind: str) -> None:
    text, words = BROKEN[kind]
    with pytest.raises(SpecError, match=words):
        load(Place(written(tmp_path, "spec.py", text)))


def test_a_name_that_is_not_there(tmp_path: Path) -> None:
    path = written(tmp_path, "spec.py", f"{HEAD}x = {ONE}")
    with pytest.raises(SpecError, match=r"spec\.py: no operator 'y'; it has x"):
        load(Place(path, "y"))
    with pytest.raises(SpecError, match=r"gone\.py: no such file"):
        load(Place(str(tmp_path / "gone.py")))
    with pytest.raises(SpecError, match=r"spec\.txt: not a file of Python"):
        load(Place(written(tmp_path, "spec.txt", "")))
