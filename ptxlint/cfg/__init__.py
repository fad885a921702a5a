"""Control flow: basic blocks, dominance, loops, control dependence."""
