"""`python -m hlotext` is the command `hlotext`."""

from __future__ import annotations

from hlotext.cli import main

if __name__ == "__main__":
    main(prog_name="hlotext")
