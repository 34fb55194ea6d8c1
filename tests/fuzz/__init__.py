"""Fuzzing: texts that no reader should trip over, made from the corpus and the grammar, and what must hold for any text.

`python -m tests.fuzz --count 1000000` runs the mutations for long, `tests/test_fuzz.py` 5,000 of them in CI, and
`tests/fuzz/atheris_target.py` is a target for libFuzzer. What was found becomes a file of tests/data/err.
"""
