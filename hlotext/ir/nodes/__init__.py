"""Graph nodes: modules, computations and instructions, which refer to each other and are compared by identity."""
