"""Large modules built on demand from the fixtures: renamed copies of real kernels."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

FIXTURES = Path(__file__).resolve().parents[1] / "fixtures" / "ptx" / "sm_80"
HEAD = (
    ".version 8.8\n.target sm_80\n.address_size 64\n.extern .shared .align 16 .b8 global_smem[];\n"
)


def kernels() -> list[tuple[str, str]]:
    """(name, text) of the fixtures' kernels for sm_80, without file directives and sections."""
    out: list[tuple[str, str]] = []
    for path in sorted(FIXTURES.glob("*.ptx")):
        text = path.read_text(encoding="utf-8")
        found = re.finditer(r"^\.visible \.entry (\w+)\(.*?^}\n", text, re.DOTALL | re.MULTILINE)
        out += [(match[1], match[0]) for match in found]
    return out


def module(lines: int) -> str:
    """A module of at least so many lines: copies of the kernels under new names."""
    parts, count = [HEAD], HEAD.count("\n")
    for number, (name, text) in enumerate(_cycle(kernels())):
        if count >= lines:
            break
        copy = re.sub(rf"\b{name}\b(?=[_(])|\b{name}(?=_param)", f"{name}_{number}", text)
        parts.append(copy)
        count += copy.count("\n")
    return "".join(parts)


def _cycle(items: list[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    while True:
        yield from items


def one_function(instructions: int) -> str:
    """One kernel of so many instructions: blocks of arithmetic, loads, branches and loops."""
    registers = instructions + 8
    out = [
        HEAD,
        ".visible .entry big(.param .u64 .ptr .global .align 16 p, .param .u32 n)\n",
        ".reqntid 128\n{\n",
        f".reg .pred %p<{instructions // 8 + 4}>;\n.reg .b32 %r<{registers}>;\n.reg .b64 %rd<8>;\n",
        "ld.param.b64 %rd1, [p];\nld.param.b32 %r1, [n];\nmov.u32 %r2, %tid.x;\n",
    ]
    made, register, block = 3, 3, 0
    while made < instructions:
        out.append(f"$L{block}:\n")
        start = register
        for at in range(28):
            left, right = max(1, register - 1), max(1, register - 1 - at % 5)
            operation = ("add.s32", "mul.lo.s32", "xor.b32", "max.s32")[at % 4]
            out.append(f"\t{operation} \t%r{register}, %r{left}, %r{right};\n")
            register += 1
        out.append(f"\tmul.wide.s32 \t%rd2, %r{register - 1}, 4;\n\tadd.s64 \t%rd3, %rd1, %rd2;\n")
        out.append(f"\tsetp.lt.s32 \t%p{block + 1}, %r{start}, %r1;\n")
        out.append(f"\t@%p{block + 1} st.global.b32 [ %rd3 + 0 ], {{ %r{register - 1} }};\n")
        if block % 3 == 2:
            out.append(f"\t@%p{block + 1} bra \t$L{block};\n")
        else:
            out.append(f"\t@%p{block + 1} bra \t$L{block + 1};\n")
        made += 33
        block += 1
    out.append(f"$L{block}:\n\tret;\n}}\n")
    return "".join(out)


def call_sequences(lines: int) -> str:
    """A module in the manner of nvcc: functions with call sequences in scopes of their own."""
    out = [
        ".version 8.0\n.target sm_80\n.address_size 64\n",
        ".extern .func (.param .b32 r) callee(.param .b32 a, .param .b64 b);\n",
    ]
    count, number = 4, 0
    while count < lines:
        out.append(
            f".visible .func (.param .b32 func_retval0) f{number}("
            f".param .b32 f{number}_param_0)\n{{\n"
            "\t.reg .b32 \t%r<70>;\n\t.reg .b64 \t%rd<3>;\n"
            f"\tld.param.u32 \t%r1, [f{number}_param_0];\n\tmov.u64 \t%rd1, 0;\n"
        )
        out += map(_call_sequence, range(60))
        out.append("\tst.param.b32 \t[func_retval0+0], %r61;\n\tret;\n}\n")
        count += 7 + 60 * 16
        number += 1
    return "".join(out)


def _call_sequence(call: int) -> str:
    return (
        f"\t{{ // callseq {call}, 0\n\t.reg .b32 temp_param_reg;\n\t.param .b32 param0;\n"
        f"\tst.param.b32 \t[param0+0], %r{call + 1};\n\t.param .b64 param1;\n"
        "\tst.param.b64 \t[param1+0], %rd1;\n\t.param .b32 retval0;\n"
        "\tcall.uni (retval0), \n\tcallee, \n\t(\n\tparam0, \n\tparam1\n\t);\n"
        f"\tld.param.b32 \t%r{call + 2}, [retval0+0];\n\t}} // callseq {call}\n"
    )
