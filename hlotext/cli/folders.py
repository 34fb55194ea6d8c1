"""Dump folders as arguments of sub-commands."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TypeVar

import hlotext as hlo
from hlotext import dumps
from hlotext.cli.common import Unreadable, not_found, refuse_missing
from hlotext.findings.errors import brief

T = TypeVar("T")
_CLONE = "-clone"
_LISTED = 5


def opened(path: str) -> dumps.DumpFolder:
    """Opens a dump folder with at least one compilation. Raises Unreadable."""
    if path == "-":
        raise Unreadable("- is standard input, not a folder; save the archive to a file")
    refuse_missing([path])
    try:
        folder = dumps.open(path)
    except hlo.InputError as error:
        raise Unreadable(str(error)) from None
    if not folder.compilations:
        if os.path.isdir(path):
            raise Unreadable(
                f"{path} has no files named like those of --xla_dump_to (module_0001.NAME.STAGE.txt)"
            )
        raise Unreadable(f"{path} is not a dump folder; for one module: hlotext show {path}")
    return folder


def chosen(path: str, module: str | None) -> dumps.Compilation:
    """Returns a compilation of a dump folder: the only one, or the one with a name or number.

    Raises Unreadable and NotFound.
    """
    folder = opened(path)
    if module is None:
        if len(folder) == 1:
            return folder.compilations[0]
        whole = without_clones(folder.compilations)
        if len(whole) == 1:
            return whole[0]
        keys = Counter((c.number, c.name) for c in folder.compilations)
        # Where neither number nor name tells them apart, their folders do.
        if max(keys.values()) > 1 and os.path.isdir(path):
            places = list(dict.fromkeys(os.path.join(path, c.folder) for c in folder.compilations))
            if len(places) > 1:
                shown = ", ".join(places[:_LISTED]) + (", ..." if len(places) > _LISTED else "")
                raise Unreadable(
                    f"{path} holds {len(folder)} compilations in {len(places)} folders: name one of {shown}"
                )
        known = ", ".join(f"{c.number} {c.name}" for c in folder.compilations[:_LISTED])
        more = ", ..." if len(folder) > _LISTED else ""
        raise Unreadable(f"{path} holds {len(folder)} compilations ({known}{more}): choose one with -m")
    try:
        return folder[int(module) if module.isdigit() else module]
    except LookupError as error:
        raise not_found(error) from None


def without_clones(compilations: Sequence[dumps.Compilation]) -> list[dumps.Compilation]:
    """Returns the compilations without copies named `NAME-clone` that XLA made of one of them and that lack final HLO."""
    names = {c.name for c in compilations}
    return [
        c
        for c in compilations
        if c.last is not None or not c.name.endswith(_CLONE) or c.name.removesuffix(_CLONE) not in names
    ]


def asked(ask: Callable[[], T]) -> T:
    """Calls a function and returns its result; library errors about the input become NotFound or Unreadable."""
    try:
        return ask()
    except LookupError as error:
        raise not_found(error) from None
    except hlo.InputError as error:
        raise Unreadable(str(error)) from None
    except hlo.HloSyntaxError as error:
        raise Unreadable(brief(error), str(error)) from None
