"""Operators: what people write of a kernel so that it can be put to the test (docs/gate.md)."""

from __future__ import annotations

from .spec import Dim, Domain, Operator, Size, SpecError, Tensor, Tolerance, Value

__all__ = ["Dim", "Domain", "Operator", "Size", "SpecError", "Tensor", "Tolerance", "Value"]
