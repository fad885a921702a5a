"""Filtering by target architecture."""

from __future__ import annotations

import re
from collections.abc import Iterable

_NAME = re.compile(r"(?:sm_?|compute_?)?(\d{1,3})([af]?)", re.IGNORECASE)
_TARGET = re.compile(r"^[ \t]*\.target[ \t]+([^\n/]*)", re.MULTILINE)
_HEAD = 1 << 16


class TargetNameError(ValueError):
    """A word that is no architecture name; the text says what one looks like."""


def parse_targets(words: Iterable[str]) -> tuple[str, ...]:
    """`sm_90,90a,compute_80` as canonical names, each once. Raises `TargetNameError`."""
    out: dict[str, None] = {}
    for word in words:
        for part in word.split(","):
            if not part.strip():
                continue
            match = _NAME.fullmatch(part.strip())
            if match is None:
                raise TargetNameError(
                    f"{part.strip()!r} is no architecture; write for example sm_90"
                )
            out[f"sm_{match[1]}{match[2].lower()}"] = None
    return tuple(out)


def wanted(target: str, targets: tuple[str, ...]) -> bool:
    """True if a module's target is among those asked for.

    `sm_90` asks for `sm_90`, `sm_90a` and `sm_90f`, `sm_90a` for itself only. A module without a
    target is wanted: it has a fault that must be seen.
    """
    match = _NAME.fullmatch(target)
    if match is None or not targets:
        return True
    return f"sm_{match[1]}{match[2]}" in targets or f"sm_{match[1]}" in targets


def peek_target(text: str) -> str:
    """The architecture that a text's `.target` names, without parsing it; "" when unsure."""
    match = _TARGET.search(text, 0, _HEAD)
    if match is None:
        return ""
    words = [word.strip().rstrip(";") for word in match[1].split(",")]
    return next((w for w in words if _NAME.fullmatch(w) and w.startswith(("sm", "comp"))), "")
