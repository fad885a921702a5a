"""JUnit's XML, as continuous integration reads it: an operator is a test case."""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.etree import ElementTree

from ..verdict import Verdict
from .words import details, headline, subject

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML 1.0 does not have."""


def render_junit(verdicts: Sequence[Verdict]) -> str:
    """One suite with one case for each operator: undecided is `skipped`, a problem `error`."""
    failed = [v for v in verdicts if v.verdict == "fail"]
    problems = [v for v in verdicts if v.problem]
    skipped = [v for v in verdicts if v.verdict == "undecided" and not v.problem]
    seconds = sum(verdict.seconds for verdict in verdicts)
    suite = ElementTree.Element(
        "testsuite",
        name="ptxlint gate",
        tests=str(len(verdicts)),
        failures=str(len(failed)),
        errors=str(len(problems)),
        skipped=str(len(skipped)),
        time=f"{seconds:.3f}",
    )
    for verdict in verdicts:
        _add_case(suite, verdict)
    root = ElementTree.Element("testsuites")
    root.append(suite)
    ElementTree.indent(root)
    text = ElementTree.tostring(root, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _add_case(suite: ElementTree.Element, verdict: Verdict) -> None:
    case = ElementTree.SubElement(
        suite,
        "testcase",
        classname=_clean(verdict.path or "ptxlint"),
        name=_clean(verdict.name or verdict.path),
        time=f"{verdict.seconds:.3f}",
    )
    for failure in verdict.failures:
        where = f"{failure.place}: " if failure.place else ""
        told = ElementTree.SubElement(
            case, "failure", message=_clean(headline(failure)), type=subject(failure)
        )
        told.text = _clean("\n".join([where + headline(failure), *details(failure)]))
    if verdict.problem:
        ElementTree.SubElement(case, "error", message=_clean(verdict.problem), type="problem")
    elif verdict.verdict == "undecided":
        ElementTree.SubElement(case, "skipped", message=_clean(verdict.reason))


def _clean(text: str) -> str:
    return _NOT_XML.sub("\ufffd", text)


__all__ = ["render_junit"]
