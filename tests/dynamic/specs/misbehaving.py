"""Operators that are no good, each in another way, and one that is."""

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time

import numpy as np

from ptxlint.dynamic.operators import Dim, Operator, Tensor


def doubling(kernel):
    return Operator(
        kernel=kernel,
        reference=lambda x: x * 2,
        dims={"n": Dim(1, 64)},
        inputs={"x": Tensor("n")},
        where=lambda dims: dims["n"] != 7,
        runs_on="numpy",
    )


@doubling
def good(x):
    return x * 2


@doubling
def moody(x):
    """Hangs where there are 13 elements."""
    while len(x) == 13:
        time.sleep(0.01)
    return x * 2


@doubling
def dies(x):
    os.kill(os.getpid(), signal.SIGSEGV)


@doubling
def reads_null(x):
    return ctypes.string_at(0)


@doubling
def leaves(x):
    os._exit(3)


@doubling
def leaves_politely(x):
    sys.exit("enough")


@doubling
def eats(x):
    held = [np.ones(1 << 21) for _ in range(1 << 10)]
    return held[0]


@doubling
def talks(x):
    line = "x" * 1023 + "\n"
    for _ in range(100 << 10):
        sys.stdout.write(line)
    return x * 2


@doubling
def mumbles(x):
    print("hello")
    sys.stderr.write("there\n")
    return x * 2


@doubling
def garbles(x):
    for pipe in range(3, 64):
        with contextlib.suppress(OSError):
            os.write(pipe, b"}\n")
    return x * 2


@doubling
def shuts(x):
    os.closerange(3, 64)
    return x * 2


@doubling
def leaves_another(x):
    """Leaves a process behind that holds everything open."""
    if os.fork():
        os._exit(0)
    time.sleep(60)


@doubling
def breeds(x):
    """Starts a process, and hangs."""
    subprocess.Popen(["sleep", "60"])
    time.sleep(60)


@doubling
def raises(x):
    raise RuntimeError("no")
