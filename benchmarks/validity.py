"""How ptxlint's verdict on faulty PTX compares with a real ptxas: `python benchmarks/validity.py`.

Makes seeded mutants of small fixtures, asks both whether each is valid, and writes the table to
`validity.md`. What ptxlint alone rejects is a bug of ptxlint and makes the exit status 1; what
only ptxas rejects is counted by the kind of its message and listed.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from ptx_mutants import MUTATIONS, Mutant, mutants

from ptxlint.frontends.ptx import parse
from ptxlint.ir.verifier import verify

ROOT = Path(__file__).resolve().parents[1]
FIXTURES = ROOT / "fixtures"
SEED = 20260
COUNT = 1500
LARGEST = 16_000
"""Bytes of the largest fixture that is mutated."""

CRASH = "(ptxas itself crashed)"
Error = tuple[int, str]
"""Line (0 when ptxas names none) and message."""


class Assembler(NamedTuple):
    """One ptxas, its release, the newest PTX ISA it reads and the targets it knows."""

    path: str
    release: str
    newest: tuple[int, int]
    targets: frozenset[str]

    def errors(self, text: str, target: str, scratch: Path) -> list[Error]:
        """Its errors in order; empty when the module assembles."""
        source = scratch / "module.ptx"
        source.write_bytes(text.encode("utf-8", "surrogateescape"))
        command = [self.path, "-O0", "-arch", target, str(source), "-o", str(scratch / "out")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        if done.returncode == 0:
            return []
        if done.returncode < 0:
            return [(0, CRASH)]
        found = re.findall(r"(?:, line (\d+); )?(?:error|fatal) *: (.*)", done.stderr)
        errors = [(int(line or 0) or _line_in(words), words) for line, words in found]
        return [e for e in errors if "Ptx assembly aborted" not in e[1]] or [(0, done.stderr)]


def _line_in(message: str) -> int:
    match = re.search(r" on line (\d+)$", message)
    return int(match[1]) if match else 0


def find_assemblers() -> list[Assembler]:
    """Triton's assemblers, the newest first; empty without Triton."""
    spec = importlib.util.find_spec("triton")
    if spec is None or spec.origin is None:
        return []
    folder = Path(spec.origin).parent / "backends" / "nvidia" / "bin"
    found = [_assembler(str(path)) for path in sorted(folder.glob("ptxas*"))]
    return sorted(found, key=lambda a: a.newest, reverse=True)


def _assembler(path: str) -> Assembler:
    said = _output([path, "--help"])
    option = said[said.index("--gpu-name") :]
    targets = frozenset(re.findall(r"'(sm_\d+[af]?)'", option[: option.index("Default value")]))
    probe = [path, "--input-as-string", ".version 99.0\n.target sm_80\n", "-o", "/dev/null"]
    newest = re.search(r"current version is '(\d+)\.(\d+)'", _output(probe))
    release = re.search(r"release ([\d.]+)", _output([path, "--version"]))
    assert newest
    assert release
    return Assembler(path, release[1], (int(newest[1]), int(newest[2])), targets)


def _output(command: list[str]) -> str:
    done = subprocess.run(command, capture_output=True, text=True, timeout=60)
    return done.stdout + done.stderr


class Verdict(NamedTuple):
    """What both say of one mutant: errors of ptxas and problems of ptxlint, (line, message)."""

    mutant: Mutant
    ptxas: list[Error]
    ptxlint: list[Error]

    @property
    def outcome(self) -> str:
        """Who rejects it: `both`, `neither`, `ptxas` or `ptxlint`."""
        if self.ptxas:
            return "both" if self.ptxlint else "ptxas"
        return "ptxlint" if self.ptxlint else "neither"


class Judge:
    """Asks the assemblers that know a module's version and target."""

    def __init__(self, assemblers: list[Assembler], scratch: Path) -> None:
        self.assemblers = assemblers
        self.scratch = scratch

    def ptxas(self, text: str, usual: str) -> list[Error] | None:
        """Errors of the newest assembler; empty if any assembler takes the module.

        `usual` is the target to assemble for where the text names none that is known. None where no
        assembler knows both the target and the PTX version, or where it crashes.
        """
        stated = re.search(r"^\s*\.target\s+(sm_\w+)", text, re.MULTILINE)
        known = {t for a in self.assemblers for t in a.targets}
        target = stated[1] if stated and stated[1] in known else usual
        number = re.search(r"^\s*\.version\s+(\d+)\.(\d+)", text, re.MULTILINE)
        version = (int(number[1]), int(number[2])) if number else (0, 0)
        able = [a for a in self.assemblers if target in a.targets]
        if version <= max(a.newest for a in self.assemblers):
            able = [a for a in able if version <= a.newest]
        first: list[Error] | None = None
        for assembler in able:
            errors = assembler.errors(text, target, self.scratch)
            if not errors:
                return []
            if errors[0][1] != CRASH:
                first = first or errors
        return first

    def verdict(self, mutant: Mutant, usual: str) -> Verdict | None:
        """Both opinions on a mutant; None where ptxas has none."""
        errors = self.ptxas(mutant.text, usual)
        return None if errors is None else Verdict(mutant, errors, problems(mutant.text))


