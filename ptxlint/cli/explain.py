"""Rules as text and as data, for `rule` and `rules`."""

from __future__ import annotations

import json
import textwrap
from typing import Any, TypeAlias

from ptxlint.engine.emulated import EMULATED, EmulatedRule
from ptxlint.engine.pseudo import PSEUDO_RULES, PseudoRule
from ptxlint.engine.registry import Registry
from ptxlint.engine.selection import closest
from ptxlint.rulekit import Rule, Sample

AnyRule: TypeAlias = type[Rule] | PseudoRule | EmulatedRule
_WIDTH = 88
_FIELDS = (
    "id",
    "name",
    "severity",
    "confidence",
    "category",
    "family",
    "summary",
    "why",
    "fix",
    "preview",
)


def all_rules(registry: Registry) -> list[AnyRule]:
    """Rules, pseudo-rules and what the emulator finds, by identifier."""
    every: list[AnyRule] = [*registry.rules.values(), *PSEUDO_RULES, *EMULATED]
    return sorted(every, key=lambda rule: rule.id)


def named(word: str, rules: list[AnyRule]) -> AnyRule | None:
    """The rule of an identifier or a name, in any case; None if there is none."""
    return next((r for r in rules if word.upper() == r.id or word.lower() == r.name), None)


def nearest(word: str, rules: list[AnyRule]) -> str:
    """`; did you mean …?`, or where to look when nothing is close."""
    names = {rule.name: rule.id for rule in rules}
    close = closest(word.upper(), names.values()) or closest(word.lower(), names)
    if not close:
        return "; `ptxlint rules` lists them all"
    return (
        f"; did you mean {close} ({names[close]})?"
        if close in names
        else (f"; did you mean {close}?")
    )


def listing(rules: list[AnyRule]) -> str:
    """One line a rule."""
    return "\n".join(
        f"{rule.id:<9}{rule.severity:<9}{rule.name:<28}{rule.summary}"
        + (" (preview)" if rule.preview else "")
        for rule in rules
    )


def explain(rule: AnyRule) -> str:
    """All that is written down about a rule."""
    lines = [
        f"{rule.id} {rule.name}",
        f"{rule.severity}, {rule.confidence} confidence, {rule.category}, family {rule.family}"
        + (", preview: runs only when selected by name" if rule.preview else ""),
        *_found_by(rule),
        "",
        *_wrapped(rule.summary),
        "",
        "Why:",
        *_wrapped(rule.why),
        "",
        "Fix:",
        *_wrapped(rule.fix),
    ]
    for title, samples in (("Reported", _samples(rule, "bad")), ("Fine", _samples(rule, "good"))):
        for sample in samples:
            lines += ["", f"{title}: {sample.title}", *_code(sample)]
            if sample.launch:
                lines += ["  launched with:", f"    {json.dumps(sample.launch)}"]
    if rule.refs:
        lines += ["", "See:", *(f"  {url}" for url in rule.refs)]
    return "\n".join(lines)


def _found_by(rule: AnyRule) -> list[str]:
    """What finds it, where that is no check of the text."""
    if not isinstance(rule, EmulatedRule):
        return []
    watch = "" if rule.watch == "memory" else f" --sanitize {rule.watch}"
    return [f"found by running the kernel: ptxlint emulate{watch}"]


def _samples(rule: AnyRule, field: str) -> tuple[Sample, ...]:
    return getattr(rule, field, ())


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="  ")


def _code(sample: Sample) -> list[str]:
    code = textwrap.dedent(sample.code).strip("\n")
    if not code.startswith(".version"):
        # Bodies are put together of pieces that are indented each in its own way.
        code = "\n".join(line.strip() for line in code.splitlines() if line.strip())
    return [f"    {line}".rstrip() for line in code.splitlines()]


def as_json(rules: list[AnyRule], single: bool = False) -> str:
    """The rules as a JSON list, or one rule as an object."""
    data = [rule_to_dict(rule) for rule in rules]
    return json.dumps(data[0] if single else data, indent=1)


def rule_to_dict(rule: AnyRule) -> dict[str, Any]:
    """All that is written down about a rule, as plain data."""
    out: dict[str, Any] = {field: getattr(rule, field) for field in _FIELDS}
    out["refs"] = list(rule.refs)
    out["levels"] = list(getattr(rule, "levels", ()))
    if isinstance(rule, EmulatedRule):
        out["sanitize"] = rule.watch
    out["needs"] = [analysis.name for analysis in getattr(rule, "needs", ())]
    for field in ("bad", "good"):
        out[field] = [
            {"title": s.title, "code": s.code, **({"launch": s.launch} if s.launch else {})}
            for s in _samples(rule, field)
        ]
    return out
