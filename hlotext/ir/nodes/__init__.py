"""Nodes: modules, computations and instructions, joined by references and compared by identity."""
