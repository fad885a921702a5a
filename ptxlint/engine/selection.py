"""Which rules run: `--select` and `--ignore` by identifier, prefix or name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ptxlint.engine.pseudo import FAILURES, PSEUDO_RULES
from ptxlint.engine.registry import Registry

ALL = "ALL"
_EXACT = 100
"""Specificity of a full identifier or name; a prefix has its own length, ALL has 0."""


class SelectionError(Exception):
    """A selector that matches nothing, with a suggestion in its text; `word` is the selector."""

    def __init__(self, word: str, message: str) -> None:
        super().__init__(message)
        self.word = word


def enabled_rules(
    registry: Registry, select: Sequence[str] = (), ignore: Sequence[str] = ()
) -> frozenset[str]:
    """Identifiers of the rules and pseudo-rules that these selectors leave on.

    Without `select`, all are on except preview rules, which run only when named in full. Where
    `select` and `ignore` both match a rule, the more specific one holds, and `ignore` in a tie.
    Raises `SelectionError`.
    """
    wanted = [_Selector(word, registry) for word in select]
    unwanted = [_Selector(word, registry) for word in ignore]
    for selector in unwanted:
        if selector.exact in FAILURES:
            raise SelectionError(
                selector.word,
                f"{selector.exact} cannot be ignored: it means that something asked for was not "
                "analysed",
            )
    previews = {rule.id for rule in registry.rules.values() if rule.preview}
    enabled = set(FAILURES)
    for identifier in known_identifiers(registry):
        chosen = max((s.specificity(identifier) for s in wanted), default=0)
        refused = max((s.specificity(identifier) for s in unwanted), default=-1)
        if identifier in previews and chosen < _EXACT:
            continue
        if chosen > refused and chosen >= 0:
            enabled.add(identifier)
    return frozenset(enabled)


def known_identifiers(registry: Registry) -> list[str]:
    """All identifiers, pseudo-rules included, sorted."""
    return sorted([*registry.rules, *(p.id for p in PSEUDO_RULES)])


class _Selector:
    """One word of a selection, resolved against what there is."""

    __slots__ = ("exact", "prefix", "word")

    def __init__(self, word: str, registry: Registry) -> None:
        self.word = word
        self.exact = registry.identifier(word) or ""
        self.prefix = word.upper()
        if self.exact or self.prefix == ALL:
            return
        if not word or not any(i.startswith(self.prefix) for i in known_identifiers(registry)):
            message = f"no rule matches {word!r}{suggestion(word, registry)}"
            raise SelectionError(word, message)

    def specificity(self, identifier: str) -> int:
        """How closely this selector means the rule; -1 when it does not."""
        if self.exact:
            return _EXACT if self.exact == identifier else -1
        if self.prefix == ALL:
            return 0
        return len(self.prefix) if identifier.startswith(self.prefix) else -1


def suggestion(word: str, registry: Registry, more: Mapping[str, str] | None = None) -> str:
    """`; did you mean …?`, or where to look when nothing is close. `more` has identifiers by name
    that are no rules of the registry."""
    more = more or {}
    names = {**registry.names(), **more}
    identifiers = [*known_identifiers(registry), *more.values()]
    close = closest(word.upper(), identifiers) or closest(word.lower(), names)
    if close:
        known = names.get(close)
        return f"; did you mean {close} ({known})?" if known else f"; did you mean {close}?"
    return "; `ptxlint rules` lists them all"


def closest(word: str, candidates: Iterable[str]) -> str:
    """The candidate nearest to a mistyped word, "" when none is near."""
    from difflib import get_close_matches

    matches = get_close_matches(word, list(candidates), n=1, cutoff=0.6)
    return matches[0] if matches else ""
