"""Damaged cubins and listings: every one is answered, and nothing crashes.

Cubins are cut off, overwritten, and given other sizes and offsets in their section headers;
listings are mutated as the fixtures are. `--run-slow` takes many, the default a sample; the draw is
fixed.
"""

from __future__ import annotations

import struct
import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from random import Random

import pytest

from ptxlint import check
from ptxlint.frontends.assembler_log import read_log
from ptxlint.frontends.cubin import CubinError, read_cubin
from ptxlint.frontends.sass import parse
from ptxlint.frontends.toolkit import ToolError, assemble, disassemble, find_assembler

sys.path.insert(0, str(Path(__file__).parent))
import test_mutations

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
SOURCES = {"sm_80": "ptx/sm_80/softmax.ptx", "sm_90a": "ptx/sm_90/argmax.ptx"}
SECTION = 64
"""Bytes of a section's header."""
SIZES = (0, 1, 2**31, 2**32 - 1, 2**63 - 1, 2**64 - 1)
PIECES = (
    ";", "/*0010*/", "[", "]", "@P0", "@!PT", "R255", "UR63", "c[0x0][0x28]", "desc[UR4]",
    "`(.L_x_1)", ".L_x_1:", "BRA 0x10", "BSSY B0, `(.L_9)", '.section .text.k,"ax"', "{", "}",
    '//## File "a.py", line 99999999999999999999', "\0", "\xe9", "\r", "(*", "*)", "-INF", "+QNAN",
    "1e999", "08", "0x" + "f" * 50, "/* 0x0000000000000000 */", "CALL.REL.NOINC 0x99",
    "BRX R2 -0x10", "P2R R0, PR, RZ, 0x7f", "WARPSYNC.ALL", '"', "\\", "code for sm_90",
    "Function : k", ".target\tsm_999",
)  # fmt: skip
Deadline = Callable[[int], AbstractContextManager[None]]


@pytest.fixture(scope="module")
def cubins() -> dict[str, bytes]:
    out = {}
    for arch, name in SOURCES.items():
        try:
            text = (FIXTURES / name).read_text()
            out[arch] = assemble(text, arch, find_assembler((9, 4))).cubin
        except ToolError as error:
            pytest.skip(str(error))
    return out


