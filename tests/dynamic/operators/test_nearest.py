"""Sizes that go together, next to those that were wanted."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from ptxlint.dynamic.operators import Dim
from ptxlint.dynamic.operators.nearest import ASKED, nearest

DIMS = {"m": Dim(1, 64), "n": Dim(1, 512), "k": Dim(16, 512, typical=64)}
WANTED = {"m": 5, "n": 131, "k": 97}
Sizes = Mapping[str, int]


@pytest.mark.parametrize(
    ("takes", "found"),
    [
        (lambda d: True, (5, 131, 97)),
        (lambda d: d["k"] & (d["k"] - 1) == 0, (5, 131, 128)),
        (lambda d: all(size & (size - 1) == 0 for size in d.values()), (8, 256, 128)),
        (lambda d: d["n"] == d["k"], (5, 131, 131)),
        (lambda d: d["k"] % 32 == 0 and d["n"] % 16 == 0, (5, 256, 128)),
        (lambda d: d["n"] == 2 * d["k"], (5, 256, 128)),
        (lambda d: d["n"] % d["m"] == 0, (8, 256, 97)),
        (lambda d: d["k"] == 64 and d["n"] == 512, (5, 512, 64)),
        (lambda d: d["k"] == 57, None),
    ],
)
def test_what_is_wanted_is_kept_as_far_as_it_can_be(
    takes: Callable[[Sizes], bool], found: tuple[int, ...] | None
) -> None:
    asked = []

    def ask(sizes: Sizes) -> bool:
        asked.append(sizes)
        return takes(sizes)

    sizes = nearest(DIMS, WANTED, ask)
    assert (sizes and tuple(sizes.values())) == found
    assert len(asked) <= 2 * ASKED
    assert all(dim.allows(each[name]) for each in asked for name, dim in DIMS.items())
    assert nearest(DIMS, WANTED, takes) == sizes


def test_typical_sizes_are_moved_toward_what_is_wanted() -> None:
    dims = {name: Dim(1, 100, typical=37) for name in "abcdefgh"}
    # Out of reach of a search: all eight would have to be moved.
    sizes = nearest(dims, dict.fromkeys(dims, 50), lambda d: d["a"] == 37 and sum(d.values()) > 295)
    assert sizes == {"a": 37, **dict.fromkeys("bcdefgh", 50)}
