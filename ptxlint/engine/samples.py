"""The samples of rules as modules, with the findings they must give."""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from typing import Final

from ptxlint.diagnostics import Finding
from ptxlint.engine.options import Options
from ptxlint.engine.run import run
from ptxlint.facts import KernelMetadata
from ptxlint.frontends.discovery import Input
from ptxlint.launches import Launch
from ptxlint.rulekit import Rule, Sample

HEADER: Final = """\
.version 8.0
.target sm_80
.address_size 64

.visible .entry sample(.param .u64 .ptr .global .align 16 in_ptr,
    .param .u64 .ptr .global .align 16 out_ptr, .param .u32 n_elements)
{
"""
MACHINE_HEADER: Final = """\
\t.target\tsm_90
\t.section\t.text.sample,"ax",@progbits
\t.other\tsample,@"STO_CUDA_ENTRY STV_DEFAULT"
.text.sample:
\t//## File "sample.py", line 1
"""
_BYTES: Final = 16
_NO_INSTRUCTION: Final = re.compile(r"\s*(?://.*|[.$\w]+:.*)?")
_MARK = re.compile(r"//~\s*([A-Z0-9, ]+?)\s*$")


def module_text(sample: Sample) -> str:
    """The text of a sample: as it is if it is a whole module, else as a kernel's body."""
    if sample.level == "sass":
        return _listing(sample.code)
    return _ptx(sample.code)


def _ptx(code: str) -> str:
    code = textwrap.dedent(code).strip("\n") + "\n"
    if re.search(r"^\s*\.version\b", code, re.MULTILINE):
        return code
    return HEADER + code + "}\n"


def _listing(code: str) -> str:
    """Lines of machine code as nvdisasm prints them; marks stay at their ends."""
    lines = []
    address = 0
    for line in textwrap.dedent(code).strip("\n").splitlines():
        if _NO_INSTRUCTION.fullmatch(line):
            lines.append(line)
            continue
        mark = _MARK.search(line)
        end = mark.start() if mark else len(line)
        lines.append(f"        /*{address:04x}*/ {line[:end].strip()} ; {line[end:]}".rstrip())
        address += _BYTES
    return MACHINE_HEADER + "\n".join(lines) + "\n"


def expected(text: str) -> Counter[tuple[str, int]]:
    """Pairs of rule and line, from the `//~ RULE` marks; a rule named twice must report twice."""
    out: Counter[tuple[str, int]] = Counter()
    for number, line in enumerate(text.splitlines(), 1):
        match = _MARK.search(line)
        if match:
            out.update((rule.strip(), number) for rule in match[1].split(","))
    return out


def check_sample(rule: type[Rule], sample: Sample, *, alone: bool = True) -> list[Finding]:
    """The findings in a sample, in its own rule's name or in that of all rules; faults of the
    PTX and crashes are among them."""
    text = module_text(sample)
    metadata = metadata_of(sample)
    select = (rule.id,) if alone else ("ALL", rule.id)
    ptx = _ptx(sample.ptx) if sample.ptx else None
    if sample.level == "sass":
        # A listing has no room for marks.
        text = "\n".join(_MARK.sub("", line) for line in text.splitlines()) + "\n"
    item = Input(f"<{rule.id}>", text, metadata, launches_of(sample), ptx=ptx)
    report = run([item], Options(select=select))
    return list(report.findings)


def metadata_of(sample: Sample) -> KernelMetadata | None:
    """What lies beside a sample's kernel; None for nothing."""
    if not sample.metadata:
        return None
    metadata = KernelMetadata()
    for field, value in sample.metadata.items():
        setattr(metadata, field, value)
    return metadata


def launches_of(sample: Sample) -> tuple[Launch, ...]:
    """The launch that a sample brings, if it brings one."""
    if not sample.launch:
        return ()
    from ptxlint.frontends.launch_layout import read_launch
    from ptxlint.frontends.launch_nodes import Node

    return (read_launch(Node(sample.launch), ""),)


def mismatches(rule: type[Rule], sample: Sample) -> list[str]:
    """Where the findings in a sample differ from its marks; empty when they agree exactly."""
    marked = expected(module_text(sample))
    own = Counter({key: n for key, n in marked.items() if key[0] == rule.id})
    found = Counter((f.rule, f.place.line) for f in check_sample(rule, sample))
    return [
        *(f"line {line}: {name} is marked and not reported" for name, line in own - found),
        *(f"line {line}: {name} is reported and not marked" for name, line in found - own),
    ]
