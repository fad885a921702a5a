"""What the rules say of one function, by instruction, for `ptxlint show facts`."""

from __future__ import annotations

from typing import NamedTuple

from ptxlint.engine.registry import Registry
from ptxlint.facts import Facts
from ptxlint.rulekit import Hit, Rule, Verdict


class Said(NamedTuple):
    """One finding or verdict with the rule that said it."""

    rule: type[Rule]
    said: Hit | Verdict


def rules_on(facts: Facts, registry: Registry) -> list[Said]:
    """All that the rules find, those in preview included; one that crashes says no more."""
    out: list[Said] = []
    for rule in registry.rules.values():
        if rule.kernels_only and not facts.function.is_kernel:
            continue
        try:
            out += (Said(rule, said) for said in rule().check(facts.function, facts))
        except Exception as error:
            out.append(Said(rule, Verdict("open", f"the rule crashed: {error!r}")))
    return out
