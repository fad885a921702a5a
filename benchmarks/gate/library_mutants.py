"""Whether the gate fails mutants of a library's kernels, launched by the library's own code.

    pip install --no-deps --target libraries liger-kernel==0.8.5
    PYTHONPATH=libraries python benchmarks/gate/library_mutants.py

All mutants of the kernels of `benchmarks/gate/libraries` that change results are taken. Whether
one does is asked of Triton's interpreter, as in the study of faults in sources: what the library
returns for rows of 50 elements, one of them zero, is not what it returns unmutated. Each mutant is
written to a module of its own and goes through the gate on the emulator; so does each kernel as it
is, from a copy of its module. Writes `mutants-libraries.json` and `mutants-libraries.md`. The exit
status is 1 if a kernel that is right fails, 2 without the library.
"""

from __future__ import annotations

import argparse
import importlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any, Final

HERE: Final = Path(__file__).resolve().parent
LIBRARIES: Final = HERE / "libraries"
MODULES: Final = {
    "softmax": (
        "_softmax_single_block_forward_kernel", "_softmax_single_block_backward_kernel",
    ),
    "swiglu": ("_swiglu_forward_kernel", "_swiglu_backward_kernel"),
    "relu_squared": ("_relu_squared_forward_kernel", "_relu_squared_backward_kernel"),
    "layer_norm": ("_layer_norm_forward_kernel",),
    "rms_norm": ("_rms_norm_forward_kernel",),
    "fused_add_rms_norm": ("_fused_add_rms_norm_forward_kernel",),
    "group_norm": ("_group_norm_forward_kernel",),
    "kl_div": ("_kldiv_kernel_forward",),
    "cross_entropy": ("liger_cross_entropy_kernel",),
}  # fmt: skip
"""Kernels of `liger_kernel.ops` by module."""
SIZES: Final = {"rows": 4, "n": 50, "batch": 2, "channels": 6}
LIMIT_S: Final = 60
TOLERANCE: Final = 1e-4


# In the interpreter ---------------------------------------------------------------------------
def returned(path: str, name: str) -> list[Any]:
    """What the operator of a spec file returns and writes, in the interpreter."""
    import torch

    from ptxlint.dynamic.cases import Case
    from ptxlint.dynamic.cases.arrays import Placed, inputs
    from ptxlint.dynamic.operators.loading import load
    from ptxlint.dynamic.operators.places import Place

    operator = load(Place(path, name))[name]
    dims = {dim: SIZES[dim] for dim in operator.dims}
    case = Case(name, "float32", dims, "zero-rows")
    given = {
        key: torch.from_numpy(value.elements.copy()) if isinstance(value, Placed) else value
        for key, value in inputs(operator, case).items()
    }
    out = operator.kernel(**given)
    results = out if isinstance(out, tuple) else () if out is None else (out,)
    written = [given[key] for key in operator.writes]
    return [result.double().numpy() for result in (*written, *results)]


def interpreted(text: str) -> str:
    """A module's text as the interpreter takes it: it has Python's numbers, without types, and none
    of the functions of CUDA's own library."""
    text = re.sub(r"\b(eps|offset|gate_multiplier)\.to\([\w.]+\)", r"\1", text)
    return re.sub(r"(?<![\w.])rsqrt\(", "tl.rsqrt(", text)


def serve() -> None:
    """Answer lines `[path, name]` with what is returned, each in a forked child with a time
    limit; null for one that does not come to its end."""
    for module in MODULES:
        importlib.import_module(f"liger_kernel.ops.{module}")
    for line in sys.stdin:
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(LIMIT_S)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
            try:
                told = [[list(map(str, a.ravel())), a.shape] for a in returned(*json.loads(line))]
                with os.fdopen(write, "w") as pipe:
                    json.dump(told, pipe)
            finally:
                os._exit(0)
        os.close(write)
        with os.fdopen(read) as pipe:
            answer = pipe.read()
        os.waitpid(child, 0)
        print(answer or "null", flush=True)


class Interpreter:
    """A process that runs operators in the interpreter. To be closed."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            env={**os.environ, "TRITON_INTERPRET": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def outputs(self, path: str, name: str) -> list[Any] | None:
        """What the operator of a spec file returns; None if it did not come to its end."""
        import numpy as np

        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps([path, name]) + "\n")
        self._process.stdin.flush()
        told = json.loads(self._process.stdout.readline())
        if told is None:
            return None
        return [np.array(list(map(float, flat))).reshape(shape) for flat, shape in told]

    def close(self) -> None:
        """End the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(timeout=60)


