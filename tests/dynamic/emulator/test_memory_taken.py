"""How much memory a run takes: so much a byte of the tensors, however large they are."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

RELU = Path(__file__).resolve().parents[3] / "fixtures" / "ptx" / "sm_80" / "relu.ptx"
MIB = 1 << 20
_CHILD = """
import json, resource, sys
import numpy as np
from ptxlint.dynamic.emulator.run import run
from ptxlint.dynamic.emulator.sanitizer.choice import chosen
from ptxlint.frontends.ptx import parse

path, words, count = sys.argv[1], sys.argv[2], int(sys.argv[3])

def peak():
    # ru_maxrss counts what the parent held before exec; the kernel's own mark does not.
    try:
        with open("/proc/self/status") as status:
            return next(int(l.split()[1]) for l in status if l.startswith("VmHWM:")) << 10
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10

module = parse(open(path).read(), path)
kernel = module.kernels()[0]

def launch(n):
    x, out = np.ones(n, np.float32), np.full(n, 7, np.float32)
    outcome = run(module, kernel, (-(-n // 1024), 1, 1), [out, x, n], sanitize=chosen(words))
    assert outcome.is_complete and not outcome.faults and (out == x).all()

launch(1 << 15)
before = peak()
launch(count)
print(json.dumps(peak() - before))
"""


def taken(words: str, tensors: int) -> int:
    """Bytes that a launch on two tensors of so many bytes together takes at its peak, with them."""
    done = subprocess.run(
        [sys.executable, "-c", _CHILD, str(RELU), words, str(tensors // 8)],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    return int(json.loads(done.stdout))


@pytest.mark.parametrize(
    ("words", "tensors", "times"), [("memory", 64 * MIB, 3), ("races", 8 * MIB, 23)]
)
def test_memory_is_a_multiple_of_the_tensors(words: str, tensors: int, times: int) -> None:
    """The tensors, a copy of them and a state a byte; the shadows of races besides."""
    # Pages are taken whole, large ones at that, at the ends of each allocation in each array.
    assert taken(words, tensors) <= times * tensors + 24 * MIB
