"""The grammar reader: Lark over a term or a whole module. Slow, obviously right, and imported when it is first needed.

Gives values and records, in which names are still names. Must not know nodes.
"""
