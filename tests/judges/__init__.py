"""Judges: what the dumps of fresh programs really show, found without hlotext's own rules.

`compiling` compiles a file of programs twice, once with a name of its own for each operation and with the compiler's log;
`collectives` and `identity` compare hlotext's answers with what these tell, and `suggestions` compiles the advice.
"""
