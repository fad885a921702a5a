"""Run cases on the GPU, up to the first fault.

    python benchmarks/soundness/gpu_case.py BUNDLE checked|jit|logged NUMBER…

`checked` runs the kernel as it is, for a memory checker to watch; with `jit` the driver assembles
it; `logged` runs one that records its addresses. Prints a line of JSON for each case: `refused` or
`fault` with CUDA's name of the error, or `ran`, and with `logged` where each access went in bytes
from its tensor's first element.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
from typing import Any

from cases import Case, Loaded, cases, load

from ptxlint.dataflow.access import AccessAnalysis
from ptxlint.dynamic.address_log import VARIABLE, LoggedPtx, logged
from ptxlint.dynamic.cuda_driver import Context, CudaError, Module, Placement, PlacementError, run
from ptxlint.launches import DTYPE_BYTES, Tensor

_MOST = 1 << 22
_VERSION = (8, 7)


def contents(tensor: Tensor) -> bytes:
    """Integers of the promised range, both ends among them, for a whole storage."""
    assert tensor.values is not None
    low, high = tensor.values
    size = DTYPE_BYTES[tensor.dtype]
    source = random.Random(0)
    count = tensor.storage_bytes // size
    numbers = [high, low, *(source.randint(low, high) for _ in range(count - 2))][:count]
    # The last index is as bad as the first.
    numbers[-1:] = [high]
    return b"".join(number.to_bytes(size, "little", signed=number < 0) for number in numbers)


def fill(placement: Placement, loaded: Loaded) -> None:
    """Zeros, and indices where a launch promises them."""
    for memory in placement.memories.values():
        memory.fill(0)
    for name, region in loaded.bound.regions.items():
        tensor = region.tensor
        if tensor.values is not None and tensor.storage_bytes <= _MOST:
            memory = placement.memories[region.storage]
            start = placement.addresses[name] + region.low - memory.address
            memory.write(contents(tensor), start)


def outcome(context: Context, case: Case, mode: str) -> dict[str, Any]:
    """What happened."""
    loaded = load(case)
    log: LoggedPtx | None = None
    if mode == "logged":
        log = logged(loaded.module, loaded.function)
        image = oldest(log.text).encode()
    elif mode == "jit":
        image = oldest(loaded.module.source.text).encode()
    else:
        image = case.path.with_suffix(".cubin").read_bytes()
    module = Module(context.driver, image)
    try:
        placement = Placement(context.driver, loaded.function, loaded.bound)
    except PlacementError as error:
        return {"failed": str(error)}
    fill(placement, loaded)
    if log is not None and log.sites:
        module.variable(VARIABLE).write(log.blank)
    found = attempt(context, module, placement, case, loaded)
    if log is not None and "ran" in found:
        found["touched"] = offsets(loaded, log, module, placement)
    if "fault" not in found:
        placement.release()
        module.release()
    return found


def oldest(text: str) -> str:
    """PTX for a driver that is older than the compiler: Triton uses nothing newer than this."""
    stated = re.search(r"^\s*\.version\s+(\d+)\.(\d+)", text, re.MULTILINE)
    if stated is None or (int(stated[1]), int(stated[2])) <= _VERSION:
        return text
    major, minor = _VERSION
    return f"{text[: stated.start()]}.version {major}.{minor}{text[stated.end() :]}"


def attempt(
    context: Context, module: Module, placement: Placement, case: Case, loaded: Loaded
) -> dict[str, Any]:
    """Launch the kernel and wait for its end."""
    bound = loaded.bound
    function = module.function(case.kernel)
    shared = max(0, bound.shared)
    cluster = case.launch.cluster
    try:
        run(function, bound.grid, bound.block, placement.parameters, shared, cluster)
    except CudaError as error:
        return {"refused": error.name}
    try:
        context.synchronise()
    except CudaError as error:
        return {"fault": error.name}
    return {"ran": True}


def offsets(
    loaded: Loaded, log: LoggedPtx, module: Module, placement: Placement
) -> dict[int, list[int]]:
    """By instruction: the least and the greatest byte from the first element of its tensor, and
    what is left of the least address when it is divided by 16."""
    data = module.variable(VARIABLE).read() if log.sites else b""
    bases = {a.instr.index: a.base for a in loaded.facts.get(AccessAnalysis).in_global}
    found: dict[int, list[int]] = {}
    for site, (least, greatest) in log.read(data).items():
        start = placement.addresses.get(bases.get(site, ""))
        if start is not None:
            found[site] = [least - start, greatest - start, least % 16]
    return found


def main() -> None:
    """Run cases one after the other. One that ends in a fault ends the process."""
    bundle, mode, *numbers = sys.argv[1:]
    every = list(cases(bundle))
    with Context() as context:
        for number in map(int, numbers):
            found = outcome(context, every[number], mode)
            print(json.dumps({"number": number} | found), flush=True)
            if "fault" in found:
                # Nothing works in this context any more.
                os._exit(0)


if __name__ == "__main__":
    main()
