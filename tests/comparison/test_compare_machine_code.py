"""`ptxlint compare` of machine code: dumps, fat binaries, cubins, and PTX among them."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ptxlint.cli import main
from ptxlint.cli.comparing import opinions
from ptxlint.comparison.architectures import Family, compare_architectures
from ptxlint.comparison.portrait import portrait
from ptxlint.comparison.records import load
from ptxlint.comparison.surprises import Surprise, surprises
from tests.comparison.machine_builds import assembled, cubin, dump, fatbin, fixture, listing
from tests.comparison.schemas import compare_data, valid

ARCHS = ("sm_80", "sm_86", "sm_89")
BODY = (
    "7: S2R R0, SR_TID.X", "ISETP.GE.AND P0, PT, R0, 0x40, PT",
    "8: @!P0 LDG.E R4, desc[UR4][R2.64]", "LDGSTS.E [R9], desc[UR4][R2.64], P0",
    "9: BAR.SYNC.DEFER_BLOCKING 0x0", "BAR.SYNC.DEFER_BLOCKING 0x0",
    "10: HMMA.16816.F32 R12, R4, R8, R12", "11: @P0 EXIT", "12: STG.E desc[UR4][R2.64], R4", "EXIT",
)  # fmt: skip


def family(folder: Path, *bodies: tuple[str, ...], archs: tuple[str, ...] = ARCHS) -> Family:
    paths = []
    for arch, body in zip(archs, bodies, strict=True):
        path = folder / f"{arch}.sass"
        path.write_text(listing(*body, arch=arch))
        paths.append(str(path))
    report = compare_architectures(paths, ptxas=None)
    assert report.faults == ()
    compare_data(report)
    (found,) = report.families
    assert found.level == "sass"
    return found


def otherwise(old: str, new: str) -> tuple[str, ...]:
    """The body with one thing in it replaced; nothing in its place leaves the line out."""
    found = tuple(line.replace(old, new) for line in BODY if new or old not in line)
    assert found != BODY
    return found


def odd(folder: Path, old: str, new: str) -> list[Surprise]:
    """The surprises where the third architecture has something else."""
    return list(family(folder, BODY, BODY, otherwise(old, new)).surprises)


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as raised:
        main(["compare", *words])
    out, err = capsys.readouterr()
    assert isinstance(raised.value.code, int)
    assert "Traceback" not in err
    return raised.value.code, out, err


def test_the_same_code_holds_no_surprise(tmp_path: Path) -> None:
    found = family(tmp_path, BODY, BODY, BODY)
    assert found.surprises == ()
    assert [s.code for s in found.structures] == ["identical"] * 3
    (first, *_) = found.portraits
    assert (first.tensor, first.barriers, first.waits) == (("mma",), 2, 0)
    assert {(str(at), kind): g for (at, kind), g in first.guards.items()} == {
        ("a.py:8", "load"): (1, 1), ("a.py:8", "async"): (1, 1), ("a.py:12", "store"): (1, 1),
    }  # fmt: skip


def test_products_that_are_lost_are_a_surprise(tmp_path: Path) -> None:
    (found,) = odd(tmp_path, "HMMA.16816.F32 R12, R4, R8, R12", "FFMA R12, R4, R8, R12")
    assert (found.kind, found.archs, found.here) == (
        "tensor", ("sm_89",), "no tensor-core instructions",
    )  # fmt: skip
    assert found.usual == "mma on sm_80; mma on sm_86"


def test_the_path_before_the_newest_is_a_surprise(tmp_path: Path) -> None:
    found = family(tmp_path, BODY, BODY, archs=("sm_80", "sm_90a"))
    assert [(s.kind, s.archs, s.usual) for s in found.surprises] == [
        ("tensor", ("sm_90a",), "wgmma, which sm_90a has")
    ]
    newer = otherwise("HMMA.16816.F32 R12, R4, R8, R12", "HGMMA.64x16x16.F32 R12, gdesc[UR8], R12")
    again = family(tmp_path, BODY, newer, archs=("sm_80", "sm_90a"))
    assert [p.tensor for p in again.portraits] == [("mma",), ("wgmma",)]
    assert again.surprises == ()


def test_what_surrounds_products_is_none(tmp_path: Path) -> None:
    around = ("7: UTCATOMSWS.AND URZ, UR4", "UTCBAR [UR4], URZ", "EXIT")
    first, second = family(
        tmp_path, around, ("7: UTCHMMA gdesc[UR4], gdesc[UR6], tmem[UR8], PT", *around),
        archs=("sm_100a", "sm_103a"),
    ).portraits  # fmt: skip
    assert (first.tensor, second.tensor) == ((), ("tcgen05",))


@pytest.mark.parametrize(
    ("old", "new", "line", "here"),
    [
        ("@!P0 LDG", "LDG", "a.py:8", "0 of 1 global load guarded"),
        ("[R2.64], P0", "[R2.64]", "a.py:8", "0 of 1 asynchronous copy guarded"),
        ("@P0 EXIT", "", "a.py:12", "0 of 1 global store guarded"),
    ],
)
def test_a_guard_that_is_lost_is_a_surprise(
    tmp_path: Path, old: str, new: str, line: str, here: str
) -> None:
    (found,) = odd(tmp_path, old, new)
    assert (found.kind, found.archs, str(found.where)) == ("guards", ("sm_89",), line)
    assert found.usual == "all on the others"
    assert found.here == here


def test_the_branch_of_a_loop_is_no_guard(tmp_path: Path) -> None:
    loop = (".L_x_0:", "8: LDG.E R4, desc[UR4][R2.64]", "9: @P0 BRA `(.L_x_0)", "EXIT")
    behind = ("7: @P1 BRA `(.L_x_1)", *loop[:3], ".L_x_1:", "EXIT")
    first, second, _ = family(tmp_path, loop, behind, behind).portraits
    assert [g.word for g in first.guards.values()] == ["none"]
    assert [g.word for g in second.guards.values()] == ["all"]


def test_a_barrier_that_is_lost_is_a_surprise(tmp_path: Path) -> None:
    (found,) = odd(tmp_path, "9: BAR.SYNC.DEFER_BLOCKING 0x0", "")
    assert (found.kind, found.archs, found.here, found.usual) == (
        "barriers", ("sm_89",), "1 CTA barrier", "2",
    )  # fmt: skip


def test_copies_that_are_lost_are_a_surprise(tmp_path: Path) -> None:
    found = odd(tmp_path, "LDGSTS.E [R9], desc[UR4][R2.64], P0", "@P0 LDG.E R5, desc[UR4][R2.64]")
    assert [(s.kind, s.archs, s.here) for s in found] == [
        ("copies", ("sm_89",), "no asynchronous copies")
    ]


def test_spills_are_counted_in_the_code(tmp_path: Path) -> None:
    spilling = (*BODY[:4], "9: STL.64 [R1], R4", *BODY[4:-1], "LDL.64 R4, [R1]", "EXIT")
    (spill,) = family(tmp_path, BODY, BODY, spilling).surprises
    assert (spill.kind, spill.archs) == ("spills", ("sm_89",))
    assert spill.here == "8 B stored, 8 B loaded; at a.py:9 (8 B stored), a.py:12 (8 B loaded)"
    assert spill.usual == "none on sm_80, sm_86"


def test_what_a_rule_finds_on_one_architecture_is_a_surprise(tmp_path: Path) -> None:
    spilling = (
        ".L_x_0:", "9: STL.64 [R1], R4", "LDL.64 R4, [R1]", "@P0 BRA `(.L_x_0)", *BODY,
    )  # fmt: skip
    paths = []
    for arch, body in zip(ARCHS, (BODY, BODY, spilling), strict=True):
        paths.append(str(tmp_path / f"{arch}.sass"))
        Path(paths[-1]).write_text(listing(*body, arch=arch))
    (found,) = compare_architectures(paths, ptxas=None, opinions=opinions()).families
    (told,) = [s for s in found.surprises if s.kind == "verdicts"]
    assert (told.rule, told.archs, told.usual) == ("RES106", ("sm_89",), "no finding")


def test_machine_code_without_the_products_of_its_ptx_is_a_surprise(tmp_path: Path) -> None:
    (kernel,) = load([fixture("int4_gemm", "sm_80")]).kernels
    ptx = portrait(kernel, None, None)
    (tmp_path / "k.sass").write_text(listing(*BODY))
    (other,) = load([str(tmp_path / "k.sass")]).kernels
    having = portrait(other, None, None).profile
    assert surprises((ptx._replace(machine=having),)) == []
    (told,) = surprises((ptx._replace(machine=having._replace(tensor=type(having.tensor)())),))
    assert (told.kind, told.here) == ("tensor", "no tensor-core instructions in its machine code")
    assert told.usual == "mma, which its PTX has"


def test_a_dump_holds_its_architectures_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    bare = tuple(line.partition(": ")[2] or line for line in BODY)
    path = tmp_path / "all.sass"
    path.write_text(
        dump(
            ("sm_80", "k", bare), ("sm_90a", "k", (*bare[:4], *bare[5:])), ("sm_80", "other", bare)
        )
    )
    code, out, _ = run(capsys, str(path), "--fail-on", "surprises")
    assert code == 1
    assert "k, machine code: sm_80, sm_90a" in out
    assert re.search(r"instructions +10 +9\n", out)
    assert "barriers: sm_90a: 1 CTA barrier (usual: 2)" in out
    assert f"note: sm_80: {path} names no lines of a source" in out
    assert f"other: only on sm_80, {path}" in out


def test_a_fat_binary_holds_its_architectures_side_by_side(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parts = [(90, assembled("leaky_relu").cubin), (80, assembled("leaky_relu", "sm_80").cubin)]
    path = tmp_path / "app.fatbin"
    path.write_bytes(fatbin(*parts))
    code, out, _ = run(capsys, str(path), "--format", "json", "--no-verdicts")
    assert code == 0
    (told,) = valid("compare", out)["kernels"]
    assert (told["kernel"], told["level"]) == ("leaky_relu_kernel", "sass")
    assert [p["arch"] for p in told["architectures"]] == ["sm_80", "sm_90a"]
    for build, arch in zip(told["architectures"], ("sm_80", "sm_90"), strict=True):
        (known,) = assembled("leaky_relu", arch).resources.values()
        assert known.registers is not None
        assert build["resources"]["registers"] == {
            "value": known.registers.value, "source": "cubin",
        }  # fmt: skip
        assert build["occupancy"]["ctas"] > 0
        assert all(g["guarded"] == g["total"] for g in build["guards"])
        assert {g["place"]["line"] for g in build["guards"]} == {14, 16}


def test_ptx_among_machine_code_becomes_machine_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = cubin(tmp_path, "leaky_relu", "sm_80")
    words = (fixture("leaky_relu"), other, "--no-verdicts")
    code, out, _ = run(capsys, *words)
    assert code == 0
    assert "leaky_relu_kernel, machine code: sm_80, sm_90a" in out
    assert (
        f"sm_90a: machine code is compared, since others are no PTX: {fixture('leaky_relu')}" in out
    )
    code, out, _ = run(capsys, *words, "--no-exact")
    assert code == 2
    assert "not compared: leaky_relu_kernel (sm_90a): " in out
    assert f"leaky_relu_kernel: only on sm_80, {other}" in out


def test_a_cubin_that_was_cut_off_leaves_the_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for arch in ("sm_80", "sm_90"):
        cubin(tmp_path, "leaky_relu", arch, stem=arch)
    broken = tmp_path / "sm_86.cubin"
    broken.write_bytes(assembled("leaky_relu", "sm_80").cubin[:3000])
    code, out, _ = run(capsys, str(tmp_path), "--no-verdicts")
    assert code == 2
    assert f"not compared: {broken}: the cubin is damaged or cut off" in out
    assert "1 kernel compared; 0 surprises" in out


def test_a_page_draws_the_graphs_of_machine_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "all.sass"
    path.write_text(dump(("sm_80", "k", ("@P0 EXIT", "NOP", "EXIT")), ("sm_86", "k", ("EXIT",))))
    _, out, _ = run(capsys, str(path), "--format", "html", "--no-verdicts")
    tags: list[str] = []

    class Reader(HTMLParser):
        def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
            tags.append(tag)

    Reader().feed(out)
    assert tags.count("svg") == 2
    assert "<h2>k, machine code</h2>" in out
    assert out.count("EXIT") >= 3
