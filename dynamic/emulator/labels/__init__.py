"""Labels on values: which bytes of which registers, in which lanes, hold padding.

Labels are words as wide as the registers they belong to, with all bits of a byte set where it is
labelled. So what moves bytes about moves labels alike, by the same step (`movement`); what computes
hands labels on to its result (`computation`). `tracker` sits beside the registers of a batch.
"""
