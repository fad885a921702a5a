"""Masked loads of 8-bit elements that are packed into the registers of tensor-core products."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from ptxlint.dataflow.padding import PaddingAnalysis
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse

Packing = Callable[[str, list[str]], list[str]]
"""Makes the statements that pack four registers of 16 bits into one of 32 bits."""


def _by_prmt(target: str, parts: list[str]) -> list[str]:
    return [
        *(f"cvt.u32.u16 %t{at}, {part};" for at, part in enumerate(parts)),
        "prmt.b32 %t4, %t0, %t1, 0x3340;",
        "prmt.b32 %t5, %t2, %t3, 0x3340;",
        f"prmt.b32 {target}, %t4, %t5, 0x5410;",
    ]


def _by_shifts(target: str, parts: list[str], unite: str = "or.b32") -> list[str]:
    out = [f"cvt.u32.u16 %t{at}, {part};" for at, part in enumerate(parts)]
    out += [f"shl.b32 %t{at}, %t{at}, {8 * at};" for at in (1, 2, 3)]
    out += [f"{unite} %t4, %t0, %t1;", f"{unite} %t5, %t2, %t3;"]
    return [*out, f"{unite} {target}, %t4, %t5;"]


def _by_sums(target: str, parts: list[str]) -> list[str]:
    return _by_shifts(target, parts, "add.s32")


def _by_fields(target: str, parts: list[str]) -> list[str]:
    out = [f"cvt.u32.u16 %t{at}, {part};" for at, part in enumerate(parts)]
    out.append(f"mov.b32 {target}, %t0;")
    return [*out, *(f"bfi.b32 {target}, %t{at}, {target}, {8 * at}, 8;" for at in (1, 2, 3))]


def _by_products(target: str, parts: list[str]) -> list[str]:
    return [
        *(f"cvt.u32.u16 %t{at}, {part};" for at, part in enumerate(parts)),
        "mad.lo.s32 %t4, %t1, 256, %t0;",
        "mad.lo.s32 %t5, %t3, 256, %t2;",
        f"mad.lo.s32 {target}, %t5, 65536, %t4;",
    ]


def _by_vectors(target: str, parts: list[str]) -> list[str]:
    out = [f"shl.b16 {part}, {part}, 8;" for part in parts[1::2]]
    out += [f"or.b16 {a}, {a}, {b};" for a, b in zip(parts[::2], parts[1::2], strict=True)]
    return [*out, f"mov.b32 {target}, {{{parts[0]}, {parts[2]}}};"]


def _through_masks(target: str, parts: list[str]) -> list[str]:
    """Packed backwards, then put right by taking the bytes out again."""
    out = _by_prmt("%t6", parts[::-1])
    for at in range(4):
        out.append(f"and.b32 %t{at}, %t6, {0xFF << 8 * (3 - at):#x};")
        move = "shr.u32" if at < 2 else "shl.b32"
        out.append(f"{move} %t{at}, %t{at}, {8 * abs(3 - 2 * at)};")
    return [*out, "or.b32 %t4, %t0, %t1;", "or.b32 %t5, %t2, %t3;",
            f"or.b32 {target}, %t4, %t5;"]  # fmt: skip


def _through_memory(target: str, parts: list[str]) -> list[str]:
    """Stored as one register and loaded byte by byte."""
    return [
        *_by_prmt("%t6", parts),
        "bar.sync 0;",
        "st.shared.b32 [%place], %t6;",
        "bar.sync 0;",
        *(f"ld.shared.b8 %t{at}, [%place+{at}];" for at in range(4)),
        "prmt.b32 %t4, %t0, %t1, 0x3340;",
        "prmt.b32 %t5, %t2, %t3, 0x3340;",
        f"prmt.b32 {target}, %t4, %t5, 0x5410;",
    ]


def _through_bytes_in_memory(target: str, parts: list[str]) -> list[str]:
    """Stored byte by byte and loaded as one register."""
    return [
        "bar.sync 0;",
        *(f"st.shared.b8 [%place+{at}], {part};" for at, part in enumerate(parts)),
        "bar.sync 0;",
        f"ld.shared.b32 {target}, [%place];",
    ]


def _through_pairs_in_memory(target: str, parts: list[str]) -> list[str]:
    """Stored byte by byte and loaded by two into registers of 32 bits."""
    return [
        "bar.sync 0;",
        *(f"st.shared.b8 [%place+{at}], {part};" for at, part in enumerate(parts)),
        "bar.sync 0;",
        "ld.shared.b16 %t0, [%place];",
        "ld.shared.b16 %t1, [%place+2];",
        f"prmt.b32 {target}, %t0, %t1, 0x5410;",
    ]


PACKINGS = [
    _by_prmt, _by_shifts, _by_sums, _by_fields, _by_products, _by_vectors, _through_masks,
    _through_memory, _through_bytes_in_memory, _through_pairs_in_memory,
]  # fmt: skip
SAME = (0, 1, 2, 3)


def status(
    kind: str,
    packing: Packing,
    fills: tuple[int, int] = (0, 0),
    places: tuple[int, ...] = SAME,
    swapped: tuple[int, ...] = SAME,
) -> list[str]:
    """The verdicts on the loads of A and of B of one product along whose k both are masked.

    `places` are the bytes whose masks B's bytes are loaded under, `swapped` those into which B's
    bytes are packed.
    """
    result = "s32" if kind == "s8" else "f32"
    register = "%acc" if kind == "s8" else "%facc"
    lines: list[str] = []
    for name, count, fill in (("a", 4, fills[0]), ("b", 2, fills[1])):
        masks = SAME if name == "a" else places
        for number in range(count):
            block = 16 * (number >> 1 if name == "a" else number)
            row = 8 * (number & 1) if name == "a" else 0
            for byte in range(4):
                lines += [
                    f"add.s32 %k, %first, {block + masks[byte]};",
                    "setp.lt.s32 %p, %k, %size;",
                    f"mov.b16 %rs{byte}, {fill:#x};",
                    f"@%p ld.global.b8 %rs{byte}, [%{name}+{row * 32 + block + byte}];",
                ]
            order = SAME if name == "a" else swapped
            lines += packing(f"%{name}{number}", [f"%rs{at}" for at in order])
    zeros = "0" if kind == "s8" else "0f00000000"
    accumulators = ", ".join(f"{register}{at}" for at in range(4))
    lines += [f"mov.b32 {register}{at}, {zeros};" for at in range(4)]
    lines.append(
        f"mma.sync.aligned.m16n8k32.row.col.{result}.{kind}.{kind}.{result} "
        f"{{{accumulators}}}, {{%a0, %a1, %a2, %a3}}, {{%b0, %b1}}, {{{accumulators}}};"
    )
    body = "\n".join(lines)
    text = f"""
