"""What `ptxas -v` prints: registers, stack, spills, shared memory and barriers of each kernel.

The spills stand on the line behind `Function properties`, the registers on that with `Used`; a
function's own lines are told apart by the name before them. Source: measured with ptxas of CUDA
12.8 to 13.4; "NVIDIA CUDA Compiler Driver", `--resource-usage`.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ptxlint.resources import LOG, Amount, Resources

_COMPILING: Final = re.compile(r"Compiling entry function '([^']+)' for '(\w+)'")
_PROPERTIES: Final = re.compile(r"Function properties for (\S+)")
_STACK: Final = re.compile(
    r"(?<!\d)(\d{1,15}) bytes stack frame, (\d{1,15}) bytes spill stores, "
    r"(\d{1,15}) bytes spill loads"
)
_USED: Final = re.compile(r"Used (\d{1,15}) registers(.*)")
_PART: Final = re.compile(r"(?<!\d)(\d{1,15})(\+\d+)? bytes (cumulative stack size|smem|cmem\[0\])")
_BARRIERS: Final = re.compile(r"used (\d{1,15}) barriers")
_NAMES: Final = {
    "cumulative stack size": "cumulative_stack",
    "smem": "shared",
    "cmem[0]": "constant",
}


def read_log(text: str) -> dict[str, Resources]:
    """The kernels that a log speaks of, by name; empty for a text that is no such log."""
    found: dict[str, Resources] = {}
    kernel = inner = ""
    for line in text.splitlines():
        if match := _COMPILING.search(line):
            kernel = inner = match[1]
            zero = Amount(0, LOG)
            found[kernel] = Resources(match[2], shared=zero, barriers=zero)
        elif match := _PROPERTIES.search(line):
            # Functions that are not inlined have properties of their own.
            inner = match[1]
        elif (match := _STACK.search(line)) and inner in found:
            stack, stores, loads = (Amount(int(x), LOG) for x in match.groups())
            found[inner] = found[inner]._replace(
                stack=stack, spill_stores=stores, spill_loads=loads
            )
        elif (match := _USED.search(line)) and kernel:
            found[kernel] = _used(found[kernel], int(match[1]), match[2])
    return found


def _used(resources: Resources, registers: int, rest: str) -> Resources:
    parts: dict[str, Any] = {"registers": Amount(registers, LOG)}
    if match := _BARRIERS.search(rest):
        parts["barriers"] = Amount(int(match[1]), LOG)
    for match in _PART.finditer(rest):
        parts[_NAMES[match[3]]] = Amount(int(match[1]), LOG)
    return resources._replace(**parts)


__all__ = ["read_log"]
