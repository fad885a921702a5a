"""Labels on what nothing was written to: which bits of registers and memory are blank.

Labels are as memcheck's of Valgrind (J. Seward and N. Nethercote, "Using Valgrind to detect
undefined value errors with bit-precision", USENIX 2005): a bit of a result is labelled if the
labelled bits of its operands can bear on it. `values` says so of computations, `warp` of words
exchanged, `matrices` of matrix products, `memory` keeps the labels of memory, `origins` where
they come from. `tracker` sits beside the registers of a batch and tells where a labelled value
decides on an address, on what is done, or gets out.
"""