def problems(text: str) -> list[Error]:
    """What ptxlint reports beyond notes, in text order."""
    module = parse(text)
    found = [p for p in (*module.problems, *verify(module)) if not p.note]
    found.sort(key=lambda p: p.offset)
    return [(module.source.position(p.offset).line, p.message) for p in found]


def target_of(text: str) -> str:
    """The target that a fixture is to be assembled for."""
    stated = re.match(r"// ptxas -arch=(\w+)", text)
    own = re.search(r"^\s*\.target\s+(\w+)", text, re.MULTILINE)
    return stated[1] if stated else own[1] if own else "sm_80"


def fixture_texts() -> dict[str, str]:
    """The small valid fixtures by name: of each compiler's, those of the first architecture."""
    texts: dict[str, str] = {}
    for pattern in ("syntax/*.ptx", "ptx/sm_*/*.ptx", "ptx-nvcc/*/*.ptx", "ptx-llvm/*/*.ptx"):
        for path in sorted(FIXTURES.glob(pattern)):
            if path.stat().st_size <= LARGEST:
                with path.open(encoding="utf-8", newline="") as file:
                    texts[str(path.relative_to(FIXTURES))] = file.read()
    return texts


def judged(count: int, seed: int, judge: Judge) -> Iterator[Verdict]:
    """Verdicts on `count` mutants, less those that no ptxas can judge; the fixtures themselves must
    be fine by both."""
    texts = fixture_texts()
    fine: dict[str, bool] = {}
    for mutant in mutants(texts, count, seed):
        base = texts[mutant.base]
        if mutant.base not in fine:
            fine[mutant.base] = not problems(base) and judge.ptxas(base, target_of(base)) == []
        verdict = judge.verdict(mutant, target_of(base)) if fine[mutant.base] else None
        if verdict is not None:
            yield verdict


# The report -----------------------------------------------------------------------------------
def message_class(message: str) -> str:
    """A message of ptxas without its names and numbers."""
    text = re.sub(r"'[^']*'", "'…'", message)
    return re.sub(r"\b(0x)?\d[\w.]*\b", "N", text).strip()


def changed_line(verdict: Verdict, bases: dict[str, str]) -> str:
    """The line that a mutant changed, as it reads now."""
    new, old = verdict.mutant.text.split("\n"), bases[verdict.mutant.base].split("\n")
    for at, line in enumerate(new):
        if at >= len(old) or line != old[at]:
            return line.strip() or f"(without `{old[at].strip()}`)"
    return "(end of the file lost)"


def _share(part: int, whole: int) -> str:
    return f"{part} ({100 * part / whole:.1f} %)" if whole else "0"


def _code(text: str) -> str:
    ticks = "``" if "`" in text else "`"
    pad = " " if "`" in text else ""
    return f"{ticks}{pad}{text[:110].replace('|', chr(92) + '|')}{pad}{ticks}"


def _table(head: Iterable[str], rows: Iterable[Iterable[object]]) -> str:
    lines = [" | ".join(head)]
    lines.append(" | ".join("---" for _ in lines[0].split(" | ")))
    lines += [" | ".join(map(str, row)) for row in rows]
    return "\n".join(f"| {line} |" for line in lines)


def line_agreement(verdicts: list[Verdict]) -> tuple[int, int, int, int]:
    """Of the mutants that both reject and where ptxas names a line: how many there are, where the
    first lines are the same, where ptxas's first line is one of ptxlint's, where one is near it
    (the line before or after)."""
    placed = [v for v in verdicts if v.outcome == "both" and v.ptxas[0][0]]
    first = sum(v.ptxas[0][0] == v.ptxlint[0][0] for v in placed)
    among = sum(v.ptxas[0][0] in {line for line, _ in v.ptxlint} for v in placed)
    near = sum(any(abs(v.ptxas[0][0] - line) <= 1 for line, _ in v.ptxlint) for v in placed)
    return len(placed), first, among, near


