"""Labels on padding: which bytes hold what a mask put in place of elements beyond the end.

Labels are words as wide as the registers they belong to, with all bits of a byte set where it is
labelled. What moves bytes about moves labels alike, by the same step; `computation` and `warpgroup`
say what computes and multiplies hands on, and `tracker` sits beside the registers of a batch.
"""
