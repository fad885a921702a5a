"""The file of a baseline: JSON, version 1, sorted, an entry a line (docs/baseline.schema.json)."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any, Final, TypeVar

from ptxlint.diagnostics import SEVERITY_ORDER
from ptxlint.engine.baseline.entries import Baseline, Counts, FindingEntry, KernelEntry, Measures

FORMAT: Final = "ptxlint-baseline"
VERSION: Final = 1
_ANEW: Final = "write it anew with `ptxlint baseline`"
_MEASURES: Final = ("instructions", "accesses", "guarded", "registers", "spills")
_STATUSES: Final = ("proved", "refuted", "open")
_Entry = TypeVar("_Entry")


class BaselineError(Exception):
    """A file that cannot be used as a baseline: where, what, what to do."""


def dump(baseline: Baseline) -> str:
    """The text of the file; the same for the same entries."""
    parts = [f'"format": "{FORMAT}"', f'"version": {VERSION}']
    parts.append(_listed("kernels", [_kernel_to_dict(entry) for entry in baseline.kernels]))
    parts.append(_listed("findings", [finding_to_dict(entry) for entry in baseline.findings]))
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _listed(name: str, entries: list[dict[str, Any]]) -> str:
    lines = ",\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
    return f'"{name}": [\n{lines}\n]' if lines else f'"{name}": []'


def _kernel_to_dict(entry: KernelEntry) -> dict[str, Any]:
    numbers = {name: getattr(entry.measures, name) for name in _MEASURES}
    out: dict[str, Any] = {
        "kernel": entry.kernel,
        "arch": entry.arch,
        "identity": entry.measures.identity,
        "shape": entry.measures.shape,
        **{name: number for name, number in numbers.items() if number is not None},
        "verdicts": {
            rule: {status: n for status, n in zip(_STATUSES, counts, strict=True) if n}
            for rule, counts in entry.verdicts
        },
    }
    if entry.orders:
        out["orders"] = dict(entry.orders)
    if entry.launches:
        out["launches"] = entry.launches
    return {**out, "machine": True} if entry.is_machine else out


def finding_to_dict(entry: FindingEntry) -> dict[str, Any]:
    """One finding of a baseline."""
    return {
        "kernel": entry.kernel,
        "archs": list(entry.archs),
        "rule": entry.rule,
        "fingerprint": entry.fingerprint,
        "severity": entry.severity,
        **({"line": entry.line} if entry.line else {}),
        **({} if entry.is_lined else {"lined": False}),
    }


def read_baseline(path: str) -> Baseline:
    """The baseline in a file. Raises `BaselineError`."""
    try:
        with open(path, encoding="utf-8") as stream:
            text = stream.read()
    except FileNotFoundError:
        advice = "`ptxlint baseline PATH --output FILE` writes one"
        raise BaselineError(f"{path}: there is no such baseline; {advice}") from None
    except OSError as error:
        raise BaselineError(f"{path}: cannot read: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise BaselineError(f"{path}: not a baseline: no UTF-8 at byte {error.start}") from None
    try:
        document = json.loads(text)
    except json.JSONDecodeError as error:
        where = f"{path}:{error.lineno}:{error.colno}"
        raise BaselineError(f"{where}: the baseline is no JSON: {error.msg}; {_ANEW}") from None
    except (RecursionError, ValueError):
        raise BaselineError(f"{path}: not a baseline of ptxlint") from None
    return _Reader(path, text).read(document)


class _Reader:
    """Checks one document; the first fault ends it."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text

    def read(self, document: Any) -> Baseline:
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise BaselineError(f'{self.path}: not a baseline: "format" is not "{FORMAT}"')
        version = document.get("version")
        if version != VERSION or isinstance(version, bool):
            is_newer = isinstance(version, int) and version > VERSION
            advice = f"update ptxlint, or {_ANEW}" if is_newer else _ANEW
            raise BaselineError(
                f"{self.path}: a baseline of version {version!r}, and this ptxlint reads version "
                f"{VERSION}; {advice}"
            )
        kernels = self._entries(document, "kernels", self._kernel)
        findings = self._entries(document, "findings", self._finding)
        return Baseline(kernels, findings, self.path, self.text)

    def _entries(
        self, document: dict[str, Any], name: str, read: Callable[[dict[str, Any], str], _Entry]
    ) -> tuple[_Entry, ...]:
        given = document.get(name)
        if not isinstance(given, list):
            raise self._fault(name, "must be a list")
        out = []
        for at, entry in enumerate(given):
            if not isinstance(entry, dict):
                raise self._fault(f"{name}[{at}]", "must be an object")
            out.append(read(entry, f"{name}[{at}]"))
        return tuple(out)

    def _kernel(self, entry: dict[str, Any], where: str) -> KernelEntry:
        words = [self._word(entry, key, where) for key in ("kernel", "arch", "identity", "shape")]
        counts = [self._count(entry, key, where) for key in ("instructions", "accesses", "guarded")]
        unsure = [self._unsure(entry, key, where) for key in ("registers", "spills")]
        verdicts = entry.get("verdicts")
        if not isinstance(verdicts, dict):
            raise self._fault(f"{where}.verdicts", "must be an object")
        return KernelEntry(
            words[0],
            words[1],
            Measures(words[2], words[3], *counts, *unsure),
            tuple(sorted((r, self._counts(c, f"{where}.{r}")) for r, c in verdicts.items())),
            self._unsure(entry, "launches", where) or 0,
            entry.get("machine", False) is True,
            self._orders(entry.get("orders", {}), f"{where}.orders"),
        )

    def _orders(self, given: Any, where: str) -> tuple[tuple[str, str], ...]:
        if not isinstance(given, dict):
            raise self._fault(where, "must be an object")
        return tuple(sorted((rule, self._word(given, rule, where)) for rule in given))

    def _counts(self, given: Any, where: str) -> Counts:
        if not isinstance(given, dict) or not set(given) <= set(_STATUSES):
            raise self._fault(where, f"must count {', '.join(_STATUSES)}")
        numbers = [self._unsure(given, status, where) or 0 for status in _STATUSES]
        return numbers[0], numbers[1], numbers[2]

    def _finding(self, entry: dict[str, Any], where: str) -> FindingEntry:
        archs = entry.get("archs")
        if not isinstance(archs, list) or not all(isinstance(arch, str) for arch in archs):
            raise self._fault(f"{where}.archs", "must be a list of strings")
        severity = self._word(entry, "severity", where)
        if severity not in SEVERITY_ORDER:
            raise self._fault(f"{where}.severity", f"must be one of {', '.join(SEVERITY_ORDER)}")
        kernel, rule, fingerprint = (
            self._word(entry, key, where) for key in ("kernel", "rule", "fingerprint")
        )
        line = self._word(entry, "line", where) if "line" in entry else ""
        lined = entry.get("lined", True) is not False
        return FindingEntry(kernel, rule, fingerprint, severity, tuple(archs), line, lined)

    def _word(self, entry: dict[str, Any], key: str, where: str) -> str:
        value = entry.get(key)
        if not isinstance(value, str):
            raise self._fault(f"{where}.{key}", "must be a string")
        return value

    def _count(self, entry: dict[str, Any], key: str, where: str) -> int:
        value = entry.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise self._fault(f"{where}.{key}", "must be a number, 0 or greater")
        return value

    def _unsure(self, entry: dict[str, Any], key: str, where: str) -> int | None:
        return self._count(entry, key, where) if key in entry else None

    def _fault(self, where: str, message: str) -> BaselineError:
        return BaselineError(f"{self.path}: a damaged baseline: {where} {message}; {_ANEW}")


__all__ = ["FORMAT", "VERSION", "BaselineError", "dump", "finding_to_dict", "read_baseline"]
