"""Softmax kernels, right and wrong, around what cannot be followed: never a wrong verdict.

Where a verdict stays open, its reason names what stood in the way.
"""

from __future__ import annotations

from typing import NamedTuple

import pytest

from ptxlint import SourceText, check
from ptxlint.dataflow.reductions import ReductionsAnalysis
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse
from ptxlint.obligations import Obligation

FILLS = {"wrong": "0f00000000", "right": "0fFF800000"}
OTHER = {"wrong": "proved", "right": "refuted"}
"""The verdict that would be a lie."""


def tree(operation: str, value: str, first: int) -> tuple[str, str]:
    """A butterfly over the lanes of a warp; its text and the register of the result."""
    lines = []
    for at, lanes in enumerate((16, 8, 4, 2, 1)):
        other, result = f"%r{first + 2 * at}", f"%r{first + 2 * at + 1}"
        lines += [
            f"shfl.sync.bfly.b32 {other}, {value}, {lanes}, 31, -1;",
            f"{operation} {result}, {value}, {other};",
        ]
        value = result
    return "\n".join(lines), value


class Case(NamedTuple):
    """Edits of the kernel. `words` must stand in the reason of an open verdict; without them the
    verdict must be the true one."""

    words: str = ""
    head: str = ""
    before: str = ""
    load: str = "@%p1 ld.global.b32 {%r10}, [%rd3];"
    between: str = ""
    value: str = "%r10"
    threads: str = ".reqntid 32"


def softmax(case: Case, fill: str) -> str:
    """One row a block, one column a thread."""
    top, maximum = tree("max.f32", case.value, 11)
    sum_, total = tree("add.f32", "%r23", 24)
    return f"""
.version 8.0
.target sm_80
.address_size 64
{case.head}
.visible .entry k(.param .u64 .ptr .global .align 16 in_ptr,
    .param .u64 .ptr .global .align 16 out_ptr, .param .u32 n)
{case.threads}
{{
.reg .pred %p<9>; .reg .b32 %r<60>; .reg .b64 %rd<20>;
.shared .align 16 .b8 cells[64];
ld.param.b64 %rd1, [in_ptr];
ld.param.b64 %rd2, [out_ptr];
ld.param.b32 %r1, [n];
mov.u32 %r2, %tid.x;
mov.u32 %r3, %ctaid.x;
mul.lo.s32 %r4, %r3, %r1;
mul.wide.s32 %rd10, %r4, 4;
add.s64 %rd11, %rd1, %rd10;
add.s64 %rd12, %rd2, %rd10;
mul.wide.u32 %rd4, %r2, 4;
add.s64 %rd3, %rd11, %rd4;
add.s64 %rd5, %rd12, %rd4;
setp.lt.s32 %p1, %r2, %r1;
{case.before}
mov.b32 %r10, {fill};
{case.load}
{case.between}
{top}
sub.f32 %r21, {case.value}, {maximum};
mul.f32 %r22, %r21, 0f3FB8AA3B;
ex2.approx.f32 %r23, %r22;
{sum_}
div.full.f32 %r40, %r23, {total};
@%p1 st.global.b32 [%rd5], {{%r40}};
ret;
}}
"""


