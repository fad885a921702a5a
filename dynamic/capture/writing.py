"""Kernels, and whole recordings, as the files of a bundle (docs/bundle.md)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import ptxlint

from .kernels import Captured, Kernel
from .manifest import NAME, VERSION, dumped, kernel_entry, launch_entry, trouble_entry


def write_kernel(kernel: Kernel, bundle: Path) -> dict[str, Any]:
    """Write a kernel's files into a bundle; returns its entry in the manifest, without launches.
    One that was not assembled has no cubin."""
    entry = kernel_entry(kernel)
    (bundle / entry["ptx"]).parent.mkdir(parents=True, exist_ok=True)
    (bundle / entry["ptx"]).write_bytes(kernel.ptx.encode())
    (bundle / entry["ttir"]).write_bytes(kernel.ttir.encode())
    if kernel.cubin:
        (bundle / entry["cubin"]).write_bytes(kernel.cubin)
    else:
        del entry["cubin"]
    metadata = json.dumps(kernel.metadata, sort_keys=True) + "\n"
    (bundle / entry["metadata"]).write_bytes(metadata.encode())
    return entry


def write_bundle(arch: str, captured: Captured, bundle: Path) -> None:
    """Write all that was captured so far as a bundle, without output and what tensors held."""
    kernels = []
    for kernel in captured.kernels:
        entry = write_kernel(kernel, bundle)
        entry["launches"] = [launch_entry(launch) for launch in kernel.launches]
        kernels.append(entry)
    troubles = dict.fromkeys(captured.troubles)
    manifest = {
        "version": VERSION,
        "tool": f"ptxlint {ptxlint.__version__}",
        "command": [],
        "runs": [],
        "kernels": kernels,
        "problems": [{**trouble_entry(arch, t), "count": 1} for t in troubles],
    }
    (bundle / NAME).write_text(dumped(manifest), encoding="utf-8")


__all__ = ["write_bundle", "write_kernel"]
