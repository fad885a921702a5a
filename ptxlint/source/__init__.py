"""Source text and locations: where an instruction stands in PTX and in Python."""

from ptxlint.source.location import Loc, Position, SourceFrame
from ptxlint.source.problem import Problem
from ptxlint.source.text import SourceText

__all__ = ["Loc", "Position", "Problem", "SourceFrame", "SourceText"]
