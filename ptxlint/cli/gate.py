"""`ptxlint gate`."""

from __future__ import annotations

from ptxlint.cli.gating import campaign_command

command = campaign_command(
    "gate",
    """Put operators to the test: run each once, check the kernels that it launched, stress what is
    left open, and say pass, fail or undecided.

    SPEC is a file of operators (docs/gate.md), FILE.py:NAME for one of them, or a directory. This
    executes the spec, in child processes. Without a GPU kernels run on the emulator.

    \b
      ptxlint gate specs/                     all operators below
      ptxlint gate softmax.py:softmax --replays replays

    \b
    Exit status: 0 all pass (undecided ones too, without --strict), 1 something fails, 2 something
    could not be put to the test.
    """,
)
