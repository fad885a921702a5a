"""The opcode table of SASS: which operands an instruction writes, and what it touches."""

from __future__ import annotations

from typing import Final, NamedTuple

from ptxlint.ir.opcodes import MemoryEffect, Opcode
from ptxlint.ir.sass.rows import TEXT

_TERMINATORS: Final = frozenset("branch indirect return exit trap".split())


class Token(NamedTuple):
    """One operand of a row: its letter, the rule of its width, and how often it may stand there."""

    role: str
    width: str
    is_optional: bool
    is_repeated: bool


class Row(NamedTuple):
    """One opcode: its row in the form that the IR knows, the memory it touches, its operands."""

    opcode: Opcode
    memory: MemoryEffect
    tokens: tuple[Token, ...]


_texts: dict[str, str] = {}
_rows: dict[str, Row] = {}


def lookup(name: str) -> Row:
    """The row of a base opcode such as `LDG`. An unknown one gets a conservative row: its first
    operand is written and read, and it may do anything to memory."""
    row = _rows.get(name)
    if row is None:
        if not _texts:
            _index()
        text = _texts.get(name)
        row = _rows[name] = _unknown(name) if text is None else _parsed(name, text)
    return row


def names() -> frozenset[str]:
    """All opcodes of the table."""
    if not _texts:
        _index()
    return frozenset(_texts)


def _index() -> None:
    for line in TEXT.splitlines():
        if line.strip():
            opcodes, _, rest = line.partition(":")
            for name in opcodes.split():
                _texts[name] = rest


def _parsed(name: str, text: str) -> Row:
    head, _, operands = text.partition(":")
    category, *words = head.split()
    reads: list[str] = []
    writes: list[str] = []
    for word in words:
        how, slash, space = word.partition("/")
        if slash:
            reads += [space] if "r" in how else []
            writes += [space] if "w" in how else []
    terminator = next((w for w in words if w in _TERMINATORS), "")
    opcode = Opcode(
        name,
        (),
        category,
        convergent="convergent" in words,
        terminator=terminator,
        is_call="call" in words,
        has_effect="effect" in words or bool(writes),
    )
    tokens = tuple(_token(word) for word in operands.split())
    return Row(opcode, MemoryEffect(tuple(reads), tuple(writes)), tokens)


def _token(word: str) -> Token:
    if word == "*":
        return Token("u", "1", True, True)
    mark = word[-1] if word[-1] in "?*" else ""
    word = word.rstrip("?*")
    return Token(word[0], word[1:] or "1", bool(mark), mark == "*")


def _unknown(name: str) -> Row:
    opcode = Opcode(
        name, (), "misc", convergent=True, has_effect=True, reads_memory=True,
        writes_memory=True, known=False,
    )  # fmt: skip
    return Row(opcode, MemoryEffect(("",), ("",)), (Token("x", "1", True, False),))


__all__ = ["Row", "Token", "lookup", "names"]
