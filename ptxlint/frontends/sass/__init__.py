"""Reading SASS: listings of `nvdisasm` and `cuobjdump`, and the JSON of `nvdisasm`."""

from __future__ import annotations

from ptxlint.frontends.sass.builder import SassBuilder
from ptxlint.frontends.sass.json_form import JsonFormError, as_listing, is_json_form
from ptxlint.frontends.sass.listing import read
from ptxlint.frontends.sass.wholeness import faults
from ptxlint.ir.module import Module
from ptxlint.source import Problem, SourceText

__all__ = ["parse"]


def parse(text: str, path: str = "<string>") -> Module:
    """The module that a listing denotes; faults of the text are in `Module.problems`. Never raises
    for a bad text. The text of a module that was read from JSON is the listing that it stands for.
    """
    if is_json_form(text):
        try:
            text = as_listing(text)
        except JsonFormError as error:
            module = Module(SourceText(text, path))
            module.problems.append(Problem(0, str(error)))
            return module
    builder = SassBuilder(SourceText(text, path))
    read(text, builder)
    builder.finish()
    module = builder.module
    if not module.problems:
        module.problems += faults(module.functions, len(text))
    return module
