"""Which stores let padding out: those to global memory, and of what they store alone."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ptxlint.dynamic.emulator.run import Padding, run
from ptxlint.dynamic.emulator.sanitizer.choice import chosen
from ptxlint.frontends.ptx import parse

Text = Callable[..., str]

HEAD = """
ld.param.u64 %rd0, [k_param_0];
ld.param.u64 %rd1, [k_param_1];
mov.u32 %r0, %tid.x;
setp.ne.u32 %p1, %r0, 3;
mov.b64 %rd4, 0;
@%p1 ld.global.b64 %rd4, [%rd1];
cvt.u32.u64 %r1, %rd4;
shl.b64 %rd5, %rd4, 32;
mul.wide.u32 %rd2, %r0, 8;
add.u64 %rd2, %rd2, %rd0;
mov.u64 %rd3, room;
cvta.shared.u64 %rd3, %rd3;
"""


@pytest.mark.parametrize(
    ("store", "lanes"),
    [
        ("st.global.b32 [%rd2], %r1;", 1),
        ("st.b32 [%rd2], %r1;", 1),
        ("st.b32 [%rd3], %r1;", 0),
        ("st.shared.b32 [room], %r1;", 0),
        ("atom.add.u32 %r2, [%rd2], %r1;", 1),
        ("atom.add.u32 %r2, [%rd3], %r1;", 0),
        ("red.global.add.u32 [%rd2], %r1;", 1),
        ("st.global.v2.b32 [%rd2], {%r1, %r1};", 1),
        ("st.global.b32 [%rd2], %r0;", 0),
        ("st.global.b64 [%rd2], %rd5;", 1),
        ("cvt.u32.u64 %r3, %rd5;\nst.global.b32 [%rd2], %r3;", 0),
        ("shr.u32 %r3, %r1, 24;\nst.global.b8 [%rd2], %r3;", 1),
        ("shl.b32 %r3, %r1, 8;\nst.global.b8 [%rd2], %r3;", 0),
    ],
)
def test_a_store(kernel: Text, store: str, lanes: int) -> None:
    module = parse(kernel(HEAD + store, 2, 32, ".shared .align 16 .b8 room[16];\n"), "snippet.ptx")
    arrays = [np.zeros(32, dtype=np.uint64), np.ones(1, dtype=np.uint64)]
    outcome = run(module, module.kernels()[0], (1, 1, 1), arrays, padding=Padding())
    assert not outcome.faults, outcome.faults
    assert sum(leak.lanes for leak in outcome.leaks) == lanes


@pytest.mark.parametrize("watched", ["uninitialised", "nonfinite", "copies, races", "overflow"])
def test_padding_and_other_labels_need_two_runs(kernel: Text, watched: str) -> None:
    module = parse(kernel("ret;", 0, 1), "snippet.ptx")
    word = watched.partition(",")[0]
    with pytest.raises(ValueError, match=f"not followed in one run with {word}: make two"):
        run(module, module.kernels()[0], (1, 1, 1), [], padding=Padding(), sanitize=chosen(watched))
    races = chosen("races")
    assert not run(
        module, module.kernels()[0], (1, 1, 1), [], padding=Padding(), sanitize=races
    ).faults
