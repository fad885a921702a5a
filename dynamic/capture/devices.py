"""What a device of an architecture reports of itself.

Limits come from ptxlint's tables. Names, numbers of multiprocessors and sizes of memory are those
of the largest board of data centres (or the largest one there is) with that capability.
"""

from __future__ import annotations

from typing import NamedTuple

from ptxlint.arch import find
from ptxlint.arch.targets import parse_target

_GIB = 1 << 30


class Device(NamedTuple):
    """A device as host code sees it. Sizes are bytes."""

    arch: str
    name: str
    capability: tuple[int, int]
    multiprocessors: int
    memory: int
    shared_limit: int
    """Dynamic shared memory that a kernel may ask for."""
    shared_per_multiprocessor: int
    threads_per_multiprocessor: int
    l2: int

    @property
    def number(self) -> int:
        """90 for 9.0."""
        return 10 * self.capability[0] + self.capability[1]


_BOARDS = {
    75: ("Tesla T4", 40, 16, 4),
    80: ("NVIDIA A100-SXM4-80GB", 108, 80, 40),
    86: ("NVIDIA A40", 84, 48, 6),
    87: ("Orin", 16, 32, 4),
    89: ("NVIDIA L40S", 142, 48, 96),
    90: ("NVIDIA H100 80GB HBM3", 132, 80, 50),
    100: ("NVIDIA B200", 148, 180, 126),
    103: ("NVIDIA B300", 148, 270, 126),
    120: ("NVIDIA GeForce RTX 5090", 170, 32, 96),
    121: ("NVIDIA GB10", 48, 128, 24),
}
"""Name, multiprocessors, GiB of memory, MiB of L2 cache."""


def device_of(arch: str) -> Device:
    """The device that stands for an architecture, as in `sm_90`.

    Raises ValueError for what is no architecture, or one without known limits.
    """
    target = parse_target(arch)
    limits = find(target.base)
    if limits is None:
        raise ValueError(f"{arch!r} has no known limits")
    major, minor = limits.compute_capability
    fallback = (f"NVIDIA device of compute capability {major}.{minor}", 64, 64, 32)
    name, count, memory, l2 = _BOARDS.get(10 * major + minor, fallback)
    return Device(
        arch=limits.name,
        name=name,
        capability=(major, minor),
        multiprocessors=count,
        memory=memory * _GIB,
        shared_limit=limits.shared_optin_limit,
        shared_per_multiprocessor=limits.shared_per_sm,
        threads_per_multiprocessor=limits.threads_per_sm,
        l2=l2 << 20,
    )
