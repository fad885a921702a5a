"""What rules say of a kernel: the worst of each one's verdicts."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final, NamedTuple

from ptxlint.engine.analyse import find_arch
from ptxlint.engine.registry import default_registry
from ptxlint.facts import Facts, KernelMetadata
from ptxlint.ir.function import Function
from ptxlint.ir.module import Module
from ptxlint.rulekit import Hit, Verdict

_WORST: Final = ("refuted", "open", "proved")


class Said(NamedTuple):
    """What one rule says of a kernel: its worst verdict, all verdicts and all hits."""

    status: str
    verdicts: tuple[Verdict, ...]
    hits: tuple[Hit, ...]


def said(
    module: Module, kernel: Function, metadata: KernelMetadata | None, rules: Iterable[str]
) -> dict[str, Said]:
    """By rule, of those named, what it says; a rule that gives no verdict is not there.

    Raises `KeyError` for a rule that there is not.
    """
    facts = Facts(module, kernel, find_arch(module.arch), metadata)
    out: dict[str, Said] = {}
    for name in rules:
        found = list(default_registry().rules[name]().check(kernel, facts))
        verdicts = tuple(one for one in found if isinstance(one, Verdict))
        if verdicts:
            status = min((one.status for one in verdicts), key=_WORST.index)
            out[name] = Said(status, verdicts, tuple(o for o in found if isinstance(o, Hit)))
    return out


__all__ = ["Said", "said"]
