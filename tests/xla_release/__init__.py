"""Takes in a release of XLA: compiles programs of the corpus with it, and says what hlotext does not know of what it wrote.

    python -m tests.xla_release 0.12.0.1 [--platform cpu,tpu,gpu] [--only REGEX] [--keep DIR] [--record]

Exit status 1 if anything is new. CONTRIBUTING.md, "A new release of XLA", says what to do then.
"""
