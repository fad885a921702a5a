"""ptxlint: a compiler-level static analyzer for NVIDIA PTX."""

__version__ = "0.1.0"
