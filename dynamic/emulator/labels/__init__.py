"""Labels on values: which bits of which registers, in which lanes, hold something that matters.

`following` lets all kinds of labels follow a run instruction by instruction. `blank` are those of
what nothing was written to; the others here are those of padding.

Labels of padding are words as wide as the registers they belong to, with all bits of a byte set
where it is labelled. So what moves bytes about moves labels alike, by the same step (`movement`);
what computes hands labels on to its result (`computation`). `tracker` sits beside the registers of
a batch.
"""
