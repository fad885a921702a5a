"""GPUs for campaigns of the benchmarks: several processes share one."""

from __future__ import annotations

import argparse

from ptxlint.dynamic.campaign.machine import gpus


def shared_gpus(parser: argparse.ArgumentParser, runner: str, each: int) -> tuple[int, ...]:
    """Each GPU `each` times, at least once; none for the emulator. Ends the command where `cuda` is
    asked for and there is none."""
    found = gpus() if runner == "cuda" else ()
    if runner == "cuda" and not found:
        parser.error("--runner cuda: no CUDA device was found")
    return found * max(each, 1)
