"""Readers that turn files into IR modules."""
