"""What `nvdisasm -json` prints, as a listing.

It has neither labels nor lines of the source; targets are addresses. The predicates that `P2R`
takes stand where a guard would, and where `LDGSTS` writes to stands last, without a comma before it
(measured, nvdisasm 13.1).
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

_BYTES: Final = 16
"""The length of an instruction on sm_70 and later."""
_ALL: Final = ("PR", "UPR")
_FUNCTION: Final = re.compile(r"(?!(?:UR|R|UP|P)[0-9]+$|U?[RP][ZT]$)[A-Za-z_$][\w$]*")
_COPY: Final = re.compile(r"((?:desc\[[^\]]*\])?\[[^\]]*\])(?:,(!?\w+))?(\[[^\]]*\])")


class JsonFormError(ValueError):
    """A text that is no output of `nvdisasm -json`."""


def is_json_form(text: str) -> bool:
    """True if a text looks like that output."""
    head = text[:4096].lstrip()
    return head.startswith("[") and '"SchemaVersion"' in head


def as_listing(text: str) -> str:
    """The listing that the output stands for. Raises `JsonFormError`."""
    try:
        head, functions = json.loads(text)
        version = head["SM"]["version"]
        lines = [f".target sm_{version['major']}{version['minor']}"]
        for function in functions:
            lines += _function(function)
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise JsonFormError(f"this is no output of nvdisasm -json: {error}") from None
    return "\n".join(lines) + "\n"


def _function(function: dict[str, Any]) -> Iterator[str]:
    yield f"Function : {function['function-name']}"
    for number, instruction in enumerate(function["sass-instructions"]):
        yield f"/*{_BYTES * number:04x}*/ {_text(instruction)} ;"


def _text(instruction: dict[str, Any]) -> str:
    guard = instruction.get("predicate", "")
    written = instruction.get("operands", "")
    if instruction["opcode"].startswith("LDGSTS") and (found := _COPY.fullmatch(written)):
        written = ",".join(part for part in (found[3], found[1], found[2]) if part)
    operands = [part for part in written.split(",") if part]
    if guard in _ALL:
        operands.insert(0 if instruction["opcode"].startswith(("R2P", "UR2UP")) else 1, guard)
        guard = ""
    if instruction["opcode"].startswith("CALL"):
        operands = [f"`({part})" if _FUNCTION.fullmatch(part) else part for part in operands]
    text = f"{guard} {instruction['opcode']} {', '.join(operands)}"
    return text.strip()


__all__ = ["JsonFormError", "as_listing", "is_json_form"]
