"""NUM401, NUM402 and NUM403: the fixtures by known answers, mutants of right kernels, small texts.

The fixtures of a fixed sample run always; all of them, and all mutants, with `--run-slow`.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from ptxlint.dataflow.accumulators import Accumulator, Accumulators, AccumulatorsAnalysis
from ptxlint.engine.options import Options
from ptxlint.engine.report import Report
from ptxlint.engine.run import run
from ptxlint.facts import Facts
from ptxlint.frontends.discovery import Input
from ptxlint.frontends.ptx import parse

PTX = Path(__file__).resolve().parents[2] / "fixtures" / "ptx"
ARCHS = sorted(path.name for path in PTX.iterdir())
RULES = ("NUM401", "NUM402", "NUM403")
BUGGY = {
    "matmul_buggy": ("NUM401", 23),
    "matmul_dot_buggy": ("NUM401", 41),
    "flash_attention_buggy": ("NUM402", 39),
    "flash_fwd_buggy": ("NUM402", 49),
}
PROVED = {
    "matmul_dot_fp16": "NUM401",
    "matmul_fp16": "NUM401",
    "matmul_tma_persistent": "NUM401",
    "flash_fwd": "NUM402",
    "flash_fwd_d128": "NUM402",
    "flash_attention": "NUM402",
    "cross_entropy_fwd": "NUM402",
    "rmsnorm_bf16": "NUM403",
    "bf16_add": "",
}
SAMPLE = ("sm_80", "sm_90", "sm_100")


def check(text: str, *rules: str) -> Report:
    return run([Input("<text>", text)], Options(select=rules or RULES))


def fixture(arch: str, name: str) -> str:
    return (PTX / arch / f"{name}.ptx").read_text()


def found(report: Report) -> list[tuple[str, str, int | None]]:
    return [
        (f.rule, f.severity, f.place.source.line if f.place.source else None)
        for f in report.findings
    ]


def statuses(report: Report, rule: str) -> set[str]:
    return {o.status for o in report.obligations if o.rule == rule}


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", BUGGY)
def test_a_buggy_fixture_gets_its_one_finding(arch: str, name: str) -> None:
    rule, line = BUGGY[name]
    report = check(fixture(arch, name))
    assert found(report) == [(rule, "error", line)]
    assert statuses(report, rule) == {"refuted"}


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("name", PROVED)
def test_a_right_fixture_is_silent_and_proved(arch: str, name: str) -> None:
    path = PTX / arch / f"{name}.ptx"
    if not path.exists():
        pytest.skip("no such fixture for this architecture")
    report = check(path.read_text())
    assert found(report) == []
    if PROVED[name]:
        assert statuses(report, PROVED[name]) == {"proved"}


@pytest.mark.slow
@pytest.mark.parametrize("arch", ARCHS)
def test_every_other_fixture_is_silent(arch: str) -> None:
    loud = {
        path.stem: found(check(path.read_text()))
        for path in sorted((PTX / arch).glob("*.ptx"))
        if path.stem not in BUGGY
    }
    assert {name: hits for name, hits in loud.items() if hits} == {}


# Mutants of right kernels --------------------------------------------------------------------
def accumulators(text: str) -> Accumulators:
    module = parse(text, "k.ptx")
    (function,) = [f for f in module.functions if not f.is_declaration]
    return Facts(module, function).get(AccumulatorsAnalysis)


def without_factor(text: str, all_: Accumulators, chosen: list[Accumulator]) -> str:
    """The text with the carried part of these accumulators moved where it was multiplied."""
    ssa = all_.flow.ssa
    edits: dict[int, str] = {}
    for accumulator in chosen:
        for instr in accumulator.instrs:
            if instr.opcode not in ("mul", "fma"):
                continue
            uses = zip(instr.uses, ssa.use_values[instr.index], strict=True)
            kept = next(str(r) for r, value in uses if value in accumulator.values)
            target, *operands = (str(o) for o in instr.operands)
            if instr.opcode == "mul":
                width = 64 if instr.shape.type == "f32x2" else 32
                edits[instr.offset] = f"mov.b{width} {target}, {kept};"
            elif operands[2] != kept:
                edits[instr.offset] = f"add.{instr.shape.type} {target}, {kept}, {operands[2]};"
    assert edits
    for offset in sorted(edits, reverse=True):
        text = text[:offset] + edits[offset] + text[text.index(";", offset) + 1 :]
    return text


FLASH = ["flash_fwd", "flash_fwd_full_bf16", "flash_attention", "cross_entropy_fwd"]


@pytest.mark.parametrize("name", FLASH)
@pytest.mark.parametrize(
    "arch",
    [a if a in SAMPLE else pytest.param(a, marks=pytest.mark.slow) for a in ARCHS],
)
def test_a_kernel_that_loses_a_factor_is_found(arch: str, name: str) -> None:
    text = fixture(arch, name)
    sums = [a for a in accumulators(text).all if a.is_sum and a.factors]
    kinds: dict[int, list[Accumulator]] = {}
    for accumulator in sums:
        kinds.setdefault(len(accumulator.instrs), []).append(accumulator)
    for chosen in kinds.values():
        report = check(without_factor(text, accumulators(text), chosen))
        assert {(rule, severity) for rule, severity, _ in found(report)} == {("NUM402", "error")}


def test_a_tensor_product_that_loses_its_accumulator_is_found() -> None:
    text = fixture("sm_90", "matmul_dot_fp16")
    products = list(re.finditer(r"wgmma\.mma_async[^;]*?, (%p\d+), 1, 1, 0, 1;", text))
    assert len(products) == 2
    start, end = products[0].span(1)
    report = check(text[:start] + "0" + text[end:])
    assert found(report) == [("NUM401", "error", 41)]
    # The second product of the round adds to the first: dropping its own addition loses a half,
    # and still overwrites.
    start, end = products[1].span(1)
    assert [f[0] for f in found(check(text[:start] + "0" + text[end:]))] == ["NUM401"]


# Small texts ---------------------------------------------------------------------------------
HEAD = """.version 8.6
.target {arch}
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 a, .param .u64 .ptr .global .align 16 b,
    .param .u32 n)
{{
.shared .align 16 .b8 cells[4096];
.reg .pred %p<9>;
.reg .b16 %h<40>;
.reg .b32 %r<40>;
.reg .f32 %f<40>;
.reg .b64 %d<20>;
ld.param.u64 %d1, [a];
ld.param.u64 %d2, [b];
ld.param.u32 %r1, [n];
mov.b32 %r2, 0;
"""
NEXT = """
add.s64 %d1, %d1, 4;
add.s32 %r2, %r2, 1;
setp.lt.s32 %p1, %r2, %r1;
@%p1 bra loop;
"""


def small(before: str, body: str, after: str, arch: str = "sm_90") -> Report:
    text = HEAD.format(arch=arch) + before + "loop:\n" + body + NEXT + after + "ret;\n}\n"
    return check(text)


def rules_of(report: Report) -> list[tuple[str, str]]:
    return [(f.rule, f.severity) for f in report.findings]


PRODUCT = "ld.global.f32 %f1, [%d1]; ld.global.f32 %f2, [%d1+512]; mul.f32 %f3, %f1, %f2;"
STORE = "st.global.f32 [%d2], %f3;"


class TestOverwritten:
    def test_a_product(self) -> None:
        assert rules_of(small("", PRODUCT, STORE)) == [("NUM401", "error")]

    def test_a_masked_product_with_a_fill(self) -> None:
        body = "mov.f32 %f1, 0f00000000; @%p3 ld.global.f32 %f1, [%d1];"
        body += "ld.global.f32 %f2, [%d1+512]; mul.f32 %f3, %f1, %f2;"
        report = small("setp.gt.s32 %p3, %r1, 7;", body, STORE)
        assert rules_of(report) == [("NUM401", "error")]

    def test_the_product_behind_the_loop(self) -> None:
        loads = "ld.global.f32 %f1, [%d1]; ld.global.f32 %f2, [%d1+512];"
        report = small("", loads, "mul.f32 %f3, %f1, %f2;" + STORE)
        assert rules_of(report) == [("NUM401", "error")]

    def test_a_bare_load_is_open(self) -> None:
        report = small("", "ld.global.f32 %f3, [%d1];", STORE)
        assert rules_of(report) == []
        assert statuses(report, "NUM401") == {"open"}

    @pytest.mark.parametrize(
        ("before", "body", "after"),
        [
            ("", PRODUCT + "st.global.f32 [%d1+1024], %f3;", STORE),
            ("mov.f32 %f3, 0f00000000;", PRODUCT.replace("%f3", "%f4") + "max.f32 %f3, %f3, %f4;",
             STORE),
            ("mov.f32 %f3, 0f00000000;", "@%p3 ld.global.f32 %f3, [%d1];", STORE),
            ("", PRODUCT.replace("%d1", "%d2"), STORE),
            ("mov.f32 %f5, 0f00000000;", PRODUCT + "add.f32 %f5, %f5, %f3;",
             "add.f32 %f3, %f3, %f5;" + STORE),
            ("", PRODUCT, ""),
        ],
        ids=["stored in the loop", "a maximum", "kept under a mask", "the same in each round",
             "used in a sum too", "never stored"],
    )  # fmt: skip
    def test_silent(self, before: str, body: str, after: str) -> None:
        assert rules_of(small(before, body, after)) == []

    def test_a_loop_that_searches_is_not_judged(self) -> None:
        text = HEAD.format(arch="sm_90") + "loop:\n" + PRODUCT + "add.s64 %d1, %d1, 4;"
        text += "setp.gt.f32 %p1, %f1, %f2; @%p1 bra loop;" + STORE + "ret; }"
        report = check(text)
        assert rules_of(report) == []
        assert statuses(report, "NUM401") == set()

    def test_an_outer_loop_that_drops_the_sums_of_an_inner_one(self) -> None:
        inner = """
        mov.f32 %f3, 0f00000000;
        mov.b32 %r5, 0;
        inner:
        ld.global.f32 %f1, [%d1];
        ld.global.f32 %f2, [%d1+512];
        fma.rn.f32 %f3, %f1, %f2, %f3;
        add.s64 %d1, %d1, 4;
        add.s32 %r5, %r5, 1;
        setp.lt.s32 %p2, %r5, 16;
        @%p2 bra inner;
        """
        assert rules_of(small("", inner, STORE)) == [("NUM401", "error")]
        assert rules_of(small("", inner + "st.global.f32 [%d1], %f3;", "")) == []

    @pytest.mark.parametrize(
        ("end", "wanted"), [(STORE, "refuted"), ("st.global.f32 [%d2], %f1;", "open")],
        ids=["a product", "a load"],
    )  # fmt: skip
    def test_what_the_loop_uses_too(self, end: str, wanted: str) -> None:
        body = PRODUCT + "add.f32 %f4, %f1, %f2; st.global.f32 [%d1+1024], %f4;"
        assert statuses(small("", body, end), "NUM401") == {wanted}

    @pytest.mark.parametrize(("operator", "wanted"), [("add", "refuted"), ("max", "refuted")])
    def test_the_last_elements_of_lanes_combined(self, operator: str, wanted: str) -> None:
        end = "shfl.sync.bfly.b32 %f5, %f1, 1, 31, -1;"
        end += f"{operator}.f32 %f3, %f1, %f5;" + STORE
        assert statuses(small("", "ld.global.f32 %f1, [%d1];", end), "NUM401") == {wanted}

    def test_relative_to_a_running_maximum(self) -> None:
        body = "ld.global.f32 %f1, [%d1]; ld.global.f32 %f2, [%d1+512]; max.f32 %f4, %f4, %f1;"
        body += "sub.f32 %f5, %f1, %f4; ex2.approx.f32 %f6, %f5;"
        last = "mul.f32 %f3, %f6, %f2;"
        total = "fma.rn.f32 %f3, %f6, %f2, %f3;"
        end = "st.global.v2.f32 [%d2], {%f3, %f4};"
        assert statuses(small("", body + last, end), "NUM401") == {"refuted"}
        assert statuses(small("", body + total, end), "NUM401") == {"proved"}

    @pytest.mark.parametrize(
        ("inside", "wanted"),
        [("", "refuted"), ("ld.shared.f32 %f9, [cells]; st.global.f32 [%d1], %f9;", "proved"),
         ("fma.rn.f32 %f7, %f7, %f8, %f3;", "open")],
        ids=["last", "read in each round", "beside a sum"],
    )  # fmt: skip
    def test_through_shared_memory(self, inside: str, wanted: str) -> None:
        body = PRODUCT + "bar.sync 0; st.shared.f32 [cells], %f3; bar.sync 0;" + inside
        after = "ld.shared.f32 %f10, [cells+4]; st.global.v2.f32 [%d2], {%f10, %f7};"
        assert statuses(small("", body, after), "NUM401") == {wanted}

    def test_a_sum_that_is_kept_in_shared_memory_is_not_refuted(self) -> None:
        body = "ld.shared.f32 %f4, [cells];" + PRODUCT + "add.f32 %f5, %f4, %f3; bar.sync 0;"
        body += "st.shared.f32 [cells], %f5; bar.sync 0;"
        after = "ld.shared.f32 %f6, [cells]; st.global.f32 [%d2], %f6;"
        assert statuses(small("", body, after), "NUM401") <= {"open", "proved"}

    def test_a_carry_of_the_round_before_alone(self) -> None:
        body = PRODUCT + "add.f32 %f6, %f3, %f5; st.global.f32 [%d1+1024], %f6;"
        start = "mov.f32 %f5, 0f00000000;"
        assert rules_of(small(start, body + "mov.f32 %f5, %f3;", "")) == [("NUM401", "warning")]
        report = small(start, body + "mov.f32 %f5, %f6;", "")
        assert statuses(report, "NUM401") == {"proved"}

    def test_a_product_that_is_added_one_round_later_is_not_refuted(self) -> None:
        body = "add.f32 %f6, %f6, %f5;" + PRODUCT + "mov.f32 %f5, %f3;"
        start = "mov.f32 %f5, 0f00000000; mov.f32 %f6, 0f00000000;"
        report = small(start, body, "add.f32 %f7, %f6, %f5; st.global.f32 [%d2], %f7;")
        assert rules_of(report) == []

    def test_what_depends_on_a_counter_is_open(self) -> None:
        body = PRODUCT + "cvt.rn.f32.s32 %f4, %r2; mul.f32 %f3, %f3, %f4;"
        report = small("", body, STORE)
        assert rules_of(report) == []
        assert statuses(report, "NUM401") == {"open"}


SOFTMAX = """
ld.global.f32 %f3, [%d1];
max.f32 %f4, %f1, %f3;
sub.f32 %f5, %f3, %f4;
ex2.approx.f32 %f6, %f5;
sub.f32 %f7, %f1, %f4;
ex2.approx.f32 %f8, %f7;
"""
BEGIN = "mov.f32 %f1, 0fFF800000; mov.f32 %f2, 0f00000000;"
END = "st.global.v2.f32 [%d2], {%f1, %f2};"


class TestRescale:
    def judge(self, update: str, scores: str = SOFTMAX, end: str = END) -> Report:
        return small(BEGIN, scores + update + "mov.f32 %f1, %f4;", end)

    def test_a_sum_without_its_factor(self) -> None:
        report = self.judge("add.f32 %f2, %f2, %f6;")
        assert rules_of(report) == [("NUM402", "error")]
        assert statuses(report, "NUM402") == {"refuted"}

    @pytest.mark.parametrize(
        "update",
        [
            "fma.rn.f32 %f2, %f2, %f8, %f6;",
            "mul.f32 %f2, %f2, %f8; add.f32 %f2, %f2, %f6;",
            "selp.f32 %f9, %f8, 0f00000000, %p3; fma.rn.f32 %f2, %f2, %f9, %f6;",
        ],
    )
    def test_a_sum_with_its_factor_is_proved(self, update: str) -> None:
        report = self.judge(update)
        assert rules_of(report) == []
        assert statuses(report, "NUM402") == {"proved"}

    @pytest.mark.parametrize(
        "update",
        [
            "mul.f32 %f2, %f2, 0f3F000000; add.f32 %f2, %f2, %f6;",
            "fma.rn.f32 %f2, %f2, %f3, %f6;",
            "@%p3 mul.f32 %f2, %f2, %f8; add.f32 %f2, %f2, %f6;",
        ],
        ids=["a constant", "a score", "on one path only"],
    )
    def test_another_factor_is_open(self, update: str) -> None:
        report = self.judge(update)
        assert rules_of(report) == []
        assert statuses(report, "NUM402") == {"open"}

    @pytest.mark.parametrize(
        ("use", "wanted"),
        [("add.f32 %f9, %f2, %f6;", "refuted"), ("fma.rn.f32 %f9, %f2, %f8, %f6;", "proved")],
        ids=["as it was", "rescaled"],
    )
    def test_a_sum_that_the_round_also_adds_to(self, use: str, wanted: str) -> None:
        report = self.judge(f"{use} st.global.f32 [%d1+1024], %f9; fma.rn.f32 %f2, %f2, %f8, %f6;")
        assert statuses(report, "NUM402") == {wanted}

    def test_scale_folded_into_the_difference(self) -> None:
        scores = """
        ld.global.f32 %f3, [%d1];
        max.f32 %f4, %f1, %f3;
        mul.f32 %f10, %f4, 0fBFB8AA3B;
        fma.rn.f32 %f5, %f3, 0f3FB8AA3B, %f10;
        ex2.approx.f32 %f6, %f5;
        fma.rn.f32 %f7, %f1, 0f3FB8AA3B, %f10;
        ex2.approx.f32 %f8, %f7;
        """
        assert rules_of(self.judge("add.f32 %f2, %f2, %f6;", scores)) == [("NUM402", "error")]
        report = self.judge("fma.rn.f32 %f2, %f2, %f8, %f6;", scores)
        assert statuses(report, "NUM402") == {"proved"}

    def test_guards_against_minus_infinity(self) -> None:
        scores = """
        ld.global.f32 %f3, [%d1];
        max.f32 %f4, %f1, %f3;
        setp.eq.f32 %p4, %f4, 0fFF800000;
        selp.f32 %f11, 0f00000000, %f4, %p4;
        sub.f32 %f5, %f3, %f11;
        ex2.approx.f32 %f6, %f5;
        sub.f32 %f7, %f1, %f11;
        ex2.approx.f32 %f8, %f7;
        """
        assert rules_of(self.judge("add.f32 %f2, %f2, %f6;", scores)) == [("NUM402", "error")]
        report = self.judge("fma.rn.f32 %f2, %f2, %f8, %f6;", scores)
        assert statuses(report, "NUM402") == {"proved"}

    def test_a_sum_over_warps_through_shared_memory(self) -> None:
        exchange = "st.shared.f32 [cells], %f6; bar.sync 0; ld.shared.f32 %f9, [cells+4];"
        report = self.judge(exchange + "bar.sync 0; add.f32 %f2, %f2, %f9;")
        assert rules_of(report) == [("NUM402", "error")]
        report = self.judge(exchange + "bar.sync 0; fma.rn.f32 %f2, %f2, %f8, %f9;")
        assert statuses(report, "NUM402") == {"proved"}

    def test_two_things_before_one_barrier_are_open(self) -> None:
        exchange = "st.shared.f32 [cells], %f6; st.shared.f32 [cells+64], %f3; bar.sync 0;"
        exchange += "ld.shared.f32 %f9, [cells+4]; ld.shared.f32 %f10, [cells+68]; bar.sync 0;"
        update = "fma.rn.f32 %f2, %f2, %f8, %f9; add.f32 %f12, %f12, %f10;"
        report = self.judge(exchange + update, end=END + "st.global.f32 [%d2+64], %f12;")
        assert rules_of(report) == []
        assert statuses(report, "NUM402") == {"open"}

    def test_one_line_for_many_registers(self) -> None:
        updates = "".join(f"add.f32 %f{i}, %f{i}, %f6;" for i in range(20, 30))
        stores = "".join(f"st.global.f32 [%d2+{4 * i}], %f{i};" for i in range(20, 30))
        assert rules_of(self.judge(updates, end=END + stores)) == [("NUM402", "error")]


class TestLowPrecision:
    @pytest.mark.parametrize(
        ("before", "update"),
        [
            ("", "add.bf16 %h1, %h1, %h2;"),
            ("mov.b16 %h9, 0x3F80;", "fma.rn.bf16 %h1, %h2, %h9, %h1;"),
            ("", "cvt.f32.bf16 %f1, %h1; add.f32 %f1, %f1, %f2; cvt.rn.bf16.f32 %h1, %f1;"),
        ],
    )
    def test_a_running_sum(self, before: str, update: str) -> None:
        body = "ld.global.b16 %h2, [%d1];" + update
        report = small("mov.b16 %h1, 0;" + before, body, "st.global.b16 [%d2], %h1;")
        assert rules_of(report) == [("NUM403", "warning")]

    def test_a_mixed_addition_keeps_f32(self) -> None:
        body = "ld.global.b16 %h2, [%d1]; add.rn.f32.bf16 %f3, %h2, %f3;"
        report = small("mov.f32 %f3, 0f00000000;", body, STORE, "sm_100a")
        assert rules_of(report) == []
        assert statuses(report, "NUM403") == {"proved"}

    @pytest.mark.parametrize(("terms", "wanted"), [(8, [("NUM403", "warning")]), (7, [])])
    def test_a_narrow_tree_that_a_wide_sum_takes(
        self, terms: int, wanted: list[tuple[str, str]]
    ) -> None:
        loads = "".join(f"ld.global.b16 %h{i}, [%d1+{64 * i}];" for i in range(1, terms + 1))
        adds = "".join(f"add.f16 %h1, %h1, %h{i};" for i in range(2, terms + 1))
        body = loads + adds + "cvt.f32.f16 %f1, %h1; add.f32 %f3, %f3, %f1;"
        assert rules_of(small("mov.f32 %f3, 0f00000000;", body, STORE)) == wanted

    @pytest.mark.parametrize(("steps", "wanted"), [((4, 2, 1), ["NUM403"]), ((2, 1), [])])
    def test_a_tree_over_lanes(self, steps: tuple[int, ...], wanted: list[str]) -> None:
        text = HEAD.format(arch="sm_90") + "ld.global.b16 %h1, [%d1];"
        for step in steps:
            text += f"""
            cvt.u32.u16 %r5, %h1;
            shfl.sync.bfly.b32 %r6, %r5, {step}, 31, -1;
            cvt.u16.u32 %h2, %r6;
            add.bf16 %h1, %h1, %h2;"""
        report = check(text + "st.global.b16 [%d2], %h1; ret; }")
        assert [rule for rule, _ in rules_of(report)] == wanted
        assert statuses(report, "NUM403") == ({"refuted"} if wanted else {"open"})

    @pytest.mark.parametrize(
        ("stored", "wanted"), [("%h1", "refuted"), ("%h20", "open")], ids=["the sum", "a term"]
    )
    def test_a_tree_that_goes_on_in_another_thread(self, stored: str, wanted: str) -> None:
        loads = "".join(f"ld.global.b16 %h{i}, [%d1+{64 * i}];" for i in range(1, 10))
        adds = "".join(f"add.bf16 %h1, %h1, %h{i};" for i in range(2, 9))
        text = HEAD.format(arch="sm_90") + loads + "mov.b16 %h20, %h9;" + adds
        text += f"""
        st.shared.b16 [cells], {stored};
        bar.sync 0;
        ld.shared.b16 %h10, [cells+2];
        cvt.u32.u16 %r5, %h10;
        shfl.sync.bfly.b32 %r6, %r5, 1, 31, -1;
        cvt.u16.u32 %h11, %r6;
        add.bf16 %h12, %h10, %h11;
        st.global.v2.b16 [%d2], {{%h1, %h12}};
        ret; }}"""
        assert statuses(check(text), "NUM403") == {wanted}

    def test_many_terms_that_nothing_combines_are_open(self) -> None:
        loads = "".join(f"ld.global.b16 %h{i}, [%d1+{64 * i}];" for i in range(1, 9))
        adds = "".join(f"add.bf16 %h1, %h1, %h{i};" for i in range(2, 9))
        text = HEAD.format(arch="sm_90") + loads + adds + "st.shared.b16 [cells], %h1;"
        text += "shfl.sync.idx.b32 %r6, %r5, 0, 31, -1; ret; }"
        report = check(text)
        assert rules_of(report) == []
        assert statuses(report, "NUM403") == {"open"}

    def test_a_polynomial_is_no_sum(self) -> None:
        text = HEAD.format(arch="sm_90") + "ld.global.b16 %h1, [%d1]; mov.b16 %h2, 0x3C00;"
        text += "".join("fma.rn.f16 %h2, %h2, %h1, %h3;" for _ in range(12))
        text += "cvt.u32.u16 %r5, %h2; shfl.sync.idx.b32 %r6, %r5, 0, 31, -1;"
        report = check(text + "st.global.b32 [%d2], %r6; ret; }")
        assert rules_of(report) == []
