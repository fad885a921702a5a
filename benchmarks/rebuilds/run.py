"""Rebuilds of the fixture kernels that must not be called changed, by `ptxlint diff`.

    python benchmarks/rebuilds/run.py [--arch ARCH...] [--only NAME...] [--every N] [--rounds N]

The Python source of each kernel gets other names, other lines and another file name, Triton
compiles it again, and both builds are assembled and compared as PTX and as machine code. Every pair
must be identical or renamed only at both levels; exit status 1 if one is not.
"""

from __future__ import annotations

import argparse
import linecache
import sys
import tempfile
import types
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any, Final, NamedTuple

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(Path(__file__).parent), str(ROOT / "fixtures")]

import compile as fixture_compiler  # noqa: E402
import variants  # noqa: E402
from rewriting import rewritten  # noqa: E402

from ptxlint.comparison.report import compare  # noqa: E402
from ptxlint.frontends.ptx import parse  # noqa: E402
from ptxlint.frontends.toolkit import assemble, find_assembler  # noqa: E402


class Rebuilt(NamedTuple):
    """A build of a variant and one of its rewritten source: how they compare at each level; `why`
    says what was not compiled."""

    name: str
    arch: str
    ptx: str
    machine: str
    why: str = ""


def renamed(variant: Any, random: Random) -> Any:
    """A variant of a rewritten source, which is loaded under another path."""
    path = ROOT / "fixtures" / "kernels" / f"{variant.module}.py"
    source = rewritten(path.read_text(encoding="utf-8"), random)
    number = random.randint(0, 10**6)
    module = f"rebuilt{number}.{variant.module}_again"
    virtual = f"elsewhere/{number}/{variant.module}_again.py"
    linecache.cache[virtual] = (
        len(source.text), None, source.text.splitlines(keepends=True), virtual,
    )  # fmt: skip
    loaded = types.ModuleType(module)
    loaded.__file__ = virtual
    exec(compile(source.text, virtual, "exec"), loaded.__dict__)
    sys.modules[f"ptxlint_fixture_kernels.{module}"] = loaded
    arguments = source.arguments[variant.kernel]
    return variant._replace(
        module=module,
        kernel=source.functions[variant.kernel],
        args={arguments[name]: kind for name, kind in variant.args.items()},
        constexprs={arguments[name]: value for name, value in variant.constexprs.items()},
    )


def rebuild(triton: Any, variant: Any, arch: str, random: Random, scratch: Path) -> Rebuilt:
    """Compile a variant again from a rewritten source, and compare."""
    path = ROOT / "fixtures" / "ptx" / arch / f"{variant.name}.ptx"
    if not path.exists():
        return Rebuilt(variant.name, arch, "", "", "no fixture")
    again, _ = fixture_compiler.build(triton, renamed(variant, random), arch)
    sides = []
    for side, text in (("old", path.read_text(encoding="utf-8")), ("new", again)):
        target = scratch / side / f"{variant.name}.ptx"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text, encoding="utf-8")
        module = parse(text)
        done = assemble(text, module.arch, find_assembler(module.version))
        target.with_suffix(".cubin").write_bytes(done.cubin)
        sides.append(str(target))
    (difference,) = compare([sides[0]], [sides[1]], ptxas=None).differences
    # Machine code of the same bytes is not compared.
    machine = "identical" if difference.machine is None else difference.machine.kind
    return Rebuilt(variant.name, arch, difference.kind, machine)


def rebuilds(archs: list[str], only: list[str], every: int, rounds: int) -> Iterator[Rebuilt]:
    """All variants, or those named, for some architectures, each in so many rewritings."""
    chosen = [v for v in variants.VARIANTS if not only or v.name in only][::every]
    with tempfile.TemporaryDirectory() as scratch:
        fixture_compiler.prepare_environment(f"{scratch}/cache")
        triton = fixture_compiler.import_triton()
        for arch in archs:
            for at, variant in enumerate(chosen):
                for round_ in range(rounds):
                    random = Random(f"{variant.name} {arch} {round_}")
                    try:
                        folder = Path(scratch, arch, str(at), str(round_))
                        yield rebuild(triton, variant, arch, random, folder)
                    except fixture_compiler.RejectedError as error:
                        yield Rebuilt(variant.name, arch, "", "", str(error))


def main() -> int:
    """Rebuild and count; 1 if a pair is called changed."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--arch", nargs="+", default=["sm_80", "sm_90"])
    parser.add_argument("--only", nargs="+", default=[], metavar="NAME", help="these kernels alone")
    parser.add_argument("--every", type=int, default=1, help="take each so many-th kernel alone")
    parser.add_argument("--rounds", type=int, default=1, help="rewritings of each kernel")
    args = parser.parse_args()
    counts: Counter[str] = Counter()
    for found in rebuilds(args.arch, args.only, args.every, args.rounds):
        words = found.why or f"PTX {found.ptx}, machine code {found.machine}"
        counts[f"{found.arch}: {words}"] += 1
        print(found.name, found.arch, words, file=sys.stderr, flush=True)
    for words, count in sorted(counts.items()):
        print(count, words)
    return int(any("structural" in words or "constants" in words for words in counts))


if __name__ == "__main__":
    sys.exit(main())
