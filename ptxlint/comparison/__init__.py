"""Kernels held against each other: two builds of them, or one over several architectures.

`records` reads what is to be compared, `pairing` says which kernel is which, `difference` what has
changed in a pair, `verdicts` what is said of both, `tolerance` what a change may fail on.
`architectures` groups the builds of one kernel, `portrait` measures each, `surprises` says which is
the odd one out.
"""
