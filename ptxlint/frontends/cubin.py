"""Cubins: the ELF files that ptxas writes, and what they say of their kernels.

Attributes of kernels lie in the sections `.nv.info` and `.nv.info.KERNEL` as records of a format
byte, a kind byte and 16 bits that are a value or the length of what follows. Their names are those
that `cuobjdump -elf` prints (EIATTR_REGCOUNT, …); that the numbers are those of the assembler's log
is held by the tests.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ptxlint.resources import CUBIN, Amount, Resources

if TYPE_CHECKING:
    from elftools.elf.elffile import ELFFile
    from elftools.elf.sections import Section

MAGIC: Final = b"\x7fELF"
_EM_CUDA: Final = 190
_STANDARD_ABI: Final = 8
"""From this version of the ABI on the architecture stands in bits 8 to 15 of the flags."""
_WITH_LENGTH: Final = 4
_OTHER_AT: Final = 5
"""Where `st_other` lies in a symbol (ELF64)."""
_ENTRY: Final = 0x10
"""STO_CUDA_ENTRY, in `st_other`."""
_REGISTERS, _FRAME, _LEAST_STACK = 0x2F, 0x11, 0x12
_BARRIERS, _THREADS = 0x4C, 0x10
_RESERVED_SYMBOL: Final = ".nv.reservedSmem.offset0"
_BANKS: Final = 18
"""Constant banks that code can name (measured: c[0x0] to c[0x11])."""
_RESERVED: Final = 1024
"""Bytes of shared memory that the system keeps for itself, counted in the section's size."""


class CubinError(ValueError):
    """A file that cannot be read as a cubin: what is wrong, and what to do."""


class Cubin(NamedTuple):
    """The kernels of a cubin by name, for an architecture such as `sm_90`."""

    arch: str
    kernels: dict[str, Resources]


def read_cubin(data: bytes, path: str = "<cubin>") -> Cubin:
    """What a cubin says of its kernels. Raises `CubinError`."""
    if not data.startswith(MAGIC):
        raise CubinError(f"{path}: this is no ELF file: give a cubin")
    try:
        elf = _opened(data)
        if elf["e_machine"] not in ("EM_CUDA", _EM_CUDA):
            raise CubinError(
                f"{path}: an ELF file of the machine {elf['e_machine']}, not of CUDA: give a cubin"
            )
        return Cubin(_arch(elf), _kernels(elf))
    except CubinError:
        raise
    except Exception as error:
        # pyelftools trusts sizes and kinds, and raises whatever a wrong one leads to.
        raise CubinError(
            f"{path}: the cubin is damaged or cut off ({error or type(error).__name__})"
        ) from None


def code_of(data: bytes, kernel: str) -> tuple[bytes, ...] | None:
    """The bytes of a kernel's code and of the constants that it may read; None if they cannot be
    read, or are completed when the cubin is linked."""
    elf = _read(data)
    section = None if elf is None else elf.get_section_by_name(f".text.{kernel}")
    if elf is None or section is None or _is_relocated(elf, section.name):
        return None
    globals_ = elf.get_section_by_name(".nv.global.init")
    memory = _constants(elf, kernel)
    return (
        bytes(section.data()),
        b"" if globals_ is None else bytes(globals_.data()),
        *(bank.to_bytes(1, "big") + held for bank, held in sorted(memory.items())),
    )


def constant_memory(data: bytes, kernel: str) -> dict[int, bytes]:
    """The constant banks that a cubin fills for a kernel, by number; that of parameters (0) is
    filled at the launch. Empty if they cannot be read."""
    elf = _read(data)
    return {} if elf is None else _constants(elf, kernel)


def _read(data: bytes) -> ELFFile | None:
    from elftools.common.exceptions import ELFError

    try:
        elf = _opened(data)
        # Names are read here, so that a damaged file is told here.
        elf.get_section_by_name("")
    except (ELFError, struct.error, EOFError, KeyError, IndexError, UnicodeDecodeError):
        return None
    return elf


def _is_relocated(elf: ELFFile, name: str) -> bool:
    found = (elf.get_section_by_name(f"{kind}{name}") for kind in (".rela", ".rel"))
    return any(section is not None and section["sh_size"] for section in found)


def _constants(elf: ELFFile, kernel: str) -> dict[int, bytes]:
    found: dict[int, bytes] = {}
    # A kernel's own bank stands for the module's of the same number.
    for suffix in ("", f".{kernel}"):
        for bank in range(1, _BANKS):
            section = elf.get_section_by_name(f".nv.constant{bank}{suffix}")
            if section is not None:
                found[bank] = bytes(section.data())
    return found


