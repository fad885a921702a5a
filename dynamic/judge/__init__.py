"""Holds what the static half says to what happens: verdicts are replayed in the emulator.

A verdict of *proved* must be violated by no run that its launch and assumptions admit, and the
witness of a *refuted* one must really do what it is said to. `replay` runs a launch and asks each
criterion, one module a family, whether the run kept what is said; `variations` makes launches of
one. docs/judge.md lists the criteria.
"""
