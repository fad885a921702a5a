"""The page of the results: `python benchmarks/soundness/table.py`.

Reads results.json, which run.py wrote on a machine with a GPU, and libraries.json, and writes
docs/soundness.md. With `--library NAME RESULTS` it first takes the results of a library's bundle
into libraries.json, as counts; run.py was called with `--seeds "as it is"` for these.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import Counter, defaultdict
from pathlib import Path
from typing import Any

from compare import BAD

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).resolve().parent / "results.json"
LIBRARIES = RESULTS.parent / "libraries.json"
PAGE = ROOT / "docs" / "soundness.md"
WORDS = ("refuted", "open", "clean")
INTRO = """\
# Soundness

What ptxlint says of kernels under launches, held against a GPU. Kernels of `fixtures/kernels` are
launched with tensors that end exactly where the kernel stops; then each launch is changed in one
place: a tensor ends earlier or begins later, the grid has one program more, a size or a stride is
larger. Whether a change does harm is not written down anywhere: ptxlint and the GPU are asked.

On the GPU each storage has an allocation of exactly its size. Each case runs with a record of the
least and the greatest address in front of each access to global memory, and some run as they are
under `compute-sanitizer --tool memcheck`, with 1 MiB kept free behind each allocation. Addresses
decide, since no memory checker sees what lands in another allocation: a case is *wrong* if an
access went outside of its tensor's storage or was misaligned, if the kernel ended in a fault, or if
the device refused the launch.

{cases:,} cases of {kernels} kernels, built by Triton {triton} for {arch}, on one {device};
{wrong} kernels have cases that are wrong. `python benchmarks/soundness/table.py` writes this page
from [results.json](../benchmarks/soundness/results.json), which
[run.py](../benchmarks/soundness/run.py) writes on a machine with a GPU.
"""


def plain(kind: str) -> str:
    """A change without the names of arguments and the numbers."""
    kind = re.sub(r"^\S+ (shorter|starts)", r"a tensor \1", kind)
    kind = re.sub(r"^one more along .", "one program more along an axis", kind)
    return re.sub(r"^\S+ \+ \d+$", "a size or a stride larger", kind)


def pairs(cases: list[dict[str, Any]], title: str, key: Any) -> list[str]:
    """A table: for each key how many cases are wrong or right, by what ptxlint says."""
    counts: dict[str, Counter[tuple[bool, str]]] = defaultdict(Counter)
    for case in cases:
        counts[key(case)][case["gpu"] in BAD, case["said"]] += 1
    lines = [
        f"| {title} | wrong: refuted | open | clean | right: clean | open | refuted |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    total: Counter[tuple[bool, str]] = Counter()
    for name, found in sorted(counts.items()):
        lines.append(row(name, found))
        total += found
    return [*lines, row("**all**", total)]


def row(name: str, found: Counter[tuple[bool, str]]) -> str:
    """One line of such a table."""
    wrong = [found[True, word] for word in WORDS]
    right = [found[False, word] for word in reversed(WORDS)]
    return f"| {name} | " + " | ".join(map(str, (*wrong, *right))) + " |"


def accesses(cases: list[dict[str, Any]]) -> list[str]:
    """Each access by itself: the word on it, and where it went."""
    counts: Counter[tuple[str, str]] = Counter()
    for case in cases:
        for pair, count in case["accesses"].items():
            word, place = pair.split(", ")
            counts[word, place] += count
    went = ("inside", "outside", "misaligned", "not run", "unknown")
    lines = [
        "| ptxlint | " + " | ".join(went) + " |",
        "|---|" + "---:|" * len(went),
    ]
    for word, said in WORDS_OF_ACCESSES.items():
        if any(counts[word, w] for w in went):
            cells = " | ".join(f"{counts[word, w]:,}" for w in went)
            lines.append(f"| {said} | {cells} |")
    return lines


WORDS_OF_ACCESSES = {
    "proved": "proved: inside, aligned",
    "never": "proved: takes place in no thread",
    "open": "open",
    "shown": "not proved, by the witness of another access",
    "refuted above": "refuted: beyond the end",
    "refuted below": "refuted: before the start",
    "refuted misaligned": "refuted: misaligned",
    "refuted overflow": "refuted: the index wraps",
}


def checker(cases: list[dict[str, Any]]) -> list[str]:
    """The memory checker beside the addresses."""
    counts = Counter((c["gpu"] in BAD, c.get("checker")) for c in cases if c.get("checker"))
    seen, unseen = counts[True, "fault"] + counts[True, "refused"], counts[True, "clean"]
    false = counts[False, "fault"] + counts[False, "refused"]
    failed = sum(count for (_, word), count in counts.items() if word == "failed")
    kernels = {c["kernel"] for c in cases if c.get("checker") in ("fault", "refused")}
    lines = [
        f"It was asked in {sum(counts.values()):,} cases and stops at {seen:,} of",
        f"{seen + unseen:,} that are wrong by their addresses ({len(kernels)} kernels), and at",
        f"{false} of {false + counts[False, 'clean']:,} that are right"
        + (f"; {failed} did not end." if failed else "."),
    ]
    names = sorted(c["case"] for c in cases if c["gpu"] in BAD and c.get("checker") == "clean")
    if names:
        lines += ["What it does not see:", "", *(f"- `{name}`" for name in names)]
    return lines


def summary(name: str, results: Path) -> dict[str, Any]:
    """What is kept of a library's results."""
    data = json.loads(results.read_text(encoding="utf-8"))
    cases = data["cases"]
    total: Counter[str] = Counter()
    for case in cases:
        total.update(case["accesses"])
    told = Counter(t for c in cases if c["gpu"] == "failed" for t in c.get("told", ()))
    return {
        "name": name,
        "about": data["about"],
        "kernels": len({c["case"].split()[0] for c in cases}),
        "launches": len(cases),
        "words": Counter(f"{c['said']}, {c['gpu']}" for c in cases),
        "accesses": dict(sorted(total.items())),
        "told": {re.sub(r"^\S+_param_\d+ ", "", text): count for text, count in told.items()},
        "disagreements": [f"{c['case']}: {d}" for c in cases for d in c.get("disagreements", ())],
    }


