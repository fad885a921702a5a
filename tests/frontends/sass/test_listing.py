"""Listings, line by line: labels, places, guards, wide operands, what cannot be read."""

from __future__ import annotations

import pytest

from ptxlint.cfg.build import build
from ptxlint.frontends.sass import memo, parse
from ptxlint.ir.function import Function
from ptxlint.ir.instruction import Instr
from ptxlint.ir.operand import Address, Expr, Immediate, Negated, SpecialRegister, Symbol
from ptxlint.ir.sass.function import SassFunction, control_of

HEAD = '\t.target\tsm_90a\n\t.section\t.text.k,"ax",@progbits\n.text.k:\n'


def function(*lines: str) -> Function:
    """A function of these instructions; a line with a colon at its end is a label."""
    text, at = HEAD, 0
    for line in lines:
        if line.endswith(":"):
            text += f"{line}\n"
        else:
            text += f"        /*{at:04x}*/                   {line} ;\n"
            at += 16
    module = parse(text)
    # These are parts of kernels.
    assert [p for p in module.problems if p.code != "cut"] == []
    (fn,) = module.functions
    return fn


def only(line: str) -> Instr:
    (instr,) = function(line).instrs
    return instr


def registers(line: str) -> tuple[str, str]:
    instr = only(line)
    written, read = (" ".join(r.name for r in side) for side in (instr.defs, instr.uses))
    return written, read


@pytest.mark.parametrize(
    ("line", "written", "read"),
    [
        ("IADD3 R4, P0, R2.reuse, R3, RZ", "R4 P0", "R2 R3"),
        ("IADD3.X R5, R6, R7, RZ, P0, !PT", "R5", "R6 R7 P0"),
        ("IMAD.WIDE R2, R4, R5, R8", "R2 R3", "R4 R5 R8 R9"),
        ("IMAD.HI.U32 R2, R4, R5, R8", "R2", "R4 R5 R8 R9"),
        ("LDG.E.128 R4, desc[UR6][R12.64+0x10]", "R4 R5 R6 R7", "UR6 UR7 R12 R13"),
        ("@!P3 STG.E.64 desc[UR6][R12.64], R8", "", "P3 UR6 UR7 R12 R13 R8 R9"),
        ("LDGSTS.E.BYPASS.128 [R21+0x800], desc[UR24][R4.64], P0", "", "R21 UR24 UR25 R4 R5 P0"),
        ("HMMA.16816.F32 R4, R8, R12, R4", "R4 R5 R6 R7",
         "R8 R9 R10 R11 R12 R13 R4 R5 R6 R7"),
        ("HMMA.1688.F32.TF32 R4, R8, R12, R4", "R4 R5 R6 R7",
         "R8 R9 R10 R11 R12 R13 R4 R5 R6 R7"),
        ("HGMMA.64x8x16.F32 R24, gdesc[UR8], RZ, !UPT", "R24 R25 R26 R27", "UR8 UR9 UR10 UR11"),
        ("HGMMA.64x8x16.F32 R24, R4, gdesc[UR8], R24", "R24 R25 R26 R27",
         "R4 R5 R6 R7 UR10 UR11 R24 R25 R26 R27"),
        ("DFMA R4, R2, R4, -R6", "R4 R5", "R2 R3 R4 R5 R6 R7"),
        ("F2F.F64.F32 R4, R2", "R4 R5", "R2"),
        ("F2I.F64.TRUNC R4, R2", "R4", "R2 R3"),
        ("ISETP.GE.AND P1, PT, R2, UR9, PT", "P1", "R2 UR9"),
        ("LOP3.LUT P2, RZ, R3, 0x7, RZ, 0xc0, !PT", "P2", "R3"),
        ("SHFL.BFLY PT, R27, R26, 0x1, 0x1f", "R27", "R26"),
        ("VOTEU.ANY UR5, UPT, P1", "UR5", "P1"),
        ("P2R R4, PR, RZ, 0x5", "R4", "P0 P2"),
        ("R2P PR, R4, 0x3", "P0 P1", "R4"),
        ("UTMALDG.2D [UR16], [UR10]", "", "UR16 UR17 UR18 UR19 UR10 UR11"),
        ("FADD2 R2, R4.F32x2.HI_LO, R6.F32", "R2 R3", "R4 R5 R6"),
        ("ATOMG.E.EXCH.STRONG.GPU PT, R4, [R2.64], R6", "R4", "R2 R3 R6"),
        ("BSSY B0, `(.L_x_1)", "B0", ""),
        ("MOV R20, 32@lo((f + .L_x_0@srel))", "R20", ""),
        ("CALL.ABS.NOINC R6", "", "R6"),
        ("UR2UP UPR, UR62.B3", "UP0 UP1 UP2 UP3 UP4 UP5 UP6", "UR62"),
        ("USTGR.E.NA.MMIO.SYS [UR4], UR10", "", "UR4 UR10"),
        ("TEX.LL R10, R8, R6, R9, UR4, 0x0, 2D", "R10 R11 R8 R9", "R6 R7 R9 UR4"),
        ("TEX.LL R7, R14, R12, R3, UR4, 0x0, 2D, 0x7", "R7 R14 R15", "R12 R13 R3 UR4"),
        ("TEX.SCR.LL RZ, R5, R6, R4, 0x0, 0x5b, 3D, 0x1", "R5", "R6 R7 R4 R5"),
        ("TLD.SCR.LZ R10, R8, R4, R5, 0x0, 0x5c, 2D", "R10 R11 R8 R9", "R4 R5"),
        ("TLD4.R RZ, R12, R14, UR4, 2D, 0x9", "R12 R13", "R14 R15 UR4"),
        ("TXD R10, R8, R4, R12, UR4, 2D", "R10 R11 R8 R9", "R4 R5 R12 R13 R14 R15 UR4"),
        ("TXQ RZ, R8, R5, TEX_HEADER_DIMENSION, UR4, 0x0, 0x1", "R8", "R5 UR4"),
        ("SULD.D.BA.2D_ARRAY.64.STRONG.SM.TRAP R6, [R8], UR6", "R6 R7", "R8 R9 R10 UR6"),
        ("SUST.P.2D.STRONG.SM.TRAP [R4], R8, UR6", "", "R4 R5 R8 R9 R10 R11 UR6"),
    ],
)  # fmt: skip
def test_registers_of_an_instruction(line: str, written: str, read: str) -> None:
    assert registers(line) == (written, read)


