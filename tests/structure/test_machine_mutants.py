"""Machine code with one thing changed is never called the same, and what changed is named."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest

from ptxlint.frontends.ptx import parse as parse_ptx
from ptxlint.frontends.sass import parse
from ptxlint.frontends.toolkit import ToolError, assemble, disassemble, find_assembler
from ptxlint.structure.alignment import align
from ptxlint.structure.canonical import Kernel

FIXTURES = Path(__file__).resolve().parents[2] / "fixtures"
LARGEST = 40_000
SAMPLE = (FIXTURES / "ptx" / "sm_80" / "argmax.ptx",)
LINE = re.compile(r"^(\s*/\*[0-9a-f]{4,}\*/\s+)((?!.*NOP)[^;]+?)(\s*;.*)$", re.MULTILINE)
Change = Callable[[re.Match[str], Random], str]


def _negated(found: re.Match[str], random: Random) -> str:
    text = found.group()
    return text.replace("@!", "@") if "!" in text else text.replace("@", "@!")


WORDS = {
    "GE": "GT", "LT": "LE", "EQ": "NE", "AND": "OR", "RZ": "RM", "FTZ": "SAT", "64": "128",
    "CONSTANT": "STRONG", "EX2": "LG2", "RCP": "RSQ", "BFLY": "DOWN", "X": "Y", "WIDE": "HI",
    "U32": "S32", "EF": "EL",
}  # fmt: skip
CHANGES: dict[str, tuple[str, Change]] = {
    # What is written may be dead; what is read is not renamed by one instruction.
    "register": (r"(?<=, )R\d+(?!\w)", lambda m, r: f"R{r.randrange(60)}"),
    "no register": (r"(?<=, )R\d+\b(?![.\w])", lambda m, r: "RZ"),
    "predicate": (r"(?<=, )P[0-6]\b", lambda m, r: f"P{r.randrange(7)}"),
    "negated predicate": (r"(?<=, )P[0-6]\b", lambda m, r: f"!{m.group()}"),
    "guard": (r"^@!?P\d", _negated),
    "no guard": (r"^@!?U?P\d ", lambda m, r: ""),
    "sign": (r"(?<=, )R\d+", lambda m, r: f"-{m.group()}"),
    "number": (r"0x[0-9a-f]+", lambda m, r: hex(int(m.group(), 16) + r.choice((1, 4, 16)))),
    "float": (r"(?<=, )\d+\.\d+", lambda m, r: repr(float(m.group()) * 1.0000001)),
    "label": (r"\.L_x_\d+", lambda m, r: f".L_x_{r.randrange(9)}"),
    "special register": (r"SR_\w+(?:\.\w)?", lambda m, r: r.choice(("SR_TID.Y", "SR_LANEID"))),
    "word": (rf"(?<=\.)(?:{'|'.join(WORDS)})\b", lambda m, r: WORDS[m.group()]),
}


def changed(text: str, name: str, random: Random) -> str:
    """The listing with one instruction changed; the listing itself where there is none."""
    pattern, change = CHANGES[name]
    lines = list(LINE.finditer(text))
    for line in random.sample(lines, len(lines)):
        found = list(re.finditer(pattern, line[2]))
        if found:
            at = random.choice(found)
            start, end = line.start(2) + at.start(), line.start(2) + at.end()
            return text[:start] + change(at, random) + text[end:]
    return text


def moved(text: str, random: Random) -> str:
    """Two neighbours in the other order, or one instruction less."""
    lines = list(LINE.finditer(text))
    at = random.randrange(len(lines) - 1)
    first, second = lines[at], lines[at + 1]
    if random.random() < 0.5 or first[2] == second[2]:
        return text[: first.start()] + text[first.end() :]
    between = text[first.end(2) : second.start(2)]
    return text[: first.start(2)] + second[2] + between + first[2] + text[second.end(2) :]


def kernel(text: str) -> Kernel | None:
    module = parse(text)
    return None if module.problems else Kernel(module.kernels()[0], module)


def hold(paths: tuple[Path, ...], each: int) -> Counter[str]:
    met: Counter[str] = Counter()
    for path in paths:
        source = parse_ptx(path.read_text())
        if len(source.kernels()) != 1:
            continue
        try:
            cubin = assemble(source.source.text, source.arch, find_assembler(source.version)).cubin
        except ToolError as error:
            pytest.skip(str(error))
        text, random = disassemble(cubin, "-c", "-g"), Random(path.name)
        old = kernel(text)
        assert old is not None
        mutants = [(n, changed(text, n, random)) for n in CHANGES for _ in range(each)]
        mutants += [("order", moved(text, random)) for _ in range(each)]
        for name, other in mutants:
            new = kernel(other)
            if other == text or new is None:
                continue
            met[name] += 1
            found = align(old, new)
            assert found.kind in ("constants", "structural"), f"{path}: {name} is {found.kind}"
            told = (*found.changed, *found.removed, *found.added, *found.rewired, *found.declared)
            assert told, f"{path}: {name} is {found.kind}, and nothing is named"
    print(f"{met.total():,} listings: {dict(sorted(met.items()))}")
    return met


def test_a_sample_of_listings() -> None:
    assert hold(SAMPLE, each=2).total() > 20


@pytest.mark.slow
def test_listings_of_fixtures() -> None:
    paths = [p for p in sorted(FIXTURES.glob("ptx*/*/*.ptx")) if p.stat().st_size < LARGEST]
    met = hold(tuple(Random(3).sample(paths, 80)), each=4)
    assert set(CHANGES) <= set(met)
    assert met.total() > 2_500
