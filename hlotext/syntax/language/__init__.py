"""Lexical rules of HLO text: the terminals of `grammar/`, regular expressions, keywords, module boundaries.

Independent of the parsers: no nodes, no records, no Lark.
"""
