"""Run the twins of nonfinite.py in Triton's interpreter, each on the data that its defect needs.

Prints by kernel whether NaN was stored, as JSON. A process of its own, because the interpreter is
chosen before Triton is imported.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
import warnings
from pathlib import Path
from typing import Any

BLOCK = 16
EIGHT_BITS = frozenset({"quantise_reciprocal", "quantise_with_floor"})
"""Left out: the interpreter's conversion to eight bits loses NaN."""
ROWS = frozenset({"sliding_window", "sliding_window_guarded", "causal_rows"})
DATA = {
    "quantise_zero_block": 0.0, "quantise_chosen_scale": 0.0,
    "layer_norm_without_eps": 0.0, "layer_norm_with_eps": 0.0,
    "softmax_without_maximum": 100.0, "softmax_with_maximum": 100.0,
    "tanh_of_exponentials": 100.0, "activations": 100.0,
}  # fmt: skip
"""What all that is loaded is; 1 elsewhere. One row of one block where the kernel has no loop."""


def stores_nan(kernel: Any, name: str) -> bool:
    import torch

    rows = 16 if name in ROWS else 1
    n = BLOCK if DATA.get(name) is not None else 64
    size = 64 * 64
    out = torch.zeros(size)
    arguments = {
        "out_ptr": out,
        "x_ptr": torch.full((size,), DATA.get(name, 1.0)),
        "scale_ptr": torch.zeros(size),
        "gate_ptr": torch.zeros(size),
        # The first chunk has no score that counts, the others have.
        "mask_ptr": torch.arange(size, dtype=torch.int32) // BLOCK,
        "n": n,
        "eps": 1e-5,
        "first": BLOCK,
        "window": 8,
        "BLOCK": BLOCK,
    }
    kernel[(rows,)](**{name: arguments[name] for name in kernel.arg_names})
    return bool(torch.isnan(out).any())


def main() -> None:
    os.environ["TRITON_INTERPRET"] = "1"
    warnings.simplefilter("ignore")
    path, names = Path(sys.argv[1]), sys.argv[2:]
    spec = importlib.util.spec_from_file_location("nonfinite_twins", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    chosen = [name for name in names if name not in EIGHT_BITS]
    print(json.dumps({name: stores_nan(getattr(module, name), name) for name in chosen}))


if __name__ == "__main__":
    main()
