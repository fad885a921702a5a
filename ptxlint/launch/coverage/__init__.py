"""Which cells of its outputs a launch writes, and how often."""