FUNCTION = ".func (.reg .f32 r) twice(.reg .f32 a) { add.f32 r, a, a; ret; }"
RECURSIVE = """
.func (.reg .f32 r) again(.reg .f32 a)
{
.reg .pred q; .reg .f32 t;
setp.gt.f32 q, a, 0f42000000;
@q bra DONE;
add.f32 t, a, a;
call (r), again, (t);
ret;
DONE: mov.f32 r, a;
ret;
}"""
MUTUAL = """
.func (.reg .f32 r) ping(.reg .f32 a);
.func (.reg .f32 r) pong(.reg .f32 a) { call (r), ping, (a); ret; }
.func (.reg .f32 r) ping(.reg .f32 a) { call (r), pong, (a); ret; }"""
CYCLE = """
setp.gt.s32 %p2, %r1, 7;
mov.b32 %r41, %r10;
mov.b32 %r42, 0;
@%p2 bra B;
A:
add.s32 %r42, %r42, 1;
add.f32 %r41, %r41, 0f00000000;
B:
add.s32 %r42, %r42, 2;
setp.lt.s32 %p3, %r42, %r1;
@%p3 bra A;
"""
"""A cycle with two entries; it is left when %r42 is at least n."""
COUNT = CYCLE.replace("mov.b32 %r41, %r10;", "").replace("add.f32 %r41, %r41, 0f00000000;", "")
PASSED = """
{
.param .b32 argument; .param .b32 result;
st.param.b32 [argument], %r10;
call (result), elsewhere, (argument);
ld.param.b32 %r41, [result];
}"""
CASES = {
    "nothing in the way": Case(),
    "volatile load": Case(
        "what a volatile load leaves is not followed",
        load="@%p1 ld.volatile.global.b32 {%r10}, [%rd3];",
    ),
    "volatile generic load": Case(
        "what a volatile load leaves is not followed", load="@%p1 ld.volatile.b32 {%r10}, [%rd3];"
    ),
    "generic load": Case(
        "what a load by a generic address leaves is not followed",
        load="@%p1 ld.b32 {%r10}, [%rd3];",
    ),
    "generic address from cvta": Case(
        "what a load by a generic address leaves is not followed",
        before="cvta.global.u64 %rd3, %rd3;",
        load="@%p1 ld.b32 {%r10}, [%rd3];",
    ),
    "generic load by several steps": Case(
        "what a load by a generic address leaves is not followed",
        load="@%p1 ld.b32 {%r10}, [%rd3];",
        between="add.f32 %r41, %r10, %r10;",
        value="%r41",
    ),
    "no reqntid": Case("no `.reqntid`", threads=""),
    "maxntid only": Case(threads=".maxntid 32"),
    "unknown opcode": Case(
        "what `frob.f32` does is not known", between="frob.f32 %r41, %r10;", value="%r41"
    ),
    "unknown modifier": Case(
        "what `add.odd.f32` does is not known",
        between="add.odd.f32 %r41, %r10, %r10;",
        value="%r41",
    ),
    "call": Case(
        "the call of `twice` is not followed",
        head=FUNCTION,
        between="call (%r41), twice, (%r10);",
        value="%r41",
    ),
    "call by parameters in memory": Case(
        "the call of `elsewhere` is not followed",
        head=".extern .func (.param .b32 r) elsewhere(.param .b32 a);",
        between=PASSED,
        value="%r41",
    ),
    "recursion": Case(
        "the call of `again`, which calls itself, is not followed",
        head=RECURSIVE,
        between="call (%r41), again, (%r10);",
        value="%r41",
    ),
    "recursion through another function": Case(
        "the call of `pong`, which calls itself, is not followed",
        head=MUTUAL,
        between="call (%r41), pong, (%r10);",
        value="%r41",
    ),
    "indirect call": Case(
        "a call through a register is not followed",
        head=FUNCTION,
        before="mov.u64 %rd9, twice;",
        between="proto: .callprototype (.reg .f32 _) _ (.reg .f32 _);\n"
        "call (%r41), %rd9, (%r10), proto;",
        value="%r41",
    ),
    "irreducible cycle on the way": Case(
        "a cycle with more than one entry is not followed", between=CYCLE, value="%r41"
    ),
    "irreducible cycle beside": Case(between=COUNT),
}
COUNTED = {
    "in the index": f"{COUNT}add.s32 %r44, %r2, %r42;\nsetp.lt.s32 %p1, %r44, %r1;",
    "as the index": f"{COUNT}setp.lt.s32 %p1, %r42, %r1;",
}


def verdict(text: str) -> Obligation:
    """The verdict on the fill; no rule may crash."""
    report = check(SourceText(text, "softmax.ptx"), select="ALL")
    assert [f.message for f in report.findings if f.rule == "INTERNAL"] == []
    (found,) = (o for o in report.obligations if o.rule == "MSK201")
    return found


@pytest.mark.parametrize("kind", FILLS)
@pytest.mark.parametrize("name", CASES)
def test_softmax(name: str, kind: str) -> None:
    case = CASES[name]
    found = verdict(softmax(case, FILLS[kind]))
    if case.words:
        assert found.status == "open"
        assert case.words in found.reason
    else:
        assert found.status == ("refuted" if kind == "wrong" else "proved")


UNSURE = {
    "volatile": "@%p1 ld.volatile.global.b32 {%r10}, [%rd3];",
    "generic": "@%p1 ld.b32 {%r10}, [%rd3];",
}


@pytest.mark.parametrize("kind", FILLS)
@pytest.mark.parametrize("load", UNSURE)
def test_a_verdict_that_does_not_rest_on_the_fill_stands(load: str, kind: str) -> None:
    """Masked again, it does not matter what the load left."""
    again = "selp.b32 %r41, %r10, 0fFF800000, %p1;"
    case = Case(load=UNSURE[load], between=again, value="%r41")
    assert verdict(softmax(case, FILLS[kind])).status == "proved"


