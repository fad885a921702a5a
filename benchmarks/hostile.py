"""Kernels of a chosen size that ask as much of the analyses as a text of that size can.

Each is a function of about how many instructions; ptxas takes them all. Real kernels have a little
of this: unrolled index arithmetic, masks made of masks, long sums, hundreds of exchanged cells.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

HEAD = """.version 8.0
.target sm_80
.address_size 64
.visible .entry hostile(.param .u64 .ptr .global .align 16 p, .param .u32 n)
.reqntid 128
{
"""
START = """ld.param.b64 %rd1, [p];
ld.param.b32 %r1, [n];
mov.u32 %r2, %tid.x;
mul.wide.u32 %rd2, %r2, 4;
add.s64 %rd3, %rd1, %rd2;
setp.lt.s32 %p1, %r2, %r1;
"""


def _kernel(body: Iterable[str], size: int) -> str:
    registers = (
        f".reg .pred %p<{size + 99}>;\n.reg .b32 %r<{4 * size + 99}>;\n.reg .b64 %rd<9>;\n"
        ".shared .align 16 .b8 cells[16384];\n"
    )
    return HEAD + registers + START + "\n".join(body) + "\nret;\n}\n"


def _butterfly(value: int, first: int, operation: str) -> list[str]:
    """A reduction over a warp; registers from `first` on."""
    out = []
    for at, lanes in enumerate((16, 8, 4, 2, 1)):
        other, result = first + 2 * at, first + 2 * at + 1
        out.append(f"shfl.sync.bfly.b32 %r{other}, %r{value}, {lanes}, 31, -1;")
        out.append(f"{operation} %r{result}, %r{value}, %r{other};")
        value = result
    return out


def extremes(size: int) -> str:
    """Each index is the larger of two that are made of the one before: texts that double."""
    body = ["mov.b32 %r10, %r2;"]
    for at in range(size // 5):
        r = 10 + 3 * at
        body += [
            f"add.s32 %r{r + 1}, %r{r}, %r1;",
            f"sub.s32 %r{r + 2}, %r1, %r{r};",
            f"max.s32 %r{r + 3}, %r{r + 1}, %r{r + 2};",
            f"setp.lt.s32 %p{at + 2}, %r{r + 3}, %r1;",
            f"@%p{at + 2} st.global.b32 [%rd3], %r{r + 3};",
        ]
    return _kernel(body, size)


def powers(size: int) -> str:
    """Products of an index with itself: degrees and coefficients that double."""
    body = ["mov.b32 %r10, %r1;", "mov.b32 %r11, 3;"]
    for at in range(size // 4):
        r = 10 + 2 * at
        body += [
            f"mul.lo.s32 %r{r + 2}, %r{r}, %r{r};",
            f"mul.lo.s32 %r{r + 3}, %r{r + 1}, %r{r + 1};",
            f"setp.lt.s32 %p{at + 2}, %r{r + 2}, %r{r + 3};",
            f"@%p{at + 2} st.global.b32 [%rd3], %r{r + 3};",
        ]
    return _kernel(body, size)


def sums(size: int) -> str:
    """Products of long sums of loaded indices."""
    body = []
    for at in range(size // 2):
        r = 10 + at
        operation = "mul.lo.s32" if at % 16 == 15 else "add.s32"
        body += [
            f"ld.global.b32 %r{2 * size + at}, [%rd3+{4 * at}];",
            f"{operation} %r{r + 1}, %r{r if at else 2}, %r{2 * size + at};",
        ]
    body.append(f"setp.lt.s32 %p2, %r{10 + size // 2}, %r1;")
    body.append("@%p2 st.global.b32 [%rd3], %r1;")
    return _kernel(body, size)


def masks_of_masks(size: int) -> str:
    """Each mask is the one before and another comparison; each guards a load that is summed."""
    body = ["mov.b32 %r10, 0;", "mov.pred %p2, %p1;"]
    total = 10
    for at in range(size // 6):
        r = 11 + 3 * at
        body += [
            f"add.s32 %r{r}, %r2, {at};",
            f"setp.lt.s32 %p{size // 2 + at}, %r{r}, %r1;",
            f"and.pred %p{at + 3}, %p{at + 2}, %p{size // 2 + at};",
            f"mov.b32 %r{r + 1}, 0;",
            f"@%p{at + 3} ld.global.b32 {{ %r{r + 1} }}, [%rd3+{4 * at}];",
            f"add.f32 %r{r + 2}, %r{total}, %r{r + 1};",
        ]
        total = r + 2
    body += _butterfly(total, 3 * size, "add.f32")
    body.append(f"@%p1 st.global.b32 [%rd3], %r{3 * size + 9};")
    return _kernel(body, size)


def nested_branches(size: int) -> str:
    """Branches in branches, a masked load in each, and a store behind all of them."""
    depth = size // 6
    body = ["mov.b32 %r10, 0;"]
    for at in range(depth):
        r = 11 + 3 * at
        body += [
            f"add.s32 %r{r}, %r2, {at};",
            f"setp.ge.s32 %p{at + 2}, %r{r}, %r1;",
            f"@%p{at + 2} bra $END;",
            f"mov.b32 %r{r + 1}, 0;",
            f"@%p1 ld.global.b32 {{ %r{r + 1} }}, [%rd3+{4 * at}];",
            f"st.global.b32 [%rd3+{4 * at}], %r{r + 1};",
        ]
    return _kernel([*body, "$END:"], size)


def long_sum(size: int, one_mask: bool = False) -> str:
    """Masked loads, each under its own bound, in one sum over a warp."""
    body = ["mov.b32 %r10, 0;"]
    total = 10
    for at in range(size // 5):
        r = 11 + 3 * at
        predicate = "%p1" if one_mask else f"%p{at + 2}"
        body += [
            f"add.s32 %r{r}, %r2, {32 * at};",
            f"setp.lt.s32 %p{at + 2}, %r{r}, %r1;",
            f"mov.b32 %r{r + 1}, 0;",
            f"@{predicate} ld.global.b32 {{ %r{r + 1} }}, [%rd3+{128 * at}];",
            f"add.f32 %r{r + 2}, %r{total}, %r{r + 1};",
        ]
        total = r + 2
    body += _butterfly(total, 3 * size, "add.f32")
    body.append(f"@%p1 st.global.b32 [%rd3], %r{3 * size + 9};")
    return _kernel(body, size)


def sum_under_one_mask(size: int) -> str:
    """The same under one bound, which is uniform over what each thread adds."""
    return long_sum(size, one_mask=True)


def deep_chain(size: int) -> str:
    """One masked load through a long chain of operations into a maximum."""
    body = ["mov.b32 %r10, 0;", "@%p1 ld.global.b32 { %r10 }, [%rd3];"]
    count = size - 20
    for at in range(count):
        operation = ("mul.f32", "add.f32", "max.f32", "min.f32")[at % 4]
        body.append(f"{operation} %r{11 + at}, %r{10 + at}, %r{max(10, 7 + at)};")
    body += _butterfly(10 + count, 3 * size, "max.f32")
    body.append(f"@%p1 st.global.b32 [%rd3], %r{3 * size + 9};")
    return _kernel(body, size)


def exchange(size: int) -> str:
    """Masked loads through shared memory in another layout, summed behind the barrier."""
    count = size // 7
    body = ["mov.b32 %r9, cells;", "shl.b32 %r8, %r2, 2;", "add.s32 %r8, %r8, %r9;"]
    for at in range(count):
        r = 11 + 2 * at
        body += [
            f"mov.b32 %r{r}, 0;",
            f"@%p1 ld.global.b32 {{ %r{r} }}, [%rd3+{4 * at}];",
            f"st.shared.b32 [%r8+{512 * (at % 32)}], %r{r};",
        ]
    body += ["bar.sync 0;", f"mov.b32 %r{2 * size}, 0;"]
    total = 2 * size
    for at in range(count):
        r = 2 * size + 1 + 2 * at
        body += [
            f"ld.shared.b32 %r{r}, [%r8+{512 * (at * 7 % 32)}];",
            f"add.f32 %r{r + 1}, %r{total}, %r{r};",
        ]
        total = r + 1
    body += _butterfly(total, 4 * size, "add.f32")
    body.append(f"@%p1 st.global.b32 [%rd3], %r{4 * size + 9};")
    return _kernel(body, size)


def loops(size: int) -> str:
    """Loops one after the other, each with a masked load in a carried sum."""
    body = ["mov.b32 %r5, 0;"]
    for at in range(size // 10):
        r = 10 + 4 * at
        body += [
            f"mov.b32 %r{r}, 0;",
            f"$L{at}:",
            f"add.s32 %r{r + 1}, %r{r}, %r2;",
            f"setp.lt.s32 %p2, %r{r + 1}, %r1;",
            f"mov.b32 %r{r + 2}, 0;",
            f"@%p2 ld.global.b32 {{ %r{r + 2} }}, [%rd3+{4 * at}];",
            f"add.f32 %r5, %r5, %r{r + 2};",
            f"add.s32 %r{r}, %r{r}, 128;",
            f"setp.lt.s32 %p3, %r{r}, %r1;",
            f"@%p3 bra $L{at};",
        ]
    body.append("@%p1 st.global.b32 [%rd3], %r5;")
    return _kernel(body, size)


def wide_loop(size: int) -> str:
    """One loop that carries many sums, each of another masked load."""
    count = size // 6
    body = [f"mov.b32 %r{10 + 3 * at}, 0;" for at in range(count)]
    body += ["mov.b32 %r3, 0;", "$LOOP:", "setp.lt.s32 %p2, %r3, %r1;"]
    for at in range(count):
        r = 10 + 3 * at
        body += [
            f"mov.b32 %r{r + 1}, 0;",
            f"@%p2 ld.global.b32 {{ %r{r + 1} }}, [%rd3+{4 * at}];",
            f"fma.rn.f32 %r{r}, %r{r + 1}, %r{r + 1}, %r{r};",
        ]
    body += ["add.s32 %r3, %r3, 1;", "setp.lt.s32 %p3, %r3, %r1;", "@%p3 bra $LOOP;"]
    body += [f"@%p1 st.global.b32 [%rd3+{4 * at}], %r{10 + 3 * at};" for at in range(count)]
    return _kernel(body, size)


def nested_loops(size: int) -> str:
    """Loops in loops, sixteen deep, again and again; the index is made in the innermost."""
    body: list[str] = ["mov.b32 %r5, 0;"]
    label = 0
    for _ in range(max(1, size // 100)):
        labels = []
        for depth in range(16):
            body += [f"mov.b32 %r{20 + depth}, 0;", f"$L{label}:"]
            labels.append(label)
            label += 1
        body += [
            "add.s32 %r5, %r20, %r35;",
            "setp.lt.s32 %p2, %r5, %r1;",
            "@%p2 st.global.b32 [%rd3], %r5;",
        ]
        for depth in reversed(range(16)):
            body += [
                f"add.s32 %r{20 + depth}, %r{20 + depth}, 1;",
                f"setp.lt.s32 %p3, %r{20 + depth}, %r1;",
                f"@%p3 bra $L{labels[depth]};",
            ]
    return _kernel(body, size)


def cascade(size: int) -> str:
    """Diamonds one after the other that choose among values again and again."""
    body = ["mov.b32 %r10, %r2;", "mov.b32 %r11, %r1;"]
    for at in range(size // 7):
        body += [
            f"setp.lt.s32 %p{at + 2}, %r10, %r11;",
            f"@%p{at + 2} bra $A{at};",
            "add.s32 %r10, %r10, %r11;",
            f"bra $B{at};",
            f"$A{at}:",
            "sub.s32 %r11, %r11, %r10;",
            f"$B{at}:",
            f"selp.b32 %r10, %r11, %r10, %p{at + 2};",
            "@%p1 st.global.b32 [%rd3], %r10;",
        ]
    return _kernel(body, size)


KERNELS: dict[str, Callable[[int], str]] = {
    function.__name__: function
    for function in (
        extremes, powers, sums, masks_of_masks, nested_branches, long_sum, sum_under_one_mask,
        deep_chain, exchange, loops, wide_loop, nested_loops, cascade,
    )
}  # fmt: skip
