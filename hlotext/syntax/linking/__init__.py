"""From names to references: records of the grammar reader and lines of the fast one become nodes.

Both readers end here, so that an error reads the same whichever of them met it. Must not know where lines come from.
"""
