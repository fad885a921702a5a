"""`ptxlint show pressure`: counts, lines, levels and sources, in text, JSON and SVG."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import click
import pytest

from ptxlint.cli.show import command
from ptxlint.cli.show_pressure import show_pressure
from ptxlint.frontends import toolkit
from ptxlint.frontends.toolkit import ToolError, assemble, disassemble, find_assembler
from ptxlint.reporters.stretches import folded

FIXTURES = Path(__file__).parents[2] / "fixtures" / "ptx"
SPILLS = FIXTURES / "sm_90" / "flash_fwd_spill.ptx"
NORM = FIXTURES / "sm_90" / "layer_norm_bwd.ptx"
SVG = "{http://www.w3.org/2000/svg}"
LOOP = """\
.version 8.0
.target sm_90
.address_size 64
.file 1 "a<b&c.py"
.visible .entry k(.param .u64 out, .param .u32 n)
.reqntid 128
{
    .reg .pred %p<2>;
    .reg .b32 %r<5>;
    .reg .b64 %rd<2>;
    .loc 1 10 1
    ld.param.u64 %rd1, [out];
    .loc 1 11 1
    mov.u32 %r1, 0;
    ld.param.u32 %r2, [n];
$again:
    .loc 1 12 1
    ld.global.u32 %r3, [%rd1];
    ld.global.u32 %r4, [%rd1+4];
    .loc 1 13 1
    st.global.v2.u32 [%rd1], {%r3, %r4};
    .loc 1 14 1
    add.u32 %r1, %r1, 1;
    setp.lt.u32 %p1, %r1, %r2;
    @%p1 bra $again;
    ret;
}
"""
LOG = """\
ptxas info    : Compiling entry function 'k' for 'sm_90'
ptxas info    : Function properties for k
    0 bytes stack frame, 8 bytes spill stores, 4 bytes spill loads
