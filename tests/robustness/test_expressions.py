"""No regular expression on the way from a text to findings takes more than linear time."""

from __future__ import annotations

import importlib
import inspect
import re
from time import process_time

import pytest

from ptxlint.frontends.ptx import reference

MODULES = [
    "ptxlint.frontends.ptx.builder",
    "ptxlint.frontends.ptx.memo",
    "ptxlint.frontends.ptx.template",
    "ptxlint.frontends.discovery",
    "ptxlint.frontends.target_filter",
    "ptxlint.frontends.triton_cache",
    "ptxlint.engine.fingerprint",
    "ptxlint.engine.python_source",
    "ptxlint.engine.suppression",
    "ptxlint.ir.declaration_check",
    "ptxlint.ir.requirements",
    "ptxlint.ir.verifier",
    "ptxlint.ir.verifier_module",
    "ptxlint.reporters.text",
    "ptxlint.reporters.wording",
]
SIZE = 1_000
GROWTH = 4
TOLERATED = 0.005
"""Seconds of processor time that need no second look."""
HEADS = [
    "", ".version ", ".target a", ".file 1 ", ".loc 1 2 3", ".section .d {", ".section .d {.b8 1",
    ".visible ", ".attribute(", "(", ".pragma ", ".entry", ".a 1", "L", "@", "mov", '"', "/*", "//",
    "0x", "1", "%r", "{", "# ptxlint: ignore[", "// ptxlint: ignore[A1] ", "// begin",
]  # fmt: skip
RUNS = [
    " ", "\n", "\t\n", "a", "A1", "1", "0", "%", "$", "_", ".", ".a", ".1", ":", "::a", "::", ";",
    "{", "}", "{}", "{;", "(", ")", "()", "(a", "[", "[]", ",", ", ", ",1", ", a", "@", "@ ", "@!",
    "!", '"', '\\"', "\\", '"a" ', "/", "/ ", "//", "// \n", "/*", "/**/", "*", "*/", "#", "# \n",
    "-", "- ", "+", "+1", " + a", "a ", "a:", "a: ", ".b8 1\n", ".visible ", ".attribute(a) ",
    "function_name a", "é", "\0", "sm_80, ", "1.", "1e", "0f", "ptxlint: ", "]", "A1,", " ,",
]  # fmt: skip


def expressions() -> list[object]:
    """All compiled expressions of the modules, and the terminals of the grammar.

    With each goes whether the module looks for it everywhere in a text or at one place only.
    """
    found: dict[re.Pattern[str], tuple[str, bool]] = {}
    for name in MODULES:
        module = importlib.import_module(name)
        source = inspect.getsource(module)
        for attribute, value in vars(module).items():
            used = re.search(rf"(?<!\w){attribute}\.(search|find|split|sub)", source)
            values = value.values() if isinstance(value, dict) else [value]
            for one in values:
                if isinstance(one, re.Pattern) and isinstance(one.pattern, str):
                    label = f"{name.rpartition('.')[2]}.{attribute}"
                    found[one] = (label, used is not None or found.get(one, ("", False))[1])
    terminals = re.findall(r"/(.+)/s?$", reference.grammar_text(), re.MULTILINE)
    for number, terminal in enumerate(terminals):
        found.setdefault(re.compile(terminal, re.DOTALL), (f"grammar-{number}", False))
    return [pytest.param(p, everywhere, id=name) for p, (name, everywhere) in found.items()]


def seconds(pattern: re.Pattern[str], everywhere: bool, text: str) -> float:
    """Processor time of looking for a pattern at the beginning, or everywhere."""
    start = process_time()
    if everywhere:
        pattern.sub("", text)
    else:
        pattern.match(text)
        pattern.fullmatch(text)
    return process_time() - start


@pytest.mark.parametrize(("pattern", "everywhere"), expressions())
def test_time_grows_with_the_text(pattern: re.Pattern[str], everywhere: bool) -> None:
    worst = []
    for head in HEADS:
        for run in RUNS:
            short, long = (head + run * (n // len(run)) + "\x01" for n in (SIZE, GROWTH * SIZE))
            taken = seconds(pattern, everywhere, long)
            if taken > TOLERATED:
                shorter = min(seconds(pattern, everywhere, short) for _ in range(5))
                taken = min(seconds(pattern, everywhere, long) for _ in range(3))
                if taken > TOLERATED and taken > 2 * GROWTH * shorter:
                    worst.append((head, run, taken, shorter))
    assert worst == []


def test_there_is_something_to_test() -> None:
    assert len(expressions()) > 30
