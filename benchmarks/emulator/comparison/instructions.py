"""Instructions one by one, each a kernel of its own, on the same operands on both sides."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, Final

import numpy as np

from ptxlint.dynamic.cuda_driver import Context, Memory, Module
from ptxlint.dynamic.cuda_driver import run as launch
from ptxlint.dynamic.emulator.run import run
from ptxlint.dynamic.emulator.semantics import UnsupportedError
from ptxlint.frontends.ptx import parse

from .operands import WIDTHS, Array, operands
from .operations import GROUPS, Operation

THREADS: Final = 256
_LEAST: Final = (8, 7)
_HEAD: Final = ".version 8.7\n.target sm_90a\n.address_size 64\n"


def kernel_text(name: str, operation: Operation) -> str:
    """A kernel that runs an operation on element i of arrays, and stores element i of a result."""
    kinds = [operation.result, *operation.kinds]
    parameters = ",\n".join(f"  .param .u64 {name}_{at}" for at in range(len(kinds)))
    text = operation.text
    lines = []
    for at, kind in enumerate(kinds):
        width = WIDTHS[kind]
        lines += [
            f"  .reg .b{width} %x{at};",
            f"  ld.param.u64 %p{at}, [{name}_{at}];",
            f"  mad.wide.u32 %p{at}, %i, {width // 8}, %p{at};",
        ]
        if at:
            lines.append(f"  ld.global.b{width} %x{at}, [%p{at}];")
        text = text.replace(f"${at}", f"%x{at}")
    body = "\n".join(lines)
    return f"""
.visible .entry {name}(
{parameters}
)
.reqntid {THREADS}
{{
  .reg .pred %q;
  .reg .b32 %i, %t, %c;
  .reg .b64 %w, %p<8>;
  mov.u32 %i, %tid.x;
  mov.u32 %c, %ctaid.x;
  mad.lo.u32 %i, %c, {THREADS}, %i;
{body}
  {text}
  st.global.b{WIDTHS[operation.result]} [%p0], %x0;
  ret;
}}
"""


def group_text(group: str) -> str:
    """The PTX of a group, a kernel `k0`, `k1`, … for each instruction."""
    found = GROUPS[group]()
    return _HEAD + "".join(kernel_text(f"k{at}", one) for at, one in enumerate(found))


def for_driver(text: str) -> bytes:
    """PTX that a driver assembles which is older than the compiler: with the least version that
    has all that is used."""
    stated = re.search(r"^\.version\s+(\d+)\.(\d+)", text, re.MULTILINE)
    if stated is None or (int(stated[1]), int(stated[2])) <= _LEAST:
        return text.encode()
    major, minor = _LEAST
    return f"{text[: stated.start()]}.version {major}.{minor}{text[stated.end() :]}".encode()


def on_gpu(context: Context, group: str, image: bytes) -> dict[str, Array]:
    """What a device makes of a group, by instruction; `image` is its cubin, or PTX."""
    module = Module(context.driver, image)
    found = {}
    for at, operation in enumerate(GROUPS[group]()):
        arrays = operands(operation.kinds, operation.text)
        count = len(arrays[0])
        memories = [Memory(context.driver, count * WIDTHS[operation.result] // 8)]
        for array in arrays:
            memories.append(Memory(context.driver, array.nbytes))
            memories[-1].write(array.tobytes())
        sent = [memory.address.to_bytes(8, "little") for memory in memories]
        launch(module.function(f"k{at}"), (count // THREADS, 1, 1), (THREADS, 1, 1), sent)
        context.synchronise()
        kind = f"u{WIDTHS[operation.result] // 8}"
        found[operation.text] = np.frombuffer(memories[0].read(), dtype=kind)
        for memory in memories:
            memory.release()
    return found


@lru_cache(maxsize=8)
def _module(group: str) -> Any:
    return parse(group_text(group), f"{group}.ptx")


def in_emulator(group: str, at: int, operation: Operation) -> Array | str:
    """What the emulator makes of an instruction; the reason if it does not run it."""
    module = _module(group)
    arrays = operands(operation.kinds, operation.text)
    count = len(arrays[0])
    out = np.zeros(count, dtype=f"u{WIDTHS[operation.result] // 8}")
    kernel = next(k for k in module.kernels() if k.name == f"k{at}")
    try:
        run(module, kernel, (count // THREADS, 1, 1), [out, *arrays])
    except UnsupportedError as error:
        return error.reason or "not run"
    return out
