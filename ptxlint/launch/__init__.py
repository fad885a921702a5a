"""Kernels under a launch: arguments bound to parameters, and what follows from them."""
