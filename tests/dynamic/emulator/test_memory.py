"""Loads and stores: widths, vectors, spaces, and what must not be done."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np


def test_addresses_of_32_bits_wrap(
    execute: Callable[..., None], kernel: Callable[..., str]
) -> None:
    # As libdevice does: a step back from the start of a local array, and on by the offset.
    body = """
  .local .align 4 .b8 room[16];
  ld.param.u64 %rd1, [k_param_0];
  mov.b32 %r1, room;
  st.local.b32 [%r1+8], 77;
  sub.s32 %r2, %r1, 12;
  ld.local.b32 %r3, [%r2+20];
  st.global.b32 [%rd1], %r3;
"""
    out = np.zeros(1, dtype=np.uint32)
    execute(kernel(body, 1, 1), [out])
    assert out.tolist() == [77]