ptxas info    : Used 72 registers, used 1 barriers
"""


def show(*arguments: str | Path) -> str:
    """What is printed; the options are those of `show pressure`."""
    words = ["pressure", *map(str, arguments)]
    printed: list[str] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("ptxlint.cli.show.write", lambda text, _: printed.append(text))
        assert command.main(words, standalone_mode=False) == 0
    return printed[0]


def of_function(*arguments: str | Path) -> dict[str, Any]:
    (found,) = json.loads(show(*arguments, "--format", "json"))["functions"]
    return dict(found)


@pytest.fixture
def loop(tmp_path: Path) -> Path:
    path = tmp_path / "k.ptx"
    path.write_text(LOOP)
    (tmp_path / "k.log").write_text(LOG)
    return path


@pytest.fixture(scope="module")
def assembler() -> toolkit.Assembler:
    try:
        return find_assembler((9, 4))
    except ToolError as error:
        pytest.skip(str(error))


def test_the_text_has_counts_lines_levels_and_holders(loop: Path) -> None:
    assert show(loop).splitlines() == [
        "k sm_90: live 32-bit registers in the PTX, an estimate of what the assembler needs",
        "  peak       6 behind line 19 (a<b&c.py:12)",
        "  kernel     72 registers, 8 bytes of spill stores, 4 bytes of spill loads, 1 barrier "
        "(log k.log)",
        "  occupancy  7 CTAs of 128 threads an SM, 44 % of its warps; registers admit no more",
        "",
        "     line  loop  live  0                                               72  source",
        "       12           2  █" + " " * 20 + "┊     ┊    ┊     ┊    ┊     │  a<b&c.py:10",
        "    14-15           4  ██▒" + " " * 18 + "┊     ┊    ┊     ┊    ┊     │  a<b&c.py:11",
        "  > 18-19  |        6  ███▒" + " " * 17 + "┊     ┊    ┊     ┊    ┊     │  a<b&c.py:12",
        "       21  |        4  ███" + " " * 18 + "┊     ┊    ┊     ┊    ┊     │  a<b&c.py:13",
        "    23-25  |        4  ███" + " " * 18 + "┊     ┊    ┊     ┊    ┊     │  a<b&c.py:14",
        "       26           0  " + " " * 21 + "┊     ┊    ┊     ┊    ┊     │  a<b&c.py:14",
        "",
        "  █ fewest and ▒ most live in a stretch, > the peak, | in a loop",
        "  │ 72 registers a thread (log k.log)",
        "  ┊ 7 CTAs an SM up to 72 registers, 8 CTAs up to 64, 9 CTAs up to 56, 10 CTAs up to 48, "
        "12 CTAs up to 40, 16 CTAs up to 32",
        "",
        "At the peak registers hold values from:",
        "     2  a<b&c.py:10",
        "     2  a<b&c.py:11",
        "     2  a<b&c.py:12",
    ]


def test_the_data_have_each_instruction(loop: Path) -> None:
    found = of_function(loop)
    assert [(i["line"], i["live"]) for i in found["instructions"]] == [
        (12, 2), (14, 3), (15, 4), (18, 5), (19, 6), (21, 4), (23, 4), (24, 4), (25, 4), (26, 0),
    ]  # fmt: skip
    assert found["instructions"][3]["source"] == {"path": "a<b&c.py", "line": 12}
    assert (found["level"], found["peak"]["line"], found["peak"]["live"]) == ("ptx", 19, 6)
    assert found["resources"]["registers"] == {
        "value": 72, "source": "assembler log", "said": "log k.log"
    }  # fmt: skip
    assert found["occupancy"] == {
        "ctas": 7, "warps": 28, "fraction": 0.4375, "limited_by": ["registers"]
    }  # fmt: skip
    assert [(v["kind"], v["registers"]) for v in found["levels"]] == [
        ("registers", 72), ("step", 72), ("step", 64), ("step", 56), ("step", 48), ("step", 40),
        ("step", 32),
    ]  # fmt: skip
    assert [h["registers"] for h in found["held"]] == [2, 2, 2]


def test_the_picture_is_xml_that_says_what_it_shows(loop: Path) -> None:
    root = ElementTree.fromstring(show(loop, "--format", "svg"))
    assert root.tag == f"{SVG}svg"
    assert root.get("role") == "img"
    said = {e.get("id"): e.text or "" for e in root if e.tag in (f"{SVG}title", f"{SVG}desc")}
    assert (root.get("aria-labelledby") or "").split() == list(said)
    assert said["pressure-title"].startswith("k sm_90: live 32-bit registers in the PTX")
    assert "Peak: 6 behind line 19 (a<b&c.py:12)" in said["pressure-desc"]
    assert "72 registers" in said["pressure-desc"]
    lines = {line[0].text: float(line.get("y1", "")) for line in root.iter(f"{SVG}line")}
    assert len(lines) == 7
    # 72 registers are at the top, 64 a ninth of the height below.
    assert lines["72 registers a thread (log k.log)"] == 116.0
    assert lines["8 CTAs an SM up to 64 registers"] == pytest.approx(116 + 300 / 9, abs=0.1)
    (peak,) = root.iter(f"{SVG}circle")
    assert float(peak.get("cy", "")) == pytest.approx(116 + 300 * 66 / 72, abs=0.1)
    assert float(peak.get("cx", "")) == pytest.approx(60 + 800 * 4 / 10)
    texts = [e.text or "" for e in root.iter(f"{SVG}text")]
    assert "    2  a<b&c.py:12  " in texts
    bands = [r[0].text for r in root.iter(f"{SVG}rect") if len(r)]
    assert bands[2] == "18 to 19, in a loop: 5 to 6 live; a<b&c.py:12"


def test_a_long_kernel_has_few_rows_and_no_row_of_two_loops() -> None:
    text = show(SPILLS, "--no-exact")
    rows = re.findall(r"^  [> ] +[\d-]+  [ |]{4} ", text, re.MULTILINE)
    assert 30 <= len(rows) <= 40
    assert "  peak       497 behind line 1239 (flash_attention_dot.py:38)\n" in text
    assert "  kernel     registers are not exact: no assembler was run; 81,920 bytes of" in text
    assert "   256  flash_attention_dot.py:42  scores = tl.dot(q, tl.trans(k)) * qk_scale" in text
    held = [
        int(n) for n in re.findall(r"^ +(\d+)  (?:flash|no known|\d+ more)", text, re.MULTILINE)
    ]
    assert sum(held) == 497


# Counts and registers as in docs/rules-res101.md.
@pytest.mark.parametrize(
    ("arch", "peak", "registers"), [("sm_80", 242, 176), ("sm_90", 169, 140), ("sm_120", 242, 179)]
)
def test_an_assembler_is_run_by_default(
    arch: str, peak: int, registers: int, assembler: object
) -> None:
    found = of_function(FIXTURES / arch / "matmul_dot_fp16_large.ptx")
    assert found["peak"]["live"] == peak
    assert found["resources"]["registers"]["value"] == registers
    assert re.fullmatch(r"ptxas \d+\.\d run here", found["resources"]["registers"]["said"])
    assert found["resources"]["dynamic_shared"]["said"] == "Triton's metadata"
    # Two warps of 176 registers fit a quarter of an SM's 65,536, three of 140; a CTA has eight.
    assert found["occupancy"]["ctas"] == 1


def test_that_there_is_no_assembler_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(toolkit, "_candidates", list)
    path = FIXTURES / "sm_90" / "gelu.ptx"
    text = show(path)
    assert "  kernel     registers are not exact: no ptxas is found: install Triton" in text
    assert "  occupancy  not known without the registers of an assembler\n" in text
    found = of_function(path)
    assert found["note"].startswith("registers are not exact: no ptxas is found")
    assert "registers" not in found["resources"]


def test_an_assembler_that_is_named_and_missing_is_a_fault_and_the_rest_is_drawn(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text, status = show_pressure(str(NORM), None, "text", "/no/such/ptxas")
    assert status == 2
    assert "registers are not exact: /no/such/ptxas: there is no such program" in text
    assert "layer_norm.py:" in text
    assert capsys.readouterr().err == "Error: /no/such/ptxas: there is no such program\n"


def test_a_cubin_beside_that_cannot_be_read_is_told(
    assembler: toolkit.Assembler, tmp_path: Path
) -> None:
    (tmp_path / "k.ptx").write_text(NORM.read_text())
    (tmp_path / "k.cubin").write_bytes(b"\x7fELF")
    text = show(tmp_path / "k.ptx")
    assert re.search(r"67 registers, .*run here\); .*k\.cubin: the cubin is damaged", text)


def test_machine_code_without_lines_says_so(assembler: toolkit.Assembler, tmp_path: Path) -> None:
    text = re.sub(r"^\s*\.(loc|file)\b.*$", "", NORM.read_text(), flags=re.MULTILINE)
    (tmp_path / "k.cubin").write_bytes(assemble(text, "sm_90a", assembler).cubin)
    assert "the machine code names no lines of a source" in show(tmp_path / "k.cubin")


def test_machine_code_has_registers_of_the_hardware(
    assembler: toolkit.Assembler, tmp_path: Path
) -> None:
    cubin = assemble(NORM.read_text(), "sm_90a", assembler).cubin
    (tmp_path / "k.cubin").write_bytes(cubin)
    found = of_function(tmp_path / "k.cubin")
    assert (found["level"], found["resources"]["registers"]["said"]) == ("sass", "cubin k.cubin")
    assert found["resources"]["registers"]["value"] == 67
    assert 50 < found["peak"]["live"] <= 67
    assert sum(h["registers"] for h in found["held"]) == found["peak"]["live"]
    assert found["held"][0]["source"]["path"].endswith("layer_norm.py")
    # How much shared memory a launch asks for is told beside, if at all.
    assert found["occupancy"] is None
    (tmp_path / "k.json").write_text(NORM.with_suffix(".json").read_text())
    assert of_function(tmp_path / "k.cubin")["occupancy"]["ctas"] == 7
    text = show(tmp_path / "k.cubin")
    assert "  peak       " in text
    assert re.search(r"behind address [0-9a-f]{4} \(layer_norm\.py:\d+\)", text)
    (tmp_path / "l.sass").write_text(disassemble(cubin, "-c", "-gi"))
    listed = of_function(tmp_path / "l.sass")
    assert listed["peak"] == found["peak"]
    assert listed["note"].startswith("registers are not known: a listing")


def test_a_picture_is_of_one_kernel() -> None:
    path = FIXTURES.parent / "ptx-nvcc" / "sm_90" / "local_arrays.ptx"
    with pytest.raises(click.ClickException, match="an SVG shows one function; name one of: "):
        show(path, "--format", "svg", "--no-exact")
    assert "<svg" in show(path, "moving_average", "--format", "svg", "--no-exact")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["cfg", str(NORM), "--no-exact"], "--ptxas and --no-exact are for `show pressure` only"),
        (["pressure", str(NORM), "--format", "dot"], "--format dot is for `show cfg` only"),
        (["pressure", str(NORM), "--line", "3"], "--line is for `show facts` only"),
    ],
)
def test_options_that_do_not_fit(arguments: list[str], words: str) -> None:
    with pytest.raises(click.UsageError, match=re.escape(words)):
        command.main(arguments, standalone_mode=False)


def test_stretches_cover_the_program_and_part_at_loops() -> None:
    live = [3, 1, 4, 1, 5, 9, 2, 6, 5, 3]
    keys = [(-1, 1), (-1, 1), (-1, 2), (4, 3), (4, 3), (4, 4), (4, 5), (4, 5), (-1, 6), (-1, 6)]
    whole = folded(live, keys, 40)
    assert [(s.start, s.end) for s in whole] == [(0, 2), (2, 3), (3, 5), (5, 6), (6, 8), (8, 10)]
    assert [(s.low, s.high) for s in whole] == [(1, 3), (4, 4), (1, 5), (9, 9), (2, 6), (3, 5)]
    assert [(s.start, s.end) for s in folded(live, keys, 3)] == [(0, 3), (3, 8), (8, 10)]
    assert [(s.start, s.end) for s in folded(live, keys, 2)] in (
        [(0, 8), (8, 10)],
        [(0, 3), (3, 10)],
    )
    assert folded([], [], 40) == []