def differ(one: list[Any], other: list[Any]) -> bool:
    """True if two lists of results are not the same, NaN for NaN."""
    import numpy as np

    for a, b in zip(one, other, strict=True):
        with np.errstate(all="ignore"):
            near = np.abs(a - b) <= TOLERANCE * np.maximum(1.0, np.abs(a))
        if not np.all(near | (a == b) | (np.isnan(a) & np.isnan(b))):
            return True
    return False


# The study ------------------------------------------------------------------------------------
def study(jobs: int) -> dict[str, Any]:
    """Verdicts on all mutants that change results, and on kernels as they are."""
    sys.path[:0] = [str(HERE), str(LIBRARIES)]
    import mutants
    from _source import path as installed
    from mutation_cases import Case
    from source_operators import mutations

    chosen, cases, apart = [], [], {"same": 0, "not run": 0}
    known = mutants.specs(LIBRARIES)
    interpreter = Interpreter()
    with tempfile.TemporaryDirectory() as scratch:
        for module, kernels in MODULES.items():
            at = installed(f"liger_kernel.ops.{module}")
            text = at.read_text(encoding="utf-8")
            for kernel in kernels:
                case = Case("liger-kernel", at, kernel, None)
                cases.append(case)
                texts = [text, *(m.text for m in mutations(text, kernel))]
                tasks = [
                    mutants.task(case, interpreted(one), Path(scratch) / f"{kernel}{n}", known)
                    for n, one in enumerate(texts)
                ]
                wanted = interpreter.outputs(tasks[0].path, tasks[0].name)
                if wanted is None:
                    raise RuntimeError(f"{kernel} does not run in the interpreter")
                for mutation, task in zip(mutations(text, kernel), tasks[1:], strict=True):
                    got = interpreter.outputs(task.path, task.name)
                    if got is None:
                        apart["not run"] += 1
                    elif differ(wanted, got):
                        chosen.append(mutants.Mutant(case, mutation))
                    else:
                        apart["same"] += 1
                print(f"{kernel}: {len(chosen)} so far", file=sys.stderr, flush=True)
    interpreter.close()
    settings = mutants.Settings(mutants.Options("emulator", reducing=0), jobs=jobs)
    mutated, right = mutants.judged(chosen, cases, settings, LIBRARIES)
    return {
        "version": 1, "runner": "emulator", "library": "liger-kernel 0.8.5", "apart": apart,
        "mutants": [r._asdict() for r in mutated], "right": [r._asdict() for r in right],
    }  # fmt: skip


def page(result: dict[str, Any], reasons: dict[str, str]) -> str:
    """The tables."""
    sys.path[:0] = [str(HERE)]
    import mutants

    same, not_run = result["apart"]["same"], result["apart"]["not run"]
    lines = [
        f"# Mutants of {result['library']} ({result['runner']})",
        "",
        "Written by `python benchmarks/gate/library_mutants.py`; "
        "[what they are](../../docs/gate.md#faults-of-others). The library's own code launches. "
        f"Set apart: {same} mutants return the same in Triton's interpreter, {not_run} do not run "
        "there.",
        "",
        *mutants.tables(result, reasons),
    ]
    return "\n".join(lines) + "\n"


def main() -> int:
    """The command."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--jobs", type=int, default=0)
    parser.add_argument("--out", type=Path, default=HERE)
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve()
        return 0
    try:
        result = study(given.jobs)
    except ImportError as error:
        print(f"library_mutants.py: {error}", file=sys.stderr)
        return 2
    given.out.mkdir(parents=True, exist_ok=True)
    told = json.dumps(result, indent=1) + "\n"
    (given.out / "mutants-libraries.json").write_text(told, encoding="utf-8")
    reasons = json.loads((HERE / "mutants-reasons.json").read_text(encoding="utf-8"))
    text = page(result, reasons)
    (given.out / "mutants-libraries.md").write_text(text, encoding="utf-8")
    print(text)
    return 1 if any(r["verdict"] not in ("pass", "undecided") for r in result["right"]) else 0


if __name__ == "__main__":
    raise SystemExit(main())
