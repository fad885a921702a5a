"""The structure of a kernel: what stays when registers, labels and places in the source change.

`canonical` gives an instruction a form without names, `graph` asks whether two control-flow graphs
are the same, `alignment` pairs the instructions of two kernels, `profile` counts what a kernel
does.
"""
