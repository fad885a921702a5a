"""Machine code for the tests of comparisons: listings by hand, and cubins of the fixtures."""

from __future__ import annotations

import struct
from functools import cache
from pathlib import Path

import pytest

from ptxlint.frontends.ptx import parse
from ptxlint.frontends.toolkit import (
    Assembled,
    ToolError,
    assemble,
    find_assembler,
    find_tool,
)

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures" / "ptx"


def fixture(name: str, arch: str = "sm_90") -> str:
    return str(FIXTURES / arch / f"{name}.ptx")


@cache
def assembled(name: str, arch: str = "sm_90") -> Assembled:
    """What the assembler makes of a fixture; the test is skipped where there is none."""
    text = Path(fixture(name, arch)).read_text()
    module = parse(text)
    try:
        find_tool("nvdisasm")
        return assemble(text, module.arch, find_assembler(module.version), name)
    except ToolError as error:
        pytest.skip(str(error))


def cubin(folder: Path, name: str, arch: str = "sm_90", stem: str = "") -> str:
    """A file with a fixture's machine code."""
    folder.mkdir(exist_ok=True)
    path = folder / f"{stem or name}.cubin"
    path.write_bytes(assembled(name, arch).cubin)
    return str(path)


def fatbin(*cubins: tuple[int, bytes]) -> bytes:
    """A fat binary: a header, and each cubin behind one of its own."""
    body = b""
    for arch, data in cubins:
        data += bytes(-len(data) % 8)
        head = (2, 0x101, 64, len(data), 0, 0, 0, 0, arch, 0, 0x11, 0, 0)
        body += struct.pack("<HHIQIIHHIQQQQ", *head) + data
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body)) + body


def listing(*instructions: str, name: str = "k", arch: str = "sm_90", path: str = "a.py") -> str:
    """What nvdisasm would print: `7: FADD R1, R2, R3` stands on line 7 of the source, what follows
    as well; `.L_x:` is a label."""
    out = [
        f"\t.target\t{arch}",
        f'\t.section\t.text.{name},"ax",@progbits',
        f'\t.other\t{name},@"STO_CUDA_ENTRY"',
        f".text.{name}:",
    ]
    address = 0
    for text in instructions:
        line, found, rest = text.partition(": ")
        if found:
            out.append(f'\t//## File "{path}", line {line}')
        if text.endswith(":"):
            out.append(text)
        else:
            out.append(f"        /*{address:04x}*/   {rest or text} ;")
            address += 16
    return "\n".join(out) + "\n"


def dump(*parts: tuple[str, str, tuple[str, ...]]) -> str:
    """What `cuobjdump -sass` would print of a fat binary: architecture, kernel, instructions."""
    out = []
    for arch, name, instructions in parts:
        out += ["", "Fatbin elf code:", "================", f"arch = {arch.rstrip('a')}",
                "code version = [1,8]", "host = linux", "compile_size = 64bit", "",
                f"\tcode for {arch}", f"\t\tFunction : {name}"]  # fmt: skip
        for at, text in enumerate(instructions):
            out += [f"        /*{16 * at:04x}*/   {text} ;   /* 0x{at:016x} */",
                    f"{' ' * 40}/* 0x{at:016x} */"]  # fmt: skip
        out.append("\t\t..........")
    return "\n".join(out) + "\n"