@pytest.mark.parametrize("load", UNSURE)
def test_a_load_beside_leaves_other_verdicts_alone(load: str) -> None:
    """A second load, whose value goes to memory by itself."""
    beside = UNSURE[load].replace("%r10", "%r41") + "\n@%p1 st.global.b32 [%rd5+4096], %r41;"
    for kind, wanted in (("wrong", "refuted"), ("right", "proved")):
        case = Case(before="mov.b32 %r41, 0;", between=beside)
        assert verdict(softmax(case, FILLS[kind])).status == wanted


def test_an_index_that_is_not_followed_refutes_nothing() -> None:
    """The mask never holds, as the count is at least n: no lane is valid, so none is wrong."""
    found = verdict(softmax(Case(before=COUNTED["in the index"]), FILLS["wrong"]))
    assert found.status == "open"
    assert "a cycle with more than one entry is not followed" in found.reason


def test_a_mask_that_is_the_same_for_the_whole_block_combines_no_padding_with_data() -> None:
    found = verdict(softmax(Case(before=COUNTED["as the index"]), FILLS["wrong"]))
    assert found.status == "proved"


EXCHANGE = """
shr.u32 %r45, %r2, 5;
shl.b32 %r46, %r45, 2;
mov.b32 %r47, cells;
add.s32 %r48, %r47, %r46;
st.shared.b32 [%r48], %r20;
{before}
bar.sync 0;
{after}
and.b32 %r49, %r2, 1;
shl.b32 %r49, %r49, 2;
add.s32 %r50, %r47, %r49;
ld.shared.b32 %r51, [%r50];
shfl.sync.bfly.b32 %r52, %r51, 1, 31, -1;
max.f32 %r53, %r51, %r52;
bar.sync 0;
"""
ELSEWHERE = {
    "nothing": "",
    "a generic store": "st.b32 [%rd3], %r2;",
    "an unknown opcode": "frob.b32 [%rd3], %r2;",
    "a call": "call twice, (%r2);",
    "an atomic update": "atom.shared.exch.b32 %r54, [%r47], %r2;",
    "an asynchronous copy": "cp.async.ca.shared.global [%r47], [%rd3], 4;",
}


def two_warps(fill: str, before: str = "", after: str = "") -> str:
    """The softmax by two warps that hand their maxima over through shared memory."""
    case = Case(threads=".reqntid 64", head=".func twice(.reg .b32 a) { ret; }")
    text = softmax(case, fill)
    at = text.index("sub.f32")
    exchange = EXCHANGE.format(before=before, after=after)
    return text[:at] + exchange + text[at:].replace("%r20;", "%r53;", 1)


@pytest.mark.parametrize("kind", FILLS)
@pytest.mark.parametrize("place", ["before", "after"])
@pytest.mark.parametrize("name", ELSEWHERE)
def test_other_writes_between_warps(name: str, place: str, kind: str) -> None:
    """What may write the cells that warps hand values over in ends the exchange."""
    text = two_warps(FILLS[kind], **{place: ELSEWHERE[name]})
    module = parse(text)
    facts = Facts(module, module.functions[-1])
    warps = [r.warps for r in facts.get(ReductionsAnalysis).all if r.operator == "max"]
    assert any(warps) == (name == "nothing")
    report = check(SourceText(text, "softmax.ptx"), select="ALL")
    assert [f.message for f in report.findings if f.rule == "INTERNAL"] == []
    found = [o.status for o in report.obligations if o.rule == "MSK201"]
    assert found
    assert OTHER[kind] not in found


