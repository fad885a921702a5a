"""The static half's word on the kernels of a captured bundle, under its launches."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from typing import Any

import ptxlint

from .knowledge import KernelKnowledge


def check_bundle(folder: str, *, budget: float = 1.0) -> tuple[KernelKnowledge, ...]:
    """What is known of each kernel of a bundle (docs/bundle.md), in its order.

    What is said of kernels of one name is said of each: reports keep once what is alike for several
    specialisations, and keep apart what is not.
    `budget` multiplies the steps of the analyses. Raises `OSError` or `ValueError` for what is no
    bundle.
    """
    with open(os.path.join(folder, "manifest.json"), encoding="utf-8") as stream:
        manifest = json.load(stream)
    if not manifest["kernels"]:
        return ()
    report = ptxlint.check([folder], budget=budget).to_dict()
    return tuple(_known(kernel, folder, report) for kernel in manifest["kernels"])


def _known(kernel: Mapping[str, Any], folder: str, report: Mapping[str, Any]) -> KernelKnowledge:
    launches = kernel["launches"]
    metadata = _metadata(os.path.join(folder, kernel["metadata"]))
    source = kernel.get("source", {})
    arguments = [pair for launch in launches for pair in launch["arguments"].items()]
    return KernelKnowledge(
        kernel["name"],
        kernel["hash"],
        kernel["arch"],
        {n: str(a["value"]) for n, a in arguments if a["kind"] == "constant"},
        int(metadata.get("num_warps") or 0),
        int(metadata.get("num_stages") or 0),
        source.get("path", ""),
        int(source.get("line", 0)),
        tuple(dict.fromkeys((x, y, z) for x, y, z in (launch["grid"] for launch in launches))),
        tuple(sorted({number for _, argument in arguments for number in _integers(argument)})),
        any("autotuned" in launch for launch in launches),
        tuple(said for said in report["findings"] if said["kernel"] == kernel["name"]),
        tuple(said for said in report["obligations"] if said["kernel"] == kernel["name"]),
    )


def _integers(argument: Mapping[str, Any]) -> Iterator[int]:
    """The integers that a kernel is passed by an argument."""
    if argument["kind"] == "tuple":
        for item in argument["items"]:
            yield from _integers(item)
    elif argument["kind"] == "scalar" and isinstance(argument["value"], int):
        yield argument["value"]


def _metadata(path: str) -> dict[str, Any]:
    """Triton's words on a kernel; none where they cannot be read."""
    try:
        with open(path, encoding="utf-8") as stream:
            read = json.load(stream)
    except (OSError, ValueError):
        return {}
    return read if isinstance(read, dict) else {}


__all__ = ["check_bundle"]
