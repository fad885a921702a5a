"""Grammars and the parser data built from them."""