def _opened(data: bytes) -> ELFFile:
    from elftools.elf.elffile import ELFFile

    return ELFFile(io.BytesIO(data))


def _arch(elf: ELFFile) -> str:
    flags = elf["e_flags"]
    is_new = elf["e_ident"]["EI_ABIVERSION"] >= _STANDARD_ABI
    return f"sm_{flags >> 8 & 0xFF if is_new else flags & 0xFF}"


def _kernels(elf: ELFFile) -> dict[str, Resources]:
    arch = _arch(elf)
    sections = {section.name: section for section in elf.iter_sections()}
    common = _common(elf, sections)
    reserved = _reserved(sections)
    entries = _entries(sections)
    found = {}
    for name, section in sections.items():
        kernel = name.removeprefix(".text.")
        if kernel == name or kernel not in entries:
            continue
        # The data are read to the end, so that a file that was cut off is told.
        if len(section.data()) < section["sh_size"]:
            raise EOFError(f"section {name} ends early")
        own = dict(_attributes(sections.get(f".nv.info.{kernel}")))
        found[kernel] = _resources(
            arch, kernel, section, sections, own, common.get(kernel, {}), reserved
        )
    return found


def _resources(
    arch: str,
    kernel: str,
    section: Section,
    sections: dict[str, Section],
    own: dict[int, bytes],
    common: dict[int, int],
    reserved: int,
) -> Resources:
    registers = common.get(_REGISTERS, section["sh_info"] >> 24)
    barriers = own[_BARRIERS][0] if own.get(_BARRIERS) else section["sh_flags"] >> 20 & 0x7F
    constant = sections.get(f".nv.constant0.{kernel}")
    threads = None
    if len(own.get(_THREADS, b"")) >= 12:
        x, y, z = struct.unpack_from("<III", own[_THREADS])
        threads = x * y * z
    return Resources(
        arch,
        registers=Amount(registers, CUBIN) if registers else None,
        stack=_amount(common.get(_FRAME)),
        cumulative_stack=_amount(common.get(_LEAST_STACK)),
        shared=Amount(_shared(sections.get(f".nv.shared.{kernel}"), reserved), CUBIN),
        barriers=Amount(barriers, CUBIN),
        constant=None if constant is None else Amount(constant["sh_size"], CUBIN),
        threads=threads,
    )


def _entries(sections: dict[str, Section]) -> set[str]:
    """The functions that are kernels, by a bit of their symbols."""
    symbols: Any = sections.get(".symtab")
    if symbols is None:
        return set()
    data, size = symbols.data(), symbols["sh_entsize"]
    return {
        symbol.name
        for at, symbol in enumerate(symbols.iter_symbols())
        if data[at * size + _OTHER_AT] & _ENTRY
    }


def _amount(value: int | None) -> Amount | None:
    return None if value is None else Amount(value, CUBIN)


def _shared(section: Section | None, reserved: int) -> int:
    """Bytes of static shared memory, without what the system keeps of it."""
    return 0 if section is None else max(0, int(section["sh_size"]) - reserved)


def _reserved(sections: dict[str, Section]) -> int:
    """What the system keeps of the shared memory of each kernel. With `-g` there is no section for
    it, and the symbol is there all the same."""
    symbols: Any = sections.get(".symtab")
    has_symbol = symbols is not None and symbols.get_symbol_by_name(_RESERVED_SYMBOL) is not None
    return _RESERVED if has_symbol or ".nv.shared.reserved.0" in sections else 0


def _common(elf: ELFFile, sections: dict[str, Section]) -> dict[str, dict[int, int]]:
    """The attributes of `.nv.info` by function and kind: each names a symbol and a number."""
    symbols: Any = sections.get(".symtab")
    found: dict[str, dict[int, int]] = {}
    for kind, value in _attributes(sections.get(".nv.info")):
        if len(value) >= 8 and symbols is not None:
            symbol, number = struct.unpack_from("<II", value)
            found.setdefault(symbols.get_symbol(symbol).name, {})[kind] = number
    return found


def _attributes(section: Section | None) -> Iterator[tuple[int, bytes]]:
    """The records of a section, kind and value."""
    if section is None:
        return
    data = section.data()
    at = 0
    while at + 4 <= len(data):
        form, kind, value = struct.unpack_from("<BBH", data, at)
        at += 4
        if form == _WITH_LENGTH:
            yield kind, data[at : at + value]
            at += value
        else:
            yield kind, struct.pack("<H", value)


__all__ = ["MAGIC", "Cubin", "CubinError", "code_of", "constant_memory", "read_cubin"]
