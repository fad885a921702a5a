"""Numbers are the same on every machine: their bytes are pinned."""

from __future__ import annotations

import hashlib

import numpy as np
import pytest

from ptxlint.dynamic.cases.seeds import Draws

PINNED = {
    "raw": "9999644ccf681611",
    "uniform": "0b035cf81516e9c1",
    "normal": "37a369911bbdea04",
    "signs": "f8b29994d9c4d81e",
}


@pytest.mark.parametrize("kind", PINNED)
def test_bytes_are_pinned(kind: str) -> None:
    drawn = getattr(Draws(7, "x", "regular"), kind)((3, 50))
    told = hashlib.sha256(drawn.astype(drawn.dtype.newbyteorder("<")).tobytes()).hexdigest()[:16]
    assert told == PINNED[kind]


def test_first_numbers_are_those_of_philox_and_sha256() -> None:
    """Worked out by hand from what the docstrings say."""
    key = hashlib.sha256(b'[1, 7, "x", "regular"]').digest()[:16]
    words = [int.from_bytes(key[at : at + 8], "little") for at in (0, 8)]
    raw = np.random.Philox(key=np.array(words, dtype=np.uint64)).random_raw(4)
    assert Draws(7, "x", "regular").raw((4,)).tolist() == raw.tolist()
    assert Draws(7, "x", "regular").uniform((4,)).tolist() == [int(r) // 2**11 / 2**53 for r in raw]
    # One normal number takes three words of four pieces, and a fourth for the gaps.
    pieces = [int(word) >> shift & 0xFFFF for word in raw[:3] for shift in (0, 16, 32, 48)]
    gap = int(raw[3]) // 2**11 / 2**53 - 0.5
    assert Draws(7, "x", "regular").normal((1,)).tolist() == [
        (sum(pieces) - 6 * 65535 + gap) / 65536
    ]


def test_streams_differ_with_each_word() -> None:
    streams = [Draws(0, "x"), Draws(1, "x"), Draws(0, "y"), Draws(0, "x", "regular"), Draws("0x")]
    assert len({draws.raw((1,)).item() for draws in streams}) == len(streams)


def test_distributions() -> None:
    draws = Draws(0)
    normal = draws.normal((100_000,))
    assert abs(normal.mean()) < 0.02
    assert abs(normal.std() - 1) < 0.01
    assert 3.5 < np.abs(normal).max() < 6
    # A normal number lies within one standard deviation in 68.27 % of all cases.
    assert abs((np.abs(normal) < 1).mean() - 0.6827) < 0.01
    uniform = draws.uniform((100_000,))
    assert uniform.min() >= 0
    assert uniform.max() < 1
    assert abs(uniform.mean() - 0.5) < 0.01
    some = draws.integers(-3, 3, (7000,))
    assert sorted(set(some.tolist())) == [-3, -2, -1, 0, 1, 2, 3]
    assert np.unique(some, return_counts=True)[1].min() > 850
    assert set(draws.signs((100,)).tolist()) == {-1.0, 1.0}
