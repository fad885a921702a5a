"""Single instructions, wrapped into kernels that read their operands from memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from ptxlint.dynamic.emulator.run import Outcome, run
from ptxlint.frontends.ptx import parse

HEAD = """
.version 8.7
.target sm_90a
.address_size 64

"""
_LETTERS = {"b8": "r", "b16": "rs", "b32": "r", "b64": "rd", "pred": "p"}


def kernel_text(body: str, parameters: int, threads: int, declarations: str = "") -> str:
    """A kernel `k` of so many pointer parameters around a body."""
    listed = ",\n".join(f"  .param .u64 k_param_{i}" for i in range(parameters))
    return f"""{HEAD}{declarations}
.visible .entry k(
{listed}
)
.reqntid {threads}, 1, 1
{{
  .reg .pred %p<40>;
  .reg .b16 %rs<80>;
  .reg .b32 %r<200>;
  .reg .b64 %rd<80>;
{body}
  ret;
}}
"""


def execute_text(text: str, arrays: list[NDArray[np.generic]], grid: int = 1) -> None:
    """Run kernel `k` of a text on arrays, which are changed in place; no fault may be found."""
    module = parse(text, "snippet.ptx")
    outcome = run(module, module.kernels()[0], (grid, 1, 1), arrays)
    assert not outcome.faults, outcome.faults
    assert outcome.is_complete


def apply_instruction(
    instruction: str, result: str, *operands: NDArray[np.generic]
) -> NDArray[np.generic]:
    """What an instruction makes of operands, one lane an element.

    `instruction` names the operands `$0` (the result), `$1`, …; `result` is the bit type of the
    result. Operands are unsigned arrays whose widths are those of their registers, or booleans.
    """
    count = len(operands[0])
    threads = -(-count // 32) * 32
    lines = ["  mov.u32 %r100, %tid.x;", f"  setp.ge.u32 %p30, %r100, {count};", "  @%p30 ret;"]
    names = [f"%{_LETTERS[result]}70" if result != "pred" else "%p20"]
    for at, array in enumerate(operands):
        width = array.dtype.itemsize
        lines += _pointer(at + 1, width)
        if array.dtype == np.bool_:
            lines.append(f"  ld.global.u8 %rs{20 + at}, [%rd{40 + at + 1}];")
            lines.append(f"  setp.ne.u16 %p{at}, %rs{20 + at}, 0;")
            names.append(f"%p{at}")
        else:
            kind = f"b{8 * width}"
            name = f"%{_LETTERS[kind]}{10 + at}"
            lines.append(f"  ld.global.{kind} {name}, [%rd{40 + at + 1}];")
            names.append(name)
    text = instruction
    for at, name in enumerate(names):
        text = text.replace(f"${at}", name)
    lines.append(f"  {text}")
    size = 1 if result == "pred" else int(result[1:]) // 8
    lines += _pointer(0, size)
    if result == "pred":
        lines.append("  selp.u16 %rs60, 1, 0, %p20;")
        lines.append("  st.global.b8 [%rd40], %rs60;")
    else:
        lines.append(f"  st.global.{result} [%rd40], {names[0]};")
    kind = np.dtype(np.bool_) if result == "pred" else np.dtype(f"u{size}")
    out = np.zeros(count, dtype=kind)
    execute_text(kernel_text("\n".join(lines), len(operands) + 1, threads), [out, *operands])
    return out


def _pointer(at: int, width: int) -> list[str]:
    return [
        f"  ld.param.u64 %rd{20 + at}, [k_param_{at}];",
        f"  mad.wide.u32 %rd{40 + at}, %r100, {width}, %rd{20 + at};",
    ]


@pytest.fixture
def apply() -> Callable[..., NDArray[np.generic]]:
    """`apply_instruction`."""
    return apply_instruction


@pytest.fixture
def execute() -> Callable[..., None]:
    """`execute_text`."""
    return execute_text


@pytest.fixture
def kernel() -> Callable[..., str]:
    """`kernel_text`."""
    return kernel_text


def outcome_of(text: str, arrays: list[Any], grid: int = 1, **how: Any) -> Outcome:
    """What a run of kernel `k` of a text came to; arrays and numbers are its arguments."""
    module = parse(text, "snippet.ptx")
    return run(module, module.kernels()[0], (grid, 1, 1), arrays, **how)


@pytest.fixture
def outcome() -> Callable[..., Outcome]:
    """`outcome_of`."""
    return outcome_of