def test_operands_keep_signs_words_and_constants() -> None:
    instr = only("FADD.FTZ R1, -|R2|.reuse, c[0x0][0x28]")
    _, value, constant = instr.operands
    assert isinstance(value, Negated)
    assert (value.sign, value.operand) == ("-", Negated("|", instr.uses[0]))
    assert isinstance(constant, Address)
    assert constant.base == Immediate("0x28", "int", 0x28)
    instr = only("FSEL R1, R2, -INF , !P0")
    assert isinstance(instr.operands[2], Immediate)
    assert instr.operands[2].as_float() == float("-inf")
    address = only("LDS R1, [R2+UR4+-0x8]").operands[1]
    assert isinstance(address, Address)
    assert address.offset == -8
    assert only("MOV R1, RZ").operands[1] == SpecialRegister("RZ")
    assert only("S2R R1, SR_TID.X").operands[1] == Expr(".X", (SpecialRegister("SR_TID"),))


def test_branches_lead_to_labels_and_may_have_a_predicate_as_an_operand() -> None:
    fn = function(
        "BRA.U !UP0, `(.L_x_1)", "@P0 BRA P1, `(.L_x_1)", "EXIT", ".L_x_1:", "BRA `(.L_x_1)"
    )
    cfg = build(fn)
    assert [(b.start, b.succs) for b in cfg.blocks] == [
        (0, [3, 1]), (1, [3, 2]), (2, []), (3, [3]),
    ]  # fmt: skip
    assert cfg.blocks[0].condition == (fn.instrs[0].uses[0], False)


@pytest.mark.parametrize(
    "branch",
    ["BRA.CONV `(.L_x_1)", "BRA.DIV ~URZ, `(.L_x_1)", "BRA.U !UPT, `(.L_x_1)"],
)
def test_a_branch_may_go_on_whose_condition_is_in_no_register(branch: str) -> None:
    fn = function(branch, "EXIT", ".L_x_1:", "EXIT")
    cfg = build(fn)
    assert [b.succs for b in cfg.blocks] == [[2, 1], [], []]
    assert cfg.blocks[0].condition is None
    assert fn.instrs[0].uses == ()


def test_targets_may_be_addresses() -> None:
    fn = function("@P0 BRA 0x20", "EXIT", "EXIT")
    assert build(fn).blocks[0].succs == [2, 1]


def test_an_indirect_branch_leads_to_what_its_note_names() -> None:
    fn = function(
        'BRX R2 -0x30 (*"BRANCH_TARGETS .L_x_1,.L_x_2"*)', "EXIT", ".L_x_1:", "EXIT", ".L_x_2:",
        "EXIT",
    )  # fmt: skip
    assert build(fn).blocks[0].succs == [2, 3]
    assert [r.name for r in fn.instrs[0].uses] == ["R2", "R3"]


def test_a_call_of_an_own_label_does_not_come_back_one_of_a_function_does() -> None:
    fn = function("@P0 CALL.REL.NOINC `(.L_x_1)", "EXIT", ".L_x_1:", "EXIT")
    assert build(fn).blocks[0].succs == [2, 1]
    fn = function("CALL.REL.NOINC `($__internal_0_$__div)", "EXIT")
    assert len(build(fn).blocks) == 1


