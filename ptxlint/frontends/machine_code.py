"""Machine code as an input: listings, cubins, and files that hold cubins.

A cubin becomes the listing that `nvdisasm -c -gi` prints of it, so that whatever is said of it has
a line there. Fat binaries, objects, shared objects and archives are taken apart by `cuobjdump`.
"""

from __future__ import annotations

import re
import struct
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ptxlint.frontends.toolkit import Extracted

HEAD: Final = 1 << 16
"""So many characters of a text are looked at to see what it is."""
_ELF: Final = b"\x7fELF"
_ELF64: Final = b"\x02\x01"
"""64 bits, the lowest byte first."""
_ELF64_HEADER: Final = 64
_SECTIONS_AT: Final = 0x28
_SECTION_SIZE_AT: Final = 0x3A
_FATBIN: Final = b"\x50\xed\x55\xba"
_ARCHIVE: Final = b"!<arch>\n"
_EM_CUDA: Final = 190
_ENTRY: Final = "STO_CUDA_ENTRY"
"""What listings mark kernels with."""
_PARAMETERS: Final = b".nv.constant0."
"""The section of a kernel's parameters is called so, and the kernel's name; no symbol is needed for
that."""
_MACHINE_AT: Final = 18
_PTX: Final = re.compile(r"^[ \t]*\.version[ \t]+\d", re.MULTILINE)
_OF_TARGET: Final = re.compile(r"[ \t]*code for (sm_\w+)[ \t]*")
_NEXT: Final = re.compile(r"Fatbin \w+ code:[ \t]*")
_LISTED: Final = re.compile(r"^[ \t]*/\*[0-9a-fA-F]{4,}\*/[ \t]+\S", re.MULTILINE)


class MachineCodeError(Exception):
    """Machine code that cannot be read: what is wrong, and what to do."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint


def is_listing(text: str) -> bool:
    """True for what nvdisasm or cuobjdump print of machine code, JSON included."""
    head = text[:HEAD]
    if _PTX.search(head):
        return False
    return _LISTED.search(head) is not None or _is_json(head)


def _is_json(head: str) -> bool:
    return head.lstrip().startswith("[") and '"SchemaVersion"' in head


def listing(text: str) -> str:
    """A listing as lines: JSON becomes what it stands for. Raises `MachineCodeError`."""
    if not _is_json(text[:HEAD]):
        return text
    from ptxlint.frontends.sass.json_form import JsonFormError, as_listing

    try:
        return as_listing(text)
    except JsonFormError as error:
        raise MachineCodeError(str(error)) from None


def is_dump(head: bytes) -> bool:
    """True for the beginning of what `cuobjdump -sass` prints."""
    return b"code for sm_" in head and not head.startswith(_ELF)


def targets(text: str) -> list[str]:
    """The architectures that a listing has code for, in its order: `cuobjdump` says so."""
    if "code for sm_" not in text or not is_listing(text):
        return []
    found = map(_OF_TARGET.fullmatch, text.splitlines())
    return list(dict.fromkeys(match[1] for match in found if match))


def of_target(text: str, target: str) -> str:
    """A listing with the code for one architecture alone; lines of the others are empty, so that
    each line keeps its number. All of it without a target."""
    if not target:
        return text
    lines = text.split("\n")
    first, is_meant = 0, False
    for at, line in enumerate(lines):
        match = _OF_TARGET.fullmatch(line.rstrip("\r"))
        if match is None and not _NEXT.fullmatch(line.rstrip("\r")):
            continue
        if not is_meant:
            lines[first:at] = [""] * (at - first)
        first, is_meant = at, match is not None and match[1] == target
    if not is_meant:
        lines[first:] = [""] * (len(lines) - first)
    return "\n".join(lines)


def is_cubin(head: bytes) -> bool:
    """True for an ELF file of CUDA; the first 20 bytes are enough."""
    return head.startswith(_ELF) and _machine(head) == _EM_CUDA


def holds_cubins(head: bytes) -> bool:
    """True for a file that may hold cubins: a fat binary, an object, a library, an archive."""
    if head.startswith(_ELF):
        return len(head) > _MACHINE_AT + 1 and _machine(head) not in (0, _EM_CUDA)
    return head.startswith((_FATBIN, _ARCHIVE))


def _machine(head: bytes) -> int:
    if len(head) < _MACHINE_AT + 2:
        return 0
    (machine,) = struct.unpack_from("<H", head, _MACHINE_AT)
    return int(machine)


def disassembled(cubin: bytes) -> str:
    """The listing of a cubin. Raises `MachineCodeError`."""
    from ptxlint.frontends.cubin import CubinError, read_cubin
    from ptxlint.frontends.toolkit import ToolError, disassemble

    try:
        found = read_cubin(cubin, "")
    except CubinError as error:
        raise MachineCodeError(str(error).removeprefix(": "), "assemble or copy it again") from None
    try:
        listed = disassemble(cubin, "-c", "-gi")
    except ToolError as error:
        hint = f"give a listing of this {found.arch} code, or the PTX that it was assembled from"
        raise MachineCodeError(str(error), hint) from None
    if _PARAMETERS in cubin and _ENTRY not in listed:
        message = "the symbols are stripped, so that nothing says which functions are kernels"
        raise MachineCodeError(message, "give the file as the assembler wrote it")
    return listed


def is_cut_off(file: bytes) -> bool:
    """True for an ELF file of 64 bits that ends before its table of sections does."""
    if not file.startswith(_ELF + _ELF64) or len(file) < _ELF64_HEADER:
        return False
    (offset,) = struct.unpack_from("<Q", file, _SECTIONS_AT)
    size, count = struct.unpack_from("<HH", file, _SECTION_SIZE_AT)
    return int(offset) + int(size) * int(count) > len(file)


def extracted(file: bytes) -> Extracted:
    """The cubins in a file by the names that cuobjdump gives them, in its order; none if there is
    no device code. Raises `MachineCodeError`."""
    from ptxlint.frontends.toolkit import ToolError, extract

    try:
        return extract(file)
    except ToolError as error:
        raise MachineCodeError(str(error)) from None


__all__ = [
    "HEAD", "MachineCodeError", "disassembled", "extracted", "holds_cubins", "is_cubin",
    "is_cut_off", "is_dump", "is_listing", "listing", "of_target", "targets",
]  # fmt: skip
