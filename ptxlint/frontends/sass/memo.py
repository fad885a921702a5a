"""Instructions by their form: Lark reads each form once, what differs are the slots.

The key of a form is its text with the numbers of registers, numbers and targets taken out.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from ptxlint.frontends.sass import reference
from ptxlint.ir.sass.shape import Built, build

SLOT: Final = re.compile(
    r"`\([^)`\n]*\)"
    r"|[0-9]+@[a-z]+\((?:[^()\n]|\([^()\n]*\))*\)"
    r"|(?<![\w.$`])(?:UR|R|UP|P|B)[0-9]+(?!\w)"
    r"|(?<=[\s,])[-+](?:INF|QNAN|SNAN)(?!\w)"
    r"|(?<![\w.$])(?:0x[0-9a-fA-F]+|[0-9]+(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?)(?!\w)"
)
_LETTERS: Final = re.compile(r"(?:UR|R|UP|P|B)(?=[0-9])")
_BY_MASK: Final = re.compile(r"(?:@!?\w+\s+)?(?:P2R|R2P|UP2UR|UR2UP|TEX|TLD4?|TMML|TXD|TXQ)\b")


class Form(NamedTuple):
    """What all instructions of one form have in common; `note` stands behind some."""

    built: Built
    note: str


class Instruction(NamedTuple):
    """An instruction: its form, and what fills the slots."""

    form: Form
    slots: tuple[str, ...]


_forms: dict[str, Form] = {}


def parse(text: str, uses_memo: bool = True) -> Instruction:
    """One instruction. Raises `SassSyntaxError`; without the memo Lark reads it in any case."""
    is_by_mask = _BY_MASK.match(text) is not None
    if not uses_memo or is_by_mask:
        key = text
    else:
        key = SLOT.sub(_abstract, text)
        form = _forms.get(key)
        if form is not None:
            return Instruction(form, tuple(map(_plain, SLOT.findall(text))))
    parsed = reference.parse(text)
    kinds = tuple(_kind(slot) for slot in parsed.slots)
    mask = parsed.slots[-1] if is_by_mask else ""
    # Without a mask it takes all of them.
    masked = int(mask, 0) if mask[:1].isdigit() else 0x7F
    is_local = any(node[0] == "l" and parsed.slots[node[1]][0] == "." for node in parsed.nodes)
    built = build(parsed.guard, parsed.mnemonic, parsed.nodes, kinds, masked, is_local)
    form = Form(built, parsed.note)
    # A form goes into the table only if both ways find the same slots; a note is of one alone.
    found = tuple(map(_plain, SLOT.findall(text)))
    if uses_memo and not is_by_mask and not parsed.note and found == parsed.slots:
        _forms[key] = form
    return Instruction(form, parsed.slots)


def _abstract(found: re.Match[str]) -> str:
    text = found.group()
    # A call of a label of its own function is a branch, so that the first letter counts.
    return text[:3] if text[0] == "`" else _kind(text) + "#"


def _kind(text: str) -> str:
    letters = _LETTERS.match(text)
    return letters.group() if letters else ""


def _plain(text: str) -> str:
    return text[2:-1] if text[0] == "`" else text


__all__ = ["Form", "Instruction", "parse"]
