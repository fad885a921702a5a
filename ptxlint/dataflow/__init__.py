"""Dataflow analyses over the control-flow graph."""
