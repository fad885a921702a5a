"""`ptxlint compare`: one kernel over architectures, and what is otherwise on one of them."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from ptxlint.cfg.build import build
from ptxlint.cli import main
from ptxlint.cli.comparing import opinions
from ptxlint.comparison.architectures import Family, compare_architectures, group
from ptxlint.comparison.portrait import portrait
from ptxlint.comparison.records import load
from ptxlint.comparison.report import NothingError
from ptxlint.comparison.surprises import Surprise, usual
from ptxlint.frontends.discovery import Input
from ptxlint.frontends.ptx import parse
from ptxlint.frontends.toolkit import ToolError, assemble, find_assembler
from ptxlint.structure.graph import parting
from tests.comparison.schemas import compare_data, valid

ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "fixtures" / "ptx"
ARCHS = ("sm_80", "sm_86", "sm_89", "sm_90", "sm_100", "sm_120")


def paths(name: str, *archs: str) -> list[str]:
    return [str(FIXTURES / arch / f"{name}.ptx") for arch in archs or ARCHS]


def family(name: str, *archs: str, ptxas: str | None = None, verdicts: bool = False) -> Family:
    said = opinions() if verdicts else None
    report = compare_architectures(paths(name, *archs), ptxas=ptxas, opinions=said)
    assert report.faults == ()
    compare_data(report)
    (found,) = report.families
    return found


def of_kind(found: Family, kind: str) -> list[Surprise]:
    return [s for s in found.surprises if s.kind == kind]


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as raised:
        main(["compare", *words])
    out, err = capsys.readouterr()
    code = raised.value.code
    assert isinstance(code, int)
    assert "Traceback" not in err
    return code, out, err


def needs_assembler() -> None:
    try:
        find_assembler((8, 8))
    except ToolError as error:
        pytest.skip(str(error))


def edited(folder: Path, name: str, arch: str, old: str, new: str, most: int = 0) -> str:
    """A copy of a fixture that is otherwise on one architecture."""
    text = (FIXTURES / arch / f"{name}.ptx").read_text()
    found, times = re.subn(old, new, text, count=most)
    assert times
    target = folder / arch / f"{name}.ptx"
    target.parent.mkdir(exist_ok=True)
    target.write_text(found)
    return str(target)


def with_edit(folder: Path, name: str, arch: str, old: str, new: str, most: int = 0) -> Family:
    changed = edited(folder, name, arch, old, new, most)
    others = paths(name, *(a for a in ARCHS if a != arch))
    (found,) = compare_architectures([*others, changed], ptxas=None).families
    return found


@pytest.mark.parametrize("name", ["matmul_dot_fp16", "matmul_dot_bf16", "matmul_dot_tf32"])
def test_products_run_on_what_each_architecture_has(name: str) -> None:
    found = family(name)
    assert found.archs == ("sm_80", "sm_86", "sm_89", "sm_90a", "sm_100a", "sm_120a")
    assert [p.tensor for p in found.portraits] == [
        ("mma",), ("mma",), ("mma",), ("wgmma",), ("tcgen05",), ("mma",),
    ]  # fmt: skip
    assert of_kind(found, "tensor") == []


def test_the_path_before_the_newest_is_a_surprise() -> None:
    found = of_kind(family("int4_gemm"), "tensor")
    assert [(s.archs, s.here, s.usual) for s in found] == [
        (("sm_90a",), "mma", "wgmma, which sm_90a has"),
        (("sm_100a",), "mma", "tcgen05, which sm_100a has"),
    ]


def test_products_without_tensor_cores_are_a_surprise(tmp_path: Path) -> None:
    (found,) = of_kind(
        with_edit(tmp_path, "matmul_dot_fp16", "sm_86", r"\n\tmma\.sync[^;]*;", "\n"), "tensor"
    )
    assert found.archs == ("sm_86",)
    assert found.here == "no tensor-core instructions"
    assert "mma on sm_80" in found.usual


def test_a_guard_that_one_architecture_lacks_is_told_with_its_line(tmp_path: Path) -> None:
    assert of_kind(family("softmax"), "guards") == []
    changed = with_edit(tmp_path, "softmax", "sm_90", r"@%p1 (ld\.global)", r"\1", 1)
    (found,) = of_kind(changed, "guards")
    assert found.archs == ("sm_90a",)
    assert str(found.where) == "fixtures/kernels/softmax.py:15"
    assert found.usual == "all on the others"
    assert re.fullmatch(r"\d of \d global loads? guarded", found.here)


def test_copies_with_a_size_at_run_time_count_as_guarded() -> None:
    found = family("matmul_dot_tf32", "sm_80", "sm_90")
    for p in found.portraits:
        copies = [g for (_, kind), g in p.guards.items() if kind == "async"]
        assert sum(g.total for g in copies) == 96
        assert all(g.guarded == g.total for g in copies)


def test_a_barrier_that_one_architecture_lacks_is_a_surprise(tmp_path: Path) -> None:
    assert of_kind(family("softmax"), "barriers") == []
    changed = with_edit(tmp_path, "softmax", "sm_100", r"\n\tbar\.sync[^;]*;", "\n", 1)
    (found,) = of_kind(changed, "barriers")
    assert (found.archs, found.here, found.usual) == (("sm_100a",), "2 CTA barriers", "3")


def test_barriers_are_those_of_a_cta() -> None:
    code = (
        "bar.sync 0;\nbar.warp.sync -1;\nbar.arrive 1, 64;\nbarrier.sync 1, 64;\n"
        "bar.red.popc.u32 %r1, 0, %p1;\nbarrier.cluster.arrive;\nbarrier.cluster.wait;\nret;"
    )
    text = body(".reg .b32 %r<2>;\n" + code).replace("sm_80", "sm_90")
    (kernel,) = load([Input("k.ptx", text)]).kernels
    found = portrait(kernel, None, None)
    assert found.barriers == 4


def test_barriers_of_other_kinds_of_products_are_not_compared(tmp_path: Path) -> None:
    found = family("flash_fwd_spill", "sm_80", "sm_90")
    assert [p.barriers for p in found.portraits] == [40, 8]
    assert of_kind(found, "barriers") == []
    changed = edited(tmp_path, "matmul_dot_fp16", "sm_90", r"\n\tbar\.sync[^;]*;", "\n")
    (found,) = compare_architectures(
        [*paths("matmul_dot_fp16", "sm_80"), changed], ptxas=None
    ).families
    (surprise,) = of_kind(found, "barriers")
    assert (surprise.archs, surprise.here) == (("sm_90a",), "no barrier at all")


def test_copies_that_are_not_asynchronous_on_one_architecture(tmp_path: Path) -> None:
    changed = with_edit(tmp_path, "wrapped_matmul", "sm_86", r"cp\.async\.c[ag][^;]*;", ";")
    (found,) = of_kind(changed, "copies")
    assert found.archs == ("sm_86",)


def test_spills_are_exact_and_told_on_each_architecture() -> None:
    needs_assembler()
    found = family("flash_fwd_spill", "sm_80", "sm_90", ptxas="")
    (first, second) = of_kind(found, "spills")
    assert (first.archs, second.archs) == (("sm_80",), ("sm_90a",))
    assert first.usual == "all of them spill"
    file = "fixtures/kernels/flash_attention_dot.py"
    assert second.here == (
        f"2,232 B stored, 2,200 B loaded; most at {file}:42 (1,172 B stored, 680 B loaded), "
        f"{file}:46 (272 B stored, 484 B loaded), {file}:52 (8 B stored, 424 B loaded)"
    )
    for p in found.portraits:
        assert sum(line.stored + line.loaded for line in p.spill_lines) == p.spilled
        assert p.spilled is not None
        assert p.spilled > 1000
        assert p.resources.spill_stores is not None
        assert p.resources.spill_stores.source == "assembler log"
        assert p.residency is not None
        assert 0 < p.residency.fraction < 0.5
    assert of_kind(family("softmax", "sm_80", "sm_90", ptxas=""), "spills") == []


def test_an_architecture_that_spills_alone_is_the_odd_one_out(tmp_path: Path) -> None:
    for arch in ("sm_80", "sm_90"):
        folder = tmp_path / arch
        folder.mkdir()
        shutil.copy(FIXTURES / arch / "softmax.ptx", folder)
        bytes_ = 16 if arch == "sm_90" else 0
        (folder / "softmax.log").write_text(
            f"ptxas info    : Compiling entry function 'softmax_kernel' for '{arch}'\n"
            "ptxas info    : Function properties for softmax_kernel\n"
            f"    {bytes_} bytes stack frame, {bytes_} bytes spill stores, {bytes_} bytes spill "
            "loads\nptxas info    : Used 40 registers, used 1 barriers\n"
        )
    (found,) = compare_architectures([str(tmp_path)], ptxas=None).families
    (surprise,) = of_kind(found, "spills")
    assert (surprise.archs, surprise.here, surprise.usual) == (
        ("sm_90a",), "16 B stored, 16 B loaded", "none on sm_80",
    )  # fmt: skip


def test_a_verdict_that_one_architecture_gets_is_told() -> None:
    found = family("matmul_dot_fp16", verdicts=True)
    (surprise,) = of_kind(found, "verdicts")
    assert (surprise.archs, surprise.rule, surprise.usual) == (("sm_100a",), "MSK202", "proved")
    assert surprise.here.startswith("open: ")
    assert of_kind(family("softmax", verdicts=True), "verdicts") == []


def test_a_defect_on_one_architecture_is_told_at_its_line(tmp_path: Path) -> None:
    # Padding of 0 in place of -inf, on one architecture alone.
    changed = edited(tmp_path, "softmax", "sm_90", "-8388608|0xff800000", "0")
    report = compare_architectures(
        [*paths("softmax", "sm_80", "sm_86", "sm_120"), changed], ptxas=None, opinions=opinions()
    )
    found = [s for s in report.families[0].surprises if s.rule == "MSK201"]
    assert [(s.archs, s.usual) for s in found] == [(("sm_90a",), "proved")]
    assert found[0].here.startswith("refuted: ")
    assert str(found[0].where) == "fixtures/kernels/softmax.py:15"


def test_structure_says_where_control_flow_parts() -> None:
    found = family("matmul_dot_fp16")
    assert [(s.code, s.graph) for s in found.structures] == [
        ("identical", "same"), ("different", "same"), ("different", "same"), ("different", "same"),
        ("different", "different"), ("different", "same"),
    ]  # fmt: skip
    place = found.structures[4].parting
    assert place is not None
    assert place.theirs is not None
    assert str(place.theirs[1]) == "fixtures/kernels/matmul_dot.py:37"
    lines = found.structures[3].parting
    assert lines is not None
    assert ("fixtures/kernels/matmul_dot.py:41", "tensor", 16, 2) in [
        (str(where), name, there, here) for where, name, there, here in lines.lines
    ]
    assert {s.code for s in family("argmax").structures} == {"identical"}
    assert [s.code for s in family("softmax", "sm_80", "sm_86").structures] == [
        "identical", "order",
    ]  # fmt: skip


def body(code: str) -> str:
    return (
        ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry k()\n{\n.reg .pred %p<3>;\n"
        f"{code}\n}}\n"
    )


def test_graphs_part_at_the_first_block_that_leads_elsewhere() -> None:
    loop = "a:\n@%p1 bra b;\nbra a;\nb:\n@%p2 bra a;\nret;"
    first, same, other = (
        build(parse(body(code)).kernels()[0])
        for code in (loop, loop, "a:\n@%p1 bra b;\nbra a;\nb:\n@%p2 bra b;\nret;")
    )
    assert parting(first, same) is None
    assert parting(first, other) == (2, 2)


def test_what_is_usual_is_what_most_have_then_the_better() -> None:
    assert usual({"a": 1, "b": 2, "c": 2}, lambda n: n) == 2
    assert usual({"a": 1, "b": 2}, lambda n: n) == 1


def test_builds_of_one_name_are_told_apart_by_file_then_by_triton_ir(tmp_path: Path) -> None:
    report = compare_architectures(
        [str(FIXTURES / "sm_80"), str(FIXTURES / "sm_90")], kernels=("softmax_kernel",), ptxas=None
    )
    for found in report.families:
        first, second = (Path(p.kernel.path).name for p in found.portraits)
        assert first == second
        assert found.notes == ()
    assert {f.name for f in report.families} >= {"softmax_kernel (softmax_buggy.ptx)"}
    order = {"sm_80": ("softmax", "softmax_buggy"), "sm_90": ("softmax_buggy", "softmax")}
    for arch, names in order.items():
        for at, name in enumerate(names):
            stem = tmp_path / f"{arch}_{at}"
            shutil.copy(FIXTURES / arch / f"{name}.ptx", f"{stem}.ptx")
            Path(f"{stem}.ttir").write_text(name)
    found = group(load([str(tmp_path)]).kernels)
    assert sorted([Path(k.path).stem for k in members] for members, _ in found.groups) == [
        ["sm_80_0", "sm_90_1"], ["sm_80_1", "sm_90_0"],
    ]  # fmt: skip
    for file in tmp_path.glob("*.ttir"):
        file.unlink()
    found = group(load([str(tmp_path)]).kernels)
    assert [[Path(k.path).stem for k in members] for members, _ in found.groups] == [
        ["sm_80_0", "sm_90_0"], ["sm_80_1", "sm_90_1"],
    ]  # fmt: skip
    assert all("by the order of their files" in note for _, note in found.groups)


def test_cubins_beside_the_files_are_used(tmp_path: Path) -> None:
    needs_assembler()
    for arch in ("sm_80", "sm_89"):
        folder = tmp_path / arch
        folder.mkdir()
        text = (FIXTURES / arch / "matmul_dot_fp16.ptx").read_text()
        (folder / "k.ptx").write_text(text)
        (folder / "k.cubin").write_bytes(assemble(text, arch, find_assembler((8, 8))).cubin)
    (found,) = compare_architectures([str(tmp_path)], ptxas=None).families
    for p in found.portraits:
        assert p.resources.registers is not None
        assert p.resources.registers.source == "cubin"
        assert p.machine is not None
        assert set(p.machine.tensor) == {"HMMA"}


def test_surprises_fail_if_they_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    words = [*paths("int4_gemm"), "--no-exact", "--no-verdicts"]
    assert run(capsys, *words)[0] == 0
    code, out, _ = run(capsys, *words, "--fail-on", "tensor")
    assert code == 1
    assert "fails on tensor: int4_gemm_kernel on sm_90a" in out
    assert run(capsys, *words, "--fail-on", "surprises")[0] == 1
    assert run(capsys, *words, "--fail-on", "guards,barriers")[0] == 0
    # Nobody says whether it spills.
    assert run(capsys, *words, "--fail-on", "spills,guards")[0] == 2
    code, _, err = run(capsys, *words, "--fail-on", "speed")
    assert code == 2
    assert "'speed' is none of surprises, spills, tensor" in err


def test_formats_say_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    words = [*paths("matmul_dot_fp16"), "--no-exact", "--fail-on", "verdicts"]
    _, text, _ = run(capsys, *words)
    assert "surprise: verdict MSK202: sm_100a: open: " in text
    code, out, _ = run(capsys, *words, "--format", "json")
    assert code == 1
    (kernel,) = valid("compare", out)["kernels"]
    assert [a["tensor"] for a in kernel["architectures"]][2:5] == [
        {"mma": 16}, {"wgmma": 2}, {"tcgen05": 4},
    ]  # fmt: skip
    assert [(s["kind"], s["archs"], s["fails"]) for s in kernel["surprises"]] == [
        ("verdicts", ["sm_100a"], True)
    ]
    assert kernel["architectures"][4]["graph"] == "different"
    _, out, _ = run(capsys, *words, "--format", "markdown")
    assert "### ptxlint compare: **fails**" in out
    assert "| tensor cores | mma 16 | mma 16 | mma 16 | wgmma 2 | tcgen05 4 | mma 16 |" in out


class Page(HTMLParser):
    """What a page asks for, which ids it gives, and whether all that is opened is closed."""

    VOID = frozenset(("meta", "br"))

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.graphs = 0

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in self.VOID:
            self.open.append(tag)
        self.graphs += tag == "svg"
        for name, value in attrs:
            if name == "id":
                self.ids.append(value or "")
            elif name in ("src", "href", "xlink:href"):
                self.links.append(value or "")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Opened and closed at once."""

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_is_whole_and_needs_nothing_from_elsewhere(tmp_path: Path) -> None:
    changed = edited(tmp_path, "matmul_dot_fp16", "sm_90", "matmul_dot_kernel", "matmul_dot_kernel")
    target = tmp_path / "page.html"
    words = [*paths("matmul_dot_fp16", "sm_80", "sm_100"), changed, "--no-exact", "--format",
             "html", "--output", str(target)]  # fmt: skip
    with pytest.raises(SystemExit) as raised:
        main(["compare", *words])
    assert raised.value.code == 0
    text = target.read_text()
    page = Page()
    page.feed(text)
    assert page.open == []
    assert page.links == []
    assert "@import" not in text
    assert page.graphs == 3
    assert len(page.ids) == len(set(page.ids)) == 3
    for number in page.ids:
        assert f"url(#{number})" in text
    assert "MSK202" in text


