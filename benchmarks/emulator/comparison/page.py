"""docs/emulator-gpu.md, out of what was compared."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from textwrap import wrap
from typing import Any, Final

from .store import MOST

Records = list[dict[str, Any]]

_BOTH: Final = 2
"""What both sides together may be off, in parts of the bound of one."""
_INTRODUCTION: Final = """# The emulator against a GPU

What the emulator computes is held against one {device}, bit by bit, on the same bytes: launches
of [fixtures](#fixtures), launches [captured](#captured-kernels) from libraries, and [single
instructions](#instructions). The cubins that run there are assembled from the very PTX that the
emulator reads. NaN counts as NaN whatever its bits.

{summary}

{sampled}

`python benchmarks/emulator/against_gpu.py` makes this page; `--bundle DIR` takes the launches of
any bundle that [`ptxlint capture`](bundle.md) wrote. `tests/dynamic/emulator/test_on_gpu.py` runs
a sample on a machine that has such a GPU.
"""
_FIXTURES: Final = """
## Fixtures

All builds for sm_90, and those for sm_80 with `mma.sync`, assembled for sm_90. Where the
semantics of all instructions are exact the outputs have the same bits; approximate instructions,
and sums inside of `mma` and `wgmma`, may differ by what the references allow (*bound*, see
[emulator](emulator.md)): each by at most the bound, so both by at most twice of it. Of sums of
8-bit floats Hopper keeps fewer bits than float32 has; order and rounding of these sums are left
open (PTX ISA, "wgmma.mma_async"). There the GPU itself misses the reference, by up to three times
the bound. Buggy twins miss the reference on both sides alike. Tensor maps of
the host are made by the driver.
"""
_CAPTURED: Final = """
## Captured kernels

Launches of kernels of conch-triton-kernels 1.3, fla-core 0.6.0, gemlite 0.6.0.post2, liger-kernel
0.8.5, moe-ops 0.1.0 and sageattention 1.0.6, compiled by Triton 3.9 and captured without a GPU by
`benchmarks/audit/run_cases.py`: all launches with at most 64 CTAs and 4 MiB of tensors, up to four
of a kernel, of different builds first; of fla those that the first operators of
`benchmarks/audit/cases_fla.py` make, 24 kernels. Nothing else chose them, and what was left out
afterwards is counted below the table. None of their code is in this repository. Inputs are random
numbers from a seed, integers lie in what the launch promises or are zeros. There is no reference,
so how far apart two right devices may be is found by trial: the kernel runs six times in the
emulator with every approximate instruction, matrix product and `add` that may be fused off by as
much as PTX allows, always toward zero, always away from it, and at random. *Allowed* is how far
an output then comes to lie from itself, and one unit in its last place; *apart* how far the GPU
is from the emulator; both in parts of the tensor's largest number. *Beyond* counts elements more
than four times as far apart as those runs bring that very element: few runs miss a rare step of
an intermediate number of 16 bits, or a choice.

Left out are launches in which these inputs lead out of a tensor, make programs write to the same
places, or leave nothing to write. Where atomics on global memory add or choose places, their
order is the device's and no bound is held (marked *).
"""
_INSTRUCTIONS: Final = """
## Instructions

Each instruction is a kernel of its own on 4,096 to 65,536 lanes: all bit patterns of 16-bit
operands, else the values next to which something changes (zeros, the smallest and largest
numbers, infinities, NaN, ends of ranges) with each other, and random ones.
"""
_ODD: Final = {
    "cvt.rna.satfinite.tf32.f32": "all of them NaN, of which the device takes a unit off its bits",
}
"""What is known of instructions that differ."""
_APPROXIMATE: Final = """
Approximate ones, over operands for which the manual names a bound: how far the results are apart
in units of the last place, which are many where the bound is absolute and the result next to zero,
and in parts of the bound; and how far each is from the exact result. NaN and infinities are the
same.
"""


def summary(found: dict[str, Any]) -> list[str]:
    """What came out, a line each."""
    ran = [r for r in found["fixtures"] if "outputs" in r]
    same = sum(_is_alike(r) for r in ran)
    lines = [
        f"{len({(r['arch'], r['build']) for r in ran})} builds of fixtures, {len(ran)} launches: "
        f"{same} alike in every bit. {_outside(ran)}"
    ]
    captured = [r for r in found["captured"] if "outputs" in r]
    if captured:
        names = {(r["library"], r["kernel"]) for r in captured}
        held = [r for r in captured if not r["atomics"]]
        within = sum(_is_within(r) for r in held)
        lines.append(
            f"{len(names)} kernels of {len({r['library'] for r in captured})} libraries, "
            f"{len(captured)} launches: {sum(map(_is_alike, captured))} alike in every bit; "
            f"{within:,} of {len(held):,} without atomics are within what is allowed."
        )
    exact = [r for r in found["instructions"] if "bound" not in r and "left_out" not in r]
    equal = sum(not r["differ"] for r in exact)
    rest = [r for r in found["instructions"] if "bound" in r]
    lines.append(
        f"{len(exact)} exact instructions, {equal} of them alike in every lane; {len(rest)} "
        "approximate ones."
    )
    return lines


def text(found: dict[str, Any]) -> str:
    """The whole page."""
    told = "\n".join(f"- {line}" for line in summary(found))
    parts = [
        _INTRODUCTION.format(device=found["device"], summary=told, sampled=_sampled(found)),
        _FIXTURES,
        *_fixtures(found["fixtures"]),
    ]
    if found["captured"]:
        parts += [_CAPTURED, *_captured(found["captured"])]
    parts += [_INSTRUCTIONS, *_exact(found["instructions"]), _APPROXIMATE,
              *_approximate(found["instructions"])]  # fmt: skip
    return "\n".join(part.strip("\n") if part.startswith("|") else part for part in parts) + "\n"


def _outside(ran: Records) -> str:
    """Which builds are further apart than both sides may be."""
    outside = {
        r["build"] for r in ran for o in r["outputs"].values() if o["share_of_bound"] > _BOTH
    }
    if not outside:
        return "The others are within the bounds."
    return f"The others are within the bounds but for {', '.join(sorted(outside))}."


def _is_alike(record: dict[str, Any]) -> bool:
    return all(map(_has_same_bits, record["outputs"].values()))


def _has_same_bits(output: dict[str, Any]) -> bool:
    """True if no element that was looked at differs, and the checksum over all is the same where
    not all were looked at."""
    if output.get("differ", 1):
        return False
    return not _is_sampled(output) or bool(output.get("equal", True))


def _is_sampled(output: dict[str, Any]) -> bool:
    return int(output.get("elements", 0)) > int(output.get("seen", 0))


def _sampled(found: dict[str, Any]) -> str:
    """What is said of tensors of which not all elements were compared."""
    tensors = {
        part: [o for r in found[part] for o in r.get("outputs", {}).values()]
        for part in ("fixtures", "captured")
    }
    counts = {part: (sum(map(_is_sampled, all_)), len(all_)) for part, all_ in tensors.items()}
    told = " and ".join(
        f"{some:,} of {every:,} tensors of {part}" for part, (some, every) in counts.items() if some
    )
    if not told:
        return "All elements are compared."
    text = (
        f"Of tensors of more than {MOST:,} elements, every so many-th is compared and counted, at "
        f"most {MOST:,} ({told} launches); of instructions on more lanes likewise."
    )
    known = [part for part, all_ in tensors.items() if any("equal" in o for o in all_)]
    if known:
        text += (
            f" Of {' and '.join(known)} launches a tensor is *alike in every bit* only if a "
            "checksum over all its elements is, too."
        )
    return "\n".join(wrap(text, 98))


def _is_within(record: dict[str, Any]) -> bool:
    return all("apart" in o and o["apart"] <= o["allowed"] for o in record["outputs"].values())


def _grouped(records: Records, key: Callable[[dict[str, Any]], Any]) -> Iterable[tuple[Any, Any]]:
    found: dict[Any, Records] = {}
    for record in records:
        found.setdefault(key(record), []).append(record)
    return sorted(found.items())


def _fixtures(records: Records) -> list[str]:
    lines = [
        "| build | for | launches | alike in every bit | elements that differ "
        "| most apart, of the bound | emulator to reference | GPU to reference |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    for (name, arch), group in _grouped(records, lambda r: (r["build"], r["arch"])):
        ran = [r for r in group if "outputs" in r]
        if not ran:
            lines.append(f"| {name} | {arch} | 0 | {group[0]['left_out']} | | | | |")
            continue
        outputs = [o for r in ran for o in r["outputs"].values()]
        shares = [max(o[key] for o in outputs) for key in ("share_of_bound", "emulator", "gpu")]
        told = " | ".join(_number(share) for share in shares)
        lines.append(
            f"| {name} | {arch} | {len(ran)} | {sum(map(_is_alike, ran))} | {_differing(outputs)} "
            f"| {told} |"
        )
    return lines


def _differing(outputs: Records) -> str:
    differ, total = (sum(o[key] for o in outputs) for key in ("differ", "seen"))
    return f"{differ:,} of {total:,}"


def _number(value: float) -> str:
    return f"{value:,.3f}" if value < 1e6 else f"{value:.1e}"


def _share(output: dict[str, Any]) -> float:
    if not output["apart"]:
        return 0.0
    return output["apart"] / output["allowed"] if output["allowed"] else float("inf")


def _size(value: float) -> str:
    return f"{value:.1e}" if value else "0"


def _captured(records: Records) -> list[str]:
    lines = [
        "| library | kernel | launches | alike in every bit | elements that differ | apart "
        "| allowed | beyond |",
        "|---|---|---:|---:|---:|---:|---:|---:|",
    ]
    left: dict[str, int] = {}
    for (library, kernel), group in _grouped(records, lambda r: (r["library"], r["kernel"])):
        ran = [r for r in group if "outputs" in r]
        for record in group:
            if "left_out" in record:
                left[record["left_out"]] = left.get(record["left_out"], 0) + 1
        if not ran:
            continue
        outputs = [o for r in ran for o in r["outputs"].values() if "apart" in o]
        worst = max(outputs, key=_share)
        mark = "*" if any(r["atomics"] for r in ran) else ""
        beyond = sum(o["beyond"] for o in outputs)
        lines.append(
            f"| {library} | `{kernel}`{mark} | {len(ran)} | {sum(map(_is_alike, ran))} "
            f"| {_differing(outputs)} | {_size(worst['apart'])} | {_size(worst['allowed'])} "
            f"| {beyond:,} |"
        )
    if left:
        reasons = "; ".join(f"{reason}: {count}" for reason, count in sorted(left.items()))
        lines.append(f"\nLaunches left out: {reasons}.")
    return lines


def _exact(records: Records) -> list[str]:
    lines = [
        "| instructions | number | alike in every lane | but for the bits of NaN | not run |",
        "|---|---:|---:|---:|---:|",
    ]
    odd = []
    for group, all_of_it in _grouped(records, lambda r: r["group"]):
        ran = [r for r in all_of_it if "left_out" not in r and "bound" not in r]
        if not ran:
            continue
        same = [r for r in ran if not r["differ"] and not r["other_nan"]]
        nan = [r for r in ran if not r["differ"] and r["other_nan"]]
        lines.append(
            f"| {group} | {len(all_of_it)} | {len(same)} | {len(nan)} "
            f"| {len(all_of_it) - len(ran)} |"
        )
        for record in all_of_it:
            if "left_out" in record:
                odd.append(f"`{record['name']}` is not run")
            elif record["differ"]:
                differ, seen = record["differ"], record["seen"]
                known = _ODD.get(record["name"], "")
                told = f" ({known})" if known else ""
                odd.append(f"`{record['name']}` differs in {differ:,} of {seen:,} lanes{told}")
    if odd:
        lines.append("\n" + "; ".join(odd) + ".")
    return lines


def _approximate(records: Records) -> list[str]:
    lines = [
        "| instruction | bound | apart, ulp | apart | emulator | GPU |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for record in records:
        if "bound" not in record:
            continue
        shares = (
            f"{record[key]:.3f}" if record["named"] else "" for key in ("share", "emulator", "gpu")
        )
        apart = f"{record['apart']:,.0f}" if record["named"] else ""
        bound = record["bound"].replace("|", "\\|")
        lines.append(f"| `{record['name']}` | {bound} | {apart} | {' | '.join(shares)} |")
    return lines


__all__ = ["summary", "text"]
