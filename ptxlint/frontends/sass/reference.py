"""The parser of single SASS instructions: Lark over `grammar/sass.lark`."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ptxlint.frontends import grammars
from ptxlint.ir.sass.shape import Node

if TYPE_CHECKING:
    from lark import Token, Tree


class SassSyntaxError(ValueError):
    """An instruction that does not follow the grammar; the text says what is wrong."""


class Parsed(NamedTuple):
    """An instruction: guard (`@`, `@!` or none), mnemonic, operands over slots, the slots' texts in
    the order of the text, and the note behind it."""

    guard: str
    mnemonic: str
    nodes: tuple[Node, ...]
    slots: tuple[str, ...]
    note: str


def parse(text: str) -> Parsed:
    """One instruction without its semicolon. Raises `SassSyntaxError`."""
    from lark.exceptions import LarkError

    try:
        tree = _parser().parse(text)
    except LarkError as error:
        first = str(error).split("\n", 1)[0]
        raise SassSyntaxError(first) from None
    return _Reading().instruction(tree)


@cache
def _parser() -> Any:
    from lark import Lark

    grammar = grammars.read("sass.lark").decode()
    return Lark(
        grammar, parser="lalr", lexer="contextual", start="instruction", maybe_placeholders=False
    )


class _Reading:
    """Numbers the slots of one instruction while its tree is walked, left to right."""

    def __init__(self) -> None:
        self._slots: list[str] = []

    def instruction(self, tree: Tree[Token]) -> Parsed:
        guard, mnemonic, note = "", "", ""
        nodes: list[Node] = []
        for child in tree.children:
            if isinstance(child, str):
                mnemonic = str(child)
            elif child.data == "guard":
                guard = "@!" if len(child.children) > 1 else "@"
                self._slots.append(str(child.children[-1]))
            elif child.data == "note":
                note = str(child.children[0])
            else:
                nodes.append(self._node(child))
        return Parsed(guard, mnemonic, tuple(nodes), tuple(self._slots), note)

    def _slot(self, text: str) -> int:
        self._slots.append(text)
        return len(self._slots) - 1

    def _node(self, tree: Any) -> Node:
        kind, children = tree.data, tree.children
        if kind == "register":
            return ("r", self._slot(str(children[0])), ())
        if kind == "constant":
            return ("z", str(children[0]), ())
        if kind == "word":
            text = str(children[0])
            return ("z", text, ()) if text.startswith("SR_") else ("w", text)
        if kind in ("number", "relocated"):
            return ("n", self._slot(str(children[0])))
        if kind == "target":
            return ("l", self._slot(str(children[0])[2:-1]))
        if kind == "selected":
            return _with_suffix(self._node(children[0]), str(children[1])[1:])
        if kind == "list":
            return ("v", tuple(self._node(child) for child in children))
        if kind == "address":
            return ("a", "", (self._sum(children[0]),))
        if kind == "prefixed":
            return ("a", str(children[0]), tuple(self._sum(child) for child in children[1:]))
        sign = {"negated": "!", "absolute": "|"}.get(kind) or str(children[0])
        return ("u", sign, self._node(children[-1]))

    def _sum(self, tree: Any) -> tuple[Node, ...]:
        return tuple(self._node(child) for child in tree.children)


def _with_suffix(node: Node, word: str) -> Node:
    """A node with a word behind it; that of an absolute value belongs to the register."""
    if node[0] in "rz":
        return (node[0], node[1], (*node[2], word))
    if node[0] == "u":
        return ("u", node[1], _with_suffix(node[2], word))
    if node[0] == "w":
        return ("w", f"{node[1]}.{word}")
    # Behind a descriptor it says how its matrix lies: no value of its own.
    return node


__all__ = ["Parsed", "SassSyntaxError", "parse"]
