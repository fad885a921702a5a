"""Run kernels and their mutants in Triton's interpreter on the CPU; a program of its own.

Reads lines of JSON, `{"case": number, "source": path, "is_tail": bool}`, and answers each with
`{"ragged": word, "exact": word}`: `same`, `differs`, or why a mutant could not run to its end. Each
mutant runs in a forked child with a time limit, since it may read or write anywhere. With no
source, the kernel itself is run twice among different surroundings, which must make no difference.
"""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

os.environ["TRITON_INTERPRET"] = "1"

import numpy as np
import torch
import triton.language as tl
from mutation_cases import CASES, Case, Data

LIMIT_S = 20
TOLERANCE = 1e-4
"""Of the larger of 1 and the value: what another order of additions may change."""

_BASE: dict[tuple[int, bool], list[Any]] = {}


def load(path: Path, kernel: str) -> Any:
    """A kernel of a module of its own."""
    spec = importlib.util.spec_from_file_location("mutated", path)
    if spec is None or spec.loader is None:
        raise ImportError(str(path))
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return getattr(module, kernel)


def outputs(case: Case, function: Any, exact: bool, poison: float = 1e3) -> list[Any]:
    """All that a kernel may have written, whole storages."""
    data = Data(poison)
    launch = case.make(data, exact)
    constants = {
        name: getattr(tl, value[3:]) if str(value).startswith("tl.") else value
        for name, value in launch.constants.items()
    }
    function[launch.grid](**launch.arguments, **constants)
    return [storage.double().numpy() for storage in data.outputs]


def same(one: list[Any], other: list[Any]) -> bool:
    """True if two runs agree, NaN for NaN."""
    return all(_agree(a, b) for a, b in zip(one, other, strict=True))


def _agree(a: Any, b: Any) -> bool:
    with np.errstate(all="ignore"):
        near = np.abs(a - b) <= TOLERANCE * np.maximum(1.0, np.abs(a))
    return bool(np.all(near | (a == b) | (np.isnan(a) & np.isnan(b))))


def base(number: int, exact: bool) -> list[Any]:
    """What the kernel itself writes."""
    if (number, exact) not in _BASE:
        case = CASES[number]
        _BASE[number, exact] = outputs(case, load(case.path, case.kernel), exact)
    return _BASE[number, exact]


def sound(number: int) -> dict[str, str]:
    """Whether a kernel keeps to its arrays and is finite."""
    case = CASES[number]
    function = load(case.path, case.kernel)
    found = {}
    for exact in (False, True):
        again = outputs(case, function, exact, poison=-31.0)
        word = "same" if same(base(number, exact), again) else "reads outside"
        if not all(np.isfinite(a).all() for a in base(number, exact)):
            word = "not finite"
        found["exact" if exact else "ragged"] = word
    return found


def judged(number: int, path: Path, is_tail: bool) -> dict[str, str]:
    """How a mutant's results compare, each way in a child, with whole tiles if that matters."""
    found = {"ragged": _in_child(number, path, exact=False)}
    if (found["ragged"] != "same") == is_tail:
        found["exact"] = _in_child(number, path, exact=True)
    return found


def _in_child(number: int, path: Path, exact: bool) -> str:
    wanted = base(number, exact)
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)
        signal.alarm(LIMIT_S)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        try:
            with np.errstate(all="ignore"):
                got = outputs(CASES[number], load(path, CASES[number].kernel), exact)
            word = "same" if same(wanted, got) else "differs"
        except BaseException as error:
            word = f"{type(error).__name__}: {str(error).strip().splitlines()[-1:]}"
        os.write(write, word.encode()[:400])
        os._exit(0)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        word = pipe.read().decode(errors="replace")
    status = os.waitpid(child, 0)[1]
    if os.WIFSIGNALED(status):
        return "time limit" if os.WTERMSIG(status) == signal.SIGALRM else "differs: it crashed"
    return word


def main() -> None:
    """Answer until the input ends."""
    torch.set_num_threads(1)
    for line in sys.stdin:
        asked = json.loads(line)
        source = asked.get("source")
        number = asked["case"]
        answer = judged(number, Path(source), asked["is_tail"]) if source else sound(number)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