def libraries(summaries: list[dict[str, Any]]) -> list[str]:
    """A line for each library."""
    lines = [
        "| library | builds | launches | not judged | proved: inside | outside | refuted: outside "
        "| inside | open |",
        "|---|" + "---:|" * 8,
    ]
    for one in summaries:
        counts: Counter[tuple[str, str]] = Counter()
        for pair, count in one["accesses"].items():
            word, went = pair.split(", ")
            word = "refuted" if word.startswith(("refuted", "shown")) else word
            counts[word, "outside" if went == "misaligned" else went] += count
        failed = sum(v for k, v in one["words"].items() if k.endswith(("failed", "fault")))
        took_place = [counts["open", w] for w in ("inside", "outside")]
        cells = (one["kernels"], one["launches"], failed, counts["proved", "inside"],
                 counts["proved", "outside"] + counts["never", "inside"]
                 + counts["never", "outside"], counts["refuted", "outside"],
                 counts["refuted", "inside"], sum(took_place))  # fmt: skip
        lines.append(f"| {one['name']} | " + " | ".join(f"{cell:,}" for cell in cells) + " |")
    return lines


LIBRARY_TEXT = """\
## Kernels of libraries

Unmodified kernels under the launches that were captured from them, as they are, with records of
addresses: each access counts once for a launch, if it took place. Memory that no host tells of is
zeros there, so that what depends on loaded numbers may go elsewhere than in real runs; such
accesses are open. *Not judged* are launches with tensor maps, which the runner does not make, with
illegal addresses made of such numbers, and with instructions that the driver's own assembler,
older than the compiler, gets wrong: these run as the compiler assembled them.
"""


def page() -> str:
    """The page."""
    data = json.loads(RESULTS.read_text(encoding="utf-8"))
    cases, about = data["cases"], data["about"]
    wrong = {c["kernel"] for c in cases if c["gpu"] in BAD}
    intro = INTRO.format(
        cases=len(cases),
        kernels=len({c["kernel"] for c in cases}),
        wrong=len(wrong),
        device=about["device"],
        **about["bundle"],
    )
    summaries = json.loads(LIBRARIES.read_text(encoding="utf-8"))
    disagreements = [f"- `{c['case']}`: {d}" for c in cases for d in c.get("disagreements", ())]
    disagreements += [f"- {s['name']}: `{d}`" for s in summaries for d in s["disagreements"]]
    lines = [
        intro,
        "## By what was changed",
        "",
        *pairs(cases, "change", lambda case: plain(case["seed"])),
        "",
        "What is open depends on numbers that the kernel loads, or lies in a table of the module.",
        "",
        "## Each access by itself",
        "",
        "Where a fault took the record along, it is not known where accesses went.",
        "",
        *accesses(cases),
        "",
        "## The memory checker",
        "",
        *checker(cases),
        "",
        LIBRARY_TEXT,
        *libraries(summaries),
        "",
        "## Disagreements",
        "",
        *(disagreements or ["None."]),
        "",
        "## By kernel",
        "",
        *pairs(cases, "kernel", lambda case: f"`{case['kernel']}`"),
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Write the page, after the results of a library were taken in."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--library", nargs=2, metavar=("NAME", "RESULTS"))
    given = options.parse_args()
    if given.library:
        name, path = given.library
        known = json.loads(LIBRARIES.read_text("utf-8")) if LIBRARIES.exists() else []
        others = [one for one in known if one["name"] != name]
        every = sorted([*others, summary(name, Path(path))], key=lambda one: str(one["name"]))
        text = ",\n".join(json.dumps(one) for one in every)
        LIBRARIES.write_text(f"[\n{text}\n]\n", encoding="utf-8")
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