def test_what_cannot_be_compared_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, err = run(capsys, *paths("softmax", "sm_80"))
    assert code == 2
    assert "all is for sm_80, and a comparison needs two architectures" in err
    # What cannot be read may be the other one.
    (tmp_path / "k.cubin").write_bytes(b"\x7fELF\x02\x01\x01" + bytes(11) + b"\xbe\0")
    code, _, err = run(capsys, *paths("softmax", "sm_80"), str(tmp_path / "k.cubin"))
    assert code == 2
    assert f"two architectures; not read: {tmp_path}/k.cubin: the cubin is damaged or cut" in err
    code, _, err = run(capsys, *paths("softmax", "sm_80"), *paths("argmax", "sm_90"))
    assert code == 2
    assert "sm_80: softmax_kernel; sm_90a: argmax_kernel" in err
    code, _, err = run(capsys, *paths("softmax"), "--arch", "sm_75")
    assert code == 2
    assert "nothing is for sm_75; there are sm_80, sm_86" in err
    code, _, err = run(capsys, *paths("softmax"), "--arch", "volta")
    assert code == 2
    assert "--arch: 'volta' is no architecture" in err
    code, _, err = run(capsys, *paths("softmax"), "--kernel", "sofmax")
    assert code == 2
    assert "there is no kernel sofmax; there are softmax_kernel" in err
    code, _, err = run(capsys, str(tmp_path / "nowhere"))
    assert code == 2
    assert "no such file" in err
    with pytest.raises(NothingError):
        compare_architectures([str(tmp_path)])


