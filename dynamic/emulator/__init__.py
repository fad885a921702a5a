"""Runs compiled PTX on numpy arrays, lane by lane: no GPU, no compiler, no second parser.

Reading order: `formats` and `rounding` (numbers), `semantics` (what each opcode computes),
`translate` (a function becomes steps), `batch` (the state of some CTAs), `schedule` (who goes on),
`arena` (memory), `run` (the way in).
"""
