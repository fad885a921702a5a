"""Run packed cases on the GPU, up to the first fault.

    python benchmarks/defects/gpu_case.py FOLDER alone|watched NUMBER…

Prints a line of JSON for each: `refused` or `fault` with CUDA's name of the error, or `ran` with a
checksum of each memory where nobody watches.
"""

from __future__ import annotations

import base64
import json
import os
import sys
import zlib
from pathlib import Path
from typing import Any

from ptxlint.dynamic.cuda_driver import Context, CudaError, Memory, Module, run
from ptxlint.dynamic.cuda_driver.tensor_map import encoded
from ptxlint.dynamic.emulator.tensor_map import TensorMap


def outcome(
    context: Context, folder: Path, number: int, case: dict[str, Any], reads_back: bool
) -> dict[str, Any]:
    """What happened."""
    module = Module(context.driver, (folder / f"{number}.cubin").read_bytes())
    memories = [held(context, given) for given in case["memories"]]
    starts = [memory.address for memory in memories]
    parameters = [parameter(context, given, starts) for given in case["parameters"]]
    for memory, given in zip(memories, case["memories"], strict=True):
        if given["state"] == "freed":
            memory.release()
    x, y, z = case["grid"]
    block = case["threads"], 1, 1
    try:
        run(module.function(case["kernel"]), (x, y, z), block, parameters, case["shared"])
    except CudaError as error:
        return {"refused": error.name}
    try:
        context.synchronise()
    except CudaError as error:
        return {"fault": error.name}
    sums = []
    if reads_back:
        sums = [zlib.crc32(memory.read()) if memory.address else 0 for memory in memories]
    for memory in memories:
        memory.release()
    module.release()
    return {"ran": sums}


def held(context: Context, given: dict[str, Any]) -> Memory:
    """A memory, filled if something is in it."""
    memory = Memory(context.driver, given["size"])
    if given["state"] != "blank":
        memory.write(zlib.decompress(base64.b64decode(given["contents"])))
    return memory


def parameter(context: Context, given: Any, starts: list[int]) -> bytes:
    """The bytes of a parameter."""
    if isinstance(given, str):
        return bytes.fromhex(given)
    if "memory" in given:
        address: int = starts[given["memory"]] + given["first"]
        return address.to_bytes(8, "little")
    fields = [tuple(field) if isinstance(field, list) else field for field in given["fields"]]
    found = TensorMap(*fields)._replace(address=starts[given["map_of"]])
    return encoded(context.driver, found)


def main() -> None:
    """Run cases one after the other. One that ends in a fault ends the process."""
    folder = Path(sys.argv[1])
    cases = json.loads((folder / "cases.json").read_text(encoding="utf-8"))
    with Context() as context:
        for number in map(int, sys.argv[3:]):
            found = outcome(context, folder, number, cases[number], sys.argv[2] == "alone")
            print(json.dumps({"number": number} | found), flush=True)
            if "fault" in found:
                # Nothing works in this context any more.
                os._exit(0)


if __name__ == "__main__":
    main()
