"""What ptxlint says of a case beside what the GPU did."""

from __future__ import annotations

from collections import Counter
from typing import Any

BAD = ("outside", "fault", "refused")
"""What the GPU does where something is wrong: an address outside of its tensor or misaligned, a
fault, a launch that is not made."""
OF_MEMORY = (
    "CUDA_ERROR_ILLEGAL_ADDRESS",
    "CUDA_ERROR_MISALIGNED_ADDRESS",
    "CUDA_ERROR_LAUNCH_FAILED",
)
"""Faults of accesses to memory. With others, where accesses went is not known."""


def word_of(verdict: dict[str, Any]) -> str:
    """ptxlint's word on a launch."""
    if verdict["rules"]:
        return "refuted"
    return "open" if "open" in verdict["statuses"] else "clean"


def compared(verdict: dict[str, Any], logged: dict[str, Any], checked: Any) -> dict[str, Any]:
    """A record of a case, with all in which the two disagree."""
    accesses: Counter[str] = Counter()
    disagreements: list[str] = []
    is_outside = False
    for site, (word, width, bounds) in verdict["accesses"].items():
        went = where(logged, str(site), width, bounds)
        is_outside = is_outside or went in ("outside", "misaligned")
        accesses[f"{word}, {went}"] += 1
        if word in ("proved", "never") and went in ("outside", "misaligned"):
            disagreements.append(f"access {site}: {word}, and {went}")
        if word == "never" and went == "inside":
            disagreements.append(f"access {site}: never, and it takes place")
        if word.startswith("refuted") and went in ("inside", "not run"):
            disagreements.append(f"access {site}: {word}, and {went}")
    gpu = next((k for k in ("fault", "refused", "failed") if k in logged), "inside")
    gpu = gpu if logged else "not asked"
    if gpu == "fault" and logged["fault"] not in OF_MEMORY:
        gpu = "failed"
    gpu = "outside" if gpu == "inside" and is_outside else gpu
    word = word_of(verdict)
    if word == "clean" and gpu in BAD:
        disagreements.append(f"clean, and {gpu}: {logged.get(gpu, '')}")
    if word == "refuted" and gpu == "inside":
        disagreements.append("refuted, and nothing is wrong")
    checker = checker_of(checked)
    if checker == "fault" and gpu == "inside":
        disagreements.append(f"inside, and the memory checker: {checked.get('faults')}")
    record = {
        "said": word,
        "rules": verdict["rules"],
        "gpu": gpu,
        "checker": checker,
        "accesses": dict(sorted(accesses.items())),
        "disagreements": disagreements,
    }
    for source in (logged, checked or {}):
        for key in ("fault", "refused", "failed", "faults"):
            if key in source:
                record.setdefault("told", []).append(source[key])
    return record


def where(logged: dict[str, Any], site: str, width: int, bounds: list[int] | None) -> str:
    """Where an access went: `inside`, `outside`, `misaligned`, `not run`, or `unknown` where a
    fault took the record along, or nobody knows the tensor."""
    if "ran" not in logged or bounds is None:
        return "unknown"
    touched = logged["touched"].get(site)
    if touched is None:
        return "not run"
    least, greatest, remainder = touched
    if least < bounds[0] or greatest + width > bounds[1]:
        return "outside"
    return "misaligned" if remainder % width else "inside"


def checker_of(checked: Any) -> str:
    """The memory checker's word on a launch; empty if it was not asked."""
    if checked is None:
        return ""
    if "failed" in checked:
        return "failed"
    if "refused" in checked:
        return "refused"
    return "fault" if "fault" in checked or checked.get("faults") else "clean"