def damaged(cubin: bytes, count: int, random: Random) -> Iterator[bytes]:
    """So many of each kind of damage."""
    step = 7 * max(1, len(cubin) // 7 // count)
    yield from (cubin[:end] for end in range(0, len(cubin), step))
    for _ in range(count):
        copy = bytearray(cubin)
        for _ in range(random.choice((1, 1, 2, 8, 64))):
            at = random.randrange(len(copy)) if random.random() < 0.5 else random.randrange(64)
            copy[at] = random.choice((0, 255, copy[at] ^ 1 << random.randrange(8)))
        yield bytes(copy)
    (headers,) = struct.unpack_from("<Q", cubin, 40)
    (sections,) = struct.unpack_from("<H", cubin, 60)
    for _ in range(count):
        copy = bytearray(cubin)
        field = random.choice((0, 4, 8, 16, 24, 32, 40, 44, 48))
        at = headers + SECTION * random.randrange(sections) + field
        form = "<I" if field in (0, 4, 40, 44) else "<Q"
        size = random.choice((*SIZES, len(cubin), random.randrange(2**64)))
        struct.pack_into(form, copy, at, size % (1 << 8 * struct.calcsize(form)))
        yield bytes(copy)


def test_damaged_cubins_are_read_or_told(
    cubins: dict[str, bytes], deadline: Deadline, run_slow: bool
) -> None:
    faults = 0
    for arch, cubin in cubins.items():
        for damage in damaged(cubin, 2_000 if run_slow else 50, Random(arch)):
            with deadline(2):
                try:
                    read_cubin(damage)
                except CubinError:
                    faults += 1
    assert faults > 100


@pytest.mark.slow
def test_damaged_cubins_are_checked_or_told(cubins: dict[str, bytes], tmp_path: Path) -> None:
    path = tmp_path / "k.cubin"
    for arch, cubin in cubins.items():
        for damage in damaged(cubin, 40, Random(arch)):
            path.write_bytes(damage)
            report = check(path)
            assert [f for f in report.findings if f.rule == "INTERNAL"] == []
            assert report.exit_code in (0, 1, 2)


def test_mutated_listings_are_answered(
    cubins: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    deadline: Deadline,
    run_slow: bool,
) -> None:
    monkeypatch.setattr(test_mutations, "INSERTED", list(PIECES))
    path = tmp_path / "k.sass"
    names = list(test_mutations.MUTATIONS)
    for arch, cubin in list(cubins.items())[: None if run_slow else 1]:
        texts = [disassemble(cubin, "-c", "-gi"), disassemble(cubin, "-json")]
        for text in texts:
            random = Random(arch)
            for _ in range(500 if run_slow else 4):
                mutant = text
                for _ in range(random.choice((1, 1, 2, 5))):
                    name = random.choice(names)
                    mutant = test_mutations.MUTATIONS[name](mutant, random, texts[0])
                path.write_text(mutant, errors="replace", newline="")
                with deadline(10):
                    report = check(path)
                assert [f.message for f in report.findings if f.rule == "INTERNAL"] == []


LISTING = (
    '\t.target\tsm_80\n\t.section\t.text.k,"ax",@progbits\n.text.k:\n'
    "        /*0000*/                   MOV R1, c[0x0][0x28] ;\n"
    "        /*0010*/              @!P0 BRA `(.L_x_1) ;\n"
    "        /*0020*/                   MOV R2, 0x7 ;\n"
    ".L_x_1:\n"
    "        /*0030*/                   EXIT ;\n"
    ".L_x_2:\n"
    "        /*0040*/                   BRA `(.L_x_2);\n"
    "        /*0050*/                   NOP;\n"
)


def test_a_listing_that_is_cut_is_told() -> None:
    assert parse(LISTING).problems == []
    assert parse(LISTING.replace("\n", "\r\n")).problems == []

    def told(text: str) -> list[str]:
        return [p.message for p in parse(text).problems]

    assert told(LISTING[: LISTING.index(".L_x_1:")]) == [
        "the code of `k` ends in its middle", "`.L_x_1` stands nowhere in `k`",
    ]  # fmt: skip
    assert told(LISTING[: LISTING.index("        /*0000")]) == ["there is no instruction of `k`"]
    # Where the last line is a jump, the labels that are missing tell.
    end = LISTING.index("        /*0020")
    guarded = LISTING[:end].replace("@!P0 ", "")
    assert told(guarded) == ["`.L_x_1` stands nowhere in `k`"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("0x7", "9" * 5_000), ("R2, 0x7", f"R{'9' * 5_000}, 0x7"),
        ("MOV R2, 0x7", "MOV R2, 1e9999"),
        (".text.k:\n", f'.text.k:\n//## File "a.py", line {"9" * 5_000}\n'),
        ("MOV R2, 0x7", f"P2R R2, PR, RZ, {'7' * 5_000}"),
    ],
)  # fmt: skip
def test_numbers_without_end_are_told_or_passed_over(old: str, new: str) -> None:
    assert old in LISTING
    module = parse(LISTING.replace(old, new))
    assert len(module.functions[0].instrs) >= 5
    assert all("internal" not in p.message for p in module.problems)


def test_a_log_with_numbers_without_end_says_nothing() -> None:
    end = "9" * 5_000
    log = (
        "Compiling entry function 'k' for 'sm_80'\nFunction properties for k\n"
        f"{end} bytes stack frame, 0 bytes spill stores, 0 bytes spill loads\n"
        f"Used 40 registers, used {end} barriers, {end} bytes smem\n"
    )
    (told,) = read_log(log).values()
    assert told.registers is not None
    assert told.registers.value == 40
    assert told.stack is None
    assert told.shared is not None
    assert told.shared.value == 0


def test_zeros_in_front_of_a_number_are_no_octal() -> None:
    (fn,) = parse(LISTING.replace("0x7", "08")).functions
    assert [a.value for a in fn.instrs[2].args[1:]] == [8]  # type: ignore[union-attr]
