"""The lines of a listing: instructions, labels, sections, places in the source."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ptxlint.frontends.sass.builder import SassBuilder

_LINE: Final = re.compile(r'[ \t]*//## File "(?:[^"\\]|\\.){0,4096}"[^\n]*\n?|[^\n]*\n?')
"""The names of files may hold line breaks."""
_INSTRUCTION: Final = re.compile(
    r"[ \t]*/\*([0-9a-fA-F]{4,})\*/[ \t]+([^;/]+?(?:\(\*.*?\*\))?)[ \t]*;?[ \t]*"
    r"(?:/\*[ \t]*(0x[0-9a-fA-F]{16})[ \t]*\*/)?[ \t]*"
)
_ENCODING: Final = re.compile(r"[ \t]*/\*[ \t]*(0x[0-9a-fA-F]{16})[ \t]*\*/[ \t]*")
_LABEL: Final = re.compile(r"[ \t]*([.$A-Za-z_][.$\w]*):[ \t]*")
_PLACE: Final = re.compile(
    r'[ \t]*//## File "((?:[^"\\]|\\.)*)", line (\d{1,9})'
    r'(?: inlined at "((?:[^"\\]|\\.)*)", line (\d{1,9}))?[ \t]*'
)
_SECTION: Final = re.compile(r"[ \t]*\.section[ \t]+([^,\s]+).*")
_TARGET: Final = re.compile(r"[ \t]*(?:\.target[ \t]+|code for |arch = )(sm_\w+).*")
_FLAGS: Final = re.compile(r"[ \t]*\.headerflags[ \t].*?\bEF_CUDA_SM(\d+)\b.*")
"""Of the older ELF files, whose listings have no `.target`."""
_FUNCTION: Final = re.compile(r"[ \t]*Function : (\S+)[ \t]*")
_ENTRY: Final = re.compile(r"[ \t]*\.other[ \t]+([^,\s]+),.*STO_CUDA_ENTRY.*")
_KEPT: Final = re.compile(r'[ \t]*\.sectioninfo[ \t]+@"SHI_REGISTERS=(\d+)".*')
_OTHER: Final = re.compile(
    r"[ \t]*(?:\.[A-Za-z].*|//.*|=+|\.+|Fatbin .*|(?:code version|host|compile_size|producer"
    r"|identifier|compressed|has debug info|\w+ = ).*|\d+-bit.*|\{|\}|)[ \t]*"
)


def read(text: str, builder: SassBuilder) -> None:
    """Hand each line of a listing to a builder. What is no line of one is a problem of the
    module."""
    is_code = True
    offset = 0
    for found in _LINE.finditer(text):
        line = found.group().rstrip("\r\n")
        offset = found.start()
        if match := _INSTRUCTION.fullmatch(line):
            if is_code:
                first = match.start(2)
                builder.instruction(int(match[1], 16), match[2], offset + first, match[3])
        elif match := _PLACE.fullmatch(line):
            inlined = (match[3], int(match[4])) if match[3] is not None else None
            builder.place(match[1], int(match[2]), inlined, offset)
        elif match := _ENCODING.fullmatch(line):
            builder.encoding(match[1])
        elif match := _SECTION.fullmatch(line):
            is_code = match[1].startswith(".text.")
            if is_code:
                builder.function(match[1].removeprefix(".text."), offset)
        elif match := _FUNCTION.fullmatch(line):
            is_code = True
            builder.function(match[1], offset, is_entry=not match[1].startswith("$"))
        elif match := _LABEL.fullmatch(line):
            if is_code:
                builder.label(match[1], offset)
        elif match := _TARGET.fullmatch(line):
            builder.target(match[1])
        elif match := _FLAGS.fullmatch(line):
            builder.target(f"sm_{match[1]}{'a' * ('EF_CUDA_ACCELERATORS' in line)}")
        elif match := _ENTRY.fullmatch(line):
            builder.entry(match[1])
        elif match := _KEPT.fullmatch(line):
            builder.registers(int(match[1]))
        elif is_code and not _OTHER.fullmatch(line):
            builder.problem(offset, "this is no line of a listing of nvdisasm or cuobjdump")


__all__ = ["read"]
