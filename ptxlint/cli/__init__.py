"""The command line: a thin layer over `ptxlint.check`."""

from __future__ import annotations

import gc
import os
import sys

EXIT_FAILURE = 2
EXIT_INTERRUPT = 130
"""128 + SIGINT, what a shell reports for a program that Ctrl-C ended."""
EXIT_PIPE = 141
"""128 + SIGPIPE, what a shell reports for a program whose reader went away."""


def main(arguments: list[str] | None = None) -> None:
    """Run a command and leave with its exit status; never shows a traceback."""
    try:
        code = _run(sys.argv[1:] if arguments is None else arguments)
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = EXIT_INTERRUPT
    except BrokenPipeError:
        code = EXIT_PIPE
    except OSError as error:
        code = _output_failed(error)
    except Exception as error:
        code = _crashed(error)
    if code in (EXIT_PIPE, EXIT_INTERRUPT):
        _drop_output()
    # The interpreter would look for cycles among all that is left, a fifth of a short run.
    gc.freeze()
    sys.exit(code)


def _run(arguments: list[str]) -> int:
    """The exit status of a command line."""
    # A parsed module is a million small objects that live as long as it does: look for cycles less.
    gc.set_threshold(100_000)
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            # A file name or message that the terminal cannot show must not end the run.
            reconfigure(errors="backslashreplace")
    import click

    from ptxlint.cli.commands import cli

    if "_PTXLINT_COMPLETE" in os.environ:
        cli.main(prog_name="ptxlint")
    # Not `cli.main`: it would answer a broken pipe with exit status 1.
    try:
        with cli.make_context("ptxlint", list(arguments)) as context:
            result = cli.invoke(context)
    except click.ClickException as error:
        error.show()
        return EXIT_FAILURE
    except click.exceptions.Exit as exit:
        return exit.exit_code
    except click.Abort:
        return EXIT_INTERRUPT
    return result if isinstance(result, int) else 0


def _output_failed(error: OSError) -> int:
    """A full disk and the like: say so and fail."""
    print(f"ptxlint: error: cannot write: {error.strerror or error}", file=sys.stderr)
    _drop_output()
    return EXIT_FAILURE


def _crashed(error: Exception) -> int:
    """A fault of ptxlint itself outside the rules: one line, and how to see more."""
    if os.environ.get("PTXLINT_TRACEBACK"):
        raise error
    from ptxlint.engine.crash import describe_crash

    crash = describe_crash(error)
    print(
        f"ptxlint: internal error: {crash.message}, raised at {crash.where}; please report it "
        "with the file (PTXLINT_TRACEBACK=1 shows the traceback)",
        file=sys.stderr,
    )
    return EXIT_FAILURE


def _drop_output() -> None:
    """Let the interpreter's last flush go nowhere instead of failing again."""
    try:
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
    except (OSError, ValueError):
        return
