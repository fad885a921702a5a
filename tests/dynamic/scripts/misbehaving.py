"""Launches one kernel, and then does what its argument says."""

import os
import subprocess
import sys
import time

import torch
import triton
import triton.language as tl


@triton.jit
def fill(x, value, BLOCK: tl.constexpr):
    tl.store(x + tl.arange(0, BLOCK), value)


def launch(value):
    x = torch.empty(64, device="cuda")
    fill[(1,)](x, value, BLOCK=64)
    return x


how = sys.argv[1]
x = launch(1.5)
if how == "fail":
    assert x[0] == 1.5, "needs what the kernel wrote"
elif how == "leave":
    sys.exit(3)
elif how == "vanish":
    os._exit(4)
elif how == "crash":
    os.abort()
elif how == "hang":
    while x[0] != 1.5:
        time.sleep(0.01)
elif how == "fork":
    child = os.fork()
    if child == 0:
        launch(2.5)
        os._exit(0)
    os.waitpid(child, 0)
elif how == "start":
    # One that runs Triton, and one that does not.
    for code in ("import triton, time; time.sleep(3)", "import time; time.sleep(3)"):
        subprocess.run([sys.executable, "-c", code], check=True)
elif how == "print":
    for number in range(1_000_000):
        print("line", number)
elif how == "refused":
    fill[(1,)](torch.empty(1 << 17, device="cuda"), 1.5, BLOCK=1 << 21)
for _ in range(999):
    launch(1.5)
