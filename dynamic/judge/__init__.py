"""Holds what the static half says to what happens: verdicts are replayed in the emulator.

A verdict of *proved* must be violated by no run that its launch and assumptions admit, and the
witness of a *refuted* one must really do what it is said to. `accesses` judges verdicts on accesses
under a launch; `variations` makes launches of one.
"""
