"""Families of stress tests, one a file: from what is open of a kernel to cases that decide it."""

from __future__ import annotations

from .kit import Family, Known

__all__ = ["Family", "Known"]
