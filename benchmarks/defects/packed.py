"""Cases made ready for a machine with a GPU: assembled, with their launches beside them.

A folder holds `cases.json` and a cubin for each case. Nothing there needs numpy or the parser.
"""

from __future__ import annotations

import base64
import json
import re
import subprocess
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from defects.kit import Case, Tensor
from defects.placing import MapOf, Pointer, placed
from ptxlint.frontends.ptx import parse

CASES = "cases.json"
_TOO_NEW = re.compile(r"Unsupported \.version .*; current version is '([\d.]+)'")
_VERSION = re.compile(r"^\.version\s+[\d.]+", re.MULTILINE)


def pack(folder: Path, cases: Iterable[tuple[Case, str]], ptxas: str) -> None:
    """Assemble cases, each with what it is: `right`, `wrong`, or `hangs`."""
    folder.mkdir(parents=True, exist_ok=True)
    out = []
    for number, (case, what) in enumerate(cases):
        heard = assembled(case, folder / f"{number}.cubin", ptxas)
        out.append({"name": case.name, "what": what, "said": said(heard)} | launch(case))
    (folder / CASES).write_text(json.dumps(out), encoding="utf-8")


def assembled(case: Case, target: Path, ptxas: str) -> str:
    """Write the cubin of a case; what the assembler said. Of PTX that is newer than the assembler
    the version is lowered: Triton uses nothing that newer ones brought."""
    source, text = target.with_suffix(".ptx"), case.text
    command = [ptxas, f"-arch={case.arch}", "-lineinfo", str(source), "-o", str(target)]
    for _ in range(2):
        source.write_text(text, encoding="utf-8")
        done = subprocess.run(command, capture_output=True, text=True)
        source.unlink()
        newest = _TOO_NEW.search(done.stderr)
        if not done.returncode:
            return done.stderr
        if newest is None:
            break
        text = _VERSION.sub(f".version {newest[1]}", text, count=1)
    raise SystemExit(f"{case.name}: {done.stderr.strip()}")


def said(text: str) -> str:
    """What the assembler had to say."""
    return " ".join(line.partition("info    : ")[2] for line in text.splitlines()).strip()


def launch(case: Case) -> dict[str, Any]:
    """The launch of a case, as JSON holds it."""
    (function,) = parse(case.text, case.name).kernels()
    given = placed(case.launch, function.params)
    parameters: list[Any] = []
    for parameter in given.parameters:
        if isinstance(parameter, Pointer):
            parameters.append({"memory": parameter.memory, "first": parameter.first})
        elif isinstance(parameter, MapOf):
            parameters.append({"map_of": parameter.memory, "fields": list(parameter.fields)})
        else:
            parameters.append(parameter.hex())
    return {
        "kernel": function.name,
        "grid": case.launch.grid,
        "threads": case.launch.threads,
        "shared": case.launch.shared,
        "memories": [memory(tensor) for tensor in given.memories],
        "parameters": parameters,
    }


def memory(tensor: Tensor) -> dict[str, Any]:
    """A memory: its size in bytes, its state, and what it holds."""
    found: dict[str, Any] = {"size": tensor.values.nbytes, "state": tensor.state}
    if tensor.state != "blank":
        data = zlib.compress(tensor.values.tobytes(), 9)
        found["contents"] = base64.b64encode(data).decode("ascii")
    return found


__all__ = ["CASES", "launch", "memory", "pack", "said"]
