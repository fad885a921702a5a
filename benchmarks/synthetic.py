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


def repeated(name: str, times: int) -> str:
    """One function that does what a fixture's kernel does so many times, each time anew.

    Every copy of the body is a scope of its own, so that registers and labels do not clash; all
    share the parameters and the shared memory.
    """
    text = next(text for kernel, text in kernels() if kernel == name)
    start = text.index("{\n")
    body = text[start + 2 : text.rindex("}")]
    out = [HEAD, text[: start + 2]]
    for copy in range(times):
        out += ["{\n", re.sub(r"\bret;", f"bra $after{copy};", body), f"}}\n$after{copy}:\n"]
    out.append("ret;\n}\n")
    return "".join(out)


def wide_softmax(columns: int) -> str:
    """A row softmax with fill 0 in which each thread holds so many columns.

    The maximum and the sum are combined in a tree within the thread, then over the lanes.
    """
    width = columns
    out = [
        HEAD,
        ".visible .entry wide(.param .u64 .ptr .global .align 16 p, .param .u32 n)\n"
        ".reqntid 32\n{\n"
        f".reg .pred %p<{width + 1}>;\n.reg .b32 %r<{width * 8 + 64}>;\n.reg .b64 %rd<4>;\n"
        "ld.param.b64 %rd1, [p];\nld.param.b32 %r1, [n];\nmov.u32 %r2, %tid.x;\n"
        "mul.wide.u32 %rd2, %r2, 4;\nadd.s64 %rd3, %rd1, %rd2;\nmov.b32 %r3, 0;\n",
    ]
    register = 4

    def put(line: str) -> str:
        """Add `line`, where `@` is the next register; returns its name."""
        nonlocal register
        made = f"%r{register}"
        register += 1
        out.append(line.replace("@", made) + "\n")
        return made

    def combine(values: list[str], operation: str) -> str:
        while len(values) > 1:
            paired = [
                put(f"{operation} @, {a}, {b};")
                for a, b in zip(values[::2], values[1::2], strict=False)
            ]
            values = paired + values[2 * len(paired) :]
        (value,) = values
        for lanes in (16, 8, 4, 2, 1):
            other = put(f"shfl.sync.bfly.b32 @, {value}, {lanes}, 31, -1;")
            value = put(f"{operation} @, {value}, {other};")
        return value

    loaded = []
    for at in range(width):
        column = put(f"add.s32 @, %r2, {32 * at};")
        out.append(f"setp.lt.s32 %p{at}, {column}, %r1;\n")
        value = put("mov.b32 @, %r3;")
        out.append(f"@%p{at} ld.global.b32 {{ {value} }}, [ %rd3 + {128 * at} ];\n")
        loaded.append(value)
    top = combine(loaded, "max.f32")
    powers = []
    for value in loaded:
        difference = put(f"sub.f32 @, {value}, {top};")
        scaled = put(f"mul.f32 @, {difference}, 0f3FB8AA3B;")
        powers.append(put(f"ex2.approx.f32 @, {scaled};"))
    total = combine(powers, "add.f32")
    for at, value in enumerate(powers):
        share = put(f"div.full.f32 @, {value}, {total};")
        out.append(f"@%p{at} st.global.b32 [ %rd3 + {128 * at} ], {{ {share} }};\n")
    out.append("ret;\n}\n")
    return "".join(out)
