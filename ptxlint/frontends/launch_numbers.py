"""What a launch tells of the integers in a tensor: their bounds, or all of them."""

from __future__ import annotations

from typing import TypeAlias

from ptxlint.frontends.launch_nodes import Node
from ptxlint.launches import DTYPE_BYTES

Bounds: TypeAlias = "tuple[int, int] | None"
Contents: TypeAlias = "tuple[int, ...] | None"
MOST: int = 1 << 20
"""Numbers of one tensor that are told one by one."""


def read_numbers(values: Node | None, contents: Node | None, dtype: str) -> tuple[Bounds, Contents]:
    """`values` and `contents` of a tensor. Raises `LayoutError`."""
    held = _contents(contents, dtype)
    if values is None or values.data is None:
        return (None if held is None else (min(held), max(held))), held
    low, high = _limits(values, dtype)
    ends = values.integers(low, high)
    if len(ends) != 2 or ends[0] > ends[1]:
        raise values.fault("expected the least and the greatest element, as [0, 31999]")
    if held is not None and (min(held), max(held)) != ends:
        raise values.fault(
            f"`contents` has numbers from {min(held)} to {max(held)}; leave `values` out"
        )
    return (ends[0], ends[1]), held


def _contents(node: Node | None, dtype: str) -> Contents:
    if node is None or node.data is None:
        return None
    low, high = _limits(node, dtype)
    held = node.integers(low, high)
    if not held:
        raise node.fault("expected the integers in the tensor's storage, found none")
    if len(held) > MOST:
        raise node.fault(f"{len(held)} numbers; {MOST} can be told, and `values` of more")
    return held


def _limits(node: Node, dtype: str) -> tuple[int, int]:
    """What an element of a type can be."""
    bits = 8 * DTYPE_BYTES[dtype]
    if dtype == "bool":
        return 0, 1
    if dtype.startswith("uint"):
        return 0, (1 << bits) - 1
    if dtype.startswith("int"):
        return -1 << (bits - 1), (1 << (bits - 1)) - 1
    raise node.fault(f"only what a tensor of integers holds can be told, and this is {dtype}")


__all__ = ["read_numbers"]
