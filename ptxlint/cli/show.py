"""`ptxlint show`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ptxlint.cli.commands import CONTEXT
from ptxlint.cli.output import write

if TYPE_CHECKING:
    from ptxlint.facts import Facts
    from ptxlint.ir.function import Function
    from ptxlint.ir.instruction import Instr
    from ptxlint.ir.module import Module
    from ptxlint.reporters.facts_launch import FactsUnderLaunch


@click.command("show", context_settings=CONTEXT)
@click.argument("what", type=click.Choice(["cfg", "ir", "facts", "pressure"]))
@click.argument("file", metavar="FILE")
@click.argument("positional", metavar="[KERNEL]", required=False)
@click.option("--kernel", metavar="NAME", help="Show only this kernel.")
@click.option(
    "--line",
    metavar="N[-M]",
    help="Only what stems from these lines of the source (facts; PTX lines where there is none).",
)
@click.option(
    "--launch",
    metavar="FILE",
    help="Show integers, guards and accesses under the first launch in this JSON file (facts).",
)
@click.option(
    "--format",
    "format_",
    type=click.Choice(["text", "json", "dot", "svg"]),
    default="text",
    show_default=True,
    help="json is for facts and pressure, dot for cfg, svg for cfg and pressure.",
)
@click.option("--no-exact", is_flag=True, help="Run no assembler (pressure).")
@click.option(
    "--ptxas", metavar="PROGRAM", default="", help="The assembler to take registers of (pressure)."
)
@click.option("--output", metavar="FILE", help="Write to a file.")
def command(
    what: str,
    file: str,
    positional: str | None,
    kernel: str | None,
    line: str | None,
    launch: str | None,
    format_: str,
    no_exact: bool,
    ptxas: str,
    output: str | None,
) -> int:
    """Print the control-flow graph, the IR, the facts or the registers of a kernel, or of all in
    the file.

    \b
    cfg    blocks, edges with their conditions, dominators, loops
    ir     the parsed module, printed back as PTX
    facts  at every instruction: live registers, uniformity, index polynomials, accesses with their
           guards, what masked-off lanes hold, numbers, reductions, findings and verdicts
    pressure  live registers along the program, the peak with the lines that hold values there, the
           registers that an assembler takes, and the steps of occupancy; takes machine code, too
    """
    _refuse_misfits(what, format_, line, launch)
    if (no_exact or ptxas) and what != "pressure":
        raise click.UsageError("--ptxas and --no-exact are for `show pressure` only")
    if positional and kernel and positional != kernel:
        raise click.UsageError(f"two kernels are named: {positional} and {kernel}")
    kernel = kernel or positional
    lines = _lines(line) if line else None
    if what == "pressure":
        from ptxlint.cli.show_pressure import show_pressure

        text, code = show_pressure(file, kernel, format_, None if no_exact else ptxas)
        write(text, output)
        return code
    module, code = _load(file)
    functions = functions_of(module, kernel, file)
    if what == "facts":
        text = _render_facts(format_, module, functions, lines, launch)
    else:
        text = _render(what, format_, module, functions, kernel)
    write(text, output)
    return code


def _refuse_misfits(what: str, format_: str, line: str | None, launch: str | None) -> None:
    """Options that do not go together end the command."""
    fitting = {
        "dot": ("cfg",), "svg": ("cfg", "pressure"), "json": ("facts", "pressure")
    }.get(format_, (what,))  # fmt: skip
    if what not in fitting:
        names = " and ".join(f"`show {name}`" for name in fitting)
        raise click.UsageError(f"--format {format_} is for {names} only")
    if line and what != "facts":
        raise click.UsageError("--line is for `show facts` only")
    if launch and what != "facts":
        raise click.UsageError("--launch is for `show facts` only")


def _lines(text: str) -> range:
    """`10` or `10-14`."""
    first, dash, last = text.partition("-")
    try:
        found = range(int(first), int(last if dash else first) + 1)
    except ValueError:
        found = range(0)
    if not found or found[0] < 1:
        raise click.UsageError(f"--line {text}: give a line such as 10, or lines such as 10-14")
    return found


def _load(file: str) -> tuple[Module, int]:
    """The parsed file, and exit status 2 if it has faults (they go to stderr)."""
    from ptxlint.frontends.discovery import InputFault, discover, read
    from ptxlint.frontends.ptx import parse

    found = discover([file])
    if len(found) != 1:
        raise click.ClickException(f"{file} stands for {len(found)} files; name one")
    item = found[0]
    text = item if isinstance(item, InputFault) else read(item)
    if isinstance(text, InputFault):
        hint = f"; {text.hint}" if text.hint else ""
        raise click.ClickException(f"{text.path}: {text.message}{hint}")
    module = parse(text, item.path)
    code = 0
    for problem in module.problems:
        if not problem.note:
            code = 2
            line, column = module.source.position(problem.offset)
            click.echo(f"{item.path}:{line}:{column}: error[PARSE] {problem.message}", err=True)
    return module, code


def functions_of(module: Module, kernel: str | None, file: str) -> list[Function]:
    """The function of that name, or all with a body."""
    functions = [f for f in module.functions if not f.is_declaration]
    names = [f.name for f in functions]
    if not functions:
        raise click.ClickException(f"{file} defines no function")
    if kernel is None:
        return functions
    if kernel not in names:
        from ptxlint.engine.selection import closest

        near = closest(kernel, names)
        advice = f"did you mean {near}?" if near else f"there are: {', '.join(names)}"
        raise click.ClickException(f"{file} has no kernel {kernel!r}; {advice}")
    return [f for f in functions if f.name == kernel]


def _facts(module: Module, functions: list[Function]) -> list[Facts]:
    from ptxlint.engine.analyse import find_arch
    from ptxlint.engine.python_source import PythonSources
    from ptxlint.engine.source_words import KernelWords, PythonReader
    from ptxlint.facts import Facts
    from ptxlint.frontends.triton_cache import MetadataError, load_metadata

    arch = find_arch(module.arch)
    reader = PythonReader(PythonSources())
    try:
        metadata = load_metadata(module.source.path) if len(module.kernels()) == 1 else None
    except MetadataError as error:
        raise click.ClickException(str(error)) from None
    return [
        Facts(module, function, arch, metadata, KernelWords(module, function, reader))
        for function in functions
    ]


def _render_facts(
    format_: str,
    module: Module,
    functions: list[Function],
    lines: range | None,
    launch: str | None,
) -> str:
    """The facts of these functions, or of what stems from some lines."""
    from ptxlint.engine.registry import default_registry
    from ptxlint.engine.said import rules_on
    from ptxlint.ir.opaque import MALFORMED, set_aside
    from ptxlint.ir.verifier import verify
    from ptxlint.reporters.facts_json import render_facts_json
    from ptxlint.reporters.facts_text import render_facts
    from ptxlint.reporters.facts_view import FactsView

    problems = [*module.problems, *verify(module)]
    set_aside(module, {p.offset for p in problems if p.code in MALFORMED})
    registry = default_registry()
    facts = _facts(module, functions)
    if launch is not None:
        _bind(module, facts, launch)
    views = [FactsView(f, rules_on(f, registry), _launched(f)) for f in facts]

    def wanted(instr: Instr) -> bool:
        if lines is None:
            return True
        frames = module.frames(instr.loc)
        if frames:
            return any(frame.line in lines for frame in frames)
        return module.source.position(instr.offset).line in lines

    if lines is not None and not any(wanted(i) for f in functions for i in f.instrs):
        shown = f"line {lines[0]}" if len(lines) == 1 else f"lines {lines[0]}-{lines[-1]}"
        raise click.ClickException(f"{module.source.path}: no instruction stems from {shown}")
    if format_ == "json":
        return render_facts_json(views, wanted)
    return "\n".join(render_facts(view, wanted) for view in views)


def _bind(module: Module, facts: list[Facts], path: str) -> None:
    """Give kernels the launches of a file; one that fits none of them ends the command."""
    from ptxlint.engine.under_launch import FileLaunches
    from ptxlint.frontends.launch_file import LaunchFileError, read_launch_file

    try:
        launches = FileLaunches((), read_launch_file(path), module.kernels())
    except LaunchFileError as error:
        raise click.ClickException(str(error)) from None
    faults = launches.strays()
    for each in facts:
        faults += launches.bind(each)
    if faults:
        raise click.ClickException(faults[0])
    if not any(each.launches for each in facts):
        raise click.ClickException(f"{path} has no launch of what is shown")


def _launched(facts: Facts) -> FactsUnderLaunch | None:
    """The launch that a function is shown under; None without one."""
    if not facts.launches:
        return None
    from ptxlint.reporters.facts_launch import FactsUnderLaunch

    return FactsUnderLaunch(facts)


def _render(
    what: str, format_: str, module: Module, functions: list[Function], kernel: str | None
) -> str:
    if what == "ir":
        from ptxlint.ir.printer import function_lines, print_module

        if kernel is None:
            return print_module(module)
        return "\n".join(line for f in functions for line in function_lines(f)) + "\n"
    facts = _facts(module, functions)
    if format_ == "dot":
        from ptxlint.reporters.cfg_dot import render_cfg_dot

        return render_cfg_dot(facts)
    if format_ == "svg":
        from ptxlint.reporters.cfg_svg import render_cfg_svg

        if len(facts) > 1:
            names = ", ".join(f.name for f in functions)
            raise click.ClickException(f"an SVG shows one function; name one of: {names}")
        return render_cfg_svg(facts[0])
    from ptxlint.reporters.cfg_text import render_cfg_text

    return "\n".join(render_cfg_text(f) for f in facts)
