"""Python sources of Triton kernels with other names, other lines and another file name.

Every argument, every local variable, every function and every nested name of a source gets a new
name; blank lines and comments are put between statements. What the kernels compute stays.
"""

from __future__ import annotations

import ast
from random import Random
from typing import NamedTuple


class Rewritten(NamedTuple):
    """A source, and the new names of its functions and of each function's arguments."""

    text: str
    functions: dict[str, str]
    arguments: dict[str, dict[str, str]]


def rewritten(text: str, random: Random) -> Rewritten:
    """A source in other words."""
    tree = ast.parse(text)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    names = _Names(random, {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)})
    renamed = {fn.name: names.new() for fn in functions}
    arguments: dict[str, dict[str, str]] = {}
    for fn in functions:
        arguments[fn.name] = {a.arg: names.new() for a in _all_arguments(fn)}
    for fn in functions:
        stored = {
            node.id
            for node in ast.walk(fn)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        local = arguments[fn.name] | {
            name: names.new() for name in sorted(stored - set(arguments[fn.name]))
        }
        _Renaming(local, renamed, arguments).visit(fn)
    # Functions may also be called, or named, outside of functions.
    for node in tree.body:
        if node not in functions:
            _Renaming({}, renamed, arguments).visit(node)
    return Rewritten(_spaced(ast.unparse(tree), random), renamed, arguments)


def _all_arguments(fn: ast.FunctionDef) -> list[ast.arg]:
    return [*fn.args.posonlyargs, *fn.args.args, *fn.args.kwonlyargs]


class _Names:
    """Makes names that nothing has yet."""

    def __init__(self, random: Random, taken: set[str]) -> None:
        self._random = random
        self._taken = taken

    def new(self) -> str:
        """One more."""
        while True:
            length = self._random.randint(1, 12)
            name = "".join(
                self._random.choice("abcdefghijklmnopqrstuvwxyz_") for _ in range(length)
            )
            name = f"{name.strip('_') or 'v'}{self._random.randint(0, 999)}"
            if name not in self._taken:
                self._taken.add(name)
                return name


class _Renaming(ast.NodeTransformer):
    def __init__(
        self,
        local: dict[str, str],
        functions: dict[str, str],
        arguments: dict[str, dict[str, str]],
    ) -> None:
        self._local = local
        self._functions = functions
        self._arguments = arguments

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.name = self._functions.get(node.name, node.name)
        self.generic_visit(node)
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        node.arg = self._local.get(node.arg, node.arg)
        self.generic_visit(node)
        return node

    def visit_Name(self, node: ast.Name) -> ast.AST:
        node.id = self._local.get(node.id, self._functions.get(node.id, node.id))
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if isinstance(node.func, ast.Name) and node.func.id in self._arguments:
            theirs = self._arguments[node.func.id]
            for keyword in node.keywords:
                keyword.arg = theirs.get(keyword.arg or "", keyword.arg)
        self.generic_visit(node)
        return node


def _spaced(text: str, random: Random) -> str:
    """A source with blank lines and comments between its lines, none inside of strings."""
    inside = {
        line
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for line in range(node.lineno, node.end_lineno or node.lineno)
    }
    out = ["# another file" for _ in range(random.randint(0, 30))]
    for number, line in enumerate(text.splitlines(), 1):
        out.append(line)
        if number not in inside:
            indent = " " * (len(line) - len(line.lstrip()))
            out += [random.choice(("", f"{indent}# moved"))] * random.choice((0, 0, 1, 3))
    return "\n".join(out) + "\n"


__all__ = ["Rewritten", "rewritten"]
