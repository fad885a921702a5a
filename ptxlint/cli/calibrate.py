"""`ptxlint calibrate`."""

from __future__ import annotations

import os
import sys

import click

from ptxlint.cli.commands import CONTEXT
from ptxlint.cli.output import check_writable, write
from ptxlint.wording import counted


@click.command("calibrate", context_settings=CONTEXT)
@click.argument("specs", metavar="SPEC...", nargs=-1, required=True)
@click.option("--out", metavar="FILE", required=True, help="Where to write the tolerances.")
@click.option("--force", is_flag=True, help="Overwrite a file that is there.")
@click.option(
    "--cases", type=click.IntRange(min=8), default=24, show_default=True,
    help="Of each operator and dtype.",
)  # fmt: skip
@click.option(
    "--runner", type=click.Choice(("auto", "emulator", "cuda")), default="auto", show_default=True,
    help="Where kernels run; auto is the GPU if there is one.",
)  # fmt: skip
@click.option("--arch", default="sm_90", show_default=True,
              help="What kernels are compiled for on the emulator.")  # fmt: skip
def command(
    specs: tuple[str, ...], out: str, force: bool, cases: int, runner: str, arch: str
) -> int:
    """Take tolerances from kernels that are known to be right: of each operator and dtype the 95th
    percentile of its errors times 1.5, with the sample behind it. `ptxlint gate --tolerances FILE`
    holds operators of the same names to them.

    This executes the specs, in child processes.

    \b
    Exit status: 0 written, 2 an operator could not be calibrated (the file has the others).
    """
    if os.path.exists(out) and not force:
        raise click.ClickException(f"{out} is there; --force overwrites it")
    check_writable(out)
    from ptxlint.cli.gating import architecture, chosen_runner
    from ptxlint.dynamic.campaign.calibrate import SampleError, tolerances
    from ptxlint.dynamic.campaign.campaign import Campaign, Settings
    from ptxlint.dynamic.campaign.gate import Options
    from ptxlint.dynamic.oracle.calibration import CalibrationError, written
    from ptxlint.dynamic.runners.worker import WorkerError

    chosen, gpus = chosen_runner(runner)
    campaign = Campaign(Settings(Options(chosen), architecture(arch), gpus=gpus))
    found, failed = [], 0
    try:
        for task in campaign.tasks(specs):
            try:
                if task.problem:
                    raise SampleError(task.problem)
                worker = campaign.worker(task)
                try:
                    found += tolerances(worker, cases)
                finally:
                    worker.close()
            except (SampleError, CalibrationError, WorkerError) as error:
                failed += 1
                print(f"not calibrated: {error}", file=sys.stderr)
    finally:
        campaign.close()
    if found:
        write(written(found), out)
        for each in found:
            if each.sample.largest > 1:
                print(
                    f"note: {each.operator} ({each.dtype}) errs {each.sample.largest:.3g} times "
                    "what is allowed without a tolerance; make sure that it is right",
                    file=sys.stderr,
                )
        print(f"wrote {out}: {counted(len(found), 'tolerance')}")
    return 2 if failed else 0
