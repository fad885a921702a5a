"""The machine code of the fixtures keeps the guards of their PTX."""

from __future__ import annotations

import io
import struct
from collections.abc import Callable
from typing import Any

from elftools.elf.elffile import ELFFile

from ptxlint.dataflow.inputs import parameter_addresses
from ptxlint.dataflow.lost_guards import survival
from ptxlint.facts import Facts
from ptxlint.frontends.ptx import parse as parse_ptx
from ptxlint.frontends.sass import parse

FIRST, ONE_PARAMETER = 0x0A, 0x17
"""EIATTR_PARAM_CBANK and EIATTR_KPARAM_INFO."""


def test_no_guard_is_lost(
    build: Any, text_of: Callable[[Any], str], listing: Callable[..., str]
) -> None:
    module, machine = parse_ptx(text_of(build)), parse(listing(build, "-c", "-gi"))
    kernels = {kernel.name: kernel for kernel in machine.kernels()}
    kept = accesses = 0
    for kernel in module.kernels():
        found = survival(Facts(module, kernel), Facts(machine, kernels[kernel.name]))
        assert found.lost == ()
        kept, accesses = kept + found.kept, accesses + found.accesses
    if build.name == "softmax":
        # Each row is 1024 elements by 128 threads, loaded and stored one by one.
        assert (kept, accesses) == (16, 16)


def test_parameters_lie_where_the_cubin_says(
    build: Any, text_of: Callable[[Any], str], assembled: Callable[[Any], Any]
) -> None:
    module = parse_ptx(text_of(build))
    elf = ELFFile(io.BytesIO(assembled(build).cubin))
    for kernel in module.kernels():
        told = {}
        first = 0
        for kind, value in _attributes(elf.get_section_by_name(f".nv.info.{kernel.name}").data()):
            if kind == FIRST:
                _, first, _ = struct.unpack("<IHH", value)
            elif kind == ONE_PARAMETER:
                _, number, offset = struct.unpack_from("<IHH", value)
                told[number] = offset
        found = list(parameter_addresses(kernel, module.arch).values())
        assert found == [first + told[number] for number in sorted(told)]


def _attributes(data: bytes) -> list[tuple[int, bytes]]:
    found = []
    at = 0
    while at + 4 <= len(data):
        form, kind, size = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == 4:
            found.append((kind, data[at : at + size]))
            at += size
    return found
