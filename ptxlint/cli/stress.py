"""`ptxlint stress`."""

from __future__ import annotations

from ptxlint.cli.gating import campaign_command

command = campaign_command(
    "stress",
    """Run families of stress tests on operators, whatever the static half says of their kernels.

    SPEC as for `ptxlint gate`; docs/families.md lists the families.

    \b
      ptxlint stress softmax.py --family tail-mask,exp-range

    \b
    Exit status: 0 nothing fails, 1 something does, 2 something could not be put to the test.
    """,
)