def report(verdicts: list[Verdict], assemblers: list[Assembler], seed: int) -> str:
    """The page."""
    bases = fixture_texts()
    total = len(verdicts)
    counts = Counter(v.outcome for v in verdicts)
    placed, first, among, near = line_agreement(verdicts)
    said = counts["both"] + counts["ptxas"]
    names = " and ".join(f"ptxas {a.release}" for a in assemblers)
    parts = [
        "# Validity: ptxlint against ptxas",
        f"Written by `python benchmarks/validity.py`: {total} mutants (seed {seed}) of "
        f"{len({v.mutant.base for v in verdicts})} fixtures up to {LARGEST // 1000} kB, "
        f"{len(MUTATIONS)} kinds of mutation, one a mutant. Oracle: {names} at `-O0`; a mutant is "
        "valid when one of them that knows its version and target assembles it. Mutants that no "
        "ptxas at hand can judge (an old target with a new version, a crash) are left out. ptxlint "
        "rejects what has a problem that is no note.",
        _table(
            ("verdict", "mutants"),
            (
                ("both reject", _share(counts["both"], total)),
                ("both accept", _share(counts["neither"], total)),
                ("only ptxas rejects", _share(counts["ptxas"], total)),
                ("only ptxlint rejects (each a bug of ptxlint)", _share(counts["ptxlint"], total)),
            ),
        ),
        f"Of the {said} mutants that ptxas rejects, ptxlint rejects "
        f"{_share(counts['both'], said)}.",
        f"Lines: of {placed} mutants that both reject and for which ptxas names a line, the "
        f"first lines are equal in {_share(first, placed)}; ptxas's first line is one of "
        f"ptxlint's in {_share(among, placed)}, at most one line off in {_share(near, placed)}.",
    ]
    parts += ["## By mutation", _by_mutation(verdicts)]
    parts += ["## What only ptxas rejects", _only_ptxas(verdicts, bases)]
    if counts["ptxlint"]:
        parts += ["## What only ptxlint rejects", _only_ptxlint(verdicts, bases)]
    return "\n\n".join(parts) + "\n"


def _by_mutation(verdicts: list[Verdict]) -> str:
    rows = []
    for name in sorted(MUTATIONS):
        counts = Counter(v.outcome for v in verdicts if v.mutant.mutation == name)
        if counts:
            rows.append((name, *(counts[k] for k in ("both", "neither", "ptxas", "ptxlint"))))
    return _table(("mutation", "both reject", "both accept", "only ptxas", "only ptxlint"), rows)


def _only_ptxas(verdicts: list[Verdict], bases: dict[str, str]) -> str:
    groups: dict[str, list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.outcome == "ptxas":
            groups[message_class(verdict.ptxas[0][1])].append(verdict)
    rows = [
        (len(found), text.replace("|", "\\|"), _code(changed_line(found[0], bases)))
        for text, found in sorted(groups.items(), key=lambda g: (-len(g[1]), g[0]))
    ]
    return _table(("mutants", "message of ptxas", "an example: the changed line"), rows)


def _only_ptxlint(verdicts: list[Verdict], bases: dict[str, str]) -> str:
    rows = [
        (v.mutant.base, v.mutant.mutation, v.ptxlint[0][1], _code(changed_line(v, bases)))
        for v in verdicts
        if v.outcome == "ptxlint"
    ]
    return _table(("fixture", "mutation", "message of ptxlint", "the changed line"), rows)


def main() -> int:
    """Measure and write the page."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--mutants", type=int, default=COUNT, help="how many (default %(default)s)")
    parser.add_argument("--seed", type=int, default=SEED, help="default %(default)s")
    parser.add_argument("--out", type=Path, default=Path(__file__).with_suffix(".md"))
    options = parser.parse_args()
    assemblers = find_assemblers()
    if not assemblers:
        print("no ptxas: install ptxlint[triton]", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as scratch:
        judge = Judge(assemblers, Path(scratch))
        verdicts = list(judged(options.mutants, options.seed, judge))
    page = report(verdicts, assemblers, options.seed)
    options.out.write_text(page, encoding="utf-8")
    print(page)
    return int(any(v.outcome == "ptxlint" for v in verdicts))


if __name__ == "__main__":
    sys.exit(main())
