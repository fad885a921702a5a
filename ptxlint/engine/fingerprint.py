"""Fingerprints: what makes a finding the same one in the next build.

A fingerprint covers the rule, the kernel's name, the rule's key (or its message with register and
label names blanked) and a running number among equals in text order. It holds no line number, no
register name, no file name, no architecture and nothing of the debug information, so it survives
renumbered registers, moved lines, another path and a build with or without line information.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ptxlint.ir.function import Function

_REGISTER = re.compile(r"%[A-Za-z_$][A-Za-z_]*\d+")
_LABEL = re.compile(r"\$L__\w+|\bBB\d+_\d+\b")
LENGTH: Final = 16
"""Hexadecimal digits of a fingerprint: 64 bits."""


def normalise(message: str) -> str:
    """The message without the numbers of registers and labels."""
    if "%" in message:
        message = _REGISTER.sub(lambda match: match[0].rstrip("0123456789"), message)
    return _LABEL.sub("$L", message)


def by_position(text: str, function: Function) -> str:
    """The text with parameters called by their number, as compilers call them."""
    name = function.name
    for at, parameter in enumerate(function.params):
        if parameter.name in text and parameter.name != f"{name}_param_{at}":
            word = rf"(?<![\w$%]){re.escape(parameter.name)}(?![\w$])"
            text = re.sub(word, f"{name}_param_{at}".replace("\\", r"\\"), text)
    return text


class Fingerprints:
    """Numbers the findings of one file and hashes them."""

    __slots__ = ("_seen",)

    def __init__(self) -> None:
        self._seen: dict[tuple[str, str, str], int] = {}

    def next(self, rule: str, kernel: str, key: str) -> str:
        """The fingerprint of the next finding with these traits, in text order."""
        traits = (rule, kernel, normalise(key))
        ordinal = self._seen.get(traits, 0)
        self._seen[traits] = ordinal + 1
        return digest(*traits, str(ordinal))


def digest(*parts: str) -> str:
    """A short, stable hash of some texts."""
    # hashlib loads OpenSSL first, 3 ms; this is the same function.
    try:
        from _blake2 import blake2b
    except ImportError:
        from hashlib import blake2b

    text = "\0".join(parts).encode("utf-8", "surrogateescape")
    return blake2b(text, digest_size=LENGTH // 2).hexdigest()
