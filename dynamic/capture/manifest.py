"""manifest.json of a bundle (docs/bundle.md), from what was captured."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from ptxlint.launches import (
    Argument,
    Constant,
    Descriptor,
    Launch,
    Recorded,
    Scalar,
    Tensor,
)

from .kernels import Kernel, Trouble, Tuple

VERSION = 1
NAME = "manifest.json"
RECORDINGS = "recordings.npz"
"""What memory held, beside the manifest."""
_STEM = 100
"""Characters of a kernel's name that a file is called after."""


def stem(kernel: Kernel) -> str:
    """Path of a kernel's files in a bundle, without their endings."""
    name = re.sub(r"[^A-Za-z0-9_.-]", "_", kernel.name)[:_STEM]
    return f"{kernel.arch}/{name}_{kernel.hash[:8]}"


def dumped(content: dict[str, Any]) -> str:
    """The manifest as text: a line for each launch, run and problem."""
    lines = []
    for key, value in content.items():
        if key == "kernels":
            lines.append(_listed("kernels", [_kernel_text(kernel) for kernel in value], ""))
        elif key in ("runs", "problems"):
            lines.append(_listed(key, [_text(item) for item in value], ""))
        else:
            lines.append(f'"{key}": {_text(value)}')
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _kernel_text(kernel: dict[str, Any]) -> str:
    fields = [f'"{k}": {_text(v)}' for k, v in kernel.items() if k != "launches"]
    fields.append(_listed("launches", [_text(launch) for launch in kernel["launches"]], "  "))
    return "{\n  " + ",\n  ".join(fields) + "\n }"


def _listed(key: str, items: list[str], indent: str) -> str:
    if not items:
        return f'"{key}": []'
    inner = f",\n{indent} ".join(items)
    return f'"{key}": [\n{indent} {inner}\n{indent}]'


def _text(value: Any) -> str:
    return json.dumps(value, allow_nan=False, ensure_ascii=False)


def kernel_entry(kernel: Kernel) -> dict[str, Any]:
    """A kernel without its launches."""
    start = stem(kernel)
    entry: dict[str, Any] = {
        "name": kernel.name,
        "arch": kernel.arch,
        "hash": kernel.hash,
        "ptx": f"{start}.ptx",
        "cubin": f"{start}.cubin",
        "ttir": f"{start}.ttir",
        "metadata": f"{start}.json",
    }
    path, line = kernel.source
    if path:
        entry["source"] = {"path": path, "line": line}
    entry["signature"] = {name: _kind(kind) for name, kind in kernel.signature.items()}
    entry["launches"] = []
    return entry


def _kind(kind: Any) -> Any:
    """Triton's type of a parameter; a list for a tuple."""
    return list(map(_kind, kind)) if isinstance(kind, tuple | list) else str(kind)


def launch_entry(launch: Launch) -> dict[str, Any]:
    """A launch."""
    entry: dict[str, Any] = {
        "grid": list(launch.grid),
        "block": list(launch.block),
        "cluster": list(launch.cluster),
        "shared": launch.shared,
        "scratch": list(launch.scratch or (0, 0)),
        "count": launch.times,
        "place": launch.place,
    }
    if launch.autotuned is not None:
        entry["autotuned"] = {
            "configurations": launch.autotuned.configurations,
            "reset": list(launch.autotuned.reset),
            "restored": list(launch.autotuned.restored),
        }
    entry["arguments"] = {name: argument_entry(a) for name, a in launch.arguments.items()}
    return entry


def argument_entry(argument: Argument | Tuple) -> dict[str, Any]:
    """An argument."""
    if isinstance(argument, Tensor):
        fields = argument._asdict()
        lists = {"shape": list(argument.shape), "strides": list(argument.strides)}
        for key in ("values", "contents"):
            if fields[key] is None:
                del fields[key]
            else:
                fields[key] = list(fields[key])
        if not argument.freed:
            del fields["freed"]
        fields |= {"recorded": _recorded(argument.recorded)}
        if argument.recorded is None:
            del fields["recorded"]
        return {"kind": "tensor", **fields, **lists}
    if isinstance(argument, Scalar):
        return {"kind": "scalar", "type": argument.type, "value": _number(argument.value)}
    if isinstance(argument, Constant):
        return {"kind": "constant", "value": argument.value}
    if isinstance(argument, Descriptor):
        return {
            "kind": "descriptor",
            "tensor": argument_entry(argument.tensor),
            "block": list(argument.block),
            "padding": argument.padding,
            "by": argument.by,
            "passed": [argument_entry(scalar) for scalar in argument.passed],
        }
    if isinstance(argument, Tuple):
        return {"kind": "tuple", "items": [argument_entry(item) for item in argument.items]}
    return {"kind": "unknown", "type": argument.type, "reason": argument.reason}


def _recorded(found: Recorded | None) -> dict[str, Any]:
    if found is None or not found.key:
        return {"reason": "" if found is None else found.reason}
    return {"key": found.key, "start": found.start, "known": found.known}


def _number(value: int | float) -> int | float | str:
    """A number as JSON has it, and what JSON does not have as text."""
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else "inf" if value > 0 else "-inf"
    return value


def trouble_entry(arch: str, trouble: Trouble) -> dict[str, Any]:
    """What was not captured."""
    return {"arch": arch, "what": trouble.what, "reason": trouble.reason}
