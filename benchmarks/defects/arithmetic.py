"""Numbers that go wrong without any access or barrier doing so: nobody's business but ours."""

from __future__ import annotations

from typing import Final

import numpy as np

from defects.kit import Defect, Launch, Tensor, blank, kernel

MEAN: Final = kernel(
    """
  ld.global.b32 %r3, [%rd10];
  ld.global.b32 %r4, [%rd11];
  div.rn.f32 %r5, %r3, %r4; //~ EMU915 thread 7
  st.global.b32 [%rd12], %r5;
""",
    "ppp",
)

EXPONENT: Final = kernel(
    """
  ld.global.b32 %r3, [%rd10];
  ld.global.b32 %r4, [%rd11];
  sub.f32 %r5, %r3, %r4;
  ex2.approx.f32 %r6, %r5; //~ EMU915 thread 5
  st.global.b32 [%rd12], %r6;
""",
    "ppp",
)


def _floats(**changed: float) -> Tensor:
    """64 times 1.0, with other numbers at places."""
    values = np.ones(64, dtype=np.float32)
    for place, number in changed.items():
        values[int(place[1:])] = number
    return Tensor(values)


DEFECTS: Final = (
    Defect("zero divided by zero", "none",
           "A row without elements has the sum 0 and the count 0.",
           MEAN, Launch((_floats(), _floats(), blank(64))),
           wrong_launch=Launch((_floats(_7=0), _floats(_7=0), blank(64)))),
    Defect("exponential that overflows", "none",
           "The maximum is not subtracted before the exponential.",
           EXPONENT, Launch((_floats(_5=200), _floats(_5=200), blank(64))),
           (("sub.f32 %r5, %r3, %r4;", "mov.b32 %r5, %r3;"),)),
)  # fmt: skip
"""The first NaN, the first infinity."""
