"""Kernels made wrong on purpose, one small change each, and the right ones beside them.

`kit` says what a defect is; `memory`, `blank`, `races`, `copies`, `barriers` and `arithmetic` hold
them, `catalogue` all of them, and `right` kernels in which nothing is wrong. `emulated` runs them
without a GPU, `on_gpu` on one. `run.py` and `table.py` are command lines.
"""
