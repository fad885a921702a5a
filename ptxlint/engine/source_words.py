"""What the source calls things: the kernel's parameters and the masks of its accesses.

Names come from Triton's IR beside the PTX, or else from the Python file that the debug information
names, when its signature certainly is the kernel's. Where that is not sure, the PTX name stays.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from ptxlint.engine.python_source import PythonSources
from ptxlint.facts import SourceWords
from ptxlint.frontends.discovery import STDIN
from ptxlint.ir.function import Function, Variable
from ptxlint.ir.instruction import Instr
from ptxlint.ir.module import Module
from ptxlint.source import Loc

if TYPE_CHECKING:
    from ptxlint.engine.python_kernel import PythonKernel, PythonKernels

_KINDS: Final = {"ld": "load", "cp": "load", "st": "store", "red": "atomic", "atom": "atomic"}
"""What the source calls the accesses of an opcode."""
_WORD: Final = re.compile(r"[A-Za-z_]\w*(\.\w+|\[\d+\])*")
_SCRATCH: Final = 2
"""Pointers that Triton appends: to global and to profile scratch memory."""


class PythonReader:
    """The Python functions of one run; nothing is read before somebody asks."""

    __slots__ = ("_kernels", "sources")

    def __init__(self, sources: PythonSources) -> None:
        self.sources = sources
        self._kernels: PythonKernels | None = None

    def function_at(self, path: str, line: int) -> PythonKernel | None:
        """The innermost function around a line of a file; None if there is none to read."""
        if self._kernels is None:
            # The parser of Python is for those who need it: most kernels have nothing to name.
            from ptxlint.engine.python_kernel import PythonKernels

            self._kernels = PythonKernels(self.sources)
        return self._kernels.at(path, line)


class KernelWords(SourceWords):
    """The words of one kernel; they are looked for when somebody asks."""

    __slots__ = ("_function", "_module", "_names", "_pattern", "_reader")

    def __init__(self, module: Module, function: Function, reader: PythonReader) -> None:
        self._module = module
        self._function = function
        self._reader = reader
        self._names: dict[str, str] | None = None
        self._pattern: re.Pattern[str] | None = None

    def parameter(self, name: str) -> str:
        """What the source calls a parameter of the kernel; its PTX name if that is not known."""
        return self._known().get(name, name)

    def parameters(self, function: Function) -> dict[str, str]:
        """The names of the kernel's parameters in the source, by those in the PTX, where known."""
        return dict(self._known()) if function is self._function else {}

    def learn(self, names: dict[str, str]) -> None:
        """Take names of parameters by those in the PTX from a launch, if there are no others.

        What is no word of the source, or stands for several parameters, is left out.
        """
        if self._known():
            return
        given = list(names.values())
        self._names = {
            ptx: name
            for ptx, name in names.items()
            if name != ptx and _WORD.fullmatch(name) and given.count(name) == 1
        }

    def mask(self, instr: Instr) -> str:
        """The mask of a load or store as the source has it; "" if that is not known."""
        frame = self._module.python_frame(instr.loc)
        kind = _KINDS.get(instr.opcode)
        if frame is None or frame.line <= 0 or kind is None:
            return ""
        path = self._reader.sources.locate(frame.path, self._module.source.path)
        kernel = self._reader.function_at(path, frame.line)
        return kernel.mask(frame.line, frame.column, kind) if kernel is not None else ""

    def translate(self, text: str) -> str:
        """A text with all parameters called as in the source."""
        if not any(variable.name in text for variable in self._function.params):
            return text
        names = self._known()
        if not names:
            return text
        if self._pattern is None:
            longest = sorted(names, key=len, reverse=True)
            self._pattern = re.compile(
                rf"(?<![\w$%])(?:{'|'.join(map(re.escape, longest))})(?![\w$])"
            )
        return self._pattern.sub(lambda match: names[match[0]], text)

    def _known(self) -> dict[str, str]:
        if self._names is None:
            names = self._from_ir() or self._from_python() or []
            found = {
                variable.name: name
                for variable, name in zip(self._function.params, names, strict=False)
                if variable.name != name
            }
            # Two parameters of one name would tell nobody which is meant.
            self._names = found if len(set(names)) == len(names) else {}
        return self._names

    def _from_ir(self) -> list[str] | None:
        from ptxlint.frontends.triton_ir import agrees, load_parameters

        path, declared = self._module.source.path, self._function.params
        if not self._function.is_kernel or not declared or path == STDIN:
            return None
        found = load_parameters(path, self._function.name)
        if found is None or not 0 <= len(declared) - len(found) <= _SCRATCH:
            return None
        rest = declared[len(found) :]
        if not all(map(agrees, found, declared)) or not all(map(_may_be_scratch, rest)):
            return None
        return [parameter.name for parameter in found]

    def _from_python(self) -> list[str] | None:
        declared = self._function.params
        kernel = self._python()
        if kernel is None or len(declared) <= _SCRATCH or any(v.dims for v in declared):
            return None
        own, rest = declared[:-_SCRATCH], declared[-_SCRATCH:]
        names = kernel.parameters()
        # At most the scratch pointers were added, so that with as many names none was dropped.
        if names is None or len(names) != len(own) or not all(map(_may_be_scratch, rest)):
            return None
        if kernel.has_compound(names):
            return None
        numbers, pointers = kernel.numbers(), kernel.pointers()
        for name, variable in zip(names, own, strict=True):
            is_pointer = "ptr" in variable.attributes
            if (name in numbers and is_pointer) or (name in pointers and not is_pointer):
                return None
        return names

    def _python(self) -> PythonKernel | None:
        """The Python function that this kernel is: of that name, at the kernel's first line."""
        name = self._function.name
        loc = next((item for item in self._function.items if isinstance(item, Loc)), None)
        frames = self._module.frames(loc)
        if not self._function.is_kernel or not frames:
            return None
        path = self._reader.sources.locate(frames[-1].path, self._module.source.path)
        kernel = self._reader.function_at(path, frames[-1].line)
        if kernel is None or not kernel.starts_at(frames[-1].line):
            return None
        return kernel if name == kernel.name or name.startswith(f"{kernel.name}_") else None


def _may_be_scratch(variable: Variable) -> bool:
    return variable.size == 8 and not variable.dims and "ptr" in variable.attributes
