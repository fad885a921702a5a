"""A kernel's Python source, read and never run: its parameters, and the masks of its accesses."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Final, TypeAlias

from ptxlint.engine.python_source import PythonSources

_LONGEST_FILE: Final = 1 << 20
"""Characters; a longer file is not parsed."""
_LONGEST_REMEMBERED: Final = 50_000
_LONGEST_MASK: Final = 80
_MASK_AT: Final = {"load": 1, "store": 2}
"""Where the mask of an access stands when it is given by position."""
_Def: TypeAlias = "ast.FunctionDef"


class PythonKernels:
    """The functions of the Python files of one run, by file."""

    __slots__ = ("_files", "_sources")

    def __init__(self, sources: PythonSources) -> None:
        self._sources = sources
        self._files: dict[str, list[PythonKernel]] = {}

    def at(self, path: str, line: int) -> PythonKernel | None:
        """The innermost function around a line of a file; None if there is none to read."""
        found = None
        for kernel in self._of(path):
            if kernel.first <= line <= kernel.last:
                found = kernel
        return found

    def _of(self, path: str) -> list[PythonKernel]:
        if path not in self._files:
            text = self._sources.text(path) if path.endswith((".py", ".pyw")) else None
            self._files[path] = [] if text is None else _functions_of(text.text)
        return self._files[path]


def _functions_of(text: str) -> list[PythonKernel]:
    """All functions of a file, an inner one behind the one around it."""
    return _remembered(text) if len(text) <= _LONGEST_REMEMBERED else _functions(text)


@lru_cache(maxsize=32)
def _remembered(text: str) -> list[PythonKernel]:
    """The same for a text of which another run may ask again."""
    return _functions(text)


def _functions(text: str) -> list[PythonKernel]:
    if len(text) > _LONGEST_FILE:
        return []
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    lines = text.splitlines(keepends=True)
    found = [PythonKernel(n, lines) for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)]
    found.sort(key=lambda kernel: (kernel.first, -kernel.last))
    return found


class PythonKernel:
    """One function of a Python file. `first` and `last` are its lines, decorators included."""

    __slots__ = ("_all", "_lines", "_node", "first", "last", "name")

    def __init__(self, node: _Def, lines: list[str]) -> None:
        self._node = node
        self._all: list[ast.AST] | None = None
        self._lines = lines
        self.name = node.name
        self.first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
        self.last = node.end_lineno or node.lineno

    def _nodes(self) -> list[ast.AST]:
        """Everything that the function is made of."""
        if self._all is None:
            self._all = list(ast.walk(self._node))
        return self._all

    def starts_at(self, line: int) -> bool:
        """True for a line of the decorators or the one of `def`."""
        return self.first <= line <= self._node.lineno

    def parameters(self) -> list[str] | None:
        """The parameters that are no constants, in order; None if they cannot be told."""
        given = self._node.args
        if given.vararg or given.kwarg:
            return None
        every = [*given.posonlyargs, *given.args, *given.kwonlyargs]
        return [a.arg for a in every if not _is_constant(a.annotation)]

    def has_compound(self, names: list[str]) -> bool:
        """True if one of these parameters is used as a tuple: it is several ones when compiled."""
        wanted = frozenset(names)
        for node in self._nodes():
            inner: ast.expr | None = None
            if isinstance(node, ast.Subscript | ast.Starred):
                inner = node.value
            elif isinstance(node, ast.For):
                inner = node.iter
            elif isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Tuple):
                inner = node.value
            if isinstance(inner, ast.Name) and inner.id in wanted:
                return True
        return False

    def numbers(self) -> set[str]:
        """Names that are certainly no addresses: multiplied, divided, compared or counted to."""
        out: set[str] = set()
        for node in self._nodes():
            operands: list[ast.expr] = []
            if isinstance(node, ast.BinOp) and not isinstance(node.op, ast.Add | ast.Sub):
                operands = [node.left, node.right]
            elif isinstance(node, ast.Compare) and not _compares_objects(node):
                operands = [node.left, *node.comparators]
            elif isinstance(node, ast.Call) and _called(node) in ("range", "cdiv", "minimum"):
                operands = node.args
            out.update(o.id for o in operands if isinstance(o, ast.Name))
        return out - self._assigned()

    def pointers(self) -> set[str]:
        """Names that are certainly addresses: alone in the address of an access, or with what is
        certainly a number."""
        out: set[str] = set()
        for node in self._nodes():
            if not isinstance(node, ast.Call) or not node.args or not _is_access(node):
                continue
            if _called(node) in ("load", "store") or _called(node).startswith("atomic_"):
                terms = list(_terms(node.args[0]))
                names = [t.id for t in terms if isinstance(t, ast.Name)]
                if len(terms) == len(names) == 1:
                    out.update(names)
        return out - self._assigned()

    def _assigned(self) -> set[str]:
        """Names that the body gives a value, so that they may stand for something else."""
        return {
            n.id for n in self._nodes() if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)
        }

    def mask(self, line: int, column: int, kind: str) -> str:
        """The mask of the access at a place (column from 1), in the source's words; "" if there is
        none, or it cannot be told.

        `kind` is `load`, `store` or `atomic`. Older compilers name the place of an argument: there
        the access is taken that is the only one of its kind on that line. A name that is given
        its value just once, before, is replaced by what it was given.
        """
        calls = [
            node
            for node in self._nodes()
            if isinstance(node, ast.Call)
            and _is_access(node)
            and _called(node).startswith(kind)
            and node.lineno <= line <= (node.end_lineno or node.lineno)
        ]
        exact = [n for n in calls if n.lineno == line and n.col_offset == column - 1]
        if len(exact or calls) != 1:
            return ""
        mask = _mask_of((exact or calls)[0])
        return "" if mask is None else self._words(mask)

    def _words(self, mask: ast.expr) -> str:
        text = self._quote(mask)
        if isinstance(mask, ast.Name):
            given = self._value_of(mask)
            longer = self._quote(given) if given is not None else ""
            if longer:
                return longer
        return text

    def _value_of(self, name: ast.Name) -> ast.expr | None:
        """What a name was given, if that happened once, outside of loops that it is used in."""
        stores = [
            node
            for node in self._nodes()
            if isinstance(node, ast.Name) and node.id == name.id and isinstance(node.ctx, ast.Store)
        ]
        if len(stores) != 1 or name.id in (self.parameters() or ()):
            return None
        for node in self._nodes():
            if isinstance(node, ast.Assign) and node.targets == stores:
                return node.value if node.lineno < name.lineno else None
        return None

    def _quote(self, node: ast.expr) -> str:
        """The source of an expression on one line; "" if it is long."""
        end_line, end = node.end_lineno, node.end_col_offset
        if end_line is None or end is None:
            return ""
        rows = [line.encode() for line in self._lines[node.lineno - 1 : end_line]]
        if not rows:
            return ""
        rows[-1] = rows[-1][:end]
        rows[0] = rows[0][node.col_offset :]
        text = " ".join(b" ".join(rows).decode("utf-8", "replace").split())
        return text if len(text) <= _LONGEST_MASK and "#" not in text and "`" not in text else ""


def _is_constant(annotation: ast.expr | None) -> bool:
    """True for `tl.constexpr`, also as a string."""
    if isinstance(annotation, ast.Attribute):
        return annotation.attr == "constexpr"
    if isinstance(annotation, ast.Name):
        return annotation.id == "constexpr"
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        return annotation.value.rpartition(".")[2].strip() == "constexpr"
    return False


def _compares_objects(node: ast.Compare) -> bool:
    """True for `is None` and `==`, which say nothing of what is compared."""
    return any(isinstance(o, ast.Is | ast.IsNot | ast.Eq | ast.NotEq) for o in node.ops)


def _called(node: ast.Call) -> str:
    """The last word of what is called."""
    if isinstance(node.func, ast.Attribute):
        return node.func.attr
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _is_access(node: ast.Call) -> bool:
    name = _called(node)
    return isinstance(node.func, ast.Attribute) and (name in _MASK_AT or name.startswith("atomic_"))


def _mask_of(node: ast.Call) -> ast.expr | None:
    for keyword in node.keywords:
        if keyword.arg == "mask":
            return keyword.value
    at = _MASK_AT.get(_called(node))
    return node.args[at] if at is not None and len(node.args) > at else None


def _terms(node: ast.expr) -> Iterator[ast.expr]:
    """The terms of a sum, products and numbers left out."""
    work = [node]
    while work:
        current = work.pop()
        if isinstance(current, ast.BinOp) and isinstance(current.op, ast.Add | ast.Sub):
            work += [current.left, current.right]
        elif not isinstance(current, ast.BinOp | ast.Constant):
            yield current
