"""A fault in the input itself, found while reading it."""

from __future__ import annotations

from typing import NamedTuple


class Problem(NamedTuple):
    """One fault in a PTX text.

    `code` groups faults: `syntax`, `undeclared`, `duplicate`, `label`, `operand`, `type`,
    `version`, `unknown-opcode`, `structure`, `cut`. `note` marks what is worth saying and is no
    error.
    """

    offset: int
    """Character offset into the text, 0-based."""
    message: str
    hint: str = ""
    code: str = "syntax"
    note: bool = False
