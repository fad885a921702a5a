"""Labels on integers that wrapped: by how much what a register holds is not what was computed.

`exact` says what an operation makes of such differences, `remainders` which operations bring a
number back into a range that is meant, and `tracker` sits beside the registers of a batch and tells
where an address is not the one that was computed.
"""