MAP = """
.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 r) elsewhere(.param .b32 a);
.func twice(.reg .b32 a) {{ ret; }}
.visible .entry k(.param .u64 .ptr .global .align 16 in_ptr,
    .param .u64 .ptr .global .align 16 out_ptr, .param .u32 n)
.reqntid 128
{{
.reg .pred %p<9>; .reg .b32 %r<60>; .reg .b64 %rd<20>;
ld.param.b64 %rd1, [in_ptr];
ld.param.b64 %rd2, [out_ptr];
ld.param.b32 %r1, [n];
mov.u32 %r2, %tid.x;
mov.u32 %r3, %ctaid.x;
shl.b32 %r4, %r3, 7;
add.s32 %r5, %r4, %r2;
setp.lt.s32 %p1, %r5, %r1;
mul.wide.s32 %rd4, %r5, 4;
add.s64 %rd3, %rd1, %rd4;
add.s64 %rd5, %rd2, %rd4;
@%p1 ld.global.b32 %r10, [%rd3];
{0}
@%p1 st.global.b32 [%rd5], %r10;
@%p1 ld.global.b32 %r11, [%rd5];
ret;
}}
"""
HIDDEN = {
    "a generic store": ("st.b32 [%rd5], %r10;", "what a generic address points to is not known"),
    "a generic volatile load": (
        "ld.volatile.b32 %r12, [%rd5];", "what a generic address points to is not known",
    ),
    "a call": ("call twice, (%r10);", "the call of `twice` is not followed"),
    "an indirect call": (
        "mov.u64 %rd9, twice;\nproto: .callprototype _ (.reg .b32 _);\ncall %rd9, (%r10), proto;",
        "a call through a register is not followed",
    ),
    "an unknown opcode on memory": ("frob.b32 [%rd5], %r10;", "what `frob.b32` does is not known"),
}  # fmt: skip
PLAIN = {
    "nothing": "",
    "a volatile load": "@%p1 ld.volatile.global.b32 %r12, [%rd3];",
    "an unknown opcode on registers": "frob.b32 %r12, %r10;",
    "a call that never returns": "call bang;",
}
GUARDS = ("MSK202", "MSK203", "MSK204", "MSK205")


def guard_verdicts(body: str) -> dict[str, Obligation]:
    text = MAP.format(body)
    if "bang" in body:
        text = text.replace(".visible", ".func bang() .noreturn { trap; }\n.visible")
        text = text.replace(body, f"setp.eq.s32 %p2, %r1, 0;\n@!%p2 bra ON;\n{body}\nON:")
    report = check(SourceText(text, "map.ptx"), select="ALL")
    assert [f.message for f in report.findings if f.rule == "INTERNAL"] == []
    return {o.rule: o for o in report.obligations if o.rule in GUARDS}


@pytest.mark.parametrize("name", HIDDEN)
def test_guards_beside_accesses_that_are_not_known(name: str) -> None:
    """No guard is proved to be what all accesses have where some access is hidden."""
    body, reason = HIDDEN[name]
    found = guard_verdicts(body)
    assert "proved" not in {o.status for o in found.values()}
    for rule in ("MSK202", "MSK204", "MSK205"):
        assert found[rule].status == "open"
        assert reason in found[rule].reason


@pytest.mark.parametrize("name", PLAIN)
def test_guards_beside_what_hides_no_access(name: str) -> None:
    found = guard_verdicts(PLAIN[name])
    assert {rule: o.status for rule, o in found.items()} == dict.fromkeys(GUARDS, "proved")


FRACTION = """
mul.f32 %r20, %r10, 0f3FB8AA3B;
ex2.approx.f32 %r21, %r20;
{between}
add.f32 %r22, %r21, %r41;
div.full.f32 %r23, %r21, %r22;
@%p1 st.global.b32 [%rd5], %r23;
"""
NORM = """
mul.f32 %r20, %r10, %r10;
{between}
add.f32 %r21, %r20, %r41;
{tree}
div.full.f32 %r44, %r10, {sum};
@%p1 st.global.b32 [%rd5], %r44;
"""
ON_THE_WAY = {
    name: CASES[name]
    for name in ("unknown opcode", "recursion", "indirect call", "call by parameters in memory")
}


def with_functions(text: str, case: Case) -> str:
    """The map with the functions of a case in place of its own."""
    start, end = text.index(".extern"), text.index(".visible")
    return f"{text[:start]}{case.head}\n{text[end:]}"


@pytest.mark.parametrize("name", ON_THE_WAY)
@pytest.mark.parametrize("rule", ["NUM405", "NUM406"])
def test_quotients_of_what_is_not_followed(rule: str, name: str) -> None:
    case = ON_THE_WAY[name]
    between = f"{case.before}\n{case.between}"
    if rule == "NUM405":
        body = FRACTION.format(between=between)
    else:
        text, total = tree("add.f32", "%r21", 24)
        body = NORM.format(between=between, tree=text, sum=total)
    report = check(SourceText(with_functions(MAP.format(body), case), "k.ptx"), select=rule)
    assert {f.rule for f in report.findings} <= {"PARSE"}
    (found,) = (o for o in report.obligations if o.rule == rule)
    assert found.status == "open"
    assert case.words in found.reason
