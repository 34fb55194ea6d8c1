"""The language as Python sees it: terminals of `grammar/`, expressions made from them, words, where modules end.

Must not know what reads: no nodes, no records, no Lark.
"""