def test_what_cannot_be_read_is_told_and_the_rest_compared(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.ptx").write_text("this is no PTX at all {\n")
    (tmp_path / "b.ptx").write_bytes(b"\x7fELF\x02\x01\x01")
    words = [*paths("argmax", "sm_80", "sm_90"), *paths("softmax", "sm_80"), str(tmp_path)]
    code, out, _ = run(capsys, *words, "--no-exact", "--no-verdicts")
    assert code == 2
    assert "argmax_kernel: sm_80, sm_90a" in out
    assert "softmax_kernel: only on sm_80" in out
    assert len(re.findall("^not compared: .*[ab].ptx", out, re.MULTILINE)) >= 2


def test_an_architecture_without_limits_and_an_assembler_that_is_missing_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    changed = edited(tmp_path, "argmax", "sm_90", r"\.target sm_90a?", ".target sm_99")
    words = [*paths("argmax", "sm_80"), changed, "--no-verdicts"]
    code, out, _ = run(capsys, *words, "--ptxas", "/no/such/ptxas")
    assert code == 2
    assert out.count("not compared: resources are not exact: /no/such/ptxas") == 1
    assert "note: sm_80: resources are not exact: /no/such/ptxas: there is no such program" in out
    assert "argmax_kernel: sm_80, sm_99" in out
    log = "ptxas info    : Compiling entry function 'argmax_kernel' for 'sm_99'\n" + (
        "ptxas info    : Function properties for argmax_kernel\n    0 bytes stack frame, 0 bytes "
        "spill stores, 0 bytes spill loads\nptxas info    : Used 40 registers\n"
    )
    Path(changed).with_suffix(".log").write_text(log)
    _, out, _ = run(capsys, *words, "--no-exact")
    assert "note: sm_99: occupancy is not known: no limits of sm_99 are in the tables" in out


def test_neither_torch_nor_triton_is_loaded() -> None:
    program = (
        "import sys\nfrom ptxlint.cli import main\n"
        "try:\n    main(sys.argv[1:])\nexcept SystemExit:\n    pass\n"
        "print([m for m in ('torch', 'triton', 'lark', 'dataclasses') if m in sys.modules][:2])"
    )
    words = ["compare", *paths("argmax", "sm_80", "sm_90"), "--format", "json"]
    done = subprocess.run(
        [sys.executable, "-c", program, *words], capture_output=True, text=True, check=True
    )
    assert not {"torch", "triton"} & set(re.findall(r"\w+", done.stdout.splitlines()[-1]))
