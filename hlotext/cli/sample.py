"""The module that comes with hlotext, for a first look without a dump of one's own."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent
_TEXT = "corpus/tpu/data_parallel.v5e_2x2x1.after_codegen.txt"


def sample_path() -> str:
    """The path of a data-parallel training step, compiled for four TPUs (v5e); relative where it lies below this folder.

    Raises FileNotFoundError when the package was installed without it.
    """
    for place in (_PACKAGE, _PACKAGE.parent):
        path = place / _TEXT
        if path.is_file():
            return str(path.relative_to(Path.cwd()) if path.is_relative_to(Path.cwd()) else path)
    raise FileNotFoundError(f"hlotext's sample is missing: no {_TEXT} in or beside {_PACKAGE}")