.version 8.4
.target sm_89
.address_size 64
.shared .align 4 .b8 tile[128];
.visible .entry kernel(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 psize)
.reqntid 32
{{
.reg .pred %p; .reg .b16 %rs<4>; .reg .f32 %facc<4>;
.reg .b32 %t<8>, %a<4>, %b<2>, %acc<4>, %lane, %first, %k, %size, %group, %place, %from;
.reg .b64 %a, %b, %c, %at, %lower;
ld.param.u64 %a, [pa];
ld.param.u64 %b, [pb];
ld.param.u64 %c, [pc];
ld.param.u32 %size, [psize];
mov.u32 %lane, %tid.x;
and.b32 %first, %lane, 3;
shl.b32 %first, %first, 2;
shr.u32 %group, %lane, 2;
mov.u32 %place, tile;
shl.b32 %from, %lane, 2;
add.s32 %place, %place, %from;
mad.lo.s32 %from, %group, 32, %first;
cvt.u64.u32 %at, %from;
add.s64 %a, %a, %at;
add.s64 %b, %b, %at;
{body}
mul.wide.u32 %at, %lane, 16;
add.s64 %c, %c, %at;
st.global.v4.b32 [%c], {{{accumulators}}};
ret;
}}
"""
    module = parse(text)
    assert module.problems == []
    facts = Facts(module, module.functions[0])
    found = facts.get(PaddingAnalysis).verdicts
    return sorted({verdict.status for verdict in found})


@pytest.mark.parametrize("kind", ["s8", "e4m3", "e5m2"])
@pytest.mark.parametrize("packing", PACKINGS)
def test_zeros_add_nothing(packing: Packing, kind: str) -> None:
    assert status(kind, packing) == ["proved"]


@pytest.mark.parametrize("kind", ["s8", "e4m3"])
@pytest.mark.parametrize("packing", PACKINGS)
def test_a_number_meets_a_zero(packing: Packing, kind: str) -> None:
    assert status(kind, packing, (0x38, 0)) == ["proved"]


@pytest.mark.parametrize("kind", ["s8", "e4m3"])
@pytest.mark.parametrize("packing", PACKINGS)
def test_a_number_does_not_meet_the_zero_of_another_byte(packing: Packing, kind: str) -> None:
    assert "open" in status(kind, packing, (0x38, 0), (1, 0, 3, 2))
    assert "open" in status(kind, packing, (0x38, 0), (0, 0, 2, 2))
    assert "open" in status(kind, packing, (0x38, 0), SAME, (2, 1, 0, 3))


@pytest.mark.parametrize("kind", ["s8", "e4m3", "e5m2"])
@pytest.mark.parametrize("packing", PACKINGS)
def test_other_fills_add_something(packing: Packing, kind: str) -> None:
    assert "proved" not in status(kind, packing, (0x38, 0x38))


@pytest.mark.parametrize(
    ("kind", "fill", "expected"),
    [
        ("s8", 0x7F, ["proved"]), ("e4m3", 0x7F, ["open"]), ("e4m3", 0x7C, ["proved"]),
        ("e5m2", 0x7C, ["open"]), ("e5m2", 0x7F, ["open"]),
    ],
)  # fmt: skip
def test_zeros_must_not_meet_nan_or_infinity(kind: str, fill: int, expected: list[str]) -> None:
    found = status(kind, _by_prmt, (0, fill))
    assert found == expected or (expected == ["open"] and "open" in found)


PTX = Path(__file__).resolve().parents[2] / "fixtures" / "ptx"
KERNELS = sorted(
    path
    for kind in ("int8", "fp8e4nv", "fp8e5")
    for path in PTX.glob(f"sm_*/matmul_dot_{kind}.ptx")
    if path.parent.name != "sm_100"
)
"""Products of whole tiles; those of sm_100 leave the registers for tensor memory."""
_FILL = re.compile(r"mov\.u16 +(%rs\d+), (?:0x0|%rs2);")


def by_line(text: str) -> dict[int, str]:
    module = parse(text)
    found = {}
    facts = Facts(module, module.functions[0])
    for verdict in facts.get(PaddingAnalysis).verdicts:
        assert verdict.at.loc is not None
        found[verdict.at.loc.line] = verdict.status
    return found


@pytest.mark.parametrize("path", KERNELS, ids=lambda p: f"{p.parent.name}-{p.stem}")
def test_tiles_of_bytes_are_decided(path: Path) -> None:
    assert list(by_line(path.read_text()).values()) == ["proved", "proved"]


@pytest.mark.parametrize(
    "path",
    [p for p in KERNELS if p.parent.name in ("sm_80", "sm_90", "sm_120")],
    ids=lambda p: f"{p.parent.name}-{p.stem}",
)
def test_tiles_that_are_filled_with_something_else_are_not(path: Path) -> None:
    text, count = _FILL.subn(r"mov.u16 \1, 0x38;", path.read_text())
    assert count > 32
    assert list(by_line(text).values()) == ["open", "open"]


@pytest.mark.parametrize("arch", ["sm_89", "sm_90"])
def test_tiles_with_nan_in_one_byte_are_not(arch: str) -> None:
    text = (PTX / arch / "matmul_dot_fp8e4nv.ptx").read_text()
    # The last fill is one of the second factor.
    fills = list(_FILL.finditer(text))
    last = fills[-1]
    changed = text[: last.start()] + f"mov.u16 {last[1]}, 0x7f;" + text[last.end() :]
    found = by_line(changed)
    assert found[min(found)] == "open"
