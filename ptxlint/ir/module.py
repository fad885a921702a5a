"""A PTX module: one file's worth of declarations."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from ptxlint.ir.function import Function, Pragma, Variable
from ptxlint.ir.operand import Operand
from ptxlint.source import Loc, Problem, SourceFrame, SourceText
from ptxlint.source.inlining_comment import callers

_TOOLKIT = re.compile(r"cuda([-_.]?(\d[\d.]*|toolkit|runtime|cccl|nvcc))?|cu\d+", re.IGNORECASE)


class FileEntry(NamedTuple):
    """`.file number "name"[, timestamp, size]`."""

    number: int
    name: str
    timestamp: int | None
    size: int | None
    offset: int


class Alias(NamedTuple):
    """`.alias name, target;`."""

    name: str
    target: str
    offset: int


class SectionData(NamedTuple):
    """One line of a section: a label (`kind` = `label`) or `.b8 …` data."""

    kind: str
    values: tuple[Operand | str, ...]


class Section(NamedTuple):
    """`.section .debug_x { … }`; `start` and `end` bound its text between the braces."""

    name: str
    start: int
    end: int
    offset: int


class DwarfLine(NamedTuple):
    """An old `@@DWARF …` line."""

    text: str
    offset: int


class GlobalDeclaration(NamedTuple):
    """Variables of one statement at module level."""

    variables: tuple[Variable, ...]
    offset: int


ModuleItem: TypeAlias = (
    Function | GlobalDeclaration | FileEntry | Alias | Section | DwarfLine | Pragma | Loc
)


class Module:
    """A parsed PTX module.

    `version` is (major, minor), (0, 0) when missing; `targets` the words of `.target`. `problems`
    are the faults met while reading, in text order.
    """

    __slots__ = (
        "_frames",
        "_shown",
        "address_size",
        "files",
        "functions",
        "items",
        "problems",
        "source",
        "targets",
        "variables",
        "version",
    )

    def __init__(self, source: SourceText) -> None:
        self.source = source
        self.version: tuple[int, int] = (0, 0)
        self.targets: tuple[str, ...] = ()
        self.address_size: int = 0
        self.items: list[ModuleItem] = []
        self.functions: list[Function] = []
        self.variables: dict[str, Variable] = {}
        self.files: dict[int, FileEntry] = {}
        self.problems: list[Problem] = []
        self._frames: dict[Loc, list[SourceFrame]] = {}
        self._shown: dict[Loc, SourceFrame | None] = {}

    @property
    def arch(self) -> str:
        """The target architecture, such as `sm_90a`; "" when none is given."""
        return next((t for t in self.targets if t.startswith(("sm_", "compute_"))), "")

    def kernels(self) -> list[Function]:
        """The `.entry` functions that have a body."""
        return [f for f in self.functions if f.is_kernel and not f.is_declaration]

    def frames(self, loc: Loc | None) -> list[SourceFrame]:
        """The inlining chain of a location as file names and lines, innermost first; not to be
        changed. To be asked when the text has been read."""
        if loc is None:
            return []
        out = self._frames.get(loc)
        if out is not None:
            return out
        out = self._frames[loc] = []
        for link in loc.chain():
            entry = self.files.get(link.file)
            if entry is not None:
                out.append(SourceFrame(entry.name, link.line, link.column, link.function))
        if out and loc.parent is None:
            out += self._commented(loc)
        return out

    def _commented(self, loc: Loc) -> list[SourceFrame]:
        """The links that only a comment names, up to one whose file is not known for certain."""
        out: list[SourceFrame] = []
        for caller in callers(self.source, loc.offset):
            named = {f.name for f in self.files.values() if _base(f.name) == caller.name}
            if len(named) != 1:
                break
            out.append(SourceFrame(named.pop(), caller.line, caller.column, ""))
        return out

    def python_frame(self, loc: Loc | None) -> SourceFrame | None:
        """The frame a person wants to see: the innermost one that is no library of the compiler."""
        if loc is None:
            return None
        if loc not in self._shown:
            chain = self.frames(loc)
            own = (frame for frame in chain if not _is_library(frame.path))
            self._shown[loc] = next(own, chain[-1] if chain else None)
        return self._shown[loc]


def _base(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2]


@lru_cache(maxsize=1024)
def _is_library(path: str) -> bool:
    """True for Triton's own library, and for the headers of a CUDA toolkit.

    Those lie in `/usr/local/cuda-13.0/targets/…/include`, `nvidia/cuda_runtime/include`, and so on.
    """
    path = "/" + path.replace("\\", "/")
    above, include, _ = path.partition("/include/")
    if include and any(_TOOLKIT.fullmatch(part) for part in above.split("/")):
        return True
    return "/triton/language/" in path
