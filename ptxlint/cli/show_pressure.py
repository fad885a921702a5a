"""`ptxlint show pressure`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Final

import click

if TYPE_CHECKING:
    from ptxlint.facts import KernelMetadata
    from ptxlint.frontends.discovery import Code, Input
    from ptxlint.ir.module import Module
    from ptxlint.reporters.pressure_view import PressureView
    from ptxlint.resources import Resources

_SHOWN: Final = 8
"""So many cubins of a file are named."""
_OF_LISTING: Final = "registers are not known: a listing does not tell how many are allocated"
_NO_LINES: Final = "the machine code names no lines of a source: assemble with -lineinfo"


def show_pressure(
    file: str, kernel: str | None, format_: str, ptxas: str | None
) -> tuple[str, int]:
    """The picture, and the exit status. `ptxas` names an assembler, "" is the one that fits, None
    runs none."""
    item, code = _read(file)
    module, status = _parsed(item, code)
    faults: list[str] = []
    views = _views(module, item, code, kernel, ptxas, faults)
    for fault in faults:
        status = 2
        click.echo(f"Error: {fault}", err=True)
    if format_ == "json":
        from ptxlint.reporters.pressure_json import render_pressure_json

        return render_pressure_json(views), status
    if format_ == "svg":
        from ptxlint.reporters.pressure_svg import render_pressure_svg

        if len(views) > 1:
            names = ", ".join(view.name for view in views)
            raise click.ClickException(f"an SVG shows one function; name one of: {names}")
        return render_pressure_svg(views[0]), status
    from ptxlint.reporters.pressure_text import render_pressure

    return "\n".join(render_pressure(view) for view in views), status


def _read(file: str) -> tuple[Input, Code]:
    from ptxlint.frontends.discovery import Input, InputFault, discover, read_code
    from ptxlint.wording import counted

    found = [item for item in discover([file], machine_code=True)
             if not (isinstance(item, InputFault) and item.is_note)]  # fmt: skip
    inside = [item for item in found if isinstance(item, Input) and item.cubin is not None]
    if len(found) != 1 and inside:
        names = ", ".join(item.path.removeprefix(f"{file}:") for item in inside[:_SHOWN])
        raise click.ClickException(
            f"{file} holds {counted(len(inside), 'cubin')}, and one is drawn: extract it "
            f"(cuobjdump -xelf NAME {file}); there {'are' if len(inside) > 1 else 'is'} {names}"
        )
    if len(found) != 1:
        raise click.ClickException(f"{file} stands for {len(found)} files; name one")
    item = found[0]
    code = item if isinstance(item, InputFault) else read_code(item)
    if isinstance(item, InputFault) or isinstance(code, InputFault):
        assert isinstance(code, InputFault)
        hint = f"; {code.hint}" if code.hint else ""
        raise click.ClickException(f"{code.path}: {code.message}{hint}")
    return item, code


def _parsed(item: Input, code: Code) -> tuple[Module, int]:
    """The module, and exit status 2 if it has faults (they go to stderr)."""
    if code.is_machine:
        from ptxlint.frontends.sass import parse
    else:
        from ptxlint.frontends.ptx import parse
    module = parse(code.text, item.path)
    status = 0
    for problem in module.problems:
        if not problem.note:
            status = 2
            line, column = module.source.position(problem.offset)
            click.echo(f"{item.path}:{line}:{column}: error[PARSE] {problem.message}", err=True)
    return module, status


def _views(
    module: Module,
    item: Input,
    code: Code,
    kernel: str | None,
    ptxas: str | None,
    faults: list[str],
) -> list[PressureView]:
    from ptxlint.cli.show import functions_of
    from ptxlint.engine.analyse import find_arch
    from ptxlint.engine.python_source import PythonSources
    from ptxlint.facts import Facts
    from ptxlint.reporters.pressure_view import PressureView

    functions = functions_of(module, kernel, item.path)
    known, note = _known(module, item, code, ptxas, faults)
    arch, sources = find_arch(module.arch), PythonSources()
    beside = _metadata(item) if len(module.kernels()) == 1 else None
    views = []
    for function in functions:
        facts = Facts(module, function, arch, beside if function.is_kernel else None)
        facts.exact = known.get(function.name)
        views.append(PressureView(facts, sources, note))
    return views


def _metadata(item: Input) -> KernelMetadata | None:
    from ptxlint.frontends.triton_cache import MetadataError, load_metadata

    if item.metadata is not None:
        return item.metadata
    stem, suffix = os.path.splitext(item.path)
    path = item.path if suffix.lower() == ".ptx" else f"{stem}.ptx"
    try:
        return load_metadata(path)
    except MetadataError as error:
        raise click.ClickException(str(error)) from None


def _known(
    module: Module, item: Input, code: Code, ptxas: str | None, faults: list[str]
) -> tuple[dict[str, Resources], str]:
    """What is known of the kernels, by name, and what is to be said of it: why it is not exact, and
    what lies beside the file and cannot be used. It is what lies beside the file, else what an
    assembler says; that one which was named says nothing goes to `faults`."""
    from ptxlint.engine.resources import exact, resources_beside, resources_in
    from ptxlint.frontends.toolkit import ToolError

    unused: list[str] = []
    if code.is_machine:
        if not module.files:
            unused.append(_NO_LINES)
        if code.cubin is not None:
            where = f"cubin {os.path.basename(item.path)}"
            return resources_in(code.cubin, where), "; ".join(unused)
        return {}, "; ".join((_OF_LISTING, *unused))
    found = {} if ptxas else resources_beside(item.path, module.arch, unused)
    if all((k := found.get(fn.name)) and k.registers for fn in module.kernels()):
        return found, ""
    if ptxas is None:
        return found, "; ".join((*unused, "registers are not exact: no assembler was run"))
    try:
        return exact(module, ptxas), "; ".join(unused)
    except ToolError as error:
        if ptxas:
            faults.append(str(error))
        return found, "; ".join((*unused, f"registers are not exact: {error}"))


__all__ = ["show_pressure"]
