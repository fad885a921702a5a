"""Statement templates: what all statements of one spelling have in common.

A statement's *shape* is its text with names, numbers and strings taken out; those are its slots,
in text order. Everything else (opcode, modifiers, punctuation, component selectors) is part of
the shape, so whatever a template holds is also in the memo's key.
"""

from __future__ import annotations

import re
from typing import Any, Final, NamedTuple, TypeAlias

Payload: TypeAlias = tuple[Any, ...]

NAME: Final = r"(?:[A-Za-z][A-Za-z0-9_$]*+|[_$%][A-Za-z0-9_$]++)"
WORD: Final = NAME + r"(?:\.[A-Za-z0-9_]++(?:::[A-Za-z0-9_]++)*+)*+"
NUMBER: Final = (
    r"(?:0[fF][0-9A-Fa-f]{8}|0[dD][0-9A-Fa-f]{16}|0[xX][0-9A-Fa-f]+U?|0[bB][01]+U?"
    r"|[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+"
    r"|[0-9]+U?)(?![A-Za-z0-9_$.])"
)
STRING: Final = r'"(?:[^"\\]|\\.)*+"'
GAP: Final = r"(?:[ \t\r\n\f\v\x1a]++|//[^\n]*+|/\*(?:[^*]|\*(?!/))*+\*/|\#[^\n]*+)*+"
"""White space and comments. These fragments repeat terminals of the grammar; a test holds them
equal."""

_W: Final = "[A-Za-z0-9_$]"
SLOT: Final = re.compile(
    rf"""([%_$A-Za-z0-9."](?<![A-Za-z0-9_$.%:].)(?:
        (?<=[%_$]){_W}++
      | (?<=[0-9])[0-9]*+(?!{_W}|\.)
      | (?<=[A-Za-z]){_W}*+
      | (?: (?<=0)(?:[fF][0-9A-Fa-f]{{8}}|[dD][0-9A-Fa-f]{{16}}|[xX][0-9A-Fa-f]+U?|[bB][01]+U?)
          | (?<=[0-9])[0-9]*+(?:\.[0-9]*+(?:[eE][+-]?[0-9]++)?|[eE][+-]?[0-9]++|U)
          | (?<=\.)[0-9]++(?:[eE][+-]?[0-9]++)?
        )(?!{_W}|\.)
      | (?<=")(?:[^"\\]|\\.)*+(?:"|\Z)
    ))""",
    re.DOTALL | re.VERBOSE,
)
"""Finds the slots of a statement, opcode and guard removed.

It starts with a character class so that the regex engine can leap to candidates (measured: half
the time of the plain alternation); the look-behinds then say what kind of slot it is.
"""


LONG_LIST: Final = 24
"""A plain list of at least so many numbers is one pattern, `("r", first, count)`."""


class Template:
    """One statement form. `kind` names the grammar rule; `payload` refers to slots by number.

    For `instruction` the payload is (guard, mnemonic, extra modifiers, operand patterns), with
    patterns as in `ptxlint.ir.pattern`. `shapes` caches the resolved shapes by slot kinds.
    """

    __slots__ = ("kind", "payload", "shapes")

    def __init__(self, kind: str, payload: Payload) -> None:
        self.kind = kind
        self.payload = payload
        self.shapes: dict[tuple[type, ...], Any] = {}

    def __repr__(self) -> str:
        return f"Template({self.kind}, {self.payload})"


class Statement(NamedTuple):
    """A template with its slots filled. `offsets` are the slots' offsets in the text."""

    template: Template
    slots: tuple[str, ...]
    offsets: tuple[int, ...]
    offset: int


def freeze(value: Any) -> Any:
    """Lists of a JSON value as tuples, all the way down."""
    if isinstance(value, list):
        return tuple(freeze(item) for item in value)
    return value
