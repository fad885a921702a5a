"""MSK202 under launches: a missing guard is a note where all launches have exact tiles."""

from __future__ import annotations

import pytest

from ptxlint.engine.options import Options
from ptxlint.engine.report import Report
from ptxlint.engine.run import run
from ptxlint.engine.samples import module_text
from ptxlint.frontends.discovery import Input
from ptxlint.frontends.launch_layout import read_launch
from ptxlint.frontends.launch_nodes import Node
from ptxlint.rulekit import TILE_START, Sample

KERNEL = module_text(
    Sample("", TILE_START + "ld.global.b32 %r6, [%rd4];\n@%p1 st.global.b32 [%rd5], %r6;\nret;")
)


def check(*elements: int) -> Report:
    launches = tuple(
        read_launch(
            Node(
                {
                    "grid": 8,
                    "block": 128,
                    "arguments": {
                        "in_ptr": f"float32[{count}]",
                        "out_ptr": f"float32[{count}]",
                        "n_elements": count,
                    },
                }
            ),
            "",
        )
        for count in elements
    )
    report = run([Input("k.ptx", KERNEL, None, launches)], Options(select=("MSK202",)))
    assert report.exit_code != 2, report.findings
    return report


@pytest.mark.parametrize(
    ("elements", "severity", "status"),
    [
        ((), "error", "refuted"),
        ((1024,), "note", "proved"),
        ((1024, 4096), "note", "proved"),
        ((1023,), "error", "refuted"),
        ((1024, 1023), "error", "refuted"),
    ],
)
def test_exact_tiles_are_a_note(elements: tuple[int, ...], severity: str, status: str) -> None:
    report = check(*elements)
    (finding,) = report.findings
    assert finding.severity == severity
    assert [o.status for o in report.obligations if o.rule == "MSK202"] == [status]
    # It is the same finding in all launches.
    assert finding.fingerprint == check().findings[0].fingerprint
