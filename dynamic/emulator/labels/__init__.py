"""Labels on values: which bits of which registers, in which lanes, hold something that matters.

One kind a package: `padding`, `blank` (what nothing was written to), `wraps` (integers that
wrapped). `following` lets them follow a run instruction by instruction; `movement` and `bulk` are
shared: instructions that move bytes are run once more on labels.
"""