def test_places_are_chained_innermost_first() -> None:
    text = HEAD + (
        '\t//## File "a.py", line 7 inlined at "b.py", line 3\n'
        '\t//## File "b.py", line 3\n'
        "        /*0000*/                   NOP ;\n"
        '\t//## File "c.py", line 1\n'
        "        /*0010*/                   NOP ;\n"
    )
    module = parse(text)
    first, second = module.functions[0].instrs
    assert [(f.path, f.line) for f in module.frames(first.loc)] == [("a.py", 7), ("b.py", 3)]
    assert [(f.path, f.line) for f in module.frames(second.loc)] == [("c.py", 1)]


def test_the_name_of_a_file_may_hold_a_line_break() -> None:
    module = parse(
        HEAD + '\t//## File "a\nb.py", line 7\n        /*0000*/                   EXIT ;\n'
    )
    assert module.problems == []
    (instr,) = module.functions[0].instrs
    assert [(f.path, f.line) for f in module.frames(instr.loc)] == [("a\nb.py", 7)]


def test_a_call_of_an_address_is_a_branch_if_nothing_returns_from_there() -> None:
    fn = function("@P0 CALL.REL.NOINC 0x20", "EXIT", "FADD R1, R2, R3", "EXIT")
    assert not fn.instrs[0].shape.row.is_call
    assert [(b.start, sorted(b.succs)) for b in build(fn).blocks] == [
        (0, [1, 2]), (1, []), (2, []),
    ]  # fmt: skip
    fn = function("CALL.REL.NOINC 0x20", "EXIT", "@P0 EXIT", "RET.REL.NODEC R2 0x0")
    assert fn.instrs[0].shape.row.is_call
    fn = function("CALL.REL.NOINC 0x20", "EXIT", "CALL.REL.NOINC 0x30", "RET.REL.NODEC R2 0x0")
    assert all(i.shape.row.is_call for i in (fn.instrs[0], fn.instrs[2]))
    # What is called elsewhere may return.
    assert function("CALL.REL.NOINC 0x900", "EXIT").instrs[0].shape.row.is_call


def test_encodings_tell_the_scheduling() -> None:
    text = (
        "\tcode for sm_90a\n\t\tFunction : k\n"
        "        /*0000*/   LDC R1, c[0x0][0x28] ;    /* 0x00000a00ff017b82 */\n"
        "                                             /* 0x000fe20000000800 */\n"
        "        /*0010*/   S2R R13, SR_TID.X ;       /* 0x00000000000d7919 */\n"
        "                                             /* 0x000e2e0000002100 */\n"
    )
    (fn,) = parse(text).functions
    assert isinstance(fn, SassFunction)
    assert fn.kind == "entry"
    assert [(c.stall, c.write_barrier, c.read_barrier, c.waits) for c in fn.controls] == [
        (1, -1, -1, 0), (7, 0, -1, 0),
    ]  # fmt: skip
    assert control_of(0, 0x3F << 52).waits == 0x3F


def test_what_cannot_be_read_is_told_and_the_rest_is_read() -> None:
    text = HEAD + "        /*0000*/  FADD R1, R2 R3 [ ;\nwhat is this\n        /*0010*/  EXIT ;\n"
    module = parse(text)
    assert len(module.problems) == 2
    assert module.source.position(module.problems[0].offset).line == 4
    assert module.source.position(module.problems[1].offset).line == 5
    assert [i.opcode for i in module.functions[0].instrs] == ["EXIT"]


def test_a_half_of_an_address_that_is_linked_later_is_an_operand() -> None:
    low, high = function("MOV R2, 32@lo(table)", "MOV R3, 32@hi((f + 0x40))").instrs
    assert low.operands[1] == Symbol("32@lo(table)", "unknown")
    assert high.operands[1] == Symbol("32@hi((f + 0x40))", "unknown")
    for uses_memo in (False, True, True):
        read = memo.parse("MOV R7, 32@hi((g + 0x8))", uses_memo)
        assert read.slots == ("R7", "32@hi((g + 0x8))")


def test_json_names_what_it_calls_without_quotes() -> None:
    head = '{"SM":{"version":{"major":9,"minor":0}},"SchemaVersion":1}'
    calls = ",".join(
        f'{{"opcode":"CALL.ABS.NOINC","operands":"{callee}"}}' for callee in ("ackermann", "R6")
    )
    module = parse(f'[{head},[{{"function-name":"k","sass-instructions":[{calls}]}}]]')
    assert module.problems == []
    named, indirect = module.functions[0].instrs
    assert named.operands == (Symbol("ackermann", "function"),)
    assert [r.name for r in indirect.uses] == ["R6"]
    # Nor do listings break that leave the quotes out.
    assert function("CALL.ABS.NOINC ackermann").instrs[0].args == ()


def test_an_unknown_opcode_is_taken_with_care() -> None:
    instr = only("FROB.X R1, R2")
    assert not instr.shape.row.known
    assert [r.name for r in instr.defs] == ["R1"]
    assert [r.name for r in instr.uses] == ["R1", "R2"]


def test_json_that_is_none_is_a_problem() -> None:
    module = parse('[{"SchemaVersion": 1}, 7]')
    assert len(module.problems) == 1
