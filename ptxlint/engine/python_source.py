"""Python files behind the kernels: found, read for quoting and suppressions, never executed."""

from __future__ import annotations

import os
import stat

from ptxlint.source import SourceText

_MAX_BYTES = 8 << 20
_SUFFIXES = (".py", ".pyw", ".cu", ".cuh", ".cpp", ".h")


class PythonSources:
    """Finds and keeps the source files of one run.

    `.file` names what the compiler saw: often a path of another machine, or one relative to a
    folder we do not know. A name is looked for as it is, then below the folders around the PTX
    file and below `roots`, by ever shorter suffixes of at least two components, and at last by
    its base name beside the PTX file.
    """

    __slots__ = ("_located", "_texts", "roots")

    def __init__(self, roots: tuple[str, ...] = ("",)) -> None:
        self.roots = roots
        self._located: dict[tuple[str, str], str] = {}
        self._texts: dict[str, SourceText | None] = {}

    def locate(self, name: str, ptx_path: str) -> str:
        """A readable path for a `.file` name, relative to here where it lies below; else `name`."""
        folder = os.path.dirname(ptx_path)
        key = (name, folder)
        if key not in self._located:
            found = self._find(name, folder) if name.endswith(_SUFFIXES) else ""
            self._located[key] = _shorten(found) if found else name
        return self._located[key]

    def _find(self, name: str, folder: str) -> str:
        if is_regular(name):
            return name
        parts = [part for part in name.replace("\\", "/").split("/") if part not in ("", ".")]
        if not parts or ".." in parts or "\0" in name:
            return ""
        folders = [*_ancestors(folder), *self.roots]
        for start in range(len(parts) - 1):
            tail = os.path.join(*parts[start:])
            for base in folders:
                if is_regular(os.path.join(base, tail)):
                    return os.path.join(base, tail)
        beside = os.path.join(folder, parts[-1])
        return beside if is_regular(beside) else ""

    def text(self, path: str) -> SourceText | None:
        """The text of a located file; None when it cannot be read."""
        if path not in self._texts:
            self._texts[path] = _read(path) if path.endswith(_SUFFIXES) else None
        return self._texts[path]

    def line(self, path: str, number: int) -> str:
        """One line of a file (from 1); "" when there is none to read."""
        text = self.text(path)
        return text.line(number) if text is not None else ""


def _ancestors(folder: str) -> list[str]:
    """The folder and all above it."""
    path = os.path.abspath(folder)
    out = [path]
    while (parent := os.path.dirname(path)) != path:
        out.append(parent)
        path = parent
    return out


def is_regular(path: str) -> bool:
    """True for a file that can be read without waiting for anybody."""
    # Names come from the checked file: a pipe or device named there must not block us.
    try:
        return stat.S_ISREG(os.stat(path).st_mode)
    except (OSError, ValueError):
        return False


def _shorten(path: str) -> str:
    """Relative to the working directory when the file lies below it."""
    absolute = os.path.abspath(path)
    here = os.getcwd()
    if absolute.startswith(here + os.sep):
        return absolute[len(here) + 1 :]
    return absolute


def _read(path: str) -> SourceText | None:
    if not is_regular(path):
        return None
    try:
        with open(path, "rb") as stream:
            data = stream.read(_MAX_BYTES + 1)
    except OSError:
        return None
    return SourceText(data.decode("utf-8", "replace"), path) if len(data) <= _MAX_BYTES else None
