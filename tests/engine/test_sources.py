"""Finding the Python files behind a kernel, and the inputs behind a path."""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path

import pytest

from ptxlint.engine.python_source import PythonSources
from ptxlint.frontends.discovery import STDIN, Input, InputFault, discover
from ptxlint.frontends.target_filter import peek_target, wanted
from ptxlint.frontends.triton_cache import MetadataError, parse_metadata


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """project/src/pkg/kernel.py and project/out/k.ptx, with project/out as working directory."""
    source = tmp_path / "project" / "src" / "pkg"
    source.mkdir(parents=True)
    (source / "kernel.py").write_text("one\ntwo\n")
    out = tmp_path / "project" / "out"
    out.mkdir()
    (out / "k.ptx").touch()
    (out / "beside.py").write_text("here\n")
    monkeypatch.chdir(out)
    return tmp_path


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("{tree}/project/src/pkg/kernel.py", "project/src/pkg/kernel.py"),
        ("src/pkg/kernel.py", "project/src/pkg/kernel.py"),
        ("/elsewhere/project/src/pkg/kernel.py", "project/src/pkg/kernel.py"),
        ("C:\\build\\src\\pkg\\kernel.py", "project/src/pkg/kernel.py"),
        ("/elsewhere/beside.py", "project/out/beside.py"),
        # One component is too little to trust, except beside the PTX file.
        ("kernel.py", None),
        ("/elsewhere/kernel.py", None),
        ("../../src/pkg/other.py", None),
        ("src/pkg", None),
        ("\0/x/kernel.py", None),
        ("/dev/stdin", None),
    ],
)
def test_locating_a_source_file(tree: Path, name: str, found: str | None) -> None:
    name = name.format(tree=tree)
    located = PythonSources().locate(name, "k.ptx")
    if found is None:
        assert located == name
        assert PythonSources().line(located, 1) == ""
    else:
        assert Path(located).resolve() == (tree / found).resolve()


def test_located_paths_are_relative_to_the_working_directory(
    tree: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tree / "project")
    sources = PythonSources()
    assert sources.locate("/elsewhere/src/pkg/kernel.py", "out/k.ptx") == "src/pkg/kernel.py"
    assert sources.line("src/pkg/kernel.py", 2) == "two"
    assert sources.line("src/pkg/kernel.py", 99) == ""


def test_discovery_is_sorted_and_names_each_file_once(tree: Path) -> None:
    for name in ("b.ptx", "a.ptx", "C.PTX", "__grp__a.ptx", "x.txt"):
        (tree / "project" / "out" / name).touch()
    found = discover(["b.ptx", ".", "./b.ptx", str(tree / "project" / "out" / "a.ptx")])
    assert [item.path for item in found] == ["b.ptx", "C.PTX", "a.ptx", "k.ptx"]
    assert discover(["x.txt"]) == [Input("x.txt")]


def test_standard_input_is_read_once(monkeypatch: pytest.MonkeyPatch) -> None:
    class Standard:
        buffer = io.BytesIO(b".version 8.0\n")

    monkeypatch.setattr(sys, "stdin", Standard())
    assert discover(["-"]) == [Input(STDIN, ".version 8.0\n")]
    (again,) = discover(["-"])
    assert isinstance(again, InputFault)
    monkeypatch.setattr(sys, "stdin", None)
    assert discover(["-"]) == [InputFault(STDIN, "standard input is closed")]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may list every directory")
def test_a_directory_that_cannot_be_listed_is_a_fault(tree: Path) -> None:
    closed = tree / "project" / "out" / "closed"
    closed.mkdir(mode=0)
    found = discover(["."])
    assert any(isinstance(item, InputFault) and "cannot list" in item.message for item in found)


@pytest.mark.parametrize(
    ("data", "numbers"),
    [
        (b'{"num_warps": 4, "shared": 16, "name": "k"}', (4, 16)),
        (b'{"num_warps": true, "shared": -1}', (None, None)),
        (b'{"num_warps": "4", "shared": 1e99}', (None, None)),
        (b'{"num_warps": 99999999999999999999, "shared": 0}', (None, 0)),
    ],
)
def test_metadata_takes_sane_numbers_only(data: bytes, numbers: tuple[object, object]) -> None:
    metadata = parse_metadata(data, "k.json")
    assert metadata is not None
    assert (metadata.num_warps, metadata.shared) == numbers


@pytest.mark.parametrize("data", [b"[]", b"3", b'{"other": 1}', b"null"])
def test_other_json_is_no_metadata(data: bytes) -> None:
    assert parse_metadata(data, "k.json") is None


@pytest.mark.parametrize("data", [b"", b"{", b"\xff\xfe", b"[" * 200_000])
def test_broken_json_is_a_fault(data: bytes) -> None:
    with pytest.raises(MetadataError, match=r"k\.json: no valid JSON"):
        parse_metadata(data, "k.json")


@pytest.mark.parametrize(
    ("text", "target"),
    [
        (".version 8.0\n.target sm_90a\n", "sm_90a"),
        ("// .target sm_70\n  .target\tsm_80, debug\n", "sm_80"),
        (".target texmode_independent, sm_75 // x", "sm_75"),
        (".target map_f64_to_f32", ""),
        ("", ""),
    ],
)
def test_the_target_is_seen_without_parsing(text: str, target: str) -> None:
    assert peek_target(text) == target


def test_wanted_targets() -> None:
    assert wanted("sm_90a", ("sm_90",))
    assert wanted("sm_90", ("sm_90",))
    assert wanted("compute_90", ("sm_90",))
    assert wanted("", ("sm_90",))
    assert wanted("sm_80", ())
    assert not wanted("sm_90", ("sm_90a",))
    assert not wanted("sm_100", ("sm_10",))
