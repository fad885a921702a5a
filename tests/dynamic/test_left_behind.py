"""What launches leave behind in memory, held to the emulator, which runs the whole kernel."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from ptxlint.dynamic.emulator.run import run
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse
from ptxlint.launch.binding import bind
from ptxlint.launch.left_behind import run_launch
from ptxlint.launch.memory import Piece, SharedPiece
from ptxlint.launches import Launch, Tensor

THREADS, CTAS, CELLS = 64, 2, 16
WORDS = THREADS * CTAS + CELLS
"""Words of the result: one a thread, and some that all add to."""
HEAD = f""".version 8.0
.target sm_80
.address_size 64
.visible .entry k(.param .u64 .ptr .global .align 16 in, .param .u64 .ptr .global .align 16 out)
    .reqntid {THREADS}
{{
.reg .pred %p<8>;
.reg .b16 %rs<8>;
.reg .b32 %r<40>;
.reg .b64 %rd<12>;
.shared .align 16 .b8 buffer[1024];
ld.param.u64 %rd1, [in];
ld.param.u64 %rd2, [out];
mov.u32 %r1, %tid.x;
mov.u32 %r2, %ctaid.x;
mad.lo.s32 %r3, %r2, {THREADS}, %r1;
mul.wide.s32 %rd3, %r3, 4;
add.s64 %rd4, %rd1, %rd3;
add.s64 %rd5, %rd2, %rd3;
ld.global.b32 %r10, [%rd4];
mov.u32 %r11, %r1;
mov.u32 %r12, %r2;
mov.u32 %r13, 7;
mov.u32 %r4, buffer;
"""


class Writer:
    """Writes random kernels without races."""

    def __init__(self, random: Random) -> None:
        self._random = random
        self._labels = 0

    def any(self) -> str:
        return f"%r{self._random.randint(10, 13)}"

    def arithmetic(self) -> str:
        a, b, c = self.any(), self.any(), self.any()
        number = self._random.randrange(1, 31)
        return self._random.choice(
            [
                f"add.s32 {a}, {b}, {c};", f"xor.b32 {a}, {b}, {c};", f"sub.s32 {a}, {b}, {c};",
                f"mul.lo.s32 {a}, {b}, {c};", f"min.s32 {a}, {b}, {c};",
                f"max.u32 {a}, {b}, {c};", f"shr.u32 {a}, {b}, {number};",
                f"shl.b32 {a}, {b}, {number};", f"shr.s32 {a}, {b}, {number};",
                f"bfe.s32 {a}, {b}, {number}, 5;",
                f"setp.lt.s32 %p1, {b}, {c};\nselp.b32 {a}, {b}, {c}, %p1;",
                f"setp.ne.s32 %p2, {b}, 3;\n@%p2 add.s32 {a}, {b}, {number};",
            ]
        )  # fmt: skip

    def warp(self) -> str:
        a, b, c = self.any(), self.any(), self.any()
        by = self._random.choice(["1", "2", "5", "16", c])
        clamp = self._random.choice(["31", "0x1c1f", "0x181f"])
        return self._random.choice(
            [
                f"shfl.sync.bfly.b32 {a}, {b}, {by}, {clamp}, -1;",
                f"shfl.sync.idx.b32 {a}, {b}, {by}, {clamp}, -1;",
                f"shfl.sync.down.b32 {a}|%p3, {b}, {by}, {clamp}, -1;\nselp.b32 {c}, {a}, 1, %p3;",
                f"shfl.sync.up.b32 {a}, {b}, {by}, 0, -1;",
                f"redux.sync.add.s32 {a}, {b}, -1;",
                f"redux.sync.min.s32 {a}, {b}, -1;",
                f"setp.gt.s32 %p4, {b}, 5;\nvote.sync.ballot.b32 {a}, %p4, -1;",
            ]
        )

    def exchange(self) -> str:
        a, b, mask = self.any(), self.any(), self._random.randrange(THREADS)
        put = (
            f"bar.sync 0;\nxor.b32 %r20, %r1, {mask};\nshl.b32 %r20, %r20, 2;\n"
            f"add.s32 %r21, %r4, %r20;\n"
        )
        store = self._random.choice(
            [
                f"st.shared.b32 [%r21], {a};",
                f"cvt.u16.u32 %rs1, {a};\nshr.u32 %r22, {a}, 16;\ncvt.u16.u32 %rs2, %r22;\n"
                "st.shared.v2.b16 [%r21], {%rs1, %rs2};",
            ]
        )
        row = "and.b32 %r23, %r1, 15;\nshl.b32 %r24, %r23, 4;\nadd.s32 %r25, %r4, %r24;\n"
        load = self._random.choice(
            [
                f"shl.b32 %r23, %r1, 2;\nadd.s32 %r25, %r4, %r23;\nld.shared.b32 {b}, [%r25];",
                row + "ld.shared.v4.b32 {%r10, %r11, %r12, %r13}, [%r25];",
                row + "ld.shared.v2.u16 {%rs3, %rs4}, [%r25+4];\ncvt.u32.u16 " + f"{b}, %rs4;",
                row + f"ld.shared.s8 {b}, [%r25+3];",
                row + f"ld.shared.u8 {b}, [%r25+9];",
                row + "ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r10, %r11}, [%r25];",
                row + "ldmatrix.sync.aligned.m8n8.x2.trans.shared.b16 {%r10, %r11}, [%r25];",
            ]
        )
        return f"{put}{store}\nbar.sync 0;\n{load}"

    def branch(self) -> str:
        self._labels += 1
        inside = "\n".join(self.arithmetic() for _ in range(2))
        label = f"$skip{self._labels}"
        return (
            f"setp.lt.s32 %p5, {self.any()}, {self.any()};\n@%p5 bra {label};\n{inside}\n{label}:"
        )

    def loop(self) -> str:
        self._labels += 1
        label = f"$again{self._labels}"
        inside = "\n".join(self.arithmetic() for _ in range(2))
        return (
            f"and.b32 %r26, %r1, 3;\nmov.u32 %r27, 0;\n{label}:\n{inside}\n"
            f"add.s32 %r27, %r27, 1;\nsetp.le.u32 %p6, %r27, %r26;\n@%p6 bra {label};"
        )

    def update(self) -> str:
        name = self._random.choice(["add.u32", "min.s32", "max.u32", "xor.b32", "or.b32"])
        return (
            f"and.b32 %r28, {self.any()}, {CELLS - 1};\nmul.wide.u32 %rd6, %r28, 4;\n"
            f"add.s64 %rd7, %rd2, %rd6;\nsetp.ge.s32 %p7, {self.any()}, 2;\n"
            f"@%p7 red.global.{name} [%rd7+{4 * THREADS * CTAS}], {self.any()};"
        )

    def kernel(self) -> str:
        kinds = [self.arithmetic, self.arithmetic, self.warp, self.exchange, self.branch, self.loop]
        body = [self._random.choice(kinds)() for _ in range(self._random.randint(4, 14))]
        body += [self.update()] if self._random.random() < 0.7 else []
        return HEAD + "\n".join(body) + f"\nst.global.b32 [%rd5], {self.any()};\nret;\n}}\n"


def left_behind(text: str, given: np.ndarray) -> SharedPiece | None:  # type: ignore[type-arg]
    """The result as it is worked out, from zeros; None if it is not."""
    module = parse(text, "k.ptx")
    assert not module.problems, (module.problems, text)
    kernel = module.kernels()[0]
    tensors = (Tensor("int32", (THREADS * CTAS,), (1,), 0, 4 * THREADS * CTAS),
               Tensor("int32", (WORDS,), (1,), 1, 4 * WORDS))  # fmt: skip
    arguments = dict(zip(("in", "out"), tensors, strict=True))
    launch = Launch((CTAS, 1, 1), (THREADS, 1, 1), {**arguments})
    known = np.ones(4 * THREADS * CTAS, dtype=bool)
    read = {0: Piece(given.view(np.uint8), known)}
    wrote = {1: SharedPiece(np.zeros(4 * WORDS, np.uint8), np.ones(4 * WORDS, dtype=bool))}
    done = run_launch(Facts(module, kernel), bind(kernel, launch, {}), read, wrote)
    return wrote[1] if done.is_whole else None


@pytest.mark.parametrize("seed", range(60))
def test_random_kernels(seed: int) -> None:
    random = Random(seed)
    text = Writer(random).kernel()
    given = np.array([random.randrange(-9, 9) for _ in range(THREADS * CTAS)], dtype=np.int32)
    expected = np.zeros(WORDS, dtype=np.int32)
    module = parse(text, "k.ptx")
    outcome = run(module, module.kernels()[0], (CTAS, 1, 1), [given.copy(), expected])
    assert not outcome.faults, (outcome.faults, text)
    found = left_behind(text, given)
    assert found is not None, text
    assert found.known.all(), text
    assert found.data.view(np.int32).tolist() == expected.tolist(), text


STORE = "st.global.b32 [%rd5], %r10;\nret;\n}\n"


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("st.global.b32 [%rd2+100000], %r10;", "it leaves the tensor"),
        ("st.global.b32 [%rd1], %r10;", "it writes to what is only to be read"),
        (
            "setp.lt.s32 %p1, %r1, 7;\n@%p1 bra $on;\nbar.sync 0;\n$on:",
            "some threads alone come to a barrier",
        ),
        ("st.shared.b32 [%r4], %r1;\nld.shared.b32 %r10, [%r4+64];", "nobody wrote that"),
        ("st.shared.b32 [buffer], %r1;\nld.shared.b32 %r10, [buffer];", "all write there at once"),
        ("ld.global.b32 %r10, [%rd2+4];", "another CTA writes there"),
        ("atom.global.add.u32 %r10, [%rd2+512], 1;", "what is found depends on the order"),
        ("ld.volatile.global.b32 %r10, [%rd4];", "somebody may be waited for"),
        ("mov.f32 %r10, 0f3F800000;\nsin.approx.f32 %r10, %r10;", "floating point"),
    ],
)
def test_what_is_not_worked_out(body: str, reason: str) -> None:
    """Nothing is said of the result, or not of all of it."""
    text = HEAD + body + "\n" + STORE
    found = left_behind(text, np.arange(THREADS * CTAS, dtype=np.int32))
    assert found is None or not found.known.all(), reason


def test_what_is_not_written_stays() -> None:
    found = left_behind(HEAD + STORE, np.arange(THREADS * CTAS, dtype=np.int32))
    assert found is not None
    words = found.data.view(np.int32).tolist()
    assert words == [*range(THREADS * CTAS), *([0] * CELLS)]
